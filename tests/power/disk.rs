//! What a disk may hold after a power cut.
//!
//! The worst that POSIX allows, not what one file system does: of a file, what was synced is there, and of what was
//! written since, anything from nothing to all of it; of the names in a folder, those that stood when the folder was
//! synced, and of the changes since, any choice in their order. A rename happens or does not.

use std::collections::{BTreeMap, BTreeSet};

use super::trace::Step;

/// Names and contents.
pub type Folder = BTreeMap<String, Vec<u8>>;

/// A folder with more changes than this between two syncs has too many outcomes to look at all of them.
const MOST_CHANGES: usize = 10;

#[derive(Clone, Default)]
struct File {
    synced: Vec<u8>,
    now: Vec<u8>,
}

impl File {
    /// All that a reader may find: nothing of the new, all, its first half, or its length alone.
    fn outcomes(&self) -> Vec<Vec<u8>> {
        let mut outcomes = vec![self.now.clone()];
        if self.now != self.synced {
            let torn = self.now[..self.now.len() / 2].to_vec();
            outcomes.extend([self.synced.clone(), torn, vec![0; self.now.len()]]);
        }
        outcomes
    }
}

/// A change of the folder that is not synced yet.
enum Change {
    Name(String, usize),
    Move(String, String, usize),
    Forget(String),
}

#[derive(Default)]
pub struct Disk {
    files: Vec<File>,
    /// The names that running programs see, and those that are synced.
    now: BTreeMap<String, usize>,
    synced: BTreeMap<String, usize>,
    changes: Vec<Change>,
}

impl Disk {
    /// A disk with one file on it, safe.
    pub fn with(name: &str, text: &[u8]) -> Disk {
        let file = File { synced: text.to_vec(), now: text.to_vec() };
        let names = BTreeMap::from([(name.to_string(), 0)]);
        Disk { files: vec![file], now: names.clone(), synced: names, changes: Vec::new() }
    }

    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Create(name) => {
                self.files.push(File::default());
                let file = self.files.len() - 1;
                self.now.insert(name.clone(), file);
                self.changes.push(Change::Name(name.clone(), file));
            }
            Step::Write(name, bytes) => {
                let file = self.now[name];
                self.files[file].now.extend(bytes);
            }
            Step::Sync(name) => {
                let file = &mut self.files[self.now[name]];
                file.synced.clone_from(&file.now);
            }
            Step::SyncFolder => {
                self.changes.clear();
                self.synced.clone_from(&self.now);
            }
            Step::Rename(from, to) => {
                let file = self.now.remove(from).expect("a file that is there");
                self.now.insert(to.clone(), file);
                self.changes.push(Change::Move(from.clone(), to.clone(), file));
            }
            Step::Remove(name) => {
                self.now.remove(name);
                self.changes.push(Change::Forget(name.clone()));
            }
            Step::Say(_) => {}
        }
    }

    /// Everything that may be found after a cut now.
    pub fn after_cut(&self) -> BTreeSet<Folder> {
        assert!(self.changes.len() <= MOST_CHANGES, "{} changes without a sync of the folder", self.changes.len());
        let mut found = BTreeSet::new();
        for choice in 0..1 << self.changes.len() {
            let mut names = self.synced.clone();
            let chosen = self.changes.iter().enumerate().filter(|(index, _)| choice & (1 << index) != 0);
            for (_, change) in chosen {
                match change {
                    Change::Name(name, file) => {
                        names.insert(name.clone(), *file);
                    }
                    Change::Move(from, to, file) => {
                        names.remove(from);
                        names.insert(to.clone(), *file);
                    }
                    Change::Forget(name) => {
                        names.remove(name);
                    }
                }
            }
            let mut folders = vec![Folder::new()];
            for (name, file) in names {
                let outcomes = self.files[file].outcomes();
                folders = folders
                    .iter()
                    .flat_map(|folder| {
                        outcomes.iter().map(|text| {
                            let mut folder = folder.clone();
                            folder.insert(name.clone(), text.clone());
                            folder
                        })
                    })
                    .collect();
            }
            found.extend(folders);
        }
        found
    }
}
