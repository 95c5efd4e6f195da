//! What the live tests, the benches and the demo stand on: free ports, processes that end with their owner,
//! a blocking client, whole groups of Sentinels, and a Redis stand-in for machines (and numbers of servers)
//! without a Redis.
//!
//! Every user takes it in as a module of its own (`mod support;`), and none of them needs all of it.
#![allow(dead_code)]

pub mod conn;
pub mod group;
pub mod namespace;
pub mod network;
pub mod ports;
pub mod process;
pub mod standin;
