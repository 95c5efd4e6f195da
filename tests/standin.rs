//! The Redis stand-in is worth what it is taken for: by clients, by redis-cli, and by real Sentinels.

mod support;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::process::Command;
use std::time::{Duration, Instant};

use support::conn::{Conn, Events, info, map, maps, text, texts};
use support::group::{Group, Plan};
use support::ports;
use support::process::{Program, find_program, info_of, present, wait_for};
use support::standin::{Comeback, Mode, Role, Spec, StandIn};
use watchfire::resp::Reply;

const SOON: Duration = Duration::from_secs(5);

/// One master and `replicas` of it, links up.
fn family(standin: &StandIn, replicas: usize) -> Vec<u16> {
    let master = standin.server(Spec::master()).port;
    let mut all = vec![master];
    all.extend(standin.servers(vec![Spec::replica_of(master); replicas]).iter().map(|server| server.port));
    for &replica in &all[1..] {
        wait_for(SOON, "the replica's link", || standin.state(replica).link_up);
    }
    all
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

#[test]
fn ports_are_given_once_even_to_many_threads() {
    let threads: Vec<_> =
        (0..4).map(|_| std::thread::spawn(|| (0..75).map(|_| ports::free()).collect::<Vec<u16>>())).collect();
    let all: Vec<u16> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 300);
}

