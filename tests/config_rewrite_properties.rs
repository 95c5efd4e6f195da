//! Whatever the state and whatever the file: the rewritten file loads, means the state, and is not changed by a second rewrite.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use watchfire::config::{self, Opened, ServerOptions, Source};
use watchfire::core::{KnownPeer, MasterSnapshot, Options, RunId, Settings, Snapshot};

fn load(text: &[u8], includes: &BTreeMap<String, Vec<u8>>) -> config::Loaded {
    let mut open = |path: &str| match includes.get(path) {
        Some(text) => Ok(vec![Opened { path: path.into(), text: text.clone() }]),
        None => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    config::read(text, Source::file("sentinel.conf"), &mut open)
        .unwrap_or_else(|error| panic!("{error}\n--- in ---\n{}", String::from_utf8_lossy(text)))
}

/// The same state in one order: that of a file has no meaning.
fn in_order(mut snapshot: Snapshot) -> Snapshot {
    snapshot.masters.sort_by(|a, b| a.name.cmp(&b.name));
    for master in &mut snapshot.masters {
        master.known_replicas.sort();
        master.known_peers.sort_by_key(|peer| peer.run_id);
    }
    snapshot
}

fn run_id() -> impl Strategy<Value = RunId> {
    // Few values, so that lines meet.
    (0u8..6).prop_map(|n| RunId::from_entropy([n; 20]))
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]",
        2 => "[a-zA-Z0-9._-]{1,12}",
        1 => "[ -~]{1,8}",
        1 => "[ -~é☂\u{a0}]{1,6}",
    ]
}

fn optional_word() -> impl Strategy<Value = String> {
    prop_oneof![2 => Just(String::new()), 1 => word()]
}

/// What may be announced: any letter of ASCII but a blank and a comma.
fn announced() -> impl Strategy<Value = String> {
    prop_oneof![2 => Just(String::new()), 1 => host(), 1 => "[!-+\\--~]{1,8}"]
}

fn secret() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(any::<u8>(), 1..10)]
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (1u8..4).prop_map(|n| format!("10.0.0.{n}")),
        1 => Just("::1".to_string()),
        1 => Just("2001:db8::7".to_string()),
    ]
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![6379u16..6383, 1u16..=u16::MAX]
}

fn number(default: u64) -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(default), 2 => 1u64..100_000, 1 => 1..=u64::MAX]
}

prop_compose! {
    fn settings()(
        quorum in prop_oneof![1u32..5, 1..=u32::MAX],
        down_after in number(30_000),
        down_after_refused in prop_oneof![2 => Just(0), 1 => any::<u64>()],
        ping_period in prop_oneof![2 => Just(0), 1 => any::<u64>()],
        failover_timeout in number(180_000),
        parallel_syncs in prop_oneof![Just(1), any::<u32>()],
        reboot_down_after in prop_oneof![2 => Just(0), 1 => any::<u64>()],
        auth_user in optional_word(),
        auth_pass in secret(),
        notification_script in optional_word(),
        client_reconfig_script in optional_word(),
        renames in prop::collection::vec(("(?i)config|slaveof|multi", word()), 0..3),
    ) -> Settings {
        let mut seen = BTreeSet::new();
        let rename_commands =
            renames.into_iter().filter(|(old, _)| seen.insert(old.to_ascii_lowercase())).collect();
        Settings {
            quorum, down_after, down_after_refused, ping_period, failover_timeout, parallel_syncs, reboot_down_after,
            auth_user, auth_pass, notification_script, client_reconfig_script, rename_commands,
        }
    }
}

prop_compose! {
    fn master()(
        name in word(),
        host in host(),
        port in prop_oneof![9 => port(), 1 => Just(0)],
        settings in settings(),
        config_epoch in 0..=Snapshot::EPOCH_LAST,
        leader_epoch in 0..=Snapshot::EPOCH_LAST,
        replicas in prop::collection::btree_set((host(), port()), 0..5),
        peers in prop::collection::btree_map(run_id(), (host(), port()), 0..4),
    ) -> MasterSnapshot {
        let known_replicas = replicas.into_iter().filter(|one| *one != (host.clone(), port)).collect();
        let known_peers = peers.into_iter().map(|(run_id, (host, port))| KnownPeer { host, port, run_id }).collect();
        MasterSnapshot { name, host, port, settings, config_epoch, leader_epoch, known_replicas, known_peers }
    }
}

