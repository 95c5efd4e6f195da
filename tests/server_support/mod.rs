//! Starting the real binary in a folder of its own and talking to it.
#![allow(dead_code)] // each test file uses its part

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take before the test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Polls `condition` until it gives something; panics with `what` when it never does.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A temporary folder, gone with the value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("watchfire-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchfire"));
    command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET").env("LC_ALL", "C");
    command
}

/// Runs the binary to its end.
pub fn run(arguments: &[&str]) -> Output {
    finished(binary().args(arguments))
}

/// Runs a command that has to end by itself; it is ended when it does not.
pub fn finished(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("still running: {:?}", child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// A running Sentinel: `sentinel.conf` and `log` are in its folder. Ended with the value.
pub struct Sentinel {
    pub port: u16,
    pub folder: Folder,
    child: Child,
}

impl Sentinel {
    /// Starts with these lines in the file, besides port, dir and logfile.
    pub fn start(lines: &str) -> Sentinel {
        Sentinel::start_in(Folder::new(), lines, |_| {})
    }

    pub fn start_in(folder: Folder, lines: &str, prepare: impl FnOnce(&mut Command)) -> Sentinel {
        let port = free_port();
        let dir = folder.0.display();
        let conf = folder
            .write("sentinel.conf", &format!("port {port}\nbind 127.0.0.1\ndir {dir}\nlogfile {dir}/log\n{lines}"));
        let mut command = binary();
        command.arg(conf).stdout(Stdio::null()).stderr(std::fs::File::create(folder.path("err")).unwrap());
        prepare(&mut command);
        Sentinel { port, child: command.spawn().unwrap(), folder }.ready()
    }

    /// Starts again after `end`, with the file as it is.
    pub fn again(self) -> Sentinel {
        let (port, folder) = (self.port, self.end("KILL").1);
        let mut command = binary();
        command.arg(folder.path("sentinel.conf")).stdout(Stdio::null());
        command.stderr(std::fs::File::create(folder.path("err")).unwrap());
        Sentinel { port, child: command.spawn().unwrap(), folder }.ready()
    }

    fn ready(mut self) -> Sentinel {
        let start = Instant::now();
        loop {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.write_all(b"PING\r\n").unwrap();
                let mut reply = [0; 7];
                stream.read_exact(&mut reply).unwrap();
                assert_eq!(&reply, b"+PONG\r\n");
                return self;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("ended with {status}: {}{}", self.folder.read("err"), self.folder.read("log"));
            }
            assert!(start.elapsed() < PATIENCE, "does not listen: {}", self.folder.read("log"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        self.folder.read("log")
    }

    pub fn conf(&self) -> String {
        self.folder.read("sentinel.conf")
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn wait(&mut self) -> ExitStatus {
        let child = &mut self.child;
        until("the end of the process", || child.try_wait().unwrap())
    }

    /// Sends a signal and waits for the end.
    pub fn end(mut self, name: &str) -> (ExitStatus, Folder) {
        signal(self.pid(), name);
        let status = self.wait();
        (status, std::mem::replace(&mut self.folder, Folder(PathBuf::new())))
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// A process that ends with the value, whatever the test comes to.
pub struct Guard(pub Child);

impl Guard {
    /// Starts the command and waits until it serves `port`.
    pub fn serving(command: &mut Command, port: u16) -> Guard {
        let guard = Guard(command.spawn().unwrap());
        serves(port);
        guard
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a PING is answered. (A connection alone proves little: the kernel takes it before anybody accepts.)
pub fn serves(port: u16) {
    let mut client = until("it listens", || TcpStream::connect(("127.0.0.1", port)).ok().map(Client::from));
    assert_eq!(client.ask("PING"), "+PONG");
}

/// True for an orderly end.
pub fn is_clean(status: ExitStatus) -> bool {
    status.code() == Some(0) && status.signal().is_none()
}

/// A connection that waits for answers, but not for ever.
pub struct Client(pub TcpStream);

impl From<TcpStream> for Client {
    fn from(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(stream)
    }
}

impl Client {
    pub fn connect(port: u16) -> Client {
        Client::from(TcpStream::connect(("127.0.0.1", port)).unwrap())
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        text(&bytes)
    }

    /// The next line without its end.
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            self.0.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
            if line.ends_with(b"\r\n") {
                line.truncate(line.len() - 2);
                return text(&line);
            }
        }
    }

    /// One request of words, and the first line of its reply.
    pub fn ask(&mut self, request: &str) -> String {
        self.send(format!("{request}\r\n").as_bytes());
        self.line()
    }

    /// What comes until the other side closes.
    pub fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(why) => assert_eq!(why.kind(), std::io::ErrorKind::ConnectionReset, "{why}"),
        }
        text(&bytes)
    }
}

/// What is in a file's folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
