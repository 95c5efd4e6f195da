//! In TILT nobody judges and nobody begins anything.

use super::facts::{Checker, Fact, Seen};
use std::collections::BTreeSet;

#[derive(Default)]
pub struct NoneInTilt {
    /// Who is in TILT, in which life.
    tilted: BTreeSet<(usize, u64)>,
}

impl Checker for NoneInTilt {
    fn name(&self) -> &'static str {
        "none-in-tilt"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Fact::Event { channel, payload } = seen.fact else { return Ok(()) };
        let me = (seen.who, seen.life);
        match channel {
            "+tilt" => {
                self.tilted.insert(me);
            }
            "-tilt" => {
                self.tilted.remove(&me);
            }
            "+sdown" | "+odown" | "+try-failover" if self.tilted.contains(&me) => {
                return Err(format!("s{} says {channel} {payload} in TILT", seen.who + 1));
            }
            _ => {}
        }
        Ok(())
    }
}
