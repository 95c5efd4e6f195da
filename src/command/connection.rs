//! PING, HELLO, AUTH, ROLE, SHUTDOWN, PUBLISH and the four commands of Pub/Sub.

use super::access::{log_in, owes_password};
use super::call::Call;
use super::client_cmd::name_fault;
use super::{COMPATIBLE_VERSION, SubscriptionKind, Wish};
use crate::acl::DEFAULT;
use crate::base::{Alike, limits};
use crate::core::{HELLO_CHANNEL, Level};
use crate::resp::{Proto, Writer, parse_integer};

pub(super) const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

pub(super) fn ping(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.len() > 2 {
        return super::call::wrong_arity(call.out, "ping");
    }
    let message = argv.get(1);
    if call.proto == Proto::Resp2 && call.me().subscriptions() > 0 {
        // In subscribe mode a RESP2 client can tell replies from messages only by their shape.
        let mut reply = call.reply();
        reply.array(2);
        reply.bulk("pong");
        reply.bulk(message.unwrap_or(b""));
    } else if let Some(message) = message {
        call.reply().bulk(message);
    } else {
        call.out.extend_from_slice(b"+PONG\r\n");
    }
}

const NOAUTH_HELLO: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
     same time";

/// Tries a user and a password.
fn authenticate(call: &mut Call<'_, '_>, user: &[u8], password: &[u8]) -> bool {
    log_in(call.world, call.id, &call.argv[0], user, password)
}

pub(super) fn auth(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    match argv.len() {
        2 if call.world.acl.default_user().needs_no_password() => call.error(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        ),
        2 if authenticate(call, DEFAULT, &argv[1]) => call.ok(),
        3 if authenticate(call, &argv[1], &argv[2]) => call.ok(),
        2 | 3 => call.error(WRONG_PASSWORD),
        _ => call.syntax_error(),
    }
}

pub(super) fn hello(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let proto = match argv.get(1).map(parse_integer) {
        None => call.proto,
        Some(Some(2)) => Proto::Resp2,
        Some(Some(3)) => Proto::Resp3,
        Some(Some(_)) => return call.error("NOPROTO unsupported protocol version"),
        Some(None) => return call.error("ERR Protocol version is not an integer or out of range"),
    };
    // All options are looked at before any takes effect.
    let (mut credentials, mut name) = (None, None);
    let mut at = 2;
    while let Some(option) = argv.get(at) {
        let left = argv.len() - at - 1;
        if option.alike(b"AUTH") && left >= 2 {
            credentials = Some((&argv[at + 1], &argv[at + 2]));
            at += 3;
        } else if option.alike(b"SETNAME") && left >= 1 {
            if let Some(fault) = name_fault(&argv[at + 1]) {
                return call.error(fault);
            }
            name = Some(argv[at + 1].to_vec());
            at += 2;
        } else {
            return call.refuse(&[b"ERR Syntax error in HELLO option '", option, b"'"]);
        }
    }
    if let Some((user, password)) = credentials {
        if !authenticate(call, user, password) {
            return call.error(WRONG_PASSWORD);
        }
    } else if call.world.clients.get(call.id).is_none_or(|me| owes_password(call.world.acl, me)) {
        return call.error(NOAUTH_HELLO);
    }
    let me = call.me();
    if let Some(name) = name {
        me.name = name;
    }
    me.proto = proto;
    call.proto = proto;
    let id = call.id.0;
    let mut reply = call.reply();
    reply.map(6);
    reply.bulk("server");
    reply.bulk("redis");
    reply.bulk("version");
    reply.bulk(COMPATIBLE_VERSION);
    reply.bulk("proto");
    reply.integer(if proto == Proto::Resp3 { 3 } else { 2 });
    reply.bulk("id");
    reply.integer(id.cast_signed());
    reply.bulk("mode");
    reply.bulk("sentinel");
    reply.bulk("modules");
    reply.array(0);
}

