//! What a Sentinel did to its folder and said to others, in order, as `strace` has seen it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use crate::live::Epochs;
use crate::support::conn::{items, text};
use watchfire::resp::ReplyDecoder;

/// One system call that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Create(String),
    Write(String, Vec<u8>),
    Sync(String),
    SyncFolder,
    Rename(String, String),
    Remove(String),
    /// Epochs that others heard of; those not named are 0.
    Say(Epochs),
}

/// The words for `strace` that make it write what [`steps`] reads.
pub const WORDS: &str = "-D -yy -xx -s 4000000 -e signal=none -e trace=openat,open,creat,read,write,writev,pwrite64,pwritev,\
                         sendto,sendmsg,sendmmsg,fsync,fdatasync,sync_file_range,ftruncate,fallocate,rename,renameat,\
                         renameat2,link,linkat,unlink,unlinkat";

/// The text that `file` had at the start, and the steps in `trace` that concern its folder or tell others about the
/// master `name`.
///
/// # Panics
/// On a call that nobody here knows the meaning of: what is not understood must not pass as harmless.
pub fn steps(trace: &str, file: &Path, name: &str) -> (Vec<u8>, Vec<Step>) {
    let (mut first, mut steps) = (Vec::new(), Vec::new());
    let folder = file.parent().and_then(Path::to_str).expect("a path in UTF-8");
    let mut speech: BTreeMap<String, ReplyDecoder> = BTreeMap::new();
    // Its log lies there as well.
    let main = file.file_name().and_then(OsStr::to_str).expect("a name in UTF-8");
    let inside = |path: &str| {
        let name = path.strip_prefix(folder)?.strip_prefix('/')?;
        name.starts_with(main).then(|| name.to_string())
    };
    for line in trace.lines() {
        let Some((call, result)) = line.split_once('(').and_then(|(call, _)| Some((call, line.rsplit_once(" = ")?.1)))
        else {
            continue;
        };
        if result.starts_with('-') {
            continue;
        }
        let (strings, place) = (strings(line), descriptor(line));
        let touched = inside(&place);
        match call {
            // It is read as a whole, by one call.
            "read" if steps.is_empty() && Path::new(&place) == file && result != "0" => first.clone_from(&strings[0]),
            "read" => {}
            "openat" => {
                if let Some(name) = inside(&path(&strings[0])).filter(|_| line.contains("O_CREAT")) {
                    assert!(line.contains("O_EXCL"), "a file that may be there already: {line}");
                    steps.push(Step::Create(name));
                }
            }
            "write" | "sendto" => {
                let count: usize = result.parse().unwrap_or_else(|_| panic!("bytes written: {line}"));
                let bytes = &strings[0][..count];
                if let Some(file) = touched {
                    steps.push(Step::Write(file, bytes.to_vec()));
                } else if place.starts_with("TCP:") {
                    let decoder = speech.entry(place).or_default();
                    decoder.extend(bytes);
                    while let Some(message) = decoder.next().expect("we speak RESP") {
                        let words: Vec<String> = items(&message).iter().map(text).collect();
                        steps.extend(said(&words, name).map(Step::Say));
                    }
                }
            }
            "fsync" if place == folder => steps.push(Step::SyncFolder),
            "fsync" => steps.extend(touched.map(Step::Sync)),
            "rename" => {
                if let (Some(from), Some(to)) = (inside(&path(&strings[0])), inside(&path(&strings[1]))) {
                    steps.push(Step::Rename(from, to));
                }
            }
            "unlink" => steps.extend(inside(&path(&strings[0])).map(Step::Remove)),
            other => {
                let touched = touched.is_some() || strings.iter().any(|string| inside(&path(string)).is_some());
                assert!(!touched && !place.starts_with("TCP:"), "{other} is not modelled: {line}");
            }
        }
    }
    (first, steps)
}

/// The epochs in a request or a reply of a Sentinel.
fn said(words: &[String], name: &str) -> Option<Epochs> {
    let number = |word: &String| word.parse::<u64>().ok();
    let words: Vec<&String> = words.iter().collect();
    match words[..] {
        // A vote, its own or for somebody else.
        [_, leader, epoch] if leader.len() == 40 => Some(Epochs { leader: number(epoch)?, ..Epochs::default() }),
        [_, channel, hello] if channel == "__sentinel__:hello" => {
            let fields: Vec<String> = hello.split(',').map(str::to_string).collect();
            (fields.get(4)? == name).then_some(Epochs {
                current: number(fields.get(3)?)?,
                config: number(fields.get(7)?)?,
                leader: 0,
            })
        }
        // With an id it stands for election, and has voted for itself.
        [_, verb, _, _, epoch, candidate] if verb.eq_ignore_ascii_case("is-master-down-by-addr") => {
            let current = number(epoch)?;
            Some(Epochs { current, config: 0, leader: if candidate == "*" { 0 } else { current } })
        }
        _ => None,
    }
}

/// What stands in quotes, all of it in `\xHH`.
fn strings(line: &str) -> Vec<Vec<u8>> {
    line.split('"').skip(1).step_by(2).map(bytes).collect()
}

/// What `strace` says of the first descriptor: a path, or the two ends of a connection.
fn descriptor(line: &str) -> String {
    let inner = line.split_once('<').map_or("", |(_, rest)| rest);
    // The arrow between the ends of a connection has a `>` as well.
    let end = inner.find(">,").or_else(|| inner.find(">)")).unwrap_or(0);
    let inner = &inner[..end];
    if inner.starts_with("\\x") { path(&bytes(inner)) } else { inner.to_string() }
}

fn path(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_default()
}

fn bytes(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).map(|pair| u8::from_str_radix(&pair[..2], 16).expect("two digits")).collect()
}
