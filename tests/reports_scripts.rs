//! Reports of users, group H: scripts. The numbers are those of the collection of reports; the order in which scripts start
//! is a story in `tests/transcripts` (r107).

mod live;
mod support;

use std::path::PathBuf;
use std::process::Command;

use live::LIMIT;
use support::group::Plan;
use support::process::{Folder, wait_for};

/// An executable script. It is copied by another process: one that we have open for writing could not be run while a child
/// of another test holds it, too.
fn script(folder: &Folder, name: &str, text: &str) -> PathBuf {
    let (source, path) = (folder.path().join(format!("{name}.txt")), folder.path().join(name));
    std::fs::write(&source, text).expect("the folder can be written");
    let done =
        Command::new("/bin/sh").args(["-c", "cp \"$0\" \"$1\" && chmod 755 \"$1\""]).arg(source).arg(&path).status();
    assert!(done.is_ok_and(|status| status.success()));
    path
}

/// The documentation once said that the fourth word is `failover`. It is `start`, and there are seven.
#[test]
fn r107_a_client_reconfig_script_is_told_seven_words_by_the_leader_and_by_the_observers() {
    let folder = Folder::new("scripts");
    let said = folder.path().join("said");
    let text = format!("#!/bin/sh\necho \"$# $*\" >> {}\n", said.display());
    let path = script(&folder, "reconfig.sh", &text);
    let _turn = live::turn();
    let plan = Plan::new(vec![live::watchfire(); 3]).failover_timeout(5_000);
    let mut group = live::start(plan.line(&format!("sentinel client-reconfig-script mymaster {}", path.display())));
    let old = group.ports[0];
    group.kill(old);
    let new = group.wait_switched(LIMIT, old);
    let read = || {
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    wait_for(LIMIT, "three scripts", || read().len() >= 3);
    let told = |role: &str| format!("7 mymaster {role} start 127.0.0.1 {old} 127.0.0.1 {new}");
    assert_eq!(read(), [told("leader"), told("observer"), told("observer")]);
}

/// Set at run time or in the file, it runs after the next failover, and after a restart too.
#[test]
fn r108_scripts_run_after_a_restart_with_the_file_that_was_written() {
    let folder = Folder::new("scripts");
    let said = folder.path().join("said");
    let path = script(&folder, "notify.sh", &format!("#!/bin/sh\necho \"$1\" >> {}\n", said.display()));
    let port = support::ports::free();
    let mut sentinel = support::process::Sentinel::start(
        &live::watchfire(),
        &[
            format!("sentinel monitor mymaster 127.0.0.1 {port} 2"),
            "sentinel down-after-milliseconds mymaster 200".to_string(),
            format!("sentinel notification-script mymaster {}", path.display()),
        ],
    );
    let downs = || std::fs::read_to_string(&said).unwrap_or_default().matches("+sdown").count();
    wait_for(LIMIT, "the script", || downs() == 1);
    assert_eq!(support::conn::text(&sentinel.conn().cmd(&["SENTINEL", "FLUSHCONFIG"])), "OK");
    sentinel.restart();
    wait_for(LIMIT, "the script of the next life", || downs() == 2);
}

/// A name without a slash is the file in the working directory, not what PATH has under that name; and what cannot be
/// executed is told as a script that ended with 2.
#[test]
fn a_script_named_without_a_slash_is_the_one_in_the_working_directory() {
    let folder = Folder::new("scripts");
    let said = folder.path().join("said");
    script(&folder, "true", &format!("#!/bin/sh\necho \"$1\" >> {}\n", said.display()));
    script(&folder, "broken", "#!/no/such/interpreter\n");
    let port = support::ports::free();
    let sentinel = support::process::Sentinel::start(
        &live::watchfire(),
        &[
            format!("dir {}", folder.path().display()),
            format!("sentinel monitor one 127.0.0.1 {port} 2"),
            "sentinel down-after-milliseconds one 200".to_string(),
            "sentinel notification-script one true".to_string(),
            format!("sentinel monitor other 127.0.0.1 {port} 2"),
            "sentinel down-after-milliseconds other 200".to_string(),
            "sentinel notification-script other broken".to_string(),
        ],
    );
    wait_for(LIMIT, "the script", || std::fs::read_to_string(&said).unwrap_or_default().contains("+sdown"));
    wait_for(LIMIT, "the other's failure", || sentinel.log().contains("-script-error broken 0 2"));
}
