//! The configuration file on a file system that does not do as one would like: behaviour.md 14 and the reports in group F.

mod process_support;
mod server_support;

use process_support::{has, has_namespaces, info, mount_in, namespace, pid};
use server_support::{Client, Folder, Guard, binary, free_port, names, serves};
use std::path::PathBuf;
use std::process::Stdio;

/// A Sentinel whose file lies in `state` below its folder, where the script has mounted something.
struct Placed {
    port: u16,
    process: Guard,
    folder: Folder,
}

impl Placed {
    /// The script sees the folder as its working directory, and `seed.conf` there.
    fn start(script: &str) -> Placed {
        let (folder, port) = (Folder::new(), free_port());
        std::fs::create_dir(folder.path("state")).unwrap();
        let log = folder.path("log");
        folder.write(
            "seed.conf",
            &format!(
                "# a comment\nport {port}\nbind 127.0.0.1\nlogfile {}\nsentinel monitor m 127.0.0.1 1 1\n",
                log.display()
            ),
        );
        let mut command = namespace(&format!("{script}; exec \"$1\" state/sentinel.conf"));
        command.arg(binary().get_program()).current_dir(&folder.0).stdout(Stdio::null());
        let process = Guard(command.stderr(std::fs::File::create(folder.path("err")).unwrap()).spawn().unwrap());
        serves(port);
        Placed { port, process, folder }
    }

    /// A path below the folder, as the Sentinel sees it.
    fn inside(&self, path: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", pid(&self.process)));
        root.join(self.folder.path(path).strip_prefix("/").unwrap())
    }

    fn conf(&self) -> String {
        std::fs::read_to_string(self.inside("state/sentinel.conf")).unwrap()
    }

    fn client(&self) -> Client {
        Client::connect(self.port)
    }

    fn log(&self) -> String {
        self.folder.read("log")
    }

    /// Waits until the Sentinel has saved by itself what it could not save before.
    fn until_saved(&self) {
        let mut client = self.client();
        server_support::until("a save that goes well", || {
            (info(&mut client, "sentinel_config_save_failing") == "0").then_some(())
        });
        assert!(self.log().contains("can be written again"), "{}", self.log());
    }
}

#[test]
fn r77_a_file_that_is_bind_mounted_alone_is_rewritten_in_place_and_keeps_the_state() {
    if !has_namespaces() {
        return;
    }
    let placed =
        Placed::start("cp seed.conf real.conf; touch state/sentinel.conf; mount --bind real.conf state/sentinel.conf");
    let mut client = placed.client();
    assert_eq!(client.ask("SENTINEL SET m quorum 3"), "+OK");
    assert_eq!(info(&mut client, "sentinel_config_save_failing"), "0");
    let log = placed.log();
    assert!(log.contains("cannot be replaced") && log.contains("rewritten in place"), "{log}");
    assert_eq!(log.matches("rewritten in place").count(), 1, "said once: {log}");
    // Outside of the container, where the file really is.
    let real = placed.folder.read("real.conf");
    assert!(real.contains("# a comment\n") && real.contains("sentinel monitor m 127.0.0.1 1 3\n"), "{real}");
    assert!(real.contains("sentinel myid "), "{real}");
    assert_eq!(names(&placed.inside("state")), ["sentinel.conf"]);
}

#[test]
fn r77_a_bind_mounted_file_may_shrink_too() {
    if !has_namespaces() {
        return;
    }
    let placed =
        Placed::start("cp seed.conf real.conf; touch state/sentinel.conf; mount --bind real.conf state/sentinel.conf");
    let mut client = placed.client();
    assert_eq!(client.ask("SENTINEL MONITOR with-a-long-name-that-makes-the-file-longer 127.0.0.1 2 2"), "+OK");
    assert!(placed.folder.read("real.conf").contains("longer"));
    assert_eq!(client.ask("SENTINEL REMOVE with-a-long-name-that-makes-the-file-longer"), "+OK");
    let real = placed.folder.read("real.conf");
    assert!(!real.contains("longer") && real.contains("sentinel monitor m "), "{real}");
    assert!(real.ends_with('\n') && !real.contains('\0'), "{real:?}");
}

#[test]
fn r79_a_full_disk_is_told_keeps_the_old_file_and_is_tried_again() {
    if !has_namespaces() {
        return;
    }
    let placed = Placed::start("mount -t tmpfs -o size=64k none state; cp seed.conf state/sentinel.conf");
    let mut client = placed.client();
    let before = placed.conf();
    assert!(before.contains("sentinel myid "), "{before}");
    let filler = placed.inside("state/filler");
    let full = std::fs::write(&filler, vec![0; 256 * 1024]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);

    let reply = client.ask("SENTINEL SET m quorum 3");
    assert!(reply.starts_with("-ERR Failed to save config file"), "{reply}");
    assert_eq!(info(&mut client, "sentinel_config_save_failing"), "1");
    let reply = client.ask("SENTINEL FLUSHCONFIG");
    assert!(reply.starts_with("-ERR Failed to save config file"), "{reply}");
    assert_eq!(placed.conf(), before);
    assert_eq!(names(&placed.inside("state")), ["filler", "sentinel.conf"], "no half of a file is left behind");
    assert!(placed.log().contains("could not be saved"), "{}", placed.log());

    std::fs::remove_file(filler).unwrap();
    placed.until_saved();
    // It was told as failed, but what is in the memory is what gets written.
    assert!(placed.conf().contains("sentinel monitor m 127.0.0.1 1 3\n"), "{}", placed.conf());
    assert_eq!(names(&placed.inside("state")), ["sentinel.conf"]);
}

#[test]
fn a_file_system_that_becomes_read_only_is_told_and_written_again_when_it_is_not() {
    if !has_namespaces() || !has("nsenter") {
        return;
    }
    let placed = Placed::start("mount -t tmpfs none state; cp seed.conf state/sentinel.conf");
    let mut client = placed.client();
    let before = placed.conf();
    let state = placed.folder.path("state");
    mount_in(pid(&placed.process), &["-o", "remount,bind,ro", state.to_str().unwrap()]);
    let reply = client.ask("SENTINEL SET m quorum 3");
    assert!(reply.starts_with("-ERR Failed to save config file"), "{reply}");
    assert_eq!(info(&mut client, "sentinel_config_save_failing"), "1");
    assert_eq!(client.ask("PING"), "+PONG");
    assert_eq!(placed.conf(), before);
    mount_in(pid(&placed.process), &["-o", "remount,bind,rw", state.to_str().unwrap()]);
    placed.until_saved();
    assert!(placed.conf().contains("sentinel monitor m 127.0.0.1 1 3\n"), "{}", placed.conf());
}
