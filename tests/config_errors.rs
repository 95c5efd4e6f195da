//! Files that cannot be used, and what is said about them. The texts are redis-sentinel's, because wrappers and people know
//! them; the last test holds ours against the real program where it is installed.

use std::io;
use std::process::{Command, Stdio};
use watchfire::base::limits;
use watchfire::config::{self, ConfigError, Opened, Source};

const M: &str = "sentinel monitor mymaster 127.0.0.1 6379 2\n";

fn refused(text: &str) -> ConfigError {
    let mut none = |_: &str| Err(io::Error::from_raw_os_error(2));
    match config::read(text.as_bytes(), Source::file("sentinel.conf"), &mut none) {
        Err(error) => error,
        Ok(_) => panic!("loads:\n{text}"),
    }
}

const OOM: &str = "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
const BAD: &str = "Bad directive or wrong number of arguments";
const COUNT: &str = "wrong number of arguments";
const INTEGER: &str = "argument couldn't be parsed into an integer";
const UNRECOGNIZED: &str = "Unrecognized sentinel configuration statement.";
const QUORUM: &str = "Quorum must be 1 or greater.";
const PORT: &str = "Invalid port number.";
const POSITIVE: &str = "negative or zero time parameter.";
const RESOLVE: &str = "Can't resolve instance hostname.";

/// Each text, of which the last line is the bad one, and what is said.
fn cases() -> Vec<(String, &'static str)> {
    let id = "a".repeat(40);
    let plain = |line: &str, message| (line.to_string(), message);
    let with_master = |lines: &str, message| (format!("{M}{lines}"), message);
    vec![
        plain("foo bar", BAD),
        plain("port", COUNT),
        plain("  port 1 2\t", COUNT),
        plain("port abc", INTEGER),
        plain("port 99999", "argument must be between 0 and 65535 inclusive"),
        plain("port -1", "argument must be between 0 and 65535 inclusive"),
        plain("maxclients 10k", INTEGER),
        plain("maxclients 0", "argument must be between 1 and 4294967295 inclusive"),
        plain("tcp-keepalive -3", "argument must be between 0 and 2147483647 inclusive"),
        plain("timeout -1", "argument must be between 0 and 2147483647 inclusive"),
        plain("daemonize maybe", "argument must be 'yes' or 'no'"),
        plain("protected-mode 1", "argument must be 'yes' or 'no'"),
        plain("supervised x", "argument(s) must be one of the following: upstart, systemd, auto, no"),
        plain(
            "syslog-facility foo",
            "argument(s) must be one of the following: user, local0, local1, local2, local3, local4, local5, local6, local7",
        ),
        plain("unixsocketperm 999", "argument couldn't be parsed as an octal number"),
        plain("requirepass", COUNT),
        plain("port \"12", "Unbalanced quotes in configuration line"),
        plain("port \"12\"3", "Unbalanced quotes in configuration line"),
        plain("include", BAD),
        plain("user", BAD),
        plain("rename-command", BAD),
        plain("oom-score-adj-values 0 200", COUNT),
        plain("oom-score-adj-values 0 200 x", OOM),
        plain("oom-score-adj-values 0 200 2001", OOM),
        plain("oom-score-adj maybe", "argument(s) must be one of the following: no, yes, relative, absolute"),
        plain("sentinel foo", UNRECOGNIZED),
        plain("sentinel monitor a", UNRECOGNIZED),
        plain("sentinel monitor a b c d", QUORUM),
        plain("sentinel monitor a 127.0.0.1 6379 0", QUORUM),
        plain("sentinel monitor a 127.0.0.1 6379 -1", QUORUM),
        plain("sentinel monitor a 127.0.0.1 6379 x", QUORUM),
        plain("sentinel monitor a 127.0.0.1 99999 1", PORT),
        plain("sentinel monitor a 127.0.0.1 -5 1", PORT),
        plain("sentinel monitor a no-such-host.invalid 6379 1", RESOLVE),
        plain("sentinel monitor a 127.0.0.1 6379 1 5", UNRECOGNIZED),
        plain("sentinel myid abc", "Malformed Sentinel id in myid option."),
        plain(
            "sentinel deny-scripts-reconfig maybe",
            "Please specify yes or no for the deny-scripts-reconfig options.",
        ),
        plain("sentinel resolve-hostnames maybe", "Please specify yes or no for the resolve-hostnames option."),
        plain("sentinel announce-hostnames maybe", "Please specify yes or no for the announce-hostnames option."),
        plain("sentinel announce-ip 1.2.3.4 5", UNRECOGNIZED),
        plain("sentinel down-after-milliseconds x 0", "No such master with specified name."),
        plain(&format!("sentinel known-sentinel x 127.0.0.1 5000 {id}"), "No such master with specified name."),
        with_master("sentinel monitor mymaster 127.0.0.1 6380 1", "Duplicate master name."),
        with_master("sentinel down-after-milliseconds mymaster 0", POSITIVE),
        with_master("sentinel down-after-milliseconds mymaster -1", POSITIVE),
        with_master("sentinel down-after-milliseconds mymaster abc", POSITIVE),
        with_master("sentinel failover-timeout mymaster 0", POSITIVE),
        with_master("sentinel master-reboot-down-after-period mymaster -1", "negative time parameter."),
        with_master("sentinel known-replica mymaster 127.0.0.1 99999", PORT),
        with_master("sentinel known-replica mymaster 127.0.0.1", UNRECOGNIZED),
        with_master("sentinel known-slave mymaster no-such-host.invalid 1", RESOLVE),
        with_master(
            &format!(
                "sentinel known-sentinel mymaster 127.0.0.1 5000 {id}\nsentinel known-sentinel mymaster 127.0.0.1 5001 {id}"
            ),
            "Duplicate runid for sentinel.",
        ),
        with_master(
            "sentinel rename-command mymaster config x\nsentinel rename-command mymaster CONFIG y",
            "Same command renamed multiple times with rename-command.",
        ),
    ]
}

