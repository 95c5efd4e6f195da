//! The disk of one Sentinel: what was synced is there after a crash, nothing else.
//!
//! It holds the state as plain data for now; once `config` can write it, the real text of the file.

use watchfire::core::Snapshot;

#[derive(Clone, Debug)]
pub struct Disk {
    durable: Snapshot,
    /// The state before the last save, while the planted fault wants it back after a crash.
    older: Option<Snapshot>,
    forgets: bool,
    /// Saves fail while this stands.
    pub failing: bool,
    /// What one save takes, ms: lowest and highest.
    pub save_ms: (u64, u64),
}

impl Disk {
    /// A disk with a first file. `forgets` plants a mistake: the last rename is undone by a crash.
    pub fn new(first: Snapshot, save_ms: (u64, u64), forgets: bool) -> Disk {
        Disk { durable: first, older: None, forgets, failing: false, save_ms }
    }

    /// Write, fsync, rename, fsync of the directory: all or nothing.
    pub fn replace(&mut self, snapshot: Snapshot) {
        let before = std::mem::replace(&mut self.durable, snapshot);
        if self.forgets {
            self.older = Some(before);
        }
    }

    /// What would survive now.
    pub fn load(&self) -> &Snapshot {
        &self.durable
    }

    /// What a process finds that starts now.
    pub fn load_after_crash(&mut self) -> &Snapshot {
        if let Some(older) = self.older.take() {
            self.durable = older;
        }
        &self.durable
    }
}
