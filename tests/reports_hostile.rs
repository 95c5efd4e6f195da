//! Reports of users, group I: crashes and hostile input, with the real binary and a server that says what it is told to.

mod server_support;

use server_support::{Client, Sentinel, until};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use watchfire::resp::{Argv, RequestDecoder};

/// What every INFO is answered with, and how often it was by now.
type Says = Arc<Mutex<(Vec<u8>, u64)>>;

/// A server that answers all else as Redis does. Its threads end with the connections, and those with the Sentinel.
fn server(says: &Says) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let says = Arc::clone(says);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let says = Arc::clone(&says);
            std::thread::spawn(move || serve(stream, &says));
        }
    });
    port
}

fn serve(mut stream: TcpStream, says: &Says) {
    let (mut decoder, mut argv, mut bytes) = (RequestDecoder::new(), Argv::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        decoder.extend(&bytes[..count]);
        while decoder.next(&mut argv).expect("a Sentinel speaks RESP") {
            let reply = match &argv[0] {
                b"INFO" => {
                    let mut says = says.lock().expect("nobody panics with it");
                    says.1 += 1;
                    says.0.clone()
                }
                b"PING" => b"+PONG\r\n".to_vec(),
                b"PUBLISH" => b":1\r\n".to_vec(),
                b"SUBSCRIBE" => b"*3\r\n$9\r\nsubscribe\r\n$18\r\n__sentinel__:hello\r\n:1\r\n".to_vec(),
                _ => b"+OK\r\n".to_vec(),
            };
            if stream.write_all(&reply).is_err() {
                return;
            }
        }
    }
}

fn bulk(text: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

#[test]
fn r112_no_info_however_odd_does_any_harm() {
    let says: Says = Arc::default();
    says.lock().unwrap().0 = bulk(b"role:master\r\n");
    let port = server(&says);
    let sentinel = Sentinel::start(&format!("sentinel monitor mymaster 127.0.0.1 {port} 2\n"));
    let mut admin = Client::connect(sentinel.port);
    assert_eq!(admin.ask("SENTINEL DEBUG info-period 20 ping-period 50"), "+OK");
    let known = |admin: &mut Client| admin.ask("SENTINEL REPLICAS mymaster");
    let huge = format!("role:master\r\n{}", "x:0123456789abcdef\r\n".repeat(600_000)).into_bytes();
    assert!(huge.len() > 10 * 1024 * 1024);
    let odd: &[&[u8]] = &[
        b"role:master",
        b"role:master\r\nslave0:",
        b"role:master\r\nslave0:ip=,port=\r\nslave1:ip=127.0.0.1\r\nslave2:port=1\r\nslave3:,,,,\r\nslave4:ip\r\nslave:ip=a,port=1",
        b"role:master\r\nslave0:ip=127.0.0.1,port=-1\r\nslave1:ip=127.0.0.1,port=65536\r\nslave2:ip=127.0.0.1,port=0",
        b"role:master\r\nslave0:ip=127.0.0.1,port=99999999999999999999999999\r\nslave1:ip=a b,port=1\r\nslave2:ip=\x07,port=1",
        b"slave_repl_offset:-99999999999999999999\r\nslave_priority:-1\r\nmaster_link_down_since_seconds:18446744073709551616",
        b"master_repl_offset:-1\r\nmaster_replid:\r\nrun_id:short\r\nrole:\r\nrole:king\r\nmaster_port:70000\r\nmaster_host:",
        b"role:master\0\r\n\0\0\0:\0\r\nrun_id:\0\r\nslave0:ip=\0,port=1",
        b"\xff\xfe:\xff\r\nrole:\xff\r\nslave0:ip=\xff,port=\xff\r\n",
        b":\r\n::\r\n\r\r\r\n\n\n:\n#\n=,=",
        b"",
        &huge,
    ];
    let mut replies: Vec<Vec<u8>> = odd.iter().map(|text| bulk(text)).collect();
    replies.extend(
        ["+OK\r\n", ":5\r\n", "$-1\r\n", "*0\r\n", "-ERR no\r\n", "*2\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"]
            .map(Into::into),
    );
    for reply in replies {
        let shown = reply[..reply.len().min(100)].escape_ascii().to_string();
        let before = {
            let mut says = says.lock().unwrap();
            says.0 = reply;
            says.1
        };
        until(&format!("two INFOs to be answered with {shown}"), || {
            (says.lock().unwrap().1 >= before + 2).then_some(())
        });
        assert_eq!(admin.ask("PING"), "+PONG", "{shown}");
        assert_eq!(known(&mut admin), "*0", "{shown}");
    }
    // It goes on as if nothing had been.
    says.lock().unwrap().0 = bulk(b"role:master\r\nslave0:ip=127.0.0.1,port=1,state=online");
    until("the replica", || (known(&mut admin) == "*1").then_some(()));
    assert!(sentinel.conf().contains("sentinel known-replica mymaster 127.0.0.1 1\n"), "{}", sentinel.conf());
    assert!(!sentinel.log().contains("panicked"), "{}", sentinel.log());
}
