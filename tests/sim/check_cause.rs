//! Nobody is held down without a cause: a node that has not answered a PING for down-after or, where that is set, one whose
//! connections were all refused for long enough, with nothing else heard from it. A node that hangs, is slow or lies behind a
//! cut refuses nothing. The time that it stood in the line of all that we had to dial, and was not dialled yet, does not count,
//! nor the time that its answer has waited to be read.
//!
//! The ear is told what the core is told and keeps its own books about it.

use super::node::Node;
use std::collections::BTreeMap;
use watchfire::base::Millis;
use watchfire::core::{ConnId, ConnKind, Gone};
use watchfire::resp::Reply;

/// What one life of one Sentinel has heard of its connections.
#[derive(Debug, Default)]
pub struct Ear {
    /// What is judged in the middle of a turn is told at its end, when more may have been heard.
    turn: u64,
    attempts: BTreeMap<ConnId, Attempt>,
    nodes: BTreeMap<Node, Heard>,
}

#[derive(Debug)]
struct Attempt {
    to: Node,
    kind: ConnKind,
    at: Millis,
    begun: bool,
    stood: bool,
}

#[derive(Debug, Default)]
struct Heard {
    /// The last PONG, in which turn it came, and the last one of earlier turns.
    pong: Millis,
    pong_turn: u64,
    earlier_pong: Millis,
    /// How long dials waited in our line since the last PONG, before the first of them began; and since that of earlier turns.
    in_line: Line,
    earlier_line: Line,
    /// When the first PONG came that is unread.
    unread: Option<Millis>,
    /// The refusals of the command connection without anything else in between: when the first was heard, when the attempt
    /// behind the last was made, and how many there were.
    refused: Option<(Millis, Millis, u32)>,
    proven: bool,
    /// The last turn in which it was proven.
    proven_turn: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    ms: u64,
    tried: bool,
}

impl Line {
    fn waited(&mut self, ms: u64) {
        self.ms += if self.tried { 0 } else { ms };
    }
}

impl Ear {
    pub fn turn_begins(&mut self) {
        self.turn += 1;
    }

    pub fn dials(&mut self, conn: ConnId, to: Node, kind: ConnKind, at: Millis) {
        self.attempts.insert(conn, Attempt { to, kind, at, begun: false, stood: false });
    }

    /// It has left our line.
    pub fn begins(&mut self, conn: ConnId, now: Millis) {
        self.waits(conn, now);
        let Some(attempt) = self.attempts.get_mut(&conn) else { return };
        attempt.begun = true;
        let (to, kind) = (attempt.to, attempt.kind);
        if kind == ConnKind::Command {
            let node = self.node(to);
            (node.in_line.tried, node.earlier_line.tried) = (true, true);
        }
    }

    /// So long it has been in our line.
    fn waits(&mut self, conn: ConnId, now: Millis) {
        let Some(attempt) = self.attempts.get_mut(&conn).filter(|attempt| !attempt.begun) else { return };
        let waited = now.since(std::mem::replace(&mut attempt.at, now));
        let (to, kind) = (attempt.to, attempt.kind);
        if kind == ConnKind::Command {
            let node = self.node(to);
            node.in_line.waited(waited);
            node.earlier_line.waited(waited);
        }
    }

    /// The Sentinel gives a connection up.
    pub fn hangs_up(&mut self, now: Millis, conn: ConnId) {
        self.waits(conn, now);
        if let Some(attempt) = self.attempts.remove(&conn).filter(|attempt| !attempt.stood) {
            self.node(attempt.to).refused = None;
        }
    }

    pub fn connected(&mut self, conn: ConnId) {
        let Some(attempt) = self.attempts.get_mut(&conn) else { return };
        attempt.stood = true;
        let to = attempt.to;
        self.node(to).refused = None;
    }

