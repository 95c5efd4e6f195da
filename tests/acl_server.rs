//! Users at the real binary, over sockets and files.

mod server_support;

use server_support::{Client, Folder, Sentinel, binary, finished, free_port, text, until};
use std::io::{Read, Write};

/// The whole reply to a request whose reply is one bulk string.
fn bulk(client: &mut Client, request: &str) -> String {
    let length: usize = client.ask(request)[1..].parse().unwrap();
    let mut text = client.take(length + 2);
    text.truncate(length);
    text
}

/// Starts the Sentinel where even PING needs to be allowed: with `default` open for the moment of the start.
fn with_users(lines: &str) -> Sentinel {
    Sentinel::start(&format!("user default on nopass ~* &* +@all\n{lines}"))
}

#[test]
fn r98_a_password_is_asked_for_and_holds_for_every_door() {
    let folder = Folder::new();
    let port = free_port();
    let dir = folder.0.display();
    let conf = folder.write(
        "sentinel.conf",
        &format!("port {port}\nbind 127.0.0.1\ndir {dir}\nlogfile {dir}/log\nrequirepass \"a b\"\n"),
    );
    let _sentinel = Guarded(binary().arg(conf).spawn().unwrap());
    let mut client = until("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(Client::from));
    assert_eq!(client.ask("PING"), "-NOAUTH Authentication required.");
    assert!(client.ask("QUIT").starts_with("-ERR unknown command 'QUIT'"));
    assert!(client.ask("AUTH nope").starts_with("-WRONGPASS "));
    assert_eq!(client.ask("AUTH 'a b'"), "+OK");
    assert_eq!(client.ask("PING"), "+PONG");
    let mut other = Client::connect(port);
    assert_eq!(other.ask("HELLO 3 AUTH default 'a b'"), "%6");
    // The file is as it was, the password included.
    assert_eq!(client.ask("SENTINEL FLUSHCONFIG"), "+OK");
    let written = folder.read("sentinel.conf");
    assert!(written.contains("\nrequirepass \"a b\"\n") && !written.contains("user "), "{written}");
    // The limits of strangers end with the password.
    let mut stranger = Client::connect(port);
    stranger.send(b"*11\r\n");
    assert_eq!(stranger.rest(), "-ERR Protocol error: unauthenticated multibulk length\r\n");
    let mut stranger = Client::connect(port);
    stranger.send(b"*2\r\n$4\r\nPING\r\n$16385\r\n");
    assert_eq!(stranger.rest(), "-ERR Protocol error: unauthenticated bulk length\r\n");
    client.send(b"*12\r\n$4\r\nPING\r\n");
    client.send("$1\r\nx\r\n".repeat(11).as_bytes());
    assert_eq!(client.line(), "-ERR wrong number of arguments for 'ping' command");
    // In one piece with the password before it, as pipelines have it.
    let mut pipelined = Client::connect(port);
    let ping = format!("*12\r\n$4\r\nPING\r\n{}", "$1\r\nx\r\n".repeat(11));
    pipelined.send(format!("*2\r\n$4\r\nAUTH\r\n$3\r\na b\r\n{ping}").as_bytes());
    assert_eq!(pipelined.line(), "+OK");
    assert_eq!(pipelined.line(), "-ERR wrong number of arguments for 'ping' command");
}

struct Guarded(std::process::Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_stranger_that_does_not_read_is_cut_off() {
    let sentinel = Sentinel::start("");
    let mut admin = sentinel.client();
    assert_eq!(admin.ask("ACL SETUSER default resetpass >sec"), "+OK");
    let mut stranger = sentinel.client();
    stranger.0.set_write_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let requests = "HELLO\r\n".repeat(2000);
    let gone = until("the end of the stranger", || {
        // While it lives the kernel's buffers fill up; then writing fails for good.
        match stranger.0.write_all(requests.as_bytes()) {
            Err(why) if !matches!(why.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                Some(why)
            }
            _ => None,
        }
    });
    drop(gone);
    assert!(sentinel.log().contains("has not logged in and does not read its replies"), "{}", sentinel.log());
    // One that is as rude but has logged in is only slowed down.
    assert_eq!(admin.ask("PING"), "+PONG");
}

#[test]
fn strangers_cannot_take_the_places_of_those_who_have_a_password() {
    let sentinel = Sentinel::start("maxclients 10\n");
    let mut admin = sentinel.client();
    assert_eq!(admin.ask("ACL SETUSER default resetpass >sec"), "+OK");
    let mut inside: Vec<Client> = (0..3).map(|_| client_of(&sentinel, "default", "sec")).collect();
    // More strangers than there are places. Half of them at most are let in, the oldest make room for the next.
    let mut strangers: Vec<Client> = (0..30).map(|_| sentinel.client()).collect();
    let mut late = client_of(&sentinel, "default", "sec");
    for client in inside.iter_mut().chain([&mut admin, &mut late]) {
        assert_eq!(client.ask("PING"), "+PONG");
    }
    assert_eq!(strangers.remove(0).rest(), "", "the first has made room");
    // Strangers never keep out strangers either, or nobody could come in to log in.
    assert_eq!(strangers.last_mut().unwrap().ask("PING"), "-NOAUTH Authentication required.");
    // Those who have logged in keep their places, and when these are all taken a newcomer hears so.
    for _ in 0..5 {
        inside.push(client_of(&sentinel, "default", "sec"));
    }
    assert_eq!(sentinel.client().rest(), "-ERR max number of clients reached\r\n");
    for client in inside.iter_mut().chain([&mut admin, &mut late]) {
        assert_eq!(client.ask("PING"), "+PONG");
    }
}

#[test]
fn a_stranger_cannot_make_us_keep_much() {
    let sentinel = Sentinel::start("");
    assert_eq!(sentinel.client().ask("ACL SETUSER default resetpass >sec"), "+OK");
    let mut stranger = sentinel.client();
    // Ten arguments, each as long as is allowed: more than all of them together may be.
    let argument = format!("$16384\r\n{}\r\n", "x".repeat(16384));
    stranger.send(b"*10\r\n");
    stranger.send(argument.repeat(3).as_bytes());
    stranger.send(b"$16384\r\n");
    assert_eq!(stranger.rest(), "-ERR Protocol error: too big request\r\n");
    // The longest AUTH there can be is understood.
    let mut stranger = sentinel.client();
    stranger.send(format!("*3\r\n$4\r\nAUTH\r\n{}", argument.repeat(2)).as_bytes());
    assert_eq!(stranger.line(), "-WRONGPASS invalid username-password pair or user is disabled.");
}

#[test]
fn users_of_the_configuration_have_their_rights_and_keep_their_lines() {
    let bob = "user  bob on >secret  resetchannels &+switch-master +ping +subscribe +sentinel|masters";
    let sentinel = with_users(&format!("{bob}\nuser carol on >x +@all\n"));
    let mut client = sentinel.client();
    assert_eq!(client.ask("AUTH bob secret"), "+OK");
    assert_eq!(client.ask("SENTINEL MASTERS"), "*0");
    assert_eq!(client.ask("INFO"), "-NOPERM User bob has no permissions to run the 'info' command");
    assert_eq!(client.ask("SUBSCRIBE +sdown"), "-NOPERM No permissions to access a channel");
    let mut admin = sentinel.client();
    assert!(bulk(&mut admin, "CLIENT LIST").contains(" user=bob "));
    assert_eq!(admin.ask("ACL SETUSER dave on >clear +ping"), "+OK");
    assert_eq!(admin.ask("ACL DELUSER carol"), ":1");
    assert_eq!(admin.ask("SENTINEL FLUSHCONFIG"), "+OK");
    let conf = sentinel.conf();
    assert!(conf.contains(&format!("\n{bob}\n")), "{conf}");
    assert!(conf.contains("\nuser default on nopass ~* &* +@all\n"), "{conf}");
    assert!(!conf.contains("carol") && !conf.contains("clear"), "{conf}");
    assert!(conf.contains("\nuser dave on sanitize-payload #"), "{conf}");
    // After a restart all is as it was left.
    let sentinel = sentinel.again();
    let mut admin = sentinel.client();
    assert_eq!(admin.ask("ACL USERS"), "*3");
    let mut dave = sentinel.client();
    assert_eq!(dave.ask("AUTH dave clear"), "+OK");
    // Losing a channel ends a subscription, and with it the connection.
    assert_eq!(client_of(&sentinel, "bob", "secret").ask("PING"), "+PONG");
    let mut bob = client_of(&sentinel, "bob", "secret");
    assert_eq!(bob.ask("SUBSCRIBE +switch-master"), "*3");
    let mut admin = sentinel.client();
    assert_eq!(admin.ask("ACL SETUSER bob resetchannels"), "+OK");
    assert_eq!(bob.rest(), "$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
}

fn client_of(sentinel: &Sentinel, user: &str, password: &str) -> Client {
    let mut client = sentinel.client();
    assert_eq!(client.ask(&format!("AUTH {user} {password}")), "+OK");
    client
}

#[test]
fn a_file_of_users_is_read_saved_and_read_again() {
    let folder = Folder::new();
    let users = folder.write("users.acl", "user bob on >x +@all &*\nuser carol on >x +@all &*\n");
    let sentinel = Sentinel::start_in(folder, "aclfile users.acl\nrequirepass ignored\n", |_| {});
    assert!(sentinel.log().contains("requirepass does not protect"), "{}", sentinel.log());
    let mut bob = client_of(&sentinel, "bob", "x");
    // Changed at run time it is offered to the others as before, and lets nobody in who is not in the file.
    assert_eq!(bob.ask("SENTINEL CONFIG SET requirepass changed"), "+OK");
    assert_eq!(bob.ask("ACL WHOAMI"), "$3");
    assert_eq!(bob.line(), "bob");
    assert!(sentinel.client().ask("AUTH changed").starts_with("-ERR AUTH <password> called without any password"));
    assert!(sentinel.log().contains("how clients log in stays what aclfile says"), "{}", sentinel.log());
    assert!(sentinel.conf().contains("\nrequirepass changed\n"), "{}", sentinel.conf());
    let mut carol = client_of(&sentinel, "carol", "x");
    assert_eq!(bob.ask("ACL SETUSER dave on nopass +ping"), "+OK");
    assert_eq!(bob.ask("ACL SAVE"), "+OK");
    let saved = std::fs::read_to_string(&users).unwrap();
    assert_eq!(
        saved.lines().map(|line| line.split(' ').nth(1).unwrap()).collect::<Vec<_>>().join(" "),
        "bob carol dave default"
    );
    assert!(!saved.contains(">x"), "{saved}");
    assert_eq!(bob.ask("SENTINEL FLUSHCONFIG"), "+OK");
    assert!(!sentinel.conf().contains("user "), "{}", sentinel.conf());
    std::fs::write(&users, "user bob on >x +@all &*\nnonsense\n").unwrap();
    assert!(bob.ask("ACL LOAD").starts_with("-ERR users.acl:2 should start with user keyword"));
    std::fs::write(&users, "user bob on >x +@all &*\n").unwrap();
    assert_eq!(bob.ask("ACL LOAD"), "+OK");
    assert_eq!(carol.rest(), "");
    assert_eq!(bob.ask("ACL USERS"), "*2");
    std::fs::remove_file(&users).unwrap();
    let mut again = client_of(&sentinel, "bob", "x");
    assert_eq!(again.ask("ACL LOAD"), "-ERR Error loading ACLs, opening file 'users.acl': No such file or directory");
    let genpass = bulk(&mut again, "ACL GENPASS");
    assert!(genpass.len() == 64 && genpass.bytes().all(|byte| byte.is_ascii_hexdigit()), "{genpass}");
    assert_ne!(genpass, bulk(&mut again, "ACL GENPASS"));
}

#[test]
fn what_is_wrong_with_users_is_said_at_the_start_and_by_the_check() {
    for (lines, file, said) in [
        ("user bob on +nope\n", None, "Error in user declaration '+nope': Unknown command or category name in ACL"),
        ("user bob on (+ping\n", None, "Error in user declaration '(+ping': Unmatched parenthesis"),
        ("user \"b b\" on\n", None, "Error in user declaration 'b b': Usernames can't contain spaces"),
        ("user bob <secret\n", None, "Error in user declaration '(a password)': The password you are trying to remove"),
        ("user bob >secret secret +nope\n", None, "Error in user declaration '(a password?)': Syntax error"),
        ("user bob >secret +nope\n", None, ">>> 'user bob (a password) +nope'"),
        ("user bob on\naclfile users.acl\n", Some("user bob on\n"), "it has to be one or the other"),
        ("aclfile users.acl\n", None, "Error loading ACLs, opening file 'users.acl': No such file or directory"),
        ("aclfile users.acl\n", Some("user bob +nope\n"), "users.acl:1: Error in applying operation '+nope'"),
        ("aclfile users.acl\n", Some("user bob <secret\n"), "Error in applying operation '(a password)'"),
    ] {
        let folder = Folder::new();
        if let Some(text) = file {
            folder.write("users.acl", text);
        }
        let dir = folder.0.display();
        let port = free_port();
        let conf = folder
            .write("sentinel.conf", &format!("port {port}\nbind 127.0.0.1\ndir {dir}\nlogfile {dir}/log\n{lines}"));
        for check in [false, true] {
            let mut command = binary();
            command.arg(&conf).args(check.then_some("--check-config"));
            let output = finished(&mut command);
            assert_eq!(output.status.code(), Some(1));
            let told = text(&output.stderr);
            assert!(told.contains(said) && !told.contains("secret"), "{lines}: {told}");
        }
    }
}

#[test]
fn r100_an_open_port_is_warned_of_and_a_password_silences_that() {
    let start = |lines: &str| {
        let folder = Folder::new();
        let dir = folder.0.display().to_string();
        let port = free_port();
        let conf =
            folder.write("sentinel.conf", &format!("port {port}\nbind *\ndir {dir}\nlogfile {dir}/log\n{lines}"));
        let sentinel = Guarded(binary().arg(conf).spawn().unwrap());
        let mut client =
            until("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(Client::from));
        client.ask("PING");
        drop(sentinel);
        folder.read("log")
    };
    let warning = "Anybody who reaches this port can reconfigure this Sentinel";
    assert!(start("").contains(warning));
    for lines in ["requirepass x\n", "protected-mode yes\n", "user default off\n"] {
        assert!(!start(lines).contains(warning), "{lines}");
    }
    let both = start("requirepass x\nuser default on nopass +@all\n");
    assert!(both.contains(warning) && both.contains("requirepass does not protect"), "{both}");
    let hash = watchfire::acl::Hash::of(b"x");
    let agreeing = start(&format!("requirepass x\nuser default on #{hash} ~* &* +@all\n"));
    assert!(!agreeing.contains(warning) && !agreeing.contains("requirepass does not protect"), "{agreeing}");
}

#[test]
fn the_end_of_a_request_may_come_with_the_end_of_the_stream() {
    let sentinel = with_users("user bob on >x +ping\n");
    let mut client = sentinel.client();
    client.send(b"AUTH bob x\r\nINFO\r\nPING\r\nHELLO 3 AUTH bob y\r\n");
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = String::new();
    client.0.read_to_string(&mut all).unwrap();
    assert_eq!(
        all,
        "+OK\r\n-NOPERM User bob has no permissions to run the 'info' command\r\n+PONG\r\n\
         -WRONGPASS invalid username-password pair or user is disabled.\r\n"
    );
}
