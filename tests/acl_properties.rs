//! Rules survive being shown and read again, whatever they are: through ACL LIST and SETUSER, the file of users, and the
//! configuration file.

use proptest::prelude::*;
use std::collections::BTreeMap;
use watchfire::acl::{Acl, Asked, Settings};
use watchfire::command::{COMMANDS, catalog};
use watchfire::config::{self, ServerOptions, Source};
use watchfire::core::Snapshot;

fn acl(all_channels: bool) -> Acl {
    Acl::new(catalog(), Settings { all_channels, log_length: 8 })
}

/// Words that are rules, nearly rules, and none.
fn rule() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&'static str> = COMMANDS
        .rows
        .iter()
        .flat_map(|row| std::iter::once(row.full).chain(row.subcommands().iter().map(|s| s.full)))
        .collect();
    let word = prop_oneof![
        3 => prop::collection::vec(prop_oneof![any::<u8>(), Just(b')'), Just(b'('), Just(b'"'), Just(b'\\'), Just(b'#')], 0..6),
        3 => "[a-z*?]{0,4}".prop_map(String::into_bytes),
    ];
    let head = prop::sample::select(vec![
        "~", "&", "%R~", "%W~", "%RW~", "%R", ">", "<", "#", "!", "+", "-", "+@", "-@", "+ping|", "+info|", "",
    ]);
    prop_oneof![
        4 => (prop::sample::select(vec!["+", "-"]), prop::sample::select(names)).prop_map(|(sign, name)| [sign, name].concat().into_bytes()),
        2 => (prop::sample::select(vec!["+@", "-@"]), prop::sample::select(watchfire::command::CATEGORIES.to_vec()))
            .prop_map(|(sign, name)| [sign, name].concat().into_bytes()),
        3 => prop::sample::select(vec![
            "on", "off", "nopass", "resetpass", "allkeys", "resetkeys", "allchannels", "resetchannels", "allcommands",
            "nocommands", "+@all", "-@all", "~*", "&*", "%R~*", "reset", "clearselectors", "sanitize-payload",
            "skip-sanitize-payload", "(", ")", "( )",
        ]).prop_map(|word| word.as_bytes().to_vec()),
        4 => (head, word).prop_map(|(head, word)| [head.as_bytes(), &word].concat()),
        2 => prop::collection::vec(prop::sample::select(vec![
            "+ping", "-@all", "+@all", "~a", "&b", "&*", "~*", "resetchannels", "+sentinel|masters", "-@admin", "~a)", "%W~c",
        ]), 0..4).prop_map(|words| format!("({})", words.join(" ")).into_bytes()),
    ]
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => "[a-z]{1,4}".prop_map(String::into_bytes),
        1 => prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'#')], 0..4),
    ]
}

/// Users with whatever of the rules applies.
fn fill(acl: &mut Acl, users: &[(Vec<u8>, Vec<Vec<u8>>)]) {
    for (name, rules) in users {
        for rule in rules {
            let _ = acl.set(name, &[rule]);
        }
    }
}

fn users() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<Vec<u8>>)>> {
    prop::collection::vec((name(), prop::collection::vec(rule(), 0..12)), 1..5)
}

fn shown(acl: &Acl) -> BTreeMap<Vec<u8>, String> {
    acl.users().map(|(name, user)| (name.to_vec(), String::from_utf8_lossy(&user.text()).into_owned())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_listed_can_be_set_and_gives_the_same_user(users in users(), all_channels: bool) {
        let mut one = acl(all_channels);
        fill(&mut one, &users);
        let mut other = acl(!all_channels);
        for (name, user) in one.users() {
            let line = Acl::line(name, user);
            let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
            prop_assert_eq!(words[0], b"user");
            let mut rules: Vec<&[u8]> = vec![b"reset"];
            rules.extend(&words[2..]);
            prop_assert_eq!(other.set(words[1], &rules), Ok(()), "{}", String::from_utf8_lossy(&line));
        }
        prop_assert_eq!(shown(&one), shown(&other));
        // They also allow the same.
        for (name, _) in one.users() {
            for row in COMMANDS.rows.iter().flat_map(|row| std::iter::once(row).chain(row.subcommands())) {
                for first in [None, Some(&b"a"[..])] {
                    let asked = Asked { command: row.full, first, channels: &[b"b"], patterns: false };
                    prop_assert_eq!(one.check(name, &asked), other.check(name, &asked));
                }
            }
        }
    }

    #[test]
    fn a_file_of_users_that_was_written_can_be_read(users in users()) {
        let mut one = acl(false);
        fill(&mut one, &users);
        let mut other = acl(false);
        prop_assert_eq!(other.load(&one.file_text(), "f"), Ok(()));
        prop_assert_eq!(shown(&one), shown(&other));
    }

    #[test]
    fn users_that_changed_are_in_the_configuration_after_a_restart(users in users(), old in "[ -~]{0,12}") {
        let mut one = acl(false);
        fill(&mut one, &users);
        let options = ServerOptions { users: one.changes(), ..ServerOptions::default() };
        let before = format!("# {old}\nuser a on >x +ping\nuser keep on\n  USER   b\n");
        let text = config::rewrite(before.as_bytes(), &Snapshot::default(), &options);
        // What is right is not written again.
        prop_assert_eq!(&config::rewrite(&text, &Snapshot::default(), &options), &text);
        let loaded = config::read(&text, Source::file("f"), &mut |_| unreachable!()).unwrap();
        let mut other = acl(false);
        for user in &loaded.users {
            let rules: Vec<&[u8]> = user.rules.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(other.declare(&user.name, &rules), Ok(()), "{}", String::from_utf8_lossy(&text));
        }
        let mut expected = shown(&one);
        for name in ["a", "b", "keep"] {
            if !options.users.contains_key(name.as_bytes()) {
                let said = shown(&other).get(name.as_bytes()).cloned();
                prop_assert!(said.is_some());
                expected.insert(name.into(), said.unwrap());
            }
        }
        prop_assert_eq!(expected, shown(&other));
        // Lines that nobody changed stay as they were written.
        if !options.users.contains_key(&b"keep"[..]) {
            prop_assert!(String::from_utf8_lossy(&text).contains("\nuser keep on\n"));
        }
    }

    #[test]
    fn no_text_of_users_makes_us_panic(text in prop::collection::vec(rule(), 0..20), bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut acl = acl(false);
        let line = [b"user x ".as_slice(), &text.join(&b' ')].concat();
        let _ = acl.load(&line, "f");
        let _ = acl.load(&bytes, "f");
        let words: Vec<&[u8]> = text.iter().map(Vec::as_slice).collect();
        let _ = acl.set(b"y", &words);
        prop_assert!(acl.user(b"default").is_some());
    }
}
