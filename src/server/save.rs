//! Making the state durable: the configuration file is replaced as a whole, or not at all.
//!
//! A new file beside the old one is written, synced and renamed over it, and then the directory is synced:
//! after a crash there is either the old text or the new one. Where the file cannot be replaced (it alone is
//! bind-mounted: EBUSY, EXDEV; or its directory is not ours to write, or to read and so to sync: EACCES, EPERM, EROFS)
//! it is rewritten in place and synced, which survives everything but a crash in the middle of that write.
//!
//! A crash in the middle leaves the new file behind under its temporary name; the next start removes it. That name says whose
//! it is: `sentinel.conf.backup` would fit a mere six letters as well, and is not ours to remove.
//!
//! What is rewritten is the text that stands on disk, comments and order included. The last text is kept in
//! memory, and read again only when `stat` says that somebody else changed the file.

use super::sys;
use std::ffi::OsStr;
use std::fs::{DirEntry, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// What the names of our temporary files have behind that of the file, and how many letters follow.
const TEMPORARY: &str = ".watchfire-";
const LETTERS: usize = 6;

/// The configuration file and what we believe it holds.
#[derive(Debug)]
pub struct ConfigFile {
    /// Links are followed once, at the start: replacing a link by a file would surprise whoever made it.
    path: PathBuf,
    text: Vec<u8>,
    /// How the file looked when `text` was read or written.
    seen: Option<Stamp>,
    /// `text` was written and synced by us.
    durable: bool,
    /// Said in the log already.
    in_place_told: bool,
    failing: Option<String>,
}

/// Changes whenever the file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Stamp {
        Stamp { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified: (meta.mtime(), meta.mtime_nsec()) }
    }
}

impl ConfigFile {
    /// Reads the file; it must exist.
    pub fn read(path: &Path) -> io::Result<ConfigFile> {
        let path = path.canonicalize()?;
        let text = std::fs::read(&path)?;
        let seen = std::fs::metadata(&path).ok().map(|meta| Stamp::of(&meta));
        Ok(ConfigFile { path, text, seen, durable: false, in_place_told: false, failing: None })
    }

    /// Removes what a crash during a save has left beside it.
    pub fn remove_leftovers(&self) {
        remove_leftovers(&self.path);
    }

    /// Whether we may write it. Changes nothing.
    pub fn check_writable(&self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.path).map(drop)
    }

    /// Replaces the text by what `rewrite` makes of the present one. True when the new text is durable.
    /// A failure, and the end of a row of failures, is said in the log once.
    pub fn save(&mut self, rewrite: impl FnOnce(&[u8]) -> Vec<u8>) -> bool {
        let present = std::fs::metadata(&self.path).ok().map(|meta| Stamp::of(&meta));
        let untouched = present.is_some() && present == self.seen;
        if !untouched && let Ok(text) = std::fs::read(&self.path) {
            self.text = text;
        }
        let text = rewrite(&self.text);
        if untouched && self.durable && text == self.text {
            return true;
        }
        let outcome = self.write(&text);
        // Taken in any case: after a failed write in place the file is neither old nor new.
        self.seen = std::fs::metadata(&self.path).ok().map(|meta| Stamp::of(&meta));
        self.durable = outcome.is_ok();
        match outcome {
            Ok(()) => {
                self.text = text;
                log::info!("Sentinel new configuration saved on disk");
                if self.failing.take().is_some() {
                    log::warn!("The configuration file {} can be written again.", self.path.display());
                }
                true
            }
            Err(why) => {
                let why = why.to_string();
                if self.failing.as_ref() != Some(&why) {
                    log::warn!(
                        "WARNING: the new state could not be saved in {}: {why}. Going on without; it is tried again.",
                        self.path.display()
                    );
                    self.failing = Some(why);
                }
                false
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match replace(&self.path, text) {
            Err(why) if needs_write_in_place(&why) => {
                write_in_place(&self.path, text)?;
                if !self.in_place_told {
                    self.in_place_told = true;
                    log::warn!(
                        "{} cannot be replaced ({why}); it is rewritten in place, which a crash can interrupt.",
                        self.path.display()
                    );
                }
                Ok(())
            }
            other => other,
        }
    }
}

/// Puts the text in the place of another file of ours, such as that of the users, in the same way.
pub fn store(path: &Path, text: &[u8]) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match replace(&path, text) {
        Err(why) if needs_write_in_place(&why) && path.is_file() => write_in_place(&path, text),
        other => other,
    }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    // Before anything is written: a rename whose directory cannot be opened cannot be made to last, and a file rewritten in
    // place can.
    let directory = File::open(directory_of(path))?;
    let (temporary, mut file) = create_beside(path)?;
    let filled =
        fill(&mut file, text, std::fs::metadata(path).ok().as_ref()).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(why) = filled {
        let _ = std::fs::remove_file(&temporary);
        return Err(why);
    }
    match directory.sync_all() {
        // Some network file systems know no sync of a directory; there is nothing more to ask of them.
        Err(why) if why.kind() == io::ErrorKind::InvalidInput || why.kind() == io::ErrorKind::Unsupported => Ok(()),
        // The file is replaced by now, so it is too late for another way: whatever the reason, this save has failed.
        Err(why) => Err(io::Error::other(format!("the rename is not on disk: {why}"))),
        Ok(()) => Ok(()),
    }
}

