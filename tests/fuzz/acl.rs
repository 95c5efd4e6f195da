//! Rules of the ACL: what is accepted can be shown, read again, and means the same.

use super::drive::{behaviour, run, size, text};
use super::memory;
use watchfire::acl::{Acl, Asked, Settings};
use watchfire::base::quote;
use watchfire::command::catalog;
use watchfire::config::{self, ServerOptions, Source};
use watchfire::core::Snapshot;

fn acl() -> Acl {
    Acl::new(catalog(), Settings { all_channels: false, log_length: 8 })
}

const SEEDS: &[&[u8]] = &[
    b"default on nopass ~* &* +@all\nbob on >secret +ping +sentinel|masters &+switch-master\nbob off resetpass -@all",
    b"a reset\na on #9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 +@all -@dangerous\na <test clearselectors",
    b"c (+ping ~a &b) (-@all +sentinel|get-master-addr-by-name)\nc %R~a %W~b %RW~c allkeys resetkeys\nc sanitize-payload",
    b"d +client -client|kill -client|pause allcommands nocommands +command|count +acl|whoami\nd allchannels resetchannels &*",
];
const WORDS: &[&[u8]] = &[
    b" ",
    b"\n",
    b"on",
    b"off",
    b"nopass",
    b"resetpass",
    b"reset",
    b"~*",
    b"&*",
    b"+@all",
    b"-@all",
    b"+ping",
    b"-ping",
    b"+sentinel|masters",
    b"-sentinel|failover",
    b"+client|",
    b"+|",
    b"@",
    b"+@dangerous",
    b"-@nothing",
    b">pass",
    b"<pass",
    b"#9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    b"!9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    b"(",
    b")",
    b"(+ping ~a)",
    b"%R~",
    b"%RW~x",
    b"%~",
    b"clearselectors",
    b"sanitize-payload",
    b"user",
    b"default",
    b"\"",
    b"\\",
    b"\x00",
    b"\xff",
    b"\r",
];

#[test]
fn rules() {
    run("acl", SEEDS, WORDS, 300, |_, input| {
        let mut one = acl();
        let mut said = Vec::new();
        // A rule of two bytes may begin a selector, which remembers every command.
        memory::within(4_000 * input.len() + 64 * 1024, || {
            for line in input.split(|&byte| byte == b'\n') {
                let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
                let outcome = one.set(words[0], &words[1..]);
                said.push(outcome.map_or_else(|refused| text(&format!("{refused:?}")), |()| 1));
            }
        });
        said.sort_unstable();
        said.dedup();
        for (name, user) in one.users() {
            let line = Acl::line(name, user);
            assert!(!line.contains(&b'\n'), "one user became two lines: {}", line.escape_ascii());
        }
        // Through the file of users.
        let mut other = acl();
        let file = one.file_text();
        assert_eq!(other.load(&file, "users.acl"), Ok(()), "{}", file.escape_ascii());
        assert_eq!(other.file_text(), file);
        // Through the configuration.
        let options = ServerOptions { users: one.changes(), ..ServerOptions::default() };
        let conf = config::rewrite(b"", &Snapshot::default(), &options);
        assert!(conf.split(|&byte| byte == b'\n').all(|line| !quote::has_control(line) && line.is_ascii()));
        let loaded = config::read(&conf, Source::file("f"), &mut |_| unreachable!("no includes"));
        let mut third = acl();
        for user in loaded.unwrap_or_else(|error| panic!("{error}\n{}", conf.escape_ascii())).users {
            let rules: Vec<&[u8]> = user.rules.iter().map(Vec::as_slice).collect();
            assert_eq!(third.declare(&user.name, &rules), Ok(()), "{}", conf.escape_ascii());
        }
        let changed = |acl: &Acl| -> Vec<Vec<u8>> {
            acl.users()
                .filter(|(name, _)| options.users.contains_key(*name))
                .map(|(name, user)| Acl::line(name, user))
                .collect()
        };
        assert_eq!(changed(&third), changed(&one));
        let asked =
            Asked { command: "sentinel|masters", first: Some(b"a"), channels: &[b"+switch-master"], patterns: false };
        let allowed = one.users().filter(|(name, _)| one.check(name, &asked).is_ok()).count();
        // Any bytes as a file of users.
        let _ = memory::within(4_000 * input.len() + 64 * 1024, || acl().load(input, "users.acl"));
        behaviour(said.into_iter().take(6).chain([size(one.users().len()), allowed as u64]))
    });
}
