//! What can be asked, and what is answered (design §20, §21).
//!
//! Owns paths, headers and what is done for each. What may be asked at all is decided before, by [`guard`].

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use artoo_auditor::tail::{Anomalies, Filter, Sieve, describe, last};
use artoo_auditor::{Overview, overview, page};
use artoo_bus::journal::read;
use artoo_bus::{Price, SystemClock};
use artoo_ggs::Params;
use artoo_protocol::TaskId;
use artoo_protocol::journal::settings_of;
use artoo_protocol::ports::Clock as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Path as Named, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::answers::{Answer, Fault, json_of, page_of, told};
use super::board::{Abort, Board, Part};
use super::controller::Decisions;
use super::deeds::{Given, Meant};
use super::guard::{self, ABORT, ANSWER, Own};
use super::watch::shown;
use super::{House, holder, memory};
use crate::report::{Story, page::page as report_page};
use crate::serve::desk::Desk;

/// Longest body, in bytes: an answer in words.
pub const BODY: usize = 64 << 10;
/// How long a body may take to come. What is done with it then takes as long as it takes, and is told as it ended.
const BODY_WAIT: Duration = Duration::from_secs(10);
/// Longest journal of which a report is made, in bytes.
const LONGEST: u64 = 256 << 20;
/// Most looks at once that may take much time or memory, and how long another one waits for its turn.
const LOOKS: usize = 4;
const TURN: Duration = Duration::from_secs(1);
/// Records of the audit log that are told.
const RECORDS: usize = 40;

/// Everything comes from here, scripts stand in their own file, nobody may frame the page, and a text can become a page only where the script
/// says so by name: in the frame of a report, which may not run anything. Reports bring their style with them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types report";

/// What every answer is made from.
pub struct Shared {
    house: House,
    own: Own,
    board: Board,
    decisions: Mutex<Decisions>,
    /// One look at the store or the audit log at a time: both may take a while.
    slow: Mutex<()>,
    looks: Arc<Semaphore>,
}

impl Shared {
    /// Nothing looked at yet.
    pub fn new(house: House, own: Own) -> Self {
        Self {
            board: Board::new(&house.data, house.price.clone()),
            house,
            own,
            decisions: Mutex::default(),
            slow: Mutex::new(()),
            looks: Arc::new(Semaphore::new(LOOKS)),
        }
    }

    fn data(&self) -> &Path {
        &self.house.data
    }

    fn desk(&self) -> Option<&Desk> {
        self.house.desk.as_ref()
    }

    fn slowly<T>(&self, look: impl FnOnce(&Path) -> T) -> T {
        let _one = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        look(self.data())
    }
}

/// All of it.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(
            "/",
            get(|| async { told("text/html; charset=utf-8", include_str!("page/index.html")) }),
        )
        .route(
            "/app.js",
            get(|| async { told("text/javascript; charset=utf-8", include_str!("page/app.js")) }),
        )
        .route(
            "/app.css",
            get(|| async { told("text/css; charset=utf-8", include_str!("page/app.css")) }),
        )
        .route(
            "/icon.svg",
            get(|| async { told("image/svg+xml", include_str!("page/icon.svg")) }),
        )
        .route("/api/live/{seen}", get(live))
        .route("/api/past/{seen}", get(past))
        .route("/api/report/{task}", get(report))
        .route("/api/audit", get(audit))
        .route("/api/audit/page", get(audit_page))
        .route("/api/memory", get(all_memory))
        .route("/api/memory/{space}/{entity}", get(memory_group))
        .route("/api/controller", get(controller))
        .route(ANSWER, post(answer))
        .route(ABORT, post(abort))
        .fallback(|| async { Fault::new(StatusCode::NOT_FOUND, "there is no such thing") })
        .layer(from_fn_with_state(shared.clone(), guarded))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(shared)
}

