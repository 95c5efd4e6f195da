//! The real binary: rubbish on its ports, and from a server that it watches.

use super::drive::{behaviour, below, long, run, size};
use crate::server_support::{Client, Sentinel, until};
#[cfg(feature = "tls")]
use crate::server_support::{Folder, free_port};
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use watchfire::base::random::Random;

/// Connections of the rubbish that are kept open, the oldest making room.
const OPEN: usize = 40;

fn descriptors(sentinel: &Sentinel) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", sentinel.pid())).expect("it lives").count()
}

/// Resident memory, in kB.
fn resident(sentinel: &Sentinel) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", sentinel.pid())).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("in every status");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// What is sent: of every kind of client that ever met the wrong port. (No hellos: what became of an address in one of them
/// would be dialled.)
const SEEDS: &[&[u8]] = &[
    b"*1\r\n$4\r\nPING\r\n*2\r\n$8\r\nSENTINEL\r\n$7\r\nmasters\r\n",
    b"PING\r\nSENTINEL get-master-addr-by-name mymaster\r\nINFO\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost:26379\r\nUser-Agent: curl\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 15\r\n\r\nPING\r\nPING\r\n",
    // The beginning of a TLS handshake.
    b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\
      \x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x00\x00\x08\x13\x01\x13\x02\xc0\x2f\xc0\x30\x01\x00\x00\x93",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\x00\x00\x00\x17\x00\x03\x00\x00user\x00postgres\x00\x00",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04\x00\x00\x00\x00\x00",
    b"*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\nPSUBSCRIBE *\r\nHELLO 3\r\n",
];
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"*1\r\n",
    b"$4\r\n",
    b"PING",
    b"\0",
    b"\x16\x03\x03",
    b"\x17\x03\x03\x40\x00",
    b"\x15\x03\x01\x00\x02\x02\x28",
    b"\"",
    b"'",
    b"*1048576\r\n",
    b"$536870912\r\n",
    b"HELLO 3\r\n",
    b"COMMAND DOCS\r\n",
    b"SENTINEL MASTERS\r\n",
    b"CLIENT REPLY OFF\r\n",
    b"INFO\r\n",
];

/// Throws rubbish at a port of the Sentinel and looks after it now and then.
fn throw(name: &str, sentinel: Sentinel, port: u16, short: u64) {
    let (base_fds, base_memory) = (descriptors(&sentinel), resident(&sentinel));
    let mut open: VecDeque<TcpStream> = VecDeque::new();
    let mut thrown = 0u64;
    let mut read = [0; 4096];
    run(name, SEEDS, WORDS, short, |choices, input| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it still takes connections");
        stream.set_nonblocking(true).expect("a socket takes that");
        // In pieces; what it does not take at once is not waited for.
        let mut sent = 0;
        while sent < input.len() {
            let piece = 1 + below(choices, (input.len() - sent).min(2000));
            match stream.write(&input[sent..sent + piece]) {
                Ok(count) => sent += count,
                Err(_) => break,
            }
        }
        let answered = stream.read(&mut read).unwrap_or(0);
        // Some say goodbye, some vanish, most stay.
        match choices.below(4) {
            0 => drop(stream),
            1 => drop(stream.shutdown(std::net::Shutdown::Write)),
            _ => open.push_back(stream),
        }
        if open.len() > OPEN {
            open.pop_front();
        }
        thrown += 1;
        if thrown.is_multiple_of(64) {
            assert_eq!(Client::connect(sentinel.port).ask("PING"), "+PONG");
            assert!(resident(&sentinel) < base_memory + 100 * 1024, "{} kB", resident(&sentinel));
        }
        behaviour([size(sent), size(answered), u64::from(read[0])])
    });
    open.clear();
    assert_eq!(Client::connect(sentinel.port).ask("PING"), "+PONG");
    until("all descriptors to be closed", || (descriptors(&sentinel) <= base_fds).then_some(()));
    println!("fuzz {name}: memory {base_memory} kB before, {} kB after", resident(&sentinel));
    let log = sentinel.log();
    assert!(!log.contains("panicked"), "{log}");
    // What it wrote meanwhile loads.
    let again = sentinel.again();
    assert_eq!(Client::connect(again.port).ask("PING"), "+PONG");
}

#[test]
fn rubbish_on_the_port() {
    // The master is nobody; the peers that hellos name are nobody either.
    let sentinel = Sentinel::start("sentinel monitor mymaster 127.0.0.1 1 2\n");
    let port = sentinel.port;
    throw("port", sentinel, port, 256);
}

