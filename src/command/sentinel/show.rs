//! `SENTINEL MASTERS`, `MASTER`, `REPLICAS`, `SENTINELS`, `INFO-CACHE` and `PENDING-SCRIPTS`.
//!
//! Clients read the fields by name, some by position: names, order and the fact that every value is a bulk
//! string are fixed (wire.md B.5, A.0).

use super::super::call::{Call, bulk_number};
use super::{NO_SUCH_MASTER, listed_replicas};
use crate::base::{Millis, limits};
use crate::core::{Addr, CachedInfo, Link, Master, Node, Peer, Reconf, Replica, RunId, Sentinel};
use crate::resp::{Proto, Writer};

/// The pairs of one instance, counted while they are written.
struct Fields {
    body: Vec<u8>,
    pairs: usize,
    proto: Proto,
}

impl Fields {
    fn new(proto: Proto) -> Fields {
        Fields { body: Vec::with_capacity(1024), pairs: 0, proto }
    }

    fn text(&mut self, key: &str, value: &str) {
        self.pairs += 1;
        let mut writer = Writer::new(&mut self.body, self.proto);
        writer.bulk(key);
        writer.bulk(value);
    }

    fn number(&mut self, key: &str, value: impl Into<u64>) {
        self.pairs += 1;
        Writer::new(&mut self.body, self.proto).bulk(key);
        bulk_number(&mut self.body, self.proto, value.into());
    }

    fn count(&mut self, key: &str, value: usize) {
        self.number(key, value as u64);
    }

    fn finish(self, out: &mut Vec<u8>) {
        Writer::new(out, self.proto).map(self.pairs);
        out.extend_from_slice(&self.body);
    }
}

/// Joins the words that hold, in the reference's order.
fn flags(words: &[(bool, &str)]) -> String {
    let words: Vec<&str> = words.iter().filter(|(holds, _)| *holds).map(|&(_, word)| word).collect();
    words.join(",")
}

/// What all three kinds begin with.
struct Head<'a> {
    name: &'a str,
    addr: &'a Addr,
    run_id: Option<&'a RunId>,
    flags: String,
    link: &'a Link,
    failover_state: Option<&'static str>,
    sdown: Option<Millis>,
    odown: Option<Millis>,
    down_after: u64,
}

impl Head<'_> {
    fn write(&self, fields: &mut Fields, sentinel: &Sentinel, now: Millis) {
        fields.text("name", self.name);
        fields.text("ip", &super::host_text(sentinel, self.addr));
        fields.number("port", self.addr.port);
        fields.text("runid", self.run_id.map_or("", RunId::as_str));
        fields.text("flags", &self.flags);
        fields.count("link-pending-commands", self.link.pending.len());
        fields.count("link-refcount", self.link.sharers());
        if let Some(state) = self.failover_state {
            fields.text("failover-state", state);
        }
        fields.number("last-ping-sent", self.link.active_ping.map_or(0, |sent| now.since(sent)));
        fields.number("last-ok-ping-reply", now.since(self.link.last_ok));
        fields.number("last-ping-reply", now.since(self.link.last_pong));
        if let Some(since) = self.sdown {
            fields.number("s-down-time", now.since(since));
        }
        if let Some(since) = self.odown {
            fields.number("o-down-time", now.since(since));
        }
        fields.number("down-after-milliseconds", self.down_after);
    }
}

fn role(fields: &mut Fields, node: &Node, now: Millis) {
    // Zero until there is one, never the age of the epoch (R72).
    fields.number("info-refresh", node.info.as_ref().map_or(0, |info| now.since(info.at)));
    fields.text("role-reported", node.role_reported.word());
    fields.number("role-reported-time", now.since(node.role_reported_at));
}

