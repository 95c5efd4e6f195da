//! What a seed draws before the first event: the size of the group, its settings, the weather, and which
//! faults this run knows at all (swarm testing: a run without pauses finds other bugs than one full of them).

use super::disk::DiskPlant;
use super::groups::{self, Group};
use super::process::ShellPlant;
use std::fmt;
use watchfire::base::Random;
use watchfire::base::random::mix;
use watchfire::core::Plant;

/// Everything that can go wrong. The weights in [`Options::faults`] decide how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// kill -9 of a Sentinel, after some more effects; back after a while with what was durable.
    SentinelCrash,
    /// A Sentinel frozen: no ticks, messages wait.
    SentinelPause,
    /// A server process dies: connections are reset, dials refused.
    ServerKill,
    /// A server's machine is gone: nothing answers, nothing is refused.
    ServerLoss,
    /// A server process is frozen: dials are accepted by the kernel, nothing is answered.
    ServerHang,
    /// The nodes fall into two halves that do not hear each other.
    Partition,
    /// One half hears the other, not the other way round.
    AsymmetricPartition,
    /// One pair of nodes, one direction or both.
    LinkCut,
    /// One direction of one pair becomes slow.
    SlowLink,
    /// All links jitter.
    Jitter,
    /// Saves of a Sentinel fail.
    FailingDisk,
    /// Saves of a Sentinel take long, and it stands still meanwhile.
    SlowDisk,
    /// One established connection is reset.
    Reset,
    /// An operator calls SENTINEL FAILOVER.
    Operator,
    /// Two operators call it at two Sentinels at once.
    TwoOperators,
    /// A Sentinel dies, and a new one takes its place: same address, empty file, another id.
    SentinelReplaced,
    /// A server runs a script that does not end.
    ServerBusy,
    /// A server refuses to change its role: transactions are aborted.
    ServerUnwilling,
    /// A server tells untrue things in INFO.
    LyingInfo,
    /// A server is gone, and an empty one has its address.
    Stranger,
    /// Somebody tells untrue things in hellos.
    Forger,
    /// An operator calls RESET, SET, or REMOVE and later MONITOR.
    Administrator,
    /// A connection swallows what is sent, in one direction or both, for as long as anybody keeps it.
    HalfOpen,
    /// What a Sentinel says and hears arrives in pieces, and now and then only the beginning of it.
    Pieces,
    /// All masters die at once: they shared a machine.
    MastersDie,
    /// A Sentinel has so many others to dial that each dial waits for long.
    LongLine,
    /// A Sentinel has so many others to hear that what comes waits to be read.
    Backlog,
}

use FaultKind::{
    Administrator, AsymmetricPartition, Backlog, FailingDisk, Forger, HalfOpen, Jitter, LinkCut, LongLine, LyingInfo,
    MastersDie, Operator, Partition, Pieces, Reset, SentinelCrash, SentinelPause, SentinelReplaced, ServerBusy,
    ServerHang, ServerKill, ServerLoss, ServerUnwilling, SlowDisk, SlowLink, Stranger, TwoOperators,
};

/// What runs with one master draw from. What came later is drawn by [`Options::worlds`] only.
const ALL_FAULTS: [FaultKind; 22] = [
    SentinelCrash,
    SentinelPause,
    ServerKill,
    ServerLoss,
    ServerHang,
    Partition,
    AsymmetricPartition,
    LinkCut,
    SlowLink,
    Jitter,
    FailingDisk,
    SlowDisk,
    Reset,
    Operator,
    TwoOperators,
    SentinelReplaced,
    ServerBusy,
    ServerUnwilling,
    LyingInfo,
    Stranger,
    Forger,
    Administrator,
];

/// Deliberate mistakes, to show that a checker sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A switch inside the core.
    Core(Plant),
    /// A mistake of the simulated shell.
    Shell(ShellPlant),
    /// A mistake of the simulated disk.
    Disk(DiskPlant),
    /// Servers acknowledge an order to follow another and stay what they are.
    StubbornServers,
}

