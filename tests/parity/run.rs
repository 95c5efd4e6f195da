//! Sends the script to both Sentinels of a pair and collects what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use watchfire::base::{glob, quote};

use super::accepted::ROWS;
use super::support::process::wait_for;
use super::view::{ABSENT, Names, View, facts, still};
use super::wire::{Answer, Line};

/// One Sentinel of a pair.
#[derive(Clone, Debug)]
pub struct Side {
    pub port: u16,
    pub names: Names,
    /// As [`Pair::words`], for this side alone.
    pub words: Vec<(&'static str, String)>,
}

/// redis-sentinel and watchfire in the same situation.
pub struct Pair {
    pub theirs: Side,
    pub ours: Side,
    /// `{word}` in the script and what it stands for.
    pub words: Vec<(&'static str, String)>,
    /// What `do <name>` in the script does.
    pub deeds: Vec<(&'static str, Deed)>,
}

type Deed = Box<dyn Fn()>;

/// How long a `wait` waits before it is given up.
const LIMIT: Duration = Duration::from_secs(30);

/// A part of the script: fresh connections, then one step a line.
///
/// A line is a request, its words quoted as in a configuration file. `;;` stands between requests that are sent in one
/// piece. In front of a line: `2>` speaks on another connection, `~` sends byte by byte and lets the Sentinel read each,
/// `/` repeats the line for every way to cut it in two. `raw "…"` sends these bytes, and `end "…"` does and then ends the
/// stream; all that comes until the other end closes is its answer. `new` opens the connection again. `{me}` is the
/// client's id, `{addr}` its address, on both sides its own. `do <name>` does something to the world; `wait <glob>`, two blanks
/// and a request ask until both answers match the pattern. Empty lines and lines that begin with `#` are for people.
pub struct Part<'a> {
    pub name: &'a str,
    pub lines: &'a str,
}

/// One connection to each of a pair.
struct Channel {
    theirs: Line,
    ours: Line,
    their_id: String,
    our_id: String,
}

impl Channel {
    fn open(pair: &Pair) -> Channel {
        let (theirs, ours) = (Line::open(pair.theirs.port), Line::open(pair.ours.port));
        Channel { theirs, ours, their_id: String::new(), our_id: String::new() }
    }

    fn learn_ids(&mut self) {
        self.their_id = self.theirs.ask(&["CLIENT", "ID"]).text();
        self.our_id = self.ours.ask(&["CLIENT", "ID"]).text();
    }
}

/// What the whole script has shown.
#[derive(Default)]
pub struct Outcome {
    pub steps: usize,
    pub facts: usize,
    /// Differences that no row covers, once each, with the part that met them first.
    pub faults: BTreeMap<String, String>,
    pub used: BTreeSet<usize>,
    /// The part that is being played.
    place: String,
}

pub fn run(outcome: &mut Outcome, pair: &Pair, proto: u8, part: &Part<'_>) {
    outcome.place = format!("{}, RESP{proto}", part.name);
    let mut session = Session { pair, proto, part, channels: BTreeMap::new(), outcome, fences: 0 };
    for line in part.lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        session.line(line);
    }
}

struct Session<'a> {
    pair: &'a Pair,
    proto: u8,
    part: &'a Part<'a>,
    channels: BTreeMap<char, Channel>,
    outcome: &'a mut Outcome,
    fences: u32,
}