/// Removes the temporary files of earlier runs that died while they replaced `path`. Nobody else may be replacing it now.
pub fn remove_leftovers(path: &Path) {
    // Through links, as they are left beside the file itself.
    let Ok(path) = &path.canonicalize() else { return };
    let Ok(owner) = std::fs::metadata(path).map(|meta| meta.uid()) else { return };
    let owners = [owner, sys::user()];
    for leftover in leftovers(path, &owners) {
        match std::fs::remove_file(&leftover) {
            Ok(()) => log::info!("Removed {}, which an interrupted save had left behind.", leftover.display()),
            Err(why) => log::warn!("{} is left from an interrupted save and stays: {why}", leftover.display()),
        }
    }
}

/// Regular files beside `path` that have our kind of temporary name and belong to one of `owners`.
fn leftovers(path: &Path, owners: &[u32]) -> Vec<PathBuf> {
    let Some(name) = path.file_name().map(OsStr::as_bytes) else { return Vec::new() };
    let is_ours = |entry: &DirEntry| {
        let letters = entry.file_name();
        let letters = letters.as_bytes().strip_prefix(name).and_then(|rest| rest.strip_prefix(TEMPORARY.as_bytes()));
        letters.is_some_and(|letters| letters.len() == LETTERS && letters.iter().all(u8::is_ascii_lowercase))
            // Of the entry itself: a link is none of ours, wherever it leads.
            && entry.metadata().is_ok_and(|meta| meta.is_file() && owners.contains(&meta.uid()))
    };
    let Ok(entries) = std::fs::read_dir(directory_of(path)) else { return Vec::new() };
    entries.flatten().filter(is_ours).map(|entry| entry.path()).collect()
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => Path::new("/"),
    }
}

/// A new file next to `path`, readable by nobody else yet, under a name that nobody has.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    for _ in 0..100 {
        let mut noise = [0u8; LETTERS];
        sys::entropy(&mut noise)?;
        let suffix: String = noise.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
        let mut name = path.as_os_str().to_owned();
        name.push(TEMPORARY);
        name.push(suffix);
        let name = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (name, file)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary file"))
}

