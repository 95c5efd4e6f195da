//! The hot paths one by one, with what they allocate: `cargo bench --bench micro [-- filter]`.
//!
//! What a Sentinel does with all of them together is measured by `versus`.

#[path = "micro/config.rs"]
mod config;
#[path = "micro/core.rs"]
mod core;
#[path = "micro/group.rs"]
mod group;
#[path = "micro/resp.rs"]
mod resp;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

/// INFO as a master with two replicas answers it (redis-server 7.0.15).
const INFO: &str = include_str!("micro/info-master.txt");

fn main() {
    divan::main();
}
