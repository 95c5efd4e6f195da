//! The rows of the command table: what a Sentinel answers, how many words it takes and how it is shown.
//!
//! Names, arities, flags and tips are facts of the wire; summaries are our own words. A new command is one
//! row here and one handler.

use super::arguments::{Arg, block, number, one_of, pattern, text, word};
use super::call::{Call, Handler, wrong_arity};
use super::sentinel::{self, admin, report, set, show};
use super::table::{
    ADMIN, ALLOW_BUSY, CAT_ADMIN, CAT_CONNECTION, CAT_DANGEROUS, Command, FAST, Flags, LOADING, NO_AUTH, NO_MULTI,
    NOSCRIPT, PUBSUB, STALE, Table,
};
use super::{acl_cmd, client_cmd, connection, info, introspect};

const LOGIN: Flags = NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | CAT_CONNECTION;
const LISTEN: Flags = PUBSUB | NOSCRIPT | LOADING | STALE;
/// Subcommands of CLIENT about oneself, and those about others.
const OWN: Flags = NOSCRIPT | LOADING | STALE | CAT_CONNECTION;
const OTHERS: Flags = OWN | ADMIN;
const TABLE: Flags = LOADING | STALE | CAT_CONNECTION;
const ACL: Flags = NOSCRIPT | LOADING | STALE;
const ACL_ADMIN: Flags = ACL | ADMIN;
const CHANGES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
const UNSTABLE: &[&str] = &["nondeterministic_output"];
const UNORDERED: &[&str] = &["nondeterministic_output_order"];

/// Commands that are nothing without a subcommand; their arity sees to it that this is not reached.
fn container(call: &mut Call<'_, '_>) {
    wrong_arity(call.out, call.command.full);
}

