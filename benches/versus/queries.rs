//! How many clients can be told where the master is: section queries.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use watchfire::resp::request;

use super::launch::Seat;
use super::proc::Cpu;
use super::table::{Goal, Row, number};
use super::{Bench, Report, plain};
use crate::support::process::Redis;

const CONNECTIONS: usize = 50;

/// Answers a second, and µs of the Sentinel's CPU for each.
struct Load {
    rate: f64,
    cpu: f64,
}

/// Keeps `in_flight` questions under way on every connection. All of them are sent before the first answer is read, so the
/// Sentinel has always something to do; answers are compared with the first one.
fn load(port: u16, pid: u32, in_flight: usize, window: Duration) -> Load {
    let mut question = Vec::new();
    request(&mut question, &[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"m0"]);
    let connect = || {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket option");
        stream
    };
    let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect()).collect();
    let answer = first_answer(&mut streams[0], &question);
    let (questions, answers) = (question.repeat(in_flight), answer.repeat(in_flight));
    let mut heard = vec![0; answers.len()];
    let mut count = 0;
    let (before, begin) = (Cpu::of(pid), Instant::now());
    while begin.elapsed() < window {
        for stream in &mut streams {
            stream.write_all(&questions).expect("questions are taken");
        }
        for stream in &mut streams {
            stream.read_exact(&mut heard).expect("answers come");
            assert!(heard == answers, "another answer: {}", String::from_utf8_lossy(&heard));
        }
        count += CONNECTIONS * in_flight;
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    Load { rate, cpu: Cpu::of(pid).since(before, count as f64).used * 1000.0 }
}

/// `*2 $9 127.0.0.1 $5 12345`: complete at its fifth line end.
fn first_answer(stream: &mut TcpStream, question: &[u8]) -> Vec<u8> {
    stream.write_all(question).expect("a question is taken");
    let mut answer = Vec::new();
    while answer.iter().filter(|byte| **byte == b'\n').count() < 5 {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer comes");
        answer.extend(byte);
    }
    assert!(answer.starts_with(b"*2\r\n$9\r\n127.0.0.1\r\n"), "not an address: {}", String::from_utf8_lossy(&answer));
    answer
}

pub fn queries(bench: &Bench) -> Report {
    let redis = match bench.servers() {
        Ok(redis) => redis,
        Err(skipped) => return skipped,
    };
    // A master each, or they would know each other.
    let servers: Vec<Redis> = bench.contestants.iter().map(|_| Redis::start(redis, &["hz 1"])).collect();
    let sentinels: Vec<_> = bench
        .contestants
        .iter()
        .zip(&servers)
        .map(|(program, server)| {
            let line = format!("sentinel monitor m0 127.0.0.1 {} 1", server.port);
            let sentinel = Seat::new(program, &[line]).launch();
            sentinel.wait_for_masters(1, "slaves=0");
            sentinel
        })
        .collect();
    // Short turns: what disturbs one contestant is still there when the next one has its turn.
    let window = Duration::from_millis(250);
    let mut report = Report { notes: vec![format!("{CONNECTIONS} connections, one thread")], rows: Vec::new() };
    for (in_flight, goal) in [(1, 1.0), (16, 1.3)] {
        let loads = bench.alternate(bench.rounds, |_, who| {
            let load = load(sentinels[who].port(), sentinels[who].pid(), in_flight, window);
            eprintln!(
                "queries, {in_flight} in flight: {} {}/s, {:.2} µs",
                bench.contestants[who].name,
                number(load.rate),
                load.cpu
            );
            load
        });
        let of = |field: fn(&Load) -> f64| loads.iter().map(|loads| plain(loads.iter().map(field))).collect();
        let what = format!("queries, {in_flight} in flight, thousands a second");
        report.rows.push(Row::rate(what, of(|load| load.rate / 1000.0)).goal(Goal::TimesBetter(goal)));
        let what = format!("queries, {in_flight} in flight, µs of CPU each");
        report.rows.push(Row::cost(what, of(|load| load.cpu)));
    }
    report
}
