//! Epochs never go back: in memory within one life of a process, and on disk across all of them. The current epoch is one per
//! Sentinel; the epochs of a configuration and of the vote are one per master.

use super::facts::{Checker, Fact, Seen};
use super::groups;
use std::collections::BTreeMap;

/// What one place, a memory or a disk, has held last.
#[derive(Debug, Default)]
struct Epochs {
    current: u64,
    /// By master: of its configuration, and of our vote about it.
    masters: BTreeMap<&'static str, (u64, u64)>,
}

impl Epochs {
    /// Goes on to what it holds now.
    fn go_on<'a>(&mut self, current: u64, now: impl Iterator<Item = (&'a str, u64, u64)>) -> Result<(), String> {
        forward("current epoch", "", &mut self.current, current)?;
        // A master that an operator has removed begins anew.
        let before = std::mem::take(&mut self.masters);
        for (name, config, vote) in now.filter_map(|(name, config, vote)| Some((groups::known(name)?, config, vote))) {
            let mut epochs = before.get(name).copied().unwrap_or((config, vote));
            forward("config epoch of ", name, &mut epochs.0, config)?;
            forward("epoch of the vote about ", name, &mut epochs.1, vote)?;
            self.masters.insert(name, epochs);
        }
        Ok(())
    }
}

fn forward(which: &str, name: &str, before: &mut u64, now: u64) -> Result<(), String> {
    if now < *before {
        return Err(format!("the {which}{name} went from {before} back to {now}"));
    }
    *before = now;
    Ok(())
}

#[derive(Default)]
pub struct EpochsForward {
    /// With the life of the process.
    memory: BTreeMap<usize, (u64, Epochs)>,
    disk: BTreeMap<usize, Epochs>,
}

impl Checker for EpochsForward {
    fn name(&self) -> &'static str {
        "epochs-forward"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let who = seen.who + 1;
        match seen.fact {
            Fact::Replaced { .. } => {
                self.disk.remove(&seen.who);
                Ok(())
            }
            Fact::Removed { name } => {
                // Its configuration starts anew. Votes do not: they were given.
                let on_disk = self.disk.get_mut(&seen.who).into_iter();
                let in_memory = self.memory.get_mut(&seen.who).map(|(_, epochs)| epochs).into_iter();
                on_disk
                    .chain(in_memory)
                    .filter_map(|epochs| epochs.masters.get_mut(name))
                    .for_each(|epochs| epochs.0 = 0);
                Ok(())
            }
            Fact::Started | Fact::Durable { .. } => {
                let masters = seen.disk.masters.iter();
                let now = masters.map(|master| (&*master.name, master.config_epoch, master.leader_epoch));
                let went = self.disk.entry(seen.who).or_default().go_on(seen.disk.current_epoch, now);
                went.map_err(|what| format!("on the disk of s{who} {what}"))
            }
            Fact::TurnEnds | Fact::Event { .. } => {
                let (life, epochs) = self.memory.entry(seen.who).or_default();
                if *life != seen.life {
                    (*life, *epochs) = (seen.life, Epochs::default());
                }
                // A vote whose save failed is withdrawn, so in memory it may go back; what was told, and what the disk holds,
                // may not, and others watch that.
                let now = seen.sentinel.masters().map(|master| (&*master.name, master.config_epoch, 0));
                let went = epochs.go_on(seen.sentinel.current_epoch(), now);
                went.map_err(|what| format!("in the memory of s{who} {what}"))
            }
            _ => Ok(()),
        }
    }
}
