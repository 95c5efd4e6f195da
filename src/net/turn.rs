//! One turn of the loop: the only place from which a handler is called.

use std::io;
use std::time::Duration;

use super::handler::{Handler, Next};
use super::listener::Accept;
use super::reactor::{Reactor, Socket};
use super::signals::{SIGNALS, WAKER};
use super::stream::{CloseReason, Connect, Shake};
use super::token::Token;
use crate::base::limits;

impl Reactor {
    /// Turns until [`Reactor::stop`].
    ///
    /// # Errors
    ///
    /// The poll itself fails, which no connection can cause.
    pub fn run<H: Handler + ?Sized>(&mut self, handler: &mut H) -> io::Result<()> {
        while !self.stopping {
            self.turn(handler)?;
        }
        self.stopping = false;
        Ok(())
    }

    /// One turn; returns when something has happened, or the nearest timer is due. A stop in `before_sleep` ends it there.
    ///
    /// # Errors
    ///
    /// The poll itself fails.
    pub fn turn<H: Handler + ?Sized>(&mut self, handler: &mut H) -> io::Result<()> {
        handler.before_sleep(self);
        self.free_closed();
        if self.stopping {
            return Ok(());
        }
        self.before = self.now;
        self.wait()?;
        self.turn += 1;
        if self.collect_all()? {
            self.report_signals(handler);
        }
        self.resume_listeners();
        self.file_events(handler);
        self.expire_handshakes();
        self.report_ended(handler);
        self.time_events(handler);
        Ok(())
    }

