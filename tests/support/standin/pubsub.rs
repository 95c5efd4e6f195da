//! Subscriptions of the stand-in's clients.

use watchfire::net::Token;
use watchfire::resp::Writer;

use super::world::World;

/// SUBSCRIBE and PSUBSCRIBE: one confirmation for each name.
pub(super) fn subscribe(world: &mut World, token: Token, names: &[Vec<u8>], patterns: bool, to: &mut Writer<'_>) {
    let word = if patterns { "psubscribe" } else { "subscribe" };
    for name in names {
        let Some(client) = world.clients.get_mut(&token) else { return };
        let port = client.server;
        let set = if patterns { &mut client.patterns } else { &mut client.channels };
        set.insert(name.clone());
        confirm(to, word, Some(name), client.subscriptions());
        let server = world.server_mut(port);
        if patterns {
            server.matchers.insert(token);
        } else {
            server.channels.entry(name.clone()).or_default().insert(token);
        }
    }
}

/// UNSUBSCRIBE and PUNSUBSCRIBE; without names all of the kind.
pub(super) fn unsubscribe(world: &mut World, token: Token, names: &[Vec<u8>], patterns: bool, to: &mut Writer<'_>) {
    let word = if patterns { "punsubscribe" } else { "unsubscribe" };
    let Some(client) = world.clients.get_mut(&token) else { return };
    let port = client.server;
    let set = if patterns { &client.patterns } else { &client.channels };
    let names: Vec<Vec<u8>> = if names.is_empty() { set.iter().cloned().collect() } else { names.to_vec() };
    if names.is_empty() {
        confirm(to, word, None, client.subscriptions());
    }
    for name in &names {
        let Some(client) = world.clients.get_mut(&token) else { return };
        let set = if patterns { &mut client.patterns } else { &mut client.channels };
        set.remove(name);
        confirm(to, word, Some(name), client.subscriptions());
        let none_left = client.patterns.is_empty();
        let server = world.server_mut(port);
        if patterns && none_left {
            server.matchers.remove(&token);
        } else if !patterns && let Some(listeners) = server.channels.get_mut(name) {
            listeners.remove(&token);
            if listeners.is_empty() {
                server.channels.remove(name);
            }
        }
    }
}

fn confirm(to: &mut Writer<'_>, word: &str, name: Option<&Vec<u8>>, count: usize) {
    to.push(3);
    to.bulk(word);
    match name {
        Some(name) => to.bulk(name),
        None => to.nil(),
    }
    to.integer(i64::try_from(count).unwrap_or(i64::MAX));
}
