//! The script: what is asked. Hand-written parts are in `script/*.txt`, in the notation of [`super::run::Part`]; the walk
//! over all commands is made here.

pub const OPEN: &str = include_str!("script/open.txt");
pub const LOCKED: &str = include_str!("script/locked.txt");
pub const EMPTY: &str = include_str!("script/empty.txt");

/// Nothing comes after it.
pub const THE_END: &str = r#"end "PING\r\nSHUTDOWN NOSAVE NOW FORCE\r\nPING\r\n""#;

/// The parts of a file, each with its name.
pub fn parts(text: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => parts.push((name.to_string(), String::new())),
            None => {
                if let Some((_, lines)) = parts.last_mut() {
                    lines.push_str(line);
                    lines.push('\n');
                }
            }
        }
    }
    parts
}

/// Commands and subcommands of redis-sentinel 7.0, with those that only we know.
const COMMANDS: &[(&str, &[&str])] = &[
    ("ping", &[]),
    ("hello", &[]),
    ("auth", &[]),
    ("info", &[]),
    ("role", &[]),
    ("publish", &[]),
    ("subscribe", &[]),
    ("psubscribe", &[]),
    ("unsubscribe", &[]),
    ("punsubscribe", &[]),
    (
        "client",
        &[
            "caching",
            "getname",
            "getredir",
            "help",
            "id",
            "info",
            "kill",
            "list",
            "no-evict",
            "pause",
            "reply",
            "setname",
            "tracking",
            "trackinginfo",
            "unblock",
            "unpause",
        ],
    ),
    ("command", &["count", "docs", "getkeys", "getkeysandflags", "help", "info", "list"]),
    (
        "acl",
        &[
            "cat", "deluser", "dryrun", "genpass", "getuser", "help", "list", "load", "log", "save", "setuser",
            "users", "whoami",
        ],
    ),
    (
        "sentinel",
        &[
            "ckquorum",
            "config",
            "debug",
            "failover",
            "flushconfig",
            "get-master-addr-by-name",
            "help",
            "info-cache",
            "is-master-down-by-addr",
            "master",
            "masters",
            "monitor",
            "myid",
            "pending-scripts",
            "remove",
            "replicas",
            "reset",
            "sentinels",
            "set",
            "simulate-failure",
            "slaves",
        ],
    ),
    ("shutdown", &[]),
];

/// Most words behind a name that are tried.
const WORDS: usize = 7;

/// Each command with zero to [`WORDS`] words that mean nothing, small, large and mixed (R74); `first` is said before.
pub fn every_command(situation: &str, first: &str) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    for (command, subs) in COMMANDS {
        let names = subs.iter().map(|sub| format!("{command} {sub}"));
        for name in std::iter::once((*command).to_string()).chain(names) {
            let mixed: String = name
                .chars()
                .enumerate()
                .map(|(at, letter)| if at % 2 == 0 { letter.to_ascii_uppercase() } else { letter })
                .collect();
            let mut lines = vec![first.to_string()];
            for name in [&name, &name.to_uppercase(), &mixed] {
                for words in 0..=WORDS {
                    // This one would be obeyed.
                    if words > 0 || *name.to_lowercase() != *"shutdown" {
                        lines.push(format!("{name}{}", " x".repeat(words)));
                    }
                }
            }
            parts.push((format!("{situation}: {name}"), lines.join("\n")));
        }
    }
    parts.push((format!("{situation}: what was made is undone"), format!("{first}\nACL DELUSER x\nACL LOG RESET")));
    parts
}
