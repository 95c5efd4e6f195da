//! Every difference from redis-sentinel 7.0.15 that is meant, with its reason.
//!
//! A difference that no row covers fails the test, and so does a row that covers none: what is written here is all there
//! is, and all of it is true. Patterns are globs; `label` is the request as the script has it and, behind a `›`, what of
//! the reply it is about.

use watchfire::base::glob;

use super::view::ABSENT;

pub struct Row {
    label: &'static str,
    theirs: &'static str,
    ours: &'static str,
    /// From these words on both say the same.
    same: Option<&'static str>,
    why: &'static str,
}

const fn row(label: &'static str, theirs: &'static str, ours: &'static str, why: &'static str) -> Row {
    Row { label, theirs, ours, same: None, why }
}

/// Only we have it.
const fn added(label: &'static str, why: &'static str) -> Row {
    row(label, ABSENT, "*", why)
}

impl Row {
    const fn same_from(mut self, words: &'static str) -> Row {
        self.same = Some(words);
        self
    }

    pub fn covers(&self, label: &str, theirs: &str, ours: &str) -> bool {
        let matches = |pattern: &str, text: &str| glob::matches(pattern.as_bytes(), text.as_bytes(), false);
        let rest = |words: &str, text: &str| text.find(words).map(|at| text[at..].to_string());
        glob::matches(self.label.as_bytes(), label.as_bytes(), true)
            && matches(self.theirs, theirs)
            && matches(self.ours, ours)
            && self.same.is_none_or(|words| rest(words, theirs).is_some() && rest(words, theirs) == rest(words, ours))
    }

    pub fn show(&self) -> String {
        format!("{} : {} → {} ({})", self.label, self.theirs, self.ours, self.why)
    }
}

const LEVEL: &str = "we answer as 7.4 does, and say so: clients go by this";
const WORDS: &str = "the words of 7.4";
const FIELD: &str = "a field of 7.4";
const SETINFO: &str = "CLIENT SETINFO came with 7.2; all new clients send it";
const ALIAS: &str = "Valkey's names beside the old ones, so that tools of both kinds find what they look for";
const RULES: &str = "7.2 and later keep the rules for commands as they were given; 7.0 makes up a list of its own that means \
     the same, in the order of a hash";
const SANITIZE: &str = "7.2 and later show this switch where 7.0 leaves it out";
const KILL_BY_AGE: &str = "CLIENT KILL MAXAGE came with 7.4";
const CONFIG: &str = "since 7.2 SENTINEL CONFIG takes several keys, and knows loglevel";
const COORDINATED: &str = "SENTINEL FAILOVER … COORDINATED, as Valkey 9 has it (R57)";
const PASSWORD: &str = "our own password can be changed while we run (R99)";
const CONTROL: &str = "a line break in a name would write lines of its own into the configuration file (R87); refused, with \
     Valkey's words";
const NO_NAME: &str = "a user without a name could be written into no file";
const NUL: &str =
    "redis looks for the end of a line only up to a NUL and waits for more; here a NUL is a byte like others";
const BOUND: &str = "a bound on everything: no request of a Sentinel has a million words or 512 MB";
const GETKEYS: &str = "7.2 and later let the command itself be the last word, so that its lack of keys can be told";
const TIPS: &str = "tips of 7.4";
const DOCS: &str = "arguments and history as 7.4 tells them";
const HELLO_ORDER: &str = "7.2 and later read all options before any takes effect";
const SHORT_IP: &str = "an address is written in full here, because it is announced and written down as it was given";
const NO_ID: &str = "an id has 40 hexadecimal digits; a vote for anything else would be written down and gossiped";
const SWITCH: &str = "the new address is published as soon as it holds, not when all replicas follow (behaviour.md 9)";
const LAST_WORDS: &str = "what was answered before the end is sent before the end";
const LOAD: &str = "7.4 lets go only of those whose rights ACL LOAD changed; 7.0 of everybody who has logged in";
const OURS: &str = "our own field; names that begin so are nobody else's";
const EXTENSION: &str = "our own: no name of theirs is taken, and nothing shows unless it is asked for or set";
const SAVING: &str = "our own field: says that the state cannot be written (R77)";

