//! `SENTINEL SET`, `SENTINEL CONFIG` and `SENTINEL DEBUG`: settings of one master, of all, of the protocol.
//!
//! Every request is read whole before anything of it is applied (L4): a refused one has changed nothing.

use super::super::Wish;
use super::super::call::{Call, bulk_number};
use super::NO_SUCH_MASTER;
use super::admin::{refuse_length, refuse_longer, refuse_word};
use crate::base::{Alike, glob, limits};
use crate::config::LogLevel;
use crate::core::{Change, Level, Options, Tunables};
use crate::resp::{Writer, parse_integer};
use std::borrow::Cow;

/// One option of `SENTINEL SET` that takes one value: how to read it.
type Reader = fn(&[u8]) -> Option<Change>;

/// A positive number.
fn positive<T: TryFrom<i64>>(value: &[u8]) -> Option<T> {
    parse_integer(value).filter(|&number| number > 0).and_then(|number| T::try_from(number).ok())
}

fn text(value: &[u8]) -> Option<String> {
    std::str::from_utf8(value).ok().map(str::to_owned)
}

/// A span in ms; 0 turns off what it is about.
fn span(value: &[u8]) -> Option<u64> {
    parse_integer(value).and_then(|ms| u64::try_from(ms).ok())
}

const REBOOT: Reader = |value| span(value).map(Change::RebootDownAfter);

/// The options with one value, without the scripts. `auth-pass` may hold any byte: it is quoted where it is
/// written, and a password is whatever the server says it is.
const OPTIONS: [(&str, Reader); 10] = [
    ("down-after-milliseconds", |value| positive(value).map(Change::DownAfter)),
    ("down-after-refused", |value| span(value).map(Change::DownAfterRefused)),
    ("ping-period", |value| span(value).map(Change::PingPeriod)),
    ("failover-timeout", |value| positive(value).map(Change::FailoverTimeout)),
    ("parallel-syncs", |value| positive(value).map(Change::ParallelSyncs)),
    ("quorum", |value| positive(value).map(Change::Quorum)),
    ("master-reboot-down-after-period", REBOOT),
    ("primary-reboot-down-after-period", REBOOT),
    (AUTH_PASS, |value| Some(Change::AuthPass(value.to_vec()))),
    ("auth-user", |value| text(value).map(Change::AuthUser)),
];
const AUTH_PASS: &str = "auth-pass";
/// An option that names a script: the option, what the script is called in complaints, the change.
type Script = (&'static str, &'static str, fn(String) -> Change);
const SCRIPTS: [Script; 2] = [
    ("notification-script", "Notification", Change::NotificationScript),
    ("client-reconfig-script", "Client reconfiguration", Change::ClientReconfigScript),
];

pub(in super::super) fn set(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if call.world.sentinel.master_by_name(&argv[2]).is_none() {
        return call.error(NO_SUCH_MASTER);
    }
    let mut changes = Vec::new();
    let mut at = 3;
    while at < argv.len() {
        let Some((change, taken)) = change_at(call, at) else { return };
        changes.push(change);
        at += taken;
    }
    match call.world.sentinel.set(call.world.now, &argv[2], changes) {
        Ok(()) => call.ok_after_save(),
        Err(_) => call.error(NO_SUCH_MASTER),
    }
}

/// Reads the option at `argv[at]`: the change and how many words it took. Replies and gives `None` when it
/// is wrong.
fn change_at(call: &mut Call<'_, '_>, at: usize) -> Option<(Change, usize)> {
    const COMMAND: &str = "SENTINEL SET";
    let argv = call.argv;
    let (option, left) = (&argv[at], argv.len() - at - 1);
    let is = |name: &str| option.alike(name.as_bytes());
    if is("rename-command") && left >= 2 {
        if (at + 1..at + 3).any(|word| refuse_word(call, word, COMMAND)) {
            return None;
        }
        let words = [&argv[at + 1], &argv[at + 2]];
        return match words.map(|word| text(word).filter(|word| !word.is_empty())) {
            [Some(old), Some(new)] => Some((Change::RenameCommand(old, new), 3)),
            [old, _] => {
                invalid(call, if old.is_none() { words[0] } else { words[1] }, option);
                None
            }
        };
    }
    let script = SCRIPTS.iter().find(|(name, ..)| is(name));
    let known = OPTIONS.iter().find(|(name, _)| is(name));
    if left == 0 || (script.is_none() && known.is_none()) {
        call.refuse(&[b"ERR Unknown option or number of arguments for SENTINEL SET '", option, b"'"]);
        return None;
    }
    let value = &argv[at + 1];
    let refuse = if known.is_some_and(|(name, _)| *name == AUTH_PASS) { refuse_length } else { refuse_word };
    if refuse(call, at + 1, COMMAND) {
        return None;
    }
    let change = match (script, known) {
        (Some(_), _) if call.world.sentinel.options().deny_scripts_reconfig => {
            call.error(
                "ERR Reconfiguration of scripts path is denied for security reasons. Check the \
                 deny-scripts-reconfig configuration directive in your Sentinel configuration",
            );
            return None;
        }
        (Some((_, what, make)), _) => {
            let is_executable = call.world.facts.is_executable;
            let path = text(value).filter(|path| path.is_empty() || is_executable(path));
            if path.is_none() {
                call.error(&format!("ERR {what} script seems non existing or non executable"));
                return None;
            }
            path.map(make)
        }
        (None, Some((_, read))) => read(value),
        (None, None) => None,
    };
    if change.is_none() {
        invalid(call, value, option);
    }
    change.map(|change| (change, 2))
}

