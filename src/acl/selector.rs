//! One set of permissions: which commands may be run, which channels may be listened to and published on. A user has
//! one of its own, the root, and any number of further ones in parentheses; what one of them allows is allowed.
//!
//! Patterns of keys are kept because files and tools write them, but nothing here has keys: they decide nothing.

use super::catalog::{Catalog, Set};
use super::ordered::Ordered;
use super::rule::{Fault, is_space};
use crate::base::{Alike, Sorted, SortedSet, glob};

/// What a pattern of keys is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    read: bool,
    write: bool,
}

/// A set of permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// `+@all` or `-@all`, which the rules come after.
    everything: bool,
    /// The rules as they are shown: whether they allow, and `ping`, `client|kill`, `@admin`. Of each at most one.
    rules: Ordered<String, bool>,
    /// What comes out of the rules.
    allowed: Set,
    /// Commands allowed only with one of these first arguments (in lower case).
    first_args: Sorted<usize, SortedSet<String>>,
    all_keys: bool,
    keys: Ordered<Vec<u8>, Access>,
    all_channels: bool,
    channels: Ordered<Vec<u8>>,
}

/// A request as far as permissions care.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its full name: `ping`, `client|kill`.
    pub command: &'a str,
    /// The word behind the name.
    pub first: Option<&'a [u8]>,
    /// Channels it listens to or publishes on; patterns when [`Asked::patterns`].
    pub channels: &'a [&'a [u8]],
    pub patterns: bool,
}

/// What stands in the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    Command,
    /// The channel of that place in [`Asked::channels`].
    Channel(usize),
}

impl Selector {
    /// Nothing is allowed, except all channels where the operator wants that for new users.
    pub(super) fn new(all_channels: bool) -> Selector {
        Selector {
            everything: false,
            rules: Ordered::default(),
            allowed: Set::NONE,
            first_args: Sorted::new(),
            all_keys: false,
            keys: Ordered::default(),
            all_channels,
            channels: Ordered::default(),
        }
    }

    /// Everything is allowed.
    pub(super) fn open() -> Selector {
        Selector { everything: true, allowed: Set::ALL, all_keys: true, ..Selector::new(true) }
    }

    /// True for one that allows whatever is asked.
    pub(super) fn is_open(&self) -> bool {
        self.everything && self.rules.is_empty() && self.all_channels
    }

    /// Applies one rule.
    pub(super) fn apply(&mut self, rule: &[u8], catalog: &Catalog) -> Result<(), Fault> {
        let is = |word: &str| rule.alike(word.as_bytes());
        match rule.first() {
            _ if is("allkeys") || rule == b"~*" => {
                self.all_keys = true;
                self.keys.clear();
            }
            _ if is("resetkeys") => {
                self.all_keys = false;
                self.keys.clear();
            }
            _ if is("allchannels") || rule == b"&*" => {
                self.all_channels = true;
                self.channels.clear();
            }
            _ if is("resetchannels") => {
                self.all_channels = false;
                self.channels.clear();
            }
            _ if is("allcommands") || is("+@all") => self.all_commands(true),
            _ if is("nocommands") || is("-@all") => self.all_commands(false),
            Some(b'~') => self.key(Access { read: true, write: true }, &rule[1..])?,
            Some(b'%') => {
                let (access, pattern) = access(&rule[1..]).ok_or(Fault::Syntax)?;
                self.key(access, pattern)?;
            }
            Some(b'&') => self.channel(&rule[1..])?,
            Some(sign @ (b'+' | b'-')) => self.commands(*sign == b'+', &rule[1..], catalog)?,
            _ => return Err(Fault::Syntax),
        }
        Ok(())
    }

    fn all_commands(&mut self, allow: bool) {
        self.everything = allow;
        self.allowed = if allow { Set::ALL } else { Set::NONE };
        self.rules.clear();
        self.first_args.clear();
    }

    fn key(&mut self, access: Access, pattern: &[u8]) -> Result<(), Fault> {
        if self.all_keys {
            return Err(Fault::KeysAfterAll);
        }
        check_pattern(pattern)?;
        let mut both = access;
        if let Some(known) = self.keys.get_mut(pattern) {
            known.read |= access.read;
            known.write |= access.write;
            both = *known;
        } else {
            self.keys.push(pattern.to_vec(), access);
        }
        // Where this is said in pieces the reference goes on to take patterns, and then writes a line that it refuses.
        if both.read && both.write && pattern == b"*" {
            self.all_keys = true;
            self.keys.clear();
        }
        Ok(())
    }

