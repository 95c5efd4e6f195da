//! Requests, inline commands and replies: any bytes, in any pieces.

use super::drive::{behaviour, below, pieces, run, size, text};
use super::memory;
use watchfire::base::random::Random;
use watchfire::base::{limits, quote};
use watchfire::resp::{
    Argv, Proto, ProtocolError, Reply, ReplyDecoder, RequestDecoder, RequestLimits, Writer, request,
};

type Requests = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Takes at most `per_piece` requests after each piece, as a shell that is busy would.
fn requests(
    pieces: &[&[u8]],
    limits: RequestLimits,
    per_piece: usize,
    mut take: impl FnMut(&Argv),
) -> Option<ProtocolError> {
    let mut decoder = RequestDecoder::new();
    decoder.set_limits(limits);
    let mut argv = Argv::new();
    let mut some = |decoder: &mut RequestDecoder, most: usize| {
        for _ in 0..most {
            match decoder.next(&mut argv) {
                Ok(true) => take(&argv),
                Ok(false) => return None,
                Err(error) => {
                    assert_eq!(decoder.next(&mut argv), Err(error), "an error stays");
                    return Some(error);
                }
            }
        }
        None
    };
    for piece in pieces {
        decoder.extend(piece);
        if let Some(error) = some(&mut decoder, per_piece) {
            return Some(error);
        }
    }
    some(&mut decoder, usize::MAX)
}

fn collected(pieces: &[&[u8]], limits: RequestLimits, per_piece: usize) -> Requests {
    let mut all = Vec::new();
    let error = requests(pieces, limits, per_piece, |argv| all.push(argv.iter().map(<[u8]>::to_vec).collect()));
    (all, error)
}

fn told(error: Option<ProtocolError>) -> u64 {
    error.map_or(0, |error| {
        assert!(!error.told().iter().any(|byte| matches!(byte, b'\r' | b'\n')), "an error is one line");
        text(&error.to_string())
    })
}

