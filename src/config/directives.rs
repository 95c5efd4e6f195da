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

/// The row of a name in any letter case, among the `sentinel` directives or among the others.
#[must_use]
pub fn find(sentinel: bool, name: &[u8]) -> Option<&'static Directive> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let wanted = (sentinel, &*lower);
    let found = DIRECTIVES.binary_search_by_key(&wanted, |row| (row.scope != Scope::Server, row.name.as_bytes()));
    found.ok().map(|index| &DIRECTIVES[index])
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

const CLUSTER: &str = "cluster of data servers";
const ENCODING: &str = "how a data server holds values in memory";
const GUARDS: &str = "what a data server lets its clients load or inspect";
const MEMORY: &str = "memory of a data server";
const OTHER: &str = "presentation of a data server";
const PERSISTENCE: &str = "data files";
const REPLICATION: &str = "replication of data servers";
const SCRIPTING: &str = "scripts inside a data server";
const THREADS: &str = "threads and timers of a data server";
const TITLE: &str = "the title of the process; here it stays the command line";
const TRACES: &str = "traces and debugging of a data server";

/// Sorted: first the plain directives, then those behind `sentinel`, each by name.
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
    ignored("active-defrag-cycle-max", MEMORY),
    ignored("active-defrag-cycle-min", MEMORY),
    ignored("active-defrag-cycle-us", MEMORY),
    ignored("active-defrag-ignore-bytes", MEMORY),
    ignored("active-defrag-max-scan-fields", MEMORY),
    ignored("active-defrag-threshold-lower", MEMORY),
    ignored("active-defrag-threshold-upper", MEMORY),
    ignored("active-expire-effort", MEMORY),
    ignored("activedefrag", MEMORY),
    ignored("activerehashing", MEMORY),
    ignored("always-show-logo", TRACES),
    ignored("aof-disable-auto-gc", PERSISTENCE),
    ignored("aof-load-truncated", PERSISTENCE),
    ignored("aof-rewrite-cpulist", PERSISTENCE),
    ignored("aof-rewrite-incremental-fsync", PERSISTENCE),
    ignored("aof-timestamp-enabled", PERSISTENCE),
    ignored("aof-use-rdb-preamble", PERSISTENCE),
    ignored("aof_rewrite_cpulist", PERSISTENCE),
    ignored("appenddirname", PERSISTENCE),
    ignored("appendfilename", PERSISTENCE),
    ignored("appendfsync", PERSISTENCE),
    ignored("appendonly", PERSISTENCE),
    ignored("auto-aof-rewrite-min-size", PERSISTENCE),
    ignored("auto-aof-rewrite-percentage", PERSISTENCE),
    ignored("availability-zone", OTHER),
    ignored("bgsave-cpulist", PERSISTENCE),
    ignored("bgsave_cpulist", PERSISTENCE),
    used(
        "bind",
        "[<address>…]",
        Kind::Words,
        "* -::*",
        "the addresses to listen on; a leading - marks one that may be missing",
    ),
    used("bind-source-addr", "<address>", Kind::Text, "", "the local address of outgoing links"),
    ignored("bio-cpulist", THREADS),
    ignored("bio_cpulist", THREADS),
    ignored("busy-reply-threshold", SCRIPTING),
    ignored("client-default-resp", OTHER),
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
    ignored("cluster-allow-pubsubshard-when-down", CLUSTER),
    ignored("cluster-allow-reads-when-down", CLUSTER),
    ignored("cluster-allow-replica-migration", CLUSTER),
    ignored("cluster-announce-bus-port", CLUSTER),
    ignored("cluster-announce-client-ipv4", CLUSTER),
    ignored("cluster-announce-client-ipv6", CLUSTER),
    ignored("cluster-announce-client-port", CLUSTER),
    ignored("cluster-announce-client-tls-port", CLUSTER),
    ignored("cluster-announce-hostname", CLUSTER),
    ignored("cluster-announce-human-nodename", CLUSTER),
    ignored("cluster-announce-ip", CLUSTER),
    ignored("cluster-announce-port", CLUSTER),
    ignored("cluster-announce-tls-port", CLUSTER),
    ignored("cluster-blacklist-ttl", CLUSTER),
    ignored("cluster-compatibility-sample-ratio", CLUSTER),
    ignored("cluster-config-file", CLUSTER),
    ignored("cluster-config-save-behavior", CLUSTER),
    ignored("cluster-databases", CLUSTER),
    ignored("cluster-enabled", CLUSTER),
    ignored("cluster-link-sendbuf-limit", CLUSTER),
    ignored("cluster-manual-failover-timeout", CLUSTER),
    ignored("cluster-migration-barrier", CLUSTER),
    ignored("cluster-node-timeout", CLUSTER),
    ignored("cluster-port", CLUSTER),
    ignored("cluster-preferred-endpoint-type", CLUSTER),
    ignored("cluster-replica-no-failover", CLUSTER),
    ignored("cluster-replica-validity-factor", CLUSTER),
    ignored("cluster-require-full-coverage", CLUSTER),
    ignored("cluster-slave-no-failover", CLUSTER),
    ignored("cluster-slave-validity-factor", CLUSTER),
    ignored("cluster-slot-migration-log-max-len", CLUSTER),
    ignored("cluster-slot-stats-enabled", CLUSTER),
    ignored("commandlog-execution-slower-than", TRACES),
    ignored("commandlog-large-reply-max-len", TRACES),
    ignored("commandlog-large-request-max-len", TRACES),
    ignored("commandlog-reply-larger-than", TRACES),
    ignored("commandlog-request-larger-than", TRACES),
    ignored("commandlog-slow-execution-max-len", TRACES),
    ignored("crash-log-enabled", TRACES),
    ignored("crash-memcheck-enabled", TRACES),
    used("daemonize", "<yes|no>", Kind::YesNo, "no", "go to the background"),
    ignored("databases", MEMORY),
    ignored("dbfilename", PERSISTENCE),
    ignored("debug-context", TRACES),
    used("dir", "<path>", Kind::Text, "", "the working directory, before any relative path is used"),
    ignored("disable-thp", MEMORY),
    ignored("dual-channel-replication-enabled", REPLICATION),
    ignored("dynamic-hz", THREADS),
    ignored("enable-debug-assert", TRACES),
    ignored("enable-debug-command", TRACES),
    ignored("enable-module-command", GUARDS),
    ignored("enable-protected-configs", GUARDS),
    ignored("events-per-io-thread", THREADS),
    ignored("extended-redis-compatibility", OTHER),
    ignored("hash-max-listpack-entries", ENCODING),
    ignored("hash-max-listpack-value", ENCODING),
    ignored("hash-max-ziplist-entries", ENCODING),
    ignored("hash-max-ziplist-value", ENCODING),
    ignored("hash-seed", ENCODING),
    ignored("hide-user-data-from-log", TRACES),
    ignored("hll-sparse-max-bytes", ENCODING),
    ignored("hz", THREADS),
    ignored("ignore-warnings", OTHER),
    ignored("import-mode", MEMORY),
    used("include", "<path>", Kind::Text, "", "read another file in this place"),
    ignored("io-threads", THREADS),
    ignored("io-threads-do-reads", THREADS),
    ignored("jemalloc-bg-thread", MEMORY),
    ignored("key-load-delay", PERSISTENCE),
    ignored("latency-monitor-threshold", TRACES),
    ignored("latency-tracking", TRACES),
    Directive { usage: "[value…]", ..ignored("latency-tracking-info-percentiles", TRACES) },
    ignored("lazyexpire-nested-arbitrary-keys", MEMORY),
    ignored("lazyfree-lazy-eviction", MEMORY),
    ignored("lazyfree-lazy-expire", MEMORY),
    ignored("lazyfree-lazy-server-del", MEMORY),
    ignored("lazyfree-lazy-user-del", MEMORY),
    ignored("lazyfree-lazy-user-flush", MEMORY),
    ignored("lfu-decay-time", MEMORY),
    ignored("lfu-log-factor", MEMORY),
    ignored("list-compress-depth", ENCODING),
    ignored("list-max-listpack-size", ENCODING),
    ignored("list-max-ziplist-entries", ENCODING),
    ignored("list-max-ziplist-size", ENCODING),
    ignored("list-max-ziplist-value", ENCODING),
    ignored("loadmodule", GUARDS),
    ignored("loadmodule-ex", GUARDS),
    ignored("locale-collate", OTHER),
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
    ignored("lookahead", MEMORY),
    ignored("lua-enable-deprecated-api", SCRIPTING),
    ignored("lua-enable-insecure-api", SCRIPTING),
    ignored("lua-replicate-commands", SCRIPTING),
    ignored("lua-time-limit", SCRIPTING),
    ignored("masterauth", REPLICATION),
    ignored("masteruser", REPLICATION),
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
    ignored("maxmemory", MEMORY),
    ignored("maxmemory-clients", MEMORY),
    ignored("maxmemory-eviction-tenacity", MEMORY),
    ignored("maxmemory-policy", MEMORY),
    ignored("maxmemory-samples", MEMORY),
    ignored("min-io-threads-avoid-copy-reply", THREADS),
    ignored("min-replicas-max-lag", REPLICATION),
    ignored("min-replicas-to-write", REPLICATION),
    ignored("min-slaves-max-lag", REPLICATION),
    ignored("min-slaves-to-write", REPLICATION),
    ignored("min-string-size-avoid-copy-reply", THREADS),
    ignored("min-string-size-avoid-copy-reply-threaded", THREADS),
    not_yet("mptcp", "<yes|no>", "multipath TCP"),
    ignored("no-appendfsync-on-rewrite", PERSISTENCE),
    ignored("notify-keyspace-events", OTHER),
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
    ignored("prefetch-batch-max-size", THREADS),
    ignored("primaryauth", REPLICATION),
    ignored("primaryuser", REPLICATION),
    ignored("proc-title-template", TITLE),
    ignored("propagation-error-behavior", REPLICATION),
    used("protected-mode", "<yes|no>", Kind::YesNo, "no", "refuse clients from other hosts while no password is set"),
    ignored("proto-max-bulk-len", MEMORY),
    ignored("rdb-del-sync-files", PERSISTENCE),
    ignored("rdb-key-save-delay", PERSISTENCE),
    ignored("rdb-save-incremental-fsync", PERSISTENCE),
    ignored("rdb-version-check", PERSISTENCE),
    ignored("rdbchecksum", PERSISTENCE),
    ignored("rdbcompression", PERSISTENCE),
    ignored("rdma-bind", REPLICATION),
    ignored("rdma-completion-vector", REPLICATION),
    ignored("rdma-port", REPLICATION),
    ignored("rdma-rx-size", REPLICATION),
    used(
        "rename-command",
        "<command> <new-name>",
        Kind::Words,
        "",
        "another name for a command of ours; empty takes it away",
    ),
    ignored("repl-backlog-size", REPLICATION),
    ignored("repl-backlog-ttl", REPLICATION),
    ignored("repl-disable-tcp-nodelay", REPLICATION),
    ignored("repl-diskless-load", REPLICATION),
    ignored("repl-diskless-sync", REPLICATION),
    ignored("repl-diskless-sync-delay", REPLICATION),
    ignored("repl-diskless-sync-max-replicas", REPLICATION),
    ignored("repl-mptcp", REPLICATION),
    ignored("repl-ping-replica-period", REPLICATION),
    ignored("repl-ping-slave-period", REPLICATION),
    ignored("repl-timeout", REPLICATION),
    ignored("replica-announce-ip", REPLICATION),
    ignored("replica-announce-port", REPLICATION),
    ignored("replica-announced", REPLICATION),
    ignored("replica-full-sync-buffer-limit", REPLICATION),
    ignored("replica-ignore-disk-write-errors", REPLICATION),
    ignored("replica-ignore-maxmemory", REPLICATION),
    ignored("replica-lazy-flush", REPLICATION),
    ignored("replica-priority", REPLICATION),
    ignored("replica-read-only", REPLICATION),
    ignored("replica-serve-stale-data", REPLICATION),
    ignored("replicaof", REPLICATION),
    used(
        "requirepass",
        "<password>",
        Kind::Secret,
        "",
        "the password clients must give; also offered to the other Sentinels unless sentinel-pass is set",
    ),
    ignored("sanitize-dump-payload", PERSISTENCE),
    Directive { usage: "[value…]", ..ignored("save", PERSISTENCE) },
    ignored("server-cpulist", THREADS),
    ignored("server_cpulist", THREADS),
    ignored("set-max-intset-entries", ENCODING),
    ignored("set-max-listpack-entries", ENCODING),
    ignored("set-max-listpack-value", ENCODING),
    ignored("set-proc-title", TITLE),
    ignored("shutdown-on-sigint", OTHER),
    ignored("shutdown-on-sigterm", OTHER),
    ignored("shutdown-timeout", OTHER),
    ignored("slave-announce-ip", REPLICATION),
    ignored("slave-announce-port", REPLICATION),
    ignored("slave-ignore-maxmemory", REPLICATION),
    ignored("slave-lazy-flush", REPLICATION),
    ignored("slave-priority", REPLICATION),
    ignored("slave-read-only", REPLICATION),
    ignored("slave-serve-stale-data", REPLICATION),
    ignored("slaveof", REPLICATION),
    ignored("slot-migration-max-failover-repl-bytes", CLUSTER),
    ignored("slowlog-log-slower-than", TRACES),
    ignored("slowlog-max-len", TRACES),
    used("socket-mark-id", "<mark>", Kind::Integer(0, 4_294_967_295), "0", "a mark on our packets; 0 is none"),
    ignored("stop-writes-on-bgsave-error", PERSISTENCE),
    ignored("stream-node-max-bytes", ENCODING),
    ignored("stream-node-max-entries", ENCODING),
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
    ignored("tls-cluster", CLUSTER),
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
    ignored("tracking-table-max-keys", MEMORY),
    used("unixsocket", "<path>", Kind::Text, "", "a Unix socket to listen on as well"),
    used("unixsocketgroup", "<group>", Kind::Text, "", "the group that the Unix socket belongs to"),
    used(
        "unixsocketperm",
        "<octal>",
        Kind::Octal,
        "0",
        "the permissions of the Unix socket; 0 leaves them to the umask",
    ),
    ignored("use-exit-on-panic", TRACES),
    used("user", "<name> [rule…]", Kind::Words, "", "a user, its passwords and what it may do"),
    ignored("vset-force-single-threaded-execution", ENCODING),
    ignored("zset-max-listpack-entries", ENCODING),
    ignored("zset-max-listpack-value", ENCODING),
    ignored("zset-max-ziplist-entries", ENCODING),
    ignored("zset-max-ziplist-value", ENCODING),
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
