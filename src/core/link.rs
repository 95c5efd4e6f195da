//! Links: dialling, dropping, and the one way to send a command.

use super::effect::{ConnKind, Level};
use super::hello::HELLO_CHANNEL;
use super::ids::{Addr, ConnId, LinkId, MasterId, RunId};
use super::input::Gone;
use super::model::{Conn, Excused, Expect, Link, Master, Owner, Told};
use super::outbox::Outbox;
use super::slot::Measured;
use super::snapshot::Settings;
use super::{EXCUSE_MOST, Effect, Plant, Sentinel};
use crate::base::{Alike, Millis, SortedSet};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Unanswered commands a link may carry for each instance that shares it.
const PENDING_PER_SHARER: usize = 100;
/// A dial that is neither accepted nor refused is given up after this many ms: the kernel would go on for two
/// minutes, with growing pauses in which a healed network is not noticed.
const DIAL_PATIENCE: u64 = 3_000;
/// How often a node is dialled before its silence counts as its death, when each attempt is refused. A process that
/// restarts refuses for a moment, and must not be held down because nobody looked again.
const DIALS_TO_DEATH: u64 = 4;
/// And how often when each attempt is lost: a lost SYN alone, which the kernel repeats after a second, must not kill.
const LOST_DIALS_TO_DEATH: u64 = 2;
/// Nobody is called silent before we have dialled, however many others we had to dial first; but for no longer than this, ms.
const LINE_MOST: u64 = 30_000;

impl Link {
    pub(super) fn new(id: LinkId, addr: Addr, owner: Owner, now: Millis) -> Link {
        Link {
            id,
            addr,
            owner,
            cmd: Conn::Down,
            pubsub: Conn::Down,
            pending: VecDeque::new(),
            // A node that never answers must time out, too.
            active_ping: Some(now),
            ping_sent: now,
            last_ok: now,
            last_pong: now,
            excused: Excused::default(),
            way: Measured::default(),
            peer_save: Measured::default(),
            cmd_dialled: None,
            pubsub_dialled: None,
            cmd_never_lost: true,
            pubsub_never_lost: true,
            unrefused: 0,
            refusals: None,
            pubsub_heard: now,
            pubsub_established: false,
            pubsub_opening: 0,
            local_ip: None,
            refusal_logged: false,
            disorder_logged: false,
        }
    }

    /// Queues one command. False when there is no connection to carry it, or too much is unanswered.
    pub(super) fn command(&mut self, out: &mut Outbox, expect: Expect, args: &[&[u8]]) -> bool {
        let Some(conn) = self.cmd.id() else { return false };
        if !self.has_room(1) {
            return false;
        }
        let mut bytes = Vec::with_capacity(64);
        crate::resp::request(&mut bytes, args);
        if expect.tells_epoch() {
            out.send_telling(conn, bytes);
        } else {
            out.push(Effect::Send { conn, bytes });
        }
        self.pending.push_back(expect);
        true
    }

    /// Whether that many more commands may be under way. What must not be cut in two asks for all of it at once.
    pub(super) fn has_room(&self, commands: usize) -> bool {
        self.pending.len() + commands <= PENDING_PER_SHARER * self.sharers()
    }

    /// When a dial of the command connection is given up. While the silence of the node is no death yet there is to be time
    /// for another.
    fn stuck_cmd_at(&self, down_after: u64) -> Option<Millis> {
        let late = stuck_at(self.cmd)?;
        let soon = self.cmd.since()? + down_after / LOST_DIALS_TO_DEATH + 1;
        let in_time = self.silent_at(down_after).is_some_and(|death| soon < death);
        Some(if in_time { late.min(soon) } else { late })
    }

    /// The node lives at another address from now on. What was silent so far is the old one: a PING that is still unanswered
    /// there says nothing about the node here, whose silence counts from now on.
    pub(super) fn moves_to(&mut self, now: Millis, addr: Addr) {
        (self.addr, self.refusals) = (addr, None);
        (self.active_ping, self.last_ok) = (self.active_ping.map(|_| now), now);
        self.excused = Excused::default();
    }