fn show_master(out: &mut Vec<u8>, proto: Proto, sentinel: &Sentinel, now: Millis, master: &Master) {
    let node = &master.node;
    let link = sentinel.link(node.link);
    let failover = master.failover.as_ref();
    let mut fields = Fields::new(proto);
    let head = Head {
        name: &master.name,
        addr: &node.addr,
        run_id: node.run_id.as_ref(),
        flags: flags(&[
            (node.sdown.is_some(), "s_down"),
            (master.odown.is_some(), "o_down"),
            (true, "master"),
            (link.is_disconnected(), "disconnected"),
            (failover.is_some(), "failover_in_progress"),
            (failover.is_some_and(|failover| failover.forced), "force_failover"),
            (node.script_kill_sent, "script_kill_sent"),
            (master.rebooted.is_some(), "master_reboot"),
            (failover.is_some_and(|failover| failover.handover.is_some()), "coordinated_failover"),
        ]),
        link,
        failover_state: failover.map(|failover| failover.state_word()),
        sdown: node.sdown,
        odown: master.odown,
        down_after: master.settings.down_after,
    };
    head.write(&mut fields, sentinel, now);
    role(&mut fields, node, now);
    fields.number("config-epoch", master.config_epoch);
    fields.count("num-slaves", listed_replicas(master).count());
    fields.count("num-other-sentinels", master.peers.len());
    fields.number("quorum", master.settings.quorum);
    fields.number("failover-timeout", master.settings.failover_timeout);
    fields.number("parallel-syncs", master.settings.parallel_syncs);
    for (key, script) in [
        ("notification-script", &master.settings.notification_script),
        ("client-reconfig-script", &master.settings.client_reconfig_script),
    ] {
        if !script.is_empty() {
            fields.text(key, script);
        }
    }
    // Ours: shown where they are set, behind all that others know.
    for (key, ms) in
        [("down-after-refused", master.settings.down_after_refused), ("ping-period", master.settings.ping_period)]
    {
        if ms > 0 {
            fields.number(key, ms);
        }
    }
    fields.finish(out);
}

fn show_replica(out: &mut Vec<u8>, proto: Proto, sentinel: &Sentinel, now: Millis, of: &Master, replica: &Replica) {
    let node = &replica.node;
    let link = sentinel.link(node.link);
    let host = super::host_text(sentinel, &node.addr);
    let name =
        if host.contains(':') { format!("[{host}]:{}", node.addr.port) } else { format!("{host}:{}", node.addr.port) };
    let promoted = of.failover.as_ref().and_then(|failover| failover.promoted()) == Some(replica.id);
    let mut fields = Fields::new(proto);
    let head = Head {
        name: &name,
        addr: &node.addr,
        run_id: node.run_id.as_ref(),
        flags: flags(&[
            (node.sdown.is_some(), "s_down"),
            (true, "slave"),
            (link.is_disconnected(), "disconnected"),
            (promoted, "promoted"),
            (replica.reconf == Reconf::Sent, "reconf_sent"),
            (replica.reconf == Reconf::InProgress, "reconf_inprog"),
            (replica.reconf == Reconf::Done, "reconf_done"),
            (node.script_kill_sent, "script_kill_sent"),
        ]),
        link,
        failover_state: None,
        sdown: node.sdown,
        odown: None,
        down_after: of.settings.down_after,
    };
    head.write(&mut fields, sentinel, now);
    role(&mut fields, node, now);
    fields.number("master-link-down-time", replica.link_down_ms);
    fields.text("master-link-status", if replica.link_up { "ok" } else { "err" });
    fields.text("master-host", replica.master_addr.as_ref().map_or("?", |addr| &addr.host));
    fields.number("master-port", replica.master_addr.as_ref().map_or(0, |addr| addr.port));
    fields.number("slave-priority", replica.priority);
    fields.number("slave-repl-offset", replica.offset);
    fields.number("replica-announced", u8::from(replica.announced));
    fields.finish(out);
}

fn show_peer(out: &mut Vec<u8>, proto: Proto, sentinel: &Sentinel, now: Millis, of: &Master, peer: &Peer) {
    let link = sentinel.link(peer.link);
    let mut fields = Fields::new(proto);
    let head = Head {
        name: peer.run_id.as_str(),
        addr: &peer.addr,
        run_id: Some(&peer.run_id),
        flags: flags(&[
            (peer.sdown.is_some(), "s_down"),
            (true, "sentinel"),
            (link.is_disconnected(), "disconnected"),
            (peer.agrees, "master_down"),
        ]),
        link,
        failover_state: None,
        sdown: peer.sdown,
        odown: None,
        down_after: of.settings.down_after,
    };
    head.write(&mut fields, sentinel, now);
    fields.number("last-hello-message", now.since(peer.last_hello));
    fields.text("voted-leader", peer.vote.as_ref().map_or("?", |(leader, _)| leader.as_str()));
    fields.number("voted-leader-epoch", peer.vote.map_or(0, |(_, epoch)| epoch));
    fields.finish(out);
}