fn invalid(call: &mut Call<'_, '_>, value: &[u8], option: &[u8]) {
    call.refuse(&[b"ERR Invalid argument '", value, b"' for SENTINEL SET '", option, b"'"]);
}

/// The keys of `SENTINEL CONFIG`, in the order in which they are shown.
const CONFIG_KEYS: [&str; 7] = [
    "resolve-hostnames",
    "announce-hostnames",
    "announce-ip",
    "announce-port",
    "sentinel-user",
    "sentinel-pass",
    "loglevel",
];

pub(in super::super) fn config(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    match &argv[2] {
        word if word.alike(b"get") => config_get(call),
        word if word.alike(b"set") && argv.len() > 4 => config_set(call),
        _ => call.error(
            "ERR Only SENTINEL CONFIG GET <param> [<param> <param> ...] / SET <param> <value> [<param> <value> ...] \
             are supported.",
        ),
    }
}

/// Each pattern in turn, each key once.
fn config_get(call: &mut Call<'_, '_>) {
    if call.argv.len() - 3 > limits::ASKED {
        return call.too_many(limits::ASKED);
    }
    let mut keys: Vec<&str> = Vec::new();
    for pattern in call.argv.iter().skip(3) {
        for key in CONFIG_KEYS {
            if glob::matches(pattern, key.as_bytes(), true) && !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let options = call.world.sentinel.options();
    let loglevel = call.world.facts.loglevel;
    let mut reply = Writer::new(call.out, call.proto);
    reply.map(keys.len());
    for key in keys {
        reply.bulk(key);
        reply.bulk(config_value(options, loglevel, key));
    }
}

fn config_value<'a>(options: &'a Options, loglevel: LogLevel, key: &str) -> Cow<'a, [u8]> {
    let yes_no = |on| Cow::Borrowed(if on { b"yes".as_slice() } else { b"no" });
    match key {
        "resolve-hostnames" => yes_no(options.resolve_hostnames),
        "announce-hostnames" => yes_no(options.announce_hostnames),
        "announce-ip" => options.announce_ip.as_bytes().into(),
        "announce-port" => options.announce_port.to_string().into_bytes().into(),
        "sentinel-user" => options.sentinel_user.as_bytes().into(),
        "sentinel-pass" => options.sentinel_pass.as_slice().into(),
        _ => loglevel.as_str().as_bytes().into(),
    }
}

/// Our own password, which can be set here and is not shown.
const REQUIREPASS: &str = "requirepass";

fn config_set(call: &mut Call<'_, '_>) {
    const COMMAND: &str = "SENTINEL CONFIG SET";
    let argv = call.argv;
    let mut options = call.world.sentinel.options().clone();
    let mut loglevel = None;
    let mut password = None;
    let mut seen: Vec<&str> = Vec::new();
    for at in (3..argv.len()).step_by(2) {
        let word = &argv[at];
        let mut keys = CONFIG_KEYS.iter().chain([&REQUIREPASS]);
        let Some(&key) = keys.find(|key| key.as_bytes().alike(word)) else {
            return call.refuse(&[b"ERR Invalid argument '", word, b"' to SENTINEL CONFIG SET"]);
        };
        let Some(value) = argv.get(at + 1) else {
            return call.refuse(&[b"ERR Missing argument '", word, b"' value"]);
        };
        if seen.contains(&key) {
            return call.refuse(&[b"ERR Duplicate argument '", word, b"' to SENTINEL CONFIG SET"]);
        }
        seen.push(key);
        if key == REQUIREPASS {
            if refuse_longer(call, at + 1, COMMAND, limits::UNAUTHENTICATED_BULK) {
                return;
            }
            password = Some(value);
            continue;
        }
        let refuse = if key == "sentinel-pass" { refuse_length } else { refuse_word };
        if refuse(call, at + 1, COMMAND) {
            return;
        }
        if change_option(&mut options, &mut loglevel, key, value).is_none() {
            return call.refuse(&[b"ERR Invalid value '", value, b"' to SENTINEL CONFIG SET '", word, b"'"]);
        }
    }
    if let Some(level) = loglevel {
        call.world.wishes.push(Wish::LogLevel(level));
    }
    if let Some(password) = password {
        change_password(call, password);
    }
    if *call.world.sentinel.options() == options {
        // Nothing for the core, but the log level is in the file too.
        call.world.sentinel.flush_config();
    } else {
        call.world.sentinel.set_options(call.world.now, options);
    }
    call.ok_after_save();
}