/// The name of the mistake alone.
impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Planted::Core(plant) => write!(f, "{plant:?}"),
            Planted::Shell(plant) => write!(f, "{plant:?}"),
            Planted::Disk(plant) => write!(f, "{plant:?}"),
            Planted::StubbornServers => f.write_str("StubbornServers"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    /// What `PROFILE` has to be for a replay, if not what the seed itself stands for.
    pub profile: Option<&'static str>,
    pub sentinels: usize,
    pub groups: Vec<Group>,
    /// Settings of the masters, ms; some masters have a multiple of this down-after.
    pub down_after: u64,
    pub failover_timeout: u64,
    pub parallel_syncs: u32,
    /// Tunable of the Sentinels, ms.
    pub tilt_period: u64,
    /// One way, ms: lowest and highest.
    pub latency: (u64, u64),
    /// What one save takes, ms: lowest and highest.
    pub save_ms: (u64, u64),
    /// A synchronisation of a replica, ms: lowest and highest.
    pub sync_ms: (u64, u64),
    /// How long a server loads its data after a start, ms at most.
    pub loading_ms: u64,
    /// A replica notices that its master is silent after this many ms.
    pub repl_timeout: u64,
    /// Replicas without a master answer -MASTERDOWN (`replica-serve-stale-data no`).
    pub refuse_stale: bool,
    /// Length of the quiet start and of the safety phase, ms.
    pub warmup_ms: u64,
    pub safety_ms: u64,
    /// Mean pause between two faults, ms, and how many may last at once.
    pub fault_gap_ms: u64,
    pub faults_at_once: usize,
    /// Settings of the master that are ours, ms; 0 is off.
    pub down_after_refused: u64,
    pub ping_period: u64,
    pub faults: Vec<(FaultKind, u64)>,
    /// Operators have RESET and REMOVE forget only where a majority remembers: a server that is away while all forget it is
    /// nobody's when it returns.
    pub careful: bool,
    /// No random faults: the master dies a few times, each time with everything else in order.
    pub drill: bool,
    /// The last server of each master is never to be promoted.
    pub priority_zero: bool,
    /// So many of the Sentinels, the last ones, behave as redis's do: compatible peers, no faults.
    pub own_timers: usize,
    /// A turn of a Sentinel looks at so many masters at most.
    pub looks_per_turn: usize,
    /// Only these faults take place, by their number; `None`: all.
    pub only: Option<Vec<u64>>,
    pub planted: Option<Planted>,
    /// Checkers that look away, by name: to show that another one sees the same mistake.
    pub muted: Vec<String>,
}

impl Options {
    /// The run that a seed stands for: five of ten are drawn as a whole.
    pub fn of_seed(seed: u64) -> Options {
        match seed % 10 {
            0 | 5 => Options::contested(seed),
            3 => Options::exercise(seed),
            6 => Options::operators(seed),
            8 => Options::replacements(seed),
            _ => Options::drawn(seed),
        }
    }

    /// A world with one to four masters, of any of the other kinds. Its seeds are a count of their own: what the seeds of
    /// [`Options::of_seed`] mean does not depend on what is drawn here.
    pub fn worlds(seed: u64) -> Options {
        let base = match seed % 5 {
            0 => Options::contested(seed),
            3 => Options::replacements(seed),
            _ => Options::drawn(seed),
        };
        let mut random = Random::seeded(mix(seed ^ 0x3a57_e125));
        let draw = &mut random;
        let count = pick(draw, &[1, 2, 2, 2, 3, 3, 4]);
        let groups = groups::several(draw, count, base.sentinels);
        let mut faults = base.faults.clone();
        for (kind, chance) in [
            (Administrator, 40),
            (Operator, 10),
            (HalfOpen, 40),
            (Pieces, 40),
            (MastersDie, 30),
            (LongLine, 30),
            (Backlog, 30),
        ] {
            let weight = 1 + draw.below(4);
            if draw.below(100) < chance && !faults.iter().any(|(known, _)| *known == kind) {
                faults.push((kind, weight));
            }
        }
        let looks_per_turn = pick(draw, &[1_000, 1, 2]);
        Options { profile: Some("worlds"), groups, faults, careful: true, looks_per_turn, ..base }
    }

