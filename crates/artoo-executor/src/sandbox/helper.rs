//! The helper's own command line (design §9).
//!
//! Owns how a confinement travels from artoo to the helper, and which part of the helper runs. Must not decide anything.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::supervise::Input;
use super::{Allows, Confinement, MARK, Writable, bubblewrap, restrict, supervise};

/// How the answer to a probe begins.
pub const IN_FORCE: &str = "in force: ";
/// The exit status of a helper that cannot do its work; shells use it for what cannot be started.
pub const CANNOT: i32 = 126;

/// The confinement and the limit of Landlock's version, as arguments.
pub fn encode(confinement: &Confinement, landlock: Option<u32>) -> Vec<OsString> {
    let mut arguments = vec![OsString::from(landlock.unwrap_or(u32::MAX).to_string())];
    match confinement {
        Confinement::Allowed => arguments.push("allowed".into()),
        Confinement::Read => arguments.push("read".into()),
        Confinement::Write(places) => {
            arguments.push("write".into());
            for place in places {
                arguments.push(
                    match place.allows {
                        Allows::Making => "making",
                        Allows::Changing => "changing",
                        Allows::Folders => "folders",
                    }
                    .into(),
                );
                arguments.push(place.path.clone().into());
            }
        }
    }
    arguments
}

/// What the helper was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub confinement: Confinement,
    pub landlock: u32,
    /// The program and its arguments.
    pub inner: Vec<OsString>,
}

/// Reads what [`encode`] wrote, and the command behind `--`.
pub fn decode(arguments: &[OsString]) -> Option<Request> {
    let (version, rest) = arguments.split_first()?;
    let (kind, rest) = rest.split_first()?;
    let end = rest.iter().step_by(2).position(|word| word == "--").map(|at| at * 2);
    let (places, inner) = match end {
        Some(end) => (rest.get(..end)?, rest.get(end + 1..)?),
        None => (rest, &[][..]),
    };
    let places = places.chunks(2).map(|pair| match pair {
        [allows, path] if allows == "making" => Some(writable(Allows::Making, path)),
        [allows, path] if allows == "changing" => Some(writable(Allows::Changing, path)),
        [allows, path] if allows == "folders" => Some(writable(Allows::Folders, path)),
        _ => None,
    });
    let places: Vec<Writable> = places.collect::<Option<_>>()?;
    let confinement = match kind.to_str()? {
        "allowed" if places.is_empty() => Confinement::Allowed,
        "read" if places.is_empty() => Confinement::Read,
        "write" => Confinement::Write(places),
        _ => return None,
    };
    Some(Request {
        confinement,
        landlock: version.to_str()?.parse().ok()?,
        inner: inner.to_vec(),
    })
}

fn writable(allows: Allows, path: &OsStr) -> Writable {
    Writable {
        path: path.into(),
        allows,
    }
}

/// See [`super::enter_if_asked`].
pub fn enter_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MARK) {
        return;
    }
    let part = arguments.next().unwrap_or_default();
    let part = part.to_str().unwrap_or_default();
    let bubblewrap = part.ends_with("bubblewrap").then(|| arguments.next()).flatten();
    let bubblewrap = bubblewrap.as_deref().map(Path::new);
    let rest: Vec<OsString> = arguments.collect();
    let Some(request) = decode(&rest) else {
        fail("the sandbox's helper was called in a way that it does not understand");
    };
    let status = match part {
        "supervise" | "bubblewrap" => supervise::run(&request, &rest, bubblewrap, Input::None),
        "attend" => supervise::run(&request, &rest, None, Input::Shared),
        "enter" => enter(&request),
        "probe" => probe(&request),
        "probe-bubblewrap" => probe_inside(bubblewrap, &rest),
        _ => fail("the sandbox's helper was asked for a part that it does not have"),
    };
    std::process::exit(status)
}

/// Gives up the rights and becomes the command.
fn enter(request: &Request) -> i32 {
    if let Err(why) = restrict::apply(request, &std::env::temp_dir()) {
        fail(&why);
    }
    let Some((program, arguments)) = request.inner.split_first() else {
        fail("the sandbox's helper was given no command");
    };
    let error = Command::new(program).args(arguments).exec();
    fail(&format!("{} cannot be started: {error}", Path::new(program).display()))
}

/// Gives up the rights, tries what must be impossible now, and says what is in force.
fn probe(request: &Request) -> i32 {
    let scratch = Path::new("/nonexistent/artoo-scratch");
    match restrict::apply(request, scratch).and_then(|in_force| restrict::holds().map(|()| in_force)) {
        Ok(in_force) => {
            println!("{in_force}");
            0
        }
        Err(why) => fail(&why),
    }
}

/// The same inside bubblewrap.
fn probe_inside(program: Option<&Path>, encoded: &[OsString]) -> i32 {
    let (Some(program), Ok(this)) = (program, std::env::current_exe()) else {
        fail("the sandbox's helper does not find itself");
    };
    let mut command = Command::new(program);
    command
        .args(bubblewrap::arguments(None))
        .arg(this)
        .args([MARK, "probe"])
        .args(encoded);
    let error = command.exec();
    fail(&format!("{} cannot be started: {error}", program.display()))
}

pub fn fail(why: &str) -> ! {
    eprintln!("artoo: {why}");
    std::process::exit(CANNOT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_confinement_survives_its_journey_through_the_command_line() {
        let odd = OsString::from_vec(vec![b'/', b'-', b'-', 0xff]);
        let places = vec![
            writable(Allows::Making, OsStr::new("--")),
            writable(Allows::Changing, &odd),
            writable(Allows::Folders, OsStr::new("/x")),
        ];
        for confinement in [Confinement::Allowed, Confinement::Read, Confinement::Write(places)] {
            let inner = vec![OsString::from("/bin/bash"), "-c".into(), "--".into(), "ls".into()];
            let mut arguments = encode(&confinement, Some(3));
            arguments.push("--".into());
            arguments.extend(inner.clone());
            let expect = Request {
                confinement,
                landlock: 3,
                inner,
            };
            assert_eq!(decode(&arguments), Some(expect));
        }
        let bad: [&[&str]; 5] = [
            &[],
            &["3"],
            &["x", "read"],
            &["3", "nothing"],
            &["3", "read", "making", "/x"],
        ];
        for words in bad {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(decode(&words), None, "{words:?}");
        }
    }
}
