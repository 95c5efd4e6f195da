//! The table of directives: one row per name that may begin a line, in redis.conf or behind `sentinel`. Reading, rewriting
//! and the check that `conf/sentinel.conf` explains everything work from it.

use crate::base::limits;

/// One name that a line may begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Lower case; without the leading `sentinel`.
    pub name: &'static str,
    pub scope: Scope,
    /// The words that follow, as a manual writes them: `<word>`, `[optional]`, `[repeated…]`, `<at-least-one…>`.
    pub usage: &'static str,
    pub kind: Kind,
    pub meaning: Meaning,
    /// As it would be written; empty is unset.
    pub default: &'static str,
    /// One line for people.
    pub about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A line of its own, as in redis.conf.
    Server,
    /// `sentinel <name> …`, about this Sentinel. Loaded before the masters, wherever it stands.
    Sentinel,
    /// `sentinel <name> <master> …`.
    Master,
}

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number between the two, both included.
    Integer(i64, i64),
    /// A number of bytes between the two, which may have a unit: `1kb` is 1024, `1k` is 1000.
    Memory(i64, i64),
    /// A number read as C's strtoll reads it, as Sentinel always did: `12x` is 12.
    Number,
    YesNo,
    OneOf(&'static [&'static str]),
    Octal,
    Text,
    /// Any bytes; never shown.
    Secret,
    Words,
    /// A host, a port and what belongs to them.
    Node,
    /// Not looked at.
    Any,
}

/// What a directive does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Used,
    /// Accepted, because files hold it; a Sentinel has no use for it.
    Ignored,
    /// It would mean something, but this version does not do it.
    NotYet,
}

impl Directive {
    /// True when that many words may follow.
    #[must_use]
    pub fn takes(&self, count: usize) -> bool {
        let (mut least, mut most) = (0, 0);
        // Bytes, as this is asked of each line of the file: of those of `…` the first is enough, nothing else has it.
        for word in self.usage.as_bytes().split(|&byte| byte == b' ').filter(|word| !word.is_empty()) {
            least += usize::from(word[0] != b'[');
            most = if word.contains(&"…".as_bytes()[0]) { usize::MAX } else { usize::saturating_add(most, 1) };
        }
        (least..=most).contains(&count)
    }

    /// True for a directive of several words that may also come as one word with blanks in it.
    #[must_use]
    pub fn is_split(&self) -> bool {
        const SPLIT: [&str; 5] =
            ["bind", "client-output-buffer-limit", "latency-tracking-info-percentiles", "oom-score-adj-values", "save"];
        self.scope == Scope::Server && SPLIT.contains(&self.name)
    }

    /// True when its value is a password, be it one that a Sentinel has no use for.
    #[must_use]
    pub fn holds_password(&self) -> bool {
        self.kind == Kind::Secret || ["masterauth", "primaryauth"].contains(&self.name)
    }

    /// As it is written in a file, with `sentinel` where that belongs.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.scope == Scope::Server { self.name.into() } else { format!("sentinel {}", self.name) }
    }
}

/// No directive has a longer name, in bytes.
const LONGEST_NAME: usize = 48;

/// What a name in any letter case means, among the `sentinel` directives or among the others.
#[must_use]
pub fn find(sentinel: bool, name: &[u8]) -> Option<Directive> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lowered(name, &mut lower)?;
    let row = row(sentinel, lower).copied();
    row.or_else(|| if sentinel { None } else { find_ignored(lower) })
}

/// The row of a `sentinel` directive.
pub(super) fn find_sentinel(name: &[u8]) -> Option<&'static Directive> {
    row(true, lowered(name, &mut [0; LONGEST_NAME])?)
}

fn lowered<'a>(name: &[u8], room: &'a mut [u8; LONGEST_NAME]) -> Option<&'a [u8]> {
    let lower = room.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    Some(lower)
}

fn row(sentinel: bool, name: &[u8]) -> Option<&'static Directive> {
    let wanted = (sentinel, name);
    let found = DIRECTIVES.binary_search_by_key(&wanted, |row| (row.scope != Scope::Server, row.name.as_bytes()));
    found.ok().map(|index| &DIRECTIVES[index])
}

