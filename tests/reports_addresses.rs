//! Reports of users, group B: bind, source addresses, NAT, IPv6. The numbers are those of the collection of reports;
//! R15 and R16 are in
//! `tests/process_sockets.rs`, R18 is a story in `tests/transcripts`.

mod live;
mod support;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, TcpListener};

use live::{LIMIT, master_field};
use support::conn::{Events, ask, maps, texts};
use support::process::{Sentinel, present, wait_for};
use support::standin::{Spec, StandIn};

fn sentinel(lines: &[String]) -> Sentinel {
    Sentinel::start(&live::watchfire(), lines)
}

fn monitor(port: u16) -> String {
    format!("sentinel monitor mymaster 127.0.0.1 {port} 1")
}

/// Whether this machine has IPv6 at all.
fn ipv6() -> bool {
    present(TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok(), "IPv6 (::1)").is_some()
}

fn is_well(sentinel: &Sentinel) -> bool {
    master_field(sentinel, "mymaster", "flags") == "master"
}

/// The first field of a hello of this Sentinel, read where it publishes it.
fn announced(hellos: &Events, sentinel: &Sentinel) -> String {
    let hello = hellos.expect(LIMIT, "__sentinel__:hello", &format!(",{},", sentinel.id()));
    hello.payload.split(',').next().unwrap_or_default().to_string()
}

/// A set that lives on IPv6: what the file says is loaded, dialled, failed over, told without brackets and written as it
/// was.
#[test]
fn r17_ipv6_addresses_are_kept_as_they_are_and_told_without_brackets() {
    if !ipv6() {
        return;
    }
    let standin = StandIn::start();
    let host = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let master = standin.server(Spec { host, ..Spec::master() }).port;
    let spec = Spec { host, replica_of: Some(("::1".to_string(), master)), ..Spec::default() };
    let replica = standin.server(spec).port;
    let mut sentinel = sentinel(&[
        format!("sentinel monitor mymaster ::1 {master} 1"),
        format!("sentinel known-replica mymaster ::1 {replica}"),
        "sentinel down-after-milliseconds mymaster 1000".to_string(),
    ]);
    let replicas = |sentinel: &Sentinel| -> Vec<BTreeMap<String, String>> {
        ask(sentinel.port, &["SENTINEL", "REPLICAS", "mymaster"]).map(|reply| maps(&reply)).unwrap_or_default()
    };
    wait_for(LIMIT, "the replica", || {
        let replicas = replicas(&sentinel);
        is_well(&sentinel) && replicas.len() == 1 && replicas[0]["master-link-status"] == "ok"
    });
    let known = &replicas(&sentinel)[0];
    assert_eq!((known["ip"].as_str(), known["name"].as_str()), ("::1", format!("[::1]:{replica}").as_str()));
    let address =
        |sentinel: &Sentinel| texts(&sentinel.conn().cmd(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"]));
    assert_eq!(address(&sentinel), ["::1", &master.to_string()]);

    let events = sentinel.events(&["*"]);
    standin.kill(master);
    let _ = events.expect(LIMIT, "+switch-master", &format!("mymaster ::1 {master} ::1 {replica}"));
    assert_eq!(address(&sentinel), ["::1", &replica.to_string()]);
    wait_for(LIMIT, "the end of the failover", || {
        sentinel.conf().contains(&format!("known-replica mymaster ::1 {master}"))
    });
    sentinel.restart();
    assert_eq!(address(&sentinel), ["::1", &replica.to_string()]);
    assert!(sentinel.conf().contains(&format!("sentinel monitor mymaster ::1 {replica} 1")), "{}", sentinel.conf());
}

#[test]
fn r20_a_hello_tells_announce_ip_or_else_the_local_address_of_that_very_link() {
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let hellos = Events::subscribe(master, &["__sentinel__:hello"]);
    let bind = "bind 127.0.0.1 127.0.0.2".to_string();
    let from = sentinel(&[monitor(master), bind.clone(), "bind-source-addr 127.0.0.2".to_string()]);
    assert_eq!(announced(&hellos, &from), "127.0.0.2");
    let announce = "sentinel announce-ip 127.0.0.4".to_string();
    let told = sentinel(&[monitor(master), bind, "bind-source-addr 127.0.0.2".to_string(), announce]);
    assert_eq!(announced(&hellos, &told), "127.0.0.4");
}

#[test]
fn r22_announce_ip_is_about_the_sentinel_and_not_about_the_master() {
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let hellos = Events::subscribe(master, &["__sentinel__:hello"]);
    let lines = ["sentinel announce-ip 127.0.0.9", "sentinel announce-port 5"].map(str::to_string);
    let sentinel = sentinel(&[&[monitor(master)], &lines[..]].concat());
    let hello = hellos.expect(LIMIT, "__sentinel__:hello", ",mymaster,");
    assert!(hello.payload.starts_with("127.0.0.9,5,"), "{}", hello.payload);
    assert!(hello.payload.ends_with(&format!(",mymaster,127.0.0.1,{master},0")), "{}", hello.payload);
    let address = texts(&sentinel.conn().cmd(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"]));
    assert_eq!(address, ["127.0.0.1", &master.to_string()]);
}
