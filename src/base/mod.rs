//! What every room may use: time as a number, seeded chance, globs, quoting, limits, what errors may show, maps.

mod alike;
pub mod glob;
pub mod limits;
pub mod quote;
pub mod random;
pub mod secret;
pub mod shelf;
pub mod sorted;
pub mod time;

pub use alike::Alike;
pub use random::Random;
pub use shelf::Shelf;
pub use sorted::{Sorted, SortedSet};
pub use time::Millis;