    fn channel(&mut self, pattern: &[u8]) -> Result<(), Fault> {
        if self.all_channels {
            return Err(Fault::ChannelsAfterAll);
        }
        check_pattern(pattern)?;
        if !self.channels.contains(pattern) {
            self.channels.push(pattern.to_vec(), ());
        }
        Ok(())
    }

    /// `+name`, `-name`, `+container|sub`, `+name|first-argument`, `+@category`; `name` is what follows the sign.
    fn commands(&mut self, allow: bool, name: &[u8], catalog: &Catalog) -> Result<(), Fault> {
        let name = String::from_utf8(name.to_ascii_lowercase()).map_err(|_| Fault::Unknown)?;
        if let Some(category) = name.strip_prefix('@') {
            for id in catalog.members(category.as_bytes()).ok_or(Fault::Unknown)? {
                self.set(id, allow);
            }
            self.note(allow, name);
            return Ok(());
        }
        if let Some(id) = catalog.find(name.as_bytes()) {
            catalog.family(id).for_each(|id| self.set(id, allow));
            self.note(allow, name);
            return Ok(());
        }
        // What is left has a first argument, and that can only be allowed.
        let (command, argument) = name.rsplit_once('|').ok_or(Fault::Unknown)?;
        let id = catalog.find(command.as_bytes());
        let id = id.filter(|_| allow || argument.is_empty()).ok_or(Fault::Unknown)?;
        if argument.is_empty() {
            return Err(Fault::Syntax);
        }
        if command.contains('|') {
            return Err(Fault::FirstArgOfSub);
        }
        if catalog.is_container(id) {
            return Err(Fault::Unknown);
        }
        if argument.bytes().any(|byte| is_space(byte) || byte == 0) {
            // The rule could be shown, but not be read again.
            return Err(Fault::Syntax);
        }
        self.first_args.or_default(id).insert(argument.to_owned());
        self.note(true, name);
        Ok(())
    }

    fn set(&mut self, id: usize, allow: bool) {
        self.allowed.put(id, allow);
        self.first_args.remove(&id);
    }

    /// Adds a rule to those that are shown. It takes the place of earlier ones about the same, for which it leaves
    /// nothing to say.
    fn note(&mut self, allow: bool, name: String) {
        self.rules.remove_beginning(&format!("{name}|"));
        self.rules.push(name, allow);
    }

    /// How many rules it takes to say what it is.
    pub(super) fn len(&self) -> usize {
        self.rules.len() + self.keys.len() + self.channels.len()
    }

    /// Why it does not allow what is asked, if it does not.
    pub(super) fn check(&self, asked: &Asked<'_>, catalog: &Catalog) -> Result<(), Denied> {
        let id = catalog.find(asked.command.as_bytes()).ok_or(Denied::Command)?;
        if !self.allowed.has(id) {
            let listed = |known: &SortedSet<String>| {
                let word = asked.first.and_then(|word| str::from_utf8(word).ok());
                word.is_some_and(|word| known.contains(&word.to_ascii_lowercase()))
            };
            if !self.first_args.get(&id).is_some_and(listed) {
                return Err(Denied::Command);
            }
        }
        match asked.channels.iter().position(|channel| !self.reaches(channel, asked.patterns)) {
            Some(place) => Err(Denied::Channel(place)),
            None => Ok(()),
        }
    }

    /// Whether a channel, or a pattern of channels, may be used. A pattern must be one of ours word for word:
    /// whether one pattern lies within another is not asked.
    pub(super) fn reaches(&self, channel: &[u8], pattern: bool) -> bool {
        let within = || {
            if pattern {
                self.channels.contains(channel)
            } else {
                self.channels.keys().any(|known| glob::matches(known, channel, false))
            }
        };
        self.all_channels || within()
    }

    /// `-@all +ping`
    #[must_use]
    pub fn commands_text(&self) -> String {
        let mut text = String::from(if self.everything { "+@all" } else { "-@all" });
        for (name, allow) in self.rules.in_order() {
            text.push_str(if *allow { " +" } else { " -" });
            text.push_str(name);
        }
        text
    }