pub const ROWS: &[Row] = &[
    // HELLO.
    row("HELLO* › version", "$\"7.0.15\"", "$\"7.4.0\"", LEVEL),
    row(
        "HELLO*",
        "-NOAUTH HELLO must *wise the HELLO AUTH*",
        "-NOAUTH HELLO must *wise the HELLO <proto> AUTH*",
        WORDS,
    )
    .same_from(" AUTH <user> <pass> option can"),
    row("HELLO 2 AUTH nobody x SETNAME \"a b\"", "-WRONGPASS *", "-ERR Client names cannot *", HELLO_ORDER),
    // CLIENT.
    row("CLIENT SETINFO *", "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.", "*", SETINFO),
    added("COMMAND* › client|setinfo*", SETINFO),
    added("ACL CAT * › client|setinfo", SETINFO),
    row("CLIENT KILL MAXAGE *", "-ERR syntax error", "*", KILL_BY_AGE),
    row("CLIENT * › keys", "id * ssub multi qbuf *", "id * ssub multi watch qbuf * lib-name lib-ver", FIELD),
    row("ACL LOG* › * client-info", "id * ssub multi qbuf *", "id * ssub multi watch qbuf * lib-name lib-ver", FIELD),
    // COMMAND.
    row("COMMAND* › command|getkeys*", "?* arity :-4", "?* arity :-3", GETKEYS),
    row("COMMAND GETKEYS*", "-ERR wrong number of arguments for 'command|getkeys*'*", "-*", GETKEYS),
    row("COMMAND* › sentinel|config", "?* arity :-3", "?* arity :-4", CONFIG),
    row("COMMAND* › acl|* tips", "?[[]]", "*request_policy:all_nodes*response_policy:all_succeeded*", TIPS),
    row("COMMAND* › client|setname tips", "?[[]]", "*request_policy:all_nodes*response_policy:all_succeeded*", TIPS),
    row("COMMAND DOCS* › acl|cat arguments", "*categoryname*", "*category*", DOCS),
    row("COMMAND DOCS* › acl|log keys", "* complexity arguments", "* complexity history arguments", DOCS),
    row("COMMAND DOCS* › client|kill arguments", "*name=?\"ip:port\" *", "*name=?\"old-format\" *MAXAGE*", DOCS),
    row("COMMAND DOCS* › client|kill history", "? of *", "? of * 7.4.0", DOCS),
    row("COMMAND DOCS* › client|list arguments", "*block* token=?\"ID\"*", "*integer* token=?\"ID\"*", DOCS),
    row("COMMAND DOCS* › client|list history", "? of *", "? of * 7.2.0 7.4.0", DOCS),
    row("COMMAND DOCS* › command|getkeys* keys", "* complexity", "* complexity arguments", DOCS),
    row("COMMAND DOCS* › psubscribe arguments", "*block*pattern*", "*pattern*", DOCS),
    row("COMMAND DOCS* › sentinel|config keys", "* complexity arguments", "* complexity history arguments", DOCS),
    row("COMMAND DOCS* › sentinel|debug arguments", "*{+multiple}*", "*{+optional +multiple}*", DOCS),
    row("COMMAND DOCS › client|pause since", "$\"2.9.50\"", "$\"3.0.0\"", WORDS),
    row("COMMAND DOCS* › sentinel|failover keys", "* group arguments", "* group history arguments", COORDINATED),
    row("COMMAND DOCS* › sentinel|failover arguments", "*", "*; *token=?\"COORDINATED\"*", COORDINATED),
    row("COMMAND* › sentinel|failover", "?* arity :3", "?* arity :-3", COORDINATED),
    added("COMMAND* › sentinel|*primar*", ALIAS),
    added("COMMAND* › sentinel|failover-report*", EXTENSION),
    added("ACL CAT * › sentinel|*primar*", ALIAS),
    added("ACL CAT * › sentinel|failover-report*", EXTENSION),
    // INFO.
    added("INFO* › Server watchfire_version", OURS),
    added("INFO* › Sentinel sentinel_config_save_failing", SAVING),
    added("INFO* › Sentinel sentinel_total_tilt", "a field of 8.2 and Valkey 9"),
    added("INFO* › Server listener0", FIELD),
    added("INFO* › Clients pubsub_clients", FIELD),
    added("INFO* › Clients watching_clients", FIELD),
    added("INFO* › Clients total_watched_keys", FIELD),
    added("INFO* › Clients total_blocking_keys*", FIELD),
    added("INFO* › Stats acl_access_denied_*", FIELD),
    added("INFO* › Stats client_*_buffer_limit_disconnections", FIELD),
    added("INFO* › Stats *eventloop_*", FIELD),
    added("INFO* › Stats evicted_scripts", FIELD),
    added("INFO* › Stats expired_subkeys", FIELD),
    // ACL.
    row("*", "-NOPERM this user has no permissions to run the *", "-NOPERM User * has no permissions to run *", WORDS)
        .same_from(" has no permissions to run the "),
    row(
        "*",
        "-NOPERM this user has no permissions to access one of the channels used as arguments",
        "-NOPERM No permissions to access a channel",
        WORDS,
    ),
    row("ACL DRYRUN *", "$\"This user has no permissions to *", "$\"User * has no permissions to *", WORDS)
        .same_from(" has no permissions to "),
    row(
        "ACL LOG* › * keys",
        "? of $count *",
        "? of $count * $entry-id $timestamp-created $timestamp-last-updated",
        FIELD,
    ),
    row("ACL GETUSER * › flags", "?{$\"on\"}", "?{$\"on\" $\"sanitize-payload\"}", SANITIZE),
    row("ACL GETUSER * › flags", "?{$\"off\"}", "?{$\"off\" $\"sanitize-payload\"}", SANITIZE),
    row("ACL GETUSER * › flags", "?{$\"on\" $\"nopass\"}", "?{$\"on\" $\"nopass\" $\"sanitize-payload\"}", SANITIZE),
    row("ACL LIST › * switches", "user on", "user on sanitize-payload", SANITIZE),
    row("ACL LIST › * switches", "user off", "user off sanitize-payload", SANITIZE),
    row("ACL LIST › * switches", "user on nopass", "user on nopass sanitize-payload", SANITIZE),
    row("ACL GETUSER * › commands", "$\"*\"", "$\"*\"", RULES),
    row("ACL LIST › * commands", "?@all*", "?@all*", RULES),
    row("ACL SETUSER \"\" on", "+OK", "-ERR Usernames can't contain spaces or null characters", NO_NAME),
    row("ACL USERS", "?{$\"\" $\"default\" *}", "?{$\"default\" *}", NO_NAME).same_from("$\"default\""),
    row("ACL DELUSER \"\"", ":1", ":0", NO_NAME),
    row("PING", "(closed)", "+PONG", LOAD),
    // SENTINEL.
    row("SENTINEL *primar*", "-ERR unknown subcommand '*primar*'. Try SENTINEL HELP.", "[^-]*", ALIAS),
    row("SENTINEL failover-report*", "-ERR unknown subcommand 'failover-report'. Try SENTINEL HELP.", "*", EXTENSION),
    row("SENTINEL set far down-after-refused *", "-ERR Unknown option or number of *", "*", EXTENSION),
    row("SENTINEL set far ping-period *", "-ERR Unknown option or number of *", "*", EXTENSION),
    row("SENTINEL set far primary-reboot-*", "-ERR Unknown option or number of *", "+OK", ALIAS),
    row("SENTINEL CONFIG GET * › keys", "? of *", "? of *$loglevel", CONFIG),
    row(
        "SENTINEL CONFIG *",
        "-ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported.",
        "*",
        CONFIG,
    ),
    row("SENTINEL CONFIG x", "-*", "-ERR wrong number of arguments for 'sentinel|config' command", CONFIG),
    row("SENTINEL CONFIG set loglevel *", "-ERR Invalid argument 'loglevel' to SENTINEL CONFIG SET", "*", CONFIG),
    row("SENTINEL failover far x", "-ERR wrong number of *", "-ERR Unknown failover option specified", COORDINATED),
    row("SENTINEL failover * *", "-ERR wrong number of *", "-*", COORDINATED),
    row("SENTINEL CONFIG SET requirepass *", "-ERR Invalid argument 'requirepass' to *", "+OK", PASSWORD),
    row("SENTINEL monitor *\\\\n*", "+OK", "-ERR Invalid argument at index 2 *: control characters are *", CONTROL),
    row("SENTINEL remove *\\\\n*", "+OK", "-ERR No such master with that name", CONTROL),
    row(
        "SENTINEL set far auth-user *\\\\n*",
        "+OK",
        "-ERR Invalid argument at index 4 *: control characters are *",
        CONTROL,
    ),
    row("SENTINEL monitor short *", "+OK", "-ERR Invalid IP address or hostname specified", SHORT_IP),
    row("SENTINEL remove short", "+OK", "-ERR No such master with that name", SHORT_IP),
    row("SENTINEL get-master-addr-by-name short", "*127.0.0.1*", "?*", SHORT_IP),
    row("SENTINEL is-master-down-by-addr * abc", "?{:0 $\"abc\" :1009}", "?{:0 $\"*\" :0}", NO_ID),
    row("PING \"the end of a failover\"", "*+failover-end*+switch-master*", "*+switch-master*+failover-end*", SWITCH),
    row("end \"PING\\\\r\\\\nSHUTDOWN *", "(closed)", "+PONG (closed)", LAST_WORDS),
    // The protocol.
    row("end *\\\\x00*", "(closed)", "*", NUL),
    row("end \"[*]1048577*", "(closed)", "-ERR Protocol error: invalid multibulk length (closed)", BOUND),
    row("end \"[*]2147483647*", "(closed)", "-ERR Protocol error: invalid multibulk length (closed)", BOUND),
    row("end \"*$536870912*", "(closed)", "-ERR Protocol error: too big request (closed)", BOUND),
];
