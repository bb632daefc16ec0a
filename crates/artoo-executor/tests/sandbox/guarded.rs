//! Every harmful line of the corpus, run as if it had been taken for a read.
//!
//! Should the sandbox have a hole, these lines must still not touch the machine. So the test starts itself again, as a
//! user without rights, in namespaces of its own: a root folder in memory with the system's programs read-only, no
//! network but a loopback of its own, no other processes, no devices, limits on processes, memory and time. Before the
//! first line it tries all of that, and stops when something does not hold. Where such namespaces cannot be had it says so
//! and passes.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use artoo_executor::sandbox::{Confinement, Sandbox};
use artoo_executor::spawn::{Launch, environment, run};

use super::skipping::skipped;
use crate::corpus::commands;

const INSIDE: &str = "ARTOO_TEST_INSIDE_GUARD";
const HELPER: &str = "/guard/helper";
const WORLD: &str = "/world/here";
const TEMPLATE: &str = "/template";
/// Lines that are run side by side.
const TOGETHER: usize = 16;
/// What no line holds that is run without the sandbox, if only in the guard.
const NOT_FREE: &[&str] = &[
    "/dev/s", "kill", "mount", "reboot", "sudo", "chroot", "unshare", "tmux", "screen", "at now", "batch", "systemd",
    "ssh",
];
/// `nobody`: what a superuser becomes before anything else, so that being root in the guard means nothing outside.
const NOBODY: u32 = 65534;

/// Builds the root folder and becomes the test in it; every step has to work.
const BUILD: &str = r#"
set -eu
base=$1
ulimit -c 0 -u 1000 -f 200000 -d 4000000
mount --make-rprivate /
mount -t tmpfs -o size=256m,mode=755,nosuid guard "$base/root"
cd "$base/root"
mkdir -p usr proc dev tmp etc world guard template old
read_only() { mount --bind "$1" "$2"; mount -o remount,bind,ro "$2"; }
read_only /usr usr
for name in bin sbin lib lib64; do
  if [ -L /$name ]; then ln -s "$(readlink /$name)" $name; elif [ -d /$name ]; then mkdir $name; read_only /$name $name; fi
done
for device in null zero full urandom; do touch dev/$device; mount --bind /dev/$device dev/$device; done
ln -s /proc/self/fd dev/fd
mkdir dev/shm
cp /etc/passwd /etc/group /etc/ld.so.cache etc/ 2>/dev/null || true
[ -d /etc/alternatives ] && cp -dR /etc/alternatives etc/
mount -t proc proc proc
touch guard/test guard/helper
read_only "$base/test" guard/test
read_only "$base/helper" guard/helper
ip link set lo up 2>/dev/null || true
pivot_root . old
cd /
umount -l /old
rmdir /old
exec setsid -w /guard/test --exact sandbox::guarded::inside --ignored --nocapture --test-threads 1
"#;

#[test]
fn every_harmful_line_taken_for_a_read_changes_nothing() {
    if let Err(why) = Sandbox::with_helper(super::helper()).in_force() {
        skipped("sandbox", why);
        return;
    }
    let namespaces = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command
            .args([
                "-k",
                "2",
                "300",
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
            ])
            .args(["--net", "--ipc", "--uts", "--cgroup"])
            .args(arguments)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .current_dir("/");
        if is_superuser() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    if !namespaces(&["true"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        skipped("namespaces", "`unshare` gives no user namespace");
        return;
    }
    // Copies, because the user without rights may not reach the folder that they were built in.
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(base.path().join("root")).unwrap();
    fs::copy(std::env::current_exe().unwrap(), base.path().join("test")).unwrap();
    fs::copy(super::helper(), base.path().join("helper")).unwrap();
    let output = namespaces(&["bash", "-c", BUILD, "guard"])
        .arg(base.path())
        .env_clear()
        .env(INSIDE, "1")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("TMPDIR", "/tmp")
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{}: {text}",
        output.status
    );
    text.lines()
        .filter(|line| line.starts_with("measured:"))
        .for_each(|line| println!("{line}"));
}