    /// Polls, at most until the nearest deadline, and reads the clock.
    fn wait(&mut self) -> io::Result<()> {
        loop {
            let timeout = self.timeout();
            match self.poll.poll(&mut self.events, timeout) {
                // A signal; whether it is one of ours is in the pipe, and the next poll finds it there.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                outcome => {
                    self.read_clock();
                    return outcome;
                }
            }
        }
    }

    /// How long the poll may wait. The clock rounds down, so `n` ms from any moment within its ms lead to a moment at or
    /// past `now + n`: a poll that slept its time out finds its timer due, and no timer is early.
    fn timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() || !self.ended.is_empty() {
            return Some(Duration::ZERO);
        }
        let resume = self.paused.iter().map(|(at, _)| *at).min();
        let handshake = self.shaking.first().map(|(at, _)| *at);
        let nearest = [self.timers.nearest(), resume, handshake].into_iter().flatten().min()?;
        Some(Duration::from_millis(nearest.since((self.clock)()).min(limits::LONGEST_POLL)))
    }

    /// Takes everything that the kernel has, so that whoever waits for the next turns stands on our list and in its order.
    /// True when signals arrived.
    fn collect_all(&mut self) -> io::Result<bool> {
        let mut signals = self.collect();
        // Each descriptor has one event at most, unless more comes meanwhile.
        let mut polls = self.entries.len() / limits::EVENTS_PER_POLL;
        while polls > 0 && self.events.iter().count() == limits::EVENTS_PER_POLL {
            polls -= 1;
            match self.poll.poll(&mut self.events, Some(Duration::ZERO)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => break,
                outcome => outcome?,
            }
            signals |= self.collect();
        }
        Ok(signals)
    }

    /// Turns events into sticky bits and entries of the ready list. True when signals arrived.
    fn collect(&mut self) -> bool {
        let (mut signals, before) = (false, self.before);
        for event in &self.events {
            match event.token() {
                SIGNALS => signals = true,
                WAKER => {}
                mio::Token(slot) => {
                    // `mio` warns of events out of nowhere; one that finds nothing is passed over.
                    let Some(entry) = self.entries.get_mut(slot) else { continue };
                    let token = entry.token();
                    let queued = match &mut entry.socket {
                        Socket::Listener(listener) => &mut listener.queued,
                        Socket::Stream(stream) => {
                            stream.note(event);
                            if !stream.queued {
                                stream.waits_since = before;
                            }
                            &mut stream.queued
                        }
                        Socket::Closed => continue,
                    };
                    if !std::mem::replace(queued, true) {
                        self.ready.push(token);
                    }
                }
            }
        }
        signals
    }

    fn report_signals<H: Handler + ?Sized>(&mut self, handler: &mut H) {
        let mut arrived = Vec::new();
        self.signals.take(&mut arrived);
        for signal in arrived {
            handler.signal(self, signal);
        }
    }

    /// Serves the ready list as it stands: who came to us, and then the connections that we made, each kind in its order and up
    /// to [`limits::STREAMS_PER_TURN`] of them, so that a client that asks something does not stand in line behind the answers
    /// of a thousand nodes; of TLS handshakes there are fewer. The rest stays at the head of the list. What the callbacks add is
    /// the next turn's, too.
    fn file_events<H: Handler + ?Sized>(&mut self, handler: &mut H) {
        let mut batch = std::mem::replace(&mut self.ready, std::mem::take(&mut self.spare_tokens));
        let mut rest = Vec::new();
        for ours in [false, true] {
            let (mut left, mut shakes_left) = (limits::STREAMS_PER_TURN, limits::TLS_STEPS_PER_TURN);
            for &token in &batch {
                if let Some(listener) = self.listener(token) {
                    if !ours {
                        listener.queued = false;
                        self.accept_from(handler, token);
                    }
                } else if let Some(stream) = self.stream(token)
                    && stream.ours == ours
                {
                    let shakes = stream.wants_shake();
                    if left == 0 || (shakes && shakes_left == 0) {
                        rest.push(token);
                        continue;
                    }
                    left -= 1;
                    shakes_left -= usize::from(shakes);
                    stream.queued = false;
                    self.serve(handler, token);
                    self.enlist(token);
                }
            }
        }
        self.ready.splice(0..0, rest);
        batch.clear();
        self.spare_tokens = batch;
    }

    /// The events of one stream: connect, TLS handshake, then read, then write, so that an answer can leave in the turn of its question.
    /// Each step asks again what is left of the stream after the one before.
    fn serve<H: Handler + ?Sized>(&mut self, handler: &mut H, token: Token) {
        let Some(stream) = self.stream(token) else { return };
        if stream.connecting && !stream.ended {
            match stream.check_connect() {
                Connect::Pending => return,
                Connect::Done(_) if stream.tls.is_some() => self.start_shaking(token),
                Connect::Done(local) => handler.connected(self, token, local),
                Connect::Failed => {
                    self.ended.push(token);
                    return;
                }
            }
        }
        if !self.step_tls(handler, token) {
            return;
        }
        if let Some(stream) = self.stream(token)
            && stream.wants_read()
        {
            stream.woken = false;
            handler.readable(self, token);
        }
        if let Some(stream) = self.stream(token)
            && stream.wants_write()
        {
            stream.armed = false;
            handler.writable(self, token);
        }
    }

    /// What TLS has to do by itself. False when nothing else can be done with this stream now.
    fn step_tls<H: Handler + ?Sized>(&mut self, handler: &mut H, token: Token) -> bool {
        let turn = self.turn;
        let mut scratch = std::mem::take(&mut self.scratch);
        let shake = match self.stream(token) {
            Some(stream) if !stream.ended && stream.is_shaking() => Some(stream.shake(turn, &mut scratch)),
            Some(stream) if !stream.ended => match stream.flush_tls() {
                Ok(()) => None,
                Err(why) => {
                    stream.fail(why);
                    Some(Shake::Failed)
                }
            },
            _ => None,
        };
        self.scratch = scratch;
        let Some(shake) = shake else { return true };
        if shake == Shake::Pending {
            return false;
        }
        let mut report = None;
        if let Some(stream) = self.stream(token)
            && let Some(tls) = &mut stream.tls
        {
            let deadline = tls.deadline.take();
            if shake == Shake::Done && std::mem::take(&mut tls.unreported) {
                report = Some(stream.socket.local_addr());
            }
            if let Some(deadline) = deadline {
                self.shaking.remove(&(deadline, token));
            }
        }
        if shake == Shake::Failed {
            self.ended.push(token);
            return false;
        }
        match report {
            Some(Ok(local)) => handler.connected(self, token, local),
            Some(Err(error)) => {
                if let Some(stream) = self.stream(token) {
                    stream.fail(CloseReason::Other(error.to_string()));
                }
                self.ended.push(token);
                return false;
            }
            None => {}
        }
        true
    }

    /// Ends the streams whose handshake took too long.
    fn expire_handshakes(&mut self) {
        while let Some(&(at, token)) = self.shaking.first()
            && at <= self.now
        {
            self.shaking.pop_first();
            if let Some(stream) = self.stream(token)
                && !stream.ended
            {
                let seconds = limits::TLS_HANDSHAKE / 1000;
                stream.fail(CloseReason::Tls(format!("TLS handshake failed: it took longer than {seconds} s")));
                self.ended.push(token);
            }
        }
    }

    fn accept_from<H: Handler + ?Sized>(&mut self, handler: &mut H, token: Token) {
        for _ in 0..self.accepts_per_turn {
            // A callback may have closed it.
            let Some(listener) = self.listener(token) else { return };
            if listener.paused {
                return;
            }
            let trouble = match listener.accept() {
                Accept::Taken(socket, peer) => match self.add_accepted(socket) {
                    Ok(stream) => {
                        handler.accepted(self, token, stream, peer);
                        continue;
                    }
                    Err(e) => e,
                },
                Accept::Gone => continue,
                Accept::Drained => {
                    listener.troubled = false;
                    return;
                }
                Accept::Trouble(e) => e,
            };
            self.pause_listener(handler, token, &trouble);
            return;
        }
        // More wait, perhaps. The edge has been used up, so the list must remember.
        if let Some(listener) = self.listener(token)
            && !std::mem::replace(&mut listener.queued, true)
        {
            self.ready.push(token);
        }
    }

    /// Without descriptors, accepting fails while the connection stays in the backlog: trying on would spin.
    fn pause_listener<H: Handler + ?Sized>(&mut self, handler: &mut H, token: Token, trouble: &io::Error) {
        let until = self.now + limits::ACCEPT_PAUSE;
        let Some(listener) = self.listener(token) else { return };
        listener.paused = true;
        let told = std::mem::replace(&mut listener.troubled, true);
        let local = listener.local_addr();
        self.paused.push((until, token));
        if !told {
            let place = local.map_or_else(|| "the Unix socket".to_string(), |addr| addr.to_string());
            let text = format!(
                "Accepting connections on {place} fails and is tried again every {} ms: {trouble}",
                limits::ACCEPT_PAUSE
            );
            handler.trouble(self, &text);
        }
    }

    /// Puts listeners whose pause is over on the ready list: the edge that announced their backlog is long gone.
    fn resume_listeners(&mut self) {
        let now = self.now;
        for index in (0..self.paused.len()).rev() {
            if self.paused[index].0 <= now {
                let (_, token) = self.paused.swap_remove(index);
                if let Some(listener) = self.listener(token) {
                    listener.paused = false;
                    if !std::mem::replace(&mut listener.queued, true) {
                        self.ready.push(token);
                    }
                }
            }
        }
    }

    /// Takes away what has ended and was not closed by the handler, and says so. What ends in these callbacks is the next
    /// turn's, so that a handler which connects again at once cannot hold the loop.
    fn report_ended<H: Handler + ?Sized>(&mut self, handler: &mut H) {
        for token in std::mem::take(&mut self.ended) {
            if let Some(stream) = self.stream(token)
                && stream.ended
            {
                let why = stream.why();
                self.close(token);
                handler.closed(self, token, why);
            }
        }
    }

    fn time_events<H: Handler + ?Sized>(&mut self, handler: &mut H) {
        let mut due = std::mem::take(&mut self.spare_timers);
        self.timers.take_due(self.now, &mut due);
        for timer in due.drain(..) {
            if !self.timers.lives(timer) {
                continue;
            }
            match handler.timer(self, timer) {
                Next::Done => {
                    self.timers.cancel(timer);
                }
                Next::After(delay) => self.timers.again(timer, self.now + delay),
            }
        }
        self.spare_timers = due;
    }
}
