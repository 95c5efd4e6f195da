//! A network of its own for a test: hosts in network namespaces, and a switch between them that cuts, delays and loses.
//!
//! Every host has one cable to the namespace in which the test runs. The kernel there passes nothing on; the switch, a
//! thread of the test, reads each packet, judges it by the two addresses, and sends it on. So faults need no module of
//! the kernel, hit each direction by itself, and are silent, as those of a real network are. The test itself reaches
//! every host whatever is cut.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use watchfire::base::Random;

/// The end of every cable on the test's side.
const TEST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
/// ETH_P_IP, in the order of the network.
const IP: u16 = 0x0800_u16.to_be();
const TCP: u8 = 6;
const LARGEST_PACKET: usize = 65_536;
/// How soon the switch sees that it has to end.
const LOOK_UP: Duration = Duration::from_millis(20);

/// The address of the host with this number, from 1 on.
fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// The words that start a program on a host; its process becomes the program.
#[must_use]
pub fn command(host: Ipv4Addr, program: &Path) -> Command {
    if host.is_loopback() {
        return Command::new(program);
    }
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{host}")).arg(program);
    command
}

/// What happens to packets from one host to another.
#[derive(Default)]
struct Faults {
    cut: BTreeSet<(Ipv4Addr, Ipv4Addr)>,
    delay: Duration,
    /// Packets lost, of a hundred.
    loss: u64,
}

/// Hosts and the switch between them; its thread ends with it, the hosts with the test's namespace.
pub struct Network {
    pub hosts: Vec<Ipv4Addr>,
    faults: Arc<Mutex<Faults>>,
    lost: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    switch: Option<JoinHandle<()>>,
}

impl Network {
    /// To be called inside of [`super::namespace::enter_hosts`].
    ///
    /// # Panics
    /// When the hosts cannot be made.
    #[must_use]
    pub fn of(hosts: u8, seed: u64) -> Network {
        let hosts: Vec<Ipv4Addr> = (1..=hosts).map(address).collect();
        for (index, host) in hosts.iter().enumerate() {
            // Packets of one segment, which the switch can send on as they are.
            let script = format!(
                "ip netns add {host}
                 ip link add cable{index} type veth peer name eth0 netns {host}
                 ip address add {TEST}/32 dev cable{index}
                 ip link set cable{index} up
                 ip route add {host} dev cable{index}
                 ip rule add pref 10 iif cable{index} blackhole
                 ip -n {host} address add {host}/32 dev eth0
                 ip -n {host} link set eth0 gso_max_segs 1
                 ip -n {host} link set eth0 up
                 ip -n {host} link set lo up
                 ip -n {host} route add {TEST} dev eth0
                 ip -n {host} route add default via {TEST} dev eth0"
            );
            let made = Command::new("/bin/sh").args(["-ec", &script]).status().expect("a shell");
            assert!(made.success(), "cannot make the host {host}");
        }
        let ears =
            Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(i32::from(IP)))).expect("a packet socket");
        ears.set_recv_buffer_size(4 << 20).expect("a large buffer");
        // The header is ours as well: the packet goes on as it came.
        let mouth = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).expect("a raw socket");
        let (faults, lost, stop): (Arc<Mutex<Faults>>, Arc<AtomicU64>, Arc<AtomicBool>) = Default::default();
        let switch = Switch {
            ears,
            mouth,
            faults: Arc::clone(&faults),
            lost: Arc::clone(&lost),
            random: Random::seeded(seed),
            late: BTreeMap::new(),
            count: 0,
        };
        let ended = Arc::clone(&stop);
        let switch = Some(std::thread::spawn(move || switch.run(&ended)));
        Network { hosts, faults, lost, stop, switch }
    }

    fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.faults.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// From now on nothing from one of `from` reaches one of `to`; the way back is not touched.
    pub fn cut_one_way(&self, from: &[Ipv4Addr], to: &[Ipv4Addr]) {
        self.change(|faults| faults.cut.extend(from.iter().flat_map(|&from| to.iter().map(move |&to| (from, to)))));
    }

    /// From now on these and all other hosts are lost to each other.
    pub fn isolate(&self, part: &[Ipv4Addr]) {
        let rest: Vec<Ipv4Addr> = self.hosts.iter().copied().filter(|host| !part.contains(host)).collect();
        self.cut_one_way(part, &rest);
        self.cut_one_way(&rest, part);
    }

    /// From now on every packet takes so long, and of a hundred so many are lost.
    pub fn slow(&self, delay: Duration, loss: u64) {
        self.change(|faults| (faults.delay, faults.loss) = (delay, loss));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.change(|faults| *faults = Faults::default());
    }

    /// Packets that no host got.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.switch.take().map_or(Ok(()), JoinHandle::join);
        assert!(ended.is_ok() || std::thread::panicking(), "the switch has failed");
    }
}

struct Switch {
    ears: Socket,
    mouth: Socket,
    faults: Arc<Mutex<Faults>>,
    lost: Arc<AtomicU64>,
    random: Random,
    /// Packets on their way, by the moment of their arrival and their number.
    late: BTreeMap<(Instant, u64), Vec<u8>>,
    count: u64,
}

impl Switch {
    fn run(mut self, stop: &AtomicBool) {
        let mut packet = vec![0; LARGEST_PACKET];
        while !stop.load(Ordering::Relaxed) {
            let next = self.late.first_key_value().map(|((due, _), _)| due.saturating_duration_since(Instant::now()));
            // A wait of nothing would be one without an end.
            let wait = next.unwrap_or(LOOK_UP).clamp(Duration::from_micros(100), LOOK_UP);
            self.ears.set_read_timeout(Some(wait)).expect("a time-out above zero");
            match self.ears.read(&mut packet) {
                Ok(length) => self.judge(&packet[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("the ears of the switch: {error}"),
            }
            while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= Instant::now()) {
                let packet = entry.remove();
                self.send(packet);
            }
        }
    }

    fn judge(&mut self, packet: &[u8]) {
        let Some((from, to)) = ends(packet) else { return };
        // The kernel has that already.
        if to == TEST {
            return;
        }
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let (cut, delay, loss) = (faults.cut.contains(&(from, to)), faults.delay, faults.loss);
        drop(faults);
        if cut || self.random.below(100) < loss {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut packet = packet.to_vec();
        sum_up(&mut packet);
        self.count += 1;
        self.late.insert((Instant::now() + delay, self.count), packet);
    }

    fn send(&mut self, packet: Vec<u8>) {
        let Some((_, to)) = ends(&packet) else { return };
        match self.mouth.send_to(&packet, &SockAddr::from(SocketAddrV4::new(to, 0))) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {}
            Err(error) => panic!("{} bytes to {to}: {error}", packet.len()),
        }
    }
}

/// Where an IPv4 packet with a TCP segment comes from and goes to.
fn ends(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    (packet.first()? >> 4 == 4 && *packet.get(9)? == TCP).then_some((address(12)?, address(16)?))
}

/// Fills in the checksum of the segment, which the sending kernel leaves to its network card.
fn sum_up(packet: &mut [u8]) {
    let start = usize::from(packet[0] & 15) * 4;
    let length = u16::try_from(packet.len() - start).expect("a segment in a packet");
    let field = start + 16;
    packet[field..field + 2].fill(0);
    let words = packet[12..20].chunks(2).chain(packet[start..].chunks(2));
    let sum: u32 = words.map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low))).sum();
    let mut sum = sum + u32::from(TCP) + u32::from(length);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    let sum = !u16::try_from(sum).expect("folded to 16 bits");
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}