    /// A run in which everything is drawn.
    pub fn drawn(seed: u64) -> Options {
        // Its own stream: a new option does not change what the world draws later.
        let mut random = Random::seeded(mix(seed ^ 0x0051_c4e5));
        let draw = &mut random;
        let sentinels = pick(draw, &[3, 3, 5, 5, 7]);
        let quorum = match sentinels {
            3 => 2,
            5 => pick(draw, &[2, 3, 3, 4]),
            _ => pick(draw, &[2, 4, 4, 5]),
        };
        let latency = pick(draw, &[(1, 1), (1, 5), (1, 20), (5, 60)]);
        let save_ms = pick(draw, &[(0, 0), (0, 0), (0, 3), (1, 30)]);
        let faults = ALL_FAULTS
            .into_iter()
            .filter_map(|kind| {
                // Half of the kinds are off in a given run. Operators and lost files come seldom: what lost files bring is
                // excused from some checkers, and operators move masters whom nothing ails.
                let chance = match kind {
                    Operator | TwoOperators | SentinelReplaced | Administrator => 8,
                    ServerBusy | ServerUnwilling | LyingInfo | Stranger | Forger => 25,
                    _ => 50,
                };
                let weight = 1 + draw.below(4);
                (draw.below(100) < chance).then_some((kind, weight))
            })
            .collect();
        Options {
            seed,
            profile: None,
            sentinels,
            groups: groups::one(sentinels, pick(draw, &[1, 2, 3, 3, 4, 5]), quorum),
            down_after: pick(draw, &[500, 1000, 1000, 3000]),
            failover_timeout: pick(draw, &[3_000, 6_000, 15_000]),
            parallel_syncs: pick(draw, &[1, 1, 2]),
            tilt_period: pick(draw, &[3_000, 10_000, 30_000]),
            latency,
            save_ms,
            sync_ms: (50, pick(draw, &[100, 500, 3_000])),
            loading_ms: pick(draw, &[0, 300, 2_000]),
            repl_timeout: pick(draw, &[2_000, 10_000]),
            refuse_stale: draw.below(4) == 0,
            warmup_ms: 5_000,
            safety_ms: pick(draw, &[20_000, 40_000, 60_000]),
            fault_gap_ms: pick(draw, &[500, 2_000, 5_000]),
            faults_at_once: pick(draw, &[1, 2, 3, 5]),
            down_after_refused: pick(draw, &[0, 0, 100, 300]),
            ping_period: pick(draw, &[0, 0, 50, 200]),
            faults,
            careful: false,
            drill: false,
            priority_zero: draw.below(4) == 0,
            own_timers: if draw.below(4) == 0 { 1 + pick(draw, &[0, 1, sentinels - 1]) } else { 0 },
            looks_per_turn: 1_000,
            only: None,
            planted: None,
            muted: Vec::new(),
        }
    }

    /// Elections in bad weather: slow links, so that candidates meet in one epoch, masters that die often, and
    /// Sentinels that crash at their saves.
    pub fn contested(seed: u64) -> Options {
        let faults =
            vec![(SentinelCrash, 6), (ServerKill, 2), (ServerLoss, 2), (LinkCut, 2), (Reset, 1), (FailingDisk, 1)];
        Options {
            sentinels: 5,
            own_timers: if seed.is_multiple_of(10) { 2 } else { 0 },
            groups: groups::one(5, 3, 3),
            down_after: 500,
            failover_timeout: 3_000,
            latency: (5, 60),
            safety_ms: 30_000,
            fault_gap_ms: 500,
            faults_at_once: 5,
            faults,
            ..Options::drawn(seed)
        }
    }

