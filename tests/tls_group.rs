//! Groups that speak TLS and nothing else: real servers, real peers, a killed master.
#![cfg(feature = "tls")]

mod support;
mod tls_support;

use std::time::Duration;

use support::conn::{info, map, maps, text, texts};
use support::ports;
use support::process::{Folder, Program, Redis, present, wait_for};
use tls_support::{Authority, Dial, Node, tls_lines};

const LIMIT: Duration = Duration::from_secs(40);

struct Group {
    servers: Vec<Node>,
    sentinels: Vec<Node>,
    dial: Dial,
    lines: Vec<String>,
    /// Of the certificates; removed last.
    _folder: Folder,
}

fn watchfire() -> Program {
    Program::watchfire(env!("CARGO_BIN_EXE_watchfire"))
}

impl Group {
    /// A master, two replicas and these Sentinels. All servers show the same certificate; the Sentinels have one of their
    /// own for links, so that both directives are in use.
    fn start(server: &Program, sentinels: &[Program]) -> Group {
        let folder = Folder::new("certificates");
        let authority = Authority::new(folder.path(), "home");
        let (node, link) = (authority.issue("node"), authority.issue("link"));
        let dial = Dial::new(Some(&node));
        let mut lines = tls_lines(&authority, &node);
        lines.push("tls-replication yes".to_string());

        let mut of_server = lines.clone();
        of_server.extend(["save \"\"", "appendonly no", "repl-diskless-sync-delay 0"].map(String::from));
        let mut servers = vec![Node::start(server, &of_server, &dial)];
        let master = servers[0].port;
        of_server.push(format!("replicaof 127.0.0.1 {master}"));
        for _ in 0..2 {
            servers.push(Node::start(server, &of_server, &dial));
        }
        for replica in &servers[1..] {
            wait_for(LIMIT, "the replicas' links", || {
                dial.ask(replica.port, &["INFO", "replication"])
                    .is_some_and(|reply| info(&reply).get("master_link_status").is_some_and(|status| status == "up"))
            });
        }
        lines.extend([
            format!("tls-client-cert-file {}", link.cert.display()),
            format!("tls-client-key-file {}", link.key.display()),
            format!("sentinel monitor mymaster 127.0.0.1 {master} 2"),
            "sentinel down-after-milliseconds mymaster 1000".to_string(),
            "sentinel failover-timeout mymaster 6000".to_string(),
        ]);
        let sentinels = sentinels.iter().map(|program| Node::start(program, &lines, &dial)).collect();
        let group = Group { servers, sentinels, dial, lines, _folder: folder };
        group.wait_known(2);
        group
    }

    fn wait_known(&self, replicas: usize) {
        wait_for(LIMIT, "everybody to know everybody", || {
            self.sentinels.iter().all(|sentinel| self.is_known(sentinel.port, replicas).unwrap_or(false))
        });
    }

    fn is_known(&self, port: u16, replicas: usize) -> Option<bool> {
        let ask = |what: &str| self.dial.ask(port, &["SENTINEL", what, "mymaster"]);
        let sound = |instance: &std::collections::BTreeMap<String, String>, flags: &str| instance["flags"] == flags;
        Some(
            sound(&map(&ask("MASTER")?), "master")
                && maps(&ask("REPLICAS")?).iter().filter(|replica| sound(replica, "slave")).count() == replicas
                && maps(&ask("SENTINELS")?).iter().filter(|peer| sound(peer, "sentinel")).count()
                    == self.sentinels.len() - 1,
        )
    }

