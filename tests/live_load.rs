//! Load: crowds of clients, a subscriber that never reads, hundreds of masters of which half die at once, a peer that is
//! silent for long, a server that answers more than it was asked, and connections that come and go by the thousand.
//! Memory stays bounded, PING is answered, failovers take place, and nothing leaks.
//!
//! `LOAD=full` is the long form, to be run with `--release`; without it a tenth or less is enough to see that a rule is
//! broken.

mod live;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use live::{LIMIT, wait_settled};
use support::conn::{Conn, ask, map, maps, text};
use support::group::Plan;
use support::process::{Sentinel, wait_for};
use support::standin::{Spec, StandIn};
use watchfire::resp::Reply;

fn is_full() -> bool {
    std::env::var_os("LOAD").is_some_and(|load| load == "full")
}

/// The figure of the long form or of the short one.
fn load(full: usize, short: usize) -> usize {
    if is_full() { full } else { short }
}

/// As many descriptors as this process may have: every client has its other end here.
fn raise_limit() {
    let script = format!("prlimit --pid {} --nofile=$(ulimit -Hn):$(ulimit -Hn)", std::process::id());
    let status = std::process::Command::new("/bin/sh").args(["-c", &script]).status().expect("a shell");
    assert!(status.success(), "{script}");
}

/// What a Sentinel holds: descriptors, and KiB of memory now and at the most.
#[derive(Clone, Copy, Debug)]
struct Held {
    descriptors: usize,
    memory: usize,
    peak: usize,
}

impl Held {
    fn by(sentinel: &mut Sentinel) -> Held {
        let id = sentinel.process().id();
        let descriptors = std::fs::read_dir(format!("/proc/{id}/fd")).expect("its descriptors").count();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("its status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field of the status");
            line.trim().trim_end_matches(" kB").parse().expect("KiB")
        };
        Held { descriptors, memory: field("VmRSS:"), peak: field("VmHWM:") }
    }
}

/// Waits until the Sentinel holds no more descriptors than that.
fn wait_descriptors(sentinel: &mut Sentinel, before: Held) -> Held {
    wait_for(LIMIT, &format!("{} descriptors again", before.descriptors), || {
        Held::by(sentinel).descriptors <= before.descriptors
    });
    Held::by(sentinel)
}

/// Something that goes on in a thread until it is told to stop.
struct Going<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Going<T> {
    fn start(step: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Going<T> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Going { thread: std::thread::spawn(move || step(&seen)), stop }
    }

    fn stop(self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it went on until the end")
    }
}

/// One client that sends PING after PING and has to get every answer: how long they took.
fn pings(port: u16) -> Going<Vec<Duration>> {
    Going::start(move |stop| {
        let mut conn = Conn::to(port);
        conn.set_patience(Some(LIMIT));
        let mut times = Vec::new();
        while !stop.load(Ordering::Relaxed) || times.is_empty() {
            let begin = Instant::now();
            assert_eq!(text(&conn.cmd(&["PING"])), "PONG");
            times.push(begin.elapsed());
            std::thread::sleep(Duration::from_millis(2));
        }
        times.sort();
        times
    })
}

fn quantiles(times: &[Duration]) -> String {
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    format!("{} PINGs: p50 {:.1} ms, p99 {:.1} ms, slowest {:.1} ms", times.len(), at(50), at(99), at(100))
}

/// Threads that drive the busy clients, each its share of them.
const DRIVERS: usize = 8;
const QUESTIONS: &[&[&str]] = &[
    &["PING"],
    &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"],
    &["SENTINEL", "MASTERS"],
    &["SENTINEL", "REPLICAS", "mymaster"],
    &["SENTINEL", "SENTINELS", "mymaster"],
    &["INFO"],
];

