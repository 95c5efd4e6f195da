//! Reports of users, group A: TILT, clocks, name servers, host names. The numbers are those of the collection of
//! reports; what the core alone decides is in `tests/transcripts` (r04, r06, r12, r14).
//!
//! Names need a hosts file and a name server of their own: most tests run inside a mount namespace.

mod live;
mod support;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use live::{LIMIT, count, master_field};
use support::conn::{Conn, ask, info, maps, text, texts};
use support::namespace::{enter, set_hosts};
use support::ports;
use support::process::{Redis, Sentinel, info_of, present, wait_for};
use support::standin::{Comeback, Spec, StandIn};
use watchfire::resp::Reply;

const LOCAL: &str = "127.0.0.1 localhost\n";

fn sentinel(lines: &[&str]) -> Sentinel {
    Sentinel::start(&live::watchfire(), &lines.iter().map(ToString::to_string).collect::<Vec<_>>())
}

/// Host and port as clients are told them.
fn address(sentinel: &Sentinel, name: &str) -> Vec<String> {
    ask(sentinel.port, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]).map(|reply| texts(&reply)).unwrap_or_default()
}

fn replicas(sentinel: &Sentinel, name: &str) -> Vec<BTreeMap<String, String>> {
    ask(sentinel.port, &["SENTINEL", "REPLICAS", name]).map(|reply| maps(&reply)).unwrap_or_default()
}

fn tilts(sentinel: &Sentinel) -> String {
    info(&sentinel.conn().cmd(&["INFO", "sentinel"]))["sentinel_total_tilt"].clone()
}

/// A name server on a loopback address of its own. It knows that every name is 127.0.0.1, and of so many questions it
/// leaves one unanswered; with 1 it answers none.
struct NameServer {
    asked: Arc<AtomicU32>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    /// What [`enter`] mounts for it. `number` tells the tests of this file from each other.
    fn resolv_conf(number: u8) -> String {
        let id = std::process::id();
        let [high, low] = [id / 250 % 250, id % 250 + 1];
        format!("nameserver 127.{number}.{high}.{low}\noptions timeout:3 attempts:1\n")
    }

    /// None: this machine lets nobody be a name server.
    fn start(leave_out: u32) -> Option<NameServer> {
        let conf = std::fs::read_to_string("/etc/resolv.conf").expect("the file of this namespace");
        let address = conf.lines().find_map(|line| line.strip_prefix("nameserver ")).expect("our own address");
        // The one port that resolvers know.
        let dns = 53;
        let socket = UdpSocket::bind((address.parse::<Ipv4Addr>().expect("an address"), dns));
        let socket = present(socket.ok(), "leave to be a name server")?;
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
        let (asked, over) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
        let (count, end) = (Arc::clone(&asked), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let mut packet = [0; 512];
            while !end.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
                if !count.fetch_add(1, Ordering::Relaxed).is_multiple_of(leave_out) {
                    let _ = socket.send_to(&answer(&packet[..length]), from);
                }
            }
        });
        Some(NameServer { asked, over, thread: Some(thread) })
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// 127.0.0.1 when an IPv4 address is asked for, else nothing.
fn answer(question: &[u8]) -> Vec<u8> {
    let name = question[12..].iter().position(|&byte| byte == 0).expect("the end of the name");
    let end = 12 + name + 5;
    let is_a = question[12 + name + 1..12 + name + 3] == [0, 1];
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    answer.extend(&question[12..end]);
    if is_a {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
    }
    answer
}

