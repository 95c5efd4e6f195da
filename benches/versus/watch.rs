//! Watches one failover from outside: what clients and subscribers see, and when.

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use watchfire::resp::Reply;

use super::stats::ms;
use crate::support::conn::{Conn, Event, Events, ask, info, map, texts};
use crate::support::group::Group;

/// How often each observer asks.
const POLL: Duration = Duration::from_millis(1);
/// What has not happened by then shows as missing in the table.
const LIMIT: Duration = Duration::from_secs(60);
/// A PING without an answer that is as old as this when we hear of it, in ms, is not one that is just being answered.
const UNANSWERED: u64 = 50;

/// What is done to the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed.
    Kill,
    /// It is stopped: its sockets stay, nobody answers.
    Hang,
    /// It is killed, and just before it the Sentinel of this index.
    Node(usize),
    /// Nothing; the Sentinel of this index is told to fail over.
    Order(usize),
}

/// In ms since the fault; None: not seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The first Sentinel that says so, as with the next three.
    pub sdown: Option<f64>,
    pub odown: Option<f64>,
    pub elected: Option<f64>,
    pub promoted: Option<f64>,
    /// Every Sentinel that is left gives the same new master.
    pub agreed: Option<f64>,
    /// The new master takes a write.
    pub writable: Option<f64>,
    /// Every other replica follows it, with its link up.
    pub followed: Option<f64>,
    /// Which Sentinel was elected first.
    pub leader: Option<usize>,
    /// Elections that were begun, by the epochs they used up.
    pub elections: u64,
    /// Only of [`Fault::Hang`]: when the PING left that was never answered, of the Sentinel that made the quorum
    /// complete. Negative as a rule: it was before the fault.
    pub last_ping: Option<f64>,
}

/// What one Sentinel gave.
struct Given {
    port: u16,
    at: Instant,
    /// When its last PING to the old master left, if that was never answered.
    ping: Option<Instant>,
}

/// What became of one replica.
enum Became {
    Master(Instant),
    Follower(Instant),
    Nothing,
}

/// Brings the fault about and watches until all has been seen. `follow`: also until the replicas follow.
///
/// # Panics
/// When the group does not agree on a master to begin with.
pub fn watch(group: &mut Group, fault: Fault, follow: bool) -> Seen {
    let old = group.agreed().expect("a master before the fault");
    let lost = if let Fault::Node(lost) = fault { Some(lost) } else { None };
    let all = group.sentinels.iter().map(|sentinel| sentinel.port).enumerate();
    let left: Vec<(usize, u16)> = all.filter(|(index, _)| Some(*index) != lost).collect();
    let replicas: Vec<u16> = group.ports.iter().copied().filter(|port| *port != old).collect();
    let quorum = group.sentinels.len() / 2 + 1;
    let name = group.name.clone();
    let epoch = config_epoch(left[0].1, &name);
    let events: Vec<(usize, Events)> =
        left.iter().map(|(index, port)| (*index, Events::subscribe(*port, &["*"]))).collect();
    let asked: Vec<Conn> = left.iter().map(|(_, port)| Conn::to(*port)).collect();

    let begin = bring_about(group, fault, old);
    let new = AtomicU16::new(0);
    let (given, became): (Vec<Option<Given>>, Vec<Became>) = std::thread::scope(|scope| {
        let (name, new) = (name.as_str(), &new);
        let askers: Vec<_> = asked
            .into_iter()
            .map(|conn| scope.spawn(move || ask_until_switched(conn, name, old, begin, fault == Fault::Hang)))
            .collect();
        let writers: Vec<_> =
            replicas.iter().map(|port| scope.spawn(move || write_until_master(*port, new, begin, follow))).collect();
        let given = askers.into_iter().map(|asker| asker.join().expect("an observer")).collect();
        (given, writers.into_iter().map(|writer| writer.join().expect("an observer")).collect())
    });

    let since = |at: Instant| ms(at.saturating_duration_since(begin));
    let first = |channel: &str, kind: &str| -> Option<(f64, usize)> {
        let heard =
            events.iter().flat_map(|(index, events)| events.all().into_iter().map(move |event| (event, *index)));
        let fits = |event: &Event| event.at >= begin && event.channel == channel && event.payload.starts_with(kind);
        let first = heard.filter(|(event, _)| fits(event)).min_by_key(|(event, _)| event.at);
        first.map(|(event, index)| (since(event.at), index))
    };
    let elected = first("+elected-leader", "master ");
    let agreed: Option<Vec<&Given>> = given.iter().map(Option::as_ref).collect();
    let agreed = agreed.filter(|given| given.iter().all(|other| other.port == given[0].port));
    let followers: Vec<Instant> =
        became.iter().filter_map(|fate| if let Became::Follower(at) = fate { Some(*at) } else { None }).collect();
    let writable = became.iter().find_map(|fate| if let Became::Master(at) = fate { Some(*at) } else { None });
    let mut pings: Vec<Instant> = given.iter().flatten().filter_map(|given| given.ping).collect();
    pings.sort();
    Seen {
        sdown: first("+sdown", "master ").map(|(at, _)| at),
        odown: first("+odown", "master ").map(|(at, _)| at),
        elected: elected.map(|(at, _)| at),
        promoted: first("+promoted-slave", "slave ").map(|(at, _)| at),
        agreed: agreed.and_then(|given| given.iter().map(|given| given.at).max()).map(since),
        writable: writable.map(since),
        followed: (followers.len() + 1 == replicas.len())
            .then(|| followers.into_iter().chain(writable).max().map(since))
            .flatten(),
        leader: elected.map(|(_, index)| index),
        elections: config_epoch(left[0].1, &name).saturating_sub(epoch),
        last_ping: pings.get(quorum - 1).map(|ping| since(*ping) - ms(begin.saturating_duration_since(*ping))),
    }
}