pub(in super::super) fn masters(call: &mut Call<'_, '_>) {
    let (sentinel, now) = (&*call.world.sentinel, call.world.now);
    Writer::new(call.out, call.proto).array(sentinel.masters().count());
    for master in sentinel.masters() {
        show_master(call.out, call.proto, sentinel, now, master);
    }
}

pub(in super::super) fn master(call: &mut Call<'_, '_>) {
    let (sentinel, now) = (&*call.world.sentinel, call.world.now);
    match sentinel.master_by_name(&call.argv[2]) {
        Some(master) => show_master(call.out, call.proto, sentinel, now, master),
        None => call.error(NO_SUCH_MASTER),
    }
}

pub(in super::super) fn replicas(call: &mut Call<'_, '_>) {
    let (sentinel, now) = (&*call.world.sentinel, call.world.now);
    let Some(master) = sentinel.master_by_name(&call.argv[2]) else { return call.error(NO_SUCH_MASTER) };
    let shown = || listed_replicas(master).filter(|replica| replica.announced);
    Writer::new(call.out, call.proto).array(shown().count());
    for replica in shown() {
        show_replica(call.out, call.proto, sentinel, now, master, replica);
    }
}

pub(in super::super) fn sentinels(call: &mut Call<'_, '_>) {
    let (sentinel, now) = (&*call.world.sentinel, call.world.now);
    let Some(master) = sentinel.master_by_name(&call.argv[2]) else { return call.error(NO_SUCH_MASTER) };
    Writer::new(call.out, call.proto).array(master.peers.len());
    for peer in master.peers.values() {
        show_peer(call.out, call.proto, sentinel, now, master, peer);
    }
}

/// `INFO-CACHE name …`: the last INFO of each named master and of its replicas, with its age in ms. Unknown
/// names are passed over, repeated ones shown once.
pub(in super::super) fn info_cache(call: &mut Call<'_, '_>) {
    if call.argv.len() - 2 > limits::ASKED {
        return call.too_many(limits::ASKED);
    }
    let (sentinel, now) = (&*call.world.sentinel, call.world.now);
    let mut masters: Vec<&Master> = Vec::new();
    for master in call.argv.iter().skip(2).filter_map(|name| sentinel.master_by_name(name)) {
        if masters.iter().all(|other| other.id != master.id) {
            masters.push(master);
        }
    }
    let mut reply = Writer::new(call.out, call.proto);
    let entry = |reply: &mut Writer<'_>, info: Option<&CachedInfo>| {
        reply.array(2);
        reply.integer(info.map_or(0, |info| now.since(info.at)).cast_signed());
        match info {
            Some(info) => reply.bulk(&info.text),
            None => reply.nil(),
        }
    };
    reply.array(masters.len() * 2);
    for master in masters {
        reply.bulk(master.name.as_bytes());
        reply.array(listed_replicas(master).count() + 1);
        entry(&mut reply, master.node.info.as_ref());
        for replica in listed_replicas(master) {
            entry(&mut reply, replica.node.info.as_ref());
        }
    }
}

pub(in super::super) fn pending_scripts(call: &mut Call<'_, '_>) {
    let scripts = call.world.sentinel.pending_scripts(call.world.now);
    Writer::new(call.out, call.proto).array(scripts.len());
    for script in scripts {
        let mut reply = call.reply();
        reply.map(5);
        reply.bulk("argv");
        reply.array(script.argv.len());
        script.argv.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk("flags");
        reply.bulk(if script.running { "running" } else { "scheduled" });
        reply.bulk("pid");
        reply.bulk(script.pid.to_string());
        reply.bulk(if script.running { "run-time" } else { "run-delay" });
        call.bulk_number(script.time);
        call.reply().bulk("retry-num");
        // The wire counts starts: the first run is number 1, and stays so while its repetition waits.
        let started = script.running || script.time > 0;
        call.bulk_number(u64::from(script.retries) + u64::from(started));
    }
}
