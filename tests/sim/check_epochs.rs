//! Epochs never go back: in memory within one life of a process, and on disk across all of them.

use super::facts::{Checker, Fact, Seen};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Epochs {
    current: u64,
    config: u64,
    vote: u64,
}

impl Epochs {
    /// The first of `self` that lies behind `before`.
    fn behind(self, before: Epochs) -> Option<String> {
        [
            ("current epoch", before.current, self.current),
            ("config epoch", before.config, self.config),
            ("epoch of its vote", before.vote, self.vote),
        ]
        .into_iter()
        .find(|(_, before, now)| now < before)
        .map(|(which, before, now)| format!("{which} went from {before} back to {now}"))
    }
}

#[derive(Default)]
pub struct EpochsForward {
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
            Fact::Removed => {
                // Its configuration starts anew. Votes do not: they were given.
                let on_disk = self.disk.get_mut(&seen.who).into_iter();
                let in_memory = self.memory.get_mut(&seen.who).map(|(_, epochs)| epochs).into_iter();
                on_disk.chain(in_memory).for_each(|epochs| epochs.config = 0);
                Ok(())
            }
            Fact::Started | Fact::Durable { .. } => {
                let master = seen.disk.masters.first();
                let now = Epochs {
                    current: seen.disk.current_epoch,
                    config: master.map_or(0, |master| master.config_epoch),
                    vote: master.map_or(0, |master| master.leader_epoch),
                };
                let mut before = self.disk.insert(seen.who, now).unwrap_or_default();
                if master.is_none() {
                    // An operator has removed it, and all that was known about it.
                    before = Epochs { current: before.current, ..now };
                }
                now.behind(before).map_or(Ok(()), |what| Err(format!("on the disk of s{who} the {what}")))
            }
            Fact::TurnEnds | Fact::Event { .. } => {
                let master = seen.master();
                let now = Epochs {
                    current: seen.sentinel.current_epoch(),
                    config: master.map_or(0, |master| master.config_epoch),
                    // A vote whose save failed is withdrawn, so in memory it may go back; what was told, and
                    // what the disk holds, may not, and others watch that.
                    vote: 0,
                };
                let mut before = self.memory.insert(seen.who, (seen.life, now));
                if let (None, Some((_, before))) = (master, &mut before) {
                    *before = Epochs { current: before.current, ..now };
                }
                let before = before.filter(|&(life, _)| life == seen.life).map(|(_, epochs)| epochs);
                let behind = now.behind(before.unwrap_or_default());
                behind.map_or(Ok(()), |what| Err(format!("in the memory of s{who} the {what}")))
            }
            _ => Ok(()),
        }
    }
}
