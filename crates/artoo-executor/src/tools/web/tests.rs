//! The web tools against servers of their own on loopback; nothing else is reached.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{EffectClass, Invocation, Permit, ToolOutput};
use artoo_protocol::{SubTaskId, TaskId};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::tools::{Mask, Places};

type Log = Arc<Mutex<Vec<String>>>;

/// A server that answers each path with what it was given, and remembers what it was asked.
async fn serve(pages: Vec<(&'static str, Vec<u8>)>) -> (SocketAddr, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let log = Log::default();
    let (seen, pages) = (Arc::clone(&log), Arc::new(pages));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, pages) = (Arc::clone(&seen), Arc::clone(&pages));
            tokio::spawn(async move {
                let mut request = vec![0; 8192];
                let read = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
                seen.lock().unwrap().push(request);
                let wanted = path.split('?').next().unwrap_or_default().to_owned();
                let page = pages.iter().find(|(name, _)| *name == wanted);
                let answer = page.map_or_else(
                    || reply("404 Not Found", "text/plain", b"no such page"),
                    |(_, page)| page.clone(),
                );
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (at, log)
}

fn reply(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn redirect_to(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
}

/// Names as the test wants them; the answer may change from question to question.
#[derive(Default)]
struct Names {
    answers: HashMap<&'static str, Vec<&'static str>>,
    asked: Mutex<usize>,
}

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        let answers = self
            .answers
            .get(name)
            .ok_or_else(|| std::io::Error::other("no such name"))?;
        let mut asked = self.asked.lock().unwrap();
        let answer = answers[(*asked).min(answers.len() - 1)];
        *asked += 1;
        Ok(answer.split(' ').map(|ip| ip.parse().unwrap()).collect())
    }
}

struct Bench {
    fetch: FetchUrl,
    search: Search,
}

fn bench(also: Vec<SocketAddr>, names: Names, google: bool) -> Bench {
    let engine = also.first().map(ToString::to_string).unwrap_or_default();
    let mut settings = WebSettings::from_environment(&[]);
    settings.guard = AddressGuard::with(Arc::new(names), also);
    settings.duckduckgo = format!("http://{engine}/html");
    settings.google_address = format!("http://{engine}/google");
    settings.google = google.then(|| GoogleKeys {
        key: "the-key".into(),
        engine: "cx".into(),
    });
    let web = Web::new(settings);
    let places = Arc::new(Places {
        home: "/home/someone".into(),
        cwd: "/home/someone/project".into(),
        workspace: "/home/someone/work".into(),
        own: None,
    });
    let mask = Mask::of_environment(&[("MY_TOKEN".into(), "abcdefgh1234".into())]);
    Bench {
        fetch: FetchUrl {
            web: Arc::clone(&web),
            places: Arc::clone(&places),
            mask: mask.clone(),
        },
        search: Search { web, places, mask },
    }
}

async fn call(tool: &dyn Tool, input: Value) -> ToolOutput {
    let invocation = Invocation {
        tool: tool.spec().name,
        input,
        task_id: TaskId::new("t_00000000"),
        subtask_id: SubTaskId::new("s"),
        scope: Vec::new(),
        created: Vec::new(),
    };
    let assessment = tool.assess(&invocation).await;
    if let Some(error) = assessment.invalid {
        return ToolOutput {
            error: Some(format!("invalid: {error}")),
            ..ToolOutput::default()
        };
    }
    if assessment.effect != EffectClass::Fetch {
        return ToolOutput {
            error: Some(format!("asked: {}", assessment.action)),
            ..ToolOutput::default()
        };
    }
    tool.run(
        &invocation,
        Permit {
            effect: EffectClass::Fetch,
            confirmed: false,
            seen: 0,
        },
    )
    .await
}

async fn fetch(bench: &Bench, url: &str) -> ToolOutput {
    call(&bench.fetch, json!({"url": url})).await
}

#[tokio::test]
async fn a_page_is_read_as_text() {
    let html = "<title>Caf\u{e9}</title><main><p>Read <a href='/more'>more</a>.</p></main>";
    let latin: Vec<u8> = html.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let (at, log) = serve(vec![
        ("/page", reply("200 OK", "text/html; charset=iso-8859-1", &latin)),
        ("/json", reply("200 OK", "application/json", b"{\"a\": 1}")),
        ("/image", reply("200 OK", "image/png", b"\x89PNG\r\n\x1a\n\0\0")),
        ("/empty", reply("200 OK", "text/html", b"")),
        ("/away", redirect_to("/page")),
    ])
    .await;
    let bench = bench(vec![at], Names::default(), false);
    let out = fetch(&bench, &format!("http://{at}/away#part")).await;
    assert_eq!(
        out.output,
        format!("http://{at}/page\nCaf\u{e9}\n\nRead more.\n\nLinks:\nmore: http://{at}/more")
    );
    assert_eq!(out.error, None);
    assert!(
        fetch(&bench, &format!("http://{at}/json"))
            .await
            .output
            .ends_with("{\"a\": 1}")
    );
    assert!(
        fetch(&bench, &format!("http://{at}/image"))
            .await
            .error
            .unwrap()
            .contains("PNG")
    );
    assert!(
        fetch(&bench, &format!("http://{at}/empty"))
            .await
            .output
            .contains("no text")
    );
    let gone = fetch(&bench, &format!("http://{at}/gone")).await;
    assert_eq!(
        (gone.error.as_deref(), gone.failure_class),
        (
            Some("the server answered 404 Not Found"),
            Some(FailureClass::Environmental)
        )
    );
    for request in log.lock().unwrap().iter() {
        assert!(
            request.starts_with("GET ") && request.ends_with("\r\n\r\n"),
            "only an address is sent: {request}"
        );
        assert!(!request.to_lowercase().contains("cookie"), "{request}");
    }
}

#[tokio::test]
async fn no_way_leads_to_an_address_near_the_user() {
    let (inside, log) = serve(vec![("/", reply("200 OK", "text/plain", b"the router's page"))]).await;
    let (outside, _) = serve(vec![
        ("/hop", redirect_to(&format!("http://127.0.0.1:{}/", inside.port()))),
        (
            "/name",
            redirect_to(&format!("http://sneaky.example:{}/", inside.port())),
        ),
        ("/file", redirect_to("file:///etc/passwd")),
        ("/loop", redirect_to("/loop")),
    ])
    .await;
    let names = Names {
        answers: HashMap::from([
            ("sneaky.example", vec!["10.0.0.7"]),
            ("mixed.example", vec!["93.184.216.34 192.168.1.1"]),
            ("rebind.example", vec!["192.168.0.1", "10.0.0.1"]),
        ]),
        ..Names::default()
    };
    // Only the port of the outer server is let through, as if it were the public internet.
    let bench = bench(vec![outside], names, false);
    for url in [
        format!("http://{inside}/"),
        format!("http://localhost:{}/", inside.port()),
        format!("http://{outside}/hop"),
        format!("http://{outside}/name"),
        format!("http://{outside}/file"),
        format!("http://sneaky.example:{}/", inside.port()),
        format!("http://mixed.example:{}/", inside.port()),
        format!("http://rebind.example:{}/", inside.port()),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let out = fetch(&bench, &url).await;
        assert!(out.error.is_some(), "{url}: {}", out.output);
        assert!(!out.output.contains("router"), "{url}");
    }
    assert!(
        log.lock().unwrap().is_empty(),
        "nothing inside was asked: {:?}",
        log.lock().unwrap()
    );
    let endless = fetch(&bench, &format!("http://{outside}/loop")).await;
    assert!(endless.error.unwrap().contains("redirects more than"));
}

#[tokio::test]
async fn a_name_is_connected_to_where_it_was_looked_at() {
    // What the name says when it is asked again does not matter: there is no second question between looking and connecting.
    let (at, _) = serve(vec![("/", reply("200 OK", "text/plain", b"hello"))]).await;
    let names = Names {
        answers: HashMap::from([("once.example", vec!["127.0.0.1", "10.0.0.1"])]),
        ..Names::default()
    };
    let bench = bench(vec![at], names, false);
    let out = fetch(&bench, &format!("http://once.example:{}/", at.port())).await;
    assert!(out.output.ends_with("hello"), "{out:?}");
}

#[tokio::test]
async fn a_page_without_end_is_cut() {
    let long = vec![b'x'; MAX_BYTES + 100_000];
    let (at, _) = serve(vec![("/long", reply("200 OK", "text/plain", &long))]).await;
    let out = fetch(&bench(vec![at], Names::default(), false), &format!("http://{at}/long")).await;
    assert!(out.truncated && out.output.len() < 64 * 1024);
    assert!(out.output.contains("only its beginning was read"));
}

#[tokio::test]
async fn secrets_and_local_data_do_not_leave_in_an_address() {
    let (at, log) = serve(vec![]).await;
    let bench = bench(vec![at], Names::default(), false);
    for (url, expect) in [
        (
            format!("http://{at}/?k=abcdefgh1234"),
            "invalid: the address holds a secret",
        ),
        (format!("http://{at}/?p=/home/someone/notes.txt"), "asked: fetch http"),
        (format!("http://{at}/{}", "4a6f686e".repeat(10)), "asked: fetch http"),
        (
            "http://user:pw@example.org/".to_owned(),
            "invalid: the address holds a user name",
        ),
    ] {
        let error = fetch(&bench, &url).await.error.unwrap();
        assert!(error.starts_with(expect), "{url}: {error}");
    }
    let error = call(&bench.search, json!({"query": "whose key is abcdefgh1234"}))
        .await
        .error
        .unwrap();
    assert!(error.contains("secret"), "{error}");
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_search_lists_results_from_either_engine() {
    let duck = br#"<a class="result__a" href="/l/?uddg=https%3A%2F%2Fa.example%2F">First</a><a class="result__snippet">words</a>"#;
    let google = json!({"kind": "customsearch#search", "items": [{"title": "G", "link": "https://g.example/", "snippet": "from google"}]});
    let (at, log) = serve(vec![
        ("/html", reply("200 OK", "text/html", duck)),
        (
            "/google",
            reply("200 OK", "application/json", google.to_string().as_bytes()),
        ),
    ])
    .await;
    let out = call(
        &bench(vec![at], Names::default(), false).search,
        json!({"query": "a  b"}),
    )
    .await;
    assert_eq!(out.output, "First\nhttps://a.example/\nwords\n\n[1 results for `a b`]");
    let out = call(&bench(vec![at], Names::default(), true).search, json!({"query": "a b"})).await;
    assert!(out.output.contains("https://g.example/\nfrom google"), "{out:?}");
    let log = log.lock().unwrap();
    assert!(
        log[0].starts_with("GET /html?q=a+b ") && log[1].contains("key=the-key&cx=cx&q=a+b"),
        "{log:?}"
    );
}

#[tokio::test]
async fn a_search_engine_that_is_down_is_no_empty_result() {
    let (at, _) = serve(vec![(
        "/html",
        reply("202 Accepted", "text/html", b"are you a machine?"),
    )])
    .await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for bench in [
        bench(vec![at], Names::default(), false),
        bench(vec![at], Names::default(), true),
        bench(vec![nobody], Names::default(), true),
    ] {
        let out = call(&bench.search, json!({"query": "x"})).await;
        assert_eq!(out.failure_class, Some(FailureClass::Environmental));
        let error = out.error.unwrap();
        assert!(error.contains("do not guess") && !error.contains("the-key"), "{error}");
    }
    let (empty, _) = serve(vec![(
        "/html",
        reply("200 OK", "text/html", b"<div class='no-results'>No results</div>"),
    )])
    .await;
    let out = call(
        &bench(vec![empty], Names::default(), false).search,
        json!({"query": "x"}),
    )
    .await;
    assert_eq!((out.error, out.output.as_str()), (None, "[0 results for `x`]"));
}
