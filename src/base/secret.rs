//! What an error may show of words among which passwords can be: those belong into files, and neither on a terminal nor into
//! a journal.

use super::Alike;
use std::borrow::Cow;

/// In the place of a password.
pub const HIDDEN: &str = "(a password)";
/// In the place of a word that is no rule at all: it may be a password whose `>` was forgotten.
const DOUBTFUL: &str = "(a password?)";
/// The rules of users that are one word and hold nothing.
const PLAIN: [&str; 14] = [
    "on",
    "off",
    "nopass",
    "resetpass",
    "sanitize-payload",
    "skip-sanitize-payload",
    "clearselectors",
    "reset",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
];

/// A rule of a user, or a part of one that was cut at blanks.
#[must_use]
pub fn shown_rule(rule: &[u8]) -> Cow<'_, str> {
    match rule.first() {
        Some(b'>' | b'<' | b'#' | b'!') => HIDDEN.into(),
        Some(b'(') => {
            let parts: Vec<_> = rule[1..].split(|&byte| byte == b' ').map(shown_rule).collect();
            format!("({}", parts.join(" ")).into()
        }
        Some(b'+' | b'-' | b'~' | b'%' | b'&' | b')') | None => String::from_utf8_lossy(rule),
        _ if PLAIN.iter().any(|plain| rule.alike(plain.as_bytes())) => String::from_utf8_lossy(rule),
        _ => DOUBTFUL.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_shown_and_what_may_be_a_password_is_not() {
        for rule in ["", "on", "NOPASS", "+@all", "-sentinel|set", "~a*", "%R~a", "&*", "(+ping ~a)", "(", "~a)"] {
            assert_eq!(shown_rule(rule.as_bytes()), rule);
        }
        for (rule, shown) in [
            (">secret", HIDDEN),
            ("<secret", HIDDEN),
            ("#5e884898", HIDDEN),
            ("!5e884898", HIDDEN),
            ("secret", DOUBTFUL),
            ("\">sec", DOUBTFUL),
            ("onsecret", DOUBTFUL),
            ("(+ping >secret)", "(+ping (a password)"),
            ("(secret", "((a password?)"),
        ] {
            assert_eq!(shown_rule(rule.as_bytes()), shown, "{rule}");
        }
    }
}