/// Clients that each have a question under way all the time; how many answers they got.
fn busy(port: u16, clients: usize) -> Vec<Going<usize>> {
    let driver = move |_| {
        Going::start(move |stop| {
            let mut conns: Vec<Conn> = (0..clients / DRIVERS).map(|_| Conn::to(port)).collect();
            conns.iter().for_each(|conn| conn.set_patience(Some(LIMIT)));
            let mut answers = 0;
            while !stop.load(Ordering::Relaxed) {
                for (index, conn) in conns.iter_mut().enumerate() {
                    conn.send(QUESTIONS[(index + answers) % QUESTIONS.len()]).expect("a question can be sent");
                }
                for conn in &mut conns {
                    let answer = conn.receive().expect("an answer");
                    assert!(!matches!(answer, Reply::Error(_)), "{answer:?}");
                }
                answers += conns.len();
            }
            answers
        })
    };
    (0..DRIVERS).map(driver).collect()
}

/// Memory that a client may cost, KiB.
const CLIENT_KIB: usize = 40;

#[test]
fn crowds_of_clients_and_a_deaf_subscriber_do_not_stop_a_failover() {
    let _turn = live::turn();
    raise_limit();
    let (idle, active) = (load(10_000, 400), load(2_000, 80));
    // What a subscriber may leave unread, MiB; 32 is the default.
    let unread = load(32, 4);
    let plan = Plan::new(vec![live::watchfire(); 3]).line("maxclients 15000");
    let mut group = live::start(plan.line(&format!("client-output-buffer-limit pubsub {unread}mb 0 0")));
    let port = group.sentinels[0].port;
    let before = Held::by(&mut group.sentinels[0]);

    let mut crowd: Vec<Conn> = (0..idle).map(|_| Conn::to(port)).collect();
    // Answered, and so taken in.
    crowd.iter_mut().for_each(|conn| assert_eq!(text(&conn.cmd(&["PING"])), "PONG"));
    let with_idle = Held::by(&mut group.sentinels[0]);
    let pings = pings(port);
    let mut deaf = Conn::to(port);
    deaf.send(&["PSUBSCRIBE", "*"]).expect("a subscription can be sent");
    let _ = deaf.receive().expect("a subscription is confirmed");
    let address = format!(" addr=127.0.0.1:{} ", deaf.local_port());
    let mut operator = group.sentinels[0].conn();
    operator.set_patience(Some(LIMIT));
    let mut said = 0;
    while text(&operator.cmd(&["CLIENT", "LIST", "TYPE", "pubsub"])).contains(&address) {
        let name = format!("m{}", "x".repeat(200_000));
        for words in [&["SENTINEL", "MONITOR", &name, "127.0.0.1", "1", "1"][..], &["SENTINEL", "REMOVE", &name]] {
            assert_eq!(text(&operator.cmd(words)), "OK");
            said += name.len();
        }
        assert!(said < 256 << 20, "the deaf subscriber is still there after {said} bytes of events");
    }

    let busy = busy(port, active);
    let old = group.ports[0];
    let begin = Instant::now();
    group.kill(old);
    let new = group.wait_switched(LIMIT, old);
    let switched = begin.elapsed();
    let answers: usize = busy.into_iter().map(Going::stop).sum();
    let times = pings.stop();
    let at_most = Held::by(&mut group.sentinels[0]);
    drop((crowd, deaf));
    let after = wait_descriptors(&mut group.sentinels[0], before);
    println!(
        "{idle} idle and {active} busy clients: {answers} answers, {}; switched to {new} in {:.1} s;\n\
         KiB: {} before, {} with idle clients, {} at the most, {} after; descriptors: {} before, {} with idle clients, {} after",
        quantiles(&times),
        switched.as_secs_f64(),
        before.memory,
        with_idle.memory,
        at_most.peak,
        after.memory,
        before.descriptors,
        with_idle.descriptors,
        after.descriptors
    );
    assert!(answers >= active, "every busy client was answered");
    // A buffer that doubles holds twice what is in it.
    let bound = before.memory + CLIENT_KIB * (idle + active) + 2 * 1024 * unread;
    assert!(at_most.peak < bound, "{} KiB at the most, {bound} are allowed", at_most.peak);
}