/// PINGs again and again for this long; every one has to be answered soon, and most at once. A machine that is busy with
/// other things stalls us too, but never for as long as a name server that does not answer.
fn pings_well(sentinel: &Sentinel, span: Duration) {
    let mut conn = sentinel.conn();
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < span {
        let asked = Instant::now();
        assert_eq!(conn.cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
        times.push(asked.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    times.sort_unstable();
    assert!(times[times.len() / 2] < Duration::from_millis(100), "{:?}", times[times.len() / 2]);
    assert!(times[times.len() - 1] < Duration::from_millis(1500), "{:?}", times[times.len() - 1]);
}

#[test]
fn r01_a_name_server_that_never_answers_stops_nobody() {
    // As long as a resolver can wait; nothing below is allowed to.
    let conf = NameServer::resolv_conf(101).replace("timeout:3", "timeout:30");
    let files = [("/etc/hosts", LOCAL), ("/etc/resolv.conf", conf.as_str())];
    if !enter("r01_a_name_server_that_never_answers_stops_nobody", &files) {
        return;
    }
    let Some(server) = NameServer::start(1) else { return };
    let standin = StandIn::start();
    let (here, named) = (standin.server(Spec::master()).port.to_string(), standin.server(Spec::master()).port);
    let sentinel = sentinel(&["sentinel resolve-hostnames yes"]);
    let mut conn = sentinel.conn();
    let begin = Instant::now();
    let reply = conn.cmd(&["SENTINEL", "MONITOR", "slow", "slowhost.example", "6379", "1"]);
    assert_eq!(reply, Reply::Simple(b"OK".to_vec()));
    assert!(begin.elapsed() < Duration::from_millis(1500), "{:?}", begin.elapsed());
    wait_for(LIMIT, "the question", || server.asked() > 0);
    // Meanwhile an address is as good as ever, and so is a name of the hosts file.
    assert_eq!(conn.cmd(&["SENTINEL", "MONITOR", "here", "127.0.0.1", &here, "1"]), Reply::Simple(b"OK".to_vec()));
    let monitor = ["SENTINEL", "MONITOR", "named", "localhost", &named.to_string(), "1"];
    assert_eq!(conn.cmd(&monitor), Reply::Simple(b"OK".to_vec()));
    pings_well(&sentinel, Duration::from_millis(3500));
    for name in ["here", "named"] {
        wait_for(Duration::from_secs(20), "its link", || master_field(&sentinel, name, "flags") == "master");
    }
    assert!(begin.elapsed() < Duration::from_secs(30), "the slow name is still looked for: {:?}", begin.elapsed());
    assert_eq!(tilts(&sentinel), "0", "{}", sentinel.log());
    assert_eq!(address(&sentinel, "slow"), ["slowhost.example", "6379"]);
    // It is not down before its time, and it is not forgotten.
    assert!(sentinel.conf().contains("sentinel monitor slow slowhost.example 6379 1"), "{}", sentinel.conf());
}

#[test]
fn r02_slow_look_ups_now_and_then_cause_no_tilt() {
    let files = [("/etc/hosts", LOCAL), ("/etc/resolv.conf", &NameServer::resolv_conf(102))];
    if !enter("r02_slow_look_ups_now_and_then_cause_no_tilt", &files) {
        return;
    }
    let Some(server) = NameServer::start(5) else { return };
    let standin = StandIn::start();
    // Names that are looked up again and again, as nobody answers there; and one that is well.
    let mut lines = vec!["sentinel resolve-hostnames yes".to_string()];
    for n in 0..8 {
        lines.push(format!("sentinel monitor dead{n} host{n}.example {} 1", ports::free()));
    }
    lines.push(format!("sentinel monitor well well.example {} 1", standin.server(Spec::master()).port));
    let sentinel = Sentinel::start(&live::watchfire(), &lines);
    pings_well(&sentinel, Duration::from_secs(7));
    wait_for(LIMIT, "the link to the one that is well", || master_field(&sentinel, "well", "flags") == "master");
    assert!(server.asked() > 10, "{} questions", server.asked());
    assert_eq!(tilts(&sentinel), "0", "{}", sentinel.log());
}

#[test]
fn r03_tilt_is_counted_and_its_gap_is_told() {
    let mut sentinel = sentinel(&[]);
    let events = sentinel.events(&["*"]);
    let reply = sentinel.conn().cmd(&["SENTINEL", "DEBUG", "tilt-trigger", "1500", "tilt-period", "1000"]);
    assert_eq!(text(&reply), "OK");
    assert_eq!(tilts(&sentinel), "0");
    sentinel.process().hang();
    // The gap is what this is about.
    std::thread::sleep(Duration::from_millis(2000));
    sentinel.process().resume();
    let _ = events.expect(LIMIT, "+tilt", "#tilt mode entered");
    assert_ne!(tilts(&sentinel), "0");
    let log = sentinel.log();
    let gap = log.lines().find_map(|line| line.split_once("No turn of the cron for ")?.1.strip_suffix(" stood still"));
    let gap = gap.unwrap_or_else(|| panic!("no word about the gap in:\n{log}"));
    let (ms, rest) = gap.split_once(' ').expect("the gap and its unit");
    assert!(ms.parse::<u64>().expect("a number of ms") >= 1900, "{gap}");
    assert!(rest.starts_with("ms (limit 1500)"), "{gap}");
    let _ = events.expect(LIMIT, "-tilt", "#tilt mode exited");
}

/// Three Sentinels and three servers that know each other by names only. R09: the directives about names stand behind
/// the master's, and what clients are told is a name before and after.
#[test]
fn r04_r09_a_group_of_names_fails_over_although_the_name_of_its_master_is_gone() {
    let all = "127.0.0.1 localhost redis1 redis2 redis3 sentinel1 sentinel2 sentinel3\n";
    let without = all.replace(" redis1", "");
    let test = "r04_r09_a_group_of_names_fails_over_although_the_name_of_its_master_is_gone";
    if !enter(test, &[("/etc/hosts", all), ("/etc/resolv.conf", "")]) {
        return;
    }
    let Some(program) = present(Redis::program(), "redis-server") else { return };
    let _turn = live::turn();
    let mut servers = vec![Redis::start(&program, &["replica-announce-ip redis1"])];
    let master = servers[0].port;
    for n in [2, 3] {
        let lines = [format!("replicaof redis1 {master}"), format!("replica-announce-ip redis{n}")];
        servers.push(Redis::start(&program, &[&lines[0], &lines[1]]));
    }
    let sentinels: Vec<Sentinel> = (1..4)
        .map(|n| {
            let announce = format!("sentinel announce-ip sentinel{n}");
            let monitor = format!("sentinel monitor mymaster redis1 {master} 2");
            sentinel(&[
                &monitor,
                "sentinel down-after-milliseconds mymaster 1000",
                "sentinel failover-timeout mymaster 5000",
                "sentinel resolve-hostnames yes",
                "sentinel announce-hostnames yes",
                &announce,
            ])
        })
        .collect();
    sentinels.iter().for_each(live::hurry);
    let is_known = |sentinel: &Sentinel| {
        let replicas = replicas(sentinel, "mymaster");
        let well = |replica: &BTreeMap<_, String>| replica["flags"] == "slave" && replica["master-link-status"] == "ok";
        master_field(sentinel, "mymaster", "flags") == "master"
            && master_field(sentinel, "mymaster", "num-other-sentinels") == "2"
            && replicas.len() == 2
            && replicas.iter().all(well)
    };
    wait_for(LIMIT, "everybody to know everybody", || sentinels.iter().all(is_known));
    let told = ["redis1".to_string(), master.to_string()];
    assert!(sentinels.iter().all(|sentinel| address(sentinel, "mymaster") == told));

    let events: Vec<_> = sentinels.iter().map(|sentinel| sentinel.events(&["*"])).collect();
    set_hosts(&without);
    servers[0].kill();
    let mut new = Vec::new();
    wait_for(LIMIT, "all Sentinels to tell another master", || {
        new = address(&sentinels[0], "mymaster");
        new.len() == 2 && new != told && sentinels.iter().all(|sentinel| address(sentinel, "mymaster") == new)
    });
    let (promoted, other) = if new[1] == servers[1].port.to_string() { (1, 2) } else { (2, 1) };
    assert_eq!(new, [format!("redis{}", promoted + 1), servers[promoted].port.to_string()]);
    let switch = format!("mymaster redis1 {master} {} {}", new[0], new[1]);
    for events in &events {
        let _ = events.expect(LIMIT, "+switch-master", &switch);
    }
    let follows = |port: u16| {
        let info = info_of(port);
        let field = |name: &str| info.get(name).cloned().unwrap_or_default();
        field("master_link_status") == "up" && [field("master_host"), field("master_port")] == new[..]
    };
    wait_for(LIMIT, "the other replica to follow", || follows(servers[other].port));

    // The old master is back before its name is: it is turned at its last address.
    servers[0].restart();
    wait_for(LIMIT, "the old master to follow", || follows(master));
    set_hosts(all);
    wait_for(LIMIT, "everybody to know everybody", || sentinels.iter().all(is_known));
    for (sentinel, events) in sentinels.iter().zip(&events) {
        assert_eq!(count(events, "+switch-master", ""), 1);
        let mut names: Vec<String> = replicas(sentinel, "mymaster").iter().map(|r| r["name"].clone()).collect();
        names.sort();
        let mut wanted = [format!("redis1:{master}"), format!("redis{}:{}", other + 1, servers[other].port)];
        wanted.sort();
        assert_eq!(names, wanted);
        // Nobody is known by an address.
        let conf = sentinel.conf();
        let mut state = conf.lines().filter(|line| line.starts_with("sentinel "));
        assert!(state.all(|line| !line.contains("127.0.0.1")), "{conf}");
        assert!(conf.contains(&format!("sentinel monitor mymaster {} {} 2", new[0], new[1])), "{conf}");
    }
}

#[test]
fn r08_a_file_of_addresses_becomes_a_file_of_names_and_nobody_is_two() {
    let hosts = "127.0.0.1 localhost node1 node2\n";
    let test = "r08_a_file_of_addresses_becomes_a_file_of_names_and_nobody_is_two";
    if !enter(test, &[("/etc/hosts", hosts), ("/etc/resolv.conf", "")]) {
        return;
    }
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let named = ports::free();
    let replica = standin
        .server(Spec { port: Some(named), announce: Some(("node2".to_string(), named)), ..Spec::replica_of(master) })
        .port;
    let mut sentinel = sentinel(&[
        &format!("sentinel monitor mymaster 127.0.0.1 {master} 1"),
        &format!("sentinel known-replica mymaster 127.0.0.1 {replica}"),
        "sentinel resolve-hostnames yes",
        "sentinel announce-hostnames yes",
    ]);
    for start in 0..3 {
        wait_for(LIMIT, "the replica under its name, and only once", || {
            let replicas = replicas(&sentinel, "mymaster");
            replicas.len() == 1 && replicas[0]["name"] == format!("node2:{replica}") && replicas[0]["flags"] == "slave"
        });
        let conf = sentinel.conf();
        let lines: Vec<&str> = conf.lines().filter(|line| line.starts_with("sentinel known-replica")).collect();
        assert_eq!(lines, [format!("sentinel known-replica mymaster node2 {replica}")], "start {start}");
        sentinel.restart();
    }
}

/// With names announced, clients are told the name, whatever it means on this machine. Without, they are told what it
/// means here, as upstream; that it is so is said once at the start.
#[test]
fn r10_r11_a_name_that_means_loopback_here_is_told_as_a_name_or_its_address_with_a_note() {
    let hosts = "127.0.0.1 localhost\n127.0.1.1 thishost\n";
    let test = "r10_r11_a_name_that_means_loopback_here_is_told_as_a_name_or_its_address_with_a_note";
    if !enter(test, &[("/etc/hosts", hosts), ("/etc/resolv.conf", "")]) {
        return;
    }
    let port = ports::free().to_string();
    let monitor = format!("sentinel monitor mymaster thishost {port} 1");
    let names = "sentinel resolve-hostnames yes";
    let by_name = sentinel(&[&monitor, names, "sentinel announce-hostnames yes"]);
    let by_address = sentinel(&[&monitor, names]);
    wait_for(LIMIT, "the address", || address(&by_address, "mymaster") == ["127.0.1.1", &port]);
    assert_eq!(address(&by_name, "mymaster"), ["thishost", &port]);
    let note = |sentinel: &Sentinel| sentinel.log().matches("clients are told addresses").count();
    assert_eq!((note(&by_name), note(&by_address)), (0, 1), "{}", by_address.log());
    // In the file it is what the operator wrote.
    for sentinel in [&by_name, &by_address] {
        assert_eq!(text(&sentinel.conn().cmd(&["SENTINEL", "FLUSHCONFIG"])), "OK");
        assert!(sentinel.conf().contains(&monitor), "{}", sentinel.conf());
    }
}

#[test]
fn r14_a_start_before_the_name_server_is_up_and_the_master_is_found_when_it_is() {
    let test = "r14_a_start_before_the_name_server_is_up_and_the_master_is_found_when_it_is";
    if !enter(test, &[("/etc/hosts", LOCAL), ("/etc/resolv.conf", "")]) {
        return;
    }
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let monitor = format!("sentinel monitor mymaster latehost {master} 1");
    let mut sentinel = sentinel(&[&monitor, "sentinel resolve-hostnames yes", "sentinel announce-hostnames yes"]);
    assert_eq!(Conn::to(sentinel.port).cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
    assert_eq!(address(&sentinel, "mymaster"), ["latehost", &master.to_string()]);
    // What it wrote meanwhile can be read again.
    assert!(sentinel.conf().contains(&monitor), "{}", sentinel.conf());
    sentinel.restart();
    set_hosts(&format!("{LOCAL}127.0.0.1 latehost\n"));
    wait_for(LIMIT, "the link", || master_field(&sentinel, "mymaster", "flags") == "master");
    // Gone again: what is known stays known, over a restart of the server too.
    set_hosts(LOCAL);
    standin.restart(master, Comeback::AsMaster);
    let run_id = standin.state(master).run_id;
    wait_for(LIMIT, "the new process there", || master_field(&sentinel, "mymaster", "runid") == run_id);
    assert_eq!(tilts(&sentinel), "0");
}
