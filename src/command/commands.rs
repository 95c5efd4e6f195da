//! The rows of the command table: what a Sentinel answers, how many words it takes and how it is shown.
//!
//! Names, arities, flags and tips are facts of the wire; summaries are our own words. A new command is one
//! row here and one handler.

use super::call::{Call, Handler, wrong_arity};
use super::sentinel::{self, admin, set, show};
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
     $(, tips $tips:expr)? $(, usage $usage:literal)? $(, subs $subs:expr)?) => {{
        #[allow(unused_mut, unused_assignments, reason = "only some rows have the optional parts")]
        const ROW: Command = {
            let (mut tips, mut usage, mut subs): (&[&str], &str, Option<&'static Table>) = (&[], "", None);
            $(tips = $tips;)?
            $(usage = $usage;)?
            $(subs = Some($subs);)?
            let handler: Handler = $handler;
            Command {
                name: $name, full: $name, arity: $arity, flags: $flags, tips, since: $since, group: $group,
                complexity: "O(1)", usage, summary: $summary, subs, handler,
            }
        };
        ROW
    }};
}

#[rustfmt::skip]
macro_rules! sub {
    ($container:literal, $group:literal, $name:literal, $arity:literal, $flags:expr, $since:literal, $complexity:literal,
     $usage:literal, $summary:literal, $handler:expr $(, tips $tips:expr)?) => {{
        #[allow(unused_mut, unused_assignments, reason = "only some rows have tips")]
        const ROW: Command = {
            let mut tips: &[&str] = &[];
            $(tips = $tips;)?
            let handler: Handler = $handler;
            Command {
                name: $name, full: concat!($container, "|", $name), arity: $arity, flags: $flags, tips, since: $since,
                group: $group, complexity: $complexity, usage: $usage, summary: $summary, subs: None, handler,
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

/// Everything that is answered; whatever is not here is an unknown command.
pub static COMMANDS: Table = Table::new(&[
    top!("ping", "connection", -1, FAST | CAT_CONNECTION, "1.0.0", "Says that the server is there.", connection::ping,
        tips &["request_policy:all_shards", "response_policy:all_succeeded"], usage "[<message>]"),
    top!("hello", "connection", -1, LOGIN, "6.0.0", "Chooses the protocol, and may log in and name the connection.",
        connection::hello, usage "[<protover> [AUTH <username> <password>] [SETNAME <clientname>]]"),
    top!("auth", "connection", -2, LOGIN, "1.0.0", "Logs in.", connection::auth, usage "[<username>] <password>"),
    top!("info", "server", -1, LOADING | STALE | CAT_DANGEROUS, "1.0.0", "Facts and counters of this Sentinel.",
        info::info,
        tips &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        usage "[<section> ...]"),
    top!(
        "role",
        "server",
        1,
        NOSCRIPT | LOADING | STALE | FAST | CAT_ADMIN | CAT_DANGEROUS,
        "2.8.12",
        "The role of this node, and the masters it watches.",
        connection::role
    ),
    top!("publish", "pubsub", 3, PUBSUB | LOADING | STALE | FAST, "2.0.0", "Takes in the hello of a peer.",
        connection::publish, usage "<channel> <message>"),
    top!("subscribe", "pubsub", -2, LISTEN, "2.0.0", "Listens to channels.", connection::subscribe,
        usage "<channel> [<channel> ...]"),
    top!("psubscribe", "pubsub", -2, LISTEN, "2.0.0", "Listens to channels that match patterns.",
        connection::psubscribe, usage "<pattern> [<pattern> ...]"),
    top!("unsubscribe", "pubsub", -1, LISTEN, "2.0.0", "Stops listening to channels.", connection::unsubscribe,
        usage "[<channel> ...]"),
    top!("punsubscribe", "pubsub", -1, LISTEN, "2.0.0", "Stops listening to patterns.", connection::punsubscribe,
        usage "[<pattern> ...]"),
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
        "Ends the process.", connection::shutdown, usage "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]"),
]);

static CLIENT: Table = Table::new(&[
    client!(
        "caching",
        3,
        OWN,
        "6.0.0",
        "O(1)",
        "<YES|NO>",
        "Says whether the next command is to be tracked.",
        client_cmd::caching
    ),
    client!("getname", 2, OWN, "2.6.9", "O(1)", "", "The name of this connection.", client_cmd::getname),
    client!(
        "getredir",
        2,
        OWN,
        "6.0.0",
        "O(1)",
        "",
        "The client that tracking is redirected to.",
        client_cmd::getredir
    ),
    client!("help", 2, TABLE, "5.0.0", "O(1)", "", "Prints this list.", introspect::help),
    client!("id", 2, OWN, "5.0.0", "O(1)", "", "The number of this connection.", client_cmd::id),
    client!("info", 2, OWN, "6.2.0", "O(1)", "", "Describes this connection.", client_cmd::info, tips UNSTABLE),
    client!(
        "kill",
        -3,
        OTHERS,
        "2.4.0",
        "O(N) in connections",
        "<ip:port>|<[ID <id>] [TYPE <type>] [USER <name>] [ADDR <ip:port>] [LADDR <ip:port>] [MAXAGE <seconds>] \
         [SKIPME <yes|no>]>",
        "Closes the connections that meet all conditions.",
        client_cmd::kill
    ),
    client!("list", -2, OTHERS, "2.4.0", "O(N) in connections", "[TYPE <type>|ID <id> [<id> ...]]",
        "Describes connections, one a line.", client_cmd::list, tips UNSTABLE),
    client!(
        "no-evict",
        3,
        OTHERS,
        "7.0.0",
        "O(1)",
        "<ON|OFF>",
        "Spares this connection when memory is short.",
        client_cmd::no_evict
    ),
    client!(
        "pause",
        -3,
        OTHERS,
        "3.0.0",
        "O(1)",
        "<timeout> [WRITE|ALL]",
        "Accepted for compatibility: a Sentinel pauses nobody.",
        client_cmd::pause
    ),
    client!(
        "reply",
        3,
        OWN,
        "3.2.0",
        "O(1)",
        "<ON|OFF|SKIP>",
        "Says whether this connection wants replies.",
        client_cmd::reply
    ),
    client!("setinfo", 4, OWN, "7.2.0", "O(1)", "<LIB-NAME|LIB-VER> <value>",
        "Notes the client library and its version.", client_cmd::setinfo, tips CHANGES),
    client!("setname", 3, OWN, "2.6.9", "O(1)", "<name>", "Names this connection.", client_cmd::setname,
        tips CHANGES),
    client!(
        "tracking",
        -3,
        OWN,
        "6.0.0",
        "O(1)",
        "<ON|OFF> [REDIRECT <id>] [BCAST] [PREFIX <prefix> ...] [OPTIN] [OPTOUT] [NOLOOP]",
        "Sets client-side caching; a Sentinel has no keys, so nothing is ever invalidated.",
        client_cmd::tracking
    ),
    client!(
        "trackinginfo",
        2,
        OWN,
        "6.2.0",
        "O(1)",
        "",
        "Describes the tracking of this connection.",
        client_cmd::trackinginfo
    ),
    client!(
        "unblock",
        -3,
        OTHERS,
        "5.0.0",
        "O(1)",
        "<id> [TIMEOUT|ERROR]",
        "Accepted for compatibility: nobody is ever blocked here.",
        client_cmd::unblock
    ),
    client!("unpause", 2, OTHERS, "6.2.0", "O(1)", "", "Ends a pause.", client_cmd::unpause),
]);

static COMMAND: Table = Table::new(&[
    command!("count", 2, TABLE, "2.8.13", "O(1)", "", "How many commands there are.", introspect::count),
    command!("docs", -2, TABLE, "7.0.0", "O(N) in commands", "[<command> ...]", "Explains commands.",
        introspect::docs, tips UNORDERED),
    command!(
        "getkeys",
        -3,
        TABLE,
        "2.8.13",
        "O(1)",
        "<command> [<arg> ...]",
        "Finds the keys in a request.",
        introspect::getkeys
    ),
    command!(
        "getkeysandflags",
        -3,
        TABLE,
        "7.0.0",
        "O(1)",
        "<command> [<arg> ...]",
        "Finds the keys in a request and how they are used.",
        introspect::getkeys
    ),
    command!("help", 2, TABLE, "5.0.0", "O(1)", "", "Prints this list.", introspect::help),
    command!("info", -2, TABLE, "2.8.13", "O(N) in commands", "[<command> ...]",
        "Arity, flags and categories of commands.", introspect::info, tips UNORDERED),
    command!("list", -2, TABLE, "7.0.0", "O(N) in commands", "[FILTERBY <ACLCAT <category>|PATTERN <glob>|MODULE <name>>]",
        "The names of commands.", introspect::list, tips UNORDERED),
]);

static ACL_TABLE: Table = Table::new(&[
    acl!("cat", -2, ACL, "6.0.0", "O(1)", "[<category>]", "The categories, or the commands of one.", acl_cmd::cat),
    acl!("deluser", -3, ACL_ADMIN, "6.0.0", "O(1)", "<username> [<username> ...]", "Deletes users and closes their connections.", acl_cmd::deluser, tips CHANGES),
    acl!(
        "dryrun",
        -4,
        ACL_ADMIN,
        "7.0.0",
        "O(1)",
        "<username> <command> [<arg> ...]",
        "Whether a user may run a command; it is not run.",
        acl_cmd::dryrun
    ),
    acl!(
        "genpass",
        -2,
        ACL,
        "6.0.0",
        "O(1)",
        "[<bits>]",
        "A random password in hexadecimal digits, of 256 bits unless told otherwise.",
        acl_cmd::genpass
    ),
    acl!(
        "getuser",
        3,
        ACL_ADMIN,
        "6.0.0",
        "O(N) in rules",
        "<username>",
        "All that is known about a user.",
        acl_cmd::getuser
    ),
    acl!("help", 2, LOADING | STALE, "6.0.0", "O(1)", "", "Prints this list.", introspect::help),
    acl!(
        "list",
        2,
        ACL_ADMIN,
        "6.0.0",
        "O(N) in users",
        "",
        "The users with their rules, as a file has them.",
        acl_cmd::list
    ),
    acl!(
        "load",
        2,
        ACL_ADMIN,
        "6.0.0",
        "O(N) in users",
        "",
        "Takes all users from the ACL file, or none.",
        acl_cmd::load
    ),
    acl!("log", -2, ACL_ADMIN, "6.0.0", "O(N) in entries", "[<count>|RESET]", "What was refused lately.", acl_cmd::log),
    acl!("save", 2, ACL_ADMIN, "6.0.0", "O(N) in users", "", "Writes all users to the ACL file.", acl_cmd::save, tips CHANGES),
    acl!("setuser", -3, ACL_ADMIN, "6.0.0", "O(N) in rules", "<username> [<rule> [<rule> ...]]", "Makes a user or changes it, by all rules or by none.", acl_cmd::setuser, tips CHANGES),
    acl!("users", 2, ACL_ADMIN, "6.0.0", "O(N) in users", "", "The names of the users.", acl_cmd::users),
    acl!("whoami", 2, ACL, "6.0.0", "O(1)", "", "The user of this connection.", acl_cmd::whoami),
]);

static SENTINEL: Table = Table::new(&[
    sentinel!(
        "ckquorum",
        3,
        ADMIN,
        "2.8.4",
        "",
        "<master-name>",
        "Checks that enough Sentinels can be reached to judge the master and to authorize a failover.",
        admin::ckquorum
    ),
    sentinel!(
        "config",
        -4,
        ADMIN,
        "6.2.0",
        "O(N) in parameters",
        "GET <glob> [<glob> ...]|SET <param> <value> [<param> <value> ...]",
        "Shows or changes settings of this Sentinel.",
        set::config
    ),
    sentinel!(
        "debug",
        -2,
        ADMIN,
        "7.0.0",
        "O(N) in parameters",
        "[<param> <milliseconds> ...]",
        "Shows or changes the periods and timeouts of the protocol.",
        set::debug
    ),
    sentinel!(
        "failover",
        3,
        ADMIN,
        "2.8.4",
        "",
        "<master-name>",
        "Starts a failover although the master is alive.",
        admin::failover
    ),
    sentinel!("flushconfig", 2, ADMIN, "2.8.4", "O(1)", "", "Writes the configuration file anew.", admin::flushconfig),
    sentinel!(
        "get-master-addr-by-name",
        3,
        ADMIN,
        "2.8.4",
        "O(1)",
        "<master-name>",
        "Where the master is now: address and port.",
        sentinel::get_master_addr_by_name
    ),
    sentinel!(
        "get-primary-addr-by-name",
        3,
        ADMIN,
        "2.8.4",
        "O(1)",
        "<master-name>",
        "The same under Valkey's name.",
        sentinel::get_master_addr_by_name
    ),
    sentinel!("help", 2, LOADING | STALE, "6.2.0", "O(1)", "", "Prints this list.", introspect::help),
    sentinel!(
        "info-cache",
        -3,
        ADMIN,
        "3.2.0",
        "O(N) in instances",
        "<master-name> [<master-name> ...]",
        "The last INFO of the masters and their replicas, and how old it is.",
        show::info_cache
    ),
    sentinel!(
        "is-master-down-by-addr",
        6,
        ADMIN,
        "2.8.4",
        "O(1)",
        "<ip> <port> <current-epoch> <runid|*>",
        "A peer asks whether we hold the master down and, with its run id, for our vote.",
        sentinel::is_master_down_by_addr
    ),
    sentinel!(
        "is-primary-down-by-addr",
        6,
        ADMIN,
        "2.8.4",
        "O(1)",
        "<ip> <port> <current-epoch> <runid|*>",
        "The same under Valkey's name.",
        sentinel::is_master_down_by_addr
    ),
    sentinel!("master", 3, ADMIN, "2.8.4", "O(1)", "<master-name>", "All that is known about a master.", show::master),
    sentinel!(
        "masters",
        2,
        ADMIN,
        "2.8.4",
        "O(N) in masters",
        "",
        "All that is known about every master.",
        show::masters
    ),
    sentinel!(
        "monitor",
        6,
        ADMIN,
        "2.8.4",
        "O(1)",
        "<master-name> <host> <port> <quorum>",
        "Begins to watch a master.",
        admin::monitor
    ),
    sentinel!("myid", 2, ADMIN, "6.2.0", "O(1)", "", "The id of this Sentinel.", sentinel::myid),
    sentinel!("pending-scripts", 2, ADMIN, "2.8.4", "", "", "Scripts that run or wait to run.", show::pending_scripts),
    sentinel!("primaries", 2, ADMIN, "2.8.4", "O(N) in masters", "", "MASTERS under Valkey's name.", show::masters),
    sentinel!("primary", 3, ADMIN, "2.8.4", "O(1)", "<master-name>", "MASTER under Valkey's name.", show::master),
    sentinel!("remove", 3, ADMIN, "2.8.4", "O(1)", "<master-name>", "Stops watching a master.", admin::remove),
    sentinel!(
        "replicas",
        3,
        ADMIN,
        "5.0.0",
        "O(N) in replicas",
        "<master-name>",
        "All that is known about the replicas of a master.",
        show::replicas
    ),
    sentinel!(
        "reset",
        3,
        ADMIN,
        "2.8.4",
        "O(N) in masters",
        "<glob>",
        "Forgets replicas, peers and the state of all masters whose names match.",
        admin::reset
    ),
    sentinel!(
        "sentinels",
        3,
        ADMIN,
        "2.8.4",
        "O(N) in Sentinels",
        "<master-name>",
        "All that is known about the other Sentinels of a master.",
        show::sentinels
    ),
    sentinel!(
        "set",
        -5,
        ADMIN,
        "2.8.4",
        "O(1)",
        "<master-name> <option> <value> [<option> <value> ...]",
        "Changes settings of a master.",
        set::set
    ),
    sentinel!(
        "simulate-failure",
        -3,
        ADMIN,
        "3.2.0",
        "",
        "[CRASH-AFTER-ELECTION] [CRASH-AFTER-PROMOTION] [HELP]",
        "Ends this process at a chosen moment, for tests.",
        admin::simulate_failure
    ),
    sentinel!(
        "slaves",
        3,
        ADMIN,
        "2.8.0",
        "O(N) in replicas",
        "<master-name>",
        "The old name of REPLICAS.",
        show::replicas
    ),
]);
