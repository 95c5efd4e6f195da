//! A user: whether it may come in, with which passwords, and what it may do then.

use super::catalog::Catalog;
use super::ordered::Ordered;
use super::password::Hash;
use super::rule::{Fault, Refused, is_space, join};
use super::selector::{Asked, Denied, Selector};
use crate::base::{Alike, limits, quote};

/// The user that everybody is who has not said otherwise.
pub const DEFAULT: &[u8] = b"default";

/// One user and its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    on: bool,
    /// Any password will do.
    nopass: bool,
    /// Has no meaning without data; kept because files and tools write it.
    sanitize: bool,
    passwords: Ordered<Hash>,
    root: Selector,
    /// Those in parentheses.
    selectors: Vec<Selector>,
    /// Whether the operator wants all channels for new users and selectors.
    all_channels: bool,
}

impl User {
    /// One that may do nothing, not even come in.
    pub(super) fn new(all_channels: bool) -> User {
        User {
            on: false,
            nopass: false,
            sanitize: true,
            passwords: Ordered::default(),
            root: Selector::new(all_channels),
            selectors: Vec::new(),
            all_channels,
        }
    }

    /// One that needs no password and may do everything.
    pub(super) fn open(all_channels: bool) -> User {
        User { on: true, nopass: true, root: Selector::open(), ..User::new(all_channels) }
    }

    /// Applies rules in order, or none of them.
    pub(super) fn apply(&mut self, words: &[&[u8]], catalog: &Catalog) -> Result<(), Refused> {
        let mut changed = self.clone();
        let mut given = 0;
        for rule in join(words)? {
            given += weight(&rule);
            if given > limits::USER_RULES {
                return Err(Refused::Rule(rule, Fault::TooMany));
            }
            changed.rule(&rule, catalog).map_err(|fault| Refused::Rule(rule, fault))?;
        }
        changed.check_size().map_err(|fault| Refused::Rule(words.last().unwrap_or(&&b""[..]).to_vec(), fault))?;
        *self = changed;
        Ok(())
    }

    /// What one user may cost: every command that it runs may be compared with all of its rules.
    pub(super) fn check_size(&self) -> Result<(), Fault> {
        let rules = self.passwords.len() + self.all().map(|selector| 1 + selector.len()).sum::<usize>();
        let fits = rules <= limits::USER_RULES && self.text().len() <= limits::SETTING;
        if fits { Ok(()) } else { Err(Fault::TooMany) }
    }

    pub(super) fn rule(&mut self, rule: &[u8], catalog: &Catalog) -> Result<(), Fault> {
        let is = |word: &str| rule.alike(word.as_bytes());
        match rule.first() {
            None => {}
            _ if is("on") => self.on = true,
            _ if is("off") => self.on = false,
            _ if is("nopass") => {
                self.nopass = true;
                self.passwords.clear();
            }
            _ if is("resetpass") => {
                self.nopass = false;
                self.passwords.clear();
            }
            _ if is("sanitize-payload") => self.sanitize = true,
            _ if is("skip-sanitize-payload") => self.sanitize = false,
            _ if is("clearselectors") => self.selectors.clear(),
            _ if is("reset") => *self = User::new(self.all_channels),
            Some(b'>') if rule.len() - 1 > limits::UNAUTHENTICATED_BULK => return Err(Fault::LongPassword),
            Some(b'>') => self.add(Hash::of(&rule[1..])),
            Some(b'#') => self.add(Hash::parse(&rule[1..]).ok_or(Fault::Hash)?),
            Some(b'<') => self.remove(Hash::of(&rule[1..]))?,
            Some(b'!') => self.remove(Hash::parse(&rule[1..]).ok_or(Fault::Hash)?)?,
            Some(b'(') if rule.ends_with(b")") && rule.len() > 1 => {
                let mut selector = Selector::new(self.all_channels);
                // Within the parentheses words may be quoted. (Where a quote is not closed, redis takes the whole of it for
                // nothing, and says OK.)
                for word in quote::split_args(&rule[1..rule.len() - 1]).ok_or(Fault::Syntax)? {
                    selector.apply(&word, catalog)?;
                }
                self.selectors.push(selector);
            }
            _ => self.root.apply(rule, catalog)?,
        }
        Ok(())
    }