#[cfg(feature = "tls")]
#[test]
fn rubbish_on_the_tls_port() {
    let folder = Folder::new();
    let key = rcgen::KeyPair::generate().expect("a key");
    let cert = rcgen::CertificateParams::new(vec!["localhost".into()]).and_then(|params| params.self_signed(&key));
    folder.write("cert", &cert.expect("a certificate").pem());
    folder.write("key", &key.serialize_pem());
    let (port, dir) = (free_port(), folder.0.display());
    let lines = format!(
        "tls-port {port}\ntls-cert-file {dir}/cert\ntls-key-file {dir}/key\ntls-ca-cert-file {dir}/cert\ntls-auth-clients no\n\
         sentinel monitor mymaster 127.0.0.1 1 2\n"
    );
    throw("tls-port", Sentinel::start(&lines), port, 128);
}

/// A server that answers every connection with the next piece of rubbish.
struct Liar {
    port: u16,
    says: Arc<Mutex<Vec<u8>>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    /// Connections taken so far.
    met: Arc<AtomicU64>,
}

impl Liar {
    fn start() -> Liar {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let says: Arc<Mutex<Vec<u8>>> = Arc::default();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let met = Arc::new(AtomicU64::new(0));
        let (words, held, count) = (Arc::clone(&says), Arc::clone(&open), Arc::clone(&met));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let number = count.fetch_add(1, Ordering::SeqCst);
                let words = words.lock().expect("nobody panics with it").clone();
                let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
                let _ = stream.write_all(&words);
                // Some connections end at once; others stay silent.
                if number % 3 != 0 {
                    held.lock().expect("nobody panics with it").push(stream);
                }
            }
        });
        Liar { port, says, open, met }
    }

    /// Ends what it has said so far, and says this from now on.
    fn say(&self, text: &[u8]) {
        *self.says.lock().expect("nobody panics with it") = text.to_vec();
        self.open.lock().expect("nobody panics with it").clear();
    }
}

const REPLY_SEEDS: &[&[u8]] = &[
    b"+OK\r\n+PONG\r\n$29\r\nrole:master\r\nslave0:ip=,port=\r\n\r\n:1\r\n",
    b"-NOAUTH Authentication required.\r\n-LOADING x\r\n-BUSY y\r\n",
    b"*3\r\n$9\r\nsubscribe\r\n$18\r\n__sentinel__:hello\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$18\r\n__sentinel__:hello\r\n$4\r\na,b,\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"$100000000000\r\n",
    b"*3\r\n:1\r\n$1\r\n*\r\n:0\r\n",
];
const REPLY_WORDS: &[&[u8]] = &[
    b"+OK\r\n",
    b"+PONG\r\n",
    b"$-1\r\n",
    b"*65536\r\n",
    b"*1\r\n",
    b"$16777216\r\n",
    b"$16777217\r\n",
    b"%3\r\n",
    b">3\r\n",
    b"|1\r\n",
    b"\0",
    b"-ERR x\r\n",
    b":1\r\n",
    b"_\r\n",
    b"\r\n",
    b"$12\r\nrole:master\r\n\r\n",
    b"$11\r\nrole:slave\r\n\r\n",
];

#[test]
fn rubbish_from_a_server() {
    let liar = Liar::start();
    let sentinel = Sentinel::start(&format!("sentinel monitor mymaster 127.0.0.1 {} 2\n", liar.port));
    let mut admin = Client::connect(sentinel.port);
    // It dials once in a ping period.
    assert_eq!(admin.ask("SENTINEL DEBUG ping-period 20 min-link-reconnect-period 40"), "+OK");
    let (base_fds, base_memory) = (descriptors(&sentinel), resident(&sentinel));
    let begin = Instant::now();
    run("server", REPLY_SEEDS, REPLY_WORDS, 24, |_: &mut Random, input| {
        liar.say(input);
        let met = liar.met.load(Ordering::SeqCst);
        until("a connection", || (liar.met.load(Ordering::SeqCst) > met).then_some(()));
        assert_eq!(admin.ask("PING"), "+PONG");
        assert!(resident(&sentinel) < base_memory + 100 * 1024, "{} kB", resident(&sentinel));
        assert!(descriptors(&sentinel) <= base_fds + 8, "{}", descriptors(&sentinel));
        behaviour(input.iter().take(8).map(|&byte| u64::from(byte)))
    });
    // Two connections, each at most once in a period and once more when a good one was lost.
    let (met, ms) = (liar.met.load(Ordering::SeqCst), begin.elapsed().as_millis());
    assert!(u128::from(met) <= 8 + 4 * ms / 20, "{met} dials in {ms} ms");
    assert!(long().is_some() || met >= 24);
    assert!(!sentinel.log().contains("panicked"), "{}", sentinel.log());
}