prop_compose! {
    fn snapshot()(
        myid in 10u8..13,
        epoch in 0..=Snapshot::EPOCH_LAST,
        resolve in any::<bool>(),
        name_instead in any::<bool>(),
        announce_hostnames in any::<bool>(),
        announce_ip in announced(),
        announce_port in prop_oneof![Just(0), any::<u16>()],
        sentinel_user in optional_word(),
        sentinel_pass in secret(),
        deny in any::<bool>(),
        masters in prop::collection::vec(master(), 0..5),
    ) -> Snapshot {
        let mut names = BTreeSet::new();
        let mut masters: Vec<_> = masters.into_iter().filter(|master| names.insert(master.name.clone())).collect();
        if resolve && name_instead {
            for master in &mut masters {
                master.host = "redis-0.example".into();
            }
        }
        let current_epoch = masters.iter().map(|master| master.config_epoch).fold(epoch, u64::max);
        Snapshot {
            myid: Some(RunId::from_entropy([myid; 20])),
            current_epoch,
            options: Options {
                resolve_hostnames: resolve, announce_hostnames, announce_ip, announce_port, sentinel_user,
                sentinel_pass, deny_scripts_reconfig: deny,
            },
            masters,
        }
    }
}

/// A line as it may stand in a file while we run: good, old, foreign or broken.
fn line() -> impl Strategy<Value = String> {
    let id = "[0-5]{1}".prop_map(|digit: String| format!("0{digit}").repeat(20));
    prop_oneof![
        Just(String::new()),
        "# [ -~]{0,12}",
        Just(config::MARKER.to_string()),
        Just("port 26379".to_string()),
        Just("\tloglevel \"verbose\" ".to_string()),
        Just("maxmemory 1gb\r".to_string()),
        Just("SENTINEL resolve-hostnames no".to_string()),
        Just("sentinel deny-scripts-reconfig yes".to_string()),
        Just("sentinel".to_string()),
        Just("sentinel can-failover a yes".to_string()),
        Just("no-such-directive 1".to_string()),
        Just("sentinel monitor a".to_string()),
        Just("port \"1".to_string()),
        "[ -~]{0,20}".prop_filter("no include of what is not there", |text| !text.to_lowercase().contains("include")),
        ("[a-d]", host(), port()).prop_map(|(m, h, p)| format!("sentinel monitor {m} {h} {p} 2")),
        ("[a-d]", host(), port()).prop_map(|(m, h, p)| format!("sentinel known-slave {m} {h} {p}")),
        ("[a-d]", host(), port()).prop_map(|(m, h, p)| format!("sentinel known-replica {m} {h} {p}")),
        ("[a-d]", host(), port(), id).prop_map(|(m, h, p, id)| format!("sentinel known-sentinel {m} {h} {p} \"{id}\"")),
        ("[a-d]", host()).prop_map(|(m, h)| format!("sentinel known-sentinel {m} {h} 0 {}", "a".repeat(40))),
        ("[a-d]", 0u64..3).prop_map(|(m, e)| format!("  Sentinel Config-Epoch {m} {e}")),
        ("[a-d]", 0u64..40_000).prop_map(|(m, e)| format!("sentinel down-after-milliseconds {m} {e}")),
        ("[a-d]", 0u64..3).prop_map(|(m, e)| format!("sentinel down-after-refused {m} {e}")),
        ("[a-d]", 0u64..3).prop_map(|(m, e)| format!("sentinel ping-period {m} {e}")),
        ("[a-d]").prop_map(|m| format!("sentinel auth-pass {m} 'se cret'\r")),
        ("[a-d]").prop_map(|m| format!("sentinel rename-command {m} CONFIG hidden")),
        ("[a-d]", 0u64..3).prop_map(|(m, e)| format!("sentinel primary-reboot-down-after-period {m} {e}")),
        (0u64..9).prop_map(|e| format!("sentinel current-epoch {e}")),
    ]
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(line(), 0..25), any::<bool>()).prop_map(|(lines, ended)| {
        let mut text = lines.join("\n");
        if ended {
            text.push('\n');
        }
        text.into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rewritten_file_loads_means_the_state_and_stays(old in file(), snapshot in snapshot()) {
        let server = ServerOptions::default();
        let new = config::rewrite(&old, &snapshot, &server);
        let loaded = load(&new, &BTreeMap::new());
        prop_assert_eq!(in_order(loaded.snapshot), in_order(snapshot.clone()), "{}", String::from_utf8_lossy(&new));
        let again = config::rewrite(&new, &snapshot, &server);
        prop_assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&new));
    }

    #[test]
    fn one_state_after_another_leaves_the_last_and_no_growing_blanks(
        old in file(), states in prop::collection::vec(snapshot(), 1..5),
    ) {
        let server = ServerOptions::default();
        let blanks = |text: &[u8]| text.split(|&b| b == b'\n').filter(|line| line.is_empty()).count();
        let mut text = config::rewrite(&old, &states[0], &server);
        let before = blanks(&text);
        for state in &states {
            text = config::rewrite(&text, state, &server);
            prop_assert_eq!(in_order(load(&text, &BTreeMap::new()).snapshot), in_order(state.clone()));
        }
        prop_assert!(blanks(&text) <= before);
    }

    #[test]
    fn any_bytes_are_read_or_refused_and_a_rewrite_of_them_loads(
        pieces in prop::collection::vec(
            prop_oneof![
                3 => prop::collection::vec(any::<u8>(), 0..6),
                1 => Just(b"\nsentinel ".to_vec()),
                1 => Just(b"monitor a 127.0.0.1 ".to_vec()),
                1 => Just(b"known-sentinel a ".to_vec()),
                1 => Just(b"\"".to_vec()),
                1 => Just(b"\r\nbind ".to_vec()),
                1 => Just(b" -99999999999999999999999999999999999999999 ".to_vec()),
            ],
            0..20,
        ),
        state in snapshot(),
    ) {
        let bytes = pieces.concat();
        let _ = config::read(&bytes, Source::file("s"), &mut |_| Err(io::ErrorKind::NotFound.into()));
        let new = config::rewrite(&bytes, &state, &ServerOptions::default());
        prop_assert_eq!(in_order(load(&new, &BTreeMap::new()).snapshot), in_order(state.clone()));
    }

    #[test]
    fn comments_and_plain_lines_survive_in_their_order(old in file(), snapshot in snapshot()) {
        let kept = |text: &[u8]| -> Vec<String> {
            String::from_utf8_lossy(text).lines()
                .filter(|line| line.starts_with("# ") && *line != config::MARKER && !line.starts_with("# ???"))
                .map(ToString::to_string).collect()
        };
        let new = config::rewrite(&old, &snapshot, &ServerOptions::default());
        prop_assert_eq!(kept(&new), kept(&old));
        prop_assert!(String::from_utf8_lossy(&new).matches(config::MARKER).count() <=
            String::from_utf8_lossy(&old).matches(config::MARKER).count().max(1));
    }

    #[test]
    fn an_included_file_is_neither_repeated_nor_allowed_the_last_word(
        first in file(), second in file(), written in snapshot(), state in snapshot(),
    ) {
        // Both halves of the main file, and the included one, are files that loaded. They agree about names: a file that
        // forbids them and includes one that needs them never started.
        let options = Options { resolve_hostnames: written.options.resolve_hostnames, ..Options::default() };
        let empty = Snapshot { myid: written.myid, options, ..Snapshot::default() };
        let server = ServerOptions::default();
        let included = config::rewrite(b"", &written, &server);
        let mut main = config::rewrite(&first, &empty, &server);
        main.extend_from_slice(b"\ninclude masters.conf\n");
        main.extend_from_slice(&config::rewrite(&second, &empty, &server));
        let includes = BTreeMap::from([("masters.conf".to_string(), included)]);
        let loaded = load(&main, &includes);

        // Right after a start nothing of the included file is copied.
        let same = config::rewrite(&main, &loaded.snapshot, &loaded.server);
        prop_assert!(!String::from_utf8_lossy(&same).lines().any(|line| line.starts_with("sentinel monitor")));

        // What the included file says and the state no longer holds comes back: it is not ours to edit.
        let mut text = config::rewrite(&main, &state, &loaded.server);
        let again = load(&text, &includes).snapshot;
        for master in &state.masters {
            let found = again.masters.iter().find(|one| one.name == master.name).expect("kept");
            prop_assert_eq!((&found.host, found.port), (&master.host, master.port));
            prop_assert_eq!(&found.settings.auth_pass, &master.settings.auth_pass);
            prop_assert_eq!(found.settings.down_after, master.settings.down_after);
            prop_assert_eq!(found.config_epoch, master.config_epoch);
        }
        let named = written.masters.iter().any(|master| master.host.contains("example"));
        let resolve_hostnames = state.options.resolve_hostnames || named;
        prop_assert_eq!(again.options, Options { resolve_hostnames, ..state.options.clone() });
        let before = text.clone();
        text = config::rewrite(&text, &state, &loaded.server);
        prop_assert_eq!(String::from_utf8_lossy(&text), String::from_utf8_lossy(&before));
    }
}
