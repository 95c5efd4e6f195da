//! Free TCP ports that stay free: for tests that run in parallel threads and in parallel processes.
//!
//! "Bind port 0, close, hand the number on" is not good enough here. Such a number comes out of the system's
//! range for outgoing connections, so that a Sentinel which redials a killed server can be given that very
//! port as its own end (it then talks to itself), and a restarted server can find its port taken.
//!
//! So ports come from below that range, in blocks of a hundred. Whoever holds the first port of a block bound
//! owns the block; the system frees it when the process ends, however it ends.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

const LOWEST: u16 = 10_000;
const HIGHEST: u16 = 32_000;
const BLOCK: u16 = 100;

/// The blocks of this process: the guards of all, and what is left of the newest.
struct Blocks {
    guards: Vec<TcpListener>,
    next: u16,
    end: u16,
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { guards: Vec::new(), next: 0, end: 0 });

/// The ports that belong to hosts of their own.
static HOSTS: Mutex<BTreeMap<u16, Ipv4Addr>> = Mutex::new(BTreeMap::new());

/// The address of the server on this port: ports tell all servers of a test apart, wherever they are.
#[must_use]
pub fn host(port: u16) -> Ipv4Addr {
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner).get(&port).copied().unwrap_or(Ipv4Addr::LOCALHOST)
}

/// As [`free`], for a server on that host.
///
/// # Panics
/// As [`free`].
#[must_use]
pub fn free_on(host: Ipv4Addr) -> u16 {
    let port = free();
    if !host.is_loopback() {
        HOSTS.lock().unwrap_or_else(PoisonError::into_inner).insert(port, host);
    }
    port
}

/// A port on which nobody listens and which no other test is given. Never given twice in one process.
///
/// # Panics
/// When all blocks are taken, which means thousands of servers at once.
#[must_use]
pub fn free() -> u16 {
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while blocks.next < blocks.end {
            let port = blocks.next;
            blocks.next += 1;
            if listenable(port) {
                return port;
            }
        }
        claim(&mut blocks);
    }
}

/// Whether a server could listen on this loopback port now.
fn listenable(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Takes the first block that nobody owns, from a start that differs from process to process.
fn claim(blocks: &mut Blocks) {
    let count = (HIGHEST - LOWEST) / BLOCK;
    let start = u16::try_from(u64::from(std::process::id()).wrapping_mul(7919) % u64::from(count)).unwrap_or(0);
    for step in 0..count {
        let first = LOWEST + (start + step) % count * BLOCK;
        // The block of 26379, where a Sentinel of the machine itself may live, is nobody's.
        if (first..first + BLOCK).contains(&26_379) {
            continue;
        }
        if let Ok(guard) = TcpListener::bind((Ipv4Addr::LOCALHOST, first)) {
            blocks.guards.push(guard);
            blocks.next = first + 1;
            blocks.end = first + BLOCK;
            return;
        }
    }
    panic!("no free block of ports between {LOWEST} and {HIGHEST}");
}