fn find_ignored(name: &[u8]) -> Option<Directive> {
    let named = |&(about, names): &(&'static str, &'static str)| {
        names.split(' ').find(|known| known.as_bytes() == name).map(|name| ignored(name, about))
    };
    IGNORED.iter().find_map(named)
}

const fn used(
    name: &'static str,
    usage: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Directive {
    Directive { name, scope: Scope::Server, usage, kind, meaning: Meaning::Used, default, about }
}

const fn whole(
    name: &'static str,
    usage: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Directive {
    Directive { name, scope: Scope::Sentinel, usage, kind, meaning: Meaning::Used, default, about }
}

const fn of_master(
    name: &'static str,
    usage: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Directive {
    Directive { name, scope: Scope::Master, usage, kind, meaning: Meaning::Used, default, about }
}

const fn ignored(name: &'static str, about: &'static str) -> Directive {
    Directive {
        name,
        scope: Scope::Server,
        usage: "<value…>",
        kind: Kind::Any,
        meaning: Meaning::Ignored,
        default: "",
        about,
    }
}

const fn not_yet(name: &'static str, usage: &'static str, about: &'static str) -> Directive {
    Directive { name, scope: Scope::Server, usage, kind: Kind::Any, meaning: Meaning::NotYet, default: "", about }
}

const fn gone(name: &'static str, usage: &'static str, about: &'static str) -> Directive {
    Directive { name, scope: Scope::Master, usage, kind: Kind::Any, meaning: Meaning::Ignored, default: "", about }
}

/// All but [`IGNORED`]. Sorted: first the plain directives, then those behind `sentinel`, each by name.
pub const DIRECTIVES: &[Directive] = &[
    used(
        "acl-pubsub-default",
        "<allchannels|resetchannels>",
        Kind::OneOf(&["allchannels", "resetchannels"]),
        "resetchannels",
        "whether a new user reaches all channels or none",
    ),
    used("aclfile", "<path>", Kind::Text, "", "a file with the users; then there are no user lines here"),
    used("acllog-max-len", "<entries>", Kind::Integer(0, i64::MAX), "128", "how many refusals are kept for ACL LOG"),
    used(
        "bind",
        "[<address>…]",
        Kind::Words,
        "* -::*",
        "the addresses to listen on; a leading - marks one that may be missing",
    ),
    used("bind-source-addr", "<address>", Kind::Text, "", "the local address of outgoing links"),
    used(
        "client-output-buffer-limit",
        "<class> <hard> <soft> <seconds> […]",
        Kind::Words,
        "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60",
        "how much may wait for a client that does not read, before it is cut off",
    ),
    used(
        "client-query-buffer-limit",
        "<bytes>",
        Kind::Memory(1024 * 1024, i64::MAX),
        "64mb",
        "how long a request may be; larger values than the default count as the default",
    ),
    used("daemonize", "<yes|no>", Kind::YesNo, "no", "go to the background"),
    used("dir", "<path>", Kind::Text, "", "the working directory, before any relative path is used"),
    used("include", "<path>", Kind::Text, "", "read another file in this place"),
    Directive {
        usage: "[value…]",
        ..ignored("latency-tracking-info-percentiles", "traces and debugging of a data server")
    },
    used("log-format", "<legacy|logfmt>", Kind::OneOf(&["legacy", "logfmt"]), "legacy", "the shape of log lines"),
    used(
        "log-timestamp-format",
        "<legacy|iso8601|milliseconds>",
        Kind::OneOf(&["legacy", "iso8601", "milliseconds"]),
        "legacy",
        "the shape of the time in log lines",
    ),
    used("logfile", "<path>", Kind::Text, "", "where the log goes; empty is standard output"),
    used(
        "loglevel",
        "<level>",
        Kind::OneOf(&["debug", "verbose", "notice", "warning", "nothing"]),
        "notice",
        "how much is logged",
    ),
    used(
        "max-new-connections-per-cycle",
        "<count>",
        Kind::Integer(1, limits::ACCEPTS_PER_TURN as i64),
        "1000",
        "how many connections are accepted before the others get their turn",
    ),
    not_yet("max-new-tls-connections-per-cycle", "<count>", "connections accepted per turn"),
    used(
        "maxclients",
        "<count>",
        Kind::Integer(1, 4_294_967_295),
        "10000",
        "how many clients may be connected at once",
    ),
    not_yet("mptcp", "<yes|no>", "multipath TCP"),
    used(
        "oom-score-adj",
        "<no|yes|relative|absolute>",
        Kind::OneOf(&["no", "yes", "relative", "absolute"]),
        "no",
        "whether we say how readily the kernel kills us when memory runs out",
    ),
    used(
        "oom-score-adj-values",
        "<ours> <of-replicas> <of-children>",
        Kind::Words,
        "0 200 800",
        "the first is ours; a Sentinel has no use for the others",
    ),
    used("pidfile", "<path>", Kind::Text, "", "where the process id is written"),
    used("port", "<port>", Kind::Integer(0, 65_535), "26379", "the TCP port; 0 for none"),
    used("protected-mode", "<yes|no>", Kind::YesNo, "no", "refuse clients from other hosts while no password is set"),
    used(
        "rename-command",
        "<command> <new-name>",
        Kind::Words,
        "",
        "another name for a command of ours; empty takes it away",
    ),
    used(
        "requirepass",
        "<password>",
        Kind::Secret,
        "",
        "the password clients must give; also offered to the other Sentinels unless sentinel-pass is set",
    ),
    Directive { usage: "[value…]", ..ignored("save", "data files") },
    used("socket-mark-id", "<mark>", Kind::Integer(0, 4_294_967_295), "0", "a mark on our packets; 0 is none"),
    used(
        "supervised",
        "<no|systemd|upstart|auto>",
        Kind::OneOf(&["upstart", "systemd", "auto", "no"]),
        "no",
        "tell the service manager when the Sentinel is ready",
    ),
    used("syslog-enabled", "<yes|no>", Kind::YesNo, "no", "log to syslog as well"),
    used(
        "syslog-facility",
        "<facility>",
        Kind::OneOf(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]),
        "local0",
        "the facility in syslog",
    ),
    used("syslog-ident", "<name>", Kind::Text, "redis", "the name in syslog"),
    used(
        "tcp-backlog",
        "<connections>",
        Kind::Integer(0, 2_147_483_647),
        "511",
        "how many connections may wait to be accepted",
    ),
    used(
        "tcp-keepalive",
        "<seconds>",
        Kind::Integer(0, 2_147_483_647),
        "300",
        "the period of TCP keep-alive probes to clients; 0 is off",
    ),
    used("timeout", "<seconds>", Kind::Integer(0, 2_147_483_647), "0", "drop clients idle for so long; 0 is never"),
    used(
        "tls-auth-clients",
        "<yes|no|optional>",
        Kind::OneOf(&["no", "yes", "optional"]),
        "yes",
        "whether clients on the TLS port must show a certificate",
    ),
    not_yet("tls-auth-clients-user", "<field>", "the user that a client's certificate stands for"),
    not_yet("tls-auto-reload-interval", "<seconds>", "certificates read again from time to time (SIGHUP does it here)"),
    used("tls-ca-cert-dir", "<path>", Kind::Text, "", "a folder with certificates of authorities"),
    used("tls-ca-cert-file", "<path>", Kind::Text, "", "the certificates of the authorities to believe"),
    used("tls-cert-file", "<path>", Kind::Text, "", "our certificate, and what leads from it to the authority"),
    used("tls-ciphers", "<list>", Kind::Text, "", "the cipher suites of TLS 1.2, in OpenSSL's words"),
    used("tls-ciphersuites", "<list>", Kind::Text, "", "the cipher suites of TLS 1.3"),
    used("tls-client-cert-file", "<path>", Kind::Text, "", "our certificate on outgoing links, when it is another one"),
    used("tls-client-key-file", "<path>", Kind::Text, "", "the key of tls-client-cert-file"),
    used("tls-client-key-file-pass", "<password>", Kind::Secret, "", "the password of tls-client-key-file"),
    used("tls-dh-params-file", "<path>", Kind::Text, "", "accepted, without effect"),
    used("tls-key-file", "<path>", Kind::Text, "", "the key of tls-cert-file"),
    used("tls-key-file-pass", "<password>", Kind::Secret, "", "the password of tls-key-file"),
    used("tls-port", "<port>", Kind::Integer(0, 65_535), "0", "the TCP port for TLS; 0 for none"),
    used("tls-prefer-server-ciphers", "<yes|no>", Kind::YesNo, "no", "our order of cipher suites counts"),
    used("tls-protocols", "<list>", Kind::Text, "TLSv1.2 TLSv1.3", "the versions of TLS that may be used"),
    used("tls-replication", "<yes|no>", Kind::YesNo, "no", "links to servers and to the other Sentinels use TLS"),
    used(
        "tls-session-cache-size",
        "<count>",
        Kind::Integer(0, 2_147_483_647),
        "20480",
        "how many sessions are kept to be resumed; 0 for no limit",
    ),
    used(
        "tls-session-cache-timeout",
        "<seconds>",
        Kind::Integer(0, 2_147_483_647),
        "300",
        "how long a session can be resumed",
    ),
    used("tls-session-caching", "<yes|no>", Kind::YesNo, "yes", "clients may resume sessions"),
    used("unixsocket", "<path>", Kind::Text, "", "a Unix socket to listen on as well"),
    used("unixsocketgroup", "<group>", Kind::Text, "", "the group that the Unix socket belongs to"),
    used(
        "unixsocketperm",
        "<octal>",
        Kind::Octal,
        "0",
        "the permissions of the Unix socket; 0 leaves them to the umask",
    ),
    used("user", "<name> [rule…]", Kind::Words, "", "a user, its passwords and what it may do"),
    whole(
        "announce-hostnames",
        "<yes|no>",
        Kind::YesNo,
        "no",
        "hand out names as they were given instead of their addresses",
    ),
    whole(
        "announce-ip",
        "<address>",
        Kind::Text,
        "",
        "the address the other Sentinels reach us at, when it is not our own",
    ),
    whole("announce-port", "<port>", Kind::Number, "0", "the port the other Sentinels reach us at; 0 is our own"),
    of_master("auth-pass", "<master> <password>", Kind::Secret, "", "the password of the master and its replicas"),
    of_master("auth-user", "<master> <user>", Kind::Text, "", "the user at the master and its replicas"),
    gone(
        "can-failover",
        "<master> <yes|no>",
        "removed; leave the Sentinel out of the quorum, or set replica-priority 0, instead",
    ),
    of_master(
        "client-reconfig-script",
        "<master> <path>",
        Kind::Text,
        "",
        "run when the address of the master changes",
    ),
    of_master("config-epoch", "<master> <epoch>", Kind::Number, "0", "state: the epoch of the address we hold"),
    whole("current-epoch", "<epoch>", Kind::Number, "0", "state: the latest epoch seen"),
    whole("deny-scripts-reconfig", "<yes|no>", Kind::YesNo, "yes", "refuse to change scripts through SENTINEL SET"),
    of_master(
        "down-after-milliseconds",
        "<master> <ms>",
        Kind::Number,
        "30000",
        "silence after which a node is held to be down",
    ),
    of_master(
        "down-after-refused",
        "<master> <ms>",
        Kind::Number,
        "0",
        "refused connections for so long, and a node is held to be down; 0 is off",
    ),
    of_master(
        "failover-timeout",
        "<master> <ms>",
        Kind::Number,
        "180000",
        "time for the steps of a failover, half the wait until the next one",
    ),
    of_master("known-replica", "<master> <host> <port>", Kind::Node, "", "state: a replica that was seen"),
    of_master(
        "known-sentinel",
        "<master> <host> <port> [<id>]",
        Kind::Node,
        "",
        "state: another Sentinel that watches this master",
    ),
    of_master("known-slave", "<master> <host> <port>", Kind::Node, "", "the old name of known-replica"),
    of_master("leader-epoch", "<master> <epoch>", Kind::Number, "0", "state: the epoch of our last vote"),
    of_master(
        "master-reboot-down-after-period",
        "<master> <ms>",
        Kind::Number,
        "0",
        "how long a restarted master may load its data; 0 is for ever",
    ),
    of_master(
        "monitor",
        "<master> <host> <port> <quorum>",
        Kind::Node,
        "",
        "watch this master; the quorum is how many Sentinels must find it down",
    ),
    whole(
        "myid",
        "<id>",
        Kind::Text,
        "",
        "the 40 hexadecimal digits that name this Sentinel; drawn at the first start",
    ),
    of_master("notification-script", "<master> <path>", Kind::Text, "", "run for every event of level warning"),
    of_master("parallel-syncs", "<master> <count>", Kind::Number, "1", "replicas pointed at the new master at a time"),
    of_master(
        "ping-period",
        "<master> <ms>",
        Kind::Number,
        "0",
        "how often the nodes of this master are asked for a sign of life; 0 is the common period",
    ),
    of_master(
        "primary-reboot-down-after-period",
        "<master> <ms>",
        Kind::Number,
        "0",
        "Valkey's name of master-reboot-down-after-period",
    ),
    of_master("rename-command", "<master> <command> <new-name>", Kind::Words, "", "what the servers call a command"),
    whole("resolve-hostnames", "<yes|no>", Kind::YesNo, "no", "allow names where addresses stand"),
    whole("sentinel-pass", "<password>", Kind::Secret, "", "the password we give to the other Sentinels"),
    whole("sentinel-user", "<user>", Kind::Text, "", "the user we are at the other Sentinels"),
];

/// What else a redis.conf may say and a Sentinel has no use for: what it is about, and the names. Text and no rows, as a row
/// of each would be forty kilobytes of the program.
pub const IGNORED: &[(&str, &str)] = &[
    (
        "cluster of data servers",
        "cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down cluster-allow-replica-migration \
         cluster-announce-bus-port cluster-announce-client-ipv4 cluster-announce-client-ipv6 \
         cluster-announce-client-port cluster-announce-client-tls-port cluster-announce-hostname \
         cluster-announce-human-nodename cluster-announce-ip cluster-announce-port cluster-announce-tls-port \
         cluster-blacklist-ttl cluster-compatibility-sample-ratio cluster-config-file \
         cluster-config-save-behavior cluster-databases cluster-enabled cluster-link-sendbuf-limit \
         cluster-manual-failover-timeout cluster-migration-barrier cluster-node-timeout cluster-port \
         cluster-preferred-endpoint-type cluster-replica-no-failover cluster-replica-validity-factor \
         cluster-require-full-coverage cluster-slave-no-failover cluster-slave-validity-factor \
         cluster-slot-migration-log-max-len cluster-slot-stats-enabled slot-migration-max-failover-repl-bytes \
         tls-cluster",
    ),
    (
        "how a data server holds values in memory",
        "hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries hash-max-ziplist-value \
         hash-seed hll-sparse-max-bytes list-compress-depth list-max-listpack-size list-max-ziplist-entries \
         list-max-ziplist-size list-max-ziplist-value set-max-intset-entries set-max-listpack-entries \
         set-max-listpack-value stream-node-max-bytes stream-node-max-entries \
         vset-force-single-threaded-execution zset-max-listpack-entries zset-max-listpack-value \
         zset-max-ziplist-entries zset-max-ziplist-value",
    ),
    (
        "what a data server lets its clients load or inspect",
        "enable-module-command enable-protected-configs loadmodule loadmodule-ex",
    ),
    (
        "memory of a data server",
        "active-defrag-cycle-max active-defrag-cycle-min active-defrag-cycle-us active-defrag-ignore-bytes \
         active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper \
         active-expire-effort activedefrag activerehashing databases disable-thp import-mode jemalloc-bg-thread \
         lazyexpire-nested-arbitrary-keys lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del \
         lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor lookahead maxmemory \
         maxmemory-clients maxmemory-eviction-tenacity maxmemory-policy maxmemory-samples proto-max-bulk-len \
         tracking-table-max-keys",
    ),
    (
        "presentation of a data server",
        "availability-zone client-default-resp extended-redis-compatibility ignore-warnings locale-collate \
         notify-keyspace-events shutdown-on-sigint shutdown-on-sigterm shutdown-timeout",
    ),
    (
        "data files",
        "aof-disable-auto-gc aof-load-truncated aof-rewrite-cpulist aof-rewrite-incremental-fsync \
         aof-timestamp-enabled aof-use-rdb-preamble aof_rewrite_cpulist appenddirname appendfilename appendfsync \
         appendonly auto-aof-rewrite-min-size auto-aof-rewrite-percentage bgsave-cpulist bgsave_cpulist \
         dbfilename key-load-delay no-appendfsync-on-rewrite rdb-del-sync-files rdb-key-save-delay \
         rdb-save-incremental-fsync rdb-version-check rdbchecksum rdbcompression sanitize-dump-payload \
         stop-writes-on-bgsave-error",
    ),
    (
        "replication of data servers",
        "dual-channel-replication-enabled masterauth masteruser min-replicas-max-lag min-replicas-to-write \
         min-slaves-max-lag min-slaves-to-write primaryauth primaryuser propagation-error-behavior rdma-bind \
         rdma-completion-vector rdma-port rdma-rx-size repl-backlog-size repl-backlog-ttl \
         repl-disable-tcp-nodelay repl-diskless-load repl-diskless-sync repl-diskless-sync-delay \
         repl-diskless-sync-max-replicas repl-mptcp repl-ping-replica-period repl-ping-slave-period repl-timeout \
         replica-announce-ip replica-announce-port replica-announced replica-full-sync-buffer-limit \
         replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority \
         replica-read-only replica-serve-stale-data replicaof slave-announce-ip slave-announce-port \
         slave-ignore-maxmemory slave-lazy-flush slave-priority slave-read-only slave-serve-stale-data slaveof",
    ),
    (
        "scripts inside a data server",
        "busy-reply-threshold lua-enable-deprecated-api lua-enable-insecure-api lua-replicate-commands \
         lua-time-limit",
    ),
    (
        "threads and timers of a data server",
        "bio-cpulist bio_cpulist dynamic-hz events-per-io-thread hz io-threads io-threads-do-reads \
         min-io-threads-avoid-copy-reply min-string-size-avoid-copy-reply \
         min-string-size-avoid-copy-reply-threaded prefetch-batch-max-size server-cpulist server_cpulist",
    ),
    ("the title of the process; here it stays the command line", "proc-title-template set-proc-title"),
    (
        "traces and debugging of a data server",
        "always-show-logo commandlog-execution-slower-than commandlog-large-reply-max-len \
         commandlog-large-request-max-len commandlog-reply-larger-than commandlog-request-larger-than \
         commandlog-slow-execution-max-len crash-log-enabled crash-memcheck-enabled debug-context \
         enable-debug-assert enable-debug-command hide-user-data-from-log latency-monitor-threshold \
         latency-tracking slowlog-log-slower-than slowlog-max-len use-exit-on-panic",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_row_is_found_in_any_case() {
        for row in DIRECTIVES {
            let sentinel = row.scope != Scope::Server;
            let found = find(sentinel, row.name.to_uppercase().as_bytes()).expect(row.name);
            assert_eq!((found.name, found.scope), (row.name, row.scope));
            assert!(!row.about.is_empty(), "{}", row.name);
        }
        for name in IGNORED.iter().flat_map(|(_, names)| names.split(' ')) {
            assert!(name.len() <= LONGEST_NAME && row(false, name.as_bytes()).is_none(), "{name}");
            let found = find(false, name.to_uppercase().as_bytes()).expect(name);
            assert_eq!((found.name, found.meaning), (name, Meaning::Ignored));
        }
        assert!(find(true, b"maxmemory").is_none());
        assert!(find(false, b"").is_none());
        assert!(find(false, b"monitor").is_none());
        assert!(find(true, b"port").is_none());
    }

    #[test]
    fn the_usage_says_how_many_words_may_follow() {
        let takes = |sentinel, name: &str, counts: [usize; 7]| {
            let row = find(sentinel, name.as_bytes()).expect(name);
            let allowed: Vec<usize> = (0..7).filter(|&count| row.takes(count)).collect();
            let expected: Vec<usize> = (0..7).filter(|&count| counts[count] == 1).collect();
            assert_eq!(allowed, expected, "{name}");
        };
        takes(true, "monitor", [0, 0, 0, 0, 1, 0, 0]);
        takes(true, "known-sentinel", [0, 0, 0, 1, 1, 0, 0]);
        takes(false, "bind", [1, 1, 1, 1, 1, 1, 1]);
        takes(false, "port", [0, 1, 0, 0, 0, 0, 0]);
        takes(false, "user", [0, 1, 1, 1, 1, 1, 1]);
        takes(false, "maxmemory", [0, 1, 1, 1, 1, 1, 1]);
    }
}