    pub fn closed(&mut self, now: Millis, conn: ConnId, why: &Gone, span: u64) {
        let Some(attempt) = self.attempts.remove(&conn).filter(|attempt| !attempt.stood) else { return };
        let turn = self.turn;
        let node = self.node(attempt.to);
        if *why != Gone::Refused {
            node.refused = None;
        } else if attempt.kind == ConnKind::Command {
            let (first, _, count) = node.refused.unwrap_or((now, now, 0));
            node.refused = Some((first, attempt.at, count + 1));
            if span > 0 && count + 1 >= 5 && attempt.at.since(first) > span {
                (node.proven, node.proven_turn) = (true, turn);
            }
        }
    }

    /// The Sentinel has read what it could and has judged, and these replies wait for its next turns.
    pub fn turn_judged<'a>(&mut self, unread: impl Iterator<Item = (Millis, ConnId, &'a Reply)>) {
        self.nodes.values_mut().for_each(|node| node.unread = None);
        for (came, conn, _) in unread.filter(|(.., reply)| is_pong(reply)) {
            if let Some(to) = self.attempts.get(&conn).map(|attempt| attempt.to) {
                self.node(to).unread.get_or_insert(came);
            }
        }
    }

    pub fn replied(&mut self, now: Millis, conn: ConnId, reply: &Reply) {
        let Some(to) = self.attempts.get(&conn).map(|attempt| attempt.to) else { return };
        let turn = self.turn;
        let node = self.node(to);
        (node.refused, node.proven) = (None, false);
        if is_pong(reply) {
            if node.pong_turn != turn {
                (node.earlier_pong, node.earlier_line) = (node.pong, node.in_line);
            }
            (node.pong, node.pong_turn, node.in_line) = (now, turn, Line::default());
        }
    }

    fn node(&mut self, node: Node) -> &mut Heard {
        self.nodes.entry(node).or_default()
    }

    /// Says what is missing for this node to be held down now.
    pub fn cause(&mut self, now: Millis, node: Node, down_after: u64) -> Result<(), String> {
        let in_line = self.attempts.iter().filter(|(_, attempt)| attempt.to == node && !attempt.begun);
        for conn in in_line.map(|(&conn, _)| conn).collect::<Vec<_>>() {
            self.waits(conn, now);
        }
        let Some(heard) = self.nodes.get(&node) else { return Ok(()) };
        let earlier = heard.pong_turn == self.turn;
        let (pong, line) = if earlier { (heard.earlier_pong, heard.earlier_line) } else { (heard.pong, heard.in_line) };
        let silent = heard.unread.unwrap_or(now).since(pong).saturating_sub(line.ms);
        if silent > down_after || heard.proven || heard.proven_turn == self.turn {
            return Ok(());
        }
        Err(format!(
            "{node} is held down {silent} ms after a PONG (without {} ms in our line), and these are its refusals: {:?}",
            line.ms, heard.refused
        ))
    }
}

fn is_pong(reply: &Reply) -> bool {
    *reply == Reply::Simple(b"PONG".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Node = Node::Server(0);

    /// Attempts at 0, 50, 100 … ms, each with its end.
    fn after(ends: &[Gone]) -> Result<(), String> {
        let mut ear = Ear::default();
        ear.turn_begins();
        for (n, why) in (0u64..).zip(ends) {
            ear.dials(ConnId(n), NODE, ConnKind::Command, Millis(50 * n));
            ear.begins(ConnId(n), Millis(50 * n));
            ear.closed(Millis(50 * n + 1), ConnId(n), why, 190);
        }
        ear.turn_begins();
        ear.cause(Millis(300), NODE, 1_000)
    }

    #[test]
    fn only_refusals_without_anything_in_between_are_a_cause() {
        let other = || Gone::Other("unreachable".into());
        assert!(after(&vec![Gone::Refused; 5]).is_ok());
        assert!(after(&vec![Gone::Refused; 4]).is_err());
        assert!(after(&vec![other(); 5]).is_err());
        let mut mixed = vec![Gone::Refused; 6];
        mixed[2] = other();
        assert!(after(&mixed).is_err());
    }
}
