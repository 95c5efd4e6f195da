//! People who meddle: operators at the wrong moment, and strangers who say untrue things in hellos.
//!
//! Known exceptions of the protocol, and therefore not done here: a forged hello with a higher config epoch and a wrong address
//! moves the master there, and enough invented peers make every majority impossible. Whoever can publish to a Sentinel is
//! believed; that is what passwords and TLS are for.

use super::groups::{self, Group};
use super::nemesis::Undo;
use super::net::{Request, Wire};
use super::node::{Node, sentinel_id};
use super::options::{Options, pick};
use super::process::Item;
use super::world::{Event, World};
use watchfire::base::Millis;
use watchfire::core::{Change, RunId, Sentinel};

/// The host of nobody at which the one invented peer of a run lives, and where known peers are said to have moved.
const INVENTED: u8 = 200;
const ELSEWHERE: u8 = 201;

/// What operators do to one Sentinel.
#[derive(Clone, Debug)]
pub enum Order {
    Reset,
    Set(Vec<Change>),
    Remove,
    /// With all settings, at this address.
    Monitor(String, u16),
}

/// Does it to one master.
pub(super) fn obey(sentinel: &mut Sentinel, now: Millis, group: &Group, order: Order, options: &Options) {
    let name = group.name.as_bytes();
    // What is refused is refused; an operator may come twice or too late.
    match order {
        Order::Reset => {
            sentinel.reset(now, name);
        }
        Order::Set(changes) => {
            let _ = sentinel.set(now, name, changes);
        }
        Order::Remove => {
            let _ = sentinel.remove(now, name);
        }
        Order::Monitor(host, port) => {
            if sentinel.monitor(now, group.name, &host, port, group.quorum).is_ok() {
                let changes = vec![
                    Change::DownAfter(options.down_after_of(group)),
                    Change::FailoverTimeout(options.failover_timeout),
                    Change::ParallelSyncs(options.parallel_syncs),
                    Change::DownAfterRefused(options.down_after_refused),
                    Change::PingPeriod(options.ping_period),
                ];
                let _ = sentinel.set(now, name, changes);
            }
        }
    }
}

