//! `artoo serve --http`: a page in the browser of this machine that shows what runs, what ran, what was learned and what was decided (design §21).
//!
//! Owns the socket, how many may be connected and for how long, and the token. It reads the data folder like the commands that only look, so it
//! shows the tasks of every artoo that works there; it changes nothing but by an answer or an abort.

mod answers;
mod api;
mod board;
mod controller;
mod deeds;
mod guard;
mod holder;
mod journals;
mod memory;
mod watch;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use artoo_bus::Price;
use artoo_protocol::text::one_line;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch as end};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::api::Shared;
use self::guard::{Own, Token};
use super::desk::Desk;
use crate::failure::Failure;
use crate::output;

/// Most connections at once; a browser opens six. More wait until one of them ends.
const CONNECTIONS: usize = 48;
/// How long the head of a request may take, and how long a connection may say nothing.
const HEAD_WAIT: Duration = Duration::from_secs(15);
/// Length from which on no more of a head is read, in bytes; what is read last may be as long again. Most lines in it.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
/// How long a connection may live whose requests bring the token; others end with their first answer. What it is at then may take so much longer.
const LIFE: Duration = Duration::from_secs(120);
const OVERTIME: Duration = Duration::from_secs(60);
/// How long answers may take that are under way when the program ends.
const LAST_WORDS: Duration = Duration::from_millis(400);
/// Pause after the system could not give a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// What the page shows.
pub struct House {
    /// The data folder.
    pub data: PathBuf,
    /// What models cost.
    pub price: Price,
    /// Whoever runs tasks in this process; without one, questions and aborts are those of other processes.
    pub desk: Option<Desk>,
}

/// A server that has its address, and answers once it [runs](Self::run).
pub struct Dashboard {
    listener: TcpListener,
    router: Router,
}

impl Dashboard {
    /// Takes the address and says on standard error where the page is. That line holds the token: it is shown this once.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) for an address that is none, is not of this machine alone, or cannot be had.
    pub async fn open(address: &str, house: House) -> Result<Self, Failure> {
        let wanted = local(address)?;
        let taken = TcpListener::bind(wanted).await;
        let listener = taken.map_err(|error| not_to_be_had(wanted, &error))?;
        let at = listener.local_addr()?;
        let own = Own::new(at, Token::draw()?);
        output::note(&format!(
            "artoo: the dashboard is at http://{at}/#{}",
            own.token().reveal()
        ));
        output::note("  → whoever has this address sees what artoo does and can answer for you: keep it to yourself");
        let router = api::router(Arc::new(Shared::new(house, own)));
        Ok(Self { listener, router })
    }

    /// Answers until then, and ends within a second.
    pub async fn run(self, until: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let (ending, _) = end::channel(());
        let mut connections = JoinSet::new();
        let mut until = pin!(until);
        loop {
            // One is taken from the system only when there is a place for it.
            let accepted = async {
                let place = places.clone().acquire_owned().await;
                (place, self.listener.accept().await)
            };
            tokio::select! {
                () = &mut until => break,
                Some(_) = connections.join_next() => {}
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let (router, ending) = (self.router.clone(), ending.subscribe());
                        connections.spawn(async move {
                            let _place = place;
                            serve(stream, router, ending).await;
                        });
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
            }
        }
        drop(ending);
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(LAST_WORDS, ended).await;
    }
}

/// One connection: until it ends by itself, has lived its time, or the program ends. What goes wrong on it is the other side's matter.
async fn serve(stream: TcpStream, router: Router, mut ending: end::Receiver<()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD)
        .max_headers(HEADERS);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = tokio::time::sleep(LIFE) => {}
        _ = ending.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(OVERTIME, connection).await;
}

/// An address that only this machine can reach.
fn local(text: &str) -> Result<SocketAddr, Failure> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let parsed: Result<SocketAddr, _> = numeric.as_deref().unwrap_or(text).parse();
    let address = parsed.map_err(|_| {
        Failure::usage(format!("`{}` is no address with a port", one_line(text, 60)))
            .hint("such as 127.0.0.1:8080, or 127.0.0.1:0 for a port that is free")
    })?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(Failure::usage(format!(
            "the dashboard is only served to this machine, and {} can be reached from others",
            address.ip()
        ))
        .hint(format!(
            "{}:{}; from elsewhere, ssh -L leads to it",
            Ipv4Addr::LOCALHOST,
            address.port()
        )))
    }
}

fn not_to_be_had(address: SocketAddr, error: &std::io::Error) -> Failure {
    let free = format!("name another port; {}:0 takes one that is free", address.ip());
    match error.kind() {
        ErrorKind::AddrInUse => Failure::usage(format!("{address} is in use by another program")).hint(free),
        ErrorKind::PermissionDenied => Failure::usage(format!("{address} is not yours to take: {error}")).hint(free),
        _ => Failure::usage(format!("{address} cannot be had: {error}")).hint(free),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        for (text, expected) in [
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("localhost:9", Some("127.0.0.1:9")),
            ("[::1]:8080", Some("[::1]:8080")),
            ("127.8.8.8:1", Some("127.8.8.8:1")),
            ("0.0.0.0:8080", None),
            ("[::]:8080", None),
            ("192.168.1.5:8080", None),
            ("8.8.8.8:53", None),
            ("[::ffff:127.0.0.1]:8080", None),
            ("127.0.0.1", None),
            ("8080", None),
            (":8080", None),
            ("localhost", None),
            ("example.org:80", None),
            ("127.0.0.1:70000", None),
            ("http://127.0.0.1:80", None),
            ("", None),
        ] {
            let got = local(text);
            assert_eq!(
                got.as_ref().ok().map(ToString::to_string).as_deref(),
                expected,
                "{text}"
            );
            if let Err(failure) = got {
                assert!(failure.code == 2 && failure.hint.is_some(), "{failure:?}");
            }
        }
    }
}
