//! `INFO`: five sections, fields in the reference's order and with its names, values that are true.

use super::call::Call;
use super::{COMPATIBLE_VERSION, SubscriptionKind, World};
use crate::base::Alike;
use crate::core::Master;
use std::fmt::Write;

/// A section: its name, and how it is written.
type Section = (&'static str, fn(&mut String, &World<'_>));

/// In the order in which they are shown.
const SECTIONS: [Section; 5] =
    [("server", server), ("clients", clients), ("stats", stats), ("cpu", cpu), ("sentinel", sentinel)];

pub(super) fn info(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let is_wanted = |name: &str| {
        argv.len() == 1
            || argv
                .iter()
                .skip(1)
                .any(|word| [name, "default", "all", "everything"].iter().any(|known| known.as_bytes().alike(word)))
    };
    let mut text = String::new();
    for (name, write) in SECTIONS {
        if is_wanted(name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            write(&mut text, call.world);
        }
    }
    call.reply().bulk(text);
}

macro_rules! fields {
    ($out:ident, $($name:literal: $value:expr),* $(,)?) => {
        let _ = write!($out, concat!($($name, ":{}\r\n"),*), $($value),*);
    };
}

fn server(out: &mut String, world: &World<'_>) {
    let facts = world.facts;
    let uptime = world.now.since(facts.started) / 1000;
    let wall_ms = (world.wall_ms)();
    out.push_str("# Server\r\n");
    fields!(out,
        "redis_version": COMPATIBLE_VERSION,
        "watchfire_version": env!("CARGO_PKG_VERSION"),
        "redis_git_sha1": "00000000",
        "redis_git_dirty": 0,
        "redis_build_id": 0,
        "redis_mode": "sentinel",
        "os": facts.os,
        "arch_bits": usize::BITS,
        "monotonic_clock": "POSIX clock_gettime",
        "multiplexing_api": "epoll",
        "atomicvar_api": "none",
        "gcc_version": "0.0.0",
        "process_id": facts.pid,
        "process_supervised": facts.supervised,
        "run_id": facts.run_id,
        "tcp_port": facts.tcp_port,
        "server_time_usec": wall_ms.saturating_mul(1000),
        "uptime_in_seconds": uptime,
        "uptime_in_days": uptime / 86_400,
        "hz": facts.hz,
        "configured_hz": 10,
        "lru_clock": wall_ms / 1000 % (1 << 24),
        "executable": facts.executable,
        "config_file": facts.config_file,
        "io_threads_active": 0,
    );
    for (at, listener) in facts.listeners.iter().enumerate() {
        let _ = write!(out, "listener{at}:{listener}\r\n");
    }
}

fn clients(out: &mut String, world: &World<'_>) {
    let tally = world.clients.tally();
    let (input, output) = world.clients.recent_peaks();
    out.push_str("# Clients\r\n");
    fields!(out,
        "connected_clients": world.clients.len(),
        "cluster_connections": 0,
        "maxclients": world.facts.maxclients,
        "client_recent_max_input_buffer": input,
        "client_recent_max_output_buffer": output,
        "blocked_clients": 0,
        "tracking_clients": tally.tracking,
        "pubsub_clients": tally.subscribers,
        "watching_clients": 0,
        "clients_in_timeout_table": 0,
        "total_watched_keys": 0,
        "total_blocking_keys": 0,
        "total_blocking_keys_on_nokey": 0,
    );
}

