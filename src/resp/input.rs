//! Bytes received and not yet decoded: the buffer below both decoders.
//!
//! Three things keep its cost linear. Consumed bytes are only skipped; what remains is moved to the front once it is no
//! longer than what was skipped, so that every byte pays for at most one move. The search for a line end resumes where it
//! stopped. And an empty buffer starts again at the front, giving back its memory if a burst had made it large. One that is
//! [lent](Input::lend) its bytes holds no memory at all between two readings.

use crate::base::limits;

#[derive(Clone, Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Everything before is consumed.
    start: usize,
    /// That many bytes behind `start` are known to hold no line end.
    searched: usize,
}

impl Input {
    pub fn extend(&mut self, bytes: &[u8]) {
        let live = self.bytes.len() - self.start;
        if self.start >= live && self.start > 0 {
            self.bytes.copy_within(self.start.., 0);
            self.bytes.truncate(live);
            self.start = 0;
        }
        if live == 0 && self.bytes.capacity() > limits::BUFFER_KEPT {
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the bytes of a buffer that many share and leaves it empty. They are moved, not copied, unless older ones wait
    /// here; then the buffer stays where it is.
    pub fn lend(&mut self, shared: &mut Vec<u8>) {
        if self.len() == 0 {
            *self = Input { bytes: std::mem::take(shared), ..Input::default() };
        } else {
            self.extend(shared);
            shared.clear();
        }
    }

    /// Gives the buffer back to those who share it, and keeps memory for what could not be consumed alone.
    pub fn reclaim(&mut self, shared: &mut Vec<u8>) {
        let lent = shared.capacity() == 0;
        if lent || self.len() == 0 {
            let rest = self.rest().to_vec();
            let mut bytes = std::mem::replace(&mut self.bytes, rest);
            self.start = 0;
            if lent {
                bytes.clear();
                *shared = bytes;
            }
        }
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// What is there, oldest first.
    #[inline(always)]
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Takes `count` bytes, which must be there, off the front.
    #[inline(always)]
    pub fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.start += count;
        self.searched = 0;
    }

    /// The first `byte` in [`Input::rest`]. Until something is consumed, `byte` must stay the same.
    pub fn find(&mut self, byte: u8) -> Option<usize> {
        let found = self.rest()[self.searched..].iter().position(|&b| b == byte);
        self.searched = match found {
            Some(offset) => self.searched + offset,
            None => self.len(),
        };
        found.map(|_| self.searched)
    }

    /// The `\n` of the first `\r\n` in [`Input::rest`]; not to be mixed with [`Input::find`].
    pub fn find_line_end(&mut self) -> Option<usize> {
        loop {
            let newline = self.find(b'\n')?;
            if newline > 0 && self.rest()[newline - 1] == b'\r' {
                return Some(newline);
            }
            self.searched = newline + 1;
        }
    }

    /// Memory held, in bytes.
    #[cfg(test)]
    pub fn heap(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_queue_is_not_moved_for_every_piece_that_joins_it() {
        // A client that pipelines faster than we answer: moving the queue each time would copy some 400 GB here.
        let mut moves = 0;
        let mut input = Input::default();
        input.extend(&vec![b'x'; 4 * 1024 * 1024]);
        for _ in 0..100_000 {
            input.consume(10);
            input.extend(b"0123456789");
            moves += u32::from(input.start == 0);
        }
        assert_eq!(moves, 0, "the queue is longer than all that was consumed");
        assert_eq!(input.len(), 4 * 1024 * 1024);
        assert!(input.heap() <= 16 * 1024 * 1024, "consumed bytes do not pile up: {}", input.heap());
        let rest = input.len();
        input.consume(rest);
        input.extend(b"x");
        assert!(input.heap() < limits::BUFFER_KEPT, "a burst does not bind its memory for ever");
    }

    #[test]
    fn a_shared_buffer_comes_back_and_only_what_is_left_of_it_is_kept() {
        let mut shared = Vec::with_capacity(1000);
        let mut input = Input::default();
        let mut receive = |input: &mut Input, bytes: &[u8], consumed: usize| {
            shared.extend_from_slice(bytes);
            input.lend(&mut shared);
            input.consume(consumed);
            input.reclaim(&mut shared);
            assert!(shared.is_empty() && shared.capacity() == 1000, "it is there for the next");
        };
        receive(&mut input, b"all of it", 9);
        assert_eq!(input.heap(), 0);
        receive(&mut input, b"all but this", 8);
        assert_eq!((input.rest(), input.heap()), (b"this".as_slice(), 4));
        receive(&mut input, b" and that", 0);
        assert_eq!(input.rest(), b"this and that");
        receive(&mut input, b"!", 14);
        assert_eq!((input.len(), input.heap()), (0, 0));
    }

    #[test]
    fn a_line_end_is_found_across_pieces_and_a_lone_newline_is_none() {
        let mut input = Input::default();
        for (piece, found) in [("\na\n", None), ("b\r", None), ("\rc\r", None), ("\n\r\n", Some(8))] {
            input.extend(piece.as_bytes());
            assert_eq!(input.find_line_end(), found);
        }
        input.consume(9);
        assert_eq!(input.rest(), b"\r\n");
        assert_eq!(input.find_line_end(), Some(1));
    }
}
