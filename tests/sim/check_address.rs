//! One address per master and config epoch, wherever it is told: hellos, files, and what clients would hear.
//!
//! The same exceptions as in `check_leader`, excused but counted.

use super::check_leader::failover;
use super::facts::{Census, Checker, Fact, Seen};
use super::groups;
use std::collections::{BTreeMap, BTreeSet};

pub struct OneAddress {
    census: Census,
    /// Votes up to this epoch may be forgotten.
    forgotten: u64,
    addresses: BTreeMap<(String, u64), (String, usize)>,
    /// Epochs of failovers that were led by few.
    by_few: BTreeSet<(&'static str, u64)>,
    excused: u64,
}

impl OneAddress {
    pub fn new(census: Census) -> OneAddress {
        OneAddress { census, forgotten: 0, addresses: BTreeMap::new(), by_few: BTreeSet::new(), excused: 0 }
    }

    fn excuse(&mut self, seen: &Seen, name: &'static str) {
        if let Some((epoch, _)) = failover(seen, name)
            && self.census.knows_few(seen, name)
        {
            self.by_few.insert((name, epoch));
        }
    }

    fn claim(&mut self, who: usize, master: &str, epoch: u64, address: &str, where_: &str) -> Result<(), String> {
        let key = (master.to_owned(), epoch);
        let (first, by) = self.addresses.entry(key).or_insert_with(|| (address.to_owned(), who));
        if first == address {
            return Ok(());
        }
        // Epoch 0 comes from no failover: an operator wrote it, with whatever address was right that day.
        let by_hand = epoch == 0 && self.census.forgetful;
        let by_few = groups::known(master).is_some_and(|name| self.by_few.contains(&(name, epoch)));
        if by_few || by_hand || epoch <= self.forgotten {
            self.excused += 1;
            return Ok(());
        }
        let (by, who) = (*by + 1, who + 1);
        Err(format!("config epoch {epoch} of {master} is {first} for s{by} and {address} in the {where_} of s{who}"))
    }
}

impl Checker for OneAddress {
    fn name(&self) -> &'static str {
        "one-address"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match &seen.fact {
            Fact::Replaced { epoch } => {
                self.forgotten = self.forgotten.max(*epoch);
                Ok(())
            }
            Fact::Hello(hello) => self.claim(seen.who, &hello.master, hello.config_epoch, &hello.address, "hello"),
            Fact::Durable { .. } => seen.disk.masters.iter().try_for_each(|master| {
                let address = format!("{}:{}", master.host, master.port);
                self.claim(seen.who, &master.name, master.config_epoch, &address, "file")
            }),
            Fact::TurnEnds => seen.sentinel.masters().try_for_each(|master| {
                if let Some(name) = groups::known(&master.name) {
                    self.excuse(seen, name);
                }
                let address = seen.sentinel.current_addr(master).to_string();
                self.claim(seen.who, &master.name, master.config_epoch, &address, "memory")
            }),
            Fact::Event { channel: "+elected-leader", payload } => {
                if let Some(name) = groups::told(payload) {
                    self.excuse(seen, name);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn excused(&self) -> u64 {
        self.excused
    }
}