pub(super) fn role(call: &mut Call<'_, '_>) {
    let sentinel = &*call.world.sentinel;
    let mut reply = Writer::new(call.out, call.proto);
    reply.array(2);
    reply.bulk("sentinel");
    reply.array(sentinel.masters().count());
    for master in sentinel.masters() {
        reply.bulk(master.name.as_bytes());
    }
}

pub(super) fn shutdown(call: &mut Call<'_, '_>) {
    let (mut save, mut nosave, mut abort, mut other) = (false, false, false, false);
    for word in call.argv.iter().skip(1) {
        let is = |name: &[u8]| word.alike(name);
        if is(b"NOSAVE") {
            nosave = true;
        } else if is(b"SAVE") {
            save = true;
        } else if is(b"NOW") || is(b"FORCE") {
            other = true;
        } else if is(b"ABORT") {
            abort = true;
        } else {
            return call.syntax_error();
        }
    }
    if (save && nosave) || (abort && (save || nosave || other)) {
        return call.syntax_error();
    }
    if abort {
        // We never wait before we go, so there is nothing to call off.
        return call.error("ERR No shutdown in progress.");
    }
    call.world.wishes.push(Wish::Log(Level::Warning, "User requested shutdown...".to_owned()));
    call.world.wishes.push(Wish::Shutdown);
}

pub(super) fn publish(call: &mut Call<'_, '_>) {
    if &call.argv[1] != HELLO_CHANNEL {
        return call.error("ERR Only HELLO messages are accepted by Sentinel instances.");
    }
    call.world.sentinel.hello(call.world.now, &call.argv[2]);
    call.reply().integer(1);
}

pub(super) fn subscribe(call: &mut Call<'_, '_>) {
    enter(call, SubscriptionKind::Channel, "subscribe");
}

pub(super) fn psubscribe(call: &mut Call<'_, '_>) {
    enter(call, SubscriptionKind::Pattern, "psubscribe");
}

pub(super) fn unsubscribe(call: &mut Call<'_, '_>) {
    leave(call, SubscriptionKind::Channel, "unsubscribe");
}

pub(super) fn punsubscribe(call: &mut Call<'_, '_>) {
    leave(call, SubscriptionKind::Pattern, "punsubscribe");
}

fn enter(call: &mut Call<'_, '_>, kind: SubscriptionKind, word: &str) {
    let argv = call.argv;
    if argv.iter().skip(1).any(|name| name.len() > limits::CLIENT_WORD) {
        return call.error(&format!("ERR A channel or pattern may have {} bytes", limits::CLIENT_WORD));
    }
    if call.me().subscriptions() + argv.len() - 1 > limits::SUBSCRIPTIONS {
        return call.error(&format!("ERR A client may have {} channels and patterns", limits::SUBSCRIPTIONS));
    }
    for name in argv.iter().skip(1) {
        let total = call.world.clients.subscribe(call.id, kind, name);
        told(call, word, Some(name), total);
    }
}

/// Without names: all of them; when there are none, one reply says so.
fn leave(call: &mut Call<'_, '_>, kind: SubscriptionKind, word: &str) {
    let argv = call.argv;
    if argv.len() > 1 {
        for name in argv.iter().skip(1) {
            let total = call.world.clients.unsubscribe(call.id, kind, name);
            told(call, word, Some(name), total);
        }
        return;
    }
    let names = call.world.clients.subscribed(call.id, kind);
    if names.is_empty() {
        let total = call.me().subscriptions();
        told(call, word, None, total);
    }
    for name in names {
        let total = call.world.clients.unsubscribe(call.id, kind, &name);
        told(call, word, Some(&name), total);
    }
}

fn told(call: &mut Call<'_, '_>, word: &str, name: Option<&[u8]>, total: usize) {
    let mut reply = call.reply();
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.nil(),
    }
    reply.integer(i64::try_from(total).unwrap_or(i64::MAX));
}
