//! Every harmful line of the corpus, run as if it had been taken for a read.
//!
//! Should the sandbox have a hole, these lines must still not touch the machine. So the test starts itself again in
//! namespaces of its own: a root folder in memory with the system's programs read-only, no network, no other processes.
//! Where such namespaces cannot be had it says so and passes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use artoo_executor::sandbox::{Confinement, Sandbox};
use artoo_executor::spawn::{Launch, environment, run};

use crate::corpus::commands;

const INSIDE: &str = "ARTOO_TEST_INSIDE_GUARD";
const HELPER: &str = "/guard/helper";
const WORLD: &str = "/world/here";
const TEMPLATE: &str = "/template";

/// Builds the root folder and becomes the test in it; every step has to work.
const BUILD: &str = r#"
set -eu
root=$1 test=$2 helper=$3
mount --make-rprivate /
mount -t tmpfs -o mode=755 guard "$root"
cd "$root"
mkdir -p usr proc dev tmp etc world guard template old
mount --bind /usr usr
mount -o remount,bind,ro usr
for name in bin sbin lib lib64; do
  if [ -L /$name ]; then cp -a /$name $name; elif [ -d /$name ]; then mkdir $name; mount --bind /$name $name; mount -o remount,bind,ro $name; fi
done
for device in null zero full urandom random tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
ln -s /proc/self/fd dev/fd
mkdir dev/shm
cp /etc/passwd /etc/group /etc/ld.so.cache etc/ 2>/dev/null || true
[ -d /etc/alternatives ] && cp -a /etc/alternatives etc/
mount -t proc proc proc
touch guard/test guard/helper
mount --bind "$test" guard/test
mount --bind "$helper" guard/helper
pivot_root . old
cd /
umount -l /old
if touch /usr/artoo-guard 2>/dev/null; then echo "the guard does not hold" >&2; exit 97; fi
exec /guard/test --exact sandbox::guarded::inside --ignored --nocapture --test-threads 1
"#;

#[test]
#[ignore = "not run yet: it runs harmful lines inside namespaces; start it by name where nothing can be lost"]
fn every_harmful_line_taken_for_a_read_changes_nothing() {
    if let Err(why) = Sandbox::with_helper(super::helper()).in_force() {
        eprintln!("skipped, this machine has no sandbox: {why}");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let namespaces = ["--mount", "--pid", "--fork", "--net", "--ipc", "--uts"];
    let own: &[&str] = if rustix_is_root() {
        &[]
    } else {
        &["--user", "--map-root-user"]
    };
    let can = Command::new("unshare").args(own).args(namespaces).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped, namespaces cannot be had here");
        return;
    }
    let output = Command::new("unshare")
        .args(own)
        .args(namespaces)
        .args(["bash", "-c", BUILD, "guard"])
        .arg(root.path())
        .arg(std::env::current_exe().unwrap())
        .arg(super::helper())
        .env(INSIDE, "1")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("TMPDIR", "/tmp")
        .current_dir("/")
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

fn rustix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Run by the test above, in its guard, and nowhere else.
#[tokio::test]
#[ignore = "it is started by `every_harmful_line_taken_for_a_read_changes_nothing`"]
async fn inside() {
    assert!(
        std::env::var_os(INSIDE).is_some() && Path::new(HELPER).exists() && fs::write("/usr/artoo", "").is_err(),
        "this runs harmful commands, and only in the guard"
    );
    template();
    let sandbox = Sandbox::with_helper(Path::new(HELPER));
    sandbox.in_force().unwrap();
    let lines: Vec<String> = ["harmful.txt", "harmful_held_back.txt"]
        .into_iter()
        .flat_map(commands_inside)
        .collect();
    let mut changed = Vec::new();
    fresh();
    let before = snapshot();
    for line in &lines {
        let ended = run(launch(&sandbox, line, Confinement::Read)).await.unwrap();
        if snapshot() != before {
            changed.push(format!("{line}: {ended:?}"));
            fresh();
        }
    }
    println!(
        "measured: {} of {} harmful lines changed something outside the scratch folder",
        changed.len(),
        lines.len()
    );
    assert!(changed.is_empty(), "{}", changed.join("\n"));

    // The same lines do harm when nothing holds them: else the test above would prove nothing.
    let harmful: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("a.txt") && !line.contains("/dev"))
        .collect();
    let mut harmed = 0;
    for line in &harmful {
        fresh();
        let before = snapshot();
        run(launch(&Sandbox::unchecked(), line, Confinement::Allowed))
            .await
            .unwrap();
        harmed += usize::from(snapshot() != before);
    }
    println!(
        "measured: without the sandbox {harmed} of {} of those that name a.txt do",
        harmful.len()
    );
    assert!(harmed * 2 > harmful.len(), "{harmed} of {}", harmful.len());
}

/// The corpus is not in the guard's root; its text is compiled in.
fn commands_inside(file: &str) -> Vec<String> {
    let text = match file {
        "harmful.txt" => include_str!("../../../../fixtures/commands/harmful.txt"),
        _ => include_str!("../../../../fixtures/commands/harmful_held_back.txt"),
    };
    crate::corpus::lines(text)
}

fn launch(sandbox: &Sandbox, line: &str, confinement: Confinement) -> Launch {
    let mut environment = environment(std::env::vars_os());
    environment.push(("HOME".into(), WORLD.into()));
    Launch {
        command: line.into(),
        cwd: WORLD.into(),
        environment,
        limit: Duration::from_secs(3),
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
    for folder in ["/world", "/etc", "/dev/shm", "/tmp", "/guard"] {
        note(Path::new(folder), &mut all);
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
    // The scratch folder comes and goes in /tmp, which changes that folder's own time and nothing else.
    let time = if path == Path::new("/tmp") {
        0
    } else {
        meta.mtime_nsec() + meta.mtime()
    };
    let facts = format!(
        "{:o} {} {} {} {time} {content}",
        meta.permissions().mode(),
        meta.uid(),
        meta.gid(),
        meta.len()
    );
    let facts = if path == Path::new("/tmp") {
        String::new()
    } else {
        facts
    };
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
