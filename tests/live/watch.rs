//! Listens to everything that the Sentinels of a group tell others, and remembers what must never be taken back.
//!
//! Three ears: questions to each Sentinel (its config epoch and address, the vote that it holds), its events, and the
//! hello messages as the data servers pass them on.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Epochs;
use crate::support::conn::{Conn, items, map, text, texts};
use crate::support::group::Group;
use crate::support::ports;
use crate::support::process::wait_for;
use watchfire::resp::Reply;

/// A candidate that nobody is: who asks with it and epoch 0 hears the vote and casts none.
const NOBODY: &str = "0000000000000000000000000000000000000000";
const POLL: Duration = Duration::from_millis(20);

/// What was heard so far.
#[derive(Default)]
pub struct Heard {
    /// The highest epochs that each Sentinel (by port) has told anybody.
    pub told: BTreeMap<u16, Epochs>,
    /// Config epoch to the addresses told with it.
    pub addresses: BTreeMap<u64, BTreeSet<u16>>,
    /// The last `+new-epoch` of each Sentinel.
    new_epochs: BTreeMap<u16, u64>,
    /// (Sentinel, epoch) to whom it voted for.
    votes: BTreeMap<(u16, u64), String>,
    /// Which Sentinel has which run id.
    ids: BTreeMap<String, u16>,
    /// How many of our connections to a Sentinel are open.
    open: BTreeMap<u16, u32>,
    pub faults: Vec<String>,
}

impl Heard {
    fn vote(&mut self, port: u16, leader: &str, epoch: u64) {
        let known = self.votes.entry((port, epoch)).or_insert_with(|| leader.to_string());
        if known != leader {
            let fault = format!("{port} voted for {known} and for {leader} in epoch {epoch}");
            self.faults.push(fault);
        }
    }

    fn address(&mut self, epoch: u64, master: u16) {
        // Epoch 0 is what the operators wrote down; nobody answers for it.
        if epoch == 0 {
            return;
        }
        let known = self.addresses.entry(epoch).or_default();
        if known.insert(master) && known.len() > 1 {
            let fault = format!("config epoch {epoch} stands for {known:?}");
            self.faults.push(fault);
        }
    }

    fn told(&mut self, port: u16) -> &mut Epochs {
        self.told.entry(port).or_default()
    }
}

/// The ears; dropping it closes them.
pub struct Watch {
    heard: Arc<Mutex<Heard>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Listens to all Sentinels and data servers of the group.
    #[must_use]
    pub fn over(group: &Group) -> Watch {
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let mut watch = Watch { heard, stop: Arc::default(), threads: Vec::new() };
        for sentinel in &group.sentinels {
            watch.lock().ids.insert(sentinel.id(), sentinel.port);
            let (port, name) = (sentinel.port, group.name.clone());
            watch.listen(move |heard, stop| questions(port, &name, heard, stop));
            watch.listen(move |heard, stop| {
                subscription(
                    port,
                    true,
                    &["+new-epoch", "+vote-for-leader"],
                    heard,
                    stop,
                    |heard, channel, payload| {
                        event(heard, port, channel, payload);
                    },
                );
            });
        }
        for &server in &group.ports {
            let name = group.name.clone();
            watch.listen(move |heard, stop| {
                subscription(server, false, &["__sentinel__:hello"], heard, stop, |heard, _, payload| {
                    hello(heard, &name, payload);
                });
            });
        }
        watch
    }

    fn listen(&mut self, ear: impl FnOnce(&Mutex<Heard>, &AtomicBool) + Send + 'static) {
        let (heard, stop) = (Arc::clone(&self.heard), Arc::clone(&self.stop));
        self.threads.push(std::thread::spawn(move || ear(&heard, &stop)));
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        lock(&self.heard)
    }

    /// All that a Sentinel which has just been killed told anybody: waits until our connections to it have been read
    /// to their ends.
    #[must_use]
    pub fn last_words(&self, port: u16) -> Epochs {
        wait_for(Duration::from_secs(20), "the end of the connections to a killed Sentinel", || {
            self.lock().open.get(&port).copied().unwrap_or(0) == 0
        });
        self.lock().told.get(&port).copied().unwrap_or_default()
    }

    /// # Panics
    /// When a Sentinel took something back, or two told different things where all must tell the same.
    pub fn check(&self) {
        let faults = self.lock().faults.clone();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// How much was taken back or contradicted so far.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.lock().faults.len()
    }

