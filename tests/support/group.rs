//! Whole groups: one master, its replicas, and the Sentinels that watch them.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use super::conn::{Conn, ask, map, maps};
use super::process::{Program, Redis, Sentinel, info_of, wait_for};
use super::standin::{Comeback, Spec, StandIn};

/// What plays the data servers.
#[derive(Clone, Debug)]
pub enum Servers {
    StandIn,
    /// This `redis-server` (see [`Redis::program`]).
    Real(PathBuf),
}

/// A group before it is started.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The master's name.
    pub name: String,
    pub replicas: usize,
    pub servers: Servers,
    pub sentinels: Vec<Program>,
    pub quorum: usize,
    pub down_after: u64,
    pub failover_timeout: u64,
    pub parallel_syncs: usize,
    /// More lines for the configuration file of every Sentinel.
    pub lines: Vec<String>,
    /// The `myid` of each Sentinel; those beyond the list draw their own.
    pub ids: Vec<String>,
    /// Where the data servers live, and then the Sentinels; those beyond the list live on the loopback.
    pub hosts: Vec<Ipv4Addr>,
}

impl Plan {
    /// A master `mymaster` with two stand-in replicas; quorum is the majority of `sentinels`, down-after one second.
    #[must_use]
    pub fn new(sentinels: Vec<Program>) -> Plan {
        Plan {
            name: "mymaster".to_string(),
            replicas: 2,
            servers: Servers::StandIn,
            quorum: sentinels.len() / 2 + 1,
            sentinels,
            down_after: 1000,
            failover_timeout: 10_000,
            parallel_syncs: 1,
            lines: Vec::new(),
            ids: Vec::new(),
            hosts: Vec::new(),
        }
    }

    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> Plan {
        self.replicas = replicas;
        self
    }

    #[must_use]
    pub fn servers(mut self, servers: Servers) -> Plan {
        self.servers = servers;
        self
    }

    #[must_use]
    pub fn quorum(mut self, quorum: usize) -> Plan {
        self.quorum = quorum;
        self
    }

    #[must_use]
    pub fn down_after(mut self, ms: u64) -> Plan {
        self.down_after = ms;
        self
    }

    #[must_use]
    pub fn failover_timeout(mut self, ms: u64) -> Plan {
        self.failover_timeout = ms;
        self
    }

    #[must_use]
    pub fn parallel_syncs(mut self, count: usize) -> Plan {
        self.parallel_syncs = count;
        self
    }

    /// One more line for the configuration file of every Sentinel.
    #[must_use]
    pub fn line(mut self, line: &str) -> Plan {
        self.lines.push(line.to_string());
        self
    }

    /// Sentinels with ids that are the same in every group: what hangs on ids then hangs on the index.
    #[must_use]
    pub fn ids(mut self, ids: &[String]) -> Plan {
        self.ids = ids.to_vec();
        self
    }

    /// One host for each real data server, then one for each Sentinel.
    #[must_use]
    pub fn hosts(mut self, hosts: &[Ipv4Addr]) -> Plan {
        self.hosts = hosts.to_vec();
        self
    }

    fn host(&self, index: usize) -> Ipv4Addr {
        self.hosts.get(index).copied().unwrap_or(Ipv4Addr::LOCALHOST)
    }

    /// Starts everything; see [`Group::wait_known`] for the waiting.
    ///
    /// # Panics
    /// When something does not start, or the replicas do not find their master.
    #[must_use]
    pub fn start(self) -> Group {
        let mut group = Group {
            name: self.name.clone(),
            ports: Vec::new(),
            standin: None,
            redis: Vec::new(),
            sentinels: Vec::new(),
            replicas: self.replicas,
        };
        match &self.servers {
            Servers::StandIn => {
                let standin = StandIn::start();
                let master = standin.server(Spec::master()).port;
                group.ports.push(master);
                let replicas = standin.servers(vec![Spec::replica_of(master); self.replicas]);
                group.ports.extend(replicas.iter().map(|replica| replica.port));
                group.standin = Some(standin);
            }
            Servers::Real(program) => {
                group.redis.push(Redis::start_at(self.host(0), program, &[]));
                let replicaof = format!("replicaof {} {}", self.host(0), group.redis[0].port);
                for index in 1..=self.replicas {
                    group.redis.push(Redis::start_at(self.host(index), program, &[&replicaof]));
                }
                group.ports = group.redis.iter().map(|redis| redis.port).collect();
            }
        }
        let master = group.ports[0];
        for &replica in &group.ports[1..] {
            wait_for(Duration::from_secs(20), "the replicas' links", || {
                info_of(replica).get("master_link_status").is_some_and(|status| status == "up")
            });
        }
        let name = &self.name;
        let mut lines = vec![
            format!("sentinel monitor {name} {} {master} {}", self.host(0), self.quorum),
            format!("sentinel down-after-milliseconds {name} {}", self.down_after),
            format!("sentinel failover-timeout {name} {}", self.failover_timeout),
            format!("sentinel parallel-syncs {name} {}", self.parallel_syncs),
        ];
        lines.extend(self.lines.iter().cloned());
        for (index, program) in self.sentinels.iter().enumerate() {
            let id = self.ids.get(index).map(|id| format!("sentinel myid {id}"));
            let lines: Vec<String> = lines.iter().cloned().chain(id).collect();
            let host = self.host(1 + self.replicas + index);
            group.sentinels.push(Sentinel::start_at(host, program, &lines));
        }
        group
    }
}

