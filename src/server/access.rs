//! The users at the start: out of `requirepass`, `user` lines or an `aclfile`. And the files that ACL commands act on.

use super::boot::StartError;
use super::save;
use crate::acl::{Acl, DEFAULT, Refused, Settings};
use crate::base::secret::shown_rule;
use crate::command::{self, Names};
use crate::config::{Declared, Renamed, ServerOptions};
use std::io;
use std::path::Path;

/// All users as the configuration has them. To be called in the working directory that it asks for.
///
/// `requirepass` comes first; a `user default` line or an ACL file then says anew who `default` is.
pub fn load(options: &ServerOptions, users: &[Declared]) -> Result<Acl, StartError> {
    let settings = Settings { all_channels: options.acl_pubsub_allchannels, log_length: options.acllog_max_len };
    let mut acl = Acl::new(command::catalog(), settings);
    if !options.requirepass.is_empty() {
        acl.require_password(&options.requirepass);
    }
    if options.aclfile.is_empty() {
        for user in users {
            let rules: Vec<&[u8]> = user.rules.iter().map(Vec::as_slice).collect();
            acl.declare(&user.name, &rules).map_err(|refused| wrong(user, &refused))?;
        }
        return Ok(acl);
    }
    if let Some(user) = users.first() {
        let mut error = user.error.clone();
        "Users are declared here although aclfile names a file for them: it has to be one or the other"
            .clone_into(&mut error.message);
        return Err(StartError::new(error.to_string()));
    }
    let aborted = |why: String| StartError::new(format!("Aborting the start because of ACL errors: {why}"));
    let text = read_file(&options.aclfile)
        .map_err(|why| aborted(format!("Error loading ACLs, opening file '{}': {why}", options.aclfile)))?;
    acl.load(&text, &options.aclfile).map_err(aborted)?;
    Ok(acl)
}

/// What clients call the commands, as the `rename-command` lines have it.
pub fn names(renamed: &[Renamed]) -> Result<Names, StartError> {
    let mut names = Names::default();
    for Renamed { old, new, error } in renamed {
        names.rename(old, new).map_err(|why| {
            let mut error = error.clone();
            why.text().clone_into(&mut error.message);
            StartError::new(error.to_string())
        })?;
    }
    Ok(names)
}

fn wrong(user: &Declared, refused: &Refused) -> StartError {
    let (what, why) = match refused {
        Refused::Name => {
            (String::from_utf8_lossy(&user.name), "Usernames can't contain spaces or null characters".to_owned())
        }
        Refused::Open(word) => (shown_rule(word), "Unmatched parenthesis".to_owned()),
        Refused::Rule(rule, fault) => (shown_rule(rule), fault.to_string()),
    };
    let mut error = user.error.clone();
    error.message = format!("Error in user declaration '{what}': {why}");
    StartError::new(error.to_string())
}

/// What an operator may not expect, for the log. A file that redis-sentinel has written holds requirepass and a line about
/// `default` with its hash; the two agree, and there is nothing to say.
pub fn doubt(options: &ServerOptions, acl: &Acl) -> Option<String> {
    let password = options.requirepass.as_slice();
    if password.is_empty() || (!acl.default_user().needs_no_password() && acl.authenticate(DEFAULT, password)) {
        return None;
    }
    let counts = if options.aclfile.is_empty() { "the line 'user default ...' counts" } else { "aclfile counts" };
    Some(format!(
        "requirepass does not protect this Sentinel: {counts} instead. It is still offered to the other Sentinels."
    ))
}

/// For [`command::Facts::read_file`].
pub fn read_file(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|why| reason(&why))
}

/// For [`command::Facts::write_file`].
pub fn write_file(path: &str, text: &[u8]) -> Result<(), String> {
    save::store(Path::new(path), text).map_err(|why| reason(&why))
}

/// The system's words alone, as C's strerror has them.
fn reason(why: &io::Error) -> String {
    let text = why.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