    /// So many ms of its silence were ours.
    pub(super) fn excuse(&mut self, now: Millis, ms: u64) {
        let later = |at: Millis| (at + ms).min(now).max(at);
        (self.active_ping, self.last_ok) = (self.active_ping.map(later), later(self.last_ok));
    }

    /// To be called before the node is judged, or a dial given up. A start, or the loss of all connections at once, asks for
    /// thousands of dials, and the last of them begins seconds later: so long it was us who did not speak. That moves the
    /// clocks on, bit by bit as it is looked at, so that every moment that was reckoned with before is at most too early.
    ///
    /// Waits before the first dial of a silence are excused as they are, for without it there is little to know of the node by.
    /// Those of later ones only in part: where the line never gets shorter a dead node is to be found all the same.
    pub(super) fn stand_in_line(&mut self, now: Millis) {
        let waited = match self.cmd {
            Conn::InLine { since, .. } => now.since(since),
            _ => 0,
        };
        self.skip_line(now);
        let most = if self.excused.tried { EXCUSE_MOST } else { LINE_MOST };
        let more = waited.min(most.saturating_sub(self.excused.in_line));
        self.excused.in_line += more;
        self.excuse(now, more);
    }

    /// Leaves out what the dials have waited until now.
    pub(super) fn skip_line(&mut self, now: Millis) {
        for conn in [&mut self.cmd, &mut self.pubsub] {
            if let Conn::InLine { since, .. } = conn {
                *since = now.max(*since);
            }
        }
    }

    pub(super) fn ping(&mut self, out: &mut Outbox, now: Millis, name: &str) {
        if self.command(out, Expect::Ping, &[name.as_bytes()]) {
            self.ping_sent = now;
            self.active_ping.get_or_insert(now);
        }
    }
}

/// When a connection that is neither accepted nor refused is given up.
fn stuck_at(conn: Conn) -> Option<Millis> {
    match conn {
        Conn::InLine { since, .. } | Conn::Dialling { since, .. } => Some(since + DIAL_PATIENCE + 1),
        Conn::Down | Conn::Up { .. } => None,
    }
}

/// What the servers of this master call the command.
pub(super) fn renamed<'a>(settings: &'a Settings, command: &'a str) -> &'a str {
    let found = settings.rename_commands.iter().find(|(old, _)| old.alike(command));
    found.map_or(command, |(_, new)| new)
}

impl Sentinel {
    pub(super) fn add_link(&mut self, now: Millis, addr: Addr, owner: Owner) -> LinkId {
        let id = LinkId(self.fresh_id());
        self.links.insert(id, Link::new(id, addr, owner, now));
        self.dial_missing(now, id, u64::MAX);
        id
    }

    /// The link to a peer: the one it has already, or a new one.
    pub(super) fn peer_link(&mut self, now: Millis, run_id: RunId, addr: &Addr, master: MasterId) -> LinkId {
        if let Some(&id) = self.peer_links.get(&run_id) {
            let link = self.links.get_mut(&id).expect("peer_links names living links");
            if let Owner::Peer(_, masters) = &mut link.owner {
                masters.insert(master);
            }
            // Whoever had it alone has to reckon with the PINGs of another from now on. The others do already: with a
            // thousand masters in the file, to look at all of them for each of them would be most of a start.
            if link.sharers() == 2 {
                self.reconsider_users(id);
            }
            return id;
        }
        let id = self.add_link(now, addr.clone(), Owner::Peer(run_id, SortedSet::from_iter([master])));
        self.peer_links.insert(run_id, id);
        id
    }

    /// One sharer less; the last one closes the link.
    pub(super) fn leave_link(&mut self, id: LinkId, master: MasterId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if let Owner::Peer(run_id, masters) = &mut link.owner {
            masters.remove(&master);
            if !masters.is_empty() {
                if self.planted(Plant::HangUpOnSharers) {
                    self.hang_up(id, ConnKind::Command);
                }
                return;
            }
            self.peer_links.remove(run_id);
        }
        self.hang_up(id, ConnKind::Command);
        self.hang_up(id, ConnKind::PubSub);
        let link = self.links.remove(&id);
        self.forget_local(link.and_then(|link| link.local_ip));
    }

