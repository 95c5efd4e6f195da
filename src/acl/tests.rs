//! The room as a whole: rules in, decisions out.

use super::catalog::sample;
use super::*;
use crate::base::limits;

fn acl() -> Acl {
    Acl::new(sample(), Settings::default())
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes).collect()
}

fn set(acl: &mut Acl, line: &str) {
    let words = words(line);
    acl.set(words[0], &words[1..]).unwrap_or_else(|refused| panic!("{line}: {refused:?}"));
}

fn shown(acl: &Acl, name: &str) -> String {
    String::from_utf8(acl.user(name.as_bytes()).unwrap().text()).unwrap()
}

#[test]
fn the_default_user_needs_no_password_and_may_do_everything() {
    let mut acl = acl();
    assert_eq!(shown(&acl, "default"), "on nopass sanitize-payload ~* &* +@all");
    assert!(acl.authenticate(b"default", b"anything"));
    assert!(!acl.authenticate(b"bob", b"anything"));
    acl.require_password(b"sec");
    assert!(acl.authenticate(b"default", b"sec") && !acl.authenticate(b"default", b"anything"));
    assert!(!acl.default_user().is_open());
    acl.require_password(b"");
    assert!(acl.default_user().is_open());
    assert!(!acl.delete(b"default"));
}

#[test]
fn a_user_is_shown_with_everything_that_was_said_about_it() {
    let hash = Hash::of(b"x");
    for (rules, text) in [
        ("", "off sanitize-payload resetchannels -@all".to_owned()),
        ("on >x +ping", format!("on sanitize-payload #{hash} resetchannels -@all +ping")),
        ("ON nopass", "on nopass sanitize-payload resetchannels -@all".to_owned()),
        ("nopass >x", format!("off sanitize-payload #{hash} resetchannels -@all")),
        ("nopass resetpass", "off sanitize-payload resetchannels -@all".to_owned()),
        (">x >x <x", "off sanitize-payload resetchannels -@all".to_owned()),
        ("skip-sanitize-payload", "off skip-sanitize-payload resetchannels -@all".to_owned()),
        ("on +@all &* reset", "off sanitize-payload resetchannels -@all".to_owned()),
        (
            "on (+ping ~a* &b) ( ) (allkeys allchannels allcommands)",
            "on sanitize-payload resetchannels -@all (~a* resetchannels &b -@all +ping) (resetchannels -@all) \
             (~* &* +@all)"
                .to_owned(),
        ),
        ("(+ping) clearselectors", "off sanitize-payload resetchannels -@all".to_owned()),
    ] {
        let mut acl = acl();
        set(&mut acl, &format!("bob {rules}"));
        assert_eq!(shown(&acl, "bob"), text, "{rules}");
    }
    let mut open = Acl::new(sample(), Settings { all_channels: true, log_length: 1 });
    set(&mut open, "bob (+ping)");
    assert_eq!(shown(&open, "bob"), "off sanitize-payload &* -@all (&* -@all +ping)");
}

#[test]
fn a_wrong_rule_changes_nothing_and_makes_no_user() {
    let mut acl = acl();
    set(&mut acl, "bob on >x");
    let before = shown(&acl, "bob");
    for (line, rule, fault) in [
        ("off foo >a", "foo", Fault::Syntax),
        ("off +foo", "+foo", Fault::Unknown),
        ("#123", "#123", Fault::Hash),
        ("!123", "!123", Fault::Hash),
        ("<nope", "<nope", Fault::NoSuchPassword),
        ("off (on)", "(on)", Fault::Syntax),
        ("(>pass)", "(>pass)", Fault::Syntax),
        ("(reset)", "(reset)", Fault::Syntax),
        ("((+ping))", "((+ping))", Fault::Syntax),
        ("(+ping +foo )", "(+ping +foo )", Fault::Unknown),
        ("( ~a) )", "~", Fault::Syntax),
        (")", ")", Fault::Syntax),
        ("+ping)", "+ping)", Fault::Unknown),
    ] {
        match acl.set(b"bob", &words(line)) {
            Err(Refused::Rule(given, why)) if rule != "~" => {
                assert_eq!((String::from_utf8(given).unwrap().as_str(), why), (rule, fault));
            }
            Err(Refused::Rule(_, why)) => assert_eq!(why, fault),
            other => panic!("{line}: {other:?}"),
        }
        assert!(acl.set(b"carol", &words(line)).is_err());
        assert_eq!(shown(&acl, "bob"), before);
        assert!(acl.user(b"carol").is_none());
    }
    assert_eq!(acl.set(b"bob", &words("off (+ping")), Err(Refused::Open(b"(+ping".to_vec())));
    assert_eq!(acl.set(b"a b", &[]), Err(Refused::Name));
    assert_eq!(acl.set(b"a\0", &[]), Err(Refused::Name));
    assert_eq!(acl.set(b"", &[]), Err(Refused::Name));
}