    fn master(&self) -> Option<u16> {
        let mut ports = self.sentinels.iter().map(|sentinel| {
            let reply = self.dial.ask(sentinel.port, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"])?;
            texts(&reply).get(1)?.parse().ok()
        });
        let first = ports.next()??;
        ports.all(|port| port == Some(first)).then_some(first)
    }

    /// Kills the master, waits for the next one, and brings the old one back as a replica. A redis-sentinel now and then
    /// fails over a second time at once, so the master that counts is the one there is when everything is calm.
    fn fail_over(&mut self) -> u16 {
        let old = self.master().expect("one master");
        let dial = self.dial.clone();
        self.server(old).process.kill();
        wait_for(LIMIT, "another master that takes writes", || {
            self.master().is_some_and(|port| port != old && is_writable(&dial, port))
        });
        self.server(old).restart(&dial);
        wait_for(LIMIT, "the old master to follow the new one", || {
            let Some(new) = self.master().filter(|port| *port != old) else { return false };
            dial.ask(old, &["INFO", "replication"]).is_some_and(|reply| {
                let fields = info(&reply);
                fields.get("master_port") == Some(&new.to_string())
                    && fields.get("master_link_status").is_some_and(|status| status == "up")
            })
        });
        self.wait_known(2);
        self.master().expect("one master")
    }

    fn server(&mut self, port: u16) -> &mut Node {
        self.servers.iter_mut().find(|server| server.port == port).expect("a server of this group")
    }
}

fn is_writable(dial: &Dial, port: u16) -> bool {
    dial.ask(port, &["SET", "watchfire", "lit"]).is_some_and(|reply| text(&reply) == "OK")
}

#[test]
fn three_sentinels_that_speak_only_tls_fail_over() {
    let Some(server) = present(Redis::program(), "redis-server") else { return };
    let server = Program { name: "redis-server".to_string(), path: server, args: Vec::new() };
    let mut group = Group::start(&server, &[watchfire(), watchfire(), watchfire()]);
    // What the hello announces is the only port there is.
    let ports: Vec<String> = group.sentinels.iter().map(|sentinel| sentinel.port.to_string()).collect();
    let peers = maps(&group.dial.ask(group.sentinels[0].port, &["SENTINEL", "SENTINELS", "mymaster"]).unwrap());
    assert!(peers.iter().all(|peer| ports.contains(&peer["port"])), "{peers:?}");
    let first = group.fail_over();
    // SIGHUP in the middle of the work: the links stay, and new ones come about.
    for sentinel in &group.sentinels {
        sentinel.process.signal("HUP");
    }
    let second = group.fail_over();
    assert_ne!(first, second);
    for sentinel in &group.sentinels {
        assert!(sentinel.process.log().contains("read again"), "{}", sentinel.process.log());
        assert!(sentinel.conf().contains("tls-replication yes\n"), "{}", sentinel.conf());
    }
}

#[test]
#[ignore = "takes about a minute"]
fn ten_failovers_in_a_row_over_tls_alone() {
    let Some(server) = present(Redis::program(), "redis-server") else { return };
    let server = Program { name: "redis-server".to_string(), path: server, args: Vec::new() };
    let mut group = Group::start(&server, &[watchfire(), watchfire(), watchfire()]);
    for _ in 0..10 {
        group.fail_over();
    }
}

#[test]
fn watchfires_and_a_redis_sentinel_in_one_group_over_tls_fail_over() {
    let Some(server) = present(Redis::program(), "redis-server") else { return };
    let Some(redis_sentinel) = present(Program::redis_sentinel(), "redis-sentinel") else { return };
    let server = Program { name: "redis-server".to_string(), path: server, args: Vec::new() };
    let mut group = Group::start(&server, &[watchfire(), redis_sentinel, watchfire()]);
    group.fail_over();
}

#[test]
fn r102_links_that_mix_tls_and_plain_text_are_explained_in_the_log_once() {
    let Some(server) = present(Redis::program(), "redis-server") else { return };
    let server = Program { name: "redis-server".to_string(), path: server, args: Vec::new() };
    let group = Group::start(&server, &[watchfire()]);
    let authority = Authority::new(group._folder.path(), "abroad");
    let stranger = authority.issue("stranger");
    // A server with both ports.
    let plain_port = ports::free();
    let mut lines: Vec<String> = group.lines[..3].to_vec();
    lines.extend([format!("port {plain_port}"), "save \"\"".to_string()]);
    let both = Node::start(&server, &lines, &group.dial);

    let start = |lines: &[String], port: u16, dial: &Dial| {
        let mut all = lines.to_vec();
        all.push(format!("sentinel monitor mymaster 127.0.0.1 {port} 1"));
        all.push("sentinel down-after-milliseconds mymaster 2000".to_string());
        Node::start(&watchfire(), &all, dial)
    };
    let said = |node: &Node, part: &str, port: u16| {
        let head = format!("The link to 127.0.0.1:{port} fails: ");
        wait_for(LIMIT, "a word about the link", || node.process.log().contains(&head));
        wait_for(LIMIT, "the master to be held down", || node.process.log().contains("+sdown master"));
        let log = node.process.log();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&head)).collect();
        assert_eq!(lines.len(), 1, "{log}");
        assert!(lines[0].contains(part) && lines[0].contains(" # "), "{lines:?}");
    };
    // TLS to the plain port, plain text to the TLS port, and a certificate of nobody we know.
    let encrypted = start(&group.lines[..4], plain_port, &group.dial);
    said(&encrypted, "TLS handshake failed", plain_port);
    let plain = start(&group.lines[..3], both.port, &group.dial);
    said(&plain, "tls-replication", both.port);
    let mut foreign = tls_lines(&authority, &stranger);
    foreign.push("tls-replication yes".to_string());
    let foreign = start(&foreign, both.port, &Dial::new(Some(&stranger)));
    said(&foreign, "UnknownIssuer", both.port);

    // And each to the port it speaks to.
    for (lines, port) in [(&group.lines[..4], both.port), (&group.lines[..3], plain_port)] {
        let node = start(lines, port, &group.dial);
        wait_for(LIMIT, "a sound master", || {
            let reply = group.dial.ask(node.port, &["SENTINEL", "MASTER", "mymaster"]);
            reply.is_some_and(|reply| {
                let master = map(&reply);
                master["flags"] == "master" && master["role-reported"] == "master" && !master["runid"].is_empty()
            })
        });
    }
}
