//! `CLIENT …`: what connections say about themselves and do to each other.

use super::call::Call;
use super::{Client, ClientId, ReplyMode, Tracking};
use crate::base::{Alike, Millis, limits};
use crate::resp::{Proto, parse_integer};
use std::io::Write;

/// Only printable ASCII without the space: such a word cannot break the lines of `CLIENT LIST`.
fn is_plain(word: &[u8]) -> bool {
    word.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

/// What is wrong with a name for a client, if anything is.
pub(super) fn name_fault(name: &[u8]) -> Option<&'static str> {
    match () {
        () if !is_plain(name) => Some("ERR Client names cannot contain spaces, newlines or special characters."),
        // It is repeated wherever clients are listed.
        () if name.len() > limits::CLIENT_WORD => Some("ERR Client names cannot be that long."),
        () => None,
    }
}

pub(super) fn setname(call: &mut Call<'_, '_>) {
    let name = &call.argv[2];
    if let Some(fault) = name_fault(name) {
        return call.error(fault);
    }
    let name = name.to_vec();
    call.me().name = name;
    call.ok();
}

pub(super) fn getname(call: &mut Call<'_, '_>) {
    let name = call.me().name.clone();
    if name.is_empty() { call.reply().nil() } else { call.reply().bulk(name) }
}

pub(super) fn id(call: &mut Call<'_, '_>) {
    let id = call.id.0;
    call.reply().integer(id.cast_signed());
}

pub(super) fn setinfo(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let (option, value) = (&argv[2], &argv[3]);
    let is_name = option.alike(b"lib-name");
    if !is_name && !option.alike(b"lib-ver") {
        return call.refuse(&[b"ERR Unrecognized option '", option, b"'"]);
    }
    if !is_plain(value) || value.len() > limits::CLIENT_WORD {
        return call.refuse(&[b"ERR ", option, b" cannot contain spaces, newlines or special characters."]);
    }
    let me = call.me();
    *if is_name { &mut me.lib_name } else { &mut me.lib_ver } = value.to_vec();
    call.ok();
}

pub(super) fn info(call: &mut Call<'_, '_>) {
    let now = call.world.now;
    let mut text = Vec::new();
    describe(&mut text, call.me(), now);
    text.push(b'\n');
    call.reply().verbatim(b"txt", text);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Normal,
    /// A Sentinel has no replicas of its own, and is none.
    Replica,
    Master,
    Pubsub,
}

impl Type {
    fn parse(word: &[u8]) -> Option<Type> {
        let is = |name: &str| word.alike(name.as_bytes());
        Some(match () {
            () if is("normal") => Type::Normal,
            () if is("slave") || is("replica") => Type::Replica,
            () if is("master") => Type::Master,
            () if is("pubsub") => Type::Pubsub,
            () => return None,
        })
    }

    fn of(client: &Client) -> Type {
        if client.subscriptions() > 0 { Type::Pubsub } else { Type::Normal }
    }
}

pub(super) fn list(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let now = call.world.now;
    let mut text = Vec::new();
    let mut add = |client: &Client| {
        describe(&mut text, client, now);
        text.push(b'\n');
    };
    match (argv.len(), argv.get(2)) {
        (2, _) => call.world.clients.iter().for_each(add),
        (4, Some(option)) if option.alike(b"TYPE") => {
            let Some(kind) = Type::parse(&argv[3]) else {
                return call.refuse(&[b"ERR Unknown client type '", &argv[3], b"'"]);
            };
            call.world.clients.iter().filter(|client| Type::of(client) == kind).for_each(add);
        }
        (4.., Some(option)) if option.alike(b"ID") => {
            if argv.len() - 3 > limits::ASKED {
                return call.too_many(limits::ASKED);
            }
            for word in argv.iter().skip(3) {
                let Some(id) = parse_integer(word) else { return call.error("ERR Invalid client ID") };
                if let Some(client) = call.world.clients.get(ClientId(id.cast_unsigned())) {
                    add(client);
                }
            }
        }
        _ => return call.syntax_error(),
    }
    call.reply().verbatim(b"txt", text);
}

/// Redis shows what waits for a client in two parts: a buffer of this size, and a list of further ones.
const OUTPUT_PIECE: usize = 16 * 1024;

