//! The arguments of one request, all in one buffer that is used again for the next request.

use std::fmt;
use std::ops::Index;

use crate::base::limits;
use crate::base::quote::{self, WordSink};

/// The arguments of one request. Clearing keeps the memory (up to [`limits::BUFFER_KEPT`]), so that decoding the next
/// request costs no allocation.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Argv {
    bytes: Vec<u8>,
    /// Where each argument ends in `bytes`; it begins where the one before it ends. An argument still being received may
    /// lie behind the last end.
    ends: Vec<usize>,
}

impl Argv {
    #[must_use]
    pub fn new() -> Argv {
        Argv::default()
    }

    #[must_use]
    pub fn from_slices(args: &[&[u8]]) -> Argv {
        let mut argv = Argv::new();
        args.iter().for_each(|arg| argv.push(arg));
        argv
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[start..end])
    }

    /// All arguments in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator + Clone {
        (0..self.len()).map(|index| &self[index])
    }

    /// Forgets all arguments.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        if self.heap() > limits::BUFFER_KEPT {
            *self = Argv::default();
        }
    }

    /// Appends one argument.
    pub fn push(&mut self, arg: &[u8]) {
        self.append(arg);
        self.end_argument();
    }

    /// Makes room for the ends of that many further arguments.
    pub(super) fn expect(&mut self, args: usize) {
        self.ends.reserve(args);
    }

    /// More bytes of the argument that is being received.
    pub(super) fn append(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
    }

    /// The argument that is being received is complete.
    pub(super) fn end_argument(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Memory held on the heap, in bytes.
    pub(super) fn heap(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

impl WordSink for Argv {
    fn bytes(&mut self, bytes: &[u8]) {
        self.append(bytes);
    }

    fn end_word(&mut self) {
        self.end_argument();
    }
}

impl Index<usize> for Argv {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        match self.get(index) {
            Some(arg) => arg,
            None => panic!("argument {index} of {}", self.len()),
        }
    }
}

impl fmt::Debug for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|arg| DebugWord(quote::if_needed(arg)))).finish()
    }
}

/// A word that is already in printable form.
struct DebugWord(String);

impl fmt::Debug for DebugWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back_in_order_and_empty_ones_count() {
        let mut argv = Argv::from_slices(&[b"SENTINEL", b"", b"masters"]);
        assert_eq!((argv.len(), argv.is_empty()), (3, false));
        assert_eq!(argv.get(1), Some(b"".as_slice()));
        assert_eq!(&argv[2], b"masters");
        assert_eq!(argv.get(3), None);
        assert_eq!(argv.iter().rev().collect::<Vec<_>>(), [b"masters".as_slice(), b"", b"SENTINEL"]);
        assert_eq!(format!("{argv:?}"), "[SENTINEL, \"\", masters]");
        argv.clear();
        assert_eq!((argv.len(), argv.get(0)), (0, None));
    }

    #[test]
    fn clearing_keeps_little_memory_for_the_next_request_and_gives_back_much() {
        let mut argv = Argv::from_slices(&[&[b'x'; 100]]);
        argv.clear();
        assert!(argv.heap() >= 100);
        argv.push(&vec![b'x'; limits::BUFFER_KEPT + 1]);
        argv.clear();
        assert_eq!(argv.heap(), 0);
    }
}