#[rustfmt::skip]
const REQUEST_SEEDS: &[&[u8]] = &[
    b"*1\r\n$4\r\nPING\r\n",
    b"*3\r\n$9\r\nSUBSCRIBE\r\n$14\r\n+switch-master\r\n$1\r\n*\r\n*1\r\n$4\r\nPING\r\n",
    b"*6\r\n$8\r\nSENTINEL\r\n$22\r\nis-master-down-by-addr\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n$1\r\n0\r\n$1\r\n*\r\n",
    b"*0\r\n*-1\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\nPING\r\n",
    b"PING\r\nSENTINEL \"get-master-addr-by-name\" 'm m'\r\n\r\n  \nQUIT\n",
    b"AUTH \"\\x00\\xff\\n\\\"\" '\\''\r\n",
    b"*2\r\n$4\r\nAUTH\r\n$300\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

#[rustfmt::skip]
const REQUEST_WORDS: &[&[u8]] = &[
    b"*1\r\n", b"*2\r\n", b"*3\r\n", b"*0\r\n", b"*-1\r\n", b"*10\r\n", b"*11\r\n", b"*", b"$", b"$4\r\n", b"$0\r\n",
    b"$16384\r\n", b"$16385\r\n", b"\r\n", b"\r", b"\n", b"PING", b"$4\r\nPING\r\n", b"PING\r\n", b"$1\r\nx\r\n", b"'", b"\"",
    b"\\", b"\\x", b" ", b"\0", b"*1048576\r\n", b"$536870912\r\n", b"*1\r\n$4\r\nPING\r\n", b"*1\rX$4\rYPINGZZ",
];

#[test]
fn requests_in_any_pieces() {
    run("requests", REQUEST_SEEDS, REQUEST_WORDS, 1_000, |choices, input| {
        let limits = match choices.below(3) {
            0 => RequestLimits::TRUSTED,
            1 => RequestLimits::UNAUTHENTICATED,
            _ => RequestLimits { args: 2, bulk: 100, buffer: 60 },
        };
        let whole = collected(&[input], limits, usize::MAX);
        let cut = pieces(choices, input);
        assert_eq!(collected(&cut, limits, below(choices, 4)), whole, "the pieces make a difference");
        // Buffers double as they grow, a word of one byte and its blank take eight for their place, and a claim takes nothing.
        memory::within(12 * input.len() + 4096, || requests(&cut, limits, 1, |_| {}));
        // What was understood can be said again.
        let mut again = Vec::new();
        for argv in &whole.0 {
            request(&mut again, &argv.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        assert_eq!(collected(&[&again], RequestLimits::TRUSTED, usize::MAX), (whole.0.clone(), None));
        let args = whole.0.iter().map(Vec::len).max().unwrap_or(0);
        behaviour([told(whole.1), size(whole.0.len()), size(args)])
    });
}

#[test]
fn lines_of_words() {
    let seeds: &[&[u8]] = &[
        b"sentinel monitor mymaster 127.0.0.1 6379 2",
        b"a\"b c\" 'd\\'e' \"\\x41\\n\\r\\t\\a\\b\\\\\\\"\" \\z",
        b"\x0b\x0c \"\" ''",
        b"'\"' \"a\\\"b\" '#' \"\\\\\" \"'\"",
        b"requirepass \"se cret#\"",
    ];
    let words: &[&[u8]] =
        &[b"\"", b"'", b"\\", b"\\x", b"\\x4", b"\\x41", b"\\n", b" ", b"\"\"", b"''", b"\\'", b"\\\"", b"\x0b"];
    run("inline", seeds, words, 1_500, |_, input| {
        let words = memory::within(80 * input.len() + 4096, || quote::split_args(input));
        let Some(words) = words else { return 1 };
        for style in [quote::if_needed, quote::quoted] {
            let line = words.iter().map(|word| style(word)).collect::<Vec<_>>().join(" ");
            assert!(!quote::has_control(line.as_bytes()) && line.is_ascii(), "it could become two lines");
            assert!(!line.starts_with('#'), "it could become a comment");
            assert_eq!(quote::split_args(line.as_bytes()).as_ref(), Some(&words));
        }
        let longest = words.iter().map(Vec::len).max().unwrap_or(0);
        let odd = words.iter().flatten().map(|&byte| 1u64 << (byte / 4)).fold(0, |all, bit| all | bit);
        behaviour([size(words.len()), size(longest), odd & 0xffff_ffff])
    });
}

fn replies(pieces: &[&[u8]], mut take: impl FnMut(Reply)) -> Option<ProtocolError> {
    let mut decoder = ReplyDecoder::new();
    for piece in pieces {
        decoder.extend(piece);
        loop {
            match decoder.next() {
                Ok(Some(reply)) => take(reply),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next(), Err(error), "an error stays");
                    return Some(error);
                }
            }
        }
    }
    None
}

fn has_line_breaks(reply: &Reply) -> bool {
    match reply {
        Reply::Simple(line) | Reply::Error(line) => line.iter().any(|byte| matches!(byte, b'\r' | b'\n')),
        Reply::Array(values) | Reply::Push(values) => values.iter().any(has_line_breaks),
        Reply::Map(pairs) => pairs.iter().any(|(key, value)| has_line_breaks(key) || has_line_breaks(value)),
        _ => false,
    }
}

/// What a reply is made of.
fn kinds(reply: &Reply, depth: u64, seen: &mut u64) {
    let kind = match reply {
        Reply::Simple(_) => 0,
        Reply::Error(_) => 1,
        Reply::Integer(_) => 2,
        Reply::Bulk(_) => 3,
        Reply::Nil => 4,
        Reply::Double(_) => 5,
        Reply::Boolean(_) => 6,
        Reply::Array(values) | Reply::Push(values) => {
            values.iter().for_each(|value| kinds(value, depth + 1, seen));
            if matches!(reply, Reply::Push(_)) { 7 } else { 8 }
        }
        Reply::Map(pairs) => {
            pairs.iter().flat_map(|(key, value)| [key, value]).for_each(|value| kinds(value, depth + 1, seen));
            9
        }
    };
    *seen |= 1 << (kind + 10 * depth.min(5));
}

#[rustfmt::skip]
const REPLY_SEEDS: &[&[u8]] = &[
    b"+PONG\r\n-LOADING wait\r\n:-42\r\n$5\r\na\r\nbc\r\n$-1\r\n*-1\r\n_\r\n",
    b"*3\r\n$7\r\nmessage\r\n$18\r\n__sentinel__:hello\r\n$3\r\na,b\r\n",
    b"*3\r\n:1\r\n$1\r\n*\r\n:0\r\n",
    b"%1\r\n+a\r\n%1\r\n+b\r\n~2\r\n:1\r\n#t\r\n>2\r\n+message\r\n$1\r\nx\r\n",
    b",1.5\r\n,-inf\r\n(123456789012345678901234567890\r\n=8\r\ntxt:info\r\n!9\r\nERR a\r\nbc\r\n",
    b"|1\r\n+ttl\r\n:5\r\n+OK\r\n*2\r\n|1\r\n+k\r\n*1\r\n:5\r\n:1\r\n|0\r\n:2\r\n",
];

#[rustfmt::skip]
const REPLY_WORDS: &[&[u8]] = &[
    b"+OK\r\n", b"-ERR x\r\n", b":1\r\n", b"$4\r\ninfo\r\n", b"$0\r\n\r\n", b"$-1\r\n", b"*-1\r\n", b"_\r\n", b"*0\r\n", b"*1\r\n",
    b"*2\r\n", b"*3\r\n", b"%1\r\n", b"%2\r\n", b">1\r\n", b">3\r\n", b"~2\r\n", b"|1\r\n", b"#t\r\n", b"#f\r\n", b",1.5\r\n",
    b",nan\r\n", b"(99\r\n", b"=8\r\ntxt:abcd\r\n", b"!3\r\nERR\r\n", b"\r\n", b"*65536\r\n", b"*65537\r\n", b"$16777216\r\n",
    b"%32768\r\n", b"%65536\r\n", b"HTTP/1.1 400 Bad Request\r\n", b"\x16\x03\x01",
];

#[test]
fn replies_in_any_pieces() {
    run("replies", REPLY_SEEDS, REPLY_WORDS, 2_000, |choices, input| {
        let mut whole = Vec::new();
        let error = replies(&[input], |reply| whole.push(reply));
        let mut seen = 0;
        whole.iter().for_each(|reply| kinds(reply, 0, &mut seen));
        // Line breaks in a line are written as blanks.
        let broken = whole.iter().any(has_line_breaks);
        let cut = pieces(choices, input);
        let mut again = Vec::new();
        assert_eq!(replies(&cut, |reply| again.push(reply)), error);
        assert!(again == whole, "the pieces make a difference");
        // A value of three bytes (`_\r\n`) takes a Reply; places for 32 are made at each of the levels that may be open.
        let place = size_of::<Reply>();
        let most = input.len() * (place + 4) + 2 * limits::REPLY_DEPTH * 32 * place + 4096;
        memory::within(most, || replies(&cut, drop));
        for proto in [Proto::Resp2, Proto::Resp3] {
            let mut out = Vec::new();
            whole.iter().for_each(|reply| Writer::new(&mut out, proto).reply(reply));
            let mut back = Vec::new();
            assert_eq!(replies(&[&out], |reply| back.push(reply)), None);
            assert_eq!(back.len(), whole.len(), "one reply became several");
            assert!(broken || proto == Proto::Resp2 || back == whole);
        }
        behaviour([told(error), size(whole.len()), seen])
    });
}

/// Used by others: the replies in `out`, each as the bytes of its first line; fails when no client could read them.
/// (Our own decoder has bounds that are for servers: what we say of commands is nested deeper.)
pub fn understood(out: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let mut rest = out;
    while !rest.is_empty() {
        let (line, behind) = one_reply(rest).unwrap_or_else(|| panic!("no client can read {}", out.escape_ascii()));
        all.push(line);
        rest = behind;
    }
    all
}

/// The first line of the reply that `out` begins with, and what is behind the reply.
fn one_reply(out: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = out.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, mut rest) = (&out[..end], &out[end + 2..]);
    let (kind, text) = (*line.first()?, std::str::from_utf8(&line[1..]).unwrap_or("no number"));
    match kind {
        b'+' | b'-' => {}
        b':' => drop(text.parse::<i64>().ok()?),
        b',' => drop(text.parse::<f64>().ok()?),
        b'#' => drop(["t", "f"].contains(&text).then_some(())?),
        b'_' => drop(text.is_empty().then_some(())?),
        b'$' | b'*' if text == "-1" => {}
        b'$' | b'=' => {
            let length: usize = text.parse().ok()?;
            rest = rest.get(length..)?.strip_prefix(b"\r\n")?;
        }
        b'*' | b'~' | b'>' | b'%' => {
            let count: usize = text.parse().ok()?;
            for _ in 0..if kind == b'%' { 2 * count } else { count } {
                rest = one_reply(rest)?.1;
            }
        }
        _ => return None,
    }
    Some((line, rest))
}

/// Used by others: the requests in `input` up to the first fault.
pub fn requests_of(input: &[u8]) -> Vec<Vec<Vec<u8>>> {
    collected(&[input], RequestLimits::TRUSTED, usize::MAX).0
}

/// Used by others: a choice among `items`.
pub fn one_of<'a, T>(choices: &mut Random, items: &'a [T]) -> &'a T {
    &items[below(choices, items.len())]
}