#[test]
fn a_server_answers_what_clients_ask() {
    let standin = StandIn::start();
    let port = standin.server(Spec::master()).port;
    let mut conn = Conn::to(port);
    assert_eq!(conn.cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
    assert_eq!(text(&conn.cmd(&["echo", "words and spaces"])), "words and spaces");
    assert_eq!(conn.cmd(&["CLIENT", "SETNAME", "me"]), ok());
    assert_eq!(text(&conn.cmd(&["CLIENT", "GETNAME"])), "me");
    assert!(text(&conn.cmd(&["CLIENT", "LIST"])).contains("name=me "));
    assert_eq!(conn.cmd(&["SET", "key", "value"]), ok());
    assert_eq!(text(&conn.cmd(&["GET", "key"])), "value");
    assert_eq!(texts(&conn.cmd(&["CONFIG", "GET", "replica-priority"])), ["replica-priority", "100"]);
    assert_eq!(conn.cmd(&["CONFIG", "SET", "replica-priority", "7"]), ok());
    assert_eq!(standin.state(port).priority, 7);
    assert!(text(&conn.cmd(&["NONSENSE"])).starts_with("ERR unknown command 'NONSENSE'"));
    assert!(text(&conn.cmd(&["GET"])).starts_with("ERR wrong number of arguments for 'get'"));
    conn.send_raw(b"PING\r\n").unwrap();
    assert_eq!(conn.receive().unwrap(), Reply::Simple(b"PONG".to_vec()));
    let hello = map(&conn.cmd(&["HELLO", "3"]));
    assert_eq!((hello["proto"].as_str(), hello["role"].as_str()), ("3", "master"));
    assert_eq!(conn.cmd(&["GET", "nothing"]), Reply::Nil);
    assert_eq!(conn.cmd(&["QUIT"]), ok());
    assert_eq!(conn.receive().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(standin.calls(port)["ping"], 2);
}

#[test]
fn info_has_the_fields_that_a_sentinel_reads() {
    let standin = StandIn::start();
    let all = family(&standin, 2);
    let master = info_of(all[0]);
    assert_eq!(master["role"], "master");
    assert_eq!(master["run_id"], standin.state(all[0]).run_id);
    assert_eq!(master["run_id"].len(), 40);
    assert_eq!(master["connected_slaves"], "2");
    let line = format!("ip=127.0.0.1,port={},state=online,offset=0,lag=0", all[1]);
    assert!([&master["slave0"], &master["slave1"]].contains(&&line), "{master:?}");
    let replica = info_of(all[1]);
    assert_eq!(replica["role"], "slave");
    assert_eq!(replica["master_host"], "127.0.0.1");
    assert_eq!(replica["master_port"], all[0].to_string());
    assert_eq!(replica["master_link_status"], "up");
    assert_eq!(replica["slave_priority"], "100");
    assert_eq!(replica["replica_announced"], "1");
    assert!(!replica.contains_key("master_link_down_since_seconds"));

    standin.lie_about(all[1], "slave_priority", Some("1"));
    assert_eq!(info_of(all[1])["slave_priority"], "1");
    standin.lie(all[1], Some("role:master\r\n"));
    assert_eq!(text(&Conn::to(all[1]).cmd(&["INFO"])), "role:master\r\n");
    standin.lie(all[1], None);
    let section = info(&Conn::to(all[1]).cmd(&["INFO", "server"]));
    assert_eq!(section["tcp_port"], all[1].to_string());
    assert!(!section.contains_key("role"));
}

#[test]
fn replicas_follow_their_master_and_keep_what_they_had_when_it_dies() {
    let standin = StandIn::start();
    let all = family(&standin, 2);
    assert_eq!(Conn::to(all[0]).cmd(&["SET", "a", "1"]), ok());
    let offset = standin.state(all[0]).offset;
    assert!(offset > 0);
    assert_eq!(standin.state(all[1]).offset, offset);
    let mut replica = Conn::to(all[1]);
    assert!(text(&replica.cmd(&["SET", "a", "2"])).starts_with("READONLY"));
    assert_eq!(text(&replica.cmd(&["GET", "a"])), "1");

    standin.kill(all[0]);
    assert_eq!(Conn::open(all[0]).err().map(|error| error.kind()), Some(ErrorKind::ConnectionRefused));
    let info = info_of(all[1]);
    assert_eq!(info["master_link_status"], "down");
    assert_eq!(info["master_link_down_since_seconds"], "0");
    assert_eq!(text(&replica.cmd(&["GET", "a"])), "1");
    assert_eq!(standin.state(all[1]).offset, offset);

    assert_eq!(replica.cmd(&["REPLICAOF", "NO", "ONE"]), ok());
    assert_eq!(replica.cmd(&["SET", "a", "3"]), ok());
    let mut other = Conn::to(all[2]);
    assert_eq!(other.cmd(&["SLAVEOF", "127.0.0.1", &all[1].to_string()]), ok());
    assert!(text(&other.cmd(&["SLAVEOF", "127.0.0.1", &all[1].to_string()])).starts_with("OK Already"));
    wait_for(SOON, "the other replica's link", || standin.state(all[2]).link_up);
    assert_eq!(text(&other.cmd(&["GET", "a"])), "3");

    let old = standin.state(all[0]).run_id;
    standin.restart(all[0], Comeback::AsWritten);
    let state = standin.state(all[0]);
    assert_ne!(state.run_id, old);
    assert_eq!((state.mode, state.role), (Mode::Up, Role::Master));
}

#[test]
fn a_restart_takes_the_role_last_written_or_none() {
    let standin = StandIn::start();
    let all = family(&standin, 1);
    let follower = Role::Replica { host: "127.0.0.1".to_string(), port: all[0] };
    standin.kill(all[1]);
    standin.restart(all[1], Comeback::AsWritten);
    assert_eq!(standin.state(all[1]).role, follower);
    standin.restart(all[1], Comeback::AsMaster);
    assert_eq!(standin.state(all[1]).role, Role::Master);
    standin.restart(all[1], Comeback::AsWritten);
    assert_eq!(standin.state(all[1]).role, follower);
    let mut conn = Conn::to(all[1]);
    conn.cmd(&["SLAVEOF", "NO", "ONE"]);
    conn.cmd(&["CONFIG", "REWRITE"]);
    standin.restart(all[1], Comeback::AsWritten);
    assert_eq!(standin.state(all[1]).role, Role::Master);
}

#[test]
fn chains_replicate_and_circles_do_not() {
    let standin = StandIn::start();
    let all = family(&standin, 1);
    let leaf = standin.server(Spec::replica_of(all[1])).port;
    wait_for(SOON, "the leaf's link", || standin.state(leaf).link_up);
    Conn::to(all[0]).cmd(&["SET", "a", "1"]);
    assert_eq!(standin.state(leaf).offset, standin.state(all[0]).offset);
    standin.kill(all[0]);
    assert!(!standin.state(leaf).link_up);
    standin.replicate(all[1], Some(leaf));
    assert!(!standin.state(leaf).link_up && !standin.state(all[1]).link_up);
    standin.replicate(all[1], None);
    wait_for(SOON, "the leaf's link", || standin.state(leaf).link_up);
    assert_eq!(text(&Conn::to(leaf).cmd(&["GET", "a"])), "1");
}

#[test]
fn a_sentinels_transaction_changes_the_role_and_ends_all_clients_but_the_caller() {
    let standin = StandIn::start();
    let all = family(&standin, 1);
    let mut caller = Conn::to(all[1]);
    let mut bystander = Conn::to(all[1]);
    let mut listener = Conn::to(all[1]);
    bystander.cmd(&["PING"]);
    listener.cmd(&["SUBSCRIBE", "channel"]);
    assert_eq!(caller.cmd(&["MULTI"]), ok());
    for words in [
        &["SLAVEOF", "NO", "ONE"][..],
        &["CONFIG", "REWRITE"],
        &["CLIENT", "KILL", "TYPE", "normal"],
        &["CLIENT", "KILL", "TYPE", "pubsub"],
    ] {
        assert_eq!(caller.cmd(words), Reply::Simple(b"QUEUED".to_vec()));
    }
    let done = caller.cmd(&["EXEC"]);
    assert_eq!(done, Reply::Array(vec![ok(), ok(), Reply::Integer(1), Reply::Integer(1)]));
    assert_eq!(bystander.receive().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(listener.receive().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(texts(&caller.cmd(&["ROLE"]))[0], "master");
    assert!(text(&caller.cmd(&["EXEC"])).starts_with("ERR EXEC without MULTI"));
    caller.cmd(&["MULTI"]);
    caller.cmd(&["GET"]);
    assert!(text(&caller.cmd(&["EXEC"])).starts_with("EXECABORT"));
}

#[test]
fn messages_reach_subscribers_of_the_server_and_of_its_replicas() {
    let standin = StandIn::start();
    let all = family(&standin, 1);
    let at_master = Events::subscribe(all[0], &["__sentinel__:*"]);
    let at_replica = Events::subscribe(all[1], &["*"]);
    let mut conn = Conn::to(all[0]);
    assert_eq!(conn.cmd(&["PUBLISH", "__sentinel__:hello", "one"]), Reply::Integer(1));
    at_master.expect(SOON, "__sentinel__:hello", "one");
    at_replica.expect(SOON, "__sentinel__:hello", "one");
    assert_eq!(Conn::to(all[1]).cmd(&["PUBLISH", "__sentinel__:hello", "two"]), Reply::Integer(1));
    at_replica.expect(SOON, "__sentinel__:hello", "two");
    assert!(at_master.find("__sentinel__:hello", "two").is_none());

    assert_eq!(texts(&conn.cmd(&["SUBSCRIBE", "here"])), ["subscribe", "here", "1"]);
    assert!(text(&conn.cmd(&["GET", "a"])).contains("allowed in this context"));
    assert_eq!(texts(&conn.cmd(&["PING"])), ["pong", ""]);
    assert_eq!(Conn::to(all[0]).cmd(&["PUBLISH", "here", "three"]), Reply::Integer(1));
    assert_eq!(texts(&conn.receive().unwrap()), ["message", "here", "three"]);
    assert_eq!(texts(&conn.cmd(&["UNSUBSCRIBE"])), ["unsubscribe", "here", "0"]);
    assert_eq!(conn.cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));

    let mut modern = Conn::to(all[0]).resp3();
    assert!(matches!(modern.cmd(&["SUBSCRIBE", "here"]), Reply::Push(_)));
    assert_eq!(modern.cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
}

#[test]
fn a_hung_server_takes_connections_and_answers_when_it_is_resumed() {
    let standin = StandIn::start();
    let port = standin.server(Spec::master()).port;
    let mut early = Conn::to(port);
    early.cmd(&["PING"]);
    standin.hang(port);
    let mut late = Conn::to(port);
    for conn in [&mut early, &mut late] {
        conn.set_patience(Some(Duration::from_millis(100)));
        let error = conn.try_cmd(&["PING"]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error:?}");
        conn.set_patience(Some(SOON));
    }
    standin.resume(port);
    assert_eq!(early.receive().unwrap(), Reply::Simple(b"PONG".to_vec()));
    assert_eq!(late.receive().unwrap(), Reply::Simple(b"PONG".to_vec()));

    // DEBUG SLEEP is such a hang with an end.
    let begin = Instant::now();
    assert_eq!(early.cmd(&["DEBUG", "SLEEP", "0.2"]), ok());
    assert!(begin.elapsed() >= Duration::from_millis(200));
    assert_eq!(late.cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
}

#[test]
fn faults_can_be_set_and_taken_away() {
    let standin = StandIn::start();
    let port = standin.server(Spec::master()).port;
    let mut conn = Conn::to(port);

    standin.slow(port, 150);
    let begin = Instant::now();
    conn.cmd(&["PING"]);
    assert!(begin.elapsed() >= Duration::from_millis(150));
    standin.slow(port, 0);

    standin.answer_error(port, Some("LOADING data"));
    assert_eq!(conn.cmd(&["PING"]), Reply::Error(b"LOADING data".to_vec()));
    assert!(text(&conn.cmd(&["INFO"])).contains("role:master"));
    standin.answer_error(port, Some("BUSY with a script"));
    assert_eq!(text(&conn.cmd(&["INFO"])), "BUSY with a script");
    assert_eq!(conn.cmd(&["SCRIPT", "KILL"]), ok());
    assert_eq!(conn.cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
    assert!(text(&conn.cmd(&["SCRIPT", "KILL"])).starts_with("NOTBUSY"));

    let replica = standin.server(Spec { offset: 5, ..Spec::replica_of(port) }).port;
    standin.set_offset(replica, 77);
    standin.set_priority(replica, 3);
    conn.cmd(&["SET", "a", "1"]);
    let info = info_of(replica);
    assert_eq!((info["slave_repl_offset"].as_str(), info["slave_priority"].as_str()), ("77", "3"));

    standin.kill(port);
    assert_eq!(conn.receive().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    standin.restart(port, Comeback::AsMaster);
    assert_eq!(Conn::to(port).cmd(&["PING"]), Reply::Simple(b"PONG".to_vec()));
}

#[test]
fn passwords_and_renamed_commands_are_asked_for() {
    let standin = StandIn::start();
    let port = standin
        .server(Spec {
            password: Some("secret".to_string()),
            rename: vec![("SLAVEOF".to_string(), "follow".to_string()), ("CONFIG".to_string(), String::new())],
            ..Spec::master()
        })
        .port;
    let mut conn = Conn::to(port);
    assert!(text(&conn.cmd(&["PING"])).starts_with("NOAUTH"));
    assert!(text(&conn.cmd(&["AUTH", "wrong"])).starts_with("WRONGPASS"));
    assert_eq!(conn.cmd(&["AUTH", "secret"]), ok());
    assert!(text(&conn.cmd(&["SLAVEOF", "NO", "ONE"])).starts_with("ERR unknown command"));
    assert!(text(&conn.cmd(&["CONFIG", "REWRITE"])).starts_with("ERR unknown command"));
    assert_eq!(conn.cmd(&["FOLLOW", "NO", "ONE"]), ok());
    assert_eq!(Conn::to(port).cmd(&["AUTH", "default", "secret"]), ok());
    let hello = Conn::to(port).cmd(&["HELLO", "3", "AUTH", "default", "secret"]);
    assert!(matches!(hello, Reply::Map(_)), "{hello:?}");
    standin.refuse_auth(port, true);
    assert!(text(&Conn::to(port).cmd(&["AUTH", "secret"])).starts_with("WRONGPASS"));
}

#[test]
fn many_servers_live_in_one_thread() {
    let standin = StandIn::start();
    let master = standin.server(Spec::master()).port;
    let servers = standin.servers(vec![Spec::replica_of(master); 200]);
    let mut conns: Vec<Conn> = servers.iter().map(|server| Conn::to(server.port)).collect();
    for (conn, server) in conns.iter_mut().zip(&servers) {
        let info = info(&conn.cmd(&["INFO"]));
        assert_eq!(info["tcp_port"], server.port.to_string());
    }
    wait_for(SOON, "all links", || info_of(master)["connected_slaves"] == "200");
}

#[test]
fn redis_cli_finds_nothing_strange() {
    let Some(cli) = present(find_program("redis-cli"), "redis-cli") else { return };
    let standin = StandIn::start();
    let all = family(&standin, 1);
    let run = |port: u16, words: &[&str]| {
        let out = Command::new(&cli).args(["-p", &port.to_string()]).args(words).output().expect("redis-cli runs");
        String::from_utf8_lossy(&out.stdout).trim().to_string()
    };
    assert_eq!(run(all[0], &["PING"]), "PONG");
    assert_eq!(run(all[0], &["SET", "a", "1"]), "OK");
    assert_eq!(run(all[1], &["GET", "a"]), "1");
    assert_eq!(run(all[1], &["-3", "GET", "a"]), "1");
    assert!(run(all[1], &["INFO", "replication"]).contains("master_link_status:up"));
    assert!(run(all[1], &["SET", "a", "2"]).starts_with("READONLY"));
    assert!(run(all[0], &["ROLE"]).starts_with("master"));
    assert!(run(all[0], &["CLIENT", "LIST"]).contains("cmd=client|list"));
}

#[test]
fn three_redis_sentinels_fail_a_stand_in_master_over_to_its_best_replica() {
    let Some(sentinel) = present(Program::redis_sentinel(), "redis-sentinel") else { return };
    // A long down-after: with a second a busy machine makes them fail over once more, from a master that was just promoted.
    let mut group = Plan::new(vec![sentinel; 3]).down_after(5000).failover_timeout(5000).start();
    group.wait_known(Duration::from_secs(30));
    let (old, best, other) = (group.ports[0], group.ports[1], group.ports[2]);
    let standin = group.standin.as_ref().unwrap();
    assert_eq!(Conn::to(old).cmd(&["SET", "a", "1"]), ok());
    standin.set_offset(other, 1);
    let calls = standin.calls(old);
    assert_eq!(calls["client|setname"], 6, "two connections of three Sentinels: {calls:?}");
    let events = group.sentinels[0].events(&["*"]);

    group.kill(old);
    assert_eq!(group.wait_switched(Duration::from_secs(30), old), best);
    events.expect(SOON, "+sdown", &format!("master mymaster 127.0.0.1 {old}"));
    events.expect(SOON, "+switch-master", &format!("mymaster 127.0.0.1 {old} 127.0.0.1 {best}"));
    wait_for(Duration::from_secs(20), "the other replica to follow", || Group::follows(other) == Some(best));
    assert!(Group::is_writable(best));
    assert_eq!(text(&Conn::to(best).cmd(&["GET", "a"])), "1");

    // It comes back as the master that it was, and is made a replica.
    group.restart(old);
    wait_for(Duration::from_secs(30), "the old master to follow", || Group::follows(old) == Some(best));
    let replicas = maps(&group.sentinels[0].conn().cmd(&["SENTINEL", "REPLICAS", "mymaster"]));
    assert_eq!(replicas.len(), 2);
}
