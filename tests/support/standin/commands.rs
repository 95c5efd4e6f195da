//! What the stand-in's servers answer.

use watchfire::base::glob;
use watchfire::net::{Reactor, Token};
use watchfire::resp::{Proto, Writer};

use super::server::Role;
use super::world::World;
use super::{clients, info, pubsub};

/// Every command: its name and the least and the most words of a call, the name included.
const COMMANDS: &[(&str, usize, usize)] = &[
    ("auth", 2, 3),
    ("client", 2, usize::MAX),
    ("command", 1, usize::MAX),
    ("config", 2, usize::MAX),
    ("dbsize", 1, 1),
    ("debug", 2, usize::MAX),
    ("discard", 1, 1),
    ("echo", 2, 2),
    ("exec", 1, 1),
    ("get", 2, 2),
    ("hello", 1, usize::MAX),
    ("info", 1, usize::MAX),
    ("multi", 1, 1),
    ("ping", 1, 2),
    ("psubscribe", 2, usize::MAX),
    ("publish", 3, 3),
    ("punsubscribe", 1, usize::MAX),
    ("quit", 1, usize::MAX),
    ("replicaof", 3, 3),
    ("reset", 1, 1),
    ("role", 1, 1),
    ("script", 2, usize::MAX),
    ("select", 2, 2),
    ("set", 3, usize::MAX),
    ("shutdown", 1, usize::MAX),
    ("slaveof", 3, 3),
    ("subscribe", 2, usize::MAX),
    ("time", 1, 1),
    ("unsubscribe", 1, usize::MAX),
    ("wait", 3, 3),
];

/// One call, in hand of its command.
pub(super) struct Call<'a> {
    pub world: &'a mut World,
    pub reactor: &'a mut Reactor,
    pub token: Token,
    pub port: u16,
    pub proto: Proto,
    pub words: &'a [Vec<u8>],
    pub out: &'a mut Vec<u8>,
}

/// Runs one request and queues its answer.
pub(super) fn execute(world: &mut World, reactor: &mut Reactor, token: Token, words: Vec<Vec<u8>>) {
    let mut out = Vec::new();
    if let Some((name, port)) = admit(world, token, &words, &mut out) {
        let proto = world.clients.get(&token).map_or(Proto::Resp2, |client| client.proto);
        run(&name, &mut Call { world, reactor, token, port, proto, words: &words, out: &mut out });
    }
    if let Some(client) = world.clients.get(&token) {
        out.extend_from_slice(&world.server(client.server).extra);
    }
    if let Some(client) = world.clients.get_mut(&token) {
        client.fresh.append(&mut out);
    }
}

/// Decides whether a request may run now: its canonical name and the server's port if so. What is refused or queued
/// has been answered.
fn admit(world: &mut World, token: Token, words: &[Vec<u8>], out: &mut Vec<u8>) -> Option<(String, u16)> {
    let port = world.clients.get(&token)?.server;
    let asked = lower(&words[0]);
    let canonical = world.server(port).canonical(&asked);
    let row = canonical.as_deref().and_then(|name| COMMANDS.iter().find(|row| row.0 == name));
    let sub = words.get(1).map(|word| lower(word)).unwrap_or_default();
    if let Some((name, _, _)) = row {
        let label = match *name {
            "client" | "config" | "script" | "debug" => format!("{name}|{sub}"),
            _ => (*name).to_string(),
        };
        *world.server_mut(port).calls.entry(label.clone()).or_default() += 1;
        world.clients.get_mut(&token)?.last_command = label;
    }
    let fault = world.server(port).error.clone();
    let client = world.clients.get_mut(&token)?;
    let mut answer = Writer::new(out, client.proto);
    let refusal = match row {
        _ if !client.authed && !matches!(asked.as_str(), "auth" | "hello" | "quit" | "reset") => {
            Some("NOAUTH Authentication required.".to_string())
        }
        None => Some(unknown(words)),
        Some((name, least, most)) if words.len() < *least || words.len() > *most => {
            Some(format!("ERR wrong number of arguments for '{name}' command"))
        }
        Some((name, _, _)) => fault.filter(|fault| !works_despite(fault, name, &sub)).or_else(|| {
            let may = matches!(
                *name,
                "ping" | "subscribe" | "psubscribe" | "unsubscribe" | "punsubscribe" | "quit" | "reset"
            );
            (client.proto == Proto::Resp2 && client.subscriptions() > 0 && !may).then(|| {
                format!(
                    "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
                     allowed in this context"
                )
            })
        }),
    };
    if let Some(text) = refusal {
        client.broken |= client.queued.is_some();
        answer.error(&text);
        return None;
    }
    let name = row?.0;
    if let Some(queued) = &mut client.queued
        && !matches!(name, "exec" | "discard" | "multi" | "quit" | "reset")
    {
        queued.push(words.to_vec());
        answer.simple("QUEUED");
        return None;
    }
    Some((name.to_string(), port))
}

