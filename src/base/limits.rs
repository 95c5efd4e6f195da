//! Every bound of the program that is not a tunable of the protocol, in one place.

/// Bytes taken from one socket before the others get their turn.
pub const READ_PER_TURN: usize = 16 * 1024;
/// Bytes given to one socket before the others get their turn.
pub const WRITE_PER_TURN: usize = 64 * 1024;
/// Longest bulk string that a client may send, in bytes.
pub const REQUEST_BULK: usize = 512 * 1024 * 1024;
/// Longest inline request, in bytes.
pub const REQUEST_INLINE: usize = 64 * 1024;
/// Most arguments of one request.
pub const REQUEST_ARGS: usize = 1024 * 1024;
/// Bytes a client may have sent without completing a request.
pub const REQUEST_BUFFER: usize = 64 * 1024 * 1024;
/// Most arguments, longest bulk string and longest request of a client that still owes a password.
pub const UNAUTHENTICATED_ARGS: usize = 10;
pub const UNAUTHENTICATED_BULK: usize = 16 * 1024;
pub const UNAUTHENTICATED_BUFFER: usize = 64 * 1024;
/// Bytes of replies that may wait for such a client after a write; with more, it is cut off.
pub const UNAUTHENTICATED_OUTPUT: usize = 16 * 1024;
/// How long such a client may take to log in, in ms.
pub const LOGIN: u64 = 60_000;
/// Longest pattern that is tried, in bytes; a longer one matches nothing. What is matched are short names.
pub const PATTERN: usize = 4 * 1024;
/// Channels and patterns of one client, together; prefixes of its tracking.
pub const SUBSCRIPTIONS: usize = 1024;
/// Longest channel, pattern or prefix of those, and longest name of a client or its library, in bytes.
pub const CLIENT_WORD: usize = 1024;
/// Longest word that a command may bring into the configuration file, in bytes: a master's name, a password.
pub const SETTING: usize = 1024 * 1024;
/// Rules of one user, those in parentheses and passwords included; together they may be as long as a setting.
pub const USER_RULES: usize = 10_000;
/// Bytes of what `ACL LOG` shows, whatever `acllog-max-len` allows; the oldest entries make room.
pub const ACL_LOG: usize = 4 * 1024 * 1024;
/// Things that one request may ask to be told of, where each can fill kilobytes.
pub const ASKED: usize = 10_000;
/// Commands that one request may ask to have described. Each can take ten kilobytes, and nobody waits for more than the 20 ms
/// that a thousand of them take; there are not two hundred, and without a name all of them come.
pub const DESCRIBED: usize = 1_024;
/// Memory that a drained buffer may keep for its next use, in bytes.
pub const BUFFER_KEPT: usize = 64 * 1024;
/// The same of a client's replies: each client has such a buffer, and most have short replies.
pub const REPLIES_KEPT: usize = 16 * 1024;
/// Longest bulk string accepted from a monitored server (INFO of a busy server stays far below).
pub const REPLY_BULK: usize = 16 * 1024 * 1024;
/// Most elements of one aggregate in a server's reply.
pub const REPLY_ELEMENTS: usize = 64 * 1024;
/// Deepest nesting of a server's reply.
pub const REPLY_DEPTH: usize = 8;
/// Longest line of a server's reply, in bytes.
pub const REPLY_LINE: usize = 64 * 1024;
/// Bytes of one whole reply of a server.
pub const REPLY_BYTES: usize = 64 * 1024 * 1024;
/// Lines and strings of one whole reply of a server, all levels together.
pub const REPLY_VALUES: usize = 512 * 1024;
/// How long a client that is about to be closed may take to read some of what waits for it, in ms.
pub const LAST_WORDS: u64 = 10_000;
/// Connections one listener takes before the others get their turn, at most; an operator may want fewer.
pub const ACCEPTS_PER_TURN: u32 = 1000;
/// How long a listener that cannot accept (no descriptors left, mostly) is left alone, in ms.
pub const ACCEPT_PAUSE: u64 = 100;
/// Silence on an accepted connection before the kernel probes it, in seconds, until the owner decides otherwise.
pub const KEEPALIVE_SECONDS: u32 = 300;
/// Events taken from the kernel by one poll; a turn polls again as long as there are so many.
pub const EVENTS_PER_POLL: usize = 1024;
/// Of the connections that others made to us, and of those that we made, so many are served in one turn. An INFO to read or to
/// give takes tens of µs, and whoever asks something waits for two turns at most, which are to stay below 20 ms with a save in
/// one of them.
pub const STREAMS_PER_TURN: usize = 64;
/// Connections to nodes begun in one turn, of some tens of µs each; further ones wait for the next turns.
pub const DIALS_PER_TURN: usize = 32;
/// Names whose addresses the core hears in one turn: for each it goes through all nodes, some hundred µs with 5,000 masters.
pub const NAMES_PER_TURN: usize = 16;
/// Masters that the core looks at in one turn, or acts upon because their moment has come, of some µs each; with as many events to
/// tell that is a ms or two. The others are the next turn's, which follows at once.
pub const LOOKS_PER_TURN: usize = 200;
/// Connections to nodes that are written to in one turn; the PINGs of a thousand masters are due in the same one.
pub const LINK_WRITES_PER_TURN: usize = 64;
/// Longest wait of one poll, in ms; systems differ in what they take beyond. A timer further away is waited for in pieces.
pub const LONGEST_POLL: u64 = 24 * 60 * 60 * 1000;
/// How long a TLS handshake may take, in ms. Whoever is slower is no client but holds the place of one.
pub const TLS_HANDSHAKE: u64 = 10_000;
/// Streams whose TLS handshakes go on in one turn, of those who came to us and of those whom we dialled; one step costs about a
/// millisecond (a signature), so a crowd of new clients takes some turns instead of one long one, and leaves our own their share.
pub const TLS_STEPS_PER_TURN: usize = 8;
/// As [`DIALS_PER_TURN`], with TLS: no more than find their steps in the next turn where nodes are near, for a handshake that
/// stands in line looks like a silent node.
pub const TLS_DIALS_PER_TURN: usize = TLS_STEPS_PER_TURN / 2;
/// Bytes of TLS sessions kept so that clients may resume them, their certificates included.
pub const TLS_SESSION_BYTES: usize = 4 * 1024 * 1024;