    /// `~a %R~b`
    #[must_use]
    pub fn keys_text(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let mut text = Vec::new();
        for (pattern, access) in self.keys.in_order() {
            let head: &[u8] = match (access.read, access.write) {
                (true, false) => b"%R~",
                (false, true) => b"%W~",
                _ => b"~",
            };
            if !text.is_empty() {
                text.push(b' ');
            }
            text.extend_from_slice(head);
            text.extend_from_slice(pattern);
        }
        text
    }

    /// `&a &b`
    #[must_use]
    pub fn channels_text(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let mut text = Vec::new();
        for (pattern, ()) in self.channels.in_order() {
            if !text.is_empty() {
                text.push(b' ');
            }
            text.push(b'&');
            text.extend_from_slice(pattern);
        }
        text
    }

    /// All of it as rules: `~a resetchannels &b -@all +ping`.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = self.keys_text();
        if !text.is_empty() {
            text.push(b' ');
        }
        if !self.all_channels {
            text.extend_from_slice(b"resetchannels ");
        }
        let channels = self.channels_text();
        if !channels.is_empty() {
            text.extend_from_slice(&channels);
            text.push(b' ');
        }
        text.extend_from_slice(self.commands_text().as_bytes());
        text
    }
}

/// Splits `RW~pattern`; without `~` the pattern is empty.
fn access(text: &[u8]) -> Option<(Access, &[u8])> {
    let mut access = Access { read: false, write: false };
    let end = text.iter().position(|&byte| byte == b'~').unwrap_or(text.len());
    for letter in &text[..end] {
        match letter.to_ascii_uppercase() {
            b'R' if !access.read => access.read = true,
            b'W' if !access.write => access.write = true,
            _ => return None,
        }
    }
    (access.read || access.write).then(|| (access, text.get(end + 1..).unwrap_or_default()))
}

