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
