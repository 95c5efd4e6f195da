//! What INFO says of the clients as a whole, kept up as they change.
//!
//! `INFO` is what monitoring asks most, and twelve thousand clients cannot be gone through for each answer: a crowd that asks
//! it would hold the loop until nobody is watched any more. So what is counted is counted where it changes
//! ([`Clients::change`]), and the largest buffers are noted where they grow and once a second for each client. Debug builds
//! count again, the long way, whenever the figures are read.

use super::client::{Client, ClientId, Clients};

/// How many clients do what, and how many prefixes their tracking has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub subscribers: usize,
    pub tracking: usize,
    pub prefixes: usize,
}

impl Tally {
    fn of(client: &Client) -> Tally {
        Tally {
            subscribers: usize::from(client.subscriptions() > 0),
            tracking: usize::from(client.tracking().on),
            prefixes: client.tracking().prefixes.len(),
        }
    }

    fn add(&mut self, other: Tally) {
        self.subscribers += other.subscribers;
        self.tracking += other.tracking;
        self.prefixes += other.prefixes;
    }

    fn take(&mut self, other: Tally) {
        self.subscribers -= other.subscribers;
        self.tracking -= other.tracking;
        self.prefixes -= other.prefixes;
    }
}

/// The largest buffers of any client in this round of looks and in the one before, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peaks {
    input: [usize; 2],
    output: [usize; 2],
}

impl Peaks {
    fn note(&mut self, client: &Client) {
        self.input[0] = self.input[0].max(client.query_buffered);
        self.output[0] = self.output[0].max(client.waiting());
    }
}

impl Clients {
    /// Changes what is counted of a client. `None`: there is no such client.
    pub(super) fn change<T>(&mut self, id: ClientId, change: impl FnOnce(&mut Client) -> T) -> Option<T> {
        let client = self.get_mut(id)?;
        let before = Tally::of(client);
        let outcome = change(client);
        let after = Tally::of(client);
        self.tally.take(before);
        self.tally.add(after);
        Some(outcome)
    }

    /// A client is gone for good.
    pub(super) fn uncount(&mut self, client: &Client) {
        self.tally.take(Tally::of(client));
    }

    #[must_use]
    pub fn tally(&self) -> Tally {
        if cfg!(debug_assertions) {
            let mut counted = Tally::default();
            self.iter().for_each(|client| counted.add(Tally::of(client)));
            assert_eq!(self.tally, counted, "something changed that was not counted");
        }
        self.tally
    }

    /// To be called where the buffers of a client have grown, and for every client once in a round.
    pub fn note_peaks(&mut self, id: ClientId) {
        if let Some(client) = self.all.get(&id) {
            self.peaks.note(client);
        }
    }

    /// All clients have been looked at: what was noted before the last round is forgotten.
    pub fn next_round(&mut self) {
        for peak in [&mut self.peaks.input, &mut self.peaks.output] {
            *peak = [0, peak[0]];
        }
    }

    /// The most bytes that a client had sent without completing a request, and that waited for a client, lately.
    #[must_use]
    pub fn recent_peaks(&self) -> (usize, usize) {
        let most = |peak: [usize; 2]| peak[0].max(peak[1]);
        (most(self.peaks.input), most(self.peaks.output))
    }
}
