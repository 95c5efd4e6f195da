//! Who may do what: users, their passwords and rules, and the log of what was refused.
//!
//! Pure data. The command room tells the names of its commands ([`Catalog`]), asks [`Acl::authenticate`] and
//! [`Acl::check`], and words the refusals; the shell reads and writes files.
//!
//! ```text
//! user bob on #<sha256> ~* resetchannels &+switch-master -@all +subscribe (&* +ping)
//!      │   └── flags, passwords, then the root selector: keys, channels, commands    └── further selectors
//!      └── name
//! ```
//!
//! Rules mean and read as in redis 7.4. What we refuse on top, because it could be shown but not be read again: an
//! empty user name, a blank in a first argument, and patterns of keys after `%RW~*`. Words within parentheses are written
//! with quotes where they need them, which the reference reads and does not write.

mod catalog;
mod journal;
mod ordered;
mod password;
mod rule;
mod selector;
mod user;

use crate::base::{Shelf, Sorted, SortedSet, secret};
pub use catalog::Catalog;
pub use journal::{Entry, Log, Reason};
pub use password::Hash;
pub use rule::{Fault, Refused};
pub use selector::{Asked, Denied, Selector};
pub use user::{DEFAULT, User};

use rule::{is_space, join};
use std::fmt::Write as _;

/// What the operator chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `acl-pubsub-default allchannels`: new users and selectors reach all channels.
    pub all_channels: bool,
    /// `acllog-max-len`
    pub log_length: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { all_channels: false, log_length: 128 }
    }
}

type Users = Shelf<Vec<u8>, User>;

/// All users. There is always one called `default`.
#[derive(Debug)]
pub struct Acl {
    catalog: Catalog,
    settings: Settings,
    users: Users,
    pub log: Log,
    /// Users made, changed or deleted while running.
    touched: SortedSet<Vec<u8>>,
}

impl Acl {
    /// With the user `default` only, who needs no password and may do everything.
    #[must_use]
    pub fn new(catalog: Catalog, settings: Settings) -> Acl {
        let mut users = Users::new();
        users.insert(DEFAULT.to_vec(), User::open(settings.all_channels));
        let log = Log::new(settings.log_length);
        Acl { catalog, settings, users, log, touched: SortedSet::new() }
    }

    /// `requirepass`: the one password of `default`. Empty: none is needed.
    pub fn require_password(&mut self, password: &[u8]) {
        let rule = [b">", password].concat();
        let rules: [&[u8]; 2] =
            if password.is_empty() { [b"resetpass", b"nopass"] } else { [b"resetpass", rule.as_slice()] };
        let default = self.users.get_mut(DEFAULT).expect("there is always a default user");
        default.apply(&rules, &self.catalog).expect("rules about passwords are always understood");
    }

    /// As [`Acl::require_password`], at run time: what `default` is now has to be written down.
    pub fn change_password(&mut self, password: &[u8]) {
        self.require_password(password);
        self.touched.insert(DEFAULT.to_vec());
    }

    /// A user of the configuration: what was said about it before is forgotten.
    ///
    /// # Errors
    /// The first rule that is none; nothing is changed then.
    pub fn declare(&mut self, name: &[u8], rules: &[&[u8]]) -> Result<(), Refused> {
        let mut user = User::new(self.settings.all_channels);
        check_name(name)?;
        user.apply(rules, &self.catalog)?;
        self.users.insert(name.to_vec(), user);
        Ok(())
    }

    /// `ACL SETUSER`: makes the user if need be and applies the rules, all or none.
    ///
    /// # Errors
    /// The first rule that is none; nothing is changed then.
    pub fn set(&mut self, name: &[u8], rules: &[&[u8]]) -> Result<(), Refused> {
        check_name(name)?;
        let known = self.users.get(name);
        let mut user = known.cloned().unwrap_or_else(|| User::new(self.settings.all_channels));
        user.apply(rules, &self.catalog)?;
        if known != Some(&user) {
            self.users.insert(name.to_vec(), user);
            self.touched.insert(name.to_vec());
        }
        Ok(())
    }

    /// Whether there was one. `default` stays.
    pub fn delete(&mut self, name: &[u8]) -> bool {
        let was_there = name != DEFAULT && self.users.remove(name).is_some();
        if was_there {
            self.touched.insert(name.to_vec());
        }
        was_there
    }

    #[must_use]
    pub fn user(&self, name: &[u8]) -> Option<&User> {
        self.users.get(name)
    }

    /// All users by name.
    pub fn users(&self) -> impl ExactSizeIterator<Item = (&[u8], &User)> {
        self.users.iter().map(|(name, user)| (name.as_slice(), user))
    }