/// What a server answers although it is loading, has lost its master, or is busy with a script.
fn works_despite(fault: &str, name: &str, sub: &str) -> bool {
    match name {
        "auth" | "hello" | "quit" | "shutdown" => true,
        "script" => sub == "kill",
        "info" | "client" | "subscribe" | "psubscribe" | "publish" | "multi" | "exec" | "slaveof" | "config" => {
            fault.starts_with("LOADING") || fault.starts_with("MASTERDOWN")
        }
        _ => false,
    }
}

fn unknown(words: &[Vec<u8>]) -> String {
    let args: String = words[1..].iter().map(|word| format!("'{}' ", text(word))).collect();
    format!("ERR unknown command '{}', with args beginning with: {args}", text(&words[0]))
}

fn run(name: &str, call: &mut Call<'_>) {
    match name {
        "auth" => auth(call),
        "client" => clients::client(call),
        "command" => call.answer().array(0),
        "config" => config(call),
        "dbsize" => {
            let keys = call.world.keys(call.port, call.reactor.now());
            call.answer().integer(i64::try_from(keys).unwrap_or(0));
        }
        "debug" => debug(call),
        "discard" => discard(call),
        "echo" => {
            let word = call.words[1].clone();
            call.answer().bulk(word);
        }
        "exec" => exec(call),
        "get" => get(call),
        "hello" => hello(call),
        "info" => {
            let sections: Vec<String> = call.words[1..].iter().map(|word| lower(word)).collect();
            let text = info::text(call.world, call.port, &sections, call.reactor.now());
            call.answer().bulk(text);
        }
        "multi" => multi(call),
        "ping" => ping(call),
        "subscribe" | "psubscribe" | "unsubscribe" | "punsubscribe" => {
            let patterns = name.starts_with('p');
            let mut to = Writer::new(call.out, call.proto);
            if name.ends_with("unsubscribe") {
                pubsub::unsubscribe(call.world, call.token, &call.words[1..], patterns, &mut to);
            } else {
                pubsub::subscribe(call.world, call.token, &call.words[1..], patterns, &mut to);
            }
        }
        "publish" => publish(call),
        "quit" => {
            call.close_after_reply();
            call.ok();
        }
        "reset" => reset(call),
        "role" => role(call),
        "script" => script(call),
        "select" => call.ok(),
        "set" => set(call),
        "shutdown" => {
            let port = call.port;
            call.world.kill(call.reactor, port);
        }
        "slaveof" | "replicaof" => replicaof(call),
        "time" => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let mut to = call.answer();
            to.array(2);
            to.bulk(now.as_secs().to_string());
            to.bulk(now.subsec_micros().to_string());
        }
        "wait" => {
            let count = call.world.replicas(call.port, call.reactor.now()).len();
            call.answer().integer(i64::try_from(count).unwrap_or(0));
        }
        _ => call.error("ERR not modelled by the stand-in"),
    }
}

