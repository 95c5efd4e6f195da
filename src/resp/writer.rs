//! From values to bytes: replies to clients and requests to servers.

use super::{Proto, Reply};

/// Appends replies to a buffer in the protocol of its client. The caller answers for the shape: after `array(n)` come n
/// values, after `map(n)` n times two.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    proto: Proto,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut Vec<u8>, proto: Proto) -> Writer<'a> {
        Writer { out, proto }
    }

    #[must_use]
    pub fn proto(&self) -> Proto {
        self.proto
    }

    /// `+text`; line breaks become spaces.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// `-text`, where the text begins with its code (`ERR …`); line breaks become spaces.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    pub fn integer(&mut self, number: i64) {
        if let Ok(digit @ 0..=9) = u8::try_from(number) {
            self.out.extend_from_slice(&[b':', b'0' + digit, b'\r', b'\n']);
            return;
        }
        self.out.push(b':');
        if number < 0 {
            self.out.push(b'-');
        }
        push_decimal(self.out, number.unsigned_abs());
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        push_bulk(self.out, bytes.as_ref());
    }

    /// The absence of a string.
    pub fn nil(&mut self) {
        self.out.extend_from_slice(match self.proto {
            Proto::Resp2 => b"$-1\r\n".as_slice(),
            Proto::Resp3 => b"_\r\n",
        });
    }

    /// The absence of an array.
    pub fn nil_array(&mut self) {
        self.out.extend_from_slice(match self.proto {
            Proto::Resp2 => b"*-1\r\n".as_slice(),
            Proto::Resp3 => b"_\r\n",
        });
    }

    pub fn array(&mut self, elements: usize) {
        push_header(self.out, b'*', elements);
    }

    /// A map of that many pairs; a flat array in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.proto {
            Proto::Resp2 => push_header(self.out, b'*', pairs * 2),
            Proto::Resp3 => push_header(self.out, b'%', pairs),
        }
    }

    /// A message out of turn; an array in RESP2.
    pub fn push(&mut self, elements: usize) {
        self.aggregate(b'>', elements);
    }

    /// A set; an array in RESP2.
    pub fn set(&mut self, elements: usize) {
        self.aggregate(b'~', elements);
    }

    /// A double, given in thousandths; a bulk string in RESP2. (What std has to write any double is fifteen kilobytes of code.)
    pub fn thousandths(&mut self, number: u64) {
        let text = format!("{}.{:03}", number / 1000, number % 1000);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match self.proto {
            Proto::Resp2 => self.bulk(text),
            Proto::Resp3 => self.line(b',', text),
        }
    }

    /// A boolean; the integer 1 or 0 in RESP2.
    pub fn boolean(&mut self, truth: bool) {
        match (self.proto, truth) {
            (Proto::Resp2, _) => self.integer(i64::from(truth)),
            (Proto::Resp3, true) => self.out.extend_from_slice(b"#t\r\n"),
            (Proto::Resp3, false) => self.out.extend_from_slice(b"#f\r\n"),
        }
    }

    /// Text with a format of three bytes (`txt`, `mkd`); a bulk string in RESP2.
    pub fn verbatim(&mut self, format: &[u8; 3], text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        match self.proto {
            Proto::Resp2 => push_bulk(self.out, text),
            Proto::Resp3 => {
                push_header(self.out, b'=', text.len() + 4);
                self.out.extend_from_slice(format);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// A whole reply as it was decoded; for simulated servers and tests.
    pub fn reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Simple(text) => self.raw_line(b'+', text),
            Reply::Error(text) => self.raw_line(b'-', text),
            Reply::Integer(number) => self.integer(*number),
            Reply::Bulk(bytes) => self.bulk(bytes),
            Reply::Nil => self.nil(),
            Reply::Array(values) => {
                self.array(values.len());
                values.iter().for_each(|value| self.reply(value));
            }
            Reply::Map(pairs) => {
                self.map(pairs.len());
                for (key, value) in pairs {
                    self.reply(key);
                    self.reply(value);
                }
            }
            Reply::Push(values) => {
                self.push(values.len());
                values.iter().for_each(|value| self.reply(value));
            }
            Reply::Double(text) if self.proto == Proto::Resp2 => self.bulk(text),
            Reply::Double(text) => self.raw_line(b',', text),
            Reply::Boolean(truth) => self.boolean(*truth),
        }
    }

    fn aggregate(&mut self, resp3: u8, elements: usize) {
        let marker = if self.proto == Proto::Resp3 { resp3 } else { b'*' };
        push_header(self.out, marker, elements);
    }

    fn line(&mut self, marker: u8, text: &str) {
        self.raw_line(marker, text.as_bytes());
    }

    fn raw_line(&mut self, marker: u8, text: &[u8]) {
        self.out.reserve(text.len() + 3);
        self.out.push(marker);
        let start = self.out.len();
        self.out.extend_from_slice(text);
        // A line break inside would be read as the end of the reply, and the rest as another one.
        for byte in &mut self.out[start..] {
            if let b'\r' | b'\n' = *byte {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Appends one multibulk request to `out`.
pub fn request(out: &mut Vec<u8>, args: &[&[u8]]) {
    push_header(out, b'*', args.len());
    args.iter().for_each(|arg| push_bulk(out, arg));
}

fn push_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    // Most are a name, an address or a number: put together on the stack, they cost one look at the buffer instead of three.
    if let length @ 0..=9 = bytes.len() {
        let mut whole = [b'$', b'0' + length as u8, b'\r', b'\n', 0, 0, 0, 0, 0, 0, 0, 0, 0, b'\r', b'\n'];
        whole[4..4 + length].copy_from_slice(bytes);
        whole[4 + length] = b'\r';
        whole[5 + length] = b'\n';
        out.extend_from_slice(&whole[..6 + length]);
        return;
    }
    out.reserve(bytes.len() + 16);
    push_header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn push_header(out: &mut Vec<u8>, marker: u8, count: usize) {
    if let Ok(digit @ 0..=9) = u8::try_from(count) {
        out.extend_from_slice(&[marker, b'0' + digit, b'\r', b'\n']);
        return;
    }
    out.push(marker);
    push_decimal(out, count as u64);
    out.extend_from_slice(b"\r\n");
}

/// Two digits at a time, from the right, into a buffer on the stack: a division per pair and no formatting machinery.
fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    const PAIRS: [[u8; 2]; 100] = {
        let mut pairs = [[0; 2]; 100];
        let mut n = 0;
        while n < 100 {
            pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
            n += 1;
        }
        pairs
    };
    let mut digits = [0; 20];
    let mut at = digits.len();
    while number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut Writer<'_>)) -> (String, String) {
        let text = |proto| {
            let mut out = Vec::new();
            write(&mut Writer::new(&mut out, proto));
            String::from_utf8(out).unwrap()
        };
        (text(Proto::Resp2), text(Proto::Resp3))
    }

    #[test]
    #[rustfmt::skip]
    fn every_value_has_its_form_in_both_protocols() {
        type Row<'a> = (&'a dyn Fn(&mut Writer<'_>), &'a str, &'a str);
        let table: &[Row<'_>] = &[
            (&|w| w.simple("OK"), "+OK\r\n", "+OK\r\n"),
            (&|w| w.error("ERR no\r\n+OK"), "-ERR no  +OK\r\n", "-ERR no  +OK\r\n"),
            (&|w| w.simple("a\nb"), "+a b\r\n", "+a b\r\n"),
            (&|w| w.bulk("mymaster"), "$8\r\nmymaster\r\n", "$8\r\nmymaster\r\n"),
            (&|w| w.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (&|w| w.bulk(vec![b'a', b'\r', b'\n', b'b']), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
            (&|w| w.bulk(vec![b'x'; 10]), "$10\r\nxxxxxxxxxx\r\n", "$10\r\nxxxxxxxxxx\r\n"),
            (&|w| w.nil(), "$-1\r\n", "_\r\n"),
            (&|w| w.nil_array(), "*-1\r\n", "_\r\n"),
            (&|w| w.array(0), "*0\r\n", "*0\r\n"),
            (&|w| w.array(28), "*28\r\n", "*28\r\n"),
            (&|w| w.map(14), "*28\r\n", "%14\r\n"),
            (&|w| w.push(3), "*3\r\n", ">3\r\n"),
            (&|w| w.set(2), "*2\r\n", "~2\r\n"),
            (&|w| w.boolean(true), ":1\r\n", "#t\r\n"),
            (&|w| w.boolean(false), ":0\r\n", "#f\r\n"),
            (&|w| w.thousandths(12_050), "$5\r\n12.05\r\n", ",12.05\r\n"),
            (&|w| w.thousandths(7), "$5\r\n0.007\r\n", ",0.007\r\n"),
            (&|w| w.thousandths(20_000), "$2\r\n20\r\n", ",20\r\n"),
            (&|w| w.thousandths(0), "$1\r\n0\r\n", ",0\r\n"),
            (&|w| w.verbatim(b"txt", "id=3"), "$4\r\nid=3\r\n", "=8\r\ntxt:id=3\r\n"),
        ];
        for (write, resp2, resp3) in table {
            assert_eq!(both(write), ((*resp2).to_owned(), (*resp3).to_owned()));
        }
    }

    #[test]
    fn integers_are_written_as_the_standard_library_has_them() {
        let mut numbers = vec![0, 1, 9, 10, 99, 100, 101, 999, 1000, i64::MAX, i64::MIN];
        let mut power: i64 = 1;
        while let Some(next) = power.checked_mul(7) {
            numbers.extend([next, -next]);
            power = next;
        }
        for number in numbers {
            let (text, _) = both(|w| w.integer(number));
            assert_eq!(text, format!(":{number}\r\n"));
            if let Ok(size) = usize::try_from(number) {
                assert_eq!(both(|w| w.array(size)).0, format!("*{size}\r\n"));
            }
        }
    }

    #[test]
    fn a_request_is_an_array_of_strings() {
        let mut out = b"before".to_vec();
        request(&mut out, &[b"PUBLISH", b"__sentinel__:hello", b""]);
        assert_eq!(out, b"before*3\r\n$7\r\nPUBLISH\r\n$18\r\n__sentinel__:hello\r\n$0\r\n\r\n");
    }
}