fn is_superuser() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Why a harmful line could reach something outside the guard. What can be looked at comes first; only where all of that is
/// right are things tried that must fail.
fn holes() -> Vec<String> {
    let by_looking = [
        (
            std::env::var_os(INSIDE).is_some() && Path::new(HELPER).exists(),
            "it was not started by the guard",
        ),
        (is_nobody_outside(), "it is root outside, too"),
        (processes() <= 4, "it sees processes that are not its own"),
        (
            fs::read_to_string("/proc/net/dev")
                .unwrap()
                .lines()
                .skip(2)
                .all(|line| line.trim().starts_with("lo:")),
            "it has a network",
        ),
    ];
    let outside = [
        "/home", "/root", "/old", "/sys", "/run", "/var", "/dev/tty", "/dev/pts", "/dev/mem",
    ];
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let bounds = ["Max processes", "Max file size", "Max data size"];
    let is_unbounded = |name: &&str| {
        let line = limits.lines().find(|line| line.starts_with(*name));
        line.is_none_or(|line| line[name.len()..].trim().starts_with("unlimited"))
    };
    let looked = by_looking
        .into_iter()
        .filter_map(|(holds, what)| (!holds).then_some(what))
        .chain(outside.into_iter().filter(|path| Path::new(path).exists()))
        .chain(bounds.into_iter().filter(|name| is_unbounded(name)))
        .map(str::to_owned);
    let found: Vec<String> = looked.collect();
    if found.is_empty() { by_trying() } else { found }
}

fn is_nobody_outside() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let outside = map.split_whitespace().nth(1);
    map.lines().count() == 1 && outside.is_some_and(|outside| outside != "0")
}

fn processes() -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .count()
}

