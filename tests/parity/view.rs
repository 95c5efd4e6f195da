//! What of a reply is compared: named facts, one text each. Times, ids, ports, ages and counters are taken out of
//! the texts first.

use std::collections::{BTreeMap, BTreeSet};

use super::wire::{Answer, Wire};

/// A label and what is seen there. A fact that only one side has is compared with [`ABSENT`].
pub type Facts = BTreeMap<String, String>;
pub const ABSENT: &str = "(absent)";

/// How replies to one request are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Byte for byte, except for what changes from moment to moment.
    Exact,
    /// The elements of one array, in any order.
    Set,
    /// Keys in their order as one fact, and the value of each.
    Fields,
    /// As `Fields`, for each of a list.
    ListOfFields,
    /// The names of the fields of each section of INFO, and a few values.
    Info,
    /// The first line of a HELP, and that the rest are lines of the same kind.
    Help,
    /// Rows of COMMAND, each by its name.
    Commands,
    /// Entries of COMMAND DOCS, each by its name.
    Docs,
    /// Lines of ACL LIST: of each user the switches, the rules for commands and the rest.
    Users,
    /// The line of the asking client in CLIENT LIST and CLIENT INFO.
    Clients,
    /// Types and lengths only.
    Shape,
}

impl View {
    /// The view for a request of these words.
    pub fn of(words: &[String]) -> View {
        let words: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["hello", ..] | ["sentinel", "config", "get", ..] => View::Fields,
            ["info", ..] => View::Info,
            ["command" | "client" | "acl" | "sentinel", "help"] => View::Help,
            ["command"] | ["command", "info", ..] => View::Commands,
            ["command", "docs", ..] => View::Docs,
            ["command", "list", ..] | ["acl", "cat", _] => View::Set,
            ["client", "list" | "info", ..] => View::Clients,
            ["acl", "list"] => View::Users,
            ["acl", "getuser", _] => View::Fields,
            ["acl", "log", ..] => View::ListOfFields,
            ["client", "id"] | ["acl", "genpass", ..] | ["sentinel", "info-cache", ..] => View::Shape,
            _ => View::Exact,
        }
    }
}