/// One line of `CLIENT LIST`, without its end.
pub(super) fn describe(out: &mut Vec<u8>, client: &Client, now: Millis) {
    let mut flags = String::new();
    let marks = [
        (client.subscriptions() > 0, 'P'),
        (client.tracking().on, 't'),
        (client.tracking().on && client.tracking().bcast, 'B'),
        (client.close_after_reply, 'c'),
        (client.killed, 'A'),
        (client.unix, 'U'),
        (client.no_evict, 'e'),
    ];
    flags.extend(marks.iter().filter(|(set, _)| *set).map(|&(_, letter)| letter));
    if flags.is_empty() {
        flags.push('N');
    }
    let (waiting, room) = (client.waiting(), client.out.capacity());
    // Of what waits, redis shows the first 16 KiB and the rest apart; tools look at the rest for who does not read.
    let first = waiting.min(OUTPUT_PIECE);
    let (rest, pieces) = (waiting - first, (waiting - first).div_ceil(OUTPUT_PIECE));
    // Writing to memory cannot fail.
    let _ = write!(out, "id={} addr={} laddr={} fd={} name=", client.id.0, client.addr, client.laddr, client.fd);
    out.extend_from_slice(&client.name);
    let _ = write!(
        out,
        " age={} idle={} flags={flags} db=0 sub={} psub={} ssub=0 multi=-1 watch=0",
        now.since(client.created) / 1000,
        now.since(client.last_active) / 1000,
        client.subs.len(),
        client.psubs.len(),
    );
    let _ = write!(
        out,
        " qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs={room} rbp={waiting} obl={first} oll={pieces} omem={rest} tot-mem={}",
        client.query_buffered,
        size_of::<Client>() + client.query_buffered + room,
    );
    let _ = write!(
        out,
        " events={} cmd={} user=",
        if waiting > 0 { "rw" } else { "r" },
        if client.last_command.is_empty() { "NULL" } else { client.last_command },
    );
    out.extend_from_slice(&client.user);
    let _ = write!(
        out,
        " redir={} resp={} lib-name=",
        if client.tracking().on { client.tracking().redirect.cast_signed() } else { -1 },
        if client.proto == Proto::Resp3 { 3 } else { 2 },
    );
    out.extend_from_slice(&client.lib_name);
    out.extend_from_slice(b" lib-ver=");
    out.extend_from_slice(&client.lib_ver);
}

/// Which clients `CLIENT KILL` is after; what is `None` does not matter.
#[derive(Default)]
struct Filter {
    id: Option<u64>,
    kind: Option<Type>,
    addr: Option<Vec<u8>>,
    laddr: Option<Vec<u8>>,
    user: Option<Vec<u8>>,
    /// In seconds.
    max_age: Option<u64>,
    skip_me: bool,
}

impl Filter {
    fn takes(&self, client: &Client, me: ClientId, now: Millis) -> bool {
        !client.killed
            && (!self.skip_me || client.id != me)
            && self.id.is_none_or(|id| client.id.0 == id)
            && self.kind.is_none_or(|kind| Type::of(client) == kind)
            && self.addr.as_ref().is_none_or(|addr| client.addr.as_bytes() == addr)
            && self.laddr.as_ref().is_none_or(|laddr| client.laddr.as_bytes() == laddr)
            && self.user.as_ref().is_none_or(|user| client.user == *user)
            && self.max_age.is_none_or(|age| now.since(client.created) / 1000 >= age)
    }
}

pub(super) fn kill(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let old_form = argv.len() == 3;
    let filter = if old_form {
        Filter { addr: Some(argv[2].to_vec()), ..Filter::default() }
    } else {
        match kill_filter(call) {
            Some(filter) => filter,
            None => return,
        }
    };
    let (me, now) = (call.id, call.world.now);
    let clients = &*call.world.clients;
    let victims: Vec<ClientId> = match filter.id {
        // The usual way to name one, and then nobody else need be looked at.
        Some(id) => clients.get(ClientId(id)).into_iter().collect::<Vec<_>>(),
        None => clients.iter().collect(),
    }
    .into_iter()
    .filter(|client| filter.takes(client, me, now))
    .map(|client| client.id)
    .collect();
    for &victim in &victims {
        if victim == me {
            call.world.clients.close_after_reply(me);
        } else {
            call.world.clients.kill(victim);
        }
    }
    match (old_form, victims.is_empty()) {
        (true, true) => call.error("ERR No such client"),
        (true, false) => call.ok(),
        (false, _) => call.reply().integer(i64::try_from(victims.len()).unwrap_or(i64::MAX)),
    }
}

