//! From options and configuration to a running server, and back to nothing.

use super::clients::Sockets;
use super::desk::Desk;
use super::links::Links;
use super::listen::{Meant, SocketFile, SocketRights};
use super::notify::{Supervisor, Watchdog};
use super::resolver::Resolver;
use super::save::ConfigFile;
use super::scripts::Scripts;
use super::syslog::Syslog;
use super::tls::{self, Tls};
use super::{Shell, access, listen, sys};
use crate::acl::Acl;
use crate::base::SortedSet;
use crate::command::{CpuTimes, Facts, Names};
use crate::config::{Check, Loaded, Must, OomScoreAdj, ServerOptions};
use crate::core::{Identity, RunId, Sentinel, Snapshot};
use crate::net::{Handler, Reactor, Token};
use ::log::{info, warn};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Descriptors that are no clients': the log, the poll, listeners, a file being written.
const RESERVED_FILES: u64 = 32;
/// Connections to a master or replica: commands and Pub/Sub.
const FILES_PER_SERVER: u64 = 2;
/// Clients that are let in whatever the links need.
const FEWEST_CLIENTS: u64 = 8;
const DEFAULT_PIDFILE: &str = "/var/run/redis.pid";

/// Why the server does not start, in a sentence for whoever started it.
#[derive(Debug)]
pub struct StartError {
    text: String,
    /// The log file has it. Then standard error should be left alone unless a person looks at it: wrappers that
    /// know redis-sentinel expect nothing there once there is a log file.
    pub logged: bool,
}