impl Session<'_> {
    fn line(&mut self, line: &str) {
        let (which, line) = match line.split_once("> ") {
            Some((which @ ("2" | "3"), rest)) => (which.chars().next().unwrap_or('1'), rest),
            _ => ('1', line),
        };
        if line == "new" {
            self.channels.remove(&which);
            return;
        }
        if let Some(name) = line.strip_prefix("do ") {
            let deed = self.pair.deeds.iter().find(|deed| deed.0 == name);
            deed.unwrap_or_else(|| panic!("nobody can do {name}")).1();
            return;
        }
        if let Some((pattern, request)) = line.strip_prefix("wait ").and_then(|rest| rest.split_once("  ")) {
            self.wait(pattern, request);
            return;
        }
        if let Some(request) = line.strip_prefix("/ ") {
            let bytes = self.requests(request);
            for cut in 1..bytes.0.len() {
                self.step(which, request, &bytes, &[cut]);
            }
        } else if let Some(request) = line.strip_prefix("~ ") {
            let bytes = self.requests(request);
            let cuts: Vec<usize> = (1..bytes.0.len()).collect();
            self.step(which, request, &bytes, &cuts);
        } else {
            let bytes = self.requests(line);
            self.step(which, line, &bytes, &[]);
        }
    }

    fn wait(&mut self, pattern: &str, request: &str) {
        let (bytes, ..) = self.requests(request);
        for side in [&self.pair.theirs, &self.pair.ours] {
            let bytes = personal(&bytes, &side.words);
            let mut line = Line::open(side.port);
            wait_for(LIMIT, &format!("{pattern} in the answer to {request}"), || {
                line.send(&bytes);
                line.send(b"fence\r\n");
                let shown: Vec<String> =
                    line.receive(Some("fence")).replies.iter().map(|reply| still(reply, &side.names).show()).collect();
                glob::matches(pattern.as_bytes(), shown.join(" ").as_bytes(), false)
            });
        }
    }

    /// The bytes of a line, its view, and whether the stream ends behind it. Words that stand for something else on each
    /// side are replaced later.
    fn requests(&self, line: &str) -> (Vec<u8>, View, bool) {
        let split = |text: &str| -> Vec<Vec<u8>> {
            let text = self.pair.words.iter().fold(text.to_string(), |text, (word, value)| text.replace(word, value));
            quote::split_args(text.as_bytes()).unwrap_or_else(|| panic!("{}: unbalanced: {line}", self.part.name))
        };
        if let Some(text) = line.strip_prefix("raw ").or(line.strip_prefix("end ")) {
            let bytes: Vec<u8> = split(text).concat();
            return (bytes, View::Exact, line.starts_with("end "));
        }
        let requests: Vec<Vec<Vec<u8>>> = line.split(";;").map(split).collect();
        let view = match &requests[..] {
            [one] => View::of(&one.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>()),
            _ => View::Exact,
        };
        let mut bytes = Vec::new();
        for request in &requests {
            watchfire::resp::request(&mut bytes, &request.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        (bytes, view, false)
    }

    fn step(&mut self, which: char, label: &str, (bytes, view, ends): &(Vec<u8>, View, bool), cuts: &[usize]) {
        if !self.channels.contains_key(&which) {
            self.open(which);
        }
        self.fences += 1;
        let fence = (!ends).then(|| format!("fence-{}", self.fences));
        let channel = self.channels.get_mut(&which).expect("opened above");
        if channel.theirs.closed || channel.ours.closed {
            self.outcome.fault(label, "the connection is closed already", "");
            return;
        }
        let their_addr = format!("127.0.0.1:{}", channel.theirs.local_port());
        let our_addr = format!("127.0.0.1:{}", channel.ours.local_port());
        let sides = [
            (&mut channel.theirs, &channel.their_id, their_addr, &self.pair.theirs),
            (&mut channel.ours, &channel.our_id, our_addr, &self.pair.ours),
        ];
        for (line, id, addr, side) in sides {
            let own = [("{me}", id.clone()), ("{addr}", addr)];
            let bytes = personal(bytes, &[&own[..], &side.words].concat());
            let mut from = 0;
            for &cut in cuts {
                line.send(&bytes[from..cut]);
                from = cut;
                // Events come in order: once this is answered, the piece has been read.
                let _ = Line::open(side.port).ask(&["nothing"]);
            }
            line.send(&bytes[from..]);
            match &fence {
                Some(fence) => line.send(format!("{fence}\r\n").as_bytes()),
                None => line.finish(),
            }
        }
        let theirs = channel.theirs.receive(fence.as_deref());
        let ours = channel.ours.receive(fence.as_deref());
        let (their_id, our_id) = (channel.their_id.clone(), channel.our_id.clone());
        self.outcome.compare(self.pair, *view, label, (&theirs, &their_id), (&ours, &our_id));
        if fence.is_none() {
            self.channels.remove(&which);
        }
    }

    /// The first words on a connection. Its id is not asked for where that would be refused.
    fn open(&mut self, which: char) {
        let mut channel = Channel::open(self.pair);
        if self.proto == 3 {
            let fence = "first";
            let hello = format!("HELLO 3\r\n{fence}\r\n");
            channel.theirs.send(hello.as_bytes());
            channel.ours.send(hello.as_bytes());
            let _ = channel.theirs.receive(Some(fence));
            let _ = channel.ours.receive(Some(fence));
        }
        if self.part.lines.contains("{me}") || self.part.lines.to_ascii_lowercase().contains("client list") {
            channel.learn_ids();
        }
        self.channels.insert(which, channel);
    }
}

impl Outcome {
    /// Both answers, each with the id of its client.
    pub fn compare(&mut self, pair: &Pair, view: View, label: &str, theirs: (&Answer, &str), ours: (&Answer, &str)) {
        self.steps += 1;
        let theirs = facts(view, label, theirs.0, &pair.theirs.names, theirs.1);
        let ours = facts(view, label, ours.0, &pair.ours.names, ours.1);
        let labels: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        self.facts += labels.len();
        for label in labels {
            let side = |facts: &super::view::Facts| facts.get(label).cloned().unwrap_or_else(|| ABSENT.to_string());
            let (theirs, ours) = (side(&theirs), side(&ours));
            // The list of keys tells already.
            let lacks_key =
                matches!(view, View::Fields | View::ListOfFields | View::Docs) && (theirs == ABSENT || ours == ABSENT);
            if theirs != ours && !lacks_key {
                self.differs(label, &theirs, &ours);
            }
        }
    }

    fn differs(&mut self, label: &str, theirs: &str, ours: &str) {
        let covering = |(_, row): &(usize, &super::accepted::Row)| row.covers(label, theirs, ours);
        let rows: Vec<usize> = ROWS.iter().enumerate().filter(covering).map(|(at, _)| at).collect();
        if rows.is_empty() {
            self.fault(label, theirs, ours);
        }
        self.used.extend(rows);
    }

    fn fault(&mut self, label: &str, theirs: &str, ours: &str) {
        let text = format!("{label}\n    theirs: {theirs}\n    ours:   {ours}");
        self.faults.entry(text).or_insert_with(|| self.place.clone());
    }
}

/// The requests with the words of one side filled in.
fn personal(bytes: &[u8], own: &[(&str, String)]) -> Vec<u8> {
    if !bytes.contains(&b'{') {
        return bytes.to_vec();
    }
    // Decoded and encoded again, since lengths change.
    let mut decoder = watchfire::resp::RequestDecoder::new();
    decoder.extend(bytes);
    let (mut argv, mut out) = (watchfire::resp::Argv::new(), Vec::new());
    while decoder.next(&mut argv) == Ok(true) {
        let fill = |word: &[u8]| {
            let word = String::from_utf8_lossy(word).into_owned();
            own.iter().fold(word, |word, (name, value)| word.replace(name, value)).into_bytes()
        };
        let words: Vec<Vec<u8>> = argv.iter().map(fill).collect();
        watchfire::resp::request(&mut out, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    out
}
