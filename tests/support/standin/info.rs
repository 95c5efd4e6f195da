//! INFO of a modelled server, written when asked for.

use std::fmt::Write as _;

use watchfire::base::Millis;

use super::server::Role;
use super::world::World;

/// Numbers that no Sentinel reads, so that the text has about the length and shape of a real one.
const MEMORY: &[&str] = &[
    "used_memory:1048576",
    "used_memory_human:1.00M",
    "used_memory_rss:8388608",
    "used_memory_peak:1048576",
    "used_memory_overhead:900000",
    "used_memory_dataset:40016",
    "allocator_allocated:1690848",
    "allocator_active:1826816",
    "total_system_memory:25276514304",
    "maxmemory:0",
    "maxmemory_policy:noeviction",
    "mem_fragmentation_ratio:1.00",
    "mem_clients_slaves:0",
    "mem_clients_normal:0",
    "mem_allocator:none",
    "active_defrag_running:0",
];
const PERSISTENCE: &[&str] = &[
    "loading:0",
    "async_loading:0",
    "rdb_changes_since_last_save:0",
    "rdb_bgsave_in_progress:0",
    "rdb_last_bgsave_status:ok",
    "aof_enabled:0",
    "aof_rewrite_in_progress:0",
    "aof_last_bgrewrite_status:ok",
    "aof_last_write_status:ok",
];
const CPU: &[&str] = &["used_cpu_sys:0.010000", "used_cpu_user:0.010000"];
/// Names of counters in `# Stats` besides those that we count.
const STATS: &[&str] = &[
    "instantaneous_ops_per_sec",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "instantaneous_input_kbps",
    "instantaneous_output_kbps",
    "rejected_connections",
    "sync_full",
    "sync_partial_ok",
    "sync_partial_err",
    "expired_keys",
    "evicted_keys",
    "keyspace_hits",
    "keyspace_misses",
    "pubsub_patterns",
    "latest_fork_usec",
    "total_forks",
    "migrate_cached_sockets",
    "tracking_total_keys",
    "unexpected_error_replies",
    "total_error_replies",
];

/// The text for these sections (none: all).
pub(super) fn text(world: &World, port: u16, sections: &[String], now: Millis) -> String {
    if let Some(lie) = &world.server(port).lie {
        return lie.clone();
    }
    let everything = sections.is_empty()
        || sections.iter().any(|section| matches!(section.as_str(), "all" | "default" | "everything"));
    let mut out = String::new();
    for (name, write) in [
        ("Server", server as fn(&World, u16, Millis, &mut String)),
        ("Clients", clients),
        ("Memory", |_, _, _, out| lines(out, MEMORY)),
        ("Persistence", |_, _, _, out| lines(out, PERSISTENCE)),
        ("Stats", stats),
        ("Replication", replication),
        ("CPU", |_, _, _, out| lines(out, CPU)),
        ("Cluster", |_, _, _, out| lines(out, &["cluster_enabled:0"])),
        ("Keyspace", keyspace),
    ] {
        if everything || sections.iter().any(|section| section.eq_ignore_ascii_case(name)) {
            if !out.is_empty() {
                out.push_str("\r\n");
            }
            let _ = write!(out, "# {name}\r\n");
            write(world, port, now, &mut out);
        }
    }
    let lies = &world.server(port).lies;
    if lies.is_empty() { out } else { altered(&out, lies) }
}

/// The same text with other values for some fields.
fn altered(text: &str, lies: &std::collections::BTreeMap<String, String>) -> String {
    text.split_inclusive("\r\n")
        .map(|line| match line.split_once(':').and_then(|(field, _)| Some((field, lies.get(field)?))) {
            Some((field, value)) => format!("{field}:{value}\r\n"),
            None => line.to_string(),
        })
        .collect()
}

fn lines(out: &mut String, lines: &[&str]) {
    for line in lines {
        out.push_str(line);
        out.push_str("\r\n");
    }
}

fn field(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, "{name}:{value}\r\n");
}

fn server(world: &World, port: u16, now: Millis, out: &mut String) {
    let server = world.server(port);
    let up = now.since(server.started) / 1000;
    field(out, "redis_version", &server.spec.version);
    field(out, "redis_mode", "standalone");
    field(out, "os", std::env::consts::OS);
    field(out, "arch_bits", usize::BITS);
    field(out, "multiplexing_api", "mio");
    field(out, "process_id", std::process::id());
    field(out, "run_id", &server.run_id);
    field(out, "tcp_port", port);
    field(out, "uptime_in_seconds", up);
    field(out, "uptime_in_days", up / 86_400);
    field(out, "hz", 10);
    field(out, "executable", "stand-in");
    field(out, "config_file", "");
}

fn clients(world: &World, port: u16, _: Millis, out: &mut String) {
    field(out, "connected_clients", world.server(port).clients.len());
    field(out, "maxclients", 10_000);
    field(out, "blocked_clients", 0);
}

fn stats(world: &World, port: u16, _: Millis, out: &mut String) {
    let server = world.server(port);
    field(out, "total_connections_received", server.connections);
    field(out, "total_commands_processed", server.calls.values().sum::<u64>());
    for name in STATS {
        field(out, name, 0);
    }
    field(out, "pubsub_channels", server.channels.len());
}

fn replication(world: &World, port: u16, now: Millis, out: &mut String) {
    let server = world.server(port);
    let offset = world.offset(port, now);
    match &server.role {
        Role::Master => field(out, "role", "master"),
        Role::Replica { host, port: master } => {
            let up = world.link_up(port, now);
            let syncing = !up && server.link.up_at.is_some();
            field(out, "role", "slave");
            field(out, "master_host", host);
            field(out, "master_port", master);
            field(out, "master_link_status", if up { "up" } else { "down" });
            field(out, "master_last_io_seconds_ago", if up { 0 } else { -1 });
            field(out, "master_sync_in_progress", u8::from(syncing));
            field(out, "slave_read_repl_offset", offset);
            field(out, "slave_repl_offset", offset);
            if !up {
                match server.link.down_since {
                    Some(since) => field(out, "master_link_down_since_seconds", now.since(since) / 1000),
                    None => field(out, "master_link_down_since_seconds", -1),
                }
            }
            field(out, "slave_priority", server.priority);
            field(out, "slave_read_only", 1);
            field(out, "replica_announced", u8::from(server.spec.announced));
        }
    }
    let replicas = world.replicas(port, now);
    field(out, "connected_slaves", replicas.len());
    for (index, &replica) in replicas.iter().enumerate() {
        let (ip, at) = world.server(replica).announced_address();
        let offset = world.offset(replica, now);
        let _ = write!(out, "slave{index}:ip={ip},port={at},state=online,offset={offset},lag=0\r\n");
    }
    field(out, "master_failover_state", "no-failover");
    field(out, "master_replid", &server.replid);
    field(out, "master_replid2", "0".repeat(40));
    field(out, "master_repl_offset", offset);
    field(out, "second_repl_offset", -1);
    field(out, "repl_backlog_active", u8::from(!replicas.is_empty()));
    field(out, "repl_backlog_size", 1_048_576);
    field(out, "repl_backlog_first_byte_offset", 1);
    field(out, "repl_backlog_histlen", offset);
}

fn keyspace(world: &World, port: u16, now: Millis, out: &mut String) {
    let keys = world.keys(port, now);
    if keys > 0 {
        let _ = write!(out, "db0:keys={keys},expires=0,avg_ttl=0\r\n");
    }
}