/// The moment at which it was done.
fn bring_about(group: &mut Group, fault: Fault, master: u16) -> Instant {
    match fault {
        Fault::Kill => {}
        Fault::Node(lost) => group.sentinels[lost].kill(),
        Fault::Hang => {
            // A shell's `kill` does it, some ms after this moment. What counts here is the PING before that.
            let begin = Instant::now();
            group.hang(master);
            return begin;
        }
        Fault::Order(sentinel) => {
            let port = group.sentinels[sentinel].port;
            let deadline = Instant::now() + LIMIT;
            loop {
                let begin = Instant::now();
                match Conn::to(port).cmd(&["SENTINEL", "FAILOVER", &group.name]) {
                    Reply::Simple(_) => return begin,
                    // INPROG, NOGOODSLAVE: the last one is still being digested.
                    _ if begin < deadline => std::thread::sleep(POLL * 20),
                    other => panic!("SENTINEL FAILOVER was answered {other:?}"),
                }
            }
        }
    }
    let begin = Instant::now();
    group.kill(master);
    begin
}

/// Asks one Sentinel until it gives another master than `old`.
fn ask_until_switched(mut conn: Conn, name: &str, old: u16, begin: Instant, pings: bool) -> Option<Given> {
    let mut ping = None;
    let mut round = 0;
    while begin.elapsed() < LIMIT {
        let reply = conn.try_cmd(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]).ok()?;
        let at = Instant::now();
        if let Some(port) = texts(&reply).get(1).and_then(|port| port.parse().ok()).filter(|port| *port != old) {
            return Some(Given { port, at, ping });
        }
        if pings && round % 10 == 0 {
            let at = Instant::now();
            let master = map(&conn.try_cmd(&["SENTINEL", "MASTER", name]).ok()?);
            let still_old = master.get("port").is_some_and(|port| *port == old.to_string());
            let age = master.get("last-ping-sent").and_then(|age| age.parse::<u64>().ok()).unwrap_or(0);
            if still_old && age >= UNANSWERED {
                ping = at.checked_sub(Duration::from_millis(age));
            }
        }
        round += 1;
        std::thread::sleep(POLL);
    }
    None
}

/// Writes to one replica until it takes it, or another has and (`follow`) this one follows that.
fn write_until_master(port: u16, new: &AtomicU16, begin: Instant, follow: bool) -> Became {
    let mut conn = None;
    while begin.elapsed() < LIMIT {
        let master = new.load(Ordering::SeqCst);
        if master != 0 && !follow {
            return Became::Nothing;
        }
        // A failover closes the connections of clients, ours too.
        let mut open = match conn.take() {
            Some(open) => open,
            None => match Conn::open(port) {
                Ok(open) => open,
                Err(_) => {
                    std::thread::sleep(POLL);
                    continue;
                }
            },
        };
        if master == 0 {
            let reply = open.try_cmd(&["SET", "watchfire", "lit"]);
            if reply.as_ref().is_ok_and(|reply| *reply == Reply::Simple(b"OK".to_vec())) {
                let at = Instant::now();
                new.store(port, Ordering::SeqCst);
                return Became::Master(at);
            }
            conn = reply.is_ok().then_some(open);
        } else if let Ok(reply) = open.try_cmd(&["INFO", "replication"]) {
            let info = info(&reply);
            let is = |field: &str, value: &str| info.get(field).is_some_and(|text| text == value);
            if is("master_port", &master.to_string()) && is("master_link_status", "up") {
                return Became::Follower(Instant::now());
            }
            conn = Some(open);
        }
        std::thread::sleep(POLL);
    }
    Became::Nothing
}

fn config_epoch(port: u16, name: &str) -> u64 {
    let master = ask(port, &["SENTINEL", "MASTER", name]).map(|reply| map(&reply)).unwrap_or_default();
    master.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}