    fn add(&mut self, password: Hash) {
        self.nopass = false;
        if !self.passwords.contains(&password) {
            self.passwords.push(password, ());
        }
    }

    fn remove(&mut self, password: Hash) -> Result<(), Fault> {
        if self.passwords.remove(&password) { Ok(()) } else { Err(Fault::NoSuchPassword) }
    }

    /// Whether it comes in with that password. Takes the same time whichever of its passwords is the right one.
    pub(super) fn admits(&self, password: &[u8]) -> bool {
        let given = Hash::of(password);
        let known = self.passwords.keys().fold(false, |known, password| known | password.matches(&given));
        self.on && (self.nopass || known)
    }

    /// True when it is nobody's secret how to come in as this user.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.on && self.nopass
    }

    #[must_use]
    pub fn needs_no_password(&self) -> bool {
        self.nopass
    }

    pub(super) fn check(&self, asked: &Asked<'_>, catalog: &Catalog) -> Result<(), Denied> {
        if self.root.is_open() {
            return Ok(());
        }
        let mut nearest = Denied::Command;
        for selector in self.all() {
            match selector.check(asked, catalog) {
                Ok(()) => return Ok(()),
                // Closest to being allowed is the one that only minds a channel.
                Err(denied) if nearest == Denied::Command => nearest = denied,
                Err(_) => {}
            }
        }
        Err(nearest)
    }

    /// Whether it may stay subscribed to a channel, or to a pattern of channels.
    pub(super) fn reaches(&self, channel: &[u8], pattern: bool) -> bool {
        self.all().any(|selector| selector.reaches(channel, pattern))
    }

    fn all(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// `on`, `nopass`, `sanitize-payload`: as `ACL GETUSER` lists them.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let words = [
            Some(if self.on { "on" } else { "off" }),
            self.nopass.then_some("nopass"),
            Some(if self.sanitize { "sanitize-payload" } else { "skip-sanitize-payload" }),
        ];
        words.into_iter().flatten()
    }

    /// In the order in which they were given.
    #[must_use]
    pub fn passwords(&self) -> Vec<Hash> {
        self.passwords.in_order().into_iter().map(|(password, ())| *password).collect()
    }

    /// The permissions outside of parentheses.
    #[must_use]
    pub fn root(&self) -> &Selector {
        &self.root
    }

    #[must_use]
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// All of it as rules that make the same user out of a new one.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for flag in self.flags() {
            text.extend_from_slice(flag.as_bytes());
            text.push(b' ');
        }
        for password in self.passwords() {
            text.extend_from_slice(format!("#{password} ").as_bytes());
        }
        text.extend_from_slice(&self.root.text());
        for selector in &self.selectors {
            text.extend_from_slice(b" (");
            for (at, word) in selector.text().split(|&byte| byte == b' ').enumerate() {
                if at > 0 {
                    text.push(b' ');
                }
                text.extend_from_slice(within_parentheses(word).as_bytes());
            }
            text.push(b')');
        }
        text
    }
}

/// A word of a selector so that it is read back unchanged. A parenthesis at its end would be taken for the selector's.
fn within_parentheses(word: &[u8]) -> String {
    if word.ends_with(b")") { quote::quoted(word) } else { quote::if_needed(word) }
}

/// How many rules a rule is: one in parentheses holds others.
fn weight(rule: &[u8]) -> usize {
    if rule.first() == Some(&b'(') { 1 + rule.split(|&byte| is_space(byte)).count() } else { 1 }
}