/// Bytes a second as KiB a second with two digits.
fn kib(bytes: u64) -> String {
    let hundredths = bytes.saturating_mul(100) / 1024;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn stats(out: &mut String, world: &World<'_>) {
    let stats = &*world.stats;
    let (rate_in, rate_out) = stats.bytes_per_sec();
    out.push_str("# Stats\r\n");
    fields!(out,
        "total_connections_received": stats.connections_received,
        "total_commands_processed": stats.commands_processed,
        "instantaneous_ops_per_sec": stats.ops_per_sec(),
        "total_net_input_bytes": stats.net_in,
        "total_net_output_bytes": stats.net_out,
        "total_net_repl_input_bytes": 0,
        "total_net_repl_output_bytes": 0,
        "instantaneous_input_kbps": kib(rate_in),
        "instantaneous_output_kbps": kib(rate_out),
        "instantaneous_input_repl_kbps": "0.00",
        "instantaneous_output_repl_kbps": "0.00",
        "rejected_connections": stats.connections_rejected,
        "sync_full": 0,
        "sync_partial_ok": 0,
        "sync_partial_err": 0,
        "expired_subkeys": 0,
        "expired_keys": 0,
        "expired_stale_perc": "0.00",
        "expired_time_cap_reached_count": 0,
        "expire_cycle_cpu_milliseconds": 0,
        "evicted_keys": 0,
        "evicted_clients": 0,
        "evicted_scripts": 0,
        "total_eviction_exceeded_time": 0,
        "current_eviction_exceeded_time": 0,
        "keyspace_hits": 0,
        "keyspace_misses": 0,
        "pubsub_channels": world.clients.listened(SubscriptionKind::Channel),
        "pubsub_patterns": world.clients.listened(SubscriptionKind::Pattern),
        "pubsubshard_channels": 0,
        "latest_fork_usec": 0,
        "total_forks": 0,
        "migrate_cached_sockets": 0,
        "slave_expires_tracked_keys": 0,
        "active_defrag_hits": 0,
        "active_defrag_misses": 0,
        "active_defrag_key_hits": 0,
        "active_defrag_key_misses": 0,
        "total_active_defrag_time": 0,
        "current_active_defrag_time": 0,
        "tracking_total_keys": 0,
        "tracking_total_items": 0,
        "tracking_total_prefixes": world.clients.tally().prefixes,
        "unexpected_error_replies": 0,
        "total_error_replies": stats.error_replies,
        "dump_payload_sanitizations": 0,
        "total_reads_processed": stats.reads,
        "total_writes_processed": stats.writes,
        "io_threaded_reads_processed": 0,
        "io_threaded_writes_processed": 0,
        "client_query_buffer_limit_disconnections": stats.query_limit_disconnections,
        "client_output_buffer_limit_disconnections": stats.output_limit_disconnections + world.clients.times_cut_off(),
        "reply_buffer_shrinks": 0,
        "reply_buffer_expands": 0,
        "eventloop_cycles": stats.loop_cycles,
        "eventloop_duration_sum": stats.loop_usec,
        "eventloop_duration_cmd_sum": stats.command_usec,
        "instantaneous_eventloop_cycles_per_sec": stats.cycles_per_sec(),
        "instantaneous_eventloop_duration_usec": stats.usec_per_cycle(),
        "acl_access_denied_auth": stats.auth_failures,
        "acl_access_denied_cmd": stats.denied_commands,
        "acl_access_denied_key": 0,
        "acl_access_denied_channel": stats.denied_channels,
    );
}

fn cpu(out: &mut String, world: &World<'_>) {
    let times = (world.facts.cpu_times)();
    out.push_str("# CPU\r\n");
    for (name, time) in [
        ("used_cpu_sys", times.sys),
        ("used_cpu_user", times.user),
        ("used_cpu_sys_children", times.sys_children),
        ("used_cpu_user_children", times.user_children),
        ("used_cpu_sys_main_thread", times.sys_main_thread),
        ("used_cpu_user_main_thread", times.user_main_thread),
    ] {
        let _ = write!(out, "{name}:{}.{:06}\r\n", time.as_secs(), time.subsec_micros());
    }
}

fn sentinel(out: &mut String, world: &World<'_>) {
    let sentinel = &*world.sentinel;
    let tilt = sentinel.tilt();
    let scripts = sentinel.pending_scripts(world.now);
    out.push_str("# Sentinel\r\n");
    fields!(out,
        "sentinel_masters": sentinel.masters().count(),
        "sentinel_tilt": u8::from(tilt.since_seconds.is_some()),
        "sentinel_tilt_since_seconds": tilt.since_seconds.map_or(-1, u64::cast_signed),
        "sentinel_total_tilt": tilt.total,
        "sentinel_running_scripts": scripts.iter().filter(|script| script.running).count(),
        "sentinel_scripts_queue_length": scripts.len(),
        "sentinel_simulate_failure_flags": sentinel.simulate_failure_flags(),
        "sentinel_config_save_failing": u8::from(sentinel.save_failing()),
    );
    for (at, master) in sentinel.masters().enumerate() {
        let host = sentinel.host_text(&master.node.addr);
        let _ = write!(
            out,
            "master{at}:name={},status={},address={host}:{},slaves={},sentinels={}\r\n",
            master.name,
            status(master),
            master.node.addr.port,
            super::sentinel::listed_replicas(master).count(),
            master.peers.len() + 1,
        );
    }
}

fn status(master: &Master) -> &'static str {
    match (master.odown, master.node.sdown) {
        (Some(_), _) => "odown",
        (None, Some(_)) => "sdown",
        (None, None) => "ok",
    }
}