    /// One link less whose last connection was made from this address of ours.
    fn forget_local(&mut self, ip: Option<IpAddr>) {
        let Some(ip) = ip else { return };
        let links = self.local_ips.get_mut(&ip).expect("every link with an address of ours is counted");
        *links -= 1;
        if *links == 0 {
            self.local_ips.remove(&ip);
        }
    }

    /// Closes one connection from our side.
    pub(super) fn hang_up(&mut self, id: LinkId, kind: ConnKind) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let side = if kind == ConnKind::Command { &mut link.cmd } else { &mut link.pubsub };
        let Some(conn) = std::mem::replace(side, Conn::Down).id() else { return };
        self.conns.remove(&conn);
        if !self.planted(Plant::ForgetToHangUp) {
            self.out.push(Effect::Close { conn });
        }
        self.reconsider_users(id);
        if kind == ConnKind::Command {
            self.forget_pending(id);
        }
    }

    /// Nothing that was asked on the command connection will be answered any more.
    fn forget_pending(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let lost: Vec<_> = link.pending.drain(..).collect();
        for expect in lost {
            match expect {
                Expect::Exec(master, replica) => self.order_lost(master, replica),
                Expect::Priority(master, replica) => {
                    let replica = self.masters.get_mut(&master).and_then(|master| master.replicas.get_mut(&replica));
                    if let Some(replica) = replica.filter(|replica| replica.priority_told == Told::Asked) {
                        replica.priority_told = Told::No;
                    }
                }
                Expect::HandOver(master) => self.handover_unanswered(master),
                Expect::Released(master, side) => self.release_unanswered(master, side),
                _ => {}
            }
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        match link.owner.clone() {
            Owner::Master(master) => {
                if let Some(master) = self.masters.get_mut(&master) {
                    (master.node.info_asked, master.node.hello_asked) = (None, None);
                }
            }
            Owner::Replica(master, replica) => {
                let replica = self.masters.get_mut(&master).and_then(|master| master.replicas.get_mut(&replica));
                if let Some(replica) = replica {
                    (replica.node.info_asked, replica.node.hello_asked) = (None, None);
                }
            }
            Owner::Peer(_, masters) => {
                for &master in masters.iter() {
                    let Some(master) = self.masters.get_mut(&master) else { continue };
                    for peer in master.peers.values_mut().filter(|peer| peer.link == id) {
                        (peer.asking, peer.hello_asked) = (false, None);
                    }
                }
            }
        }
    }

    /// Redials from scratch, with the settings of this moment: new password, new address.
    pub(super) fn redial(&mut self, now: Millis, id: LinkId) {
        self.stand_in_line(now, id);
        self.hang_up(id, ConnKind::Command);
        self.hang_up(id, ConnKind::PubSub);
        self.end_refusals(id);
        if let Some(link) = self.links.get_mut(&id) {
            (link.cmd_dialled, link.pubsub_dialled, link.refusal_logged) = (None, None, false);
        }
        self.dial_missing(now, id, u64::MAX);
    }

    /// Drops what has been silent for too long and dials what is missing, each connection at most once a period.
    pub(super) fn tend_link(&mut self, now: Millis, id: LinkId, down_after: u64) {
        self.stand_in_line(now, id);
        let Some(link) = self.links.get(&id) else { return };
        let heard = self.heard(now);
        let come = |at: Option<Millis>| at.is_some_and(|at| at <= heard);
        let kept = |conn: Conn| conn.is_up() && self.planted(Plant::KeepSilentLinks);
        let cmd = come(self.drop_cmd_at(link, down_after)) && !kept(link.cmd);
        let pubsub = come(self.drop_pubsub_at(link)) && !kept(link.pubsub);
        let stuck = come(link.stuck_cmd_at(down_after)) || (come(stuck_at(link.pubsub)) && !link.pubsub_established);
        if stuck {
            self.end_refusals(id);
        }
        if cmd {
            self.hang_up(id, ConnKind::Command);
        }
        if pubsub {
            self.hang_up(id, ConnKind::PubSub);
        }
        self.dial_missing(now, id, down_after);
    }

    /// When the command connection is to be given up; `None` when there is no sign of that.
    pub(super) fn drop_cmd_at(&self, link: &Link, down_after: u64) -> Option<Millis> {
        let silent = link.active_ping.and_then(|since| self.mute_at(link, since.max(link.last_pong), down_after));
        [silent, link.stuck_cmd_at(down_after)].into_iter().flatten().min()
    }

    /// When a command connection on which nothing was heard since `since` is to be given up.
    pub(super) fn mute_at(&self, link: &Link, since: Millis, down_after: u64) -> Option<Millis> {
        Some((since + down_after / 2).max(link.cmd.since()? + self.tunables.min_link_reconnect_period) + 1)
    }

    /// When the Pub/Sub connection is to be given up; `None` while there is none.
    pub(super) fn drop_pubsub_at(&self, link: &Link) -> Option<Millis> {
        let (deaf, life) = (self.tunables.publish_period.saturating_mul(3), self.tunables.min_link_reconnect_period);
        let silent = link.pubsub.since().map(|since| (since + life).max(link.pubsub_heard + deaf) + 1);
        let stuck = stuck_at(link.pubsub).filter(|_| !link.pubsub_established);
        [silent, stuck].into_iter().flatten().min()
    }

    /// When the command connection may be dialled; `None` while there is one.
    pub(super) fn dial_cmd_at(&self, link: &Link, down_after: u64) -> Option<Millis> {
        if link.cmd != Conn::Down {
            return None;
        }
        let Some(last) = link.cmd_dialled else { return Some(Millis(0)) };
        let soon = last + self.tunables.ping_period.min(down_after / DIALS_TO_DEATH);
        let in_time = link.silent_at(down_after).is_some_and(|death| soon < death);
        Some(if in_time { soon } else { last + self.tunables.ping_period })
    }

    /// When the Pub/Sub connection may be dialled; `None` while there is one, or where there is none to be.
    pub(super) fn dial_pubsub_at(&self, link: &Link) -> Option<Millis> {
        let period = self.tunables.ping_period;
        let missing = link.pubsub == Conn::Down && !matches!(link.owner, Owner::Peer(..));
        missing.then(|| link.pubsub_dialled.map_or(Millis(0), |at| at + period))
    }

    fn dial_missing(&mut self, now: Millis, id: LinkId, down_after: u64) {
        let Some(link) = self.links.get(&id) else { return };
        let come = |at: Option<Millis>| at.is_some_and(|at| at <= now);
        let (cmd, pubsub) = (come(self.dial_cmd_at(link, down_after)), come(self.dial_pubsub_at(link)));
        if cmd {
            self.dial(now, id, ConnKind::Command);
        }
        if pubsub {
            self.dial(now, id, ConnKind::PubSub);
        }
    }

    /// Starts a connection and pipelines its opening, so that the first reply is one round trip away.
    pub(super) fn dial(&mut self, now: Millis, id: LinkId, kind: ConnKind) {
        let conn = ConnId(self.fresh_id());
        self.reconsider_users(id);
        let Some(link) = self.links.get_mut(&id) else { return };
        match kind {
            ConnKind::Command => link.cmd_dialled = Some(now),
            ConnKind::PubSub => link.pubsub_dialled = Some(now),
        }
        if link.addr.port == 0 {
            return;
        }
        if link.addr.is_named() && kind == ConnKind::Command {
            let addr = link.addr.clone();
            self.look_up(&addr);
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(ip) = link.addr.ip else { return };
        self.conns.insert(conn, (id, kind));
        self.out.connect(conn, SocketAddr::new(ip, link.addr.port), kind);

        let settings = match &link.owner {
            Owner::Master(master) | Owner::Replica(master, _) => self.masters.get(master).map(|m| &m.settings),
            Owner::Peer(..) => None,
        };
        let name = |command: &'static str| settings.map_or(command, |settings| renamed(settings, command)).as_bytes();
        let (user, password) = match settings {
            Some(settings) => (settings.auth_user.as_bytes(), settings.auth_pass.as_slice()),
            None if self.options.sentinel_pass.is_empty() => (&b""[..], self.identity.own_password.as_slice()),
            None => (self.options.sentinel_user.as_bytes(), self.options.sentinel_pass.as_slice()),
        };
        let short = &self.identity.myid.as_str()[..8];
        let client_name = match kind {
            ConnKind::Command => format!("sentinel-{short}-cmd"),
            ConnKind::PubSub => format!("sentinel-{short}-pubsub"),
        };
        let auth: Vec<&[u8]> = match (user, password) {
            (_, b"") => vec![],
            (b"", password) => vec![name("AUTH"), password],
            (user, password) => vec![name("AUTH"), user, password],
        };
        let setname: [&[u8]; 3] = [name("CLIENT"), b"SETNAME", client_name.as_bytes()];
        match kind {
            ConnKind::Command => {
                link.cmd = Conn::InLine { conn, since: now };
                if !auth.is_empty() {
                    link.command(&mut self.out, Expect::Auth, &auth);
                }
                link.command(&mut self.out, Expect::Ignored, &setname);
                let ping = settings.map_or("PING", |settings| renamed(settings, "PING"));
                link.ping(&mut self.out, now, ping);
            }
            ConnKind::PubSub => {
                link.pubsub = Conn::InLine { conn, since: now };
                link.pubsub_heard = now;
                link.pubsub_established = false;
                link.pubsub_opening = if auth.is_empty() { 1 } else { 2 };
                let mut bytes = Vec::with_capacity(160);
                if !auth.is_empty() {
                    crate::resp::request(&mut bytes, &auth);
                }
                crate::resp::request(&mut bytes, &setname);
                crate::resp::request(&mut bytes, &[name("SUBSCRIBE"), HELLO_CHANNEL]);
                self.out.push(Effect::Send { conn, bytes });
            }
        }
    }

    pub(super) fn stand_in_line(&mut self, now: Millis, id: LinkId) {
        let blamed = self.planted(Plant::BlameForOwnLine);
        if let Some(link) = self.links.get_mut(&id).filter(|_| !blamed) {
            link.stand_in_line(now);
        }
    }

    /// A connection that was asked for is being made: what was sent on it leaves from here on, and from here on the node may
    /// be silent.
    pub(super) fn begun(&mut self, now: Millis, conn: ConnId) {
        let Some(&(id, kind)) = self.conns.get(&conn) else { return };
        let Some(link) = self.links.get_mut(&id) else { return };
        link.stand_in_line(now);
        match kind {
            ConnKind::Command if matches!(link.cmd, Conn::InLine { .. }) => {
                link.cmd = Conn::Dialling { conn, since: now };
                (link.cmd_dialled, link.ping_sent) = (Some(now), now);
                if !std::mem::replace(&mut link.excused.tried, true) {
                    link.excused.in_line = 0;
                }
            }
            ConnKind::PubSub if matches!(link.pubsub, Conn::InLine { .. }) => {
                link.pubsub = Conn::Dialling { conn, since: now };
                (link.pubsub_dialled, link.pubsub_heard) = (Some(now), now);
            }
            // Once is enough.
            ConnKind::Command | ConnKind::PubSub => {}
        }
    }

    /// A PING that waited to be written is unanswered from now on only.
    pub(super) fn left(&mut self, now: Millis, conn: ConnId, since: Millis) {
        let Some(&(id, ConnKind::Command)) = self.conns.get(&conn) else { return };
        let Some(link) = self.links.get_mut(&id) else { return };
        let late = |at: Millis| if at >= since { now } else { at };
        (link.active_ping, link.ping_sent) = (link.active_ping.map(late), late(link.ping_sent));
    }

    pub(super) fn connected(&mut self, now: Millis, conn: ConnId, local: IpAddr) {
        let Some(&(id, kind)) = self.conns.get(&conn) else { return };
        self.end_refusals(id);
        let Some(link) = self.links.get_mut(&id) else { return };
        match kind {
            // It stands when the subscription is confirmed.
            ConnKind::PubSub => link.pubsub_established = true,
            ConnKind::Command => {
                link.cmd = Conn::Up { conn, since: now };
                let before = link.local_ip.replace(local);
                *self.local_ips.or_default(local) += 1;
                self.forget_local(before);
                self.greet(now, id);
                // A failover may have waited for just this connection.
                self.touch_owner(now, id);
            }
        }
    }

    pub(super) fn closed(&mut self, now: Millis, conn: ConnId, why: &Gone) {
        let Some((id, kind)) = self.conns.remove(&conn) else { return };
        let Some(link) = self.links.get_mut(&id) else { return };
        let (attempt, dialled) = match kind {
            ConnKind::Command => (!link.cmd.is_up(), link.cmd_dialled),
            ConnKind::PubSub => (!link.pubsub_established, link.pubsub_dialled),
        };
        let lasted = !attempt && dialled.is_some_and(|at| at + self.tunables.ping_period <= now);
        let refused = *why == Gone::Refused;
        let (side, never_lost, channel) = match kind {
            ConnKind::Command => (&mut link.cmd, &mut link.cmd_never_lost, "-cmd-link-reconnection"),
            ConnKind::PubSub => (&mut link.pubsub, &mut link.pubsub_never_lost, "-pubsub-link-reconnection"),
        };
        *side = Conn::Down;
        let at_once = !attempt && (std::mem::take(never_lost) || lasted);
        if kind == ConnKind::Command {
            match (attempt, refused, at_once) {
                (true, true, _) => link.note_refusal(now),
                (_, _, true) => link.unrefused = 0,
                _ => link.unrefused = link.unrefused.saturating_add(1),
            }
        }
        let why = match why {
            Gone::Refused => "Connection refused",
            Gone::Other(text) => text,
        };
        let who = self.name_of(&self.links[&id]);
        self.out.event(Level::Debug, channel, format!("{who} #{why}"));
        if kind == ConnKind::Command {
            self.forget_pending(id);
        }
        if attempt && !refused {
            self.end_refusals(id);
        }
        if at_once {
            // Most are a restart or a CLIENT KILL. But a node that answers and then hangs up, again and again, is dialled once a
            // period and not as fast as the wire carries it.
            self.dial(now, id, kind);
        }
        self.touch_owner(now, id);
    }

    /// Whose link it is, as events tell it. Of the masters that share the link of a peer the first is named.
    fn name_of(&self, link: &Link) -> String {
        let master = |id: &MasterId| self.masters.get(id);
        let name = match &link.owner {
            Owner::Master(id) => master(id).map(|master| self.out.master(master)),
            Owner::Replica(id, replica) => {
                master(id).and_then(|master| Some(self.out.replica(master, master.replicas.get(replica)?)))
            }
            Owner::Peer(_, masters) => masters.first().and_then(master).and_then(|master| {
                let peer = master.peers.values().find(|peer| peer.link == link.id)?;
                Some(self.out.peer(master, peer))
            }),
        };
        name.unwrap_or_else(|| link.addr.to_string())
    }

    /// Looks again at whoever uses this link: its state may decide something.
    pub(super) fn touch_owner(&mut self, now: Millis, id: LinkId) {
        let Some(link) = self.links.get(&id) else { return };
        match link.owner.clone() {
            Owner::Master(master) => self.act(now, master),
            Owner::Replica(master, _) => {
                self.judge_others(now, master);
                self.act(now, master);
            }
            Owner::Peer(run_id, masters) => {
                for &master in masters.iter() {
                    // A thousand masters and more may share a peer. Where nothing is going on, its link decides nothing but
                    // whether the peer is down, and when it is to be dialled.
                    if self.is_calm(master) {
                        self.judge_peer(now, master, run_id);
                        self.reconsider(master);
                    } else {
                        self.judge_others(now, master);
                        self.act(now, master);
                    }
                }
            }
        }
    }

    /// Whether there is nothing about this master in which a peer has a say, nor a dial on a grid of its own.
    fn is_calm(&self, id: MasterId) -> bool {
        let calm = |master: &Master| {
            let at_work = master.node.sdown.is_some() || master.odown.is_some() || master.failover.is_some();
            !at_work && master.settings.down_after_refused == 0
        };
        self.masters.get(&id).is_none_or(calm)
    }
}
