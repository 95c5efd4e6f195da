//! Clients of the TLS port: the real binary, with redis-cli and with a client of our own.
#![cfg(feature = "tls")]

mod support;
mod tls_support;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use rustls::HandshakeKind;
use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};
use support::namespace::enter;
use support::process::{Folder, Program, find_program, present, wait_for};
use tls_support::{Authority, Dial, Node, Pair, tls_lines};
use watchfire::resp::{Reply, request};

const LIMIT: Duration = Duration::from_secs(10);

struct Place {
    folder: Folder,
    authority: Authority,
    own: Pair,
}

impl Place {
    fn new() -> Place {
        let folder = Folder::new("certificates");
        let authority = Authority::new(folder.path(), "home");
        let own = authority.issue("node-one");
        Place { folder, authority, own }
    }

    fn start(&self, lines: &[&str]) -> Node {
        let mut all = tls_lines(&self.authority, &self.own);
        all.push("loglevel verbose".to_string());
        all.extend(lines.iter().map(ToString::to_string));
        Node::start(&watchfire(), &all, &self.dial())
    }

    fn dial(&self) -> Dial {
        Dial::new(Some(&self.own))
    }
}

fn watchfire() -> Program {
    Program::watchfire(env!("CARGO_BIN_EXE_watchfire"))
}

fn pong() -> Reply {
    Reply::Simple(b"PONG".to_vec())
}

fn serves(dial: &Dial, port: u16) -> bool {
    dial.ask(port, &["PING"]) == Some(pong())
}

