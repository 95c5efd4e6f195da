//! What operators change: masters come and go, settings, options, the forced failover; and the snapshot.

use super::failover::Cause;
use super::ids::{Addr, LinkId, MasterId, is_host};
use super::model::{Master, Node, Owner, Role, VotedOther};
use super::operator::{Change, FailoverRefused, MonitorError, NoSuchMaster, Tunables, Vote};
use super::report::Outcome;
use super::snapshot::{KnownPeer, MasterSnapshot, Options, Settings, Snapshot};
use super::{Sentinel, current_addr};
use crate::base::{Alike, Millis, Shelf};

/// For so long after `SENTINEL MONITOR`, ms, what servers repeat may be of the time before a `SENTINEL REMOVE`: a replica hands
/// on what was published at its master while it synchronised.
const FORMER_LIFE: u64 = 5_000;

impl Sentinel {
    /// `SENTINEL MONITOR`. The host must be numeric unless `resolve-hostnames` is on.
    pub fn monitor(&mut self, now: Millis, name: &str, host: &str, port: u16, quorum: u32) -> Result<(), MonitorError> {
        self.notice_gap(now);
        if self.names.contains_key(name.as_bytes()) {
            return Err(MonitorError::DuplicateName);
        }
        let addr = is_host(host).then(|| Addr::new(host, port)).and_then(|addr| self.locate(addr));
        let addr = addr.ok_or(MonitorError::BadHost)?;
        let settings = Settings {
            down_after: self.tunables.default_down_after,
            failover_timeout: self.tunables.default_failover_timeout,
            ..Settings::with_quorum(quorum)
        };
        let id = self.add_master(now, name, addr, settings, (0, 0));
        if let Some(master) = self.masters.get_mut(&id) {
            // It may have been known and voted for before a REMOVE: votes are given in epochs yet to come.
            master.withdrawn_epoch = self.current_epoch;
            master.former_life = (self.current_epoch > 0).then_some((self.current_epoch, now + FORMER_LIFE));
        }
        self.out.mark_dirty();
        self.check_invariants();
        Ok(())
    }

    /// Adds a master and says so. `epochs`: of its configuration, and of our last vote about it.
    fn add_master(&mut self, now: Millis, name: &str, addr: Addr, settings: Settings, epochs: (u64, u64)) -> MasterId {
        let id = MasterId(self.fresh_id());
        let (quorum, port) = (settings.quorum, addr.port);
        let master = Master {
            id,
            name: name.into(),
            // The link is made below: it needs the master's settings for its password.
            node: Node::new(addr.clone(), LinkId(0), Role::Master, now),
            settings,
            config_epoch: epochs.0,
            hushed_until: None,
            former_life: None,
            durable_config_epoch: epochs.0,
            leader: None,
            leader_epoch: epochs.1,
            voted_at: now,
            voted_other: None,
            withdrawn_epoch: 0,
            durable_vote: Vote { leader: None, epoch: epochs.1 },
            odown: None,
            rebooted: None,
            replicas: Shelf::new(),
            peers: Shelf::new(),
            failover: None,
            attempt: None,
            retry_at: None,
            delay_logged: false,
            conflict_reported: None,
            crowd_reported: None,
            reached: None,
            armed: None,
            due: Millis(0),
            reports: None,
        };
        self.plan_new(&master);
        self.masters.insert(id, master);
        self.names.insert(name.as_bytes().into(), id);
        self.claims.touch();
        let link = self.add_link(now, addr, Owner::Master(id));
        if let Some(master) = self.masters.get_mut(&id) {
            master.node.link = link;
            let text = format!("{} quorum {quorum}", self.out.master(master));
            self.out.alert(master, "+monitor", text);
        }
        self.doubt_master(name, port);
        self.act(now, id);
        id
    }

