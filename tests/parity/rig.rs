//! What the script is played to: three pairs of one redis-sentinel and one watchfire each.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::run::{Pair, Side};
use super::support::conn::{Conn, ask, map, maps, text};
use super::support::process::{Folder, Program, Redis, Sentinel, info_of, wait_for};
use super::support::standin::{Spec, StandIn};
use super::view::Names;

const LIMIT: Duration = Duration::from_secs(30);
/// So few that the script can use them up.
pub const MAXCLIENTS: usize = 40;
pub const PASSWORD: &str = "sesame";

pub struct Rig {
    /// Nobody needs a password. Watches a master with one replica, as `mymaster`; the two are each other's peer.
    pub open: Pair,
    /// `requirepass` and some users. Watches the same master as `locked`.
    pub locked: Pair,
    /// Watches nothing; its users are in an ACL file.
    pub empty: Pair,
    _sentinels: Vec<Sentinel>,
    _servers: [Redis; 2],
    _folder: Folder,
}

impl Rig {
    pub fn start(reference: &Program, server: &Path) -> Rig {
        let master = Redis::start(server, &[]);
        let replica = Redis::start(server, &[&format!("replicaof 127.0.0.1 {}", master.port)]);
        wait_for(LIMIT, "the replica's link", || {
            info_of(replica.port).get("master_link_status").is_some_and(|status| status == "up")
        });
        let folder = Folder::new("parity");
        let watch = |name: &str| {
            [
                format!("sentinel monitor {name} 127.0.0.1 {} 2", master.port),
                // A busy machine must not make anybody look dead.
                format!("sentinel down-after-milliseconds {name} 120000"),
                format!("sentinel failover-timeout {name} 70000"),
            ]
        };
        let lock = [
            format!("requirepass {PASSWORD}"),
            "user few on >few ~* -@all +ping +subscribe +client|setname +sentinel|get-master-addr-by-name &+switch-master"
                .to_string(),
            "user off off >off ~* +@all".to_string(),
            "user first on >first -@all +sentinel|master +role +hello +auth +acl|whoami".to_string(),
        ];
        let ours = Program::watchfire(env!("CARGO_BIN_EXE_watchfire"));
        let mut sentinels = Vec::new();
        let mut start = |program: &Program, lines: Vec<String>| {
            sentinels.push(Sentinel::start(program, &lines));
            sentinels[sentinels.len() - 1].port
        };
        let open = [reference, &ours].map(|program| start(program, watch("mymaster").to_vec()));
        let locked = [reference, &ours].map(|program| start(program, [&watch("locked")[..], &lock[..]].concat()));
        let empty = [(reference, "theirs"), (&ours, "ours")].map(|(program, name)| {
            let file = folder.path().join(format!("{name}.acl"));
            let users = format!("user default on nopass ~* &* +@all\nuser reader on >{PASSWORD} -@all +ping +info\n");
            std::fs::write(&file, users).expect("the folder can be written");
            start(program, vec![format!("aclfile {}", file.display()), format!("maxclients {MAXCLIENTS}")])
        });
        wait_known(open, "mymaster", None);
        wait_known(locked, "locked", Some(PASSWORD));
        let words = vec![
            ("{master}", master.port.to_string()),
            ("{replica}", replica.port.to_string()),
            ("{64k}", "1".repeat(64 * 1024)),
        ];
        let pair = |ports: [u16; 2], password| pair(ports, password, words.clone());
        let mut open = pair(open, None);
        add_failover(&mut open);
        Rig {
            open,
            locked: pair(locked, Some(PASSWORD)),
            empty: pair(empty, None),
            _sentinels: sentinels,
            _servers: [master, replica],
            _folder: folder,
        }
    }
}

fn conn(port: u16, password: Option<&str>) -> Conn {
    let mut conn = Conn::to(port);
    if let Some(password) = password {
        assert_eq!(text(&conn.cmd(&["AUTH", password])), "OK");
    }
    conn
}

