//! What requests act on: the Sentinel, the clients, and what commands may know of the process.

use super::log as server_log;
use crate::acl::Acl;
use crate::base::Millis;
use crate::command::{Clients, Facts, Stats, Wish, World};
use crate::config::ServerOptions;
use crate::core::Sentinel;
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything a request can reach, kept apart from the sockets it came through.
#[derive(Debug)]
pub struct Desk {
    pub sentinel: Sentinel,
    pub clients: Clients,
    pub acl: Acl,
    pub facts: Facts,
    pub stats: Stats,
    pub options: ServerOptions,
    /// Somebody asked for the end of the process.
    pub shutdown: bool,
    wishes: Vec<Wish>,
}

impl Desk {
    #[must_use]
    pub fn new(sentinel: Sentinel, facts: Facts, options: ServerOptions, acl: Acl) -> Desk {
        Desk {
            sentinel,
            clients: Clients::new(),
            acl,
            facts,
            stats: Stats::default(),
            options,
            shutdown: false,
            wishes: Vec::new(),
        }
    }

    pub fn world(&mut self, now: Millis) -> World<'_> {
        World {
            now,
            wall_ms: wall_clock,
            sentinel: &mut self.sentinel,
            clients: &mut self.clients,
            acl: &mut self.acl,
            facts: &self.facts,
            stats: &mut self.stats,
            wishes: &mut self.wishes,
        }
    }

    /// Does what the last request asked of the shell, so that the next one finds it done.
    pub fn grant_wishes(&mut self) {
        for wish in self.wishes.drain(..) {
            match wish {
                Wish::Shutdown => self.shutdown = true,
                Wish::LogLevel(level) => {
                    self.facts.loglevel = level;
                    server_log::set_level(level);
                    self.options.change_loglevel(level);
                }
                Wish::Password(password) => self.options.change_password(password),
                Wish::Log(level, text) => log::log!(server_log::level_of(level), "{text}"),
            }
        }
    }
}

/// In ms since 1970.
fn wall_clock() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
}
