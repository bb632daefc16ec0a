//! What the kernel holds a confined command to (design §9), with real processes.
//!
//! Where the machine has no sandbox these tests say so and pass: there the gate asks for every command.

mod faults;
mod guarded;
#[path = "../../../artoo-testkit/src/skipping.rs"]
mod skipping;

use std::path::{Path, PathBuf};
use std::time::Duration;

use artoo_executor::sandbox::{Allows, Confinement, Sandbox, Writable};
use artoo_executor::spawn::{Ended, Launch, environment, run};
use skipping::skipped;

pub fn helper() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_artoo-sandbox"))
}

fn sandbox() -> Option<Sandbox> {
    let sandbox = Sandbox::with_helper(helper());
    match sandbox.in_force() {
        Ok(_) => Some(sandbox),
        Err(why) => {
            skipped("sandbox", why);
            None
        }
    }
}

/// The same for every level of the kernel's interface that this kernel can stand in for.
fn every_level() -> Vec<Sandbox> {
    if sandbox().is_none() {
        return Vec::new();
    }
    let levels = (1..=7).map(|version| Sandbox::with_landlock_at_most(helper(), version));
    levels.filter(|sandbox| sandbox.in_force().is_ok()).collect()
}

/// The same, and bubblewrap in Landlock's place where this machine has it.
fn every_way() -> Vec<Sandbox> {
    let mut all = every_level();
    let bubblewrap = Sandbox::with_landlock_at_most(helper(), 0);
    match bubblewrap.in_force() {
        Ok(_) => all.push(bubblewrap),
        Err(why) => skipped("bubblewrap", why),
    }
    all
}

fn launch(sandbox: &Sandbox, cwd: &Path, command: &str, confinement: Confinement) -> Launch {
    let mut environment = environment(std::env::vars_os());
    environment.push(("HOME".into(), cwd.into()));
    Launch {
        command: command.into(),
        cwd: cwd.into(),
        environment,
        limit: Duration::from_secs(20),
        sandbox: sandbox.clone(),
        confinement,
    }
}

async fn output(sandbox: &Sandbox, cwd: &Path, command: &str, confinement: Confinement) -> Ended {
    run(launch(sandbox, cwd, command, confinement)).await.unwrap()
}

fn world() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let base = root.path().canonicalize().unwrap();
    std::fs::write(base.join("a.txt"), "one\ntwo\n").unwrap();
    std::fs::create_dir(base.join("work")).unwrap();
    std::fs::write(base.join("work/old.txt"), "old\n").unwrap();
    (root, base)
}