fn pair(ports: [u16; 2], password: Option<&str>, words: Vec<(&'static str, String)>) -> Pair {
    let ids = ports.map(|port| text(&conn(port, password).cmd(&["SENTINEL", "MYID"])));
    let side = |own: usize| Side {
        port: ports[own],
        names: Names(vec![
            (ids[own].clone(), "<own-id>"),
            (ids[1 - own].clone(), "<peer-id>"),
            (ports[own].to_string(), "<own-port>"),
            (ports[1 - own].to_string(), "<peer-port>"),
        ]),
        words: Vec::new(),
    };
    Pair { theirs: side(0), ours: side(1), words, deeds: Vec::new() }
}

/// A master with one replica for each side alone, both stand-ins: `{old}` and `{new}`. On the stage the replica's INFO
/// stays that of a replica whatever it is told, so that a failover stops where it waits for the promotion.
fn add_failover(pair: &mut Pair) {
    let standin = Rc::new(StandIn::start());
    let mut servers = Vec::new();
    for side in [&mut pair.theirs, &mut pair.ours] {
        let old = standin.server(Spec::master()).port;
        let new = standin.server(Spec::replica_of(old)).port;
        for (word, name, port) in [("{old}", "<old>", old), ("{new}", "<new>", new)] {
            side.names.0.push((port.to_string(), name));
            side.names.0.push((info_of(port)["run_id"].clone(), "<run-id>"));
            side.words.push((word, port.to_string()));
        }
        wait_for(LIMIT, "the stand-in's link", || {
            info_of(new).get("master_link_status").is_some_and(|status| status == "up")
        });
        servers.push((old, new, ask(new, &["INFO"]).map(|info| text(&info))));
    }
    let subscribed = |standin: &StandIn, port| standin.calls(port).get("subscribe").copied().unwrap_or_default();
    let before = Rc::new(RefCell::new(Vec::new()));
    let (stage, all, noted) = (Rc::clone(&standin), servers.clone(), Rc::clone(&before));
    pair.deeds.push((
        "stage a failover",
        Box::new(move || {
            *noted.borrow_mut() = all.iter().map(|(_, new, _)| subscribed(&stage, *new)).collect();
            for (old, new, as_replica) in &all {
                stage.replicate(*old, None);
                stage.replicate(*new, Some(*old));
                // Asked too early, the old master names no replica, and is asked again after ten seconds.
                wait_for(LIMIT, "the stand-in's replica", || {
                    info_of(*old).get("connected_slaves").is_some_and(|count| count == "1")
                });
                stage.lie(*new, as_replica.as_deref());
            }
        }),
    ));
    let (stage, all) = (Rc::clone(&standin), servers.clone());
    pair.deeds.push((
        "see the cut link back",
        Box::new(move || {
            for ((_, new, _), before) in all.iter().zip(before.borrow().iter()) {
                // Once when the replica was met, and again behind the transaction that cut the link.
                wait_for(LIMIT, "the second subscription", || subscribed(&stage, *new) >= before + 2);
            }
        }),
    ));
    pair.deeds
        .push(("tell the truth", Box::new(move || servers.iter().for_each(|(_, new, _)| standin.lie(*new, None)))));
}

/// Waits until both know the replica and each other, and nothing of what they show is still to come.
fn wait_known(ports: [u16; 2], name: &str, password: Option<&str>) {
    let mut conns = ports.map(|port| conn(port, password));
    wait_for(LIMIT, &format!("everybody to know everybody around {name}"), || {
        conns.iter_mut().all(|conn| {
            let is = |fields: &std::collections::BTreeMap<String, String>, wanted: &[(&str, &str)]| {
                wanted.iter().all(|(key, value)| fields.get(*key).is_some_and(|found| found == value))
            };
            let master = map(&conn.cmd(&["SENTINEL", "MASTER", name]));
            let replicas = maps(&conn.cmd(&["SENTINEL", "REPLICAS", name]));
            let peers = maps(&conn.cmd(&["SENTINEL", "SENTINELS", name]));
            is(&master, &[("flags", "master"), ("num-slaves", "1"), ("num-other-sentinels", "1")])
                && !master["runid"].is_empty()
                && replicas.iter().all(|replica| {
                    is(replica, &[("flags", "slave"), ("master-link-status", "ok")]) && !replica["runid"].is_empty()
                })
                && peers.iter().all(|peer| is(peer, &[("flags", "sentinel")]))
        })
    });
}
