//! Pub/Sub: who listens to which channel and pattern, and the messages themselves.
//!
//! Sentinels publish every event, mostly to nobody: [`Clients::publish`] then costs two emptiness checks.

use super::client::{Client, ClientId, Clients};
use crate::base::glob;
use crate::resp::{Proto, Writer};
use std::collections::{BTreeMap, BTreeSet};

/// Channels and patterns with their listeners. Ordered, so that the same inputs give the same outputs.
#[derive(Debug, Default)]
pub(super) struct Index {
    channels: BTreeMap<Box<[u8]>, BTreeSet<ClientId>>,
    patterns: BTreeMap<Box<[u8]>, BTreeSet<ClientId>>,
}

impl Index {
    pub(super) fn forget(&mut self, id: ClientId, subs: &BTreeSet<Box<[u8]>>, psubs: &BTreeSet<Box<[u8]>>) {
        subs.iter().for_each(|channel| take_out(&mut self.channels, channel, id));
        psubs.iter().for_each(|pattern| take_out(&mut self.patterns, pattern, id));
    }
}

fn take_out(map: &mut BTreeMap<Box<[u8]>, BTreeSet<ClientId>>, key: &[u8], id: ClientId) {
    if let Some(listeners) = map.get_mut(key) {
        listeners.remove(&id);
        if listeners.is_empty() {
            map.remove(key);
        }
    }
}

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Channel,
    Pattern,
}

impl Client {
    fn set_of(&mut self, kind: Kind) -> &mut BTreeSet<Box<[u8]>> {
        match kind {
            Kind::Channel => &mut self.subs,
            Kind::Pattern => &mut self.psubs,
        }
    }
}

impl Clients {
    /// Adds a subscription; returns how many the client has now.
    pub fn subscribe(&mut self, id: ClientId, kind: Kind, name: &[u8]) -> usize {
        let added = self.change(id, |client| {
            client.set_of(kind).insert(name.into());
            client.subscriptions()
        });
        let Some(total) = added else { return 0 };
        self.map_of(kind).entry(name.into()).or_default().insert(id);
        total
    }

    /// Ends a subscription, if there is one; returns how many the client has left.
    pub fn unsubscribe(&mut self, id: ClientId, kind: Kind, name: &[u8]) -> usize {
        let left = self.change(id, |client| {
            client.set_of(kind).remove(name);
            client.subscriptions()
        });
        let Some(total) = left else { return 0 };
        take_out(self.map_of(kind), name, id);
        total
    }

    /// The names the client is subscribed to, in order.
    #[must_use]
    pub fn subscribed(&self, id: ClientId, kind: Kind) -> Vec<Box<[u8]>> {
        self.get(id).map_or_else(Vec::new, |client| match kind {
            Kind::Channel => client.subs.iter().cloned().collect(),
            Kind::Pattern => client.psubs.iter().cloned().collect(),
        })
    }

    /// How many channels, or patterns, somebody listens to.
    #[must_use]
    pub fn listened(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel => self.index.channels.len(),
            Kind::Pattern => self.index.patterns.len(),
        }
    }

    /// Appends the message to the output of every listener, those of the channel before those of patterns,
    /// and marks them dirty. Returns how many messages that were.
    pub fn publish(&mut self, channel: &[u8], payload: &[u8]) -> usize {
        if self.index.channels.is_empty() && self.index.patterns.is_empty() {
            return 0;
        }
        let mut to: Vec<(ClientId, Option<Box<[u8]>>)> =
            self.index.channels.get(channel).into_iter().flatten().map(|&id| (id, None)).collect();
        for (pattern, listeners) in &self.index.patterns {
            if glob::matches(pattern, channel, false) {
                to.extend(listeners.iter().map(|&id| (id, Some(pattern.clone()))));
            }
        }
        for (id, pattern) in &to {
            let Some(client) = self.get_mut(*id).filter(|client| !client.killed) else { continue };
            match pattern {
                None => push(&mut client.out, client.proto, &[b"message", channel, payload]),
                Some(pattern) => push(&mut client.out, client.proto, &[b"pmessage", pattern, channel, payload]),
            }
            self.mark_dirty(*id);
            // A subscriber that does not read must not cost us the memory (R118).
            self.enforce_hard_limit(*id);
        }
        to.len()
    }

    fn map_of(&mut self, kind: Kind) -> &mut BTreeMap<Box<[u8]>, BTreeSet<ClientId>> {
        match kind {
            Kind::Channel => &mut self.index.channels,
            Kind::Pattern => &mut self.index.patterns,
        }
    }
}

fn push(out: &mut Vec<u8>, proto: Proto, parts: &[&[u8]]) {
    let mut writer = Writer::new(out, proto);
    writer.push(parts.len());
    for part in parts {
        writer.bulk(part);
    }
}
