//! `ACL …`: users, their rules, and the log of what was refused.

use super::access::{check, enforce};
use super::call::{Call, wrong_arity};
use super::introspect;
use super::table::{CATEGORIES, Found};
use super::{Wish, World};
use crate::acl::{Acl, DEFAULT, Denied, Refused, Selector};
use crate::base::Alike;
use crate::core::Level;
use crate::resp::{Writer, parse_integer};

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the \
     ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to \
     store users in the Redis configuration.";
/// What `GENPASS` draws unless told otherwise, and at most.
const PASSWORD_BITS: i64 = 256;
const MOST_BITS: i64 = 4096;
/// What `ACL LOG` shows unless told otherwise.
const LOG_SHOWN: usize = 10;

pub(super) fn whoami(call: &mut Call<'_, '_>) {
    let user = call.me().user.clone();
    call.reply().bulk(user);
}

pub(super) fn cat(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let Some(wanted) = argv.get(2) else {
        let mut reply = call.reply();
        reply.array(CATEGORIES.len());
        CATEGORIES.iter().for_each(|word| reply.bulk(word));
        return;
    };
    if argv.len() > 3 {
        return call.wrong_subcommand();
    }
    if !CATEGORIES.iter().any(|word| word.as_bytes().alike(wanted)) {
        return call.refuse(&[b"ERR Unknown category '", wanted, b"'"]);
    }
    let names: Vec<&str> = introspect::all()
        .filter(|row| row.categories().any(|word| word.as_bytes().alike(wanted)))
        .map(|row| row.full)
        .collect();
    let mut reply = call.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
}

pub(super) fn genpass(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.len() > 3 {
        return call.wrong_subcommand();
    }
    let bits = match argv.get(2).map(parse_integer) {
        None => PASSWORD_BITS,
        Some(Some(bits @ 1..=MOST_BITS)) => bits,
        Some(Some(_)) => {
            return call.error(
                "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
                 4096",
            );
        }
        Some(None) => return call.not_an_integer(),
    };
    // Four bits a digit; the last digit may hold a few more than asked for.
    let digits = usize::try_from(bits).expect("in bounds").div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    if !(call.world.facts.entropy)(&mut bytes) {
        return call.error("ERR the system gives no random numbers");
    }
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    call.reply().bulk(text);
}

pub(super) fn users(call: &mut Call<'_, '_>) {
    let acl = &*call.world.acl;
    let mut reply = Writer::new(call.out, call.proto);
    reply.array(acl.users().len());
    acl.users().for_each(|(name, _)| reply.bulk(name));
}

pub(super) fn list(call: &mut Call<'_, '_>) {
    let acl = &*call.world.acl;
    let mut reply = Writer::new(call.out, call.proto);
    reply.array(acl.users().len());
    acl.users().for_each(|(name, user)| reply.bulk(Acl::line(name, user)));
}

pub(super) fn getuser(call: &mut Call<'_, '_>) {
    let mut reply = Writer::new(call.out, call.proto);
    let Some(user) = call.world.acl.user(&call.argv[2]) else { return reply.nil() };
    reply.map(6);
    reply.bulk("flags");
    reply.set(user.flags().count());
    user.flags().for_each(|flag| reply.bulk(flag));
    reply.bulk("passwords");
    reply.array(user.passwords().len());
    user.passwords().iter().for_each(|password| reply.bulk(password.to_string()));
    permissions(&mut reply, user.root());
    reply.bulk("selectors");
    reply.array(user.selectors().len());
    for selector in user.selectors() {
        reply.map(3);
        permissions(&mut reply, selector);
    }
}

fn permissions(reply: &mut Writer<'_>, selector: &Selector) {
    reply.bulk("commands");
    reply.bulk(selector.commands_text());
    reply.bulk("keys");
    reply.bulk(selector.keys_text());
    reply.bulk("channels");
    reply.bulk(selector.channels_text());
}

pub(super) fn setuser(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let rules: Vec<&[u8]> = argv.iter().skip(3).collect();
    match call.world.acl.set(&argv[2], &rules) {
        Ok(()) => {
            enforce(call.world, call.id);
            call.ok();
        }
        Err(Refused::Name) => call.error("ERR Usernames can't contain spaces or null characters"),
        Err(Refused::Open(word)) => {
            call.refuse(&[b"ERR Unmatched parenthesis in acl selector starting at '", &word, b"'."]);
        }
        Err(Refused::Rule(rule, fault)) => {
            let why = fault.to_string();
            call.refuse(&[b"ERR Error in ACL SETUSER modifier '", &rule, b"': ", why.as_bytes()]);
        }
    }
}