fn snapshot(folder: &Path) -> String {
    let script = "find . -exec stat -c '%n %f %s %Y %u %g' {} + | sort; find . -type f -exec sha256sum {} + | sort";
    let output = std::process::Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_command_taken_for_a_read_changes_nothing_at_any_level_of_the_kernel() {
    for sandbox in every_way() {
        let (_root, base) = world();
        let before = snapshot(&base);
        for command in [
            "rm -rf a.txt work",
            "echo x > a.txt",
            "echo x >> a.txt",
            "> a.txt",
            "mv a.txt b.txt",
            "ln a.txt b.txt",
            "ln -s a.txt b.txt",
            "mkdir new",
            "mkfifo pipe",
            "chmod 777 a.txt",
            "touch a.txt",
            "touch -r work a.txt",
            "truncate -s 0 a.txt",
            "python3 -c 'import os; os.truncate(\"a.txt\", 0)'",
            "python3 -c 'import os; os.open(\"a.txt\", os.O_RDONLY | os.O_TRUNC)'",
            "python3 -c 'import os; os.utime(os.open(\"a.txt\", os.O_RDONLY))'",
            "perl -e 'open F, \"<\", \"a.txt\"; chmod 0777, *F'",
            "sed -i 1d a.txt",
            "cp a.txt work/old.txt",
            "tee work/old.txt < a.txt",
            "sort -o a.txt a.txt -r",
            "ls; rm a.txt",
        ] {
            let ended = output(&sandbox, &base, command, Confinement::Read).await;
            assert_eq!(
                snapshot(&base),
                before,
                "{command}: {ended:?} under {:?}",
                sandbox.in_force()
            );
        }
    }
}

#[tokio::test]
async fn a_command_taken_for_a_read_reaches_no_socket_and_no_other_process() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_root, base) = world();
    let unix = std::os::unix::net::UnixListener::bind(base.join("docker.sock")).unwrap();
    let log = std::os::unix::net::UnixDatagram::bind(base.join("log.sock")).unwrap();
    log.set_nonblocking(true).unwrap();
    for sandbox in every_way() {
        let victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut victim = Ending(victim);
        let python = |code: &str| format!("python3 -c 'import socket, os\n{code}'");
        for command in [
            format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
            python("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
            python("socket.socket(socket.AF_INET6, socket.SOCK_STREAM)"),
            python("socket.socket(socket.AF_UNIX).connect(\"docker.sock\")"),
            python("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
            python("socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b\"x\", \"log.sock\")"),
            python("socket.socketpair(type=socket.SOCK_RAW)[0].sendto(b\"x\", \"log.sock\")"),
            python("socket.socketpair(type=socket.SOCK_STREAM)[0].sendto(b\"x\", \"log.sock\")"),
            python("socket.socketpair(type=socket.SOCK_SEQPACKET)[0].sendto(b\"x\", \"log.sock\")"),
            format!("kill -9 {}", victim.0.id()),
            format!("/bin/kill -STOP {}", victim.0.id()),
            format!("cat /proc/{}/environ", victim.0.id()),
            "unshare -r true".to_owned(),
            "unshare -m true".to_owned(),
            "mount -t tmpfs x work".to_owned(),
            "su -c true nobody".to_owned(),
        ] {
            let ended = output(&sandbox, &base, &command, Confinement::Read).await;
            assert_ne!(
                ended.exit,
                Some(0),
                "{command}: {ended:?} under {:?}",
                sandbox.in_force()
            );
        }
        assert_eq!(victim.0.try_wait().unwrap(), None, "it still runs");
    }
    drop(unix);
    assert!(log.recv(&mut [0]).is_err(), "nobody was written to");
}

struct Ending(std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn what_only_looks_works_as_it_does_outside() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    for command in [
        "ls -l | wc -l",
        "sort a.txt | uniq -c",
        "find . -name '*.txt' | sort | xargs wc -l",
        "cat <<EOF\n$(wc -l < a.txt)\nEOF",
        "diff <(sort a.txt) <(sort -r a.txt)",
        "awk '{ s += length($0) } END { print s }' a.txt",
        "ps -e -o pid= | wc -l > /dev/null; echo $?",
        "git --version; python3 --version",
        "id -u; nproc; uname -r; df -P / | wc -l",
        "for f in *.txt; do wc -l < \"$f\"; done",
        "timeout 5 echo in time; nice -n 5 echo nice",
        "exit 7",
        "bash -c 'echo inner; exit 3'",
        "sed -n 1p a.txt 2>/dev/null",
    ] {
        let inside = output(&sandbox, &base, command, Confinement::Read).await;
        let outside = output(&Sandbox::unchecked(), &base, command, Confinement::Read).await;
        assert_eq!(inside, outside, "{command}");
    }
}

#[tokio::test]
async fn a_command_has_a_scratch_folder_that_goes_with_it() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    let command =
        "f=$(mktemp) && echo kept > \"$f\" && cat \"$f\" && rm \"$f\" && mkdir \"$TMPDIR/d\" && echo \"$TMPDIR\"";
    let ended = output(&sandbox, &base, command, Confinement::Read).await;
    let (kept, folder) = ended
        .stdout
        .text
        .trim()
        .split_once('\n')
        .unwrap_or_else(|| panic!("{ended:?}"));
    assert_eq!(kept, "kept");
    assert!(
        Path::new(folder).is_absolute() && !Path::new(folder).exists(),
        "{folder}"
    );
}

#[tokio::test]
async fn a_write_reaches_its_places_and_can_remove_nothing_there() {
    for sandbox in every_level() {
        let (_root, base) = world();
        let places = vec![
            Writable {
                path: base.join("work"),
                allows: Allows::Making,
            },
            Writable {
                path: base.join("a.txt"),
                allows: Allows::Changing,
            },
        ];
        let confinement = Confinement::Write(places);
        let good =
            "mkdir -p work/d && echo new > work/d/new.txt && touch work/t && echo own > a.txt && ls | tee work/list";
        let ended = output(&sandbox, &base, good, confinement.clone()).await;
        assert_eq!(ended.exit, Some(0), "{ended:?}");
        let before = snapshot(&base);
        for command in [
            "echo x > b.txt",
            "rm work/d/new.txt",
            "mv work/t work/u",
            "rmdir work/d",
            "chmod 777 work/t",
            "touch -d yesterday work/t",
            "ln a.txt work/hard",
            "echo x > /tmp/artoo-should-not-be-here",
            "exec 3<>/dev/tcp/127.0.0.1/80",
        ] {
            let ended = output(&sandbox, &base, command, confinement.clone()).await;
            assert_ne!(ended.exit, Some(0), "{command}: {ended:?}");
            assert_eq!(snapshot(&base), before, "{command}");
        }
    }
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    let place = Writable {
        path: base.join("work"),
        allows: Allows::Making,
    };
    let ended = output(&sandbox, &base, "> work/old.txt", Confinement::Write(vec![place])).await;
    assert_ne!(ended.exit, Some(0), "what is there is not cut");
    assert_eq!(std::fs::read_to_string(base.join("work/old.txt")).unwrap(), "old\n");
}

