//! What people hold a Sentinel with: redis-cli and redis-py, in both protocols.

mod live;
mod support;

use std::path::Path;
use std::process::Command;

use live::{LIMIT, wait_settled};
use support::process::{find_program, present};

fn list(ports: impl Iterator<Item = u16>) -> String {
    ports.map(|port| port.to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn redis_py_discovers_lists_and_survives_a_failover_in_both_protocols() {
    let Some(python) = present(find_program("python3"), "python3") else { return };
    let packages = live::cache().join("pypi");
    let there = packages.join("redis-8.1.0.dist-info").is_dir().then_some(());
    if present(there, "redis-py 8.1.0 (tests/run fetches it)").is_none() {
        return;
    }
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let mut group = live::start(plan);
    group.sentinels.iter().for_each(live::hurry);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/clients.py");
    let mut master = group.ports[0];
    for protocol in ["3", "2"] {
        let redis = group.redis.iter_mut().find(|redis| redis.port == master).expect("the master is one of ours");
        let pid = redis.process().id().to_string();
        let replicas = list(group.ports.iter().copied().filter(|&port| port != master));
        let done = Command::new(&python)
            .arg(&script)
            .args([protocol, &pid, &master.to_string(), &replicas])
            .arg(list(group.sentinels.iter().map(|sentinel| sentinel.port)))
            .env("PYTHONPATH", &packages)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("python runs");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "protocol {protocol}:\n{out}{err}{}", support::process::tails());
        let new = group.wait_switched(LIMIT, master);
        assert_eq!(out.trim(), new.to_string());
        // It was killed by the script; this also takes note of its end.
        group.kill(master);
        group.restart(master);
        wait_settled(&group, new);
        master = new;
    }
}

#[test]
fn redis_cli_discovers_lists_and_fails_over() {
    let Some(cli) = present(find_program("redis-cli"), "redis-cli") else { return };
    let Some(plan) = live::plan(3) else { return };
    let _turn = live::turn();
    let group = live::start(plan);
    let ask = |options: &[&str], words: &[&str]| {
        let port = group.sentinels[0].port.to_string();
        let mut command = Command::new(&cli);
        command.args(["-p", &port]).args(options).args(words).env("LC_ALL", "C");
        let done = command.output().expect("redis-cli runs");
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text")
    };
    let (master, replicas) = (group.ports[0], &group.ports[1..]);
    let address = ["sentinel", "get-master-addr-by-name", "mymaster"];
    assert_eq!(ask(&[], &["ping"]), "PONG\n");
    assert_eq!(ask(&[], &address), format!("127.0.0.1\n{master}\n"));
    assert_eq!(ask(&["-3"], &address), format!("127.0.0.1\n{master}\n"));
    assert_eq!(ask(&["--no-raw"], &address), format!("1) \"127.0.0.1\"\n2) \"{master}\"\n"));
    assert_eq!(ask(&[], &["sentinel", "get-master-addr-by-name", "nobody"]), "\n");
    assert_eq!(ask(&["--no-raw"], &["sentinel", "get-master-addr-by-name", "nobody"]), "(nil)\n");

    // RESP2: flat lists; RESP3: maps.
    let flat = ask(&["--no-raw"], &["sentinel", "masters"]);
    assert!(flat.starts_with("1)  1) \"name\"\n    2) \"mymaster\"\n"), "{flat}");
    let maps = ask(&["-3", "--no-raw"], &["sentinel", "masters"]);
    assert!(maps.starts_with("1)  1# \"name\" => \"mymaster\"\n"), "{maps}");
    let json = ask(&["-3", "--json"], &["sentinel", "masters"]);
    assert!(json.starts_with("[{\"name\":\"mymaster\",\"ip\":\"127.0.0.1\","), "{json}");
    for kind in ["replicas", "slaves"] {
        let listed = ask(&["-3", "--json"], &["sentinel", kind, "mymaster"]);
        for replica in replicas {
            assert!(listed.contains(&format!("\"name\":\"127.0.0.1:{replica}\"")), "{listed}");
        }
    }
    let peers = ask(&["-3", "--json"], &["sentinel", "sentinels", "mymaster"]);
    assert!(peers.contains(&group.sentinels[1].id()) && peers.contains(&group.sentinels[2].id()), "{peers}");
    assert!(ask(&[], &["sentinel", "ckquorum", "mymaster"]).starts_with("OK 3 usable Sentinels."));
    let info = ask(&[], &["info", "sentinel"]);
    let line = format!("master0:name=mymaster,status=ok,address=127.0.0.1:{master},slaves=2,sentinels=3");
    assert!(info.contains(&line), "{info}");

    assert_eq!(ask(&[], &["sentinel", "failover", "mymaster"]), "OK\n");
    let new = group.wait_switched(LIMIT, master);
    assert_eq!(ask(&[], &address), format!("127.0.0.1\n{new}\n"));
    wait_settled(&group, new);
    assert!(ask(&[], &["sentinel", "failover", "nobody"]).starts_with("ERR No such master with that name"));
}