impl StartError {
    pub(super) fn new(text: impl Into<String>) -> StartError {
        StartError { text: text.into(), logged: false }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StartError {}

/// What a start needs to be told.
#[derive(Debug)]
pub struct StartUp {
    pub loaded: Loaded,
    /// The configuration file, which is also where the state is kept.
    pub config_file: PathBuf,
}

impl StartUp {
    /// Says whether the server would start, as far as that can be known without changing anything outside of
    /// this process or opening a port. Returns what the log would say besides the configuration's own notes.
    pub fn check(&self) -> Result<Vec<String>, StartError> {
        let options = &self.loaded.server;
        let Prepared { acl, .. } = prepare(&self.config_file, &self.loaded)?;
        super::log::may_write(Path::new(&options.logfile)).map_err(|why| no_log(options, &why))?;
        let Plan { plain, secure, mut notes, .. } = plan(options)?;
        notes.extend(access::doubt(options, &acl));
        notes.extend(doubt_openness(options, &acl, plain.addresses(), secure.addresses()).map(str::to_owned));
        Ok(notes)
    }
}

/// What a start makes sure of before there is a log.
struct Prepared {
    file: ConfigFile,
    source: Option<IpAddr>,
    acl: Acl,
    names: Names,
}

/// The first part of a start, and of a check. Changes the working directory, and nothing outside of this process.
fn prepare(config_file: &Path, loaded: &Loaded) -> Result<Prepared, StartError> {
    let options = &loaded.server;
    let file = open_config_file(config_file)?;
    check_listening(options)?;
    let source = source_address(options)?;
    enter(&loaded.checks)?;
    let acl = access::load(options, &loaded.users)?;
    let names = access::names(&loaded.renamed)?;
    Ok(Prepared { file, source, acl, names })
}

/// What the options come to on this machine.
struct Plan {
    tls: Tls,
    plain: Meant,
    secure: Meant,
    /// Of the Unix socket.
    group: Option<u32>,
    /// For the log.
    notes: Vec<String>,
}

/// The second part of a start, and of a check: what can still fail before anything is opened.
fn plan(options: &ServerOptions) -> Result<Plan, StartError> {
    let (tls, notes) =
        Tls::load(&options.tls).map_err(|why| StartError::new(format!("Failed to configure TLS. {why}")))?;
    let meant = |port| listen::meant(&options.bind, port).map_err(|why| StartError::new(why.to_string()));
    let (plain, secure) = (meant(options.port)?, meant(options.tls.port)?);
    Ok(Plan { tls, plain, secure, group: unix_group(options)?, notes })
}

/// A server that listens and has its state on disk.
pub struct Server {
    reactor: Reactor,
    shell: Shell,
    pidfile: Option<PathBuf>,
    socket_file: Option<SocketFile>,
    supervisor: Supervisor,
}

impl Server {
    /// Brings everything up: log, directory, descriptors, listeners, process, state. When it returns, clients
    /// can connect.
    pub fn start(start_up: StartUp) -> Result<Server, StartError> {
        let StartUp { loaded, config_file } = start_up;
        // Before the directory changes.
        let config_file = std::path::absolute(&config_file).unwrap_or(config_file);
        let executable = executable();
        let Prepared { file, source, acl, names } = prepare(&config_file, &loaded)?;
        let Loaded { server: options, snapshot, notes, ignored, .. } = loaded;
        let logfile_given = !options.logfile.is_empty();
        let logfile = logfile_given.then(|| Path::new(&options.logfile));
        let syslog = options.syslog_enabled.then(|| Syslog::new(&options.syslog_ident, &options.syslog_facility));
        super::log::start(logfile, syslog, options.log_style, options.loglevel)
            .map_err(|why| no_log(&options, &why))?;
        announce(&config_file, &notes, &ignored);
        if let Some(doubt) = access::doubt(&options, &acl) {
            warn!("{doubt}");
        }
        let mut outcome = Server::bring_up(
            options,
            (acl, names),
            snapshot,
            file,
            source,
            config_file.display().to_string(),
            executable,
        );
        if let Err(why) = &mut outcome
            && logfile_given
        {
            warn!("{why}");
            why.logged = ::log::max_level() >= ::log::LevelFilter::Warn;
        }
        outcome
    }

    /// The part of the start that can be told in the log.
    fn bring_up(
        options: ServerOptions,
        (acl, names): (Acl, Names),
        mut snapshot: Snapshot,
        file: ConfigFile,
        source: Option<IpAddr>,
        config_file: String,
        executable: String,
    ) -> Result<Server, StartError> {
        let Plan { mut tls, plain, secure, group, notes } = plan(&options)?;
        for note in &notes {
            warn!("{note}");
        }
        let links = links_of(&snapshot);
        let maxclients = descriptors(&options, links)?;
        let mut reactor = Reactor::new(sys::clock).map_err(|why| broken("the event loop", &why))?;
        reactor
            .signals(&[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD, libc::SIGHUP])
            .map_err(|why| broken("handling signals", &why))?;
        reactor.set_accepts_per_turn(options.accepts_per_turn as usize);
        mark_packets(&mut reactor, options.socket_mark);
        let mut listen_on = |meant: Meant| {
            meant.listen(&mut reactor, options.tcp_backlog).map_err(|why| StartError::new(why.to_string()))
        };
        let (plain, secure) = (listen_on(plain)?, listen_on(secure)?);
        tls.listeners = secure.iter().map(|(listener, _)| *listener).collect();
        let socket_file = listen_unix(&mut reactor, &options, group)?;
        warn_if_backlog_is_cut(&options);
        let addresses = |bound: &[(Token, SocketAddr)]| bound.iter().map(|(_, address)| *address).collect::<Vec<_>>();
        if let Some(doubt) = doubt_openness(&options, &acl, addresses(&plain), addresses(&secure)) {
            warn!("{doubt}");
        }

        // From here on a failure shows in the log only.
        let (supervisor, missing) = Supervisor::find(options.supervised);
        if let Some(missing) = missing {
            warn!("{missing}");
        }
        let background = options.daemonize && supervisor == Supervisor::Nobody;
        if background {
            sys::daemonize().map_err(|why| broken("going to the background", &why))?;
        }
        say_oom_score(&options);
        let pidfile = write_pidfile(&options, background);
        // Only now: another process with these files would hold these ports.
        file.remove_leftovers();
        if !options.aclfile.is_empty() {
            super::save::remove_leftovers(Path::new(&options.aclfile));
        }

        let unnamed = snapshot.myid.is_none();
        let myid = match snapshot.myid {
            Some(myid) => myid,
            None => *snapshot.myid.insert(random_id()?),
        };
        let mut facts = Facts::new(random_id()?);
        facts.pid = std::process::id();
        facts.tcp_port = main_port(&options);
        for (name, port, listeners) in [("tcp", options.port, &plain), ("tls", options.tls.port, &secure)] {
            if !listeners.is_empty() {
                facts.listeners.push(format!("name={name},bind={},port={port}", options.bind.join(",bind=")));
            }
        }
        if socket_file.is_some() {
            facts.listeners.push(format!("name=unix,bind={}", options.unixsocket));
        }
        facts.started = reactor.now();
        facts.executable = executable;
        facts.config_file = config_file;
        facts.maxclients = maxclients;
        facts.loglevel = options.loglevel;
        facts.protected_mode = options.protected_mode;
        facts.supervised = supervisor.word();
        facts.os = sys::system_name();
        facts.cpu_times = cpu_times;
        facts.is_executable = |path| sys::may_execute(Path::new(path));
        facts.entropy = |bytes| sys::entropy(bytes).is_ok();
        facts.names = names;
        facts.aclfile.clone_from(&options.aclfile);
        facts.read_file = access::read_file;
        facts.write_file = access::write_file;

        info!("Running mode=sentinel, port={}.", facts.tcp_port);
        info!("Sentinel ID is {myid}");
        let identity = Identity { myid, port: announced_port(&options), own_password: options.requirepass.clone() };
        let mut seed = [0; 8];
        sys::entropy(&mut seed).map_err(|why| broken("drawing random numbers", &why))?;
        // What came before was slow perhaps, and is no gap of the cron.
        let now = reactor.read_clock();
        let mut sentinel = Sentinel::new(identity, &snapshot, u64::from_ne_bytes(seed), now);
        if unnamed {
            // Peers remember us by this id; it must not change with the next start.
            sentinel.flush_config();
        }
        let waker = reactor.waker().map_err(|why| broken("the event loop", &why))?;
        let sockets = Sockets::new(&options);
        let mut desk = Desk::new(sentinel, facts, options, acl);
        (desk.clients.normal_limit, desk.clients.pubsub_limit) =
            (desk.options.output_normal, desk.options.output_pubsub);
        let mut shell = Shell {
            desk,
            sockets,
            links: Links::new(source, tls.connector.clone()),
            tls,
            file,
            scripts: Scripts::default(),
            resolver: Resolver::new(waker),
            names_left: false,
            untold: Vec::new(),
            now,
            wake: None,
            watchdog: Watchdog::find(supervisor, now),
            housekept: now,
            room_for: links,
            links_seen: links,
            began: None,
        };
        // The first save is done before anybody is told that we are there; connections are begun by the first turn.
        shell.drain(&mut reactor);
        Ok(Server { reactor, shell, pidfile, socket_file, supervisor })
    }

    /// Serves until a signal or `SHUTDOWN` ends it.
    pub fn run(mut self) -> io::Result<()> {
        info!("Ready to accept connections");
        self.supervisor.ready();
        let outcome = self.reactor.run(&mut self.shell);
        // What the last turn brought is still executed, a save above all.
        self.shell.before_sleep(&mut self.reactor);
        self.supervisor.stopping();
        if let Some(pidfile) = &self.pidfile {
            info!("Removing the pid file.");
            let _ = std::fs::remove_file(pidfile);
        }
        if let Some(socket_file) = &self.socket_file {
            info!("Removing the unix socket file.");
            socket_file.remove();
        }
        match &outcome {
            Ok(()) => warn!("Sentinel is now ready to exit, bye bye..."),
            Err(why) => warn!("The event loop has failed: {why}"),
        }
        outcome
    }
}

fn broken(what: &str, why: &io::Error) -> StartError {
    StartError::new(format!("The system refuses {what}: {why}"))
}

fn open_config_file(path: &Path) -> Result<ConfigFile, StartError> {
    let not_writable = |why: io::Error| {
        StartError::new(format!("Sentinel config file {} is not writable: {why}. Exiting...", path.display()))
    };
    let file = ConfigFile::read(path).map_err(not_writable)?;
    file.check_writable().map_err(not_writable)?;
    Ok(file)
}

/// Makes sure of what the text of the configuration cannot tell, and changes to its directory on the way: the
/// paths of what comes later count from there.
fn enter(checks: &[Check]) -> Result<(), StartError> {
    for Check { must, path, error } in checks {
        let mut error = error.clone();
        let fine = match must {
            Must::BeDirectory => match std::env::set_current_dir(path) {
                Ok(()) => true,
                Err(why) => {
                    error.message = format!("Can't chdir to '{path}': {why}");
                    false
                }
            },
            Must::BeExecutable => sys::may_execute(Path::new(path)),
        };
        if !fine {
            return Err(StartError::new(error.to_string()));
        }
    }
    Ok(())
}

/// The port that INFO shows.
fn main_port(options: &ServerOptions) -> u16 {
    if options.port == 0 { options.tls.port } else { options.port }
}

/// The port at which other Sentinels of our kind reach us: they use TLS when we do.
fn announced_port(options: &ServerOptions) -> u16 {
    let secure = options.tls.replication && options.tls.port != 0;
    if secure || options.port == 0 { options.tls.port } else { options.port }
}

fn no_log(options: &ServerOptions, why: &io::Error) -> StartError {
    StartError::new(format!("Can't open the log file {}: {why}", options.logfile))
}

fn check_listening(options: &ServerOptions) -> Result<(), StartError> {
    if options.unixsocket.is_empty() && (main_port(options) == 0 || options.bind.is_empty()) {
        return Err(StartError::new("Configured to not listen anywhere, exiting: set port and bind, or unixsocket."));
    }
    Ok(())
}

fn no_unix_socket(options: &ServerOptions, why: &dyn fmt::Display) -> StartError {
    StartError::new(format!("Failed opening Unix socket {}: {why}", options.unixsocket))
}

fn unix_group(options: &ServerOptions) -> Result<Option<u32>, StartError> {
    match options.unixsocketgroup.as_str() {
        _ if options.unixsocket.is_empty() => Ok(None),
        "" => Ok(None),
        name => match sys::group_id(name) {
            Some(id) => Ok(Some(id)),
            None => Err(no_unix_socket(options, &format_args!("there is no group '{name}'"))),
        },
    }
}

fn listen_unix(
    reactor: &mut Reactor,
    options: &ServerOptions,
    group: Option<u32>,
) -> Result<Option<SocketFile>, StartError> {
    if options.unixsocket.is_empty() {
        return Ok(None);
    }
    let path = Path::new(&options.unixsocket);
    let rights = SocketRights { mode: options.unixsocketperm, group };
    SocketFile::listen(reactor, path, rights, options.tcp_backlog)
        .map(Some)
        .map_err(|why| no_unix_socket(options, &why))
}

/// Marking needs a right (CAP_NET_ADMIN) that a Sentinel seldom has; it can work without.
fn mark_packets(reactor: &mut Reactor, mark: u32) {
    if mark != 0
        && let Err(why) = reactor.set_mark(mark)
    {
        warn!("socket-mark-id is without effect, the system refuses the mark {mark}: {why}");
    }
}

/// How readily we are killed when memory runs out. Less readily than we were started with is root's to say.
fn say_oom_score(options: &ServerOptions) {
    const FILE: &str = "/proc/self/oom_score_adj";
    let base = || std::fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let score: i32 = match options.oom_score_adj {
        OomScoreAdj::No => return,
        OomScoreAdj::Relative => base() + options.oom_score,
        OomScoreAdj::Absolute => options.oom_score,
    };
    let score = score.clamp(-1000, 1000);
    if let Err(why) = std::fs::write(FILE, score.to_string()) {
        warn!("oom-score-adj is without effect, the system refuses {score}: {why}");
    }
}

/// The kernel has a bound of its own, and keeps silent about it.
fn warn_if_backlog_is_cut(options: &ServerOptions) {
    let bound = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|text| text.trim().parse().ok());
    if let Some(bound) = bound.filter(|&bound: &u32| bound < options.tcp_backlog) {
        warn!(
            "tcp-backlog is {bound} instead of {}: /proc/sys/net/core/somaxconn allows no more.",
            options.tcp_backlog
        );
    }
}

/// The path under which we were started; a link stays a link.
fn executable() -> String {
    let called = std::env::args_os().next().map(PathBuf::from).filter(|path| path.components().count() > 1);
    let path = called.and_then(|path| std::path::absolute(path).ok()).or_else(|| std::env::current_exe().ok());
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

fn source_address(options: &ServerOptions) -> Result<Option<IpAddr>, StartError> {
    match options.bind_source_addr.as_str() {
        "" | "*" => Ok(None),
        text => match text.parse() {
            Ok(ip) => Ok(Some(ip)),
            Err(_) => Err(StartError::new(format!("bind-source-addr: '{text}' is no numeric address."))),
        },
    }
}

fn announce(config_file: &Path, notes: &[String], ignored: &[&str]) {
    let version = env!("CARGO_PKG_VERSION");
    info!("watchfire {version} is starting: a Sentinel for Redis and Valkey, pid {}", std::process::id());
    info!("Configuration and state are in {}", config_file.display());
    if !ignored.is_empty() {
        info!("{}: accepted, but without meaning for a Sentinel", ignored.join(", "));
    }
    for note in notes {
        warn!("{note}");
    }
}

/// Raises the limit of open files so that so many links and all clients find room; when it cannot be raised, fewer clients
/// are taken. Returns how many.
pub(super) fn descriptors(options: &ServerOptions, links: u64) -> Result<usize, StartError> {
    let have = sys::open_files(u64::from(options.maxclients) + RESERVED_FILES + links)
        .map_err(|why| broken("to say the limit of open files", &why))?;
    let Some(room) = have.checked_sub(RESERVED_FILES).filter(|&room| room > 0) else {
        return Err(StartError::new(format!(
            "This process may have only {have} files open, and {RESERVED_FILES} are needed besides clients. Raise the limit \
             (ulimit -n, LimitNOFILE)."
        )));
    };
    let fits = clients_beside(links, room).min(options.maxclients.into());
    if fits < options.maxclients.into() {
        warn!(
            "maxclients is {fits} instead of {}: this process may have {have} files open, and links to nodes take {links} of \
             them. Raise the limit (ulimit -n, LimitNOFILE) if more clients are expected.",
            options.maxclients
        );
    }
    if links + fits > room {
        warn!(
            "Not all links to nodes find room beside the clients: raise the limit of open files (ulimit -n, LimitNOFILE)."
        );
    }
    Ok(usize::try_from(fits).unwrap_or(usize::MAX))
}

/// Connections to the nodes that we know of. A peer has one, whatever it watches with us.
fn links_of(snapshot: &Snapshot) -> u64 {
    let masters = &snapshot.masters;
    let servers: usize = masters.iter().map(|master| 1 + master.known_replicas.len()).sum();
    let peers: SortedSet<_> = masters.iter().flat_map(|master| &master.known_peers).map(|peer| peer.run_id).collect();
    servers as u64 * FILES_PER_SERVER + peers.len() as u64
}

/// How many clients there may be when links and clients share so many descriptors. The links come first, as watching is what
/// we are for; but some clients there have to be, for the other Sentinels are among them.
fn clients_beside(links: u64, room: u64) -> u64 {
    room.saturating_sub(links).max(FEWEST_CLIENTS.min(room))
}

/// What an operator may not expect of those who reach these addresses, plain and with TLS.
fn doubt_openness(
    options: &ServerOptions,
    acl: &Acl,
    plain: impl IntoIterator<Item = SocketAddr>,
    secure: impl IntoIterator<Item = SocketAddr>,
) -> Option<&'static str> {
    let strangers = secure.into_iter().filter(|_| !tls::keeps_strangers_out(&options.tls));
    let public = plain.into_iter().chain(strangers).any(|address| !address.ip().is_loopback());
    (public && !options.protected_mode && acl.default_user().is_open()).then_some(
        "Anybody who reaches this port can reconfigure this Sentinel: the default user needs no password, and there is no \
         protected-mode.",
    )
}

/// Written when asked for, or in the background, where it is how we are found again.
fn write_pidfile(options: &ServerOptions, background: bool) -> Option<PathBuf> {
    let path = match options.pidfile.as_str() {
        "" if background => DEFAULT_PIDFILE,
        "" => return None,
        path => path,
    };
    let path = PathBuf::from(path);
    match std::fs::write(&path, format!("{}\n", std::process::id())) {
        Ok(()) => Some(path),
        Err(why) => {
            warn!("Failed to write the pid file {}: {why}", path.display());
            None
        }
    }
}

fn random_id() -> Result<RunId, StartError> {
    let mut bytes = [0; 20];
    sys::entropy(&mut bytes).map_err(|why| broken("drawing random numbers", &why))?;
    Ok(RunId::from_entropy(bytes))
}

fn cpu_times() -> CpuTimes {
    let used = sys::cpu_time();
    CpuTimes {
        sys: used.system,
        user: used.user,
        sys_children: used.children_system,
        user_children: used.children_user,
        // There is one thread, but for resolvers that sleep.
        sys_main_thread: used.system,
        user_main_thread: used.user,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_come_before_clients_but_for_the_first_few() {
        for (links, room, clients) in [
            (0, 28, 28),
            (40, 68, 28),
            (40, 50, 10),
            (40, 48, 8),
            // Not all links fit any more.
            (40, 47, 8),
            (40, 32, 8),
            (0, 3, 3),
            (40, 3, 3),
        ] {
            assert_eq!(clients_beside(links, room), clients, "{links} links, room for {room}");
        }
    }
}