/// Memory may grow by so much between the first quarter of the reconnects and the last: one byte for each, and the
/// unevenness of an allocator.
const LEAK_KIB: usize = 512;

#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    let _turn = live::turn();
    raise_limit();
    let wanted = load(10_000, 600);
    let standin = StandIn::start();
    let masters = standin.servers(vec![Spec::master(); 20]);
    let lines: Vec<String> = masters
        .iter()
        .enumerate()
        .map(|(index, master)| format!("sentinel monitor m{index} 127.0.0.1 {} 1", master.port))
        .collect();
    let mut sentinel = Sentinel::start(&live::watchfire(), &lines);
    // A lost link is dialled once a period.
    assert_eq!(text(&sentinel.conn().cmd(&["SENTINEL", "DEBUG", "ping-period", "50"])), "OK");
    let is_linked = || masters.iter().all(|master| standin.state(master.port).clients >= 2);
    wait_for(LIMIT, "all links", is_linked);
    let before = Held::by(&mut sentinel);
    let dialled = || masters.iter().map(|master| standin.calls(master.port)["client|setname"]).sum::<u64>() as usize;
    let start = dialled();

    let (mut clients, mut links, mut early) = (0, 0, None);
    while clients < wanted || links < wanted {
        if links < wanted {
            for master in &masters {
                let _ = ask(master.port, &["CLIENT", "KILL", "SKIPME", "yes"]);
            }
            wait_for(LIMIT, "all links again", is_linked);
            links = dialled() - start;
        }
        for _ in 0..wanted.saturating_sub(clients).min(60) {
            let mut conn = sentinel.conn();
            match clients % 3 {
                0 => assert_eq!(text(&conn.cmd(&["PING"])), "PONG"),
                // The answer comes to a socket that is gone.
                1 => conn.send(&["INFO"]).expect("a question can be sent"),
                _ => conn.send_raw(b"*2\r\n$8\r\nSENTI").expect("half a question can be sent"),
            }
            clients += 1;
        }
        if clients.min(links) > wanted / 4 && early.is_none() {
            early = Some(Held::by(&mut sentinel));
        }
    }
    let early = early.expect("a quarter comes before the end");
    let after = wait_descriptors(&mut sentinel, before);
    println!(
        "{clients} clients and {links} links came and went: descriptors {} before, {} after; KiB {} before, {} after a \
         quarter, {} after",
        before.descriptors, after.descriptors, before.memory, early.memory, after.memory
    );
    assert!(after.memory < early.memory + LEAK_KIB + wanted / 1024, "{} KiB became {}", early.memory, after.memory);
}