/// What is one thing on both sides although it is spelt differently.
#[derive(Clone, Debug, Default)]
pub struct Names(pub Vec<(String, &'static str)>);

impl Names {
    fn replace(&self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for (own, common) in &self.0 {
            let mut at = 0;
            while let Some(found) = text[at..].windows(own.len()).position(|part| part == own.as_bytes()) {
                at += found;
                // Inside of a longer word it is there by chance.
                let stands_alone = [at.checked_sub(1), Some(at + own.len())]
                    .iter()
                    .all(|at| at.and_then(|at| text.get(at)).is_none_or(|byte| !byte.is_ascii_alphanumeric()));
                let word = if stands_alone { common } else { own.as_str() };
                text.splice(at..at + own.len(), word.bytes());
                at += word.len();
            }
        }
        text
    }
}

/// The values of these keys are counters and ages.
const MOVING: [&str; 12] = [
    "link-pending-commands",
    "last-ping-sent",
    "last-ok-ping-reply",
    "last-ping-reply",
    "s-down-time",
    "o-down-time",
    "info-refresh",
    "role-reported-time",
    "slave-repl-offset",
    "last-hello-message",
    "age-seconds",
    "id",
];

/// Events whose payload ends with an epoch.
const WITH_EPOCH: [&str; 1] = ["+vote-for-leader"];

/// The reply with common names, and with `<n>` for what moves.
pub fn still(wire: &Wire, names: &Names) -> Wire {
    match wire {
        Wire::Line(mark, text) => Wire::Line(*mark, names.replace(text)),
        Wire::Bulk(mark, text) => Wire::Bulk(*mark, text.as_ref().map(|text| names.replace(text))),
        Wire::Many(mark, items) => {
            let Some(items) = items else { return wire.clone() };
            let mut done: Vec<Wire> = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                let before = at.checked_sub(1).map(|at| items[at].text()).unwrap_or_default();
                let moves = at % 2 == 1 && MOVING.contains(&before.as_str());
                done.push(match still(item, names) {
                    item if moves => number(&item),
                    Wire::Bulk(mark, Some(text)) if WITH_EPOCH.contains(&before.as_str()) => {
                        let end = text.iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
                        Wire::Bulk(mark, Some([&text[..end], b"<n>"].concat()))
                    }
                    item => item,
                });
            }
            Wire::Many(*mark, Some(done))
        }
    }
}

/// Digits of an age or an offset in a group that lives for a minute. A date would have more (R72).
const DIGITS: usize = 9;

/// A number that moves: only its type stays, and that it is no date.
fn number(wire: &Wire) -> Wire {
    let shown = |text: &[u8]| {
        let is_number = !text.is_empty() && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        let digits = text.iter().take_while(|byte| **byte != b'.').count();
        if is_number && digits <= DIGITS { b"<n>".to_vec() } else { text.to_vec() }
    };
    match wire {
        Wire::Line(mark, text) => Wire::Line(*mark, shown(text)),
        Wire::Bulk(mark, Some(text)) => Wire::Bulk(*mark, Some(shown(text))),
        other => other.clone(),
    }
}

/// Everything worth comparing in an answer. `label` is the request; `me` is the id of the asking client.
pub fn facts(view: View, label: &str, answer: &Answer, names: &Names, me: &str) -> Facts {
    let mut facts = Facts::new();
    let replies: Vec<Wire> = answer.replies.iter().map(|reply| still(reply, names)).collect();
    let [reply] = &replies[..] else {
        let mut shown: Vec<String> = replies.iter().map(Wire::show).collect();
        shown.extend((!answer.end.is_empty()).then(|| format!("({})", answer.end)));
        facts.insert(label.to_string(), shown.join(" "));
        return facts;
    };
    let mut add = |name: &str, text: String| {
        let label = if name.is_empty() { label.to_string() } else { format!("{label} › {name}") };
        facts.insert(label, text);
    };
    if !answer.end.is_empty() {
        add("", format!("{} ({})", reply.show(), answer.end));
        return facts;
    }
    if reply.is_error() {
        add("", reply.show());
        return facts;
    }
    match view {
        View::Exact => add("", reply.show()),
        View::Set => {
            add("type", reply.mark().to_string());
            reply.items().iter().for_each(|item| add(&item.text(), format!("{}…", item.mark())));
        }
        View::Fields => fields(reply, "", &mut add),
        View::ListOfFields => {
            add("type", format!("{} of {}", reply.mark(), reply.items().len()));
            for (at, item) in reply.items().iter().enumerate() {
                fields(item, &format!("{at} "), &mut add);
            }
        }
        View::Info => info(reply, &mut add),
        View::Help => {
            let types: BTreeSet<char> = reply.items().iter().map(Wire::mark).collect();
            add("type", format!("{} of {types:?}", reply.mark()));
            add("first line", reply.items().first().map(Wire::text).unwrap_or_default());
            let last: Vec<String> = reply.items().iter().rev().take(2).map(Wire::text).collect();
            add("ends with HELP", (last.get(1).is_some_and(|title| title == "HELP")).to_string());
            let indented = reply.items().iter().skip(1).any(|line| line.text().starts_with("    "));
            add("indents", indented.to_string());
        }
        View::Commands => {
            add("type", reply.mark().to_string());
            reply.items().iter().for_each(|row| command(row, &mut add));
        }
        View::Docs => {
            add("type", reply.mark().to_string());
            docs(reply, "", &mut add);
        }
        View::Clients => clients(reply, me, &mut add),
        View::Users => {
            let names: Vec<String> = reply.items().iter().map(|line| user(&line.text(), &mut add)).collect();
            add("names", format!("{} of {}", reply.mark(), names.join(" ")));
        }
        View::Shape => add("", shape(reply)),
    }
    facts
}

/// A map or its flat form.
fn fields(reply: &Wire, prefix: &str, add: &mut impl FnMut(&str, String)) {
    let pairs = || reply.items().chunks_exact(2);
    let keys: Vec<String> = pairs().map(|pair| format!("{}{}", pair[0].mark(), pair[0].text())).collect();
    add(&format!("{prefix}keys"), format!("{} of {}", reply.mark(), keys.join(" ")));
    for pair in pairs() {
        let value = match pair[0].text().as_str() {
            "client-info" => line_keys(&pair[1].text()),
            _ => pair[1].show(),
        };
        add(&format!("{prefix}{}", pair[0].text()), value);
    }
}

/// Fields of INFO whose values are the same on both sides.
const SAME_VALUES: [&str; 11] = [
    "redis_mode",
    "arch_bits",
    "multiplexing_api",
    "process_supervised",
    "tcp_port",
    "maxclients",
    "blocked_clients",
    "sentinel_masters",
    "sentinel_running_scripts",
    "sentinel_scripts_queue_length",
    "sentinel_simulate_failure_flags",
];

fn info(reply: &Wire, add: &mut impl FnMut(&str, String)) {
    let text = reply.text();
    add("type", reply.mark().to_string());
    let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    add("sections", sections.join(" "));
    // Everything that is no name or value: how lines end, where blank ones stand.
    let ends = text.split_inclusive('\n').all(|line| line.ends_with("\r\n"));
    let blanks = text.matches("\r\n\r\n").count();
    add("lines", format!("all end with CRLF: {ends}, blank ones: {blanks}"));
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            section = name;
        } else if let Some((name, value)) = line.split_once(':') {
            if name.strip_prefix("master").is_some_and(is_number) {
                // In the order of a hash there.
                add(&format!("{section} {}", value.split(',').next().unwrap_or_default()), value.to_string());
                add(&format!("{section} {name}"), String::new());
                continue;
            }
            let says_value = SAME_VALUES.contains(&name);
            add(&format!("{section} {name}"), if says_value { value.to_string() } else { String::new() });
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Types of the list and of its words, and the words in order.
fn sorted(wire: &Wire) -> String {
    let mut words: Vec<String> = wire.items().iter().map(Wire::show).collect();
    words.sort();
    format!("{}{words:?}", wire.mark())
}

fn command(row: &Wire, add: &mut impl FnMut(&str, String)) {
    let [name, arity, flags, first, last, step, categories, tips, keys, subs] = row.items() else {
        // nil, for a name that is none.
        add(&format!("row {}", row.show()), String::new());
        return;
    };
    let name = name.show().replace(['$', '"'], "");
    add(&name, format!("{} arity {}", row.mark(), arity.show()));
    add(&format!("{name} flags"), sorted(flags));
    add(&format!("{name} categories"), sorted(categories));
    add(&format!("{name} tips"), sorted(tips));
    let keys = [first, last, step, keys].map(Wire::show).join(" ");
    add(&format!("{name} keys"), keys);
    add(&format!("{name} subcommands"), format!("{}{}", subs.mark(), if subs.items().is_empty() { "" } else { "…" }));
    subs.items().iter().for_each(|sub| command(sub, add));
}

fn docs(entries: &Wire, container: &str, add: &mut impl FnMut(&str, String)) {
    for pair in entries.items().chunks_exact(2) {
        let name = pair[0].show().replace(['$', '"'], "");
        let keys: Vec<String> = pair[1].items().chunks_exact(2).map(|pair| pair[0].text()).collect();
        add(&format!("{name} keys"), format!("{} in {container}: {}", pair[1].mark(), keys.join(" ")));
        for field in pair[1].items().chunks_exact(2) {
            match field[0].text().as_str() {
                "subcommands" => docs(&field[1], &name, add),
                "since" | "group" | "doc_flags" | "deprecated_since" | "replaced_by" => {
                    add(&format!("{name} {}", field[0].text()), field[1].show());
                }
                "history" => {
                    let versions = field[1].items().iter().filter_map(|entry| entry.items().first());
                    let versions: Vec<String> = versions.map(Wire::text).collect();
                    add(&format!("{name} history"), format!("{} of {}", field[1].mark(), versions.join(" ")));
                }
                "arguments" => add(&format!("{name} arguments"), arguments(&field[1])),
                // Words about a command are everybody's own.
                other => add(&format!("{name} {other}"), field[1].mark().to_string()),
            }
        }
    }
}

/// The tree in one line. What an argument is called is compared where it has a value; 7.0 made up the names of groups, and
/// had no texts to display.
fn arguments(list: &Wire) -> String {
    let of = |arg: &Wire| {
        let field = |name: &str| arg.items().chunks_exact(2).find(|pair| pair[0].text() == name).map(|pair| &pair[1]);
        let text = |name: &str| field(name).map(|value| format!(" {name}={}", value.show())).unwrap_or_default();
        let parts = field("arguments").map(|parts| format!(" {}", arguments(parts))).unwrap_or_default();
        let name = if parts.is_empty() { text("name") } else { String::new() };
        let others = ["token", "since", "deprecated_since", "flags"].map(text).concat();
        format!("{}{}{name}{others}{parts}", arg.mark(), text("type"))
    };
    format!("{}({})", list.mark(), list.items().iter().map(of).collect::<Vec<_>>().join("; "))
}

/// `user <name> <rules>`; gives the name.
fn user(line: &str, add: &mut impl FnMut(&str, String)) -> String {
    const SWITCHES: [&str; 5] = ["on", "off", "nopass", "sanitize-payload", "skip-sanitize-payload"];
    let (root, selectors) = line.split_once(" (").unwrap_or((line, ""));
    let mut words = root.split(' ');
    let (first, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut switches, mut commands, mut rest) = (vec![first], Vec::new(), Vec::new());
    for word in words {
        match word {
            _ if SWITCHES.contains(&word) => switches.push(word),
            _ if word.starts_with(['+', '-']) => commands.push(word),
            _ => rest.push(word),
        }
    }
    add(&format!("{name} switches"), switches.join(" "));
    add(&format!("{name} commands"), commands.join(" "));
    add(&format!("{name} rest"), rest.join(" "));
    add(&format!("{name} selectors"), selectors.to_string());
    name.to_string()
}

/// The words before the `=` of each pair.
fn line_keys(line: &str) -> String {
    line.split(' ').map(|pair| pair.split('=').next().unwrap_or_default()).collect::<Vec<_>>().join(" ")
}

fn clients(reply: &Wire, me: &str, add: &mut impl FnMut(&str, String)) {
    const SAME: [&str; 12] =
        ["name", "flags", "db", "sub", "psub", "ssub", "multi", "events", "cmd", "user", "redir", "resp"];
    // A verbatim string begins with its format.
    let text = reply.text();
    let text = text.strip_prefix("txt:").filter(|_| reply.mark() == '=').unwrap_or(&text);
    add("type", format!("{}, ends with a line: {}", reply.mark(), text.is_empty() || text.ends_with('\n')));
    let Some(line) = text.lines().find(|line| line.split(' ').any(|pair| pair == format!("id={me}"))) else {
        add("", format!("{} without the asking client", if text.is_empty() { "an empty text" } else { "lines" }));
        return;
    };
    add("keys", line_keys(line));
    for pair in line.split(' ') {
        if let Some((key, value)) = pair.split_once('=').filter(|(key, _)| SAME.contains(key)) {
            add(key, value.to_string());
        }
    }
}

fn shape(wire: &Wire) -> String {
    match wire {
        Wire::Line(b':', _) => ":<n>".to_string(),
        Wire::Line(..) => wire.show(),
        Wire::Bulk(mark, Some(text)) if text.len() > 1100 => format!("{}<long>", char::from(*mark)),
        Wire::Bulk(mark, Some(text)) => format!("{}<{}>", char::from(*mark), text.len()),
        Wire::Bulk(_, None) | Wire::Many(_, None) => wire.show(),
        Wire::Many(mark, Some(items)) => {
            format!("{}[{}]", char::from(*mark), items.iter().map(shape).collect::<Vec<_>>().join(" "))
        }
    }
}