/// The same about what redis-sentinel 7.0.15 does not know or takes.
fn cases_of_ours() -> Vec<(String, &'static str)> {
    let case = |line: &str, message| (line.to_string(), message);
    vec![
        case("log-format json", "argument(s) must be one of the following: legacy, logfmt"),
        case("rename-command PING \"a\\nb\"", "A name of a command must not hold control characters"),
        case("sentinel announce-port 99999", PORT),
        case("sentinel current-epoch -1", "An epoch cannot be negative."),
        case(&format!("sentinel myid {}", "z".repeat(40)), "Malformed Sentinel id in myid option."),
    ]
}

#[test]
fn every_kind_of_wrong_line_is_told_in_the_known_words_with_its_number() {
    for (text, message) in cases().into_iter().chain(cases_of_ours()) {
        let error = refused(&format!("# comment\n\n{text}\nport 26379\n"));
        let last = text.lines().last().unwrap();
        assert_eq!((error.message.as_str(), error.text.as_str()), (message, last.trim()), "{text}");
        assert_eq!(error.line, 2 + text.lines().count(), "{text}");
        let block = error.to_string();
        let expected = format!(
            "\n*** FATAL CONFIG FILE ERROR (Redis {}) ***\nReading the configuration file, at line {}\n>>> '{}'\n{message}",
            config::AS_REDIS,
            error.line,
            last.trim()
        );
        assert!(block.starts_with(&expected), "{block}\n{expected}");
    }
}

