//! CLIENT: what a connection tells about itself, and ending others.

use watchfire::net::Token;
use watchfire::resp::Proto;

use super::commands::{Call, lower, text};

pub(super) fn client(call: &mut Call<'_>) {
    match (call.word(1).as_str(), call.words.len()) {
        ("setname", 3) => {
            let name = text(&call.words[2]);
            if let Some(client) = call.world.clients.get_mut(&call.token) {
                client.name = name;
            }
            call.ok();
        }
        ("getname", 2) => {
            let name = call.world.clients.get(&call.token).map(|client| client.name.clone()).unwrap_or_default();
            call.answer().bulk(name);
        }
        ("id", 2) => {
            let id = call.world.clients.get(&call.token).map_or(0, |client| client.id);
            call.answer().integer(i64::try_from(id).unwrap_or(0));
        }
        ("list", _) => list_clients(call),
        ("kill", 3..) => kill_clients(call),
        ("setinfo" | "no-evict" | "no-touch" | "tracking" | "reply" | "pause" | "unpause", _) => call.ok(),
        _ => call.error(&format!("ERR unknown subcommand '{}'. Try CLIENT HELP.", text(&call.words[1]))),
    }
}

fn list_clients(call: &mut Call<'_>) {
    let now = call.reactor.now();
    let kind = (call.word(2) == "type").then(|| call.word(3));
    let server = call.world.server(call.port);
    let mut list = String::new();
    for client in server.clients.iter().filter_map(|token| call.world.clients.get(token)) {
        if kind.as_ref().is_some_and(|kind| kind != client.kind()) {
            continue;
        }
        list.push_str(&format!(
            "id={} addr={} laddr={} fd=8 name={} age={} idle={} flags={} db=0 sub={} psub={} multi={} cmd={} \
             user={} resp={}\n",
            client.id,
            client.addr,
            client.laddr,
            client.name,
            now.since(client.created) / 1000,
            now.since(client.last) / 1000,
            if client.subscriptions() > 0 { "P" } else { "N" },
            client.channels.len(),
            client.patterns.len(),
            client.queued.as_ref().map_or(-1, |queued| i64::try_from(queued.len()).unwrap_or(0)),
            client.last_command,
            server.spec.user,
            if client.proto == Proto::Resp3 { 3 } else { 2 },
        ));
    }
    call.answer().bulk(list);
}

/// `CLIENT KILL <addr>` and the form with TYPE, ID, ADDR and SKIPME.
fn kill_clients(call: &mut Call<'_>) {
    let by_address = call.words.len() == 3;
    let (mut kind, mut id, mut addr, mut skip_me) = (None, None, None, true);
    if by_address {
        addr = Some(text(&call.words[2]));
        skip_me = false;
    }
    for pair in call.words[2..].chunks(2).filter(|_| !by_address) {
        let [option, value] = pair else { return call.error("ERR syntax error") };
        let value = text(value);
        match lower(option).as_str() {
            "type" => match value.to_ascii_lowercase().as_str() {
                "slave" | "replica" | "master" | "normal" | "pubsub" => kind = Some(value.to_ascii_lowercase()),
                _ => return call.error(&format!("ERR Unknown client type '{value}'")),
            },
            "id" => id = value.parse::<u64>().ok(),
            "addr" => addr = Some(value),
            "skipme" => skip_me = value.eq_ignore_ascii_case("yes"),
            _ => return call.error("ERR syntax error"),
        }
    }
    let mut killed = 0;
    let all: Vec<Token> = call.world.server(call.port).clients.iter().copied().collect();
    for token in all {
        let Some(client) = call.world.clients.get_mut(&token) else { continue };
        let hit = kind.as_ref().is_none_or(|kind| kind == client.kind())
            && id.is_none_or(|id| id == client.id)
            && addr.as_ref().is_none_or(|addr| *addr == client.addr);
        if !hit || (skip_me && token == call.token) {
            continue;
        }
        killed += 1;
        if token == call.token {
            client.close_after_reply = true;
        } else {
            call.world.drop_client(call.reactor, token);
        }
    }
    match (by_address, killed) {
        (true, 0) => call.error("ERR No such client"),
        (true, _) => call.ok(),
        (false, killed) => call.answer().integer(killed),
    }
}