#[test]
fn hundreds_of_masters_half_of_which_die_at_once_are_replaced_and_no_other() {
    let _turn = live::turn();
    raise_limit();
    let count = load(1_000, 24);
    let standin = StandIn::start();
    let masters: Vec<u16> = standin.servers(vec![Spec::master(); count]).iter().map(|server| server.port).collect();
    // One of eight masters has nobody to take its place.
    let has_replica = |index: usize| !index.is_multiple_of(8);
    let dies = |index: usize| index.is_multiple_of(2);
    let specs = masters.iter().enumerate().filter(|(index, _)| has_replica(*index));
    let replicas = standin.servers(specs.map(|(_, &port)| Spec::replica_of(port)).collect());
    let lines: Vec<String> = masters
        .iter()
        .enumerate()
        .flat_map(|(index, port)| {
            [
                format!("sentinel monitor m{index} 127.0.0.1 {port} 2"),
                format!("sentinel down-after-milliseconds m{index} 2000"),
                format!("sentinel failover-timeout m{index} 10000"),
            ]
        })
        .collect();
    let mut sentinels: Vec<Sentinel> = (0..3).map(|_| Sentinel::start(&live::watchfire(), &lines)).collect();
    let all = |sentinel: &Sentinel| {
        ask(sentinel.port, &["SENTINEL", "MASTERS"]).map(|reply| maps(&reply)).unwrap_or_default()
    };
    wait_for(LIMIT, "everybody to know everybody", || {
        sentinels.iter().all(|sentinel| {
            let all = all(sentinel);
            let known: usize = all.iter().map(|master| master["num-slaves"].parse().unwrap_or(0)).sum();
            all.len() == count
                && known == replicas.len()
                && all.iter().all(|master| master["num-other-sentinels"] == "2" && master["flags"] == "master")
        })
    });
    let before = Held::by(&mut sentinels[0]);

    let pings = pings(sentinels[0].port);
    let dead: Vec<u16> = masters.iter().enumerate().filter(|(index, _)| dies(*index)).map(|(_, &port)| port).collect();
    let begin = Instant::now();
    standin.with(move |world, reactor| dead.iter().for_each(|&port| world.kill(reactor, port)));
    let done = |index: usize, port: u16| (port != masters[index]) == (dies(index) && has_replica(index));
    let progress = AtomicUsize::new(0);
    wait_for(LIMIT, "every dead master to be replaced", || {
        let replaced = sentinels.iter().map(|sentinel| {
            let all = all(sentinel);
            let right = all.iter().filter(|master| {
                let index = master["name"][1..].parse().expect("a number");
                done(index, master["port"].parse().expect("a port"))
            });
            right.count()
        });
        let replaced: usize = replaced.sum();
        progress.store(replaced, Ordering::Relaxed);
        replaced == 3 * count
    });
    let took = begin.elapsed();
    let (times, after) = (pings.stop(), Held::by(&mut sentinels[0]));
    println!(
        "{count} masters, {} replicas, {} masters dead: all replaced that can be in {:.1} s; {}; KiB: {} before, {} at the \
         most, {} after; descriptors: {} before, {} after",
        replicas.len(),
        masters.len().div_ceil(2),
        took.as_secs_f64(),
        quantiles(&times),
        before.memory,
        after.peak,
        after.memory,
        before.descriptors,
        after.descriptors
    );
    assert!(after.descriptors <= before.descriptors, "links to the dead are not kept");
}

/// Time runs so much faster for the Sentinels of this test: every period is that part of its usual length.
const HASTE: u64 = 20;
/// How long the peer is silent, in the time of the field, s.
const SILENCE: u64 = 120;

#[test]
fn a_peer_that_is_silent_for_two_minutes_costs_nothing_and_is_one_again() {
    let _turn = live::turn();
    let mut group =
        live::start(Plan::new(vec![live::watchfire(); 3]).down_after(30_000 / HASTE).failover_timeout(3_000));
    let periods = [
        ("ping-period", 1_000),
        ("ask-period", 1_000),
        ("publish-period", 2_000),
        ("info-period", 10_000),
        ("min-link-reconnect-period", 15_000),
        ("tilt-period", 30_000),
    ];
    for sentinel in &group.sentinels {
        for (name, usual) in periods {
            let value = (usual / HASTE).to_string();
            assert_eq!(text(&sentinel.conn().cmd(&["SENTINEL", "DEBUG", name, &value])), "OK", "{name}");
        }
    }
    group.wait_known(LIMIT);
    let before = Held::by(&mut group.sentinels[0]);
    let silent = group.sentinels[2].port.to_string();
    let old = group.ports[0];
    group.sentinels[2].process().hang();

    // The other two are a majority.
    group.kill(old);
    let mut new = old;
    wait_for(LIMIT, "the two others to replace the master", || {
        new = group.agreed_by(&group.sentinels[..2]).unwrap_or(old);
        new != old
    });
    group.restart(old);
    let mut most = before.descriptors;
    let port = group.sentinels[0].port;
    wait_for(LIMIT, "a long silence", || {
        most = most.max(Held::by(&mut group.sentinels[0]).descriptors);
        let peers = ask(port, &["SENTINEL", "SENTINELS", "mymaster"]).map(|reply| maps(&reply)).unwrap_or_default();
        let peer = peers.iter().find(|peer| peer["port"] == silent).expect("the silent peer is not forgotten");
        peer["last-ok-ping-reply"].parse::<u64>().expect("ms") >= SILENCE * 1_000 / HASTE
    });
    group.sentinels[2].process().resume();
    wait_settled(&group, new);
    let after = wait_descriptors(&mut group.sentinels[0], before);
    println!(
        "descriptors {} before, {most} at the most, {} after; {before:?} {after:?}",
        before.descriptors, after.descriptors
    );
    // A link that is being replaced may be there twice.
    assert!(most <= before.descriptors + 4, "{most} descriptors for a peer that does not answer");

    // It counts again: without it there is no majority.
    let mut gone = group.sentinels.remove(1);
    gone.kill();
    group.kill(new);
    let last = group.wait_switched(LIMIT, new);
    assert_ne!(last, new);
}