#[test]
fn words_within_parentheses_may_be_quoted_and_are_where_they_must_be() {
    for (rule, text) in [
        (r#"(+ping "~a")"#, "(~a resetchannels -@all +ping)"),
        (r#"("+ping" '~a"b')"#, r#"("~a\"b" resetchannels -@all +ping)"#),
        ("(~a) +ping)", r#"("~a)" resetchannels -@all +ping)"#),
        (r"(~a\b &'c)' +ping)", r#"("~a\\b" resetchannels "&c)" -@all +ping)"#),
    ] {
        let mut one = acl();
        assert_eq!(one.set(b"bob", &[rule.as_bytes()]), Ok(()), "{rule}");
        let written = shown(&one, "bob");
        assert!(written.ends_with(text), "{rule}: {written}");
        let mut other = acl();
        set(&mut other, &format!("bob {written}"));
        assert_eq!(shown(&other, "bob"), written);
    }
    let mut acl = acl();
    for rule in [r#"(+ping "~a)"#, r#"(+ping "~a"b)"#, r#"(+ping "~a b")"#, r#"("" +ping)"#] {
        assert_eq!(acl.set(b"bob", &[rule.as_bytes()]), Err(Refused::Rule(rule.into(), Fault::Syntax)), "{rule}");
    }
}

#[test]
fn a_user_has_so_many_rules_and_no_more() {
    let mut acl = acl();
    let (most, half) = (limits::USER_RULES, limits::USER_RULES / 2);
    let channels: Vec<Vec<u8>> = (0..=most).map(|n| format!("&{n}").into_bytes()).collect();
    let slices: Vec<&[u8]> = channels.iter().map(Vec::as_slice).collect();
    let full = |rule: &[u8]| Err(Refused::Rule(rule.to_vec(), Fault::TooMany));
    assert_eq!(acl.set(b"bob", &slices), full(&channels[most]));
    assert!(acl.user(b"bob").is_none());
    assert_eq!(acl.set(b"bob", &slices[..half]), Ok(()));
    // The root counts as well.
    assert_eq!(acl.set(b"bob", &slices[half..most]), full(&channels[most - 1]));
    assert_eq!(acl.set(b"bob", &slices[half..most - 1]), Ok(()));
    assert_eq!(acl.set(b"bob", &[b"&0"]), Ok(()), "it has that one");
    for rule in [b"&x".as_slice(), b"~x", b"+ping", b">x", b"()", b"(+ping)"] {
        assert_eq!(acl.set(b"bob", &[rule]), full(rule));
    }
    // In one word, and long ones.
    let packed = format!("({})", "~a ".repeat(most));
    assert_eq!(acl.set(b"carol", &[packed.as_bytes()]), full(packed.as_bytes()));
    let long = [b"~".as_slice(), &vec![b'x'; limits::SETTING]].concat();
    assert_eq!(acl.set(b"carol", &[&long]), full(&long));
    let line = [b"user carol ".as_slice(), &channels.join(&b' ')].concat();
    assert!(acl.load(&line, "f").is_err_and(|wrong| wrong.starts_with("f:1: A user may have 10000 rules of ")));
}

#[test]
fn a_password_is_as_long_as_a_stranger_may_say() {
    let mut acl = acl();
    let rule = |length| [b">".as_slice(), &vec![b'x'; length]].concat();
    let (longest, longer) = (rule(limits::UNAUTHENTICATED_BULK), rule(limits::UNAUTHENTICATED_BULK + 1));
    assert_eq!(acl.set(b"bob", &[b"on", &longest]), Ok(()));
    assert!(acl.authenticate(b"bob", &longest[1..]));
    assert_eq!(acl.set(b"bob", &[&longer]), Err(Refused::Rule(longer, Fault::LongPassword)));
}

#[test]
fn only_who_is_on_and_knows_a_password_comes_in() {
    let mut acl = acl();
    set(&mut acl, "bob on >one >two");
    assert!(acl.authenticate(b"bob", b"one") && acl.authenticate(b"bob", b"two"));
    assert!(!acl.authenticate(b"bob", b"") && !acl.authenticate(b"bob", b"three"));
    set(&mut acl, "bob <one");
    assert!(!acl.authenticate(b"bob", b"one"));
    set(&mut acl, "bob off");
    assert!(!acl.authenticate(b"bob", b"two"));
    set(&mut acl, "bob on nopass");
    assert!(acl.authenticate(b"bob", b"whatever"));
    set(&mut acl, "bob resetpass");
    assert!(!acl.authenticate(b"bob", b"") && !acl.authenticate(b"bob", b"two"));
    assert!(acl.delete(b"bob") && !acl.delete(b"bob"));
    assert!(!acl.authenticate(b"bob", b"two"));
}

#[test]
fn what_one_selector_allows_is_allowed_and_a_channel_is_the_nearer_obstacle() {
    let mut acl = acl();
    set(&mut acl, "bob on nopass +subscribe (+info &x) (+publish &y)");
    set(&mut acl, "two on nopass +@all (+subscribe &a) (+subscribe &b)");
    let check = |user: &str, line: &str| {
        let words = words(line);
        let channels = if line.contains("sub") || line.contains("pub") { &words[1..] } else { &[] };
        let command = std::str::from_utf8(words[0]).unwrap();
        let patterns = command == "psubscribe";
        acl.check(user.as_bytes(), &Asked { command, first: words.get(1).copied(), channels, patterns })
    };
    assert_eq!(check("bob", "info"), Ok(()));
    assert_eq!(check("bob", "ping"), Err(Denied::Command));
    assert_eq!(check("bob", "publish y"), Ok(()));
    assert_eq!(check("bob", "publish x"), Err(Denied::Channel(0)));
    assert_eq!(check("bob", "subscribe y"), Err(Denied::Channel(0)));
    assert_eq!(check("bob", "psubscribe y"), Err(Denied::Command));
    assert_eq!(check("two", "subscribe a b"), Err(Denied::Channel(0)));
    assert_eq!(check("two", "subscribe b"), Ok(()));
    assert_eq!(check("nobody", "ping"), Err(Denied::Command));
    assert_eq!(check("default", "subscribe anything"), Ok(()));
    let listen =
        |user: &str, channels: &str, patterns: &str| acl.may_listen(user.as_bytes(), words(channels), words(patterns));
    assert!(listen("bob", "x y", "x") && !listen("bob", "x z", "") && !listen("bob", "", "x*"));
    assert!(listen("default", "x", "*") && !listen("nobody", "", ""));
}

#[test]
fn a_file_replaces_all_users_or_none() {
    let mut acl = acl();
    set(&mut acl, "old on");
    acl.load(b"user bob on >x +ping\n\n   user carol on  nopass (+ping ~a)  \r\n", "users.acl").unwrap();
    assert!(acl.user(b"old").is_none());
    assert_eq!(shown(&acl, "carol"), "on nopass sanitize-payload resetchannels -@all (~a resetchannels -@all +ping)");
    assert!(acl.default_user().is_open());
    let text = acl.file_text();
    let mut other = Acl::new(sample(), Settings::default());
    other.load(&text, "").unwrap();
    assert_eq!(other.file_text(), text);
    acl.load(b"user default on >z +@all", "users.acl").unwrap();
    let hash = Hash::of(b"z");
    assert_eq!(shown(&acl, "default"), format!("on sanitize-payload #{hash} resetchannels +@all"));

    const END: &str = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
    for (text, wrong) in [
        ("foo bar\n", "f:1 should start with user keyword followed by the username. "),
        ("USER bob on\n", "f:1 should start with user keyword followed by the username. "),
        ("# no comments\n", "f:1 should start with user keyword followed by the username. "),
        ("user\n", "f:1 should start with user keyword followed by the username. "),
        ("user bob\nuser bob off\n", "WARNING: Duplicate user 'bob' found on line 2. "),
        ("user bob on (+ping\n", "f:1: Unmatched parenthesis in selector definition. "),
        (
            "user bob on +foo -bar ~*  ~x\nuser\n",
            "f:1: Error in applying operation '+foo': Unknown command or category name in ACL. f:1: Error in \
             applying operation '-bar': Unknown command or category name in ACL. f:1: Adding a pattern after the * \
             pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start \
             with an empty list of patterns. f:2 should start with user keyword followed by the username. ",
        ),
    ] {
        assert_eq!(acl.load(text.as_bytes(), "f").unwrap_err(), format!("{wrong}{END}"));
        assert_eq!(acl.users().len(), 1);
    }
}

#[test]
fn what_changed_while_running_is_known_and_nothing_else() {
    let mut acl = acl();
    acl.declare(b"bob", &words("on >x +ping")).unwrap();
    acl.declare(b"carol", &words("on")).unwrap();
    assert!(acl.changes().is_empty());
    assert!(acl.declare(b"dave", &words("+foo")).is_err() && acl.user(b"dave").is_none());
    set(&mut acl, "bob on +ping >x");
    assert!(acl.changes().is_empty(), "nothing changed by saying the same");
    set(&mut acl, "eve on");
    acl.delete(b"carol");
    acl.delete(b"nobody");
    let changes = acl.changes();
    assert_eq!(changes.len(), 2);
    assert_eq!(changes.get(&b"carol"[..]), Some(&None));
    assert_eq!(changes.get(&b"eve"[..]).unwrap().as_deref(), Some(&b"on sanitize-payload resetchannels -@all"[..]));
    // A declaration forgets what was.
    acl.declare(b"bob", &words("off")).unwrap();
    assert_eq!(shown(&acl, "bob"), "off sanitize-payload resetchannels -@all");
}