    /// The config epochs told so far and their addresses.
    #[must_use]
    pub fn addresses(&self) -> BTreeMap<u64, BTreeSet<u16>> {
        self.lock().addresses.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects again and again until told to stop; `talk` ends with the connection. Counts the open ones when asked to.
fn connections(
    port: u16,
    counted: bool,
    heard: &Mutex<Heard>,
    stop: &AtomicBool,
    mut talk: impl FnMut(&mut Conn) -> Option<()>,
) {
    while !stop.load(Ordering::Relaxed) {
        if counted {
            *lock(heard).open.entry(port).or_default() += 1;
        }
        if let Ok(mut conn) = Conn::open(port) {
            let _ = talk(&mut conn);
        }
        if counted {
            *lock(heard).open.entry(port).or_default() -= 1;
        }
        std::thread::sleep(POLL);
    }
}

/// Asks one Sentinel again and again what it holds true.
fn questions(port: u16, name: &str, heard: &Mutex<Heard>, stop: &AtomicBool) {
    let mut before = Epochs::default();
    connections(port, true, heard, stop, |conn| {
        while !stop.load(Ordering::Relaxed) {
            let address = |conn: &mut Conn| {
                let reply = conn.try_cmd(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]).ok()?;
                texts(&reply).get(1)?.parse::<u16>().ok()
            };
            let first = address(conn)?;
            let master = map(&conn.try_cmd(&["SENTINEL", "MASTER", name]).ok()?);
            let config: u64 = master.get("config-epoch")?.parse().ok()?;
            let second = address(conn)?;
            let port_text = second.to_string();
            let host = ports::host(second).to_string();
            let question = ["SENTINEL", "IS-MASTER-DOWN-BY-ADDR", &host, &port_text, "0", NOBODY];
            let vote = conn.try_cmd(&question).ok()?;
            let mut heard = lock(heard);
            // The epoch belongs to the address only when that is the same before and after.
            if first == second {
                heard.address(config, first);
            }
            let mut now = Epochs { config, ..before };
            if let [Reply::Integer(_), leader, Reply::Integer(epoch)] = items(&vote) {
                let epoch = u64::try_from(*epoch).unwrap_or(0);
                // 0: it knows no master at that address, because that changed in between.
                if epoch > 0 {
                    now.leader = epoch;
                    if text(leader) != "*" {
                        heard.vote(port, &text(leader), epoch);
                    }
                }
            }
            if let Some(back) = now.back_from(&before) {
                heard.faults.push(format!("{port}: {back} in its answers"));
            }
            before = now;
            let told = heard.told(port);
            told.config = told.config.max(now.config);
            told.leader = told.leader.max(now.leader);
            drop(heard);
            std::thread::sleep(POLL);
        }
        Some(())
    });
}

/// Keeps a subscription open and hands every message on.
fn subscription(
    port: u16,
    counted: bool,
    channels: &[&str],
    heard: &Mutex<Heard>,
    stop: &AtomicBool,
    message: impl Fn(&mut Heard, &str, &str),
) {
    connections(port, counted, heard, stop, |conn| {
        let mut words = vec!["SUBSCRIBE"];
        words.extend(channels);
        conn.send(&words).ok()?;
        conn.set_patience(Some(Duration::from_millis(200)));
        while !stop.load(Ordering::Relaxed) {
            match conn.receive() {
                Ok(reply) => {
                    if let [kind, channel, payload] = items(&reply)
                        && text(kind) == "message"
                    {
                        message(&mut lock(heard), &text(channel), &text(payload));
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return None,
            }
        }
        Some(())
    });
}

fn event(heard: &mut Heard, port: u16, channel: &str, payload: &str) {
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    if channel == "+new-epoch" {
        let epoch = number(Some(payload));
        // Held against the events alone: a hello that was said later may have come sooner.
        let before = heard.new_epochs.insert(port, epoch).unwrap_or(0);
        if epoch <= before {
            heard.faults.push(format!("{port}: +new-epoch {epoch} after +new-epoch {before}"));
        }
        let told = heard.told(port);
        told.current = told.current.max(epoch);
    } else {
        let mut words = payload.split(' ');
        let (leader, epoch) = (words.next().unwrap_or_default().to_string(), number(words.next()));
        heard.vote(port, &leader, epoch);
        let told = heard.told(port);
        told.leader = told.leader.max(epoch);
    }
}

fn hello(heard: &mut Heard, name: &str, payload: &str) {
    let fields: Vec<&str> = payload.split(',').collect();
    let [_, _, id, current, master, _, master_port, config] = fields[..] else { return };
    let (Some(&port), true) = (heard.ids.get(id), master == name) else { return };
    let (Ok(current), Ok(config), Ok(master_port)) = (current.parse(), config.parse(), master_port.parse()) else {
        heard.faults.push(format!("a hello that cannot be read: {payload}"));
        return;
    };
    heard.address(config, master_port);
    // Only the highest counts: a hello comes by several ways, and an older one may come last.
    let told = heard.told(port);
    told.current = told.current.max(current);
    told.config = told.config.max(config);
}
