//! `artoo serve`: one running artoo for another program and for a browser, until the client leaves or a signal comes (design §21).
//!
//! Owns what is started, in which order it ends, and the exit code. Decides nothing about tasks.

pub mod desk;
mod http;
mod mcp;
mod question;
mod state;

use std::io::IsTerminal as _;
use std::path::Path;

use tokio::task::JoinHandle;

use self::desk::{Desk, Person};
use self::http::{Dashboard, House};
use self::mcp::Front;
use crate::args::Options;
use crate::failure::Failure;
use crate::past::Past;
use crate::session::Show;
use crate::settings::{self, Environment, Settings};
use crate::signals::Signals;
use crate::spending::price;
use crate::system::{self, System};
use crate::{notices, output};

/// Serves until the client of `mcp` has closed its end (exit 0), or a signal comes (exit 130). With `http` alone nothing runs in this
/// process: the page shows what runs in others.
///
/// # Errors
/// [`Failure`] when the system cannot be started or the address cannot be had.
pub async fn run(options: &Options, env: &Environment, mcp: bool, http: Option<&str>) -> Result<u8, Failure> {
    let settings = if mcp {
        settings::load(options, env)?
    } else {
        settings::load_without_models(options, env)?
    };
    let show = if options.quiet { Show::Nothing } else { Show::Progress };
    notices(&settings, show);
    let mut signals = Signals::listen()?;
    if mcp {
        return with_system(&settings, env, show, http, &mut signals).await;
    }
    if let Some(address) = http {
        let dashboard = Dashboard::open(address, house(&settings, None)).await?;
        let until = async {
            signals.next().await;
        };
        dashboard.run(until).await;
    }
    Ok(130)
}

/// Runs tasks here, for the client on standard input and for the page.
async fn with_system(
    settings: &Settings,
    env: &Environment,
    show: Show,
    http: Option<&str>,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let past = match &settings.session {
        Some(name) => Some(Past::named(&settings.data_dir, name, system::redactor(settings, env))?),
        None => None,
    };
    let system = tokio::select! {
        system = System::start(settings, env, show == Show::Nothing) => system?,
        why = signals.next() => return Err(Failure { message: why.to_owned(), hint: None, code: 130 }),
    };
    let served = serve(settings, &system, past, http, signals).await;
    if served.is_err() {
        signals.told("it could not be served");
    }
    system.shutdown(signals).await;
    served
}

async fn serve(
    settings: &Settings,
    system: &System,
    past: Option<Past>,
    http: Option<&str>,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    // Whoever opens the page sees every question, wherever the task came from.
    let overlooked = if http.is_some() { Person::There } else { Person::Absent };
    let (desk, clerk) = Desk::open(system, &settings.data_dir, past, overlooked)?;
    let page = match http {
        Some(address) => Some(open_page(settings, &desk, address).await?),
        None => None,
    };
    if std::io::stdin().is_terminal() {
        output::note(
            "artoo: this speaks the Model Context Protocol with a program; docs/mcp-server.md says how to configure one",
        );
    }
    let front = Front::start(desk.clone());
    let (why, code) = tokio::select! {
        () = front.until_gone() => ("the client closed its end", 0),
        why = signals.next() => (why, 130),
    };
    // Whoever ends the client does not wait for dreams either.
    signals.told(why);
    tokio::select! {
        () = desk.close(why) => {}
        _ = signals.next() => {
            return Err(Failure { message: "stopped before the tasks could end in order".into(), hint: None, code: 130 });
        }
    }
    front.finish().await;
    if let Some(page) = page {
        let _ = page.await;
    }
    // The desk's place is free before the system goes down.
    clerk.abort();
    let _ = clerk.await;
    Ok(code)
}

async fn open_page(settings: &Settings, desk: &Desk, address: &str) -> Result<JoinHandle<()>, Failure> {
    let dashboard = Dashboard::open(address, house(settings, Some(desk.clone()))).await?;
    let desk = desk.clone();
    Ok(tokio::spawn(dashboard.run(async move { desk.until_closing().await })))
}

fn house(settings: &Settings, desk: Option<Desk>) -> House {
    let data: &Path = &settings.data_dir;
    House {
        data: data.to_owned(),
        price: price(settings),
        desk,
    }
}
