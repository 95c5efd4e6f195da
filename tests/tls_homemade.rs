//! Certificates as people make them at home with openssl: without extensions, which is X.509 version 1, or one that signs
//! itself and is everybody's. redis-sentinel takes both.
#![cfg(feature = "tls")]

mod support;
mod tls_support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::conn::map;
use support::process::{Folder, Program, Redis, find_program, present, wait_for};
use tls_support::{Authority, Dial, Node};

const LIMIT: Duration = Duration::from_secs(20);

fn openssl(folder: &Path, words: &str) {
    let output = Command::new("openssl").args(words.split(' ')).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

fn redis_cli(port: u16, folder: &Path, name: &str, more: &[&str]) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "--tls", "--cacert", "ca.crt"]);
    command.args(["--cert", &format!("{name}.crt"), "--key", &format!("{name}.key")]).args(more);
    String::from_utf8_lossy(&command.arg("PING").current_dir(folder).output().unwrap().stdout).into_owned()
}

/// A server and two Sentinels with this certificate, each of which checks the others.
fn works(server: &Path, folder: &Path, protocol: &str) {
    let at = folder.display();
    let lines: Vec<String> = [
        format!("tls-cert-file {at}/node.crt"),
        format!("tls-key-file {at}/node.key"),
        format!("tls-ca-cert-file {at}/ca.crt"),
        "tls-replication yes".to_string(),
        // The first look at a node comes without a certificate; redis and watchfire show theirs.
        "tls-auth-clients optional".to_string(),
        format!("tls-protocols {protocol}"),
    ]
    .into();
    let dial = Dial::new(None);
    let server = Program { name: "redis-server".to_string(), path: server.to_path_buf(), args: Vec::new() };
    let server = Node::start(&server, &lines, &dial);
    let mut of_sentinel = lines;
    of_sentinel.push(format!("sentinel monitor mymaster 127.0.0.1 {} 1", server.port));
    let watchfire = Program::watchfire(env!("CARGO_BIN_EXE_watchfire"));
    let sentinels = [Node::start(&watchfire, &of_sentinel, &dial), Node::start(&watchfire, &of_sentinel, &dial)];
    for sentinel in &sentinels {
        wait_for(LIMIT, "a sound master and a peer", || {
            dial.ask(sentinel.port, &["SENTINEL", "MASTER", "mymaster"]).is_some_and(|reply| {
                let master = map(&reply);
                master["flags"] == "master" && master["num-other-sentinels"] == "1" && !master["runid"].is_empty()
            })
        });
        wait_for(LIMIT, "a sound peer", || {
            let peers = dial.ask(sentinel.port, &["SENTINEL", "SENTINELS", "mymaster"]);
            peers.is_some_and(|peers| support::conn::maps(&peers)[0]["flags"] == "sentinel")
        });
        assert_eq!(redis_cli(sentinel.port, folder, "node", &[]), "PONG\n");
        assert_ne!(redis_cli(sentinel.port, folder, "foreign", &[]), "PONG\n");
        assert!(!sentinel.process.log().contains("fails: TLS"), "{}", sentinel.process.log());
    }
}

fn tools() -> Option<std::path::PathBuf> {
    present(find_program("openssl"), "openssl")?;
    present(find_program("redis-cli"), "redis-cli")?;
    present(Redis::program(), "redis-server")
}

#[test]
fn certificates_without_extensions_are_taken_from_everybody() {
    let Some(server) = tools() else { return };
    for kind in ["rsa:2048", "ec -pkeyopt ec_paramgen_curve:P-256"] {
        let folder = Folder::new("homemade");
        let at = folder.path();
        openssl(at, &format!("req -x509 -newkey {kind} -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=home"));
        openssl(at, &format!("req -newkey {kind} -nodes -keyout node.key -out node.csr -subj /CN=node"));
        openssl(at, "x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out node.crt");
        // The same name, and another key behind it.
        openssl(
            at,
            &format!("req -x509 -newkey {kind} -nodes -keyout other.key -out other.crt -days 2 -subj /CN=home"),
        );
        openssl(at, &format!("req -newkey {kind} -nodes -keyout foreign.key -out foreign.csr -subj /CN=node"));
        openssl(
            at,
            "x509 -req -in foreign.csr -CA other.crt -CAkey other.key -CAcreateserial -days 2 -out foreign.crt",
        );
        for protocol in ["TLSv1.2", "TLSv1.3"] {
            works(&server, at, protocol);
        }
    }
}

#[test]
fn one_certificate_that_signs_itself_may_be_everybodys() {
    let Some(server) = tools() else { return };
    let folder = Folder::new("homemade");
    let at = folder.path();
    openssl(at, "req -x509 -newkey rsa:2048 -nodes -keyout node.key -out node.crt -days 2 -subj /CN=node");
    std::fs::copy(at.join("node.crt"), at.join("ca.crt")).unwrap();
    openssl(at, "req -x509 -newkey rsa:2048 -nodes -keyout foreign.key -out foreign.crt -days 2 -subj /CN=node");
    works(&server, at, "TLSv1.3");
    works(&server, at, "TLSv1.2");
}

#[test]
fn a_key_of_another_certificate_is_noticed_for_every_form() {
    let Some(_) = tools() else { return };
    let folder = Folder::new("homemade");
    let at = folder.path();
    let authority = Authority::new(at, "home");
    let _ = authority.issue("node");
    openssl(at, "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=home");
    openssl(at, "req -newkey rsa:2048 -nodes -keyout plain.key -out plain.csr -subj /CN=node");
    openssl(at, "x509 -req -in plain.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out plain.crt");
    let conf = at.join("sentinel.conf");
    for (cert, key) in [("node", "plain"), ("plain", "node"), ("plain", "ca")] {
        let text = format!(
            "tls-port 1\ndir {}\ntls-cert-file {cert}.crt\ntls-key-file {key}.key\ntls-ca-cert-file ca.crt\n",
            at.display()
        );
        std::fs::write(&conf, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchfire"));
        let output = command.arg(&conf).arg("--check-config").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("is not that of the certificate"), "{cert} and {key}: {said}");
    }
}