/// For clients and for the links to peers at once. Where there is an ACL file it alone says how clients log in, as at
/// the start.
fn change_password(call: &mut Call<'_, '_>, password: &[u8]) {
    let world = &mut *call.world;
    let (level, text) = if world.facts.aclfile.is_empty() {
        world.acl.change_password(password);
        (Level::Notice, "The password of this Sentinel was changed.")
    } else {
        let text =
            "The password offered to the other Sentinels was changed; how clients log in stays what aclfile says.";
        (Level::Warning, text)
    };
    world.wishes.push(Wish::Log(level, text.to_owned()));
    world.sentinel.set_own_password(world.now, password);
    world.wishes.push(Wish::Password(password.to_vec()));
}

fn change_option(options: &mut Options, loglevel: &mut Option<LogLevel>, key: &str, value: &[u8]) -> Option<()> {
    match key {
        "resolve-hostnames" => options.resolve_hostnames = yes_no(value)?,
        "announce-hostnames" => options.announce_hostnames = yes_no(value)?,
        "announce-ip" => {
            options.announce_ip = text(value).filter(|host| Options::may_announce(host))?;
        }
        "announce-port" => options.announce_port = u16::try_from(parse_integer(value)?).ok()?,
        "sentinel-user" => options.sentinel_user = text(value)?,
        "sentinel-pass" => options.sentinel_pass = value.to_vec(),
        _ => *loglevel = Some(LogLevel::parse(str::from_utf8(value).ok()?)?),
    }
    Some(())
}

fn yes_no(value: &[u8]) -> Option<bool> {
    match () {
        () if value.alike(b"yes") => Some(true),
        () if value.alike(b"no") => Some(false),
        () => None,
    }
}

/// A tunable: its name as it is shown, and where it lives.
type Tunable = (&'static str, fn(&mut Tunables) -> &mut u64);

const TUNABLES: [Tunable; 13] = [
    ("INFO-PERIOD", |t| &mut t.info_period),
    ("PING-PERIOD", |t| &mut t.ping_period),
    ("ASK-PERIOD", |t| &mut t.ask_period),
    ("PUBLISH-PERIOD", |t| &mut t.publish_period),
    ("DEFAULT-DOWN-AFTER", |t| &mut t.default_down_after),
    ("DEFAULT-FAILOVER-TIMEOUT", |t| &mut t.default_failover_timeout),
    ("TILT-TRIGGER", |t| &mut t.tilt_trigger),
    ("TILT-PERIOD", |t| &mut t.tilt_period),
    ("SLAVE-RECONF-TIMEOUT", |t| &mut t.slave_reconf_timeout),
    ("MIN-LINK-RECONNECT-PERIOD", |t| &mut t.min_link_reconnect_period),
    ("ELECTION-TIMEOUT", |t| &mut t.election_timeout),
    ("SCRIPT-MAX-RUNTIME", |t| &mut t.script_max_runtime),
    ("SCRIPT-RETRY-DELAY", |t| &mut t.script_retry_delay),
];

/// `SENTINEL DEBUG`: bare, all tunables; with pairs, sets them.
pub(in super::super) fn debug(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let mut tunables = call.world.sentinel.tunables().clone();
    if argv.len() == 2 {
        call.reply().map(TUNABLES.len());
        for (name, place) in TUNABLES {
            call.reply().bulk(name);
            bulk_number(call.out, call.proto, *place(&mut tunables));
        }
        return;
    }
    for at in (2..argv.len()).step_by(2) {
        let option = &argv[at];
        let known = TUNABLES.iter().find(|(name, _)| name.as_bytes().alike(option));
        let (Some((_, place)), Some(value)) = (known, argv.get(at + 1)) else {
            return call.refuse(&[b"ERR Unknown option or number of arguments for SENTINEL DEBUG '", option, b"'"]);
        };
        let Some(number) = positive(value) else {
            return call.refuse(&[b"ERR Invalid argument '", value, b"' for SENTINEL DEBUG '", option, b"'"]);
        };
        *place(&mut tunables) = number;
    }
    call.world.sentinel.set_tunables(call.world.now, tunables);
    call.ok();
}
