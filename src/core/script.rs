//! Scripts: notification and client-reconfig. The core keeps the queue and the clock; the shell runs them.

use super::Sentinel;
use super::effect::{Effect, Level};
use super::ids::{Addr, MasterId, ScriptId};
use super::operator::PendingScript;
use crate::base::Millis;
use std::collections::VecDeque;

/// Scripts waiting or running; beyond that the oldest that does not run is dropped.
const QUEUE_MAX: usize = 256;
const RUNNING_MAX: usize = 16;
const TRIES_MAX: u32 = 10;

#[derive(Debug, Default)]
pub(super) struct ScriptQueue {
    queue: VecDeque<Script>,
}

#[derive(Debug)]
struct Script {
    id: ScriptId,
    argv: Vec<String>,
    tries: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting {
        until: Millis,
    },
    /// `pid` is 0 until the shell has said it.
    Running {
        since: Millis,
        pid: u32,
        killed: bool,
    },
}

impl Script {
    /// 0 while it does not run.
    fn pid(&self) -> u32 {
        match self.state {
            State::Running { pid, .. } => pid,
            State::Waiting { .. } => 0,
        }
    }
}

impl ScriptQueue {
    pub(super) fn pending(&self, now: Millis) -> Vec<PendingScript> {
        let show = |script: &Script| PendingScript {
            argv: script.argv.clone(),
            running: matches!(script.state, State::Running { .. }),
            pid: script.pid(),
            time: match script.state {
                State::Running { since, .. } => now.since(since),
                State::Waiting { until } => until.since(now),
            },
            retries: script.tries.saturating_sub(1),
        };
        self.queue.iter().map(show).collect()
    }

    /// How many run, and how many stand in the queue in all.
    pub(super) fn counts(&self) -> (usize, usize) {
        let running = self.queue.iter().filter(|script| matches!(script.state, State::Running { .. })).count();
        (running, self.queue.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn position(&self, id: ScriptId) -> Option<usize> {
        self.queue.iter().position(|script| script.id == id)
    }
}

impl Sentinel {
    /// Scripts that run, and scripts in the queue, running ones included.
    #[must_use]
    pub fn script_counts(&self) -> (usize, usize) {
        self.scripts.counts()
    }

    pub(super) fn queue_script(&mut self, now: Millis, argv: Vec<String>) {
        let id = ScriptId(self.fresh_id());
        let queue = &mut self.scripts.queue;
        if queue.len() >= QUEUE_MAX
            && let Some(oldest) = queue.iter().position(|script| matches!(script.state, State::Waiting { .. }))
        {
            queue.remove(oldest);
        }
        queue.push_back(Script { id, argv, tries: 0, state: State::Waiting { until: now } });
    }

    /// `<name> leader|observer start <from-ip> <from-port> <to-ip> <to-port>`
    pub(super) fn run_reconfig_script(&mut self, id: MasterId, role: &str, from: &Addr, to: &Addr) {
        let Some(master) = self.masters.get(&id) else { return };
        let script = &master.settings.client_reconfig_script;
        if script.is_empty() {
            return;
        }
        let argv = vec![
            script.clone(),
            master.name.to_string(),
            role.to_owned(),
            "start".to_owned(),
            self.out.host(from),
            from.port.to_string(),
            self.out.host(to),
            to.port.to_string(),
        ];
        self.out.scripts.push(argv);
    }

    /// From the cron: starts what is due, kills what runs too long.
    pub(super) fn run_scripts(&mut self, now: Millis) {
        for argv in std::mem::take(&mut self.out.scripts) {
            self.queue_script(now, argv);
        }
        let (mut running, _) = self.scripts.counts();
        for script in &mut self.scripts.queue {
            match &mut script.state {
                State::Waiting { until } if *until <= now && running < RUNNING_MAX => {
                    script.tries += 1;
                    script.state = State::Running { since: now, pid: 0, killed: false };
                    running += 1;
                    self.out.push(Effect::RunScript { script: script.id, argv: script.argv.clone() });
                }
                State::Running { since, pid, killed }
                    if !*killed && now.since(*since) > self.tunables.script_max_runtime =>
                {
                    *killed = true;
                    self.out.event(Level::Warning, "-script-timeout", format!("{} {pid}", script.argv[0]));
                    self.out.push(Effect::KillScript { script: script.id });
                }
                _ => {}
            }
        }
    }

    pub(super) fn script_started(&mut self, id: ScriptId, started: u32) {
        let Some(at) = self.scripts.position(id) else { return };
        if let State::Running { pid, .. } = &mut self.scripts.queue[at].state {
            *pid = started;
            self.out.event(Level::Debug, "+script-child", started.to_string());
        }
    }

    /// Exit code 1 and signals are tried again, later and later; other codes are an error and the end.
    pub(super) fn script_ended(&mut self, now: Millis, id: ScriptId, code: Option<i32>, signal: Option<i32>) {
        let Some(at) = self.scripts.position(id) else { return };
        let script = &mut self.scripts.queue[at];
        let text = format!("{} {} {}", script.pid(), code.unwrap_or(0), signal.unwrap_or(0));
        self.out.event(Level::Debug, "-script-child", text);
        let again = (signal.is_some() || code == Some(1)) && script.tries < TRIES_MAX;
        if again {
            let delay = self.tunables.script_retry_delay.saturating_mul(1 << (script.tries - 1));
            script.state = State::Waiting { until: now + delay };
            return;
        }
        if code != Some(0) {
            let text = format!("{} {} {}", script.argv[0], signal.unwrap_or(0), code.unwrap_or(0));
            self.out.event(Level::Warning, "-script-error", text);
        }
        self.scripts.queue.remove(at);
    }

    /// Told as redis-sentinel tells it: there is no process (99), or there was one that did not become the script (exit 2).
    pub(super) fn script_failed(&mut self, id: ScriptId, forked: bool, why: &str) {
        let Some(at) = self.scripts.position(id) else { return };
        let Some(script) = self.scripts.queue.remove(at) else { return };
        self.out.log(Level::Warning, format!("Script {} could not be started: {why}", script.argv[0]));
        self.out.event(
            Level::Warning,
            "-script-error",
            format!("{} {}", script.argv[0], if forked { "0 2" } else { "99 0" }),
        );
    }
}
