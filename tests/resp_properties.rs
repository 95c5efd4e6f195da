//! What must hold of the protocol for all bytes and in any pieces.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use watchfire::resp::{
    Argv, Proto, ProtocolError, Reply, ReplyDecoder, RequestDecoder, RequestLimits, Writer, request,
};

type Requests = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Cuts `bytes` at the given places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

/// Feeds the pieces; after each takes at most `per_piece` requests, as a shell that is busy would.
fn requests(pieces: &[&[u8]], limits: RequestLimits, per_piece: usize) -> Requests {
    let mut decoder = RequestDecoder::new();
    decoder.set_limits(limits);
    let (mut requests, mut argv) = (Vec::new(), Argv::new());
    let mut take = |decoder: &mut RequestDecoder, most: usize| {
        for _ in 0..most {
            match decoder.next(&mut argv) {
                Ok(true) => requests.push(argv.iter().map(<[u8]>::to_vec).collect()),
                Ok(false) => break,
                Err(error) => return Some(error),
            }
        }
        None
    };
    for piece in pieces {
        decoder.extend(piece);
        if let Some(error) = take(&mut decoder, per_piece) {
            return (requests, Some(error));
        }
    }
    let error = take(&mut decoder, usize::MAX);
    (requests, error)
}

fn replies(pieces: &[&[u8]]) -> (Vec<Reply>, Option<ProtocolError>) {
    let mut decoder = ReplyDecoder::new();
    let mut replies = Vec::new();
    for piece in pieces {
        decoder.extend(piece);
        loop {
            match decoder.next() {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}

/// Bytes that look enough like the protocol to get deep into it.
fn nearly_protocol(words: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![12 => select(words).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..5)];
    vec(word, 0..24).prop_map(|words| words.concat())
}

#[rustfmt::skip]
const REQUEST_WORDS: &[&[u8]] = &[
    b"*1\r\n", b"*2\r\n", b"*3\r\n", b"*0\r\n", b"*-1\r\n", b"*12\r\n", b"*", b"$", b"$4\r\n", b"$0\r\n", b"$14\r\n",
    b"$120\r\n", b"PING", b"\r\n", b"\r", b"\n", b"\r\n", b"PING\r\n", b"ECHO \"a b\"\r\n", b"'", b"\"", b" ", b"1",
    b"$4\r\nPING\r\n", b"$4\r\nECHO\r\n", b"$1\r\nx\r\n",
];

#[rustfmt::skip]
const REPLY_WORDS: &[&[u8]] = &[
    b"+OK\r\n", b"-ERR x\r\n", b":1\r\n", b":-5\r\n", b"$4\r\ninfo\r\n", b"$0\r\n\r\n", b"$-1\r\n", b"*-1\r\n", b"_\r\n",
    b"*0\r\n", b"*1\r\n", b"*2\r\n", b"*3\r\n", b"%1\r\n", b"%2\r\n", b">1\r\n", b">3\r\n", b"~2\r\n", b"|1\r\n", b"#t\r\n",
    b",1.5\r\n", b"(99\r\n", b"=8\r\ntxt:abcd\r\n", b"!3\r\nERR\r\n", b"+OK\r\n", b":1\r\n", b"$1\r\nx\r\n", b"\r\n",
];

fn any_reply() -> impl Strategy<Value = Reply> {
    let line = || vec(any::<u8>().prop_filter("a line holds no line break", |b| !matches!(b, b'\r' | b'\n')), 0..12);
    let leaf = prop_oneof![
        line().prop_map(Reply::Simple),
        line().prop_map(Reply::Error),
        any::<i64>().prop_map(Reply::Integer),
        vec(any::<u8>(), 0..40).prop_map(Reply::Bulk),
        Just(Reply::Nil),
        any::<f64>().prop_map(|number| Reply::Double(format!("{number:e}").into_bytes())),
        any::<bool>().prop_map(Reply::Boolean),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Reply::Array),
            vec((inner.clone(), inner.clone()), 0..4).prop_map(Reply::Map),
            vec(inner, 0..6).prop_map(Reply::Push),
        ]
    })
}

/// What is left of a reply when it goes through RESP2.
fn flattened(reply: &Reply) -> Reply {
    match reply {
        Reply::Array(values) | Reply::Push(values) => Reply::Array(values.iter().map(flattened).collect()),
        Reply::Map(pairs) => Reply::Array(pairs.iter().flat_map(|(k, v)| [flattened(k), flattened(v)]).collect()),
        Reply::Double(text) => Reply::Bulk(text.clone()),
        Reply::Boolean(truth) => Reply::Integer(i64::from(*truth)),
        plain => plain.clone(),
    }
}

fn written(reply: &Reply, proto: Proto) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out, proto).reply(reply);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_pieces_give_the_same_requests(
        bytes in nearly_protocol(REQUEST_WORDS),
        cuts in vec(any::<Index>(), 0..12),
        per_piece in 0..4usize,
        short: bool,
    ) {
        let limits = if short { RequestLimits { args: 2, bulk: 100, buffer: 60 } } else { RequestLimits::default() };
        let whole = requests(&[&bytes], limits, usize::MAX);
        prop_assert_eq!(&requests(&pieces(&bytes, &cuts), limits, per_piece), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&requests(&single, limits, usize::MAX), &whole);
    }

    #[test]
    fn any_pieces_give_the_same_replies(bytes in nearly_protocol(REPLY_WORDS), cuts in vec(any::<Index>(), 0..12)) {
        let whole = replies(&[&bytes]);
        prop_assert_eq!(&replies(&pieces(&bytes, &cuts)), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&replies(&single), &whole);
    }

    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>, cuts in vec(any::<Index>(), 0..4)) {
        let pieces = pieces(&bytes, &cuts);
        let _ = requests(&pieces, RequestLimits::UNAUTHENTICATED, 1);
        let _ = replies(&pieces);
    }

    #[test]
    fn requests_come_through_as_written(sent in vec(vec(vec(any::<u8>(), 0..200), 1..6), 0..6)) {
        let mut out = Vec::new();
        for args in &sent {
            request(&mut out, &args.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        prop_assert_eq!(requests(&[&out], RequestLimits::default(), usize::MAX), (sent, None));
    }

    #[test]
    fn replies_come_through_as_written(reply in any_reply()) {
        prop_assert_eq!(replies(&[&written(&reply, Proto::Resp3)]), (vec![reply.clone()], None));
        prop_assert_eq!(replies(&[&written(&reply, Proto::Resp2)]), (vec![flattened(&reply)], None));
    }

    #[test]
    fn an_error_text_never_becomes_two_replies(text: String) {
        let mut out = Vec::new();
        Writer::new(&mut out, Proto::Resp2).error(&text);
        let (replies, error) = replies(&[&out]);
        prop_assert_eq!((replies.len(), error), (1, None));
    }
}