/// Reads the pairs of the new form; replies and gives `None` when one is wrong.
fn kill_filter(call: &mut Call<'_, '_>) -> Option<Filter> {
    let argv = call.argv;
    let mut filter = Filter { skip_me: true, ..Filter::default() };
    let mut at = 2;
    while let Some(option) = argv.get(at) {
        let is = |name: &str| option.alike(name.as_bytes());
        let Some(value) = argv.get(at + 1) else {
            call.syntax_error();
            return None;
        };
        if is("ID") {
            filter.id = parse_integer(value).filter(|&id| id > 0).map(i64::cast_unsigned);
            if filter.id.is_none() {
                call.error("ERR client-id should be greater than 0");
                return None;
            }
        } else if is("TYPE") {
            filter.kind = Type::parse(value);
            if filter.kind.is_none() {
                call.refuse(&[b"ERR Unknown client type '", value, b"'"]);
                return None;
            }
        } else if is("ADDR") {
            filter.addr = Some(value.to_vec());
        } else if is("LADDR") {
            filter.laddr = Some(value.to_vec());
        } else if is("USER") {
            if call.world.acl.user(value).is_none() {
                call.refuse(&[b"ERR No such user '", value, b"'"]);
                return None;
            }
            filter.user = Some(value.to_vec());
        } else if is("MAXAGE") {
            let Some(age) = parse_integer(value) else {
                call.error("ERR maxage is not an integer or out of range");
                return None;
            };
            if age <= 0 {
                call.error("ERR maxage should be greater than 0");
                return None;
            }
            filter.max_age = Some(age.cast_unsigned());
        } else if is("SKIPME") && value.alike(b"yes") {
            filter.skip_me = true;
        } else if is("SKIPME") && value.alike(b"no") {
            filter.skip_me = false;
        } else {
            call.syntax_error();
            return None;
        }
        at += 2;
    }
    Some(filter)
}

pub(super) fn no_evict(call: &mut Call<'_, '_>) {
    let Some(on) = on_off(&call.argv[2]) else { return call.syntax_error() };
    call.me().no_evict = on;
    call.ok();
}

fn on_off(word: &[u8]) -> Option<bool> {
    match () {
        () if word.alike(b"on") => Some(true),
        () if word.alike(b"off") => Some(false),
        () => None,
    }
}

