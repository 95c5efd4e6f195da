//! One request on its way: what a handler gets, and the replies that many share.

use super::table::Command;
use super::{Client, ClientId, Deferred, World};
use crate::resp::{Argv, Proto, Writer};

pub(super) type Handler = fn(&mut Call<'_, '_>);

/// The request being executed.
pub(super) struct Call<'c, 'w> {
    pub world: &'c mut World<'w>,
    pub id: ClientId,
    pub argv: &'c Argv,
    /// The client's output buffer, lent for the length of the call.
    pub out: &'c mut Vec<u8>,
    pub proto: Proto,
    pub command: &'static Command,
}

impl Call<'_, '_> {
    pub fn reply(&mut self) -> Writer<'_> {
        Writer::new(self.out, self.proto)
    }

    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// `-text`; the text begins with its code.
    pub fn error(&mut self, text: &str) {
        self.reply().error(text);
    }

    /// An error whose text holds bytes of the request, in pieces.
    pub fn refuse(&mut self, parts: &[&[u8]]) {
        refuse(self.out, parts);
    }

    pub fn syntax_error(&mut self) {
        self.error("ERR syntax error");
    }

    pub fn not_an_integer(&mut self) {
        self.error("ERR value is not an integer or out of range");
    }

    /// The complaint of a subcommand that counts its own words.
    pub fn wrong_subcommand(&mut self) {
        let container = self.argv[0].to_ascii_uppercase();
        let sub = head(&self.argv[1], SHOWN);
        let start = b"ERR unknown subcommand or wrong number of arguments for '".as_slice();
        refuse(self.out, &[start, sub, b"'. Try ", &container, b" HELP."]);
    }

    /// The client that asked.
    pub fn me(&mut self) -> &mut Client {
        self.world.clients.get_mut(self.id).expect("a client is not removed while it is served")
    }

    /// Answers `saved` once the state is on disk, and the reference's complaint when it cannot be written.
    pub fn after_save(&mut self, saved: Vec<u8>, unsaved: Vec<u8>) {
        self.world.clients.defer(self.id, Deferred { saved, unsaved });
    }

    /// Refuses to tell of more than `most` things at once.
    pub fn too_many(&mut self, most: usize) {
        self.error(&format!("ERR One request may ask for {most} at most"));
    }

    /// `+OK` that rests on the save of this turn.
    pub fn ok_after_save(&mut self) {
        self.after_save(b"+OK\r\n".to_vec(), b"-ERR Failed to save config file. Check server logs.\r\n".to_vec());
    }

    /// A bulk string of decimal digits: Sentinels show every number that way.
    pub fn bulk_number(&mut self, number: u64) {
        bulk_number(self.out, self.proto, number);
    }
}

pub(super) fn bulk_number(out: &mut Vec<u8>, proto: Proto, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    Writer::new(out, proto).bulk(&digits[at..]);
}

/// Writes `-` and the pieces. Pieces that come out of a request are shown as the reference shows them: up to
/// the first NUL, with line breaks as spaces.
pub(super) fn refuse(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.push(b'-');
    for part in parts {
        let end = part.iter().position(|&byte| byte == 0).unwrap_or(part.len());
        out.extend(part[..end].iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    }
    out.extend_from_slice(b"\r\n");
}

/// How much of an unknown name or of its arguments is repeated in an error, in bytes.
const SHOWN: usize = 128;

fn head(bytes: &[u8], most: usize) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end.min(most)]
}

pub(super) fn unknown_command(out: &mut Vec<u8>, argv: &Argv) {
    let mut shown = Vec::new();
    for arg in argv.iter().skip(1) {
        if shown.len() >= SHOWN {
            break;
        }
        let room = SHOWN - shown.len();
        shown.push(b'\'');
        shown.extend_from_slice(head(arg, room));
        shown.extend_from_slice(b"' ");
    }
    refuse(out, &[b"ERR unknown command '", head(&argv[0], SHOWN), b"', with args beginning with: ", &shown]);
}

pub(super) fn unknown_subcommand(out: &mut Vec<u8>, argv: &Argv) {
    let upper = argv[0].to_ascii_uppercase();
    let sub = argv.get(1).unwrap_or(b"");
    refuse(out, &[b"ERR unknown subcommand '", head(sub, SHOWN), b"'. Try ", &upper, b" HELP."]);
}

pub(super) fn wrong_arity(out: &mut Vec<u8>, full: &str) {
    refuse(out, &[b"ERR wrong number of arguments for '", full.as_bytes(), b"' command"]);
}