    /// One master of the file, as it was saved. Its replicas and peers are no news, so nothing is said of them.
    pub(super) fn restore(&mut self, now: Millis, saved: &MasterSnapshot) {
        let addr = Addr::new(&saved.host, saved.port);
        let epochs = (saved.config_epoch, saved.leader_epoch);
        let id = self.add_master(now, &saved.name, addr.clone(), saved.settings.clone(), epochs);
        // A vote of another life is as good as one of this: its epoch is known here, whoever saved it.
        self.current_epoch = self.current_epoch.max(saved.config_epoch).max(saved.leader_epoch);
        self.durable_epoch = self.current_epoch;
        // Listen before talking. The group may have moved on while we were away, or have been set up anew with epochs
        // that start again, and what servers are told outlives its moment: a replica that is just being synchronised
        // gets what was published meanwhile when that is over. Peers are told at once, they know better or need it.
        let publish_period = self.tunables.publish_period;
        if let Some(master) = self.masters.get_mut(&id).filter(|master| master.config_epoch > 0) {
            master.hushed_until = Some(now + publish_period);
        }
        // For whom the file does not say. Where no configuration came of it, what somebody did with it may yet show.
        if saved.leader_epoch > saved.config_epoch
            && let Some(master) = self.masters.get_mut(&id)
        {
            master.voted_other = Some(VotedOther { epoch: saved.leader_epoch, since: now, last: now });
        }
        // A vote and no configuration: monitored anew, and stopped soon after.
        if saved.config_epoch == 0
            && saved.leader_epoch > 0
            && let Some(master) = self.masters.get_mut(&id)
        {
            master.former_life = Some((saved.leader_epoch, now + FORMER_LIFE));
        }
        for (host, port) in &saved.known_replicas {
            let Some(replica) = self.locate(Addr::new(host, *port)) else { continue };
            let known = self.masters[&id].replicas.values().any(|known| known.node.addr.same(&replica));
            if !replica.same(&addr) && !known {
                self.insert_replica(now, id, replica);
                self.out.mark_dirty();
            }
        }
        for peer in &saved.known_peers {
            let known = self.masters[&id].peers.values().any(|known| known.run_id == peer.run_id);
            if peer.run_id != self.identity.myid
                && peer.port != 0
                && !known
                && let Some(addr) = self.locate(Addr::new(&peer.host, peer.port))
            {
                self.insert_peer(now, id, peer.run_id, &addr);
            }
        }
    }

    /// `SENTINEL REMOVE`.
    pub fn remove(&mut self, now: Millis, name: &[u8]) -> Result<(), NoSuchMaster> {
        self.notice_gap(now);
        let id = self.master_by_name(name).ok_or(NoSuchMaster)?.id;
        let master = &self.masters[&id];
        let text = self.out.master(master);
        self.out.alert(master, "-monitor", text);
        self.end_failover(now, id, Outcome::Reset);
        let peers: Vec<_> = self.masters[&id].peers.keys().copied().collect();
        for peer in peers {
            self.drop_peer(id, peer);
        }
        let replicas: Vec<_> = self.masters[&id].replicas.keys().copied().collect();
        for replica in replicas {
            self.drop_replica(id, replica);
        }
        if let Some(master) = self.masters.remove(&id) {
            self.unplan(&master);
            self.names.remove(master.name.as_bytes());
            self.leave_link(master.node.link, id);
        }
        self.out.mark_dirty();
        self.check_invariants();
        Ok(())
    }

    /// `SENTINEL FAILOVER`; `coordinated`: the master itself is to hand over.
    ///
    /// # Errors
    /// Why none has begun.
    pub fn force_failover(&mut self, now: Millis, name: &[u8], coordinated: bool) -> Result<(), FailoverRefused> {
        self.notice_gap(now);
        let master = self.master_by_name(name).ok_or(FailoverRefused::NoSuchMaster)?;
        let id = master.id;
        if master.failover.is_some() {
            return Err(FailoverRefused::InProgress);
        }
        if self.tilt.is_some() {
            return Err(FailoverRefused::Tilt);
        }
        if self.save_retry.is_some() {
            return Err(FailoverRefused::Unsaved);
        }
        if self.current_epoch >= Snapshot::EPOCH_LAST {
            return Err(FailoverRefused::NoEpochLeft);
        }
        if coordinated && !Sentinel::can_hand_over(master) {
            return Err(FailoverRefused::NoGoodMaster);
        }
        if !self.may_have_candidate(now, master) {
            return Err(FailoverRefused::NoGoodReplica);
        }
        self.start_failover(now, id, if coordinated { Cause::Coordinated } else { Cause::Forced });
        self.act(now, id);
        self.check_invariants();
        Ok(())
    }

    /// `SENTINEL SET`, already validated: applies all changes, one `+set` each.
    pub fn set(&mut self, now: Millis, name: &[u8], changes: Vec<Change>) -> Result<(), NoSuchMaster> {
        self.notice_gap(now);
        let id = self.master_by_name(name).ok_or(NoSuchMaster)?.id;
        let mut redial = false;
        for change in changes {
            redial |= matches!(change, Change::AuthPass(_) | Change::AuthUser(_));
            let Some(master) = self.masters.get_mut(&id) else { break };
            let said = apply(&mut master.settings, change);
            let text = format!("{} {said}", self.out.master(master));
            self.out.alert(master, "+set", text);
            self.out.mark_dirty();
        }
        if redial {
            let master = &self.masters[&id];
            let links: Vec<LinkId> = std::iter::once(master.node.link)
                .chain(master.replicas.values().map(|replica| replica.node.link))
                .collect();
            for link in links {
                self.redial(now, link);
            }
        }
        // Another quorum or down-after can decide something at once.
        self.judge_others(now, id);
        self.act(now, id);
        self.check_invariants();
        Ok(())
    }