    /// The user that connections begin as.
    #[must_use]
    pub fn default_user(&self) -> &User {
        &self.users[DEFAULT]
    }

    /// Whether that user exists, is on, and has that password.
    #[must_use]
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> bool {
        self.users.get(name).is_some_and(|user| user.admits(password))
    }

    /// Whether the user may do what it asks for. One that does not exist may do nothing.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn check(&self, name: &[u8], asked: &Asked<'_>) -> Result<(), Denied> {
        self.users.get(name).ok_or(Denied::Command)?.check(asked, &self.catalog)
    }

    /// Whether the user may be subscribed to all of these channels and patterns.
    #[must_use]
    pub fn may_listen<'a>(
        &self,
        name: &[u8],
        channels: impl IntoIterator<Item = &'a [u8]>,
        patterns: impl IntoIterator<Item = &'a [u8]>,
    ) -> bool {
        self.users.get(name).is_some_and(|user| {
            channels.into_iter().all(|channel| user.reaches(channel, false))
                && patterns.into_iter().all(|pattern| user.reaches(pattern, true))
        })
    }

    /// `user <name> <rules>`, as `ACL LIST` and files have it.
    #[must_use]
    pub fn line(name: &[u8], user: &User) -> Vec<u8> {
        [b"user ", name, b" ", &user.text()].concat()
    }

    /// The text of an ACL file: one line for each user.
    #[must_use]
    pub fn file_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, user) in self.users() {
            text.extend_from_slice(&Acl::line(name, user));
            text.push(b'\n');
        }
        text
    }

    /// Takes all users from the text of an ACL file, whose name is for complaints. Who is not in it is gone;
    /// `default` is then as it is without any configuration.
    ///
    /// # Errors
    /// All that is wrong with the text, in one line as the reference words it; nothing is changed then.
    pub fn load(&mut self, text: &[u8], file: &str) -> Result<(), String> {
        let mut users = Users::new();
        let mut wrong = String::new();
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let number = number + 1;
            let words: Vec<&[u8]> = trim(line).split(|&byte| byte == b' ').filter(|word| !word.is_empty()).collect();
            let (name, rules) = match words.as_slice() {
                [] => continue,
                [b"user", name, rules @ ..] => (*name, rules),
                _ => {
                    let _ = write!(wrong, "{file}:{number} should start with user keyword followed by the username. ");
                    continue;
                }
            };
            let shown = String::from_utf8_lossy(name);
            if users.contains_key(name) {
                let _ = write!(wrong, "WARNING: Duplicate user '{shown}' found on line {number}. ");
            } else if check_name(name).is_err() {
                let _ = write!(wrong, "'{file}:{number}: username '{shown}' contains invalid characters. ");
            } else {
                let user = self.read_user(rules, &mut wrong, &format!("{file}:{number}"));
                users.insert(name.to_vec(), user);
            }
        }
        if !wrong.is_empty() {
            wrong.push_str("WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
            return Err(wrong);
        }
        if !users.contains_key(DEFAULT) {
            users.insert(DEFAULT.to_vec(), User::open(self.settings.all_channels));
        }
        self.users = users;
        Ok(())
    }

    /// Applies what can be applied and adds what cannot to `wrong`.
    fn read_user(&self, rules: &[&[u8]], wrong: &mut String, place: &str) -> User {
        let mut user = User::new(self.settings.all_channels);
        match join(rules) {
            Err(_) => {
                let _ = write!(wrong, "{place}: Unmatched parenthesis in selector definition. ");
            }
            Ok(rules) => {
                for rule in rules {
                    match user.rule(&rule, &self.catalog) {
                        Ok(()) => {}
                        Err(fault @ (Fault::KeysAfterAll | Fault::ChannelsAfterAll)) => {
                            let _ = write!(wrong, "{place}: {fault}. ");
                        }
                        Err(fault) => {
                            let rule = secret::shown_rule(&rule);
                            let _ = write!(wrong, "{place}: Error in applying operation '{rule}': {fault}. ");
                        }
                    }
                }
                if let Err(fault) = user.check_size() {
                    let _ = write!(wrong, "{place}: {fault}. ");
                }
            }
        }
        user
    }

    /// The users that are not as the configuration has them, with their rules; without: they are gone.
    #[must_use]
    pub fn changes(&self) -> Sorted<Vec<u8>, Option<Vec<u8>>> {
        self.touched.iter().map(|name| (name.clone(), self.users.get(name).map(User::text))).collect()
    }
}

/// A name is one word, so that it can stand in a line.
fn check_name(name: &[u8]) -> Result<(), Refused> {
    let good = !name.is_empty() && !name.iter().any(|&byte| is_space(byte) || byte == 0);
    if good { Ok(()) } else { Err(Refused::Name) }
}

fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

#[cfg(test)]
mod tests;
