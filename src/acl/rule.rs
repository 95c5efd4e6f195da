//! Why a rule is no rule, and how rules that were cut at blanks are put together again.

use crate::base::limits;
use std::fmt;

/// Why a rule cannot be applied, in the reference's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Unknown,
    Syntax,
    Hash,
    NoSuchPassword,
    KeysAfterAll,
    ChannelsAfterAll,
    FirstArgOfSub,
    TooMany,
    /// Whoever has not logged in may not send a longer word, so nobody could.
    LongPassword,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Fault::TooMany {
            return write!(f, "A user may have {} rules of {} bytes", limits::USER_RULES, limits::SETTING);
        }
        if *self == Fault::LongPassword {
            return write!(f, "A password must not be longer than {} bytes", limits::UNAUTHENTICATED_BULK);
        }
        f.write_str(match self {
            Fault::Unknown => "Unknown command or category name in ACL",
            Fault::Syntax => "Syntax error",
            Fault::Hash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            Fault::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            Fault::KeysAfterAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Fault::ChannelsAfterAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            Fault::FirstArgOfSub => "Allowing first-arg of a subcommand is not supported",
            Fault::TooMany | Fault::LongPassword => unreachable!("worded above"),
        })
    }
}

/// Why a user was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Blanks or zero bytes in the name, or no name.
    Name,
    /// The parenthesis that begins with these words is not closed.
    Open(Vec<u8>),
    /// This rule, put together where it was cut.
    Rule(Vec<u8>, Fault),
}

/// As C's isspace has it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Puts selectors that were cut at blanks, `(+ping ~a)`, together again: from a word that begins with `(` to the next
/// that ends with `)`.
pub(super) fn join(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, Refused> {
    let mut rules: Vec<Vec<u8>> = Vec::with_capacity(words.len());
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for &word in words {
        let mut rule = match open.take() {
            None if word.first() != Some(&b'(') => {
                rules.push(word.to_vec());
                continue;
            }
            None => (word, Vec::new()),
            Some((start, mut rule)) => {
                rule.push(b' ');
                (start, rule)
            }
        };
        rule.1.extend_from_slice(word);
        if word.last() == Some(&b')') {
            rules.push(rule.1);
        } else {
            open = Some(rule);
        }
    }
    match open {
        Some((start, _)) => Err(Refused::Open(start.to_vec())),
        None => Ok(rules),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        match join(&words) {
            Ok(rules) => Ok(rules.into_iter().map(|rule| String::from_utf8(rule).unwrap()).collect()),
            Err(Refused::Open(start)) => Err(String::from_utf8(start).unwrap()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn selectors_are_put_together_and_must_be_closed() {
        assert_eq!(joined(&["on", "(+ping", "~a", ")", "off"]).unwrap(), ["on", "(+ping ~a )", "off"]);
        assert_eq!(joined(&["(+ping)", "(", ")", ")"]).unwrap(), ["(+ping)", "( )", ")"]);
        assert_eq!(joined(&["(", "(a", "b)"]).unwrap(), ["( (a b)"]);
        assert_eq!(joined(&["(+ping)", "on", "(+info", "x"]).unwrap_err(), "(+info");
        assert_eq!(joined(&["("]).unwrap_err(), "(");
        assert_eq!(joined(&[]).unwrap(), Vec::<String>::new());
    }
}