/// Asks the guard, and says to the browser what it may do with the answer.
async fn guarded(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let is_known = shared.own.is_known(&head.headers);
    let admitted = guard::admit(&shared.own, &head);
    let request = Request::from_parts(head, body);
    let admitted = match admitted {
        Ok(()) if request.method() == Method::POST => whole(request).await,
        Ok(()) => Ok(request),
        Err(refusal) => Err(Fault::new(refusal.status(), refusal.words())),
    };
    let mut response = match admitted {
        Ok(request) => next.run(request).await,
        Err(fault) => fault.into_response(),
    };
    if !is_known {
        // Strangers keep no place that the person needs.
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The request with all of its body, so that nothing is begun on which time may run out.
async fn whole(request: Request) -> Result<Request, Fault> {
    let (head, body) = request.into_parts();
    let body = Bytes::from_request(Request::from_parts(head.clone(), body), &());
    let late = |_| Fault::new(StatusCode::REQUEST_TIMEOUT, "the request did not come to its end");
    let body = timeout(BODY_WAIT, body).await.map_err(late)?;
    let body = body.map_err(|rejected| Fault::new(rejected.status(), rejected.body_text()))?;
    Ok(Request::from_parts(head, Body::from(body)))
}

/// Work with files, beside the thread that serves everybody.
async fn looked<T: Send + 'static>(
    shared: Arc<Shared>,
    look: impl FnOnce(&Shared) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(move || look(&shared)).await;
    done.unwrap_or_else(|_| Err(Fault::failed("artoo failed at this; please report it")))
}

/// The same for looks that may take much, of which there are few at once. What runs and the end of a task wait for none of them.
async fn looked_closely<T: Send + 'static>(
    shared: Arc<Shared>,
    look: impl FnOnce(&Shared) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let turn = turn(&shared).await?;
    looked(shared, move |shared| {
        // Kept to the end of the look, even when nobody waits for it any more.
        let _turn = turn;
        look(shared)
    })
    .await
}

async fn turn(shared: &Shared) -> Result<OwnedSemaphorePermit, Fault> {
    let turn = timeout(TURN, shared.looks.clone().acquire_owned()).await;
    turn.ok().and_then(Result::ok).ok_or_else(|| {
        let words = format!("{LOOKS} looks at reports, the audit log, memory or decisions are under way; try again");
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, words)
    })
}

async fn live(State(shared): State<Arc<Shared>>, Named(seen): Named<u64>) -> Answer {
    part(shared, Part::Live, seen).await
}

async fn past(State(shared): State<Arc<Shared>>, Named(seen): Named<u64>) -> Answer {
    part(shared, Part::Past, seen).await
}

async fn part(shared: Arc<Shared>, part: Part, seen: u64) -> Answer {
    looked(shared, move |shared| {
        let text = shared.board.part(shared.data(), shared.desk(), part, seen);
        Ok(told("application/json", text))
    })
    .await
}

fn task_id(text: &str) -> Result<TaskId, Fault> {
    TaskId::parse(text).map_err(|error| Fault::new(StatusCode::BAD_REQUEST, error.to_string()))
}

/// The page of `artoo report --html`; of a damaged journal as far as it can be read.
async fn report(State(shared): State<Arc<Shared>>, Named(task): Named<String>) -> Answer {
    let task = task_id(&task)?;
    looked_closely(shared, move |shared| {
        report_of(shared.data(), &task, &shared.house.price).map(page_of)
    })
    .await
}