/// Text, rights and owner of the file that is about to take the place of `old`; then to disk.
fn fill(file: &mut File, text: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    file.write_all(text)?;
    let mode = old.map_or(0o644 & !sys::umask(), |old| old.mode() & 0o7777);
    if let Some(old) = old {
        // Only where it is needed and allowed: a hardened unit ends the process for the mere attempt.
        let ours = file.metadata()?;
        if (ours.uid(), ours.gid()) != (old.uid(), old.gid()) && sys::is_root() {
            fchown(&*file, Some(old.uid()), Some(old.gid()))?;
        }
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

fn needs_write_in_place(why: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(why.kind(), ResourceBusy | CrossesDevices | PermissionDenied | ReadOnlyFilesystem)
}

/// Overwrites the file. What is longer than the old text goes first: a full disk then shows before anything
/// was overwritten, and the old text is kept.
fn write_in_place(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let old = file.metadata()?.len();
    let overlap = text.len().min(usize::try_from(old).unwrap_or(usize::MAX));
    let (head, tail) = text.split_at(overlap);
    if !tail.is_empty() {
        file.seek(SeekFrom::Start(old))?;
        if let Err(why) = file.write_all(tail).and_then(|()| file.sync_all()) {
            let _ = file.set_len(old);
            return Err(why);
        }
    }
    file.seek(SeekFrom::Start(0))?;
    file.write_all(head)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("watchfire-save-{name}-{}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            path
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = std::fs::read_dir(&self.0)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn append(line: &'static str) -> impl FnOnce(&[u8]) -> Vec<u8> {
        move |old| [old, line.as_bytes()].concat()
    }

    #[test]
    fn a_save_replaces_the_file_keeps_its_mode_and_leaves_nothing_behind() {
        let folder = Folder::new("replace");
        let path = folder.file("s.conf", "one\n");
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let before = std::fs::metadata(&path).unwrap().ino();
        let mut file = ConfigFile::read(&path).unwrap();
        file.check_writable().unwrap();
        assert!(file.save(append("two\n")));
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(after.mode() & 0o7777, 0o640);
        assert_ne!(after.ino(), before);
        assert_eq!(folder.names(), ["s.conf"]);
    }

    #[test]
    fn the_same_text_is_not_written_twice_but_a_first_save_and_a_lost_file_are() {
        let folder = Folder::new("same");
        let path = folder.file("s.conf", "one\n");
        let mut file = ConfigFile::read(&path).unwrap();
        assert!(file.save(<[u8]>::to_vec), "not synced by us yet, so it is written");
        let first = std::fs::metadata(&path).unwrap().ino();
        assert!(file.save(<[u8]>::to_vec));
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), first);
        std::fs::remove_file(&path).unwrap();
        assert!(file.save(<[u8]>::to_vec));
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
    }

    #[test]
    fn what_an_editor_changed_meanwhile_is_what_gets_rewritten() {
        let folder = Folder::new("edited");
        let path = folder.file("s.conf", "one\n");
        let mut file = ConfigFile::read(&path).unwrap();
        assert!(file.save(<[u8]>::to_vec));
        folder.file("s.conf", "one\n# a note\n");
        assert!(file.save(append("two\n")));
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n# a note\ntwo\n");
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_gets_the_text() {
        let folder = Folder::new("link");
        let target = folder.file("real.conf", "one\n");
        let link = folder.0.join("s.conf");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(ConfigFile::read(&link).unwrap().save(append("two\n")));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn what_a_crash_left_is_removed_and_nothing_that_only_looks_like_it() {
        let folder = Folder::new("leftover");
        let path = folder.file("s.conf", "one\n");
        let (left, _) = create_beside(&path).unwrap();
        folder.file("s.conf.watchfire-abcdef", "half a te");
        let others = [
            "s.conf.backup",
            "s.conf.watchfire-abcde",
            "s.conf.watchfire-abcdefg",
            "s.conf.watchfire-abcdeF",
            "s.conf.watchfire-abcde1",
            "t.conf.watchfire-abcdef",
            "xs.conf.watchfire-abcdef",
        ];
        others.iter().for_each(|name| drop(folder.file(name, "precious")));
        std::fs::create_dir(folder.0.join("s.conf.watchfire-folder")).unwrap();
        std::os::unix::fs::symlink(&path, folder.0.join("s.conf.watchfire-linked")).unwrap();
        let owner = std::fs::metadata(&path).unwrap().uid();
        assert!(leftovers(&path, &[owner + 1]).is_empty(), "those of another user are left alone");

        ConfigFile::read(&path).unwrap().remove_leftovers();
        assert!(!left.exists());
        let mut expected: Vec<&str> = others.to_vec();
        expected.extend(["s.conf", "s.conf.watchfire-folder", "s.conf.watchfire-linked"]);
        expected.sort_unstable();
        assert_eq!(folder.names(), expected);
    }

    #[test]
    fn writing_in_place_grows_and_shrinks_the_same_inode() {
        let folder = Folder::new("place");
        let path = folder.file("s.conf", "short\n");
        let inode = std::fs::metadata(&path).unwrap().ino();
        for text in ["much longer than before\n", "x\n", "yy\n", ""] {
            write_in_place(&path, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
    }

    #[test]
    fn a_failure_is_reported_and_a_later_save_succeeds() {
        let folder = Folder::new("fail");
        let path = folder.file("s.conf", "one\n");
        let mut file = ConfigFile::read(&path).unwrap();
        // A directory in the place of the file can be neither replaced nor written, by root neither.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(!file.save(append("two\n")));
        assert!(file.failing.is_some());
        assert_eq!(file.text, b"one\n");
        std::fs::remove_dir(&path).unwrap();
        assert!(file.save(append("two\n")));
        assert!(file.failing.is_none());
        assert_eq!(folder.names(), ["s.conf"]);
    }
}