#[test]
fn redis_cli_is_served_over_tls() {
    let Some(redis_cli) = present(find_program("redis-cli"), "redis-cli") else { return };
    let place = Place::new();
    let node = place.start(&[]);
    let run = |more: &[&str]| {
        let mut command = Command::new(&redis_cli);
        command.args(["-h", "127.0.0.1", "-p", &node.port.to_string(), "--tls", "--cacert"]).arg(&place.authority.file);
        let output = command.arg("--cert").arg(&place.own.cert).arg("--key").arg(&place.own.key).args(more).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    assert_eq!(run(&["PING"]), "PONG\n");
    assert_eq!(run(&["-3", "SENTINEL", "MYID"]).trim().len(), 40);
    let info = run(&["INFO", "server"]);
    assert!(info.contains(&format!("tcp_port:{}\r\n", node.port)), "{info}");
}

/// 192.0.2.0/24 is for documentation: no machine has such an address, so the second meaning of the name fails.
#[test]
fn all_that_an_optional_name_of_several_addresses_has_on_the_tls_port_speaks_tls() {
    let hosts = "127.0.0.1 localhost\n127.0.0.2 several\n192.0.2.1 several\n";
    let test = "all_that_an_optional_name_of_several_addresses_has_on_the_tls_port_speaks_tls";
    if !enter(test, &[("/etc/hosts", hosts)]) {
        return;
    }
    let place = Place::new();
    let node = place.start(&["bind 127.0.0.1 -several"]);
    assert!(serves(&place.dial(), node.port));
    let mut plain =
        TcpStream::connect((Ipv4Addr::new(127, 0, 0, 2), node.port)).expect("the first meaning is listened on");
    plain.set_read_timeout(Some(LIMIT)).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+"), "plain text is answered on the TLS port: {}", String::from_utf8_lossy(&answer));
    wait_for(LIMIT, "the end of the handshake in the log", || node.process.log().contains("TLS handshake failed"));
}

#[test]
fn tls_auth_clients_decides_who_must_show_a_certificate() {
    let place = Place::new();
    let stranger = Authority::new(place.folder.path(), "abroad").issue("stranger");
    for versions in [[&TLS12], [&TLS13]] {
        let (own, none, foreign) = (
            Dial::with(Some(&place.own), &versions),
            Dial::with(None, &versions),
            Dial::with(Some(&stranger), &versions),
        );
        for (word, without, with_foreign) in [("yes", false, false), ("optional", true, false), ("no", true, true)] {
            let node = place.start(&[&format!("tls-auth-clients {word}")]);
            assert!(serves(&own, node.port), "{word}");
            assert_eq!(serves(&none, node.port), without, "{word}, without a certificate");
            assert_eq!(serves(&foreign, node.port), with_foreign, "{word}, with a certificate of another authority");
            if word == "yes" {
                for word in ["peer sent no certificates", "UnknownIssuer"] {
                    wait_for(LIMIT, "a word in the log", || node.process.log().contains(word));
                }
                let log = node.process.log();
                assert!(!log.contains(" # Client"), "what strangers do is no warning: {log}");
            }
        }
    }
}

/// Whether it says so within TLS or only ends its half of the connection.
#[test]
fn who_has_finished_asking_gets_all_replies() {
    let place = Place::new();
    let node = place.start(&[]);
    for version in [&TLS12, &TLS13] {
        let dial = Dial::with(Some(&place.own), &[version]);
        let table = dial.ask(node.port, &["COMMAND"]).unwrap();
        for farewell in [true, false] {
            let mut conn = dial.to(node.port).unwrap();
            conn.stream.write_all("COMMAND\r\n".repeat(300).as_bytes()).unwrap();
            if farewell {
                conn.stream.conn.send_close_notify();
                conn.stream.flush().unwrap();
            }
            conn.stream.sock.shutdown(std::net::Shutdown::Write).unwrap();
            for number in 0..300 {
                assert!(conn.receive().unwrap() == table, "{version:?}, farewell {farewell}: reply {number}");
            }
            assert_eq!(conn.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}

#[test]
fn a_client_certificate_that_has_expired_or_is_for_servers_only_is_refused() {
    let place = Place::new();
    let node = place.start(&[]);
    let expired = place.authority.issue_with("expired", |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let purpose = place.authority.issue_with("server-only", |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    });
    assert!(!serves(&Dial::new(Some(&expired)), node.port));
    assert!(!serves(&Dial::new(Some(&purpose)), node.port));
    assert!(serves(&place.dial(), node.port));
}

#[test]
fn a_folder_of_authorities_is_read_whole() {
    let place = Place::new();
    let stranger = Authority::new(place.folder.path(), "abroad");
    let folder = Folder::new("authorities");
    fs::copy(&place.authority.file, folder.path().join("home.pem")).unwrap();
    fs::copy(&stranger.file, folder.path().join("9d66eef0.0")).unwrap();
    fs::write(folder.path().join("README"), "no certificate").unwrap();
    let lines: Vec<String> = tls_lines(&place.authority, &place.own)[..2]
        .iter()
        .cloned()
        .chain([format!("tls-ca-cert-dir {}", folder.path().display())])
        .collect();
    let node = Node::start(&watchfire(), &lines, &place.dial());
    assert!(serves(&Dial::new(Some(&stranger.issue("stranger"))), node.port));
}

#[test]
fn a_reload_that_finds_an_authority_half_written_keeps_the_old_ones_and_says_so() {
    let place = Place::new();
    let other = Authority::new(place.folder.path(), "abroad");
    let dial = Dial::new(Some(&other.issue("stranger")));
    let folder = Folder::new("authorities");
    let (home, abroad) = (folder.path().join("home.pem"), folder.path().join("abroad.pem"));
    fs::copy(&place.authority.file, &home).unwrap();
    fs::copy(&other.file, &abroad).unwrap();
    let whole = fs::read(&abroad).unwrap();
    // What was odd from the beginning is no reason to refuse anything later.
    fs::write(folder.path().join("README"), "no certificate").unwrap();
    fs::write(folder.path().join("odd.pem"), &whole[..whole.len() / 3]).unwrap();
    let mut lines = tls_lines(&place.authority, &place.own);
    *lines.last_mut().unwrap() = format!("tls-ca-cert-dir {}", folder.path().display());
    let node = Node::start(&watchfire(), &lines, &place.dial());
    let reload = |word: &str| {
        let before = node.process.log().matches(word).count();
        node.process.signal("HUP");
        wait_for(LIMIT, word, || node.process.log().matches(word).count() > before);
    };
    let refused = format!("the old ones stay: tls-ca-cert-dir: {} cannot be read in whole", abroad.display());
    for part in [&whole[..0], &whole[..whole.len() / 2]] {
        fs::write(&abroad, part).unwrap();
        reload(&refused);
        assert!(serves(&dial, node.port));
    }
    fs::write(&abroad, &whole).unwrap();
    // One that is new and not whole is passed over, and keeps nobody from reading the rest.
    fs::write(folder.path().join("new.pem"), &whole[..whole.len() / 2]).unwrap();
    reload("were read again");
    assert!(serves(&dial, node.port));
    // Taken away on purpose.
    fs::remove_file(&abroad).unwrap();
    reload("were read again");
    assert!(!serves(&dial, node.port) && serves(&place.dial(), node.port));
}

#[test]
fn both_ports_serve_and_a_plain_client_on_the_tls_port_is_closed() {
    let place = Place::new();
    let plain_port = support::ports::free();
    let node = place.start(&[&format!("port {plain_port}")]);
    assert_eq!(support::conn::ask(plain_port, &["PING"]), Some(pong()));
    let listeners = support::conn::text(&support::conn::ask(plain_port, &["INFO", "server"]).unwrap());
    assert!(listeners.contains(&format!("listener0:name=tcp,bind=127.0.0.1,port={plain_port}")), "{listeners}");
    assert!(listeners.contains(&format!("listener1:name=tls,bind=127.0.0.1,port={}", node.port)), "{listeners}");

    let mut plain = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
    plain.set_read_timeout(Some(LIMIT)).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    // An alert, and the end.
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.windows(4).any(|part| part == b"PONG"));
    wait_for(LIMIT, "a word in the log", || node.process.log().contains("the peer speaks no TLS"));
    assert!(serves(&place.dial(), node.port));
}

#[test]
fn whoever_does_not_come_through_the_handshake_is_dropped_after_ten_seconds() {
    let place = Place::new();
    let node = place.start(&["maxclients 20"]);
    let begin = Instant::now();
    let mut silent = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
    let mut slow = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
    // The first bytes of a greeting, and then one now and then.
    slow.write_all(&[22, 3, 1, 1, 0, 1, 0, 0, 0xfc]).unwrap();
    let mut good = place.dial().to(node.port).unwrap();
    let mut clients = 0;
    while begin.elapsed() < Duration::from_secs(8) {
        let _ = slow.write_all(&[3]);
        assert_eq!(good.cmd(&["PING"]).unwrap(), pong());
        let list = support::conn::text(&good.cmd(&["CLIENT", "LIST"]).unwrap());
        clients = list.lines().count();
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(clients, 3, "all count as clients, so that maxclients holds for them");
    silent.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0);
    let took = begin.elapsed();
    assert!((Duration::from_millis(9_900)..Duration::from_secs(14)).contains(&took), "{took:?}");
    wait_for(LIMIT, "the slow one's end", || slow.write_all(&[3]).is_err());
    assert_eq!(good.cmd(&["PING"]).unwrap(), pong());
    wait_for(LIMIT, "a word in the log", || node.process.log().contains("it took longer than 10 s"));
}

#[test]
fn who_says_nothing_takes_no_place_of_those_who_have_a_certificate() {
    let place = Place::new();
    let node = place.start(&["maxclients 10"]);
    let mut inside: Vec<_> = (0..3).map(|_| place.dial().to(node.port).unwrap()).collect();
    // More silent connections than there are places: half of them at most stay, the oldest make room.
    let silence = || TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).unwrap();
    let mut silent: Vec<TcpStream> = (0..30).map(|_| silence()).collect();
    for _ in 0..2 {
        inside.push(place.dial().to(node.port).unwrap());
    }
    silent.extend((0..30).map(|_| silence()));
    for conn in &mut inside {
        assert_eq!(conn.cmd(&["PING"]).unwrap(), pong(), "it has shaken hands and keeps its place");
    }
    let mut first = silent.remove(0);
    first.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(first.read(&mut [0; 10]).unwrap(), 0, "the first has made room");
    assert!(serves(&place.dial(), node.port));
}

#[test]
fn megabytes_in_both_directions_arrive_whole_through_small_buffers() {
    let place = Place::new();
    for versions in [[&TLS12], [&TLS13]] {
        let node = place.start(&[]);
        let dial = Dial::with(Some(&place.own), &versions);
        let mut conn = dial.to(node.port).unwrap();
        const COUNT: usize = 60;
        let payload: Vec<u8> = (0..200_003_u32).map(|byte| (byte % 251) as u8).collect();
        let mut bytes = Vec::new();
        for _ in 0..COUNT {
            request(&mut bytes, &[b"PING", &payload]);
        }
        // Our own end must not block: a sender that reads nothing would be waited for by the Sentinel, and rightly so.
        conn.stream.sock.set_nonblocking(true).unwrap();
        let (mut sent, mut replies, mut wanted) = (0, Vec::new(), COUNT * (payload.len() + 11));
        let begin = Instant::now();
        let mut chunk = [0; 7_001];
        while wanted > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{wanted} bytes are still missing");
            if sent < bytes.len() {
                match conn.stream.write(&bytes[sent..bytes.len().min(sent + 100_000)]) {
                    Ok(n) => sent += n,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
                }
            } else {
                let _ = conn.stream.flush();
            }
            match conn.stream.read(&mut chunk) {
                Ok(n) => {
                    assert!(n > 0, "the end came early");
                    replies.extend_from_slice(&chunk[..n]);
                    wanted -= n;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
        }
        let mut one = format!("${}\r\n", payload.len()).into_bytes();
        one.extend_from_slice(&payload);
        one.extend_from_slice(b"\r\n");
        assert!(replies.chunks(one.len()).all(|reply| reply == one));
    }
}

#[test]
fn a_hundred_thousand_pipelined_requests_are_all_answered() {
    let place = Place::new();
    let node = place.start(&[]);
    let mut conn = place.dial().to(node.port).unwrap();
    const COUNT: usize = 100_000;
    let mut wanted = COUNT * 7;
    let mut chunk = vec![0; 64 * 1024];
    for _ in 0..100 {
        conn.stream.write_all(&b"PING\r\n".repeat(COUNT / 100)).unwrap();
        let n = conn.stream.read(&mut chunk).unwrap();
        assert_eq!(n % 7, 0);
        wanted -= n;
    }
    while wanted > 0 {
        let n = conn.stream.read(&mut chunk).unwrap();
        assert!(n > 0);
        wanted -= n;
    }
}

#[test]
fn the_last_reply_arrives_whole_before_the_end() {
    let place = Place::new();
    let node = place.start(&[]);
    let mut conn = place.dial().to(node.port).unwrap();
    let mut bytes = Vec::new();
    let payload = vec![b'x'; 3_000_000];
    request(&mut bytes, &[b"PING", &payload]);
    request(&mut bytes, &[b"NO-SUCH-COMMAND"]);
    bytes.extend_from_slice(b"*x\r\n");
    conn.stream.write_all(&bytes).unwrap();
    // It has read all of it and decided on the end. What the kernel does not take waits for us; often that is nothing, and
    // then this client is gone already.
    wait_for(LIMIT, "the end to be decided on", || {
        let Some(Reply::Bulk(list)) = place.dial().ask(node.port, &["CLIENT", "LIST"]) else { return false };
        let list = String::from_utf8_lossy(&list).into_owned();
        list.lines().all(|client| client.contains(" cmd=client|list ") || client.contains(" flags=c "))
    });
    let mut all = Vec::new();
    conn.stream.read_to_end(&mut all).expect("a farewell, and not just the end");
    let end = String::from_utf8_lossy(&all[payload.len() + 12..]).into_owned();
    assert!(end.starts_with("-ERR unknown command"), "{end}");
    assert!(end.contains("Protocol error"), "{end}");
    assert!(serves(&place.dial(), node.port));
}

#[test]
fn protocols_and_suites_are_those_that_the_file_allows() {
    let place = Place::new();
    let node = place.start(&["tls-protocols TLSv1.2", "tls-ciphers ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA"]);
    assert!(place.dial().to(node.port).is_ok());
    assert!(Dial::with(Some(&place.own), &[&TLS13]).to(node.port).is_err());
    let only = |suite| {
        let provider = CryptoProvider { cipher_suites: vec![suite], ..ring::default_provider() };
        Dial::exactly(Some(&place.own), &[&TLS12], provider).to(node.port).is_ok()
    };
    assert!(only(ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256));
    assert!(!only(ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384));
    assert!(node.process.log().contains("NOT in effect: AES128-SHA"), "{}", node.process.log());

    let node = place.start(&[
        "tls-protocols \"TLSv1.3\"",
        "tls-ciphersuites TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
        "tls-prefer-server-ciphers yes",
    ]);
    let conn = place.dial().to(node.port).unwrap();
    let chosen = conn.stream.conn.negotiated_cipher_suite().unwrap();
    assert_eq!(chosen, ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256);
    assert!(Dial::with(Some(&place.own), &[&TLS12]).to(node.port).is_err());
}

#[test]
fn sessions_are_resumed_when_the_file_allows_it() {
    let place = Place::new();
    for versions in [[&TLS12], [&TLS13]] {
        for (line, wanted) in [("tls-session-caching yes", true), ("tls-session-caching no", false)] {
            let node = place.start(&[line]);
            let dial = Dial::with(Some(&place.own), &versions);
            let mut first = dial.to(node.port).unwrap();
            assert_eq!(first.cmd(&["PING"]).unwrap(), pong());
            let mut second = dial.to(node.port).unwrap();
            assert_eq!(second.cmd(&["PING"]).unwrap(), pong());
            let resumed = second.stream.conn.handshake_kind() == Some(HandshakeKind::Resumed);
            assert_eq!(resumed, wanted, "{line}");
        }
    }
}

#[test]
fn r101_sighup_reads_the_certificates_again_and_drops_nobody() {
    let place = Place::new();
    let node = place.start(&[]);
    let mut old = place.dial().to(node.port).unwrap();
    assert!(old.shows("node-one"));

    let second = place.authority.issue("node-two");
    fs::copy(&second.cert, &place.own.cert).unwrap();
    fs::copy(&second.key, &place.own.key).unwrap();
    let dial = Dial::new(Some(&second));
    assert!(dial.to(node.port).unwrap().shows("node-one"), "nothing is read before it is asked for");
    node.process.signal("HUP");
    wait_for(LIMIT, "the new certificate", || dial.to(node.port).is_ok_and(|conn| conn.shows("node-two")));
    assert_eq!(old.cmd(&["PING"]).unwrap(), pong());
    assert!(node.process.log().contains("read again"));

    // A key that is not that of the certificate, and a file that is no certificate: the old ones stay.
    let third = place.authority.issue("node-three");
    fs::copy(&third.cert, &place.own.cert).unwrap();
    node.process.signal("HUP");
    wait_for(LIMIT, "a word about the key", || node.process.log().contains("is not that of the certificate"));
    fs::write(&place.own.cert, "nothing").unwrap();
    node.process.signal("HUP");
    wait_for(LIMIT, "a word about the file", || node.process.log().contains("there is no certificate in it"));
    assert!(dial.to(node.port).unwrap().shows("node-two"));
    assert_eq!(old.cmd(&["PING"]).unwrap(), pong());
}
