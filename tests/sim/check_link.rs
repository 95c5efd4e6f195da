//! One link per node: no second connection of a kind while the first is open.

use super::facts::{Checker, Fact, Seen};

pub struct OneLink;

impl Checker for OneLink {
    fn name(&self) -> &'static str {
        "one-link"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen.fact {
            Fact::Dials { to, doubled: true } => {
                Err(format!("s{} dials {to} while its last connection there is open", seen.who + 1))
            }
            _ => Ok(()),
        }
    }
}