/// A running group. Dropping it ends everything.
pub struct Group {
    pub name: String,
    /// The data servers; the first one was the master at the start.
    pub ports: Vec<u16>,
    pub standin: Option<StandIn>,
    pub redis: Vec<Redis>,
    pub sentinels: Vec<Sentinel>,
    replicas: usize,
}

impl Group {
    /// Whether every living Sentinel knows all replicas and all other Sentinels, has heard from all of them and holds
    /// nobody down.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.sentinels.iter().all(|sentinel| self.is_known_by(sentinel).unwrap_or(false))
    }

    fn is_known_by(&self, sentinel: &Sentinel) -> Option<bool> {
        let master = map(&ask(sentinel.port, &["SENTINEL", "MASTER", &self.name])?);
        let replicas = maps(&ask(sentinel.port, &["SENTINEL", "REPLICAS", &self.name])?);
        let peers = maps(&ask(sentinel.port, &["SENTINEL", "SENTINELS", &self.name])?);
        let flags_are = |instance: &std::collections::BTreeMap<String, String>, wanted: &str| {
            instance.get("flags").is_some_and(|flags| flags == wanted)
        };
        Some(
            flags_are(&master, "master")
                && replicas.len() == self.replicas
                && replicas.iter().all(|replica| {
                    flags_are(replica, "slave")
                        && replica.get("master-link-status").is_some_and(|status| status == "ok")
                })
                && peers.len() + 1 == self.sentinels.len()
                // Valkey's Sentinels keep the mark of a peer that once held a former master down.
                && peers.iter().all(|peer| flags_are(peer, "sentinel") || flags_are(peer, "sentinel,master_down")),
        )
    }

    /// Waits until everybody knows everybody.
    ///
    /// # Panics
    /// When that takes longer than `limit`.
    pub fn wait_known(&self, limit: Duration) {
        wait_for(limit, "everybody to know everybody", || self.is_known());
    }

    /// The port that every Sentinel gives for the master, when they agree.
    #[must_use]
    pub fn agreed(&self) -> Option<u16> {
        self.agreed_by(&self.sentinels)
    }

    /// The same for some of them.
    #[must_use]
    pub fn agreed_by(&self, sentinels: &[Sentinel]) -> Option<u16> {
        let mut ports = sentinels.iter().map(|sentinel| sentinel.master_port(&self.name));
        let first = ports.next()??;
        ports.all(|port| port == Some(first)).then_some(first)
    }

    /// Waits until every Sentinel gives another master than `old`, all the same one; returns it.
    ///
    /// # Panics
    /// When that takes longer than `limit`.
    pub fn wait_switched(&self, limit: Duration, old: u16) -> u16 {
        let mut new = old;
        wait_for(limit, "all Sentinels to agree on another master", || {
            new = self.agreed().unwrap_or(old);
            new != old
        });
        new
    }

    /// As `kill -9` on a data server.
    ///
    /// # Panics
    /// When the group has no such server, as in all that follow.
    pub fn kill(&mut self, port: u16) {
        match &self.standin {
            Some(standin) => standin.kill(port),
            None => self.redis_at(port).kill(),
        }
    }

    /// As `kill -STOP`.
    pub fn hang(&mut self, port: u16) {
        match &self.standin {
            Some(standin) => standin.hang(port),
            None => self.redis_at(port).process().hang(),
        }
    }

    /// As `kill -CONT`.
    pub fn resume(&mut self, port: u16) {
        match &self.standin {
            Some(standin) => standin.resume(port),
            None => self.redis_at(port).process().resume(),
        }
    }

    /// Starts a killed server again, in the role that its configuration file says.
    pub fn restart(&mut self, port: u16) {
        match &self.standin {
            Some(standin) => standin.restart(port, Comeback::AsWritten),
            None => self.redis_at(port).restart(),
        }
    }

    fn redis_at(&mut self, port: u16) -> &mut Redis {
        self.redis.iter_mut().find(|redis| redis.port == port).expect("a server of this group")
    }

    /// Whether a client could write there now.
    #[must_use]
    pub fn is_writable(port: u16) -> bool {
        Conn::open(port)
            .and_then(|mut conn| conn.try_cmd(&["SET", "watchfire", "lit"]))
            .is_ok_and(|reply| reply == watchfire::resp::Reply::Simple(b"OK".to_vec()))
    }

    /// The role in a server's own INFO; None when it does not answer.
    #[must_use]
    pub fn role(port: u16) -> Option<String> {
        info_of(port).remove("role")
    }

    /// The port of the master that a replica follows with its link up.
    #[must_use]
    pub fn follows(port: u16) -> Option<u16> {
        let info = info_of(port);
        (info.get("master_link_status")? == "up").then(|| info.get("master_port")?.parse().ok()).flatten()
    }
}
