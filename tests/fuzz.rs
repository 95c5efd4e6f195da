//! Hostile bytes at every door: requests, replies, inline commands, the configuration, INFO, hellos, rules of the ACL,
//! globs, everything together, and rubbish on a port.
//!
//! Inputs grow out of a corpus of good ones: bytes are flipped, words of the language put in, numbers driven to their
//! limits, pieces repeated, cut out and spliced. An input that does something new (the target says what that is) joins the
//! corpus. `cargo test` runs each target for a fixed number of inputs from a fixed seed. For long:
//!
//! ```sh
//! FUZZ_SECONDS=600 FUZZ_SEED=7 CARGO_PROFILE_TEST_OPT_LEVEL=2 CARGO_TARGET_DIR=target/fuzz \
//!     cargo test --test fuzz -- --nocapture [TARGET]
//! ```
//!
//! A find is made small and shown as a word; `FUZZ_INPUT='"…"'` runs just that one.

mod command_support;
mod server_support;
#[path = "fuzz/mod.rs"]
mod targets;
