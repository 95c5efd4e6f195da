//! Everything that is written loads again and means the same.

use super::facts::{Checker, Fact, Seen};
use watchfire::core::{Identity, Sentinel, Snapshot};

pub struct LoadsAgain;

impl Checker for LoadsAgain {
    fn name(&self) -> &'static str {
        "loads-again"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Fact::Durable { written } = seen.fact else { return Ok(()) };
        let who = seen.who + 1;
        let (written, read) = (meaning(written), meaning(seen.disk));
        if written != read {
            return Err(format!("s{who} wrote {written:?}, and its file says {read:?}"));
        }
        let Some(myid) = seen.disk.myid else { return Err(format!("the file of s{who} has no myid")) };
        let identity = Identity { myid, port: 26379, own_password: Vec::new() };
        let again = meaning(&Sentinel::new(identity, seen.disk, 0, seen.now).snapshot());
        if again != read {
            return Err(format!("the file of s{who} says {read:?}, and a Sentinel makes {again:?} of it"));
        }
        Ok(())
    }
}

/// The order of masters and of nodes means nothing.
fn meaning(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    snapshot.masters.sort_by(|one, other| one.name.cmp(&other.name));
    for master in &mut snapshot.masters {
        master.known_replicas.sort();
        master.known_peers.sort_by_key(|peer| peer.run_id);
    }
    snapshot
}