impl Call<'_> {
    pub fn answer(&mut self) -> Writer<'_> {
        Writer::new(self.out, self.proto)
    }

    pub fn ok(&mut self) {
        self.answer().simple("OK");
    }

    pub fn error(&mut self, text: &str) {
        self.answer().error(text);
    }

    fn close_after_reply(&mut self) {
        if let Some(client) = self.world.clients.get_mut(&self.token) {
            client.close_after_reply = true;
        }
    }

    pub fn word(&self, index: usize) -> String {
        self.words.get(index).map(|word| lower(word)).unwrap_or_default()
    }
}

pub(super) fn lower(word: &[u8]) -> String {
    text(word).to_ascii_lowercase()
}

pub(super) fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// The bytes of a request, by which a write moves the offset.
fn request_len(words: &[Vec<u8>]) -> usize {
    let mut bytes = Vec::new();
    watchfire::resp::request(&mut bytes, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    bytes.len()
}

/// Whether this pair opens the server; a server without a password takes any.
fn lets_in(call: &Call<'_>, user: &str, password: &str) -> bool {
    let server = call.world.server(call.port);
    !server.refuses_auth
        && user == server.spec.user
        && server.spec.password.as_ref().is_none_or(|wanted| wanted == password)
}

fn auth(call: &mut Call<'_>) {
    let (user, password) = match call.words {
        [_, user, password] => (text(user), text(password)),
        _ => ("default".to_string(), text(&call.words[1])),
    };
    let server = call.world.server(call.port);
    if server.spec.password.is_none() && !server.refuses_auth && call.words.len() == 2 {
        return call.error(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        );
    }
    if !lets_in(call, &user, &password) {
        return call.error("WRONGPASS invalid username-password pair or user is disabled.");
    }
    if let Some(client) = call.world.clients.get_mut(&call.token) {
        client.authed = true;
    }
    call.ok();
}

fn hello(call: &mut Call<'_>) {
    let proto = match call.words.get(1).map(Vec::as_slice) {
        None => call.proto,
        Some(b"2") => Proto::Resp2,
        Some(b"3") => Proto::Resp3,
        Some(_) => return call.error("NOPROTO unsupported protocol version"),
    };
    let mut at = 2;
    let mut name = None;
    let mut authed = false;
    while at < call.words.len() {
        match (call.word(at).as_str(), call.words.len() - at) {
            ("auth", 3..) => {
                if !lets_in(call, &text(&call.words[at + 1]), &text(&call.words[at + 2])) {
                    return call.error("WRONGPASS invalid username-password pair or user is disabled.");
                }
                authed = true;
                at += 3;
            }
            ("setname", 2..) => {
                name = Some(text(&call.words[at + 1]));
                at += 2;
            }
            _ => return call.error(&format!("ERR Syntax error in HELLO option '{}'", call.word(at))),
        }
    }
    let Some(client) = call.world.clients.get_mut(&call.token) else { return };
    client.authed |= authed;
    if !client.authed {
        return call.error("NOAUTH HELLO must be called with the client already authenticated");
    }
    client.proto = proto;
    call.proto = proto;
    client.name = name.unwrap_or_else(|| client.name.clone());
    let id = client.id;
    let server = call.world.server(call.port);
    let role = if server.role == Role::Master { "master" } else { "replica" };
    let version = server.spec.version.clone();
    let mut to = call.answer();
    to.map(7);
    to.bulk("server");
    to.bulk("redis");
    to.bulk("version");
    to.bulk(version);
    to.bulk("proto");
    to.integer(if proto == Proto::Resp3 { 3 } else { 2 });
    to.bulk("id");
    to.integer(i64::try_from(id).unwrap_or(0));
    to.bulk("mode");
    to.bulk("standalone");
    to.bulk("role");
    to.bulk(role);
    to.bulk("modules");
    to.array(0);
}

fn ping(call: &mut Call<'_>) {
    let listening = call.world.clients.get(&call.token).is_some_and(|client| client.subscriptions() > 0);
    let word = call.words.get(1).cloned();
    let resp2 = call.proto == Proto::Resp2;
    let mut to = call.answer();
    match word {
        word if listening && resp2 => {
            to.array(2);
            to.bulk("pong");
            to.bulk(word.unwrap_or_default());
        }
        Some(word) => to.bulk(word),
        None => to.simple("PONG"),
    }
}

fn multi(call: &mut Call<'_>) {
    let Some(client) = call.world.clients.get_mut(&call.token) else { return };
    if client.queued.is_some() {
        return call.error("ERR MULTI calls can not be nested");
    }
    client.queued = Some(Vec::new());
    client.broken = false;
    call.ok();
}

fn discard(call: &mut Call<'_>) {
    match call.world.clients.get_mut(&call.token).and_then(|client| client.queued.take()) {
        Some(_) => call.ok(),
        None => call.error("ERR DISCARD without MULTI"),
    }
}

fn exec(call: &mut Call<'_>) {
    let Some(client) = call.world.clients.get_mut(&call.token) else { return };
    let broken = std::mem::take(&mut client.broken);
    let Some(queued) = client.queued.take() else { return call.error("ERR EXEC without MULTI") };
    if broken {
        return call.error("EXECABORT Transaction discarded because of previous errors.");
    }
    call.answer().array(queued.len());
    for words in queued {
        let Some(name) = call.world.server(call.port).canonical(&lower(&words[0])) else { continue };
        let mut inner = Call {
            world: call.world,
            reactor: call.reactor,
            token: call.token,
            port: call.port,
            proto: call.proto,
            words: &words,
            out: call.out,
        };
        run(&name, &mut inner);
    }
}

fn reset(call: &mut Call<'_>) {
    let open = call.world.server(call.port).spec.password.is_none();
    let Some(client) = call.world.clients.get_mut(&call.token) else { return };
    client.proto = Proto::Resp2;
    client.queued = None;
    client.name.clear();
    client.authed = open;
    let mut unheard = Vec::new();
    let mut to = Writer::new(&mut unheard, Proto::Resp2);
    pubsub::unsubscribe(call.world, call.token, &[], false, &mut to);
    pubsub::unsubscribe(call.world, call.token, &[], true, &mut to);
    call.answer().simple("RESET");
}

fn role(call: &mut Call<'_>) {
    let now = call.reactor.now();
    let offset = call.world.offset(call.port, now);
    match call.world.server(call.port).role.clone() {
        Role::Master => {
            let replicas: Vec<_> = call.world.replicas(call.port, now);
            let rows: Vec<_> = replicas
                .iter()
                .map(|&replica| (call.world.server(replica).announced_address(), call.world.offset(replica, now)))
                .collect();
            let mut to = call.answer();
            to.array(3);
            to.bulk("master");
            to.integer(offset);
            to.array(rows.len());
            for ((ip, port), offset) in rows {
                to.array(3);
                to.bulk(ip);
                to.bulk(port.to_string());
                to.bulk(offset.to_string());
            }
        }
        Role::Replica { host, port } => {
            let up = call.world.link_up(call.port, now);
            let mut to = call.answer();
            to.array(5);
            to.bulk("slave");
            to.bulk(host);
            to.integer(i64::from(port));
            to.bulk(if up { "connected" } else { "connect" });
            to.integer(if up { offset } else { -1 });
        }
    }
}

fn replicaof(call: &mut Call<'_>) {
    let role = if call.word(1) == "no" && call.word(2) == "one" {
        Role::Master
    } else {
        let Ok(port) = text(&call.words[2]).parse::<u16>() else {
            return call.error("ERR Invalid master port");
        };
        Role::Replica { host: text(&call.words[1]), port }
    };
    let replica = role != Role::Master;
    let changed = call.world.set_role(call.port, role, call.reactor.now());
    if replica && !changed {
        call.answer().simple("OK Already connected to specified master");
    } else {
        call.ok();
    }
}

fn get(call: &mut Call<'_>) {
    let value = call.world.get(call.port, &call.words[1], call.reactor.now()).cloned();
    let mut to = call.answer();
    match value {
        Some(value) => to.bulk(value),
        None => to.nil(),
    }
}

fn set(call: &mut Call<'_>) {
    if call.world.server(call.port).role != Role::Master {
        return call.error("READONLY You can't write against a read only replica.");
    }
    let needed = call.world.server(call.port).config.get("min-replicas-to-write").and_then(|n| n.parse().ok());
    if call.world.replicas(call.port, call.reactor.now()).len() < needed.unwrap_or(0) {
        return call.error("NOREPLICAS Not enough good replicas to write.");
    }
    let (key, value) = (call.words[1].clone(), call.words[2].clone());
    call.world.server_mut(call.port).data.insert(key, value);
    call.world.replicate(call.port, request_len(call.words), None, call.reactor.now());
    call.ok();
}

fn publish(call: &mut Call<'_>) {
    let (channel, payload) = (call.words[1].clone(), call.words[2].clone());
    let count = call.world.deliver(call.port, &channel, &payload);
    if call.world.server(call.port).role == Role::Master {
        let now = call.reactor.now();
        call.world.replicate(call.port, request_len(call.words), Some((&channel, &payload)), now);
    }
    call.answer().integer(i64::try_from(count).unwrap_or(0));
}

fn script(call: &mut Call<'_>) {
    if call.word(1) != "kill" {
        return call.error("ERR not modelled by the stand-in");
    }
    let server = call.world.server_mut(call.port);
    if server.error.as_ref().is_some_and(|error| error.starts_with("BUSY")) {
        server.error = None;
        return call.ok();
    }
    call.error("NOTBUSY No scripts in execution right now.");
}

fn debug(call: &mut Call<'_>) {
    let seconds = call.words.get(2).and_then(|word| text(word).parse::<f64>().ok());
    match (call.word(1).as_str(), seconds) {
        ("sleep", Some(seconds)) if (0.0..=3600.0).contains(&seconds) => {
            call.ok();
            let ms = std::time::Duration::from_secs_f64(seconds).as_millis();
            call.world.sleep(call.reactor, call.port, u64::try_from(ms).unwrap_or(0));
        }
        _ => call.error("ERR not modelled by the stand-in"),
    }
}

fn config(call: &mut Call<'_>) {
    match (call.word(1).as_str(), call.words.len()) {
        ("rewrite" | "resetstat", 2) => {
            let server = call.world.server_mut(call.port);
            if call.words[1].eq_ignore_ascii_case(b"rewrite") {
                server.written = server.role.clone();
            }
            call.ok();
        }
        ("get", 3..) => {
            let server = call.world.server(call.port);
            let mut all = server.config.clone();
            all.insert("port".to_string(), call.port.to_string());
            all.insert("replica-priority".to_string(), server.priority.to_string());
            all.insert("requirepass".to_string(), server.spec.password.clone().unwrap_or_default());
            let wanted = |name: &str| call.words[2..].iter().any(|word| glob::matches(word, name.as_bytes(), true));
            all.retain(|name, _| wanted(name));
            let mut to = call.answer();
            to.map(all.len());
            for (name, value) in all {
                to.bulk(name);
                to.bulk(value);
            }
        }
        ("set", 4..) if call.words.len().is_multiple_of(2) => {
            let server = call.world.server_mut(call.port);
            for pair in call.words[2..].chunks(2) {
                let value = text(&pair[1]);
                match lower(&pair[0]).as_str() {
                    "replica-priority" | "slave-priority" => server.priority = value.parse().unwrap_or(100),
                    "requirepass" => server.spec.password = (!value.is_empty()).then_some(value),
                    name => drop(server.config.insert(name.to_string(), value)),
                }
            }
            call.ok();
        }
        _ => call.error(&format!("ERR unknown subcommand '{}'. Try CONFIG HELP.", call.word(1))),
    }
}