impl World<'_> {
    /// One of the masters, by its number, and a Sentinel that monitors it.
    pub(super) fn master_and_watcher(&mut self) -> (usize, usize) {
        let groups = &self.options.groups;
        // Where there is no choice, nothing is drawn.
        let chosen = if groups.len() > 1 { self.nemesis.index(groups.len()) } else { 0 };
        let watchers = &groups[chosen].watchers;
        (chosen, watchers[self.nemesis.index(watchers.len())])
    }

    /// RESET, SET, or REMOVE and later MONITOR of one master at one Sentinel.
    pub(super) fn administer(&mut self, lasts: u64) -> Undo {
        let (chosen, who) = self.master_and_watcher();
        let group = &self.options.groups[chosen];
        let (name, quorum) = (group.name, group.quorum);
        let (down_after, timeout) = (self.options.down_after_of(group), self.options.failover_timeout);
        // Only to more patience: what the checkers know of the settings stays a lower limit.
        let majority = u32::try_from(group.watchers.len() / 2 + 1).expect("a handful");
        let settings = [
            Change::DownAfter(2 * down_after),
            Change::DownAfter(down_after),
            Change::FailoverTimeout(2 * timeout),
            Change::FailoverTimeout(timeout),
            Change::ParallelSyncs(3),
            Change::Quorum(quorum.max(majority)),
            Change::Quorum(quorum),
        ];
        let mut forgets = vec![who];
        if self.options.careful {
            forgets = groups::replaceable(&self.options.groups, self.options.sentinels);
            forgets.retain(|who| self.options.groups[chosen].is_watched_by(*who));
        }
        let removed = self.processes.iter().any(|process| process.removed.contains(name));
        let kind = self.nemesis.random_below(4);
        let who = match kind {
            0 | 1 if self.options.careful && !forgets.is_empty() => forgets[self.nemesis.index(forgets.len())],
            _ => who,
        };
        let (order, undo) = match kind {
            0 if !forgets.is_empty() => (Order::Reset, Undo::Nothing),
            // One at a time: a master that nobody knows any more has lost its replicas.
            1 if !removed && !forgets.is_empty() => {
                self.processes[who].removed.insert(name);
                (Order::Remove, Undo::MonitorAgain(who, chosen))
            }
            _ => {
                let change = settings[self.nemesis.index(settings.len())].clone();
                (Order::Set(vec![change]), Undo::Nothing)
            }
        };
        let details = format_args!("{order:?}, for {lasts} ms if that ends");
        self.line_about(name, Node::Sentinel(who), "operator", details);
        if matches!(order, Order::Reset | Order::Remove) {
            self.forgets(who, chosen);
        }
        self.post(who, Item::Order(name, order));
        undo
    }

    /// The operator comes back to where this master was removed.
    pub(super) fn monitor_again(&mut self, who: usize, group: usize) {
        let name = self.options.groups[group].name;
        if !self.processes[who].removed.contains(name) {
            return;
        }
        let named = self.named(name);
        let (true, Some((host, port))) = (self.processes[who].is_idle(), named) else {
            self.queue.push(self.now + 200, Event::MonitorAgain { who, group });
            return;
        };
        self.processes[who].removed.remove(name);
        self.line_about(name, Node::Sentinel(who), "operator", format_args!("MONITOR {host}:{port}"));
        self.post(who, Item::Order(name, Order::Monitor(host, port)));
    }

    /// The address of a master that an operator would find out: what the first living Sentinel says.
    pub(super) fn named(&self, name: &str) -> Option<(String, u16)> {
        self.living().into_iter().find_map(|(_, sentinel)| {
            let addr = sentinel.current_addr(sentinel.master_by_name(name.as_bytes())?);
            Some((addr.host.to_string(), addr.port))
        })
    }

    /// A hello that is not what it seems, to one Sentinel or to all.
    pub(super) fn forge(&mut self) {
        let sentinels = self.options.sentinels;
        let (chosen, about) = self.master_and_watcher();
        let watchers = &self.options.groups[chosen].watchers;
        let to = watchers[self.nemesis.index(watchers.len())];
        let name = self.options.groups[chosen].name;
        let id = |who: usize| self.processes[who].sentinel.as_deref().map(Sentinel::myid);
        let (Some(peer), Some(receiver), Some((host, port))) = (id(about), id(to), self.named(name)) else { return };
        let epochs = self.living().into_iter().map(|(_, sentinel)| sentinel.current_epoch());
        let newest = epochs.max().unwrap_or(0);
        let hello = |ip: Node, id: RunId, epoch: u64, name: &str, host: &str, port: u16, config: u64| {
            format!("{},26379,{id},{epoch},{name},{host},{port},{config}", ip.ip())
        };
        let invented = sentinel_id(9, self.options.seed);
        let here = Node::Sentinel(about);
        let quiet = self.living().len() == sentinels
            && self.at_rest().is_ok()
            && self.living().iter().all(|(_, sentinel)| sentinel.masters().all(|master| master.failover.is_none()));
        let (what, payload) = match self.nemesis.random_below(8) {
            // Nobody is about to use that epoch, so it does no harm.
            7 if quiet => ("a newer configuration", hello(here, peer, newest, name, &host, port, newest)),
            0 => ("no hello", "10.0.0.1,26379,,,\0,mymaster".to_string()),
            1 => ("another group", hello(here, peer, newest, "another", &host, port, newest)),
            2 => ("a newer epoch", hello(here, peer, newest + 2, name, &host, port, 0)),
            3 => ("the receiver's own id", hello(Node::Nobody(ELSEWHERE), receiver, newest, name, &host, port, 0)),
            4 => ("a peer that moved", hello(Node::Nobody(ELSEWHERE), peer, newest, name, &host, port, 0)),
            5 => ("an invented peer", hello(Node::Nobody(INVENTED), invented, newest, name, &host, port, 0)),
            _ => {
                let index = self.nemesis.index(self.options.servers());
                let old = Node::Server(index).ip().to_string();
                ("an old address", hello(here, peer, newest, name, &old, 6379, 0))
            }
        };
        let all = pick(self.nemesis.random(), &[true, false]);
        self.line_about(
            name,
            Node::Sentinel(to),
            "fault",
            format_args!("forged hello, all {all}: {what}: {payload:?}"),
        );
        for who in 0..sentinels {
            if all || who == to {
                let publish: Request = vec![b"PUBLISH".into(), b"__sentinel__:hello".into(), payload.clone().into()];
                self.post(who, Item::Requests(Wire(0), vec![publish]));
            }
        }
    }
}
