//! conf/sentinel.conf is the manual: it loads, says nothing but defaults, and explains every directive that is used.

use watchfire::config::{self, DIRECTIVES, Meaning, ServerOptions, Source};

const SAMPLE: &str = include_str!("../conf/sentinel.conf");
#[cfg(feature = "tls")]
const TLS: &str = include_str!("../conf/tls.conf");

#[test]
fn the_sample_file_loads_and_holds_one_master_and_defaults() {
    let loaded = config::read(SAMPLE.as_bytes(), Source::file("sentinel.conf"), &mut |_| unreachable!()).unwrap();
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    assert_eq!(loaded.server, ServerOptions { dir: "/tmp".into(), ..ServerOptions::default() });
    assert_eq!(loaded.snapshot.masters.len(), 1);
}

#[test]
fn the_sample_file_loads_with_every_example_switched_on() {
    let state = SAMPLE.find("########## State").unwrap();
    let mut text = String::new();
    for line in SAMPLE[..state].lines() {
        let example = line.strip_prefix("# ").filter(|line| {
            let mut words = line.split(' ');
            let first = words.next().unwrap_or_default();
            let (sentinel, name) =
                if first == "sentinel" { (true, words.next().unwrap_or_default()) } else { (false, first) };
            // A build without TLS refuses what asks for it.
            let supported = cfg!(feature = "tls") || !name.starts_with("tls-");
            supported
                && config::find(sentinel, name.as_bytes()).is_some()
                && !line.contains(['<', '[', ','])
                && first != "include"
        });
        text.push_str(example.unwrap_or(line));
        text.push('\n');
    }
    let loaded = config::read(text.as_bytes(), Source::file("x"), &mut |_| unreachable!()).unwrap();
    let settings = &loaded.snapshot.masters[0].settings;
    assert_eq!((settings.down_after, settings.failover_timeout, settings.reboot_down_after), (5_000, 60_000, 30_000));
    assert_eq!((settings.down_after_refused, settings.ping_period), (200, 100));
    assert_eq!(settings.auth_pass, b"correct horse");
    assert_eq!(loaded.server.unixsocketperm, 0o770);
    assert_eq!(loaded.snapshot.options.announce_port, 26379);
    assert_eq!(loaded.checks.len(), 3);
}

#[cfg(feature = "tls")]
#[test]
fn the_example_of_tls_loads_without_a_word() {
    let loaded = config::read(TLS.as_bytes(), Source::file("tls.conf"), &mut |_| unreachable!()).unwrap();
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    assert_eq!((loaded.server.port, loaded.server.tls.port, loaded.server.tls.replication), (0, 26379, true));
}

#[test]
fn the_sample_file_explains_every_directive_that_is_used() {
    let missing: Vec<String> = DIRECTIVES
        .iter()
        .filter(|row| row.meaning == Meaning::Used)
        .map(|row| format!("# {} {}", row.full_name(), row.usage).replace('…', "..."))
        .filter(|head| !SAMPLE.lines().any(|line| line.starts_with(head.as_str())))
        .collect();
    assert!(missing.is_empty(), "not explained: {missing:#?}");
}

#[test]
fn the_sample_file_names_the_default_of_every_directive_that_has_one() {
    for row in DIRECTIVES.iter().filter(|row| row.meaning == Meaning::Used && !row.default.is_empty()) {
        let head = format!("# {} {}", row.full_name(), row.usage).replace('…', "...");
        let at = SAMPLE.find(&head).unwrap_or_else(|| panic!("{head}"));
        let paragraph: String = SAMPLE[at..].lines().take_while(|line| line.starts_with('#')).collect();
        assert!(paragraph.contains("efault") && paragraph.contains(row.default), "{head}: {}", row.default);
    }
}