pub(super) fn deluser(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.iter().skip(2).any(|name| name == DEFAULT) {
        return call.error("ERR The 'default' user cannot be removed");
    }
    let deleted = argv.iter().skip(2).filter(|name| call.world.acl.delete(name)).count();
    enforce(call.world, call.id);
    call.reply().integer(i64::try_from(deleted).unwrap_or(i64::MAX));
}

/// A complaint that may hold bytes of a file, which reach the client as one line.
fn complain(call: &mut Call<'_, '_>, text: &str) {
    call.refuse(&[b"ERR ", text.as_bytes()]);
}

pub(super) fn load(call: &mut Call<'_, '_>) {
    let facts = call.world.facts;
    if facts.aclfile.is_empty() {
        return call.error(NO_FILE);
    }
    let loaded = match (facts.read_file)(&facts.aclfile) {
        Ok(text) => call.world.acl.load(&text, &facts.aclfile),
        Err(why) => Err(format!("Error loading ACLs, opening file '{}': {why}", facts.aclfile)),
    };
    match loaded {
        Ok(()) => {
            enforce(call.world, call.id);
            call.ok();
        }
        Err(why) => {
            warn(call.world, format!("ACL LOAD changed nothing: {why}"));
            complain(call, &why);
        }
    }
}

pub(super) fn save(call: &mut Call<'_, '_>) {
    let facts = call.world.facts;
    if facts.aclfile.is_empty() {
        return call.error(NO_FILE);
    }
    match (facts.write_file)(&facts.aclfile, &call.world.acl.file_text()) {
        Ok(()) => call.ok(),
        Err(why) => {
            warn(call.world, format!("ACL SAVE could not write {}: {why}", facts.aclfile));
            complain(
                call,
                "There was an error trying to save the ACLs. Please check the server logs for more information",
            );
        }
    }
}

fn warn(world: &mut World<'_>, text: String) {
    world.wishes.push(Wish::Log(Level::Warning, text));
}

pub(super) fn log(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.len() > 3 {
        return call.wrong_subcommand();
    }
    let most = match argv.get(2) {
        None => LOG_SHOWN,
        Some(word) if word.alike(b"reset") => {
            call.world.acl.log.clear();
            return call.ok();
        }
        Some(word) => match parse_integer(word) {
            Some(count) => usize::try_from(count).unwrap_or(0),
            None => return call.not_an_integer(),
        },
    };
    let log = &call.world.acl.log;
    let now = call.world.now;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut reply = Writer::new(call.out, call.proto);
    reply.array(log.iter().len().min(most));
    for entry in log.iter().take(most) {
        reply.map(10);
        reply.bulk("count");
        reply.integer(number(entry.count));
        for (key, value) in [
            ("reason", entry.reason.word().as_bytes()),
            ("context", b"toplevel"),
            ("object", &entry.object),
            ("username", &entry.username),
        ] {
            reply.bulk(key);
            reply.bulk(value);
        }
        reply.bulk("age-seconds");
        reply.thousandths(now.since(entry.at));
        reply.bulk("client-info");
        reply.bulk(&entry.client);
        for (key, value) in
            [("entry-id", entry.id), ("timestamp-created", entry.created), ("timestamp-last-updated", entry.updated)]
        {
            reply.bulk(key);
            reply.integer(number(value));
        }
    }
}

pub(super) fn dryrun(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let user = &argv[2];
    if call.world.acl.user(user).is_none() {
        return call.refuse(&[b"ERR User '", user, b"' not found"]);
    }
    let Found::Command(command) = call.world.facts.names.find(argv, 3) else {
        return call.refuse(&[b"ERR Command '", &argv[3], b"' not found"]);
    };
    if !command.accepts(argv.len() - 3) {
        return wrong_arity(call.out, command.full);
    }
    let denied = check(call.world.acl, user, command, argv, 3);
    let text = match denied {
        Ok(()) => return call.ok(),
        Err(Denied::Command) => {
            [b"User ", user, b" has no permissions to run the '", command.full.as_bytes(), b"' command"].concat()
        }
        Err(Denied::Channel(place)) => {
            let channel = argv.get(4 + place).unwrap_or_default();
            [b"User ", user, b" has no permissions to access the '", channel, b"' channel"].concat()
        }
    };
    call.reply().bulk(text);
}
