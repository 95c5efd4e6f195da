//! Notification and reconfiguration scripts: starting, killing and collecting them.
//!
//! *When* a script runs, how often it is tried again and how long it may take is the core's business; here
//! are only the processes. A script gets our environment, nothing on its standard input, no descriptor of
//! ours (std opens everything close-on-exec) and a process group of its own, so that the one that ran too
//! long takes what it started with it.

use super::sys;
use crate::base::Sorted;
use crate::core::{Input, ScriptId};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[derive(Debug, Default)]
pub struct Scripts {
    /// The process of each script that runs.
    running: Sorted<u32, ScriptId>,
}

impl Scripts {
    /// Starts `argv`; says whether that went well. The end is told by a later `reap`.
    #[must_use]
    pub fn start(&mut self, script: ScriptId, argv: &[String]) -> Input {
        let Some((path, arguments)) = argv.split_first() else {
            return Input::ScriptFailed { script, forked: false, why: "no script given".into() };
        };
        // A name without a slash is a file where we are, as it was when the configuration was checked: PATH is not asked.
        let path = if path.contains('/') { path.clone() } else { format!("./{path}") };
        match Command::new(path).args(arguments).stdin(Stdio::null()).process_group(0).spawn() {
            Ok(child) => {
                // The handle is let go on purpose: `reap` collects by process id, ours and strangers alike.
                self.running.insert(child.id(), script);
                Input::ScriptStarted { script, pid: child.id() }
            }
            Err(why) => {
                // What the two steps report when the process table or the memory is full only fork does.
                let forked = !matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory);
                Input::ScriptFailed { script, forked, why: why.to_string() }
            }
        }
    }

    /// Ends a script; `reap` reports it as it does any other.
    pub fn kill(&self, script: ScriptId) {
        for (&pid, &running) in self.running.iter() {
            if running == script {
                sys::kill_group(pid);
            }
        }
    }

    /// Collects every child that has ended. Those that are no scripts of ours (we may be process 1 of a
    /// container and inherit orphans) are collected without a word.
    #[must_use]
    pub fn reap(&mut self) -> Vec<Input> {
        let mut ended = Vec::new();
        while let Some(child) = sys::reap() {
            if let Some(script) = self.running.remove(&child.pid) {
                ended.push(Input::ScriptEnded { script, code: child.code, signal: child.signal });
            }
        }
        ended
    }
}
