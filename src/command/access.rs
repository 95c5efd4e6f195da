//! Who may run what: the check before every command, logging in, and what happens to clients whose user changed.
//!
//! The rules themselves are the ACL room's; here they meet clients, and refusals get their words.

use super::call::refuse;
use super::client_cmd::describe;
use super::commands::COMMANDS;
use super::introspect;
use super::table::{CATEGORIES, Command, NO_AUTH, PUBSUB};
use super::{Client, ClientId, World};
use crate::acl::{Acl, Asked, Catalog, DEFAULT, Denied, Reason};
use crate::resp::Argv;

const NOAUTH: &[u8] = b"NOAUTH Authentication required.";

/// The names that rules can speak of.
#[must_use]
pub fn catalog() -> Catalog {
    debug_assert!(!COMMANDS.rows.is_empty());
    Catalog::new(&CATEGORIES, introspect::all().map(|row| (row.full, row.categories())))
}

/// True for a client that has to log in before it may do anything: it has not yet, and the user that it is without
/// asks for a password or is off.
#[must_use]
pub fn owes_password(acl: &Acl, client: &Client) -> bool {
    !client.authenticated && !acl.default_user().is_open()
}

/// The place of NOAUTH and NOPERM: says in `out` why this client may not run this command. False when it may.
pub(super) fn refused(world: &mut World<'_>, id: ClientId, command: &Command, argv: &Argv, out: &mut Vec<u8>) -> bool {
    if command.flags & NO_AUTH != 0 {
        return false;
    }
    let Some(client) = world.clients.get(id) else { return true };
    if owes_password(world.acl, client) {
        refuse(out, &[NOAUTH]);
        return true;
    }
    let Err(denied) = check(world.acl, &client.user, command, argv, 0) else { return false };
    let user = client.user.clone();
    match denied {
        Denied::Command => {
            let name = command.full.as_bytes();
            refuse(out, &[b"NOPERM User ", &user, b" has no permissions to run the '", name, b"' command"]);
            world.stats.denied_commands += 1;
            note(world, id, Reason::Command, name, &user);
        }
        Denied::Channel(place) => {
            refuse(out, &[b"NOPERM No permissions to access a channel"]);
            world.stats.denied_channels += 1;
            note(world, id, Reason::Channel, argv.get(1 + place).unwrap_or_default(), &user);
        }
    }
    true
}

/// Whether the user may run the request that begins at `argv[at]`.
pub(super) fn check(acl: &Acl, user: &[u8], command: &Command, argv: &Argv, at: usize) -> Result<(), Denied> {
    if command.flags & NO_AUTH != 0 {
        return Ok(());
    }
    if command.flags & PUBSUB == 0 {
        return acl
            .check(user, &Asked { command: command.full, first: argv.get(at + 1), channels: &[], patterns: false });
    }
    let (count, patterns) = channels_named(command);
    let channels: Vec<&[u8]> = argv.iter().skip(at + 1).take(count).collect();
    acl.check(user, &Asked { command: command.full, first: argv.get(at + 1), channels: &channels, patterns })
}

/// How many of the words behind the name are channels at most, and whether they are patterns of them. Asked of commands with
/// the flag PUBSUB only.
fn channels_named(command: &Command) -> (usize, bool) {
    match command.full {
        "subscribe" => (usize::MAX, false),
        "psubscribe" => (usize::MAX, true),
        "publish" => (1, false),
        _ => (0, false),
    }
}

/// Writes a refusal into the log that `ACL LOG` shows.
fn note(world: &mut World<'_>, id: ClientId, reason: Reason, object: &[u8], user: &[u8]) {
    let Some(client) = world.clients.get(id) else { return };
    let mut info = Vec::new();
    describe(&mut info, client, world.now);
    world.acl.log.add((world.now, (world.wall_ms)()), (reason, object), user, info);
}

/// Tries a user and a password; `word` is the command's name as the client wrote it. True: the client is that user.
pub(super) fn log_in(world: &mut World<'_>, id: ClientId, word: &[u8], user: &[u8], password: &[u8]) -> bool {
    if !world.acl.authenticate(user, password) {
        world.stats.auth_failures += 1;
        note(world, id, Reason::Auth, word, user);
        return false;
    }
    if let Some(client) = world.clients.get_mut(id) {
        client.user = user.to_vec();
        client.authenticated = true;
    }
    true
}

/// Lets go of clients whose user is gone, or who listen to what their user may not hear any more. The one who asked
/// hears the reply first.
pub(super) fn enforce(world: &mut World<'_>, asking: ClientId) {
    let acl = &*world.acl;
    let may_stay = |client: &Client| {
        let everything_is_fine = client.subscriptions() == 0 && acl.user(&client.user).is_some();
        everything_is_fine
            || acl.may_listen(
                &client.user,
                client.subs.iter().map(AsRef::as_ref),
                client.psubs.iter().map(AsRef::as_ref),
            )
    };
    let late: Vec<ClientId> = world.clients.iter().filter(|client| !may_stay(client)).map(|client| client.id).collect();
    for id in late {
        if id != asking {
            world.clients.kill(id);
        } else if let Some(client) = world.clients.get_mut(id) {
            // Its user may be gone; nothing more is taken from it in any case.
            client.user = DEFAULT.to_vec();
            client.authenticated = false;
            world.clients.close_after_reply(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_names_channels_has_the_flag_without_which_nobody_looks_for_them() {
        let naming: Vec<&Command> = introspect::all().filter(|row| channels_named(row).0 > 0).collect();
        assert_eq!(naming.len(), 3);
        for row in naming {
            assert!(row.flags & PUBSUB != 0 && row.flags & NO_AUTH == 0, "{}", row.full);
        }
    }
}