#[test]
fn passwords_in_a_wrong_line_are_not_shown() {
    for (line, shown) in [
        ("requirepass hush more", "requirepass (a password) (a password)"),
        ("requirepass \"hush", "requirepass (a password)"),
        ("masterauth \"hush", "masterauth (a password)"),
        ("tls-key-file-pass hush more", "tls-key-file-pass (a password) (a password)"),
        ("sentinel auth-pass nobody hush", "sentinel auth-pass nobody (a password)"),
        ("sentinel auth-pass nobody \"hush hush", "sentinel auth-pass nobody (a password) (a password)"),
        ("SENTINEL sentinel-pass hush more", "SENTINEL sentinel-pass (a password) (a password)"),
        ("user bob on \">hush hush +@all", "user bob on (a password?) (a password?) +@all"),
        // Nothing to hide: as it stands.
        ("sentinel auth-pass  nobody", "sentinel auth-pass  nobody"),
    ] {
        let error = refused(line);
        assert_eq!(error.text, shown);
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    let twice = refused("user bob on >hush\nuser bob  on >hush #hush (+ping ~x) hush\n");
    assert_eq!(twice.text, "user bob on (a password) (a password) (+ping ~x) (a password?)");
}

#[test]
fn r86_a_short_monitor_line_is_told_which_fields_are_missing() {
    let error = refused("sentinel monitor mymaster 127.0.0.1\n");
    assert_eq!(error.message, UNRECOGNIZED);
    assert_eq!(
        error.hint,
        "expected: sentinel monitor <master> <host> <port> <quorum>; <port> and <quorum> are missing"
    );
}

#[test]
fn r87_control_characters_are_refused_everywhere_but_in_passwords() {
    let id = "a".repeat(40);
    for line in [
        "sentinel monitor \"a\\nb\" 127.0.0.1 6379 1".to_string(),
        "sentinel announce-ip \"1.2.3.4\\nsentinel\"".to_string(),
        "sentinel sentinel-user \"a\\x00\"".to_string(),
        format!("{M}sentinel notification-script mymaster \"/x\\ny\""),
        format!("{M}sentinel client-reconfig-script mymaster \"/x\\x7f\""),
        format!("{M}sentinel auth-user mymaster \"a\\r\""),
        format!("{M}sentinel rename-command mymaster config \"a\\tb\""),
        format!("{M}sentinel known-replica mymaster \"127.0.0.1\\n\" 6380"),
        format!("{M}sentinel known-sentinel mymaster 127.0.0.1 6380 \"{id}\\n\""),
    ] {
        let error = refused(&line);
        assert!(error.message.ends_with("must not contain control characters."), "{line}: {}", error.message);
    }
    let text = format!("{M}sentinel auth-pass mymaster \"a\\nb\\x00\"\nrequirepass \"c\\nd\"\n");
    let loaded = config::read(text.as_bytes(), Source::file("x"), &mut |_| unreachable!()).unwrap();
    assert_eq!(loaded.snapshot.masters[0].settings.auth_pass, b"a\nb\0");
    assert_eq!(loaded.server.requirepass, b"c\nd");
}

#[test]
fn what_nobody_could_use_is_refused() {
    let password = |length: usize| format!("requirepass {}\n", "x".repeat(length));
    let error = refused(&password(limits::UNAUTHENTICATED_BULK + 1));
    assert_eq!((error.line, error.message.as_str()), (1, "a password must not be longer than 16384 bytes"));
    let loads = |text: &str| config::read(text.as_bytes(), Source::file("x"), &mut |_| unreachable!()).is_ok();
    assert!(loads(&password(limits::UNAUTHENTICATED_BULK)));
    let long = "a".repeat(254);
    for host in ["a,b", "\"a b\"", "köln", &long] {
        let error = refused(&format!("sentinel announce-ip {host}\n"));
        assert_eq!(error.message, "Invalid IP address or hostname specified", "{host}");
    }
    for host in ["\"\"", "10.0.0.1", "::1", "fe80::1%eth0", "some.host", &long[1..]] {
        assert!(loads(&format!("sentinel announce-ip {host}\n")), "{host}");
    }
}

#[test]
fn an_error_in_an_included_file_names_the_file_and_one_on_the_command_line_counts_on() {
    let mut open = |path: &str| Ok(vec![Opened { path: path.into(), text: b"\n\nfoo bar\n".to_vec() }]);
    let error = config::read(b"port 1\ninclude /etc/more.conf\n", Source::file("x"), &mut open).unwrap_err();
    assert!(error.to_string().contains("file, at line 3 of /etc/more.conf\n>>> 'foo bar'\n"), "{error}");

    let arguments = config::from_args(&["--foo", "bar"]);
    for (text, line) in [("port 1\nbind ::1\n", 4), ("port 1\nbind ::1", 3)] {
        let source = Source::file("x").with_arguments(&arguments);
        let error = config::read(text.as_bytes(), source, &mut open).unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (line, "foo \"bar\""));
    }
}

#[test]
fn an_included_file_that_is_not_there_or_includes_itself_is_told() {
    let error = refused("port 1\ninclude /nope\n");
    assert_eq!(error.line, 2);
    assert!(
        error.message.starts_with("Fatal error, can't open config file '/nope': No such file or directory"),
        "{error}"
    );

    let mut open = |path: &str| Ok(vec![Opened { path: path.into(), text: b"include again\n".to_vec() }]);
    let error = config::read(b"include again\n", Source::file("x"), &mut open).unwrap_err();
    assert!(error.message.contains("without end"), "{error}");
}

#[test]
fn plain_directives_are_judged_before_sentinel_lines() {
    assert_eq!(refused("sentinel foo\nport x\n").line, 2);
    // Among those: the Sentinel, the masters, the rest.
    assert_eq!(refused("sentinel foo\nsentinel monitor a 127.0.0.1 1 0\nsentinel myid x\n").line, 3);
    assert_eq!(refused("sentinel foo\nsentinel monitor a 127.0.0.1 1 0\n").line, 2);
}

#[test]
fn redis_sentinel_says_the_same() {
    let Ok(version) = Command::new("redis-sentinel").arg("--version").output() else {
        eprintln!("skipped: no redis-sentinel in PATH");
        return;
    };
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let version = version.split("v=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("watchfire-config-errors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("sentinel.conf");
    for (text, _) in cases() {
        std::fs::write(&file, &text).unwrap();
        // Every one of these ends at once by itself: it never comes to listening.
        let output =
            Command::new("redis-sentinel").arg(&file).stdin(Stdio::null()).current_dir(&folder).output().unwrap();
        let theirs = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut error = refused(&text);
        error.hint.clear();
        let ours = error.to_string().replacen(config::AS_REDIS, version, 1);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(ours.trim_end(), theirs.trim_end(), "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
