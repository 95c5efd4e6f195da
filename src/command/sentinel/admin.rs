//! What operators do besides settings: MONITOR, REMOVE, RESET, FAILOVER, CKQUORUM, FLUSHCONFIG,
//! SIMULATE-FAILURE.

use super::super::call::{Call, wrong_arity};
use super::NO_SUCH_MASTER;
use crate::base::{Alike, limits, quote};
use crate::core::{FailoverRefused, MonitorError};
use crate::resp::parse_integer;
use std::net::IpAddr;

/// Refuses a word that could break out of its line of the configuration file (R87), or swell it; replies when it does.
pub(super) fn refuse_word(call: &mut Call<'_, '_>, at: usize, command: &str) -> bool {
    let control = quote::has_control(&call.argv[at]);
    if control {
        call.error(&format!("ERR Invalid argument at index {at} for {command}: control characters are not allowed"));
    }
    control || refuse_length(call, at, command)
}

/// The same for a password, which may hold any byte.
pub(super) fn refuse_length(call: &mut Call<'_, '_>, at: usize, command: &str) -> bool {
    refuse_longer(call, at, command, limits::SETTING)
}

pub(super) fn refuse_longer(call: &mut Call<'_, '_>, at: usize, command: &str, most: usize) -> bool {
    let long = call.argv[at].len() > most;
    if long {
        call.error(&format!("ERR Invalid argument at index {at} for {command}: longer than {most} bytes"));
    }
    long
}

/// `MONITOR name host port quorum`. The same checks, in the same order, as the reference's.
pub(in super::super) fn monitor(call: &mut Call<'_, '_>) {
    const COMMAND: &str = "SENTINEL MONITOR";
    let argv = call.argv;
    if (2..6).any(|at| refuse_word(call, at, COMMAND)) {
        return;
    }
    let Some(quorum) = parse_integer(&argv[5]) else { return call.error("ERR Invalid quorum") };
    let Some(port) = parse_integer(&argv[4]) else { return call.error("ERR Invalid port") };
    if quorum <= 0 {
        return call.error("ERR Quorum must be 1 or greater.");
    }
    // A quorum nobody could count up to is no number for us.
    let Ok(quorum) = u32::try_from(quorum) else { return call.error("ERR Invalid quorum") };
    let (Ok(name), Ok(host)) = (std::str::from_utf8(&argv[2]), std::str::from_utf8(&argv[3])) else {
        let at = if std::str::from_utf8(&argv[2]).is_err() { 2 } else { 3 };
        return call.error(&format!("ERR Invalid argument at index {at} for {COMMAND}: not valid UTF-8"));
    };
    if host.parse::<IpAddr>().is_err() && !call.world.sentinel.options().resolve_hostnames {
        return call.error(&format!("ERR {}", MonitorError::BadHost));
    }
    let Ok(port) = u16::try_from(port) else { return call.error("ERR Invalid port number.") };
    match call.world.sentinel.monitor(call.world.now, name, host, port, quorum) {
        Ok(()) => call.ok_after_save(),
        Err(refusal) => call.error(&format!("ERR {refusal}")),
    }
}

pub(in super::super) fn remove(call: &mut Call<'_, '_>) {
    match call.world.sentinel.remove(call.world.now, &call.argv[2]) {
        Ok(()) => call.ok_after_save(),
        Err(_) => call.error(NO_SUCH_MASTER),
    }
}

pub(in super::super) fn reset(call: &mut Call<'_, '_>) {
    let matched = call.world.sentinel.reset(call.world.now, &call.argv[2]);
    call.reply().integer(i64::try_from(matched).unwrap_or(i64::MAX));
}

pub(in super::super) fn failover(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.len() > 4 {
        return wrong_arity(call.out, call.command.full);
    }
    if call.world.sentinel.master_by_name(&argv[2]).is_none() {
        return call.error(NO_SUCH_MASTER);
    }
    let coordinated = argv.get(3).is_some_and(|option| option.alike(b"COORDINATED"));
    if argv.len() > 3 && !coordinated {
        return call.error("ERR Unknown failover option specified");
    }
    match call.world.sentinel.force_failover(call.world.now, &argv[2], coordinated) {
        Ok(()) => call.ok_after_save(),
        Err(FailoverRefused::NoSuchMaster) => call.error(NO_SUCH_MASTER),
        Err(FailoverRefused::InProgress) => call.error("INPROG Failover already in progress"),
        Err(FailoverRefused::NoGoodReplica) => call.error("NOGOODSLAVE No suitable replica to promote"),
        Err(FailoverRefused::NoGoodMaster) => call.error("NOGOODPRIMARY Primary does not support FAILOVER command"),
        // Its epoch would not be on disk, and so could not be its own.
        Err(FailoverRefused::Unsaved) => call.error("ERR Failed to save config file. Check server logs."),
        Err(FailoverRefused::NoEpochLeft) => call.error("ERR The epochs are used up, so no failover can be led"),
        // The reference says OK here and then stands still until TILT ends (L5).
        Err(FailoverRefused::Tilt) => {
            call.error("ERR Sentinel is in TILT mode and starts no failover. Try again later.")
        }
    }
}

pub(in super::super) fn ckquorum(call: &mut Call<'_, '_>) {
    let Ok(report) = call.world.sentinel.check_quorum(&call.argv[2]) else { return call.error(NO_SUCH_MASTER) };
    let usable = report.usable;
    if report.quorum_reached && report.majority_reached {
        return call
            .reply()
            .simple(&format!("OK {usable} usable Sentinels. Quorum and failover authorization can be reached"));
    }
    let mut text = format!("NOQUORUM {usable} usable Sentinels.");
    if !report.quorum_reached {
        text.push_str(" Not enough available Sentinels to reach the specified quorum for this master");
    }
    if !report.majority_reached {
        text.push_str(if report.quorum_reached { "" } else { "." });
        text.push_str(" Not enough available Sentinels to reach the majority and authorize a failover");
    }
    call.error(&text);
}

pub(in super::super) fn flushconfig(call: &mut Call<'_, '_>) {
    call.world.sentinel.flush_config();
    call.ok_after_save();
}

/// What can be simulated, with its bit.
const FAILURES: [(&str, u32); 2] = [("crash-after-election", 1), ("crash-after-promotion", 2)];

pub(in super::super) fn simulate_failure(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    // Each call begins with none, and what comes before a wrong word counts: a call with nothing but a wrong word is the
    // one way to disarm.
    let mut flags = 0;
    call.world.sentinel.simulate_failure(flags);
    for word in argv.iter().skip(2) {
        if let Some((_, bit)) = FAILURES.iter().find(|(name, _)| name.as_bytes().alike(word)) {
            flags |= bit;
            call.world.sentinel.simulate_failure(flags);
        } else if word.alike(b"help") {
            let mut reply = call.reply();
            reply.array(FAILURES.len());
            FAILURES.iter().for_each(|(name, _)| reply.bulk(name));
            return;
        } else {
            return call.error("ERR Unknown failure simulation specified");
        }
    }
    call.ok();
}
