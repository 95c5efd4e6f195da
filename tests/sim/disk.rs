//! The disk of one Sentinel: the real text of its configuration file. What was synced is there after a crash,
//! nothing else.

use watchfire::base::Random;
use watchfire::config::{self, Loaded, Source};
use watchfire::core::Snapshot;

/// Mistakes of a disk, to show that the checkers see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskPlant {
    /// The rename was not synced: after a crash the file before the last one is back.
    OldFileAfterCrash,
    /// A save writes only the beginning of the text.
    TornFile,
}

#[derive(Debug)]
pub struct Disk {
    text: Vec<u8>,
    /// What the text means to a process that reads it.
    loaded: Loaded,
    plant: Option<DiskPlant>,
    /// The text before the last save, while a planted fault wants it back after a crash.
    older: Option<Vec<u8>>,
    random: Random,
    /// Saves fail while this stands.
    pub failing: bool,
    /// What one save takes, ms: lowest and highest.
    pub save_ms: (u64, u64),
}

impl Disk {
    /// A disk with a first file, as an operator wrote it.
    pub fn new(text: String, save_ms: (u64, u64), plant: Option<DiskPlant>, seed: u64) -> Disk {
        let text = text.into_bytes();
        let loaded = read(&text).expect("the operator's file is in order");
        Disk { text, loaded, plant, older: None, random: Random::seeded(seed), failing: false, save_ms }
    }

    /// Write, fsync, rename, fsync of the directory: all or nothing. An error is a file that cannot be read again.
    pub fn replace(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let mut text = config::rewrite(&self.text, snapshot, &self.loaded.server);
        match self.plant {
            Some(DiskPlant::OldFileAfterCrash) => self.older = Some(self.text.clone()),
            Some(DiskPlant::TornFile) => {
                let kept = text.len() - usize::try_from(self.random.below(200)).expect("a few bytes");
                text.truncate(kept);
            }
            None => {}
        }
        self.loaded = read(&text).map_err(|error| format!("{error}\n{}", String::from_utf8_lossy(&text)))?;
        self.text = text;
        Ok(())
    }

    /// What would survive now.
    pub fn load(&self) -> &Snapshot {
        &self.loaded.snapshot
    }

    /// What a process finds that starts now.
    pub fn load_after_crash(&mut self) -> &Snapshot {
        if let Some(older) = self.older.take() {
            self.loaded = read(&older).expect("it was read before");
            self.text = older;
        }
        self.load()
    }
}

fn read(text: &[u8]) -> Result<Loaded, String> {
    let no_includes = &mut |path: &str| Err(std::io::Error::other(format!("no {path} in this world")));
    config::read(text, Source::file("sentinel.conf"), no_includes).map_err(|error| error.to_string())
}
