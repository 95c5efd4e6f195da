//! A bounded number of messages: in one second to one node always, and for one failover where nothing else is wrong.

use super::facts::{Checker, Fact, Seen};
use super::node::Node;
use super::options::Options;
use std::collections::BTreeMap;

/// Requests of one Sentinel to one node within one second. PING every 25 ms at most, questions that cause questions every
/// 20 ms, and the look every 10 ms at a replica that a master hands over to; the rest is an opening and a few orders.
const A_SECOND: usize = 250;

#[derive(Default)]
pub struct BoundedMessages {
    sent: BTreeMap<(usize, Node), (u64, usize)>,
}

impl Checker for BoundedMessages {
    fn name(&self) -> &'static str {
        "bounded-messages"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Fact::Sends { to, requests } = seen.fact else { return Ok(()) };
        let this = seen.now.0 / 1_000;
        let (second, count) = self.sent.entry((seen.who, to)).or_default();
        if *second != this {
            (*second, *count) = (this, 0);
        }
        *count += requests;
        if *count > A_SECOND {
            return Err(format!("s{} sends {to} {count} requests within a second", seen.who + 1));
        }
        Ok(())
    }
}

/// The requests of all Sentinels, from the death of the master to three seconds after all have agreed, that are enough.
///
/// Every Sentinel tells every node five things every two seconds (PING, hello, INFO) all the time, and fifteen more are what
/// the failover itself takes, with questions and the opening of new connections.
pub fn bound(options: &Options) -> u64 {
    let nodes = (options.sentinels + options.servers()) as u64;
    let seconds = (options.down_after + 4_000) / 1_000;
    options.sentinels as u64 * nodes * (15 + 5 * seconds)
}
