//! The targets, and what they share.

mod acl;
mod commands;
mod config;
mod core;
mod drive;
mod glob;
mod hello;
mod info;
mod memory;
mod mutate;
mod ports;
mod wire;