#[rustfmt::skip]
macro_rules! top {
    ($name:literal, $group:literal, $arity:literal, $flags:expr, $since:literal, $summary:literal, $handler:expr
     $(, tips $tips:expr)? $(, history $history:expr)? $(, args $args:expr)? $(, subs $subs:expr)?) => {{
        #[allow(unused_mut, unused_assignments, reason = "only some rows have the optional parts")]
        const ROW: Command = {
            let (mut tips, mut subs): (&[&str], Option<&'static Table>) = (&[], None);
            let (mut history, mut args): (&[(&str, &str)], &[Arg]) = (&[], NONE);
            $(tips = $tips;)?
            $(history = $history;)?
            $(const ARGS: &[Arg] = $args;
            args = ARGS;)?
            $(subs = Some($subs);)?
            let handler: Handler = $handler;
            Command {
                name: $name, full: $name, arity: $arity, flags: $flags, tips, since: $since, group: $group,
                complexity: "O(1)", history, replaced: None, args, summary: $summary, subs, handler,
            }
        };
        ROW
    }};
}

#[rustfmt::skip]
macro_rules! sub {
    ($container:literal, $group:literal, $name:literal, $arity:literal, $flags:expr, $since:literal, $complexity:literal,
     $args:expr, $summary:literal, $handler:expr $(, tips $tips:expr)? $(, history $history:expr)?
     $(, replaced $replaced:expr)?) => {{
        #[allow(unused_mut, unused_assignments, reason = "only some rows have the optional parts")]
        const ROW: Command = {
            let (mut tips, mut history): (&[&str], &[(&str, &str)]) = (&[], &[]);
            let mut replaced: Option<(&str, &str)> = None;
            const ARGS: &[Arg] = $args;
            $(tips = $tips;)?
            $(history = $history;)?
            $(replaced = Some($replaced);)?
            let handler: Handler = $handler;
            Command {
                name: $name, full: concat!($container, "|", $name), arity: $arity, flags: $flags, tips, since: $since,
                group: $group, complexity: $complexity, history, replaced, args: ARGS, summary: $summary, subs: None,
                handler,
            }
        };
        ROW
    }};
}

macro_rules! client {
    ($($rest:tt)*) => { sub!("client", "connection", $($rest)*) };
}
macro_rules! command {
    ($($rest:tt)*) => { sub!("command", "server", $($rest)*) };
}
macro_rules! acl {
    ($($rest:tt)*) => { sub!("acl", "server", $($rest)*) };
}
macro_rules! sentinel {
    ($($rest:tt)*) => { sub!("sentinel", "sentinel", $($rest)*) };
}

const HELLO: &[Arg] = &[block(
    "arguments",
    &[
        number("protover"),
        block("auth", &[text("username"), text("password")]).after("AUTH").optional(),
        text("clientname").after("SETNAME").optional(),
    ],
)
.optional()];
const SHUTDOWN: &[Arg] = &[
    one_of("save-selector", &[word("nosave", "NOSAVE"), word("save", "SAVE")]).optional(),
    word("now", "NOW").since("7.0.0").optional(),
    word("force", "FORCE").since("7.0.0").optional(),
    word("abort", "ABORT").since("7.0.0").optional(),
];
const NONE: &[Arg] = &[];
const ON_OFF: &[Arg] = &[word("on", "ON"), word("off", "OFF")];

/// Everything that is answered; whatever is not here is an unknown command.
pub static COMMANDS: Table = Table::new(&[
    top!(
        "ping",
        "connection",
        -1,
        FAST | CAT_CONNECTION,
        "1.0.0",
        "Says that the server is there.",
        connection::ping,
        tips & ["request_policy:all_shards", "response_policy:all_succeeded"],
        args & [text("message").optional()]
    ),
    top!("hello", "connection", -1, LOGIN, "6.0.0", "Chooses the protocol, and may log in and name the connection.",
        connection::hello, history &[("6.2.0", "May be sent without the version.")], args HELLO),
    top!(
        "auth",
        "connection",
        -2,
        LOGIN,
        "1.0.0",
        "Logs in.",
        connection::auth,
        history & [("6.0.0", "Takes a user name.")],
        args & [text("username").since("6.0.0").optional(), text("password")]
    ),
    top!(
        "info",
        "server",
        -1,
        LOADING | STALE | CAT_DANGEROUS,
        "1.0.0",
        "Facts and counters of this Sentinel.",
        info::info,
        tips & ["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        history & [("7.0.0", "Takes several sections.")],
        args & [text("section").optional().multiple()]
    ),
    top!(
        "role",
        "server",
        1,
        NOSCRIPT | LOADING | STALE | FAST | CAT_ADMIN | CAT_DANGEROUS,
        "2.8.12",
        "The role of this node, and the masters it watches.",
        connection::role
    ),
    top!(
        "publish",
        "pubsub",
        3,
        PUBSUB | LOADING | STALE | FAST,
        "2.0.0",
        "Takes in the hello of a peer.",
        connection::publish,
        args & [text("channel"), text("message")]
    ),
    top!(
        "subscribe",
        "pubsub",
        -2,
        LISTEN,
        "2.0.0",
        "Listens to channels.",
        connection::subscribe,
        args & [text("channel").multiple()]
    ),
    top!(
        "psubscribe",
        "pubsub",
        -2,
        LISTEN,
        "2.0.0",
        "Listens to channels that match patterns.",
        connection::psubscribe,
        args & [pattern("pattern").multiple()]
    ),
    top!(
        "unsubscribe",
        "pubsub",
        -1,
        LISTEN,
        "2.0.0",
        "Stops listening to channels.",
        connection::unsubscribe,
        args & [text("channel").optional().multiple()]
    ),
    top!(
        "punsubscribe",
        "pubsub",
        -1,
        LISTEN,
        "2.0.0",
        "Stops listening to patterns.",
        connection::punsubscribe,
        args & [pattern("pattern").optional().multiple()]
    ),
    top!("client", "connection", -2, 0, "2.4.0", "Holds the commands about connections.", container, subs & CLIENT),
    top!("command", "server", -1, TABLE, "2.8.13", "Describes all commands.", introspect::info,
        tips UNORDERED, subs &COMMAND),
    top!(
        "acl",
        "server",
        -2,
        0,
        "6.0.0",
        "Holds the commands about users and their rights.",
        container,
        subs & ACL_TABLE
    ),
    top!("sentinel", "sentinel", -2, ADMIN, "2.8.4", "Holds the commands of Sentinel.", container, subs & SENTINEL),
    top!("shutdown", "server", -1, ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY, "1.0.0",
        "Ends the process.", connection::shutdown, history &[("7.0.0", "Takes NOW, FORCE and ABORT.")], args SHUTDOWN),
]);

const KILL: &[Arg] = &[one_of(
    "filter",
    &[
        text("old-format").shown("ip:port").deprecated("2.8.12"),
        one_of(
            "new-format",
            &[
                number("client-id").after("ID").since("2.8.12").optional(),
                one_of("client-type", KILL_TYPES).after("TYPE").since("2.8.12").optional(),
                text("username").after("USER").optional(),
                text("addr").shown("ip:port").after("ADDR").optional(),
                text("laddr").shown("ip:port").after("LADDR").since("6.2.0").optional(),
                one_of("skipme", &[word("yes", "YES"), word("no", "NO")]).after("SKIPME").optional(),
                number("maxage").after("MAXAGE").since("7.4.0").optional(),
            ],
        )
        .multiple(),
    ],
)];
const KILL_TYPES: &[Arg] = &[
    word("normal", "NORMAL"),
    word("master", "MASTER").since("3.2.0"),
    word("slave", "SLAVE"),
    word("replica", "REPLICA").since("5.0.0"),
    word("pubsub", "PUBSUB"),
];
const KILL_HISTORY: &[(&str, &str)] = &[
    ("2.8.12", "Takes filters besides an address."),
    ("2.8.12", "Takes ID."),
    ("3.2.0", "TYPE may be master."),
    ("5.0.0", "TYPE slave is called replica; both are understood."),
    ("6.2.0", "Takes LADDR."),
    ("7.4.0", "Takes MAXAGE."),
];
const LIST: &[Arg] = &[
    one_of(
        "client-type",
        &[word("normal", "NORMAL"), word("master", "MASTER"), word("replica", "REPLICA"), word("pubsub", "PUBSUB")],
    )
    .after("TYPE")
    .since("5.0.0")
    .optional(),
    number("client-id").after("ID").since("6.2.0").optional().multiple(),
];
const LIST_HISTORY: &[(&str, &str)] = &[
    ("2.8.12", "Shows id."),
    ("5.0.0", "Takes TYPE."),
    ("6.0.0", "Shows user."),
    ("6.2.0", "Shows argv-mem, tot-mem, laddr and redir, and takes ID."),
    ("7.0.0", "Shows resp, multi-mem, rbs and rbp."),
    ("7.0.3", "Shows ssub."),
    ("7.2.0", "Shows lib-name and lib-ver."),
    ("7.4.0", "Shows watch."),
];
const PAUSE: &[Arg] =
    &[number("timeout"), one_of("mode", &[word("write", "WRITE"), word("all", "ALL")]).since("6.2.0").optional()];
const TRACKING: &[Arg] = &[
    one_of("status", ON_OFF),
    number("client-id").after("REDIRECT").optional(),
    text("prefix").after("PREFIX").optional().multiple().multiple_token(),
    word("bcast", "BCAST").optional(),
    word("optin", "OPTIN").optional(),
    word("optout", "OPTOUT").optional(),
    word("noloop", "NOLOOP").optional(),
];
const UNBLOCK: &[Arg] =
    &[number("client-id"), one_of("unblock-type", &[word("timeout", "TIMEOUT"), word("error", "ERROR")]).optional()];

static CLIENT: Table = Table::new(&[
    client!(
        "caching",
        3,
        OWN,
        "6.0.0",
        "O(1)",
        &[one_of("mode", &[word("yes", "YES"), word("no", "NO")])],
        "Says whether the next command is to be tracked.",
        client_cmd::caching
    ),
    client!("getname", 2, OWN, "2.6.9", "O(1)", NONE, "The name of this connection.", client_cmd::getname),
    client!(
        "getredir",
        2,
        OWN,
        "6.0.0",
        "O(1)",
        NONE,
        "The client that tracking is redirected to.",
        client_cmd::getredir
    ),
    client!("help", 2, TABLE, "5.0.0", "O(1)", NONE, "Prints this list.", introspect::help),
    client!("id", 2, OWN, "5.0.0", "O(1)", NONE, "The number of this connection.", client_cmd::id),
    client!("info", 2, OWN, "6.2.0", "O(1)", NONE, "Describes this connection.", client_cmd::info, tips UNSTABLE),
    client!(
        "kill",
        -3,
        OTHERS,
        "2.4.0",
        "O(N) in connections",
        KILL,
        "Closes the connections that meet all conditions.",
        client_cmd::kill, history KILL_HISTORY
    ),
    client!("list", -2, OTHERS, "2.4.0", "O(N) in connections", LIST,
        "Describes connections, one a line.", client_cmd::list, tips UNSTABLE, history LIST_HISTORY),
    client!(
        "no-evict",
        3,
        OTHERS,
        "7.0.0",
        "O(1)",
        &[one_of("enabled", ON_OFF)],
        "Spares this connection when memory is short.",
        client_cmd::no_evict
    ),
    client!(
        "pause",
        -3,
        OTHERS,
        "3.0.0",
        "O(1)",
        PAUSE,
        "Accepted for compatibility: a Sentinel pauses nobody.",
        client_cmd::pause,
        history & [("6.2.0", "Takes a mode, WRITE or ALL.")]
    ),
    client!(
        "reply",
        3,
        OWN,
        "3.2.0",
        "O(1)",
        &[one_of("action", &[word("on", "ON"), word("off", "OFF"), word("skip", "SKIP")])],
        "Says whether this connection wants replies.",
        client_cmd::reply
    ),
    client!("setinfo", 4, OWN, "7.2.0", "O(1)", &[one_of("attr", &[text("libname").after("LIB-NAME"), text("libver").after("LIB-VER")])],
        "Notes the client library and its version.", client_cmd::setinfo, tips CHANGES),
    client!("setname", 3, OWN, "2.6.9", "O(1)", &[text("connection-name")], "Names this connection.", client_cmd::setname,
        tips CHANGES),
    client!(
        "tracking",
        -3,
        OWN,
        "6.0.0",
        "O(1)",
        TRACKING,
        "Sets client-side caching; a Sentinel has no keys, so nothing is ever invalidated.",
        client_cmd::tracking
    ),
    client!(
        "trackinginfo",
        2,
        OWN,
        "6.2.0",
        "O(1)",
        NONE,
        "Describes the tracking of this connection.",
        client_cmd::trackinginfo
    ),
    client!(
        "unblock",
        -3,
        OTHERS,
        "5.0.0",
        "O(1)",
        UNBLOCK,
        "Accepted for compatibility: nobody is ever blocked here.",
        client_cmd::unblock
    ),
    client!("unpause", 2, OTHERS, "6.2.0", "O(1)", NONE, "Ends a pause.", client_cmd::unpause),
]);

const NAMES: &[Arg] = &[text("command-name").optional().multiple()];
const REQUEST: &[Arg] = &[text("command"), text("arg").optional().multiple()];
const FILTERBY: &[Arg] = &[one_of(
    "filterby",
    &[text("module-name").after("MODULE"), text("category").after("ACLCAT"), pattern("pattern").after("PATTERN")],
)
.after("FILTERBY")
.optional()];

static COMMAND: Table = Table::new(&[
    command!("count", 2, TABLE, "2.8.13", "O(1)", NONE, "How many commands there are.", introspect::count),
    command!("docs", -2, TABLE, "7.0.0", "O(N) in commands", NAMES, "Explains commands.",
        introspect::docs, tips UNORDERED),
    command!("getkeys", -3, TABLE, "2.8.13", "O(1)", REQUEST, "Finds the keys in a request.", introspect::getkeys),
    command!(
        "getkeysandflags",
        -3,
        TABLE,
        "7.0.0",
        "O(1)",
        REQUEST,
        "Finds the keys in a request and how they are used.",
        introspect::getkeys
    ),
    command!("help", 2, TABLE, "5.0.0", "O(1)", NONE, "Prints this list.", introspect::help),
    command!("info", -2, TABLE, "2.8.13", "O(N) in commands", NAMES,
        "Arity, flags and categories of commands.", introspect::info, tips UNORDERED, history &[("7.0.0", "May be sent without a name, for all commands.")]),
    command!("list", -2, TABLE, "7.0.0", "O(N) in commands", FILTERBY,
        "The names of commands.", introspect::list, tips UNORDERED),
]);

static ACL_TABLE: Table = Table::new(&[
    acl!(
        "cat",
        -2,
        ACL,
        "6.0.0",
        "O(1)",
        &[text("category").optional()],
        "The categories, or the commands of one.",
        acl_cmd::cat
    ),
    acl!("deluser", -3, ACL_ADMIN, "6.0.0", "O(1)", &[text("username").multiple()], "Deletes users and closes their connections.", acl_cmd::deluser, tips CHANGES),
    acl!(
        "dryrun",
        -4,
        ACL_ADMIN,
        "7.0.0",
        "O(1)",
        &[text("username"), text("command"), text("arg").optional().multiple()],
        "Whether a user may run a command; it is not run.",
        acl_cmd::dryrun
    ),
    acl!(
        "genpass",
        -2,
        ACL,
        "6.0.0",
        "O(1)",
        &[number("bits").optional()],
        "A random password in hexadecimal digits, of 256 bits unless told otherwise.",
        acl_cmd::genpass
    ),
    acl!(
        "getuser",
        3,
        ACL_ADMIN,
        "6.0.0",
        "O(N) in rules",
        &[text("username")],
        "All that is known about a user.",
        acl_cmd::getuser,
        history & [("6.2.0", "Shows channels."), ("7.0.0", "Shows selectors, and patterns as rules.")]
    ),
    acl!("help", 2, LOADING | STALE, "6.0.0", "O(1)", NONE, "Prints this list.", introspect::help),
    acl!(
        "list",
        2,
        ACL_ADMIN,
        "6.0.0",
        "O(N) in users",
        NONE,
        "The users with their rules, as a file has them.",
        acl_cmd::list
    ),
    acl!(
        "load",
        2,
        ACL_ADMIN,
        "6.0.0",
        "O(N) in users",
        NONE,
        "Takes all users from the ACL file, or none.",
        acl_cmd::load
    ),
    acl!(
        "log",
        -2,
        ACL_ADMIN,
        "6.0.0",
        "O(N) in entries",
        &[one_of("operation", &[number("count"), word("reset", "RESET")]).optional()],
        "What was refused lately.",
        acl_cmd::log,
        history & [("7.2.0", "Shows entry-id, timestamp-created and timestamp-last-updated.")]
    ),
    acl!("save", 2, ACL_ADMIN, "6.0.0", "O(N) in users", NONE, "Writes all users to the ACL file.", acl_cmd::save, tips CHANGES),
    acl!("setuser", -3, ACL_ADMIN, "6.0.0", "O(N) in rules", &[text("username"), text("rule").optional().multiple()], "Makes a user or changes it, by all rules or by none.", acl_cmd::setuser, tips CHANGES, history &[("6.2.0", "Takes channels."), ("7.0.0", "Takes selectors and rights by key.")]),
    acl!("users", 2, ACL_ADMIN, "6.0.0", "O(N) in users", NONE, "The names of the users.", acl_cmd::users),
    acl!("whoami", 2, ACL, "6.0.0", "O(1)", NONE, "The user of this connection.", acl_cmd::whoami),
]);

const MASTER: &[Arg] = &[text("master-name")];
const FAILOVER: &[Arg] = &[text("master-name"), word("coordinated", "COORDINATED").since("9.0.0").optional()];
const PARAMETER: &[Arg] = &[text("parameter"), text("value")];
const CONFIG: &[Arg] =
    &[one_of("action", &[block("set", PARAMETER).after("SET").multiple(), text("parameter").after("GET").multiple()])];
const QUESTION: &[Arg] = &[text("ip"), number("port"), number("current-epoch"), text("runid")];
const SET: &[Arg] = &[text("master-name"), block("data", &[text("option"), text("value")]).multiple()];
const SIMULATE: &[Arg] =
    &[one_of("mode", &[word("crash-after-election", ""), word("crash-after-promotion", ""), word("help", "")])
        .optional()
        .multiple()];

static SENTINEL: Table = Table::new(&[
    sentinel!(
        "ckquorum",
        3,
        ADMIN,
        "2.8.4",
        "",
        MASTER,
        "Checks that enough Sentinels can be reached to judge the master and to authorize a failover.",
        admin::ckquorum
    ),
    sentinel!(
        "config",
        -4,
        ADMIN,
        "6.2.0",
        "O(N) in parameters",
        CONFIG,
        "Shows or changes settings of this Sentinel.",
        set::config,
        history & [("7.2.0", "Takes several parameters.")]
    ),
    sentinel!(
        "debug",
        -2,
        ADMIN,
        "7.0.0",
        "O(N) in parameters",
        &[block("data", PARAMETER).optional().multiple()],
        "Shows or changes the periods and timeouts of the protocol.",
        set::debug
    ),
    sentinel!(
        "failover",
        -3,
        ADMIN,
        "2.8.4",
        "",
        FAILOVER,
        "Starts a failover although the master is alive. COORDINATED: the master hands over, and no write is lost.",
        admin::failover,
        history & [("9.0.0", "Takes COORDINATED, in Valkey.")]
    ),
    sentinel!(
        "failover-report",
        -2,
        ADMIN,
        "7.4.0",
        "O(N) in reports",
        &[text("master-name").optional()],
        "The last failovers as timelines: what happened when, who voted, who was refused and why.",
        report::failover_report
    ),
    sentinel!(
        "flushconfig",
        2,
        ADMIN,
        "2.8.4",
        "O(1)",
        NONE,
        "Writes the configuration file anew.",
        admin::flushconfig
    ),
    sentinel!(
        "get-master-addr-by-name",
        3,
        ADMIN,
        "2.8.4",
        "O(1)",
        MASTER,
        "Where the master is now: address and port.",
        sentinel::get_master_addr_by_name
    ),
    sentinel!(
        "get-primary-addr-by-name",
        3,
        ADMIN,
        "2.8.4",
        "O(1)",
        MASTER,
        "The same under Valkey's name.",
        sentinel::get_master_addr_by_name
    ),
    sentinel!("help", 2, LOADING | STALE, "6.2.0", "O(1)", NONE, "Prints this list.", introspect::help),
    sentinel!(
        "info-cache",
        -3,
        ADMIN,
        "3.2.0",
        "O(N) in instances",
        &[text("nodename").multiple()],
        "The last INFO of the masters and their replicas, and how old it is.",
        show::info_cache
    ),
    sentinel!(
        "is-master-down-by-addr",
        6,
        ADMIN,
        "2.8.4",
        "O(1)",
        QUESTION,
        "A peer asks whether we hold the master down and, with its run id, for our vote.",
        sentinel::is_master_down_by_addr
    ),
    sentinel!(
        "is-primary-down-by-addr",
        6,
        ADMIN,
        "2.8.4",
        "O(1)",
        QUESTION,
        "The same under Valkey's name.",
        sentinel::is_master_down_by_addr
    ),
    sentinel!("master", 3, ADMIN, "2.8.4", "O(1)", MASTER, "All that is known about a master.", show::master),
    sentinel!(
        "masters",
        2,
        ADMIN,
        "2.8.4",
        "O(N) in masters",
        NONE,
        "All that is known about every master.",
        show::masters
    ),
    sentinel!(
        "monitor",
        6,
        ADMIN,
        "2.8.4",
        "O(1)",
        &[text("name"), text("ip"), number("port"), number("quorum")],
        "Begins to watch a master.",
        admin::monitor
    ),
    sentinel!("myid", 2, ADMIN, "6.2.0", "O(1)", NONE, "The id of this Sentinel.", sentinel::myid),
    sentinel!(
        "pending-scripts",
        2,
        ADMIN,
        "2.8.4",
        "",
        NONE,
        "Scripts that run or wait to run.",
        show::pending_scripts
    ),
    sentinel!("primaries", 2, ADMIN, "2.8.4", "O(N) in masters", NONE, "MASTERS under Valkey's name.", show::masters),
    sentinel!("primary", 3, ADMIN, "2.8.4", "O(1)", MASTER, "MASTER under Valkey's name.", show::master),
    sentinel!("remove", 3, ADMIN, "2.8.4", "O(1)", MASTER, "Stops watching a master.", admin::remove),
    sentinel!(
        "replicas",
        3,
        ADMIN,
        "5.0.0",
        "O(N) in replicas",
        MASTER,
        "All that is known about the replicas of a master.",
        show::replicas
    ),
    sentinel!(
        "reset",
        3,
        ADMIN,
        "2.8.4",
        "O(N) in masters",
        &[pattern("pattern")],
        "Forgets replicas, peers and the state of all masters whose names match.",
        admin::reset
    ),
    sentinel!(
        "sentinels",
        3,
        ADMIN,
        "2.8.4",
        "O(N) in Sentinels",
        MASTER,
        "All that is known about the other Sentinels of a master.",
        show::sentinels
    ),
    sentinel!("set", -5, ADMIN, "2.8.4", "O(1)", SET, "Changes settings of a master.", set::set),
    sentinel!(
        "simulate-failure",
        -3,
        ADMIN,
        "3.2.0",
        "",
        SIMULATE,
        "Ends this process at a chosen moment, for tests.",
        admin::simulate_failure
    ),
    sentinel!(
        "slaves",
        3,
        ADMIN,
        "2.8.0",
        "O(N) in replicas",
        MASTER,
        "The old name of REPLICAS.",
        show::replicas,
        replaced("5.0.0", "SENTINEL REPLICAS")
    ),
]);