    /// `SENTINEL CONFIG SET`: the new options as a whole.
    pub fn set_options(&mut self, now: Millis, options: Options) {
        self.notice_gap(now);
        let new_credentials = (&options.sentinel_user, &options.sentinel_pass)
            != (&self.options.sentinel_user, &self.options.sentinel_pass);
        self.out.hostnames = options.announce_hostnames;
        let announces = |options: &Options| (options.announce_ip.clone(), options.resolve_hostnames);
        let announces_anew = announces(&self.options) != announces(&options);
        self.options = options;
        if announces_anew {
            self.doubt_announced();
        }
        self.out.mark_dirty();
        if new_credentials {
            self.redial_peers(now);
        }
        self.check_invariants();
    }

    /// Our own `requirepass` has changed: peers that share it are logged in to with it from now on.
    pub fn set_own_password(&mut self, now: Millis, password: &[u8]) {
        self.notice_gap(now);
        self.out.mark_dirty();
        if self.identity.own_password != password {
            self.identity.own_password = password.to_vec();
            if self.options.sentinel_pass.is_empty() {
                self.redial_peers(now);
            }
        }
        self.reconsider_all();
        self.check_invariants();
    }

    fn redial_peers(&mut self, now: Millis) {
        let links: Vec<LinkId> = self.peer_links.values().copied().collect();
        for link in links {
            self.redial(now, link);
        }
    }

    /// `SENTINEL DEBUG`: the new tunables as a whole.
    pub fn set_tunables(&mut self, now: Millis, tunables: Tunables) {
        self.notice_gap(now);
        self.tunables = tunables;
        let ids: Vec<MasterId> = self.masters.keys().copied().collect();
        for id in ids {
            self.act(now, id);
        }
        self.check_invariants();
    }

    pub fn simulate_failure(&mut self, flags: u32) {
        self.simulate_failure = flags;
    }

    /// `SENTINEL FLUSHCONFIG`: save even though nothing changed.
    pub fn flush_config(&mut self) {
        self.out.mark_dirty();
    }

    /// The durable state of this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            myid: Some(self.identity.myid),
            current_epoch: self.current_epoch,
            options: self.options.clone(),
            masters: self.masters.values().map(|master| self.master_snapshot(master)).collect(),
        }
    }

    fn master_snapshot(&self, master: &Master) -> MasterSnapshot {
        let current = current_addr(master);
        let known_replicas = master
            .replicas
            .values()
            .filter(|replica| !replica.hidden)
            // After a promotion the old master stands in the promoted node's place.
            .map(|replica| if replica.node.addr.same(current) { &master.node.addr } else { &replica.node.addr })
            .map(|addr| (self.out.host(addr), addr.port))
            .collect();
        let known_peers = master
            .peers
            .values()
            .map(|peer| KnownPeer { host: self.out.host(&peer.addr), port: peer.addr.port, run_id: peer.run_id })
            .collect();
        MasterSnapshot {
            name: master.name.to_string(),
            // The operator's own spelling, where it is still that node.
            host: if self.options.resolve_hostnames { current.host.to_string() } else { self.out.host(current) },
            port: current.port,
            settings: master.settings.clone(),
            config_epoch: master.config_epoch,
            // No vote is given in an epoch that was withdrawn, also after a restart.
            leader_epoch: master.leader_epoch.max(master.withdrawn_epoch),
            known_replicas,
            known_peers,
        }
    }
}

/// Applies one change; returns how `+set` tells it.
fn apply(settings: &mut Settings, change: Change) -> String {
    match change {
        Change::DownAfter(ms) => {
            settings.down_after = ms;
            format!("down-after-milliseconds {ms}")
        }
        Change::DownAfterRefused(ms) => {
            settings.down_after_refused = ms;
            format!("down-after-refused {ms}")
        }
        Change::PingPeriod(ms) => {
            settings.ping_period = ms;
            format!("ping-period {ms}")
        }
        Change::FailoverTimeout(ms) => {
            settings.failover_timeout = ms;
            format!("failover-timeout {ms}")
        }
        Change::ParallelSyncs(n) => {
            settings.parallel_syncs = n;
            format!("parallel-syncs {n}")
        }
        Change::Quorum(n) => {
            settings.quorum = n;
            format!("quorum {n}")
        }
        Change::RebootDownAfter(ms) => {
            settings.reboot_down_after = ms;
            format!("master-reboot-down-after-period {ms}")
        }
        Change::NotificationScript(path) => {
            let said = format!("notification-script {path}");
            settings.notification_script = path;
            said
        }
        Change::ClientReconfigScript(path) => {
            let said = format!("client-reconfig-script {path}");
            settings.client_reconfig_script = path;
            said
        }
        Change::AuthPass(password) => {
            settings.auth_pass = password;
            "auth-pass ******".into()
        }
        Change::AuthUser(user) => {
            let said = format!("auth-user {user}");
            settings.auth_user = user;
            said
        }
        Change::RenameCommand(old, new) => {
            let said = format!("rename-command {old} {new}");
            settings.rename_commands.retain(|known, _| !known.alike(&old));
            // Renamed to itself: as before.
            if !old.alike(&new) {
                settings.rename_commands.insert(old, new);
            }
            said
        }
    }
}