fn by_trying() -> Vec<String> {
    let works = |command: &[&str]| {
        let output = Command::new(command[0]).args(&command[1..]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let mut holes = Vec::new();
    for folder in ["/usr", "/usr/bin", "/usr/local", "/bin", "/lib"] {
        if works(&["touch", &format!("{folder}/artoo-hole")]) {
            holes.push(format!("it can write to {folder}"));
        }
    }
    for file in [
        "/guard/helper",
        "/guard/test",
        "/usr/bin/env",
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/panic",
    ] {
        if fs::OpenOptions::new().append(true).open(file).is_ok() {
            holes.push(format!("it can write to {file}"));
        }
    }
    if works(&["mknod", "/tmp/disk", "b", "8", "0"]) {
        holes.push("it can make devices".to_owned());
    }
    holes
}

/// Run by the test above, in its guard, and nowhere else.
#[tokio::test]
#[ignore = "it is started by `every_harmful_line_taken_for_a_read_changes_nothing`"]
async fn inside() {
    let holes = holes();
    assert!(
        holes.is_empty(),
        "this runs harmful commands, and only where they can do none: {holes:?}"
    );
    template();
    let mut world = World::new();
    let sandbox = Sandbox::with_helper(Path::new(HELPER));
    sandbox.in_force().unwrap();
    // The mildest harm first: where that is done, the sandbox is no sandbox, and no other line is run.
    let kill = format!("kill -9 {}", world.other.0.id());
    for first in ["rm a.txt", "echo x > a.txt", &kill, "exec 3<>/dev/tcp/127.0.0.1/80"] {
        let ended = run(launch(&sandbox, first, Confinement::Read)).await.unwrap();
        assert!(!world.was_harmed(), "{first}: {ended:?}");
    }
    let lines: Vec<String> = ["harmful.txt", "harmful_held_back.txt"]
        .into_iter()
        .flat_map(commands_inside)
        .collect();
    let mut changed = Vec::new();
    // Many at once, because some only wait for their time to be over; where one did harm, they are told apart.
    for together in lines.chunks(TOGETHER) {
        let mut running = tokio::task::JoinSet::new();
        for line in together {
            running.spawn(run(launch(&sandbox, line, Confinement::Read)));
        }
        let ended = running.join_all().await;
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        if !world.was_harmed() {
            continue;
        }
        let before = changed.len();
        for line in together {
            world.renew();
            let ended = run(launch(&sandbox, line, Confinement::Read)).await.unwrap();
            if world.was_harmed() {
                changed.push(format!("{line}: {ended:?}"));
            }
        }
        assert!(changed.len() > before, "one of these, but only together: {together:#?}");
        world.renew();
    }
    println!(
        "\nmeasured: {} of {} harmful lines changed something outside the scratch folder",
        changed.len(),
        lines.len()
    );
    assert!(changed.is_empty(), "{}", changed.join("\n"));

    // Some of the same lines do harm when nothing holds them: else the above would prove nothing. None that ends
    // processes, starts what stays, or is about the machine.
    let named = lines
        .iter()
        .filter(|line| line.contains("a.txt") || line.contains("127.0.0.1"));
    let harmful: Vec<&String> = named
        .filter(|line| !NOT_FREE.iter().any(|word| line.contains(word)))
        .step_by(4)
        .collect();
    let mut harmed = 0;
    for line in &harmful {
        world.renew();
        run(launch(&Sandbox::unchecked(), line, Confinement::Allowed))
            .await
            .unwrap();
        harmed += usize::from(world.was_harmed());
    }
    println!(
        "measured: without the sandbox {harmed} of {} of every fourth that names a.txt or 127.0.0.1 do",
        harmful.len()
    );
    assert!(harmed * 2 > harmful.len(), "{harmed} of {}", harmful.len());
}

fn sleeping() -> super::Ending {
    super::Ending(Command::new("sleep").arg("1000").spawn().unwrap())
}

/// The corpus is not in the guard's root; its text is compiled in.
fn commands_inside(file: &str) -> Vec<String> {
    let text = match file {
        "harmful.txt" => include_str!("../../../../fixtures/commands/harmful.txt"),
        _ => include_str!("../../../../fixtures/commands/harmful_held_back.txt"),
    };
    crate::corpus::lines(text)
}

/// What can be harmed: files, a process, and a server that wants to hear from nobody.
struct World {
    before: BTreeMap<PathBuf, String>,
    other: super::Ending,
    server: Option<TcpListener>,
}

impl World {
    fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:80").ok();
        match &server {
            Some(server) => server.set_nonblocking(true).unwrap(),
            None => println!("measured: without a loopback, so that nobody listens for connections"),
        }
        fresh();
        Self {
            before: snapshot(),
            other: sleeping(),
            server,
        }
    }

    fn renew(&mut self) {
        fresh();
        self.before = snapshot();
        self.other = sleeping();
    }

    fn was_harmed(&mut self) -> bool {
        let reached = self.server.as_ref().is_some_and(|server| server.accept().is_ok());
        let ended = self.other.0.try_wait().unwrap().is_some();
        reached || ended || snapshot() != self.before
    }
}

fn launch(sandbox: &Sandbox, line: &str, confinement: Confinement) -> Launch {
    let mut environment = environment(std::env::vars_os());
    environment.push(("HOME".into(), WORLD.into()));
    Launch {
        command: line.into(),
        cwd: WORLD.into(),
        environment,
        limit: Duration::from_secs(1),
        sandbox: sandbox.clone(),
        confinement,
    }
}

/// A world in which the lines find what they want to harm.
fn template() {
    let script = r#"
set -e
mkdir -p /template && cd /template
git init -q . && git config user.name x && git config user.email x@x
for f in a b c x y file config hosts names archive; do printf 'one\ntwo\n' > $f.txt; cp $f.txt $f; done
printf '1,2\n' > data.csv; printf 'a=1\n' > config.yml; echo '{}' > a.json; printf 'a.txt\n' > list; echo done > old.log
git add a.txt && git commit -qm one && echo three >> b.txt && git branch feature && git tag v1
mkdir -p d e empty src build && cp a.txt d && cp b.txt e && echo > d/x.tmp && echo > x.tmp && touch .DS_Store x.pyc -- -weird
tar cf a.tar a.txt && tar czf a.tgz a.txt && gzip -k c.txt && cp c.txt.gz a.gz
printf 'rm a.txt\n' > evil.sh; cp evil.sh install.sh; cp evil.sh run.sh; chmod +x run.sh
printf 'all:\n\trm a.txt\n' > Makefile
printf 'import os\nos.remove("a.txt")\n' > script.py
"#;
    let status = Command::new("bash")
        .args(["-c", script])
        .env("HOME", TEMPLATE)
        .status()
        .unwrap();
    assert!(status.success());
}

fn fresh() {
    let status = Command::new("bash")
        .args([
            "-c",
            "rm -rf /world/here && mkdir -p /world && cp -a /template /world/here",
        ])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Everything in the guard's root that could change, with content, modes, owners and times.
fn snapshot() -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/").unwrap().flatten() {
        let path = entry.path();
        let text = path.to_str().unwrap();
        // What the kernel keeps changing by itself, what the test saw to be read-only, and large programs.
        if !["/proc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/guard"].contains(&text) {
            note(&path, &mut all);
        }
    }
    all
}

fn note(path: &Path, all: &mut BTreeMap<PathBuf, String>) {
    let Ok(meta) = path.symlink_metadata() else { return };
    let content = if meta.is_symlink() {
        fs::read_link(path).unwrap().display().to_string()
    } else if meta.is_file() && meta.len() < 100_000 {
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    } else {
        String::new()
    };
    // The scratch folder comes and goes in /tmp, which changes that folder's own time; writing to /dev/null changes its.
    let own_time = path != Path::new("/tmp") && (meta.is_dir() || meta.is_file() || meta.is_symlink());
    let facts = format!(
        "{:o} {} {} {} {:?} {content}",
        meta.permissions().mode(),
        meta.uid(),
        meta.gid(),
        if own_time { meta.len() } else { 0 },
        own_time.then(|| (meta.mtime(), meta.mtime_nsec())),
    );
    all.insert(path.to_owned(), facts);
    if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            note(&entry.path(), all);
        }
    }
}

#[test]
fn the_guard_runs_what_the_files_hold() {
    for file in ["harmful.txt", "harmful_held_back.txt"] {
        assert_eq!(commands_inside(file), commands(file));
    }
}