#[test]
fn a_server_that_answers_more_than_it_was_asked_harms_nobody_else() {
    let _turn = live::turn();
    let standin = StandIn::start();
    let [liar, honest] = [standin.server(Spec::master()).port, standin.server(Spec::master()).port];
    let replica = standin.server(Spec::replica_of(honest)).port;
    let lines = [
        format!("sentinel monitor liar 127.0.0.1 {liar} 1"),
        format!("sentinel monitor honest 127.0.0.1 {honest} 1"),
        "sentinel down-after-milliseconds liar 1000".to_string(),
        "sentinel down-after-milliseconds honest 1000".to_string(),
    ];
    let mut sentinel = Sentinel::start(&live::watchfire(), &lines);
    live::hurry(&sentinel);
    let is_known = |sentinel: &Sentinel| {
        live::master_field(sentinel, "liar", "flags") == "master"
            && live::master_field(sentinel, "honest", "num-slaves") == "1"
    };
    wait_for(LIMIT, "both masters", || is_known(&sentinel));
    let before = Held::by(&mut sentinel);
    let pings = pings(sentinel.port);

    // A lost link is dialled once a period.
    assert_eq!(text(&sentinel.conn().cmd(&["SENTINEL", "DEBUG", "ping-period", "200"])), "OK");
    // Simple ones, those that a subscription may take for messages, and more at once than is read in one go.
    let message = b"*3\r\n$7\r\nmessage\r\n$18\r\n__sentinel__:hello\r\n$5\r\nhello\r\n";
    for extra in [&b"+PONG\r\n"[..], message, &b"+OK\r\n".repeat(load(1_000_000, 50_000))] {
        let dialled = standin.calls(liar)["client|setname"];
        standin.send_extra(liar, extra);
        wait_for(LIMIT, "the liar to be hung up on", || standin.calls(liar)["client|setname"] > dialled + 8);
        assert!(Held::by(&mut sentinel).descriptors <= before.descriptors + 2, "links to the liar pile up");
    }
    assert_eq!(sentinel.log().matches("a reply to no question").count(), 1, "said once:\n{}", sentinel.log());
    standin.kill(honest);
    wait_for(LIMIT, "the failover of the other master", || sentinel.master_port("honest") == Some(replica));
    standin.send_extra(liar, b"");
    wait_for(LIMIT, "the liar to be a master like others", || {
        let reply = ask(sentinel.port, &["SENTINEL", "MASTER", "liar"]).map(|reply| map(&reply)).unwrap_or_default();
        reply["flags"] == "master" && reply["info-refresh"].parse::<u64>().is_ok_and(|age| age < 1_000)
    });
    let (times, after) = (pings.stop(), Held::by(&mut sentinel));
    println!(
        "{}; KiB: {} before, {} at the most, {} after",
        quantiles(&times),
        before.memory,
        after.peak,
        after.memory
    );
    assert!(after.peak < before.peak + 16 * 1024, "{} KiB became {}", before.peak, after.peak);
    assert!(after.descriptors <= before.descriptors, "{} descriptors became {}", before.descriptors, after.descriptors);
}