fn report_of(data: &Path, task: &TaskId, price: &Price) -> Result<String, Fault> {
    let found = read::find(&data.join("tasks"), task).map_err(|error| Fault::failed(error.to_string()))?;
    let found = found.ok_or_else(|| Fault::new(StatusCode::NOT_FOUND, format!("there is no task `{task}`")))?;
    let size = std::fs::metadata(&found.path).map_or(0, |data| data.len());
    if size > LONGEST {
        let words = format!(
            "the journal is longer than {} MiB: artoo report {task} --html FILE",
            LONGEST >> 20
        );
        return Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, words));
    }
    let records = read::salvage_file(&found.path).contents.records;
    let settings = settings_of(&records);
    // Of a journal whose parameters are not understood the story can be told all the same.
    let params = settings
        .and_then(|settings| Params::of_settings(settings).ok())
        .unwrap_or_default();
    let story = Story::of(&records, &params, price);
    story
        .map(|story| report_page(&story))
        .ok_or_else(|| Fault::failed(format!("nothing of the journal of {task} can be read")))
}

fn audited(data: &Path) -> Result<Overview, Fault> {
    overview(data, SystemClock.now()).map_err(|error| Fault::failed(error.to_string()))
}

async fn audit(State(shared): State<Arc<Shared>>) -> Answer {
    looked_closely(shared, |shared| {
        shared.slowly(|data| {
            let wanted = Sieve::new(&Filter {
                anomalies: Some(Anomalies::All),
                ..Filter::default()
            });
            let seen = audited(data)?;
            let odd = last(data, &wanted, RECORDS).map_err(|error| Fault::failed(error.to_string()))?;
            let odd: Vec<String> = odd.iter().rev().map(|line| shown(&describe(line))).collect();
            Ok(json_of(
                &json!({"report": seen.report, "totals": seen.totals, "findings": seen.findings, "records": odd}),
            ))
        })
    })
    .await
}

/// The page of `artoo audit report --html`.
async fn audit_page(State(shared): State<Arc<Shared>>) -> Answer {
    looked_closely(shared, |shared| {
        shared.slowly(|data| Ok(page_of(page(&audited(data)?))))
    })
    .await
}

async fn all_memory(State(shared): State<Arc<Shared>>) -> Answer {
    looked_closely(shared, |shared| {
        let seen = shared.slowly(memory::overview).map_err(Fault::failed)?;
        Ok(json_of(&seen))
    })
    .await
}

async fn memory_group(State(shared): State<Arc<Shared>>, Named((space, entity)): Named<(String, String)>) -> Answer {
    looked_closely(shared, move |shared| {
        let group = shared.slowly(|data| memory::group(data, &space, &entity));
        group.map(|group| json_of(&group)).map_err(Fault::failed)
    })
    .await
}

async fn controller(State(shared): State<Arc<Shared>>) -> Answer {
    looked_closely(shared, |shared| {
        let mut decisions = shared.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = decisions.look(shared.data()).map_err(Fault::failed)?;
        Ok(json_of(&seen))
    })
    .await
}

fn understood<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|error| Fault::new(StatusCode::BAD_REQUEST, error.to_string()))
}

async fn answer(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let given = understood::<Given>(&body)?.reply();
    let (id, reply) =
        given.ok_or_else(|| Fault::new(StatusCode::BAD_REQUEST, "either `answer` or `text` is needed"))?;
    let desk = shared.desk();
    let desk = desk.ok_or_else(|| Fault::new(StatusCode::CONFLICT, "no task runs in this process"))?;
    let taken = desk.answer(&id, reply);
    shared.board.is_old();
    taken.map_err(|error| Fault::new(StatusCode::CONFLICT, error.to_string()))?;
    Ok(json_of(&json!({"done": "answered"})))
}