pub(super) fn reply(call: &mut Call<'_, '_>) {
    let word = &call.argv[2];
    if word.alike(b"on") {
        call.me().reply_mode = ReplyMode::On;
        call.ok();
    } else if word.alike(b"off") {
        call.me().reply_mode = ReplyMode::Off;
    } else if word.alike(b"skip") {
        let me = call.me();
        if me.reply_mode != ReplyMode::Off {
            me.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        call.syntax_error();
    }
}

/// Answers as the reference does but pauses nobody: a Sentinel that stops answering its peers because one
/// client asked it to would be a Sentinel that is down.
pub(super) fn pause(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.len() > 4 {
        return call.wrong_subcommand();
    }
    if let Some(mode) = argv.get(3)
        && !mode.alike(b"write")
        && !mode.alike(b"all")
    {
        return call.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
    match parse_integer(&argv[2]) {
        None => call.error("ERR timeout is not an integer or out of range"),
        Some(..0) => call.error("ERR timeout is negative"),
        Some(_) => call.ok(),
    }
}

pub(super) fn unpause(call: &mut Call<'_, '_>) {
    call.ok();
}

/// Nobody is ever blocked here.
pub(super) fn unblock(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.len() > 4 {
        return call.wrong_subcommand();
    }
    if let Some(reason) = argv.get(3)
        && !reason.alike(b"timeout")
        && !reason.alike(b"error")
    {
        return call.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
    match parse_integer(&argv[2]) {
        None => call.not_an_integer(),
        Some(_) => call.reply().integer(0),
    }
}

pub(super) fn tracking(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let mut wanted = Tracking::default();
    let mut at = 3;
    while let Some(option) = argv.get(at) {
        let is = |name: &str| option.alike(name.as_bytes());
        match (argv.get(at + 1), ()) {
            (Some(_), ()) if is("REDIRECT") && wanted.redirect != 0 => {
                return call.error("ERR A client can only redirect to a single other client");
            }
            (Some(value), ()) if is("REDIRECT") => {
                let Some(id) = parse_integer(value) else { return call.not_an_integer() };
                if call.world.clients.get(ClientId(id.cast_unsigned())).is_none() {
                    return call.error("ERR The client ID you want redirect to does not exist");
                }
                wanted.redirect = id.cast_unsigned();
                at += 1;
            }
            (Some(value), ()) if is("PREFIX") => {
                let taken = call.me().tracking().prefixes.len() + wanted.prefixes.len();
                if taken >= limits::SUBSCRIPTIONS || value.len() > limits::CLIENT_WORD {
                    return call.error(&format!(
                        "ERR A client may have {} prefixes of {} bytes",
                        limits::SUBSCRIPTIONS,
                        limits::CLIENT_WORD
                    ));
                }
                wanted.prefixes.push(value.to_vec());
                at += 1;
            }
            _ if is("BCAST") => wanted.bcast = true,
            _ if is("OPTIN") => wanted.optin = true,
            _ if is("OPTOUT") => wanted.optout = true,
            _ if is("NOLOOP") => wanted.noloop = true,
            _ => return call.syntax_error(),
        }
        at += 1;
    }
    match on_off(&argv[2]) {
        Some(false) => call.world.clients.track(call.id, Tracking::default()),
        Some(true) => {
            wanted.on = true;
            let now = call.me().tracking().clone();
            if let Some(complaint) = tracking_conflict(&now, &wanted) {
                return call.refuse(&[b"ERR ", complaint.as_slice()]);
            }
            let mut prefixes = now.prefixes;
            prefixes.append(&mut wanted.prefixes);
            wanted.prefixes = prefixes;
            call.world.clients.track(call.id, wanted);
        }
        None => return call.syntax_error(),
    }
    call.ok();
}

/// Why `wanted` cannot follow on `now`.
fn tracking_conflict(now: &Tracking, wanted: &Tracking) -> Option<Vec<u8>> {
    let text = if !wanted.bcast && !wanted.prefixes.is_empty() {
        "PREFIX option requires BCAST mode to be enabled"
    } else if now.on && now.bcast != wanted.bcast {
        "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with \
         a different mode."
    } else if wanted.bcast && (wanted.optin || wanted.optout) {
        "OPTIN and OPTOUT are not compatible with BCAST"
    } else if wanted.optin && wanted.optout {
        "You can't specify both OPTIN mode and OPTOUT mode"
    } else if (wanted.optin && now.optout) || (wanted.optout && now.optin) {
        "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a \
         different mode."
    } else {
        return overlap(now, wanted);
    };
    Some(text.into())
}

fn overlap(now: &Tracking, wanted: &Tracking) -> Option<Vec<u8>> {
    let meets = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    for (at, prefix) in wanted.prefixes.iter().enumerate() {
        let existing = now.prefixes.iter().find(|other| meets(prefix, other));
        let provided = wanted.prefixes[at + 1..].iter().find(|other| meets(prefix, other));
        let (other, which) = match (existing, provided) {
            (Some(other), _) => (other, "an existing prefix"),
            (_, Some(other)) => (other, "another provided prefix"),
            _ => continue,
        };
        let pieces: [&[u8]; 7] = [
            b"Prefix '",
            prefix,
            b"' overlaps with ",
            which.as_bytes(),
            b" '",
            other,
            b"'. Prefixes for a single client must not overlap.",
        ];
        return Some(pieces.concat());
    }
    None
}

pub(super) fn caching(call: &mut Call<'_, '_>) {
    let word = &call.argv[2];
    let yes = word.alike(b"yes");
    let no = word.alike(b"no");
    let tracking = call.me().tracking();
    let text = if !tracking.on {
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
    } else if yes && !tracking.optin {
        "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
    } else if no && !tracking.optout {
        "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
    } else if !yes && !no {
        "ERR syntax error"
    } else {
        call.me().set_caching(Some(yes));
        return call.ok();
    };
    call.error(text);
}

pub(super) fn getredir(call: &mut Call<'_, '_>) {
    let tracking = call.me().tracking();
    let redirect = if tracking.on { tracking.redirect.cast_signed() } else { -1 };
    call.reply().integer(redirect);
}

pub(super) fn trackinginfo(call: &mut Call<'_, '_>) {
    let tracking = call.me().tracking().clone();
    let marks = [
        (!tracking.on, "off"),
        (tracking.on, "on"),
        (tracking.bcast, "bcast"),
        (tracking.optin, "optin"),
        (tracking.optin && tracking.caching == Some(true), "caching-yes"),
        (tracking.optout, "optout"),
        (tracking.optout && tracking.caching == Some(false), "caching-no"),
        (tracking.noloop, "noloop"),
    ];
    let mut reply = call.reply();
    reply.map(3);
    reply.bulk("flags");
    reply.set(marks.iter().filter(|(set, _)| *set).count());
    marks.iter().filter(|(set, _)| *set).for_each(|(_, word)| reply.bulk(word));
    reply.bulk("redirect");
    reply.integer(if tracking.on { tracking.redirect.cast_signed() } else { -1 });
    reply.bulk("prefixes");
    reply.array(tracking.prefixes.len());
    tracking.prefixes.iter().for_each(|prefix| reply.bulk(prefix));
}