#[tokio::test]
async fn a_path_that_became_a_link_after_it_was_judged_leads_nowhere() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    std::fs::create_dir(base.join("elsewhere")).unwrap();
    std::fs::rename(base.join("work"), base.join("was")).unwrap();
    std::os::unix::fs::symlink(base.join("elsewhere"), base.join("work")).unwrap();
    let place = |path: &str| Writable {
        path: base.join(path),
        allows: Allows::Changing,
    };
    let ended = output(
        &sandbox,
        &base,
        "echo x > work/new.txt",
        Confinement::Write(vec![place("work")]),
    )
    .await;
    assert_ne!(ended.exit, Some(0), "{ended:?}");
    std::fs::create_dir(base.join("ws")).unwrap();
    std::os::unix::fs::symlink(base.join("elsewhere/x"), base.join("ws/link")).unwrap();
    let ended = output(
        &sandbox,
        &base,
        "echo x > ws/link",
        Confinement::Write(vec![place("ws")]),
    )
    .await;
    assert_ne!(ended.exit, Some(0), "{ended:?}");
    assert_eq!(std::fs::read_dir(base.join("elsewhere")).unwrap().count(), 0);
}

/// How many processes have this text in their command line.
fn running(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.replace('\0', " ").starts_with(&format!("sleep {mark}")))
        .count()
}

async fn gone(mark: &str) -> bool {
    for _ in 0..300 {
        if running(mark) == 0 {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn nothing_outlives_a_command_however_it_forks_away() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    for confinement in [Confinement::Read, Confinement::Allowed] {
        let away = "setsid sleep 50.11 & (setsid sh -c 'trap \"\" TERM HUP; sleep 50.11' &) ; (sleep 50.11 &) ; exec >&- 2>&-; exit 0";
        let ended = output(&sandbox, &base, away, confinement.clone()).await;
        assert_eq!((ended.exit, running("50.11")), (Some(0), 0), "{ended:?}");
        let mut late = launch(
            &sandbox,
            &base,
            "echo begun; trap '' TERM; setsid sleep 50.12 & setsid sleep 50.12",
            confinement.clone(),
        );
        late.limit = Duration::from_millis(400);
        let ended = run(late).await.unwrap();
        assert_eq!(
            (ended.stdout.text.as_str(), ended.timed_out, running("50.12")),
            ("begun\n", true, 0)
        );
        let dropped = run(launch(
            &sandbox,
            &base,
            "setsid sleep 50.13 & sleep 50.13 | cat",
            confinement,
        ));
        let _ = tokio::time::timeout(Duration::from_millis(400), dropped).await;
        assert!(gone("50.13").await, "dropping the run ends everything");
    }
}

#[tokio::test]
async fn a_command_cannot_kill_its_supervisor_or_its_siblings_and_its_own_signal_is_told() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    let ended = output(
        &sandbox,
        &base,
        "kill -9 $PPID; kill -9 -1; kill 0; echo alive",
        Confinement::Read,
    )
    .await;
    assert_ne!(ended.exit, Some(0), "it ended itself: {ended:?}");
    let ended = output(&sandbox, &base, "kill -SEGV $$", Confinement::Read).await;
    assert_eq!(ended.exit, None, "{ended:?}");
}

#[tokio::test]
async fn disk_memory_and_processes_are_limited() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    let fill = output(
        &sandbox,
        &base,
        "head -c 2G /dev/zero > $TMPDIR/full; stat -c %s $TMPDIR/full",
        Confinement::Read,
    )
    .await;
    assert_eq!(fill.stdout.text.trim(), (1_u64 << 30).to_string(), "{fill:?}");
    let memory = output(
        &sandbox,
        &base,
        "python3 -c 'x = bytearray(6 << 30)'",
        Confinement::Read,
    )
    .await;
    assert_ne!(memory.exit, Some(0), "{memory:?}");
    let many = "for i in $(seq 700); do sleep 50.14 & done 2>/dev/null; wait; echo all";
    let ended = output(&sandbox, &base, many, Confinement::Read).await;
    assert!(!ended.stdout.text.contains("all") && running("50.14") == 0, "{ended:?}");
}

#[tokio::test]
async fn a_flood_of_output_is_read_to_its_end_in_bounded_memory() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    // More than any pipe or buffer holds; the bench `costs` reads 200 MB, and says how much memory that takes.
    let command = "head -c 8000000 /dev/zero | tr '\\0' 'x'; echo; echo end";
    let ended = run(launch(&sandbox, &base, command, Confinement::Read)).await.unwrap();
    assert_eq!((ended.exit, ended.stdout.bytes), (Some(0), 8_000_005));
    assert!(ended.stdout.text.ends_with("end\n") && ended.stdout.text.len() < 40_000);
}
