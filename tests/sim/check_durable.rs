//! No message before the save it rests on: the epoch or vote it tells is on the disk at that very moment.
//! That holds while a disk refuses every save, too: what a crash can undo was never said.

use super::facts::{Checker, Fact, Seen};

pub struct SavedFirst;

impl Checker for SavedFirst {
    fn name(&self) -> &'static str {
        "saved-first"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let disk = seen.disk;
        let who = seen.who + 1;
        let on_disk = |what: &str, told: u64, saved: u64| {
            if told <= saved {
                return Ok(());
            }
            Err(format!("s{who} tells {what} {told} while its disk holds {saved}"))
        };
        match &seen.fact {
            Fact::Hello(hello) => {
                on_disk("in a hello the current epoch", hello.epoch, disk.current_epoch)?;
                let master = disk.masters.iter().find(|master| master.name == hello.master);
                // A hello may still be on its way out when an operator removes what it tells of.
                master.map_or(Ok(()), |master| {
                    on_disk("in a hello the config epoch", hello.config_epoch, master.config_epoch)
                })
            }
            Fact::Asks { epoch, .. } => on_disk("in a question the epoch", *epoch, disk.current_epoch),
            Fact::Answers { vote, .. } => {
                // Which group was asked about is the address; with one group it is the only one. Where an operator has
                // removed it in the same turn, the file has no line for the vote. But whoever monitors it again votes in no
                // epoch up to the current one, so that is what has to be there.
                let saved = disk.masters.iter().map(|master| master.leader_epoch).max();
                let saved = saved.unwrap_or(disk.current_epoch);
                on_disk("in an answer a vote of epoch", vote.epoch, saved)
            }
            _ => Ok(()),
        }
    }
}
