//! `SENTINEL …`: the questions of clients, peers and operators to the core.
//!
//! `show` prints what is known, `report` what happened, `set` changes settings, `admin` does the rest of what operators
//! do; here is what clients and peers ask all day.

pub(super) mod admin;
pub(super) mod report;
pub(super) mod set;
pub(super) mod show;

use super::call::{Call, bulk_number};
use crate::core::{Addr, Answer, Master, Replica, RunId, Sentinel, Vote};
use crate::resp::{Proto, Writer, parse_integer};
use std::borrow::Cow;

const NO_SUCH_MASTER: &str = "ERR No such master with that name";

/// The replicas that are known now; one remembered from before a RESET is not.
pub(super) fn listed_replicas(master: &Master) -> impl Iterator<Item = &Replica> {
    master.replicas.values().filter(|replica| !replica.hidden)
}

/// The host of an address as it is announced. Like [`Sentinel::host_text`], without a copy where none is needed.
fn host_text<'a>(sentinel: &Sentinel, addr: &'a Addr) -> Cow<'a, str> {
    let numeric = addr.host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if numeric || sentinel.options().announce_hostnames {
        Cow::Borrowed(&addr.host)
    } else {
        Cow::Owned(sentinel.host_text(addr))
    }
}

pub(super) fn get_master_addr_by_name(call: &mut Call<'_, '_>) {
    let sentinel = &*call.world.sentinel;
    let Some(master) = sentinel.master_by_name(&call.argv[2]) else {
        return Writer::new(call.out, call.proto).nil_array();
    };
    let addr = sentinel.current_addr(master);
    let mut reply = Writer::new(call.out, call.proto);
    reply.array(2);
    reply.bulk(host_text(sentinel, addr).as_bytes());
    bulk_number(call.out, call.proto, addr.port.into());
}

pub(super) fn myid(call: &mut Call<'_, '_>) {
    let id = call.world.sentinel.myid();
    call.reply().bulk(id.as_str());
}

/// `IS-MASTER-DOWN-BY-ADDR ip port epoch runid|*`, a peer's question; with a run id it asks for our vote.
pub(super) fn is_master_down_by_addr(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let (Some(port), Some(epoch)) = (parse_integer(&argv[3]), parse_integer(&argv[4])) else {
        return call.not_an_integer();
    };
    let candidate = RunId::parse(&argv[5]);
    let epoch = match u64::try_from(epoch) {
        Ok(epoch) => epoch,
        Err(_) if candidate.is_none() => 0,
        // Read as unsigned this would be the last epoch there is, and nobody could be elected after it.
        Err(_) => return call.not_an_integer(),
    };
    // What can be no address of a master is about no master.
    let answer = match (std::str::from_utf8(&argv[2]), u16::try_from(port)) {
        (Ok(host), Ok(port)) => call.world.sentinel.question(call.world.now, host, port, epoch, candidate),
        _ => {
            let vote = Vote { leader: None, epoch: 0 };
            Answer { down: false, vote, vote_if_unsaved: vote }
        }
    };
    if answer.vote == answer.vote_if_unsaved {
        tell(call.out, call.proto, answer.down, answer.vote);
        return;
    }
    let (mut saved, mut unsaved) = (Vec::new(), Vec::new());
    tell(&mut saved, call.proto, answer.down, answer.vote);
    tell(&mut unsaved, call.proto, answer.down, answer.vote_if_unsaved);
    call.after_save(saved, unsaved);
}

fn tell(out: &mut Vec<u8>, proto: Proto, down: bool, vote: Vote) {
    let mut reply = Writer::new(out, proto);
    reply.array(3);
    reply.integer(i64::from(down));
    reply.bulk(vote.leader.as_ref().map_or("*", RunId::as_str));
    reply.integer(vote.epoch.cast_signed());
}
