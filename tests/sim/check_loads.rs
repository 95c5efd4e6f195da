//! Everything that is written loads again and means the same.

use super::facts::{Checker, Fact, Seen};
use watchfire::core::{Identity, Sentinel};

pub struct LoadsAgain;

impl Checker for LoadsAgain {
    fn name(&self) -> &'static str {
        "loads-again"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Fact::Durable = seen.fact else { return Ok(()) };
        let Some(myid) = seen.disk.myid else { return Err(format!("the file of s{} has no myid", seen.who + 1)) };
        let identity = Identity { myid, port: 26379, own_password: Vec::new() };
        let again = Sentinel::new(identity, seen.disk, 0, seen.now).snapshot();
        if again == *seen.disk {
            return Ok(());
        }
        Err(format!("the file of s{} is {:?} and after loading {again:?}", seen.who + 1, seen.disk))
    }
}