    /// Nothing is wrong but that the master dies, again and again.
    pub fn exercise(seed: u64) -> Options {
        let mut random = Random::seeded(mix(seed ^ 0x0d41_1100));
        let sentinels = pick(&mut random, &[3, 5, 7]);
        Options {
            latency: pick(&mut random, &[(1, 1), (1, 3)]),
            down_after: pick(&mut random, &[500, 1_000, 3_000]),
            failover_timeout: 15_000,
            drill: true,
            ..Options::calm(seed, sentinels)
        }
    }

    /// Three Sentinels that share two masters, whose servers die and whose operators forget: a small world for what several
    /// masters show.
    pub fn shared(seed: u64) -> Options {
        let group = |name, first: usize| Group {
            name,
            servers: first..first + 3,
            watchers: vec![0, 1, 2],
            quorum: 2,
            patience: 1,
        };
        Options {
            profile: Some("shared"),
            groups: vec![group(groups::NAMES[0], 0), group(groups::NAMES[1], 3)],
            failover_timeout: 6_000,
            safety_ms: 20_000,
            fault_gap_ms: 1_000,
            faults_at_once: 2,
            faults: vec![(Administrator, 4), (ServerKill, 3), (SentinelCrash, 1)],
            careful: true,
            ..Options::calm(seed, 3)
        }
    }

    /// Two masters whose connections become voids or carry messages in pieces.
    pub fn wires(seed: u64) -> Options {
        let faults = vec![(HalfOpen, 4), (Pieces, 2), (Reset, 1), (ServerKill, 1)];
        Options { profile: Some("wires"), faults, ..Options::shared(seed) }
    }

    /// Two masters, whose connections are lost while a Sentinel takes long to make new ones.
    pub fn lines(seed: u64) -> Options {
        let faults = vec![(LongLine, 4), (Reset, 6), (ServerKill, 1)];
        Options { profile: Some("lines"), faults, faults_at_once: 4, ..Options::shared(seed) }
    }

    /// Two masters, and Sentinels that cannot read as fast as they are answered.
    pub fn backlogs(seed: u64) -> Options {
        let faults = vec![(Backlog, 6), (ServerKill, 1), (Reset, 1)];
        Options { profile: Some("backlogs"), faults, ..Options::shared(seed) }
    }

    /// Nothing is wrong but that several masters die, at once or one after the other.
    pub fn rush(seed: u64) -> Options {
        let base = Options::exercise(seed);
        let mut random = Random::seeded(mix(seed ^ 0x0e5c_a1e5));
        let draw = &mut random;
        let count = pick(draw, &[2, 3, 4]);
        let mut groups = groups::several(draw, count, base.sentinels);
        let mut first = 0;
        for group in &mut groups {
            (group.servers, group.patience) = (first..first + 3, 1);
            first += 3;
        }
        // Failovers last, so that the next master dies before they are over.
        Options { profile: Some("rush"), groups, sync_ms: (1_500, 3_000), ..base }
    }

    /// Nothing is wrong but that operators call SENTINEL FAILOVER, mostly two of them at once.
    pub fn operators(seed: u64) -> Options {
        Options {
            latency: (1, 3),
            failover_timeout: 15_000,
            safety_ms: 40_000,
            fault_gap_ms: 5_000,
            faults_at_once: 1,
            faults: vec![(TwoOperators, 3), (Operator, 1)],
            ..Options::calm(seed, 3)
        }
    }

    /// Operators call SENTINEL FAILOVER on both sides of a partition, while a majority elects on one of them.
    pub fn divided(seed: u64) -> Options {
        let mut random = Random::seeded(mix(seed ^ 0x0d1b_1ded));
        let sentinels = pick(&mut random, &[3, 5]);
        Options {
            profile: Some("divided"),
            latency: (1, 5),
            failover_timeout: 6_000,
            safety_ms: 30_000,
            fault_gap_ms: 500,
            faults_at_once: 4,
            faults: vec![(Partition, 3), (ServerLoss, 2), (Operator, 3), (TwoOperators, 2)],
            ..Options::calm(seed, sentinels)
        }
    }

