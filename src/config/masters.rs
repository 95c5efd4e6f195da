//! From text to meaning: the second walk, over the `sentinel` lines. First those about the whole Sentinel, then the masters,
//! then what is said about them; so their order does not matter.

use super::directives::{self, Directive, Kind, Scope};
use super::error::{ConfigError, Fault};
use super::read::{Aside, Check, Must, Origin};
use super::statement::{self, Clause, NO_SUCH_MASTER, Statement};
use crate::base::Alike;
use crate::core::{Addr, KnownPeer, MasterSnapshot, RunId, Settings, Snapshot};
use std::collections::HashMap;

/// The masters and what is known about them.
#[derive(Default)]
pub(super) struct Masters {
    snapshot: Snapshot,
    /// Name to place in `snapshot.masters`.
    places: HashMap<String, usize>,
    /// What was said and by which line; to find lines that say a thing twice.
    said: HashMap<(Option<usize>, Topic), usize>,
    resolve: bool,
    pub notes: Vec<String>,
    pub checks: Vec<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Topic {
    Directive(&'static str),
    Replica(String, u16),
    Peer(RunId),
    Rename(String),
}

/// What to do with a line that speaks of something already spoken of.
enum Again {
    /// It says the same, or the earlier one counts.
    Skip,
    /// It counts instead of the earlier one.
    Replace,
}

impl Masters {
    pub fn load(&mut self, lines: &[Aside]) -> Result<(), ConfigError> {
        let phase = |line: &Aside| {
            let row = line.words.get(1).and_then(|name| directives::find_sentinel(name));
            match row {
                Some(row) if row.scope == Scope::Sentinel => 0,
                Some(row) if row.name == "monitor" => 1,
                _ => 2,
            }
        };
        let phases: Vec<u8> = lines.iter().map(phase).collect();
        self.said.reserve(lines.len());
        for wanted in 0..3 {
            for index in (0..lines.len()).filter(|&index| phases[index] == wanted) {
                self.line(lines, index).map_err(|fault| lines[index].error(fault))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, lines: &[Aside], index: usize) -> Result<(), Fault> {
        let line = &lines[index];
        let words = &line.words;
        if words.len() == 1 {
            return Ok(());
        }
        let row = statement::row_of(words)?;
        // An old form without id was never looked at, not even for its master.
        let old_form = row.name == "known-sentinel" && words.len() == 5;
        if row.scope == Scope::Master && row.name != "monitor" && !old_form {
            let known = std::str::from_utf8(&words[2]).is_ok_and(|name| self.places.contains_key(name));
            if !known {
                return Err(Fault::new(NO_SUCH_MASTER));
            }
        }
        let statement = Statement::parse(words)?;
        self.doubt(line, row);
        match statement {
            Statement::Bare => {}
            Statement::Useless(why) => self.notes.push(format!("{}: dropped {}: {why}", line.place(), row.full_name())),
            Statement::Inert(_, row) => self.inert(line, row),
            Statement::Monitor { master, host, port, quorum } => {
                self.monitor(lines, index, master, host, port, quorum)?;
            }
            Statement::Of(master, clause) => {
                let place = self.places[master];
                self.clause(lines, index, place, row, clause)?;
            }
            _ => self.whole(lines, index, row, statement),
        }
        Ok(())
    }

    /// Says how a number was read that others might read differently.
    fn doubt(&mut self, line: &Aside, row: &Directive) {
        let last = line.words.last().expect("a line has words");
        let is_epoch = row.name.ends_with("-epoch");
        let number = match (row.kind, row.name) {
            (Kind::Number, _) => last,
            (Kind::Node, _) => &line.words[4],
            _ => return,
        };
        let read = statement::number(number);
        if is_epoch && read > Snapshot::EPOCH_LAST.into() {
            let shown = String::from_utf8_lossy(number);
            self.notes.push(format!(
                "{}: {} '{shown}' is more than there can be and is read as {}: no election can be held any more. \
                 Set the epochs of all Sentinels of the group back while all of them are stopped",
                line.place(),
                row.full_name(),
                Snapshot::EPOCH_LAST
            ));
        } else if !statement::is_clean_number(number) {
            let shown = String::from_utf8_lossy(number);
            self.notes.push(format!("{}: {} '{shown}' is read as {read}", line.place(), row.full_name()));
        }
    }

    fn inert(&mut self, line: &Aside, row: &Directive) {
        self.notes.push(format!("{}: {} is ignored ({})", line.place(), row.full_name(), row.about));
    }

    /// A thing said twice. Where both lines say the same, one is enough. Where they differ, `conflict` tells what
    /// redis-sentinel does within one file: `None` lets the later one count, a text is fatal. Between files and the command
    /// line a later line always counts: an included file cannot be kept up to date by us, so the main file corrects it.
    fn again(
        &mut self,
        lines: &[Aside],
        key: (Option<usize>, Topic),
        index: usize,
        conflict: Option<&str>,
    ) -> Result<Option<Again>, Fault> {
        let Some(earlier) = self.said.insert(key.clone(), index) else { return Ok(None) };
        let (before, now) = (&lines[earlier], &lines[index]);
        if Statement::parse(&before.words) == Statement::parse(&now.words) {
            self.notes.push(format!("{}: repeats {}; one is enough", now.place(), before.place()));
            return Ok(Some(Again::Skip));
        }
        match conflict {
            Some(text) if before.origin == now.origin && before.file == now.file => {
                let hint = format!("{} said otherwise", before.place());
                Err(Fault::with_hint(text, hint))
            }
            // A master moves; what the file saved is younger than a command line that never changes.
            Some(_) if now.origin == Origin::Arguments => {
                self.notes.push(format!("{}: {} says otherwise and counts", now.place(), before.place()));
                self.said.insert(key, earlier);
                Ok(Some(Again::Skip))
            }
            _ => {
                self.notes.push(format!("{}: counts instead of {}", now.place(), before.place()));
                Ok(Some(Again::Replace))
            }
        }
    }

    fn whole(&mut self, lines: &[Aside], index: usize, row: &'static Directive, statement: Statement<'_>) {
        if let Statement::CurrentEpoch(epoch) = statement {
            // The largest counts: an epoch never goes back.
            self.snapshot.current_epoch = self.snapshot.current_epoch.max(epoch);
            return;
        }
        let again = self.again(lines, (None, Topic::Directive(row.name)), index, None);
        if matches!(again, Ok(Some(Again::Skip))) {
            return;
        }
        let options = &mut self.snapshot.options;
        match statement {
            Statement::MyId(id) => self.snapshot.myid = Some(id),
            Statement::DenyScriptsReconfig(yes) => options.deny_scripts_reconfig = yes,
            Statement::ResolveHostnames(yes) => {
                options.resolve_hostnames = yes;
                self.resolve = yes;
            }
            Statement::AnnounceHostnames(yes) => options.announce_hostnames = yes,
            Statement::AnnounceIp(text) => options.announce_ip = text.into(),
            Statement::AnnouncePort(port) => options.announce_port = port,
            Statement::SentinelUser(text) => options.sentinel_user = text.into(),
            Statement::SentinelPass(bytes) => options.sentinel_pass = bytes.into(),
            _ => unreachable!("the caller sorted the others out"),
        }
    }

    fn monitor(
        &mut self,
        lines: &[Aside],
        index: usize,
        name: &str,
        host: &str,
        port: u16,
        quorum: u32,
    ) -> Result<(), Fault> {
        let place = self.places.get(name).copied();
        if let Some(place) = place {
            let key = (Some(place), Topic::Directive("monitor"));
            if let Some(Again::Replace) = self.again(lines, key, index, Some("Duplicate master name."))? {
                self.resolvable(host)?;
                let master = &mut self.snapshot.masters[place];
                (master.host, master.port, master.settings.quorum) = (host.into(), port, quorum);
            }
            return Ok(());
        }
        self.resolvable(host)?;
        let place = self.snapshot.masters.len();
        self.places.insert(name.into(), place);
        self.said.insert((Some(place), Topic::Directive("monitor")), index);
        self.snapshot.masters.push(MasterSnapshot {
            name: name.into(),
            host: host.into(),
            port,
            settings: Settings::with_quorum(quorum),
            config_epoch: 0,
            leader_epoch: 0,
            known_replicas: Vec::new(),
            known_peers: Vec::new(),
        });
        Ok(())
    }

    /// Names are looked up while we run, not here; but without `resolve-hostnames` they never would be.
    fn resolvable(&self, host: &str) -> Result<(), Fault> {
        if statement::is_numeric(host) || (self.resolve && !host.is_empty()) {
            return Ok(());
        }
        let hint = if host.is_empty() { "the host is empty" } else { "names need: sentinel resolve-hostnames yes" };
        Err(Fault::with_hint("Can't resolve instance hostname.", hint))
    }

    fn clause(
        &mut self,
        lines: &[Aside],
        index: usize,
        place: usize,
        row: &'static Directive,
        clause: Clause<'_>,
    ) -> Result<(), Fault> {
        let line = &lines[index];
        let (topic, conflict) = match clause {
            Clause::KnownReplica(host, port) => {
                self.resolvable(host)?;
                (Topic::Replica(host.into(), port), None)
            }
            Clause::KnownSentinel(host, _, id) => {
                self.resolvable(host)?;
                (Topic::Peer(id), Some("Duplicate runid for sentinel."))
            }
            Clause::RenameCommand(old, _) => (
                Topic::Rename(old.to_ascii_lowercase()),
                Some("Same command renamed multiple times with rename-command."),
            ),
            Clause::RebootDownAfter(_) => (Topic::Directive("master-reboot-down-after-period"), None),
            _ => (Topic::Directive(row.name), None),
        };
        let again = self.again(lines, (Some(place), topic), index, conflict)?;
        if matches!(again, Some(Again::Skip)) {
            return Ok(());
        }
        let master = &mut self.snapshot.masters[place];
        let settings = &mut master.settings;
        match clause {
            Clause::DownAfter(ms) => settings.down_after = ms,
            Clause::DownAfterRefused(ms) => settings.down_after_refused = ms,
            Clause::PingPeriod(ms) => settings.ping_period = ms,
            Clause::FailoverTimeout(ms) => settings.failover_timeout = ms,
            Clause::ParallelSyncs(count) => settings.parallel_syncs = count,
            Clause::RebootDownAfter(ms) => settings.reboot_down_after = ms,
            Clause::NotificationScript(path) => {
                settings.notification_script = path.into();
                self.executable(line, path, "Notification script seems non existing or non executable.");
            }
            Clause::ClientReconfigScript(path) => {
                settings.client_reconfig_script = path.into();
                self.executable(line, path, "Client reconfiguration script seems non existing or non executable.");
            }
            Clause::AuthPass(bytes) => settings.auth_pass = bytes.into(),
            Clause::AuthUser(text) => settings.auth_user = text.into(),
            Clause::ConfigEpoch(epoch) => master.config_epoch = epoch,
            Clause::LeaderEpoch(epoch) => master.leader_epoch = epoch,
            Clause::KnownReplica(host, port) => {
                // Under the old and the new spelling, or once in an included file: the same replica all the same.
                if again.is_none() {
                    master.known_replicas.push((host.into(), port));
                }
            }
            Clause::KnownSentinel(host, port, run_id) => {
                master.known_peers.retain(|peer| again.is_none() || peer.run_id != run_id);
                master.known_peers.push(KnownPeer { host: host.into(), port, run_id });
            }
            Clause::RenameCommand(old, new) => {
                settings.rename_commands.retain(|known, _| again.is_none() || !known.alike(old));
                settings.rename_commands.insert(old.into(), new.into());
            }
        }
        Ok(())
    }

    fn executable(&mut self, line: &Aside, path: &str, message: &str) {
        if !path.is_empty() {
            let error = line.error(Fault::new(message));
            self.checks.push(Check { must: Must::BeExecutable, path: path.into(), error });
        }
    }

    /// What cannot be judged line by line.
    pub fn finish(self, notes: &mut Vec<String>) -> Snapshot {
        let mut snapshot = self.snapshot;
        let options = &snapshot.options;
        let named = |master: &&MasterSnapshot| Addr::new(&master.host, master.port).is_named();
        if options.resolve_hostnames
            && !options.announce_hostnames
            && let Some(master) = snapshot.masters.iter().find(named)
        {
            notes.push(format!(
                "{}: resolve-hostnames without announce-hostnames: clients are told addresses as they are seen from \
                 here, not names",
                master.name
            ));
        }
        for master in &mut snapshot.masters {
            snapshot.current_epoch = snapshot.current_epoch.max(master.config_epoch);
            let own = snapshot.myid;
            let (name, host, port) = (&master.name, &master.host, master.port);
            if master.settings.parallel_syncs == 0 {
                notes.push(format!("{name}: parallel-syncs is 0, which counts as 1"));
            }
            master.known_peers.retain(|peer| {
                let keep = Some(peer.run_id) != own;
                if !keep {
                    notes.push(format!("{name}: dropped a known-sentinel that has our own id"));
                }
                keep
            });
            master.known_replicas.retain(|replica| {
                let keep = replica.0 != *host || replica.1 != port;
                if !keep {
                    notes.push(format!("{name}: dropped a known-replica that is the master itself"));
                }
                keep
            });
        }
        snapshot
    }
}