fn check_pattern(pattern: &[u8]) -> Result<(), Fault> {
    if pattern.iter().any(|&byte| is_space(byte) || byte == 0) { Err(Fault::Syntax) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::sample;
    use super::*;

    fn with(rules: &str) -> Selector {
        let mut selector = Selector::new(false);
        let catalog = sample();
        rules.split(' ').filter(|rule| !rule.is_empty()).for_each(|rule| {
            selector.apply(rule.as_bytes(), &catalog).unwrap_or_else(|fault| panic!("{rule}: {fault}"));
        });
        selector
    }

    fn fault(rules: &str, rule: &[u8]) -> Fault {
        with(rules).apply(rule, &sample()).unwrap_err()
    }

    #[test]
    fn rules_are_shown_as_they_were_given_but_each_thing_once() {
        for (rules, shown) in [
            ("", "-@all"),
            ("+ping +sentinel|masters -client|kill +client", "-@all +ping +sentinel|masters +client"),
            ("+ping +ping +info -ping", "-@all +info -ping"),
            ("+@all -@dangerous +info -@dangerous", "+@all +info -@dangerous"),
            ("+@all +info +@dangerous +@all", "+@all"),
            ("-@all +@all -@all +ping", "-@all +ping"),
            ("AllCommands noCommands", "-@all"),
            ("+@all -@Slow +@Connection", "+@all -@slow +@connection"),
            ("+SENTINEL|Masters +CLIENT", "-@all +sentinel|masters +client"),
            ("-client +client|kill -client|kill", "-@all -client -client|kill"),
            ("+ping|a +ping|b +ping|A", "-@all +ping|b +ping|a"),
            ("+ping|a -ping", "-@all -ping"),
            ("+ping +ping|zz", "-@all +ping +ping|zz"),
            ("+ping -@connection +ping", "-@all -@connection +ping"),
        ] {
            assert_eq!(with(rules).commands_text(), shown, "{rules}");
        }
    }

    #[test]
    fn the_rules_allow_what_the_reference_allows() {
        let asks = |rules: &str, line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let first = words.get(1).map(|word| word.as_bytes());
            let asked = Asked { command: words[0], first, channels: &[], patterns: false };
            with(rules).check(&asked, &sample()).is_ok()
        };
        for (rules, line, allowed) in [
            ("+ping|a +ping|b", "ping a", true),
            ("+ping|a +ping|b", "ping A", true),
            ("+ping|a +ping|b", "ping c", false),
            ("+ping|a +ping|b", "ping", false),
            ("+ping|a -ping", "ping a", false),
            ("+ping|a -@connection", "ping a", false),
            ("+ping|a +@dangerous", "ping a", true),
            ("+ping|a +@connection -@connection", "ping a", false),
            ("+ping|a +@all -@all", "ping a", false),
            ("+@all -ping +ping|a", "ping a", true),
            ("+@all -ping +ping|a", "ping b", false),
            ("+@admin", "sentinel|help", true),
            ("+@all -@admin", "sentinel|help", false),
            ("+@all -@admin", "client|id", true),
            ("+@slow", "client|id", true),
            ("+@all -@slow", "client|id", false),
            ("+@all -sentinel +sentinel|masters", "sentinel|masters", true),
            ("+@all -sentinel +sentinel|masters", "sentinel|help", false),
            ("+client|id -@slow", "client|id", false),
            ("+@all", "unheard-of", false),
        ] {
            assert_eq!(asks(rules, line), allowed, "{rules}: {line}");
        }
    }

    #[test]
    fn what_is_no_rule_is_refused_with_the_reason_of_the_reference() {
        for (rule, expected) in [
            ("+get", Fault::Unknown),
            ("+sentinel|nope", Fault::Unknown),
            ("+|x", Fault::Unknown),
            ("+", Fault::Unknown),
            ("-", Fault::Unknown),
            ("+@", Fault::Unknown),
            ("+@foo", Fault::Unknown),
            ("+foo|", Fault::Unknown),
            ("+ping|", Fault::Syntax),
            ("+client|", Fault::Syntax),
            ("-ping|x", Fault::Unknown),
            ("+ping|a|b", Fault::Unknown),
            ("+sentinel|masters|x", Fault::FirstArgOfSub),
            ("-sentinel|masters|x", Fault::Unknown),
            ("+sentinel|nope|x", Fault::Unknown),
            ("foo", Fault::Syntax),
            ("%", Fault::Syntax),
            ("%~foo", Fault::Syntax),
            ("%X~foo", Fault::Syntax),
            ("%RR~y", Fault::Syntax),
            ("~a b", Fault::Syntax),
            ("&a\nb", Fault::Syntax),
            ("~a\0", Fault::Syntax),
            ("+ping|a b", Fault::Syntax),
            ("on", Fault::Syntax),
            ("", Fault::Syntax),
            ("+p\u{fc}", Fault::Unknown),
        ] {
            assert_eq!(fault("", rule.as_bytes()), expected, "{rule}");
        }
        assert_eq!(fault("", b"+\xff"), Fault::Unknown);
        assert_eq!(fault("~*", b"~a"), Fault::KeysAfterAll);
        assert_eq!(fault("~*", b"%R~a"), Fault::KeysAfterAll);
        assert_eq!(fault("&*", b"&a"), Fault::ChannelsAfterAll);
    }

    #[test]
    fn patterns_of_keys_are_kept_with_what_they_are_for() {
        for (rules, shown) in [
            ("~a ~b %R~a", "~a ~b"),
            ("~a ~b ~a %W~b %R~c %W~c", "~a ~b ~c"),
            ("%R~*", "%R~*"),
            ("%R~* ~d %RW~*", "~*"),
            ("~a %R~b ~*", "~*"),
            ("%rw~x", "~x"),
            ("%R", "%R~"),
            ("%RW", "~"),
            ("%W~b", "%W~b"),
            ("~", "~"),
            ("allkeys resetkeys", ""),
        ] {
            assert_eq!(with(rules).keys_text(), shown.as_bytes(), "{rules}");
        }
    }

    #[test]
    fn channels_match_by_pattern_and_patterns_by_letter() {
        let selector = with("&n* &x");
        assert!(selector.reaches(b"nx", false) && selector.reaches(b"x", false));
        assert!(!selector.reaches(b"NX", false) && !selector.reaches(b"xx", false));
        assert!(selector.reaches(b"n*", true) && !selector.reaches(b"nx", true));
        assert!(with("&*").reaches(b"anything*", true));
        assert_eq!(with("&a &b").text(), b"resetchannels &a &b -@all");
        assert_eq!(with("~a &*").text(), b"~a &* -@all");
    }
}