    /// Sentinels that come back with nothing but their address, while elections are held.
    pub fn replacements(seed: u64) -> Options {
        let faults = vec![(SentinelReplaced, 4), (SentinelCrash, 3), (ServerKill, 3), (LinkCut, 1)];
        Options { faults, latency: (1, 5), faults_at_once: 6, ..Options::contested(seed) }
    }

    /// All servers of the world.
    pub fn servers(&self) -> usize {
        self.groups.last().map_or(0, |group| group.servers.end)
    }

    /// The master to which a server belongs, whatever it is at the moment.
    pub fn group_of(&self, server: usize) -> &Group {
        self.groups.iter().find(|group| group.servers.contains(&server)).expect("every server belongs to a master")
    }

    pub fn named(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    pub fn down_after_of(&self, group: &Group) -> u64 {
        group.patience * self.down_after
    }

    /// Whether a Sentinel may come to know fewer of the others than there are.
    pub fn forgetful(&self) -> bool {
        self.faults.iter().any(|(kind, _)| matches!(kind, SentinelReplaced | Administrator | Forger))
    }

    /// A group without faults on links of exactly 1 ms: for measuring.
    pub fn calm(seed: u64, sentinels: usize) -> Options {
        let majority = u32::try_from(sentinels / 2 + 1).expect("a handful");
        Options {
            sentinels,
            groups: groups::one(sentinels, 3, majority),
            down_after: 1_000,
            failover_timeout: 60_000,
            parallel_syncs: 1,
            latency: (1, 1),
            save_ms: (0, 0),
            sync_ms: (50, 100),
            loading_ms: 0,
            repl_timeout: 10_000,
            refuse_stale: false,
            down_after_refused: 0,
            ping_period: 0,
            faults: Vec::new(),
            priority_zero: false,
            own_timers: 0,
            ..Options::drawn(seed)
        }
    }

    /// After the last fault is healed the group must agree within this span, ms.
    ///
    /// The longest honest road: a Sentinel was frozen and sits in TILT; then the full wait of 2 × failover-timeout
    /// stands, because somebody may have won; the failover takes up to failover-timeout; its choice dies with a
    /// wrong setting elsewhere, which is put right after another failover-timeout; a server that claims to be
    /// master is believed down only after down-after + 2 × info period; and a replica that follows the wrong
    /// node shows it in an INFO that comes every ten seconds. Twice the rest is for dials and retransmissions.
    pub fn convergence_ms(&self) -> u64 {
        let info_period = 10_000;
        // An operator may have doubled what belongs to the master.
        self.tilt_period
            + 8 * self.failover_timeout
            + 2 * self.groups.iter().map(|group| self.down_after_of(group)).max().unwrap_or(0)
            + 3 * info_period
            + 2 * (self.sync_ms.1 + self.loading_ms)
            + 30_000
    }
}

/// One line for the head of a story.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quorums = match &self.groups[..] {
            [only] => only.quorum.to_string(),
            several => format!("{several:?}"),
        };
        write!(
            f,
            "seed {}: {} Sentinels, {} servers, quorum {}, down-after {}, failover-timeout {}, down-after-refused {}, \
             ping-period {}, latency {}..{} ms, save {}..{} ms, {} faults at once every {} ms, {} with timers of their own, \
             {} masters a turn, planted {:?}, faults {:?}",
            self.seed,
            self.sentinels,
            self.servers(),
            quorums,
            self.down_after,
            self.failover_timeout,
            self.down_after_refused,
            self.ping_period,
            self.latency.0,
            self.latency.1,
            self.save_ms.0,
            self.save_ms.1,
            self.faults_at_once,
            self.fault_gap_ms,
            self.own_timers,
            self.looks_per_turn,
            self.planted,
            self.faults,
        )
    }
}

/// One of several, each as likely.
pub fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[usize::try_from(random.below(from.len() as u64)).expect("an index")]
}

/// Uniform in `range.0..=range.1`.
pub fn between(random: &mut Random, range: (u64, u64)) -> u64 {
    range.0 + random.below(range.1 - range.0 + 1)
}