async fn abort(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let task = task_id(&understood::<Meant>(&body)?.task)?;
    let refused = |words: String| Fault::new(StatusCode::CONFLICT, words);
    looked(shared, move |shared| {
        let how = shared.board.abort(shared.data(), shared.desk(), &task);
        let done = match (how, shared.desk()) {
            (Some(Abort::Here), Some(desk)) => {
                desk.abort(&task).map_err(|error| refused(error.to_string()))?;
                "it is told to stop".to_owned()
            }
            (Some(Abort::Signal(meant)), _) => {
                let pid = holder::interrupt(shared.data(), meant).map_err(refused)?;
                format!("process {pid} is told to stop, as by Ctrl+C")
            }
            (Some(Abort::Here | Abort::Terminal), _) => {
                return Err(refused(
                    "it can only be stopped where it was started: press Ctrl+C there".to_owned(),
                ));
            }
            (None, _) => return Err(refused(format!("the task `{task}` does not run"))),
        };
        shared.board.is_old();
        Ok(json_of(&json!({ "done": done })))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::http::header::CONTENT_TYPE;
    use hyper::body::Frame;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    use crate::serve::http::guard::Token;

    fn shared(data: &Path) -> Arc<Shared> {
        let house = House {
            data: data.to_owned(),
            price: Arc::new(|_, _| 0.0),
            desk: None,
        };
        let at = std::net::SocketAddr::from(([127, 0, 0, 1], 8080));
        Arc::new(Shared::new(house, Own::new(at, Token::draw().unwrap())))
    }

    fn asks(shared: &Shared, method: Method, path: &str, body: Body) -> Request {
        let bearer = format!("Bearer {}", shared.own.token().reveal());
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "127.0.0.1:8080").header("authorization", bearer);
        request.header(CONTENT_TYPE, "application/json").body(body).unwrap()
    }

    /// A body that never comes.
    struct Never;

    impl hyper::body::Body for Never {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    async fn told_by(router: Router, request: Request) -> (StatusCode, String) {
        let answer = TowerToHyperService::new(router).call(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        (head.status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_its_time_and_what_is_done_with_it_is_told_as_it_ended() {
        let data = tempfile::tempdir().unwrap();
        let shared = shared(data.path());
        // A request that never comes to its end.
        let endless = asks(&shared, Method::POST, ABORT, Body::new(Never));
        let (status, words) = told_by(router(shared.clone()), endless).await;
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT, "{words}");
        let long = async |body: Bytes| {
            tokio::time::sleep(BODY_WAIT * 3).await;
            assert_eq!(body, "{}");
            "it is done"
        };
        let slow = Router::new()
            .route(ABORT, post(long))
            .layer(from_fn_with_state(shared.clone(), guarded));
        let done = told_by(slow, asks(&shared, Method::POST, ABORT, Body::from("{}"))).await;
        assert_eq!(done, (StatusCode::OK, "it is done".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn few_look_closely_and_the_others_are_told_so() {
        let data = tempfile::tempdir().unwrap();
        let shared = shared(data.path());
        let status =
            async |path: &str| told_by(router(shared.clone()), asks(&shared, Method::GET, path, Body::empty())).await;
        let others = shared
            .looks
            .clone()
            .acquire_many_owned(u32::try_from(LOOKS).unwrap())
            .await
            .unwrap();
        for path in [
            "/api/report/collect_email_addresses_074f2fe9",
            "/api/audit",
            "/api/audit/page",
            "/api/memory",
            "/api/memory/a/b",
            "/api/controller",
        ] {
            let (status, words) = status(path).await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
            assert!(words.contains("under way; try again"), "{words}");
        }
        assert_eq!(
            status("/api/live/0").await.0,
            StatusCode::OK,
            "what runs is told all the same"
        );
        drop(others);
        assert_eq!(status("/api/controller").await.0, StatusCode::OK);
        assert_eq!(shared.looks.available_permits(), LOOKS, "a turn is given back");
    }

    #[test]
    fn only_a_task_id_names_a_journal() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("secret_00000000.jsonl"), "x").unwrap();
        for text in [
            "../secret_00000000",
            "/etc/passwd",
            "",
            "a",
            "tasks/../../secret_00000000",
        ] {
            assert!(task_id(text).is_err(), "{text}");
        }
        let price: Price = Arc::new(|_, _| 0.0);
        let missing = report_of(data.path(), &TaskId::new("secret_00000000"), &price);
        assert_eq!(missing.err().map(|fault| fault.status), Some(StatusCode::NOT_FOUND));
    }
}
