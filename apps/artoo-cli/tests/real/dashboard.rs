//! The dashboard: who may ask it, what it shows in a real browser, and what can be done there (design §20, §21).
#![allow(clippy::disallowed_methods, reason = "a clock for how long something may hang")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use artoo_testkit::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::consent::deleting;
use crate::devtools::Tab;
use crate::support::{LIMIT, Running, Sandbox, silent_model};

const REPLANNED: &str = include_str!("../../../../fixtures/journals/replanned.jsonl");
/// A task whose words would do something if they were taken for markup.
const HOSTILE: &str = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>";

/// A dashboard that ends with the test.
struct Served {
    child: Child,
    stdin: Option<ChildStdin>,
    port: u16,
    token: String,
}

impl Served {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("/#") {
            line.clear();
            assert!(
                said.read_line(&mut line).unwrap() > 0,
                "it ended without saying where it is"
            );
        }
        // What else is said is not of interest, and must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let (_, address) = line.trim().split_once("http://127.0.0.1:").unwrap();
        let (port, token) = address.split_once("/#").unwrap();
        Self {
            stdin: child.stdin.take(),
            port: port.parse().unwrap(),
            token: token.to_owned(),
            child,
        }
    }

    fn of(sandbox: &Sandbox) -> Self {
        Self::start(&mut sandbox.artoo(&["serve", "--http", "127.0.0.1:0"]))
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/#{}", self.port, self.token)
    }

    /// A client puts in so many tasks that each ask whether they may delete a file.
    fn runs(&mut self, tasks: u64) -> ChildStdin {
        let mut client = self.stdin.take().unwrap();
        let run = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "run", "arguments": {"text": "delete notes.txt"}}});
        let mut messages = vec![
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ];
        messages.extend((1..=tasks).map(run));
        for message in messages {
            writeln!(client, "{message}").unwrap();
        }
        client
    }

    /// The head and the body of an answer to this, in which `PORT` and `TOKEN` are put.
    fn raw(&self, request: &str, body: &[u8]) -> (String, String) {
        let request = request
            .replace("PORT", &self.port.to_string())
            .replace("TOKEN", &self.token);
        let request = request.lines().map(str::trim).collect::<Vec<_>>().join("\r\n");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        // It may refuse before it has read everything.
        let _ = stream.write_all(format!("{request}\r\nconnection: close\r\n{length}\r\n").as_bytes());
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (head.to_owned(), body.to_owned())
    }

    fn status(&self, request: &str, body: &[u8]) -> u16 {
        let (head, _) = self.raw(request, body);
        head.split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or_else(|| panic!("{head}"))
    }

    fn get(&self, path: &str) -> Value {
        let (head, body) = self.raw(
            &format!("GET {path} HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN"),
            b"",
        );
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}\n{body}");
        serde_json::from_str(&body).unwrap_or(Value::String(body))
    }

    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN\ncontent-type: application/json"
        );
        let (head, said) = self.raw(&head, body.to_string().as_bytes());
        (head.split(' ').nth(1).unwrap().parse().unwrap(), said)
    }

    /// Waits until what is told of the tasks is as wanted.
    fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let seen = self.get(path);
            if holds(&seen["value"]) {
                return seen["value"].clone();
            }
            assert!(begun.elapsed() < LIMIT, "never as wanted: {seen:#}");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_a_past() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["count the rs files and write the number to n.txt"])
        .ended(0);
    let replanned = sandbox.data().join("tasks/collect_email_addresses_074f2fe9.jsonl");
    std::fs::write(replanned, REPLANNED).unwrap();
    sandbox
}

#[test]
fn strangers_get_nothing() {
    let sandbox = with_a_past();
    let served = Served::of(&sandbox);
    for (status, request, body) in [
        (200, "GET / HTTP/1.1\nhost: 127.0.0.1:PORT", ""),
        (
            200,
            "GET /api/live/0 HTTP/1.1\nhost: localhost:PORT\nauthorization: Bearer TOKEN",
            "",
        ),
        (421, "GET / HTTP/1.1\nhost: rebound.example:PORT", ""),
        (
            421,
            "GET /api/live/0 HTTP/1.1\nhost: rebound.example\nauthorization: Bearer TOKEN",
            "",
        ),
        (
            403,
            "GET /api/live/0 HTTP/1.1\nhost: 127.0.0.1:PORT\norigin: http://foreign.example\nauthorization: Bearer TOKEN",
            "",
        ),
        (
            403,
            "GET / HTTP/1.1\nhost: 127.0.0.1:PORT\nsec-fetch-site: cross-site",
            "",
        ),
        (401, "GET /api/live/0 HTTP/1.1\nhost: 127.0.0.1:PORT", ""),
        (
            401,
            "GET /api/past/0 HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer 0123",
            "",
        ),
        (
            401,
            "GET /api/report/collect_email_addresses_074f2fe9 HTTP/1.1\nhost: 127.0.0.1:PORT",
            "",
        ),
        (
            401,
            "POST /api/abort HTTP/1.1\nhost: 127.0.0.1:PORT\ncontent-type: application/json",
            "{}",
        ),
        (
            405,
            "DELETE / HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN",
            "",
        ),
        (
            404,
            "GET /etc/passwd HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN",
            "",
        ),
        (
            400,
            "GET /api/report/..%2F..%2Fsecret HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN",
            "",
        ),
        (
            400,
            "POST /api/abort HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN\ncontent-type: application/json",
            "{",
        ),
        (
            409,
            "POST /api/answer HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN\ncontent-type: application/json",
            r#"{"id":"q1","answer":"yes"}"#,
        ),
    ] {
        assert_eq!(served.status(request, body.as_bytes()), status, "{request}");
    }
    let large = json!({"id": "q1", "text": "x".repeat(1 << 20)}).to_string();
    let request =
        "POST /api/answer HTTP/1.1\nhost: 127.0.0.1:PORT\nauthorization: Bearer TOKEN\ncontent-type: application/json";
    assert_eq!(served.status(request, large.as_bytes()), 413);
    let long = format!("GET / HTTP/1.1\nhost: 127.0.0.1:PORT\nx: {}", "y".repeat(32 << 10));
    assert_eq!(served.status(&long, b""), 431);

    let (head, page) = served.raw("GET / HTTP/1.1\nhost: 127.0.0.1:PORT", b"");
    let head = head.to_lowercase();
    for said in [
        "frame-ancestors 'none'",
        "default-src 'none'",
        "script-src 'self';",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(head.contains(said), "{said}: {head}");
    }
    assert!(!head.contains("access-control-allow"), "{head}");
    assert!(
        !page.contains(&served.token) && !page.contains("http"),
        "nothing of anybody's, and nothing from elsewhere: {page}"
    );
}

#[test]
fn strangers_keep_no_place() {
    let sandbox = Sandbox::new();
    let served = Served::of(&sandbox);
    let twice = |line: &str, header: &str| {
        let (port, token) = (served.port, &served.token);
        let one = format!("{line}\r\nhost: 127.0.0.1:{port}\r\n{}", header.replace("TOKEN", token));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let _ = stream.write_all(format!("{one}\r\n{one}connection: close\r\n\r\n").as_bytes());
        let mut answers = Vec::new();
        let _ = stream.read_to_end(&mut answers);
        let answers = String::from_utf8(answers).unwrap();
        let first = answers.split("\r\n\r\n").next().unwrap().to_lowercase();
        (
            answers.matches("HTTP/1.1 ").count(),
            first.contains("connection: close"),
        )
    };
    let token = "authorization: Bearer TOKEN\r\n";
    for (line, header, expected) in [
        ("GET /api/live/0 HTTP/1.1", token, (2, false)),
        ("GET /nothing HTTP/1.1", token, (2, false)),
        ("GET / HTTP/1.1", "", (1, true)),
        ("GET /app.js HTTP/1.1", "", (1, true)),
        ("GET /api/live/0 HTTP/1.1", "", (1, true)),
        ("GET /api/live/0 HTTP/1.1", "authorization: Bearer 0123\r\n", (1, true)),
        ("POST /api/abort HTTP/1.1", "content-length: 2\r\n", (1, true)),
        ("DELETE / HTTP/1.1", "", (1, true)),
    ] {
        assert_eq!(twice(line, header), expected, "{line} {header}");
    }
}

#[test]
fn only_loopback_and_only_a_free_port() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["serve", "--http", "0.0.0.0:0"])
        .refused(2, &["only served to this machine", "127.0.0.1"]);
    sandbox
        .run(&["serve", "--http", "here"])
        .refused(2, &["no address with a port"]);
    let served = Served::of(&sandbox);
    let taken = format!("127.0.0.1:{}", served.port);
    sandbox
        .run(&["serve", "--http", &taken])
        .refused(2, &["in use by another program", "another port"]);
}

#[test]
fn a_signal_ends_it_while_somebody_is_connected() {
    let sandbox = Sandbox::new();
    let mut served = Served::of(&sandbox);
    let mut idle = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nhost: 127").unwrap();
    served.get("/api/live/0");
    let begun = Instant::now();
    kill_process(Pid::from_child(&served.child), Signal::TERM).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
    assert!(
        begun.elapsed().as_secs() < 5,
        "it waited for a connection that says nothing"
    );
}

#[test]
fn what_ran_is_to_be_seen_in_a_browser() {
    let sandbox = with_a_past();
    std::fs::write(
        sandbox.data().join("tasks/hostile_0badc0de.jsonl"),
        REPLANNED
            .replace("collect_email_addresses_074f2fe9", "hostile_0badc0de")
            .replace(&json!(first_words()).to_string(), &json!(HOSTILE).to_string()),
    )
    .unwrap();
    sandbox
        .run(&["memory", "remember", "the printer is called laser"])
        .ended(0);
    let served = Served::of(&sandbox);
    let Some(mut tab) = Tab::open() else { return };
    for (width, dark) in [(390, false), (1200, false), (1200, true)] {
        tab.size(width, dark);
        tab.go("about:blank");
        tab.go(&served.url());
        tab.shows("Nothing runs");
        tab.shows("count the rs files");
        assert_eq!(
            tab.value("location.hash"),
            "#running",
            "the token stands in the address bar"
        );
        tab.is_legible();

        tab.value("location.hash = '#past'");
        tab.until("document.querySelectorAll('#list .item').length === 3");
        tab.shows("<img src=x onerror=");
        tab.is_legible();
        tab.value("(() => { const filter = document.getElementById('filter'); filter.value = 'COUNT rs'; filter.dispatchEvent(new Event('input')); })()");
        tab.until("document.querySelectorAll('#list .item').length === 1");

        tab.value("document.querySelector('#list .item').click()");
        let inside = "document.getElementById('frame')?.contentDocument?.body?.innerText";
        tab.until(&format!("({inside} || '').includes('Who was busy when')"));
        tab.until("document.getElementById('frame').offsetHeight + 2 >= document.getElementById('frame').contentDocument.documentElement.scrollHeight");
        tab.value("location.hash = '#report/hostile_0badc0de'");
        tab.until(&format!("({inside} || '').includes('onerror=document.title')"));

        tab.value("location.hash = '#audit'");
        tab.shows("What the auditor saw");
        tab.shows("model calls without an answer");
        tab.is_legible();
        tab.value("location.hash = '#audit/page'");
        tab.until("(document.querySelector('iframe')?.contentDocument?.body?.innerText || '').includes('What the auditor saw')");

        tab.value("location.hash = '#memory'");
        tab.shows("The pyramid");
        tab.until("document.querySelector('tbody a')");
        tab.value("document.querySelector('tbody a').click()");
        tab.until("document.querySelector('img.chart')?.naturalWidth > 0");
        tab.is_legible();

        tab.value("location.hash = '#controller'");
        tab.shows("The decision table");
        tab.until("document.querySelectorAll('.cells td').length === 24 && document.querySelectorAll('.cells .seen').length > 0");
        tab.is_legible();
    }
    assert_eq!(
        tab.value("document.title"),
        "artoo",
        "what was written in a task did something"
    );
    let elsewhere = "performance.getEntriesByType('resource').filter(entry => !entry.name.startsWith(location.origin) && !entry.name.startsWith('blob:' + location.origin)).map(entry => entry.name)";
    assert_eq!(tab.value(elsewhere), json!([]));
    assert_eq!(tab.faults, Vec::<String>::new());

    // Without the token the page says what is missing, and holds nothing.
    tab.value("sessionStorage.clear()");
    tab.go("about:blank");
    tab.go(&format!("http://127.0.0.1:{}/", served.port));
    tab.shows("This page needs its token");
    assert_eq!(tab.value("document.getElementById('view').childElementCount"), 0);
}

/// What the recorded task was asked.
fn first_words() -> String {
    let mut records = REPLANNED
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let input = records.find_map(|record| record["envelope"]["payload"]["text"].as_str().map(str::to_owned));
    input.unwrap()
}

#[test]
fn a_person_at_the_page_decides() {
    let Some(mut tab) = Tab::open() else { return };
    for (button, left) in [("No", true), ("Yes, this once", false)] {
        let sandbox = Sandbox::new();
        let server = Server::start(deleting).unwrap();
        let mut page = Served::start(&mut sandbox.with_model(&server, &["serve", "--mcp", "--http", "127.0.0.1:0"]));
        tab.size(390, false);
        tab.go("about:blank");
        tab.go(&page.url());
        tab.shows("Nothing runs");
        let _client = page.runs(1);
        tab.shows("May this be done?");
        tab.shows("rm notes.txt");
        tab.until("document.querySelector('.steps')");
        tab.is_legible();
        assert!(sandbox.project().join("notes.txt").exists());
        let button = format!(
            "[...document.querySelectorAll('.question button')].find(button => button.textContent === {})",
            json!(button)
        );
        tab.until(&format!("!{button}.disabled"));
        tab.value(&format!("{button}.click()"));
        tab.until("!document.querySelector('.question')");
        let ended = page.until("/api/past/0", |past| {
            past["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1)
        });
        assert_eq!(
            ended["tasks"][0]["cause"],
            if left { "refused" } else { "met" },
            "{ended:#}"
        );
        assert_eq!(sandbox.project().join("notes.txt").exists(), left);
    }
    assert_eq!(tab.faults, Vec::<String>::new());
}

#[test]
fn a_double_click_says_nothing_to_the_next_question() {
    let Some(mut tab) = Tab::open() else { return };
    let sandbox = Sandbox::new();
    let server = Server::start(deleting).unwrap();
    let mut page = Served::start(&mut sandbox.with_model(&server, &["serve", "--mcp", "--http", "127.0.0.1:0"]));
    tab.size(1200, false);
    tab.go(&page.url());
    tab.shows("Nothing runs");
    let _client = page.runs(3);
    let rested = |cards: usize| {
        format!(
            "document.querySelectorAll('.question').length === {cards} && !document.querySelector('.question button:disabled')"
        )
    };
    tab.until(&rested(3));
    let questions = page.get("/api/live/0")["value"]["questions"].clone();
    let id = |at: usize| questions[at]["id"].clone();
    // In the very moment in which a card goes, somebody presses where its Yes stood.
    tab.value(
        "(() => {
            window.hits = [];
            const yes = document.querySelector('.question button').getBoundingClientRect();
            window.watching = new MutationObserver(() => setTimeout(() => {
                const hit = document.elementFromPoint(yes.left + yes.width / 2, yes.top + yes.height / 2);
                window.hits.push([hit.textContent, hit.disabled]);
                hit.click();
                hit.dispatchEvent(new MouseEvent('click', { detail: 1, bubbles: true }));
            }));
            window.watching.observe(document.getElementById('questions'), { childList: true });
         })()",
    );
    tab.value("document.querySelector('.question button').click()");
    tab.until(&rested(2));
    let open = |page: &Served| page.get("/api/live/0")["value"]["questions"].clone();
    assert_eq!(open(&page), json!([questions[1], questions[2]]));
    // The same when the answer came from elsewhere.
    assert_eq!(page.post("/api/answer", &json!({"id": id(1), "answer": "no"})).0, 200);
    tab.until(&rested(1));
    assert_eq!(
        tab.value("window.hits"),
        json!([["Yes, this once", true], ["Yes, this once", true]])
    );
    assert_eq!(open(&page), json!([questions[2]]));

    tab.value("window.watching.disconnect()");

    // What has stood there takes a click, but not the second half of a double click.
    let clicked = |detail: u8| {
        format!(
            "(() => {{ const no = document.querySelectorAll('.question button')[1];
             no.dispatchEvent(new MouseEvent('click', {{ detail: {detail}, bubbles: true }})); return no.disabled; }})()"
        )
    };
    assert_eq!(tab.value(&clicked(2)), false);
    assert_eq!(tab.value(&clicked(1)), true, "it was taken");
    tab.until("!document.querySelector('.question')");
    page.until("/api/past/0", |past| {
        past["tasks"].as_array().is_some_and(|tasks| tasks.len() == 3)
    });
    assert_eq!(tab.faults, Vec::<String>::new());
}

/// Where processes can be told for certain.
#[test]
#[cfg(target_os = "linux")]
fn stopping_takes_two_presses_and_a_refusal_stays_to_be_read() {
    let Some(mut tab) = Tab::open() else { return };
    let sandbox = Sandbox::new();
    let (server, asked) = silent_model();
    let task = Running::start(&mut sandbox.with_model(&server, &["write a poem"]));
    asked.recv_timeout(LIMIT).unwrap();
    let page = Served::of(&sandbox);
    tab.size(390, false);
    tab.go(&page.url());
    tab.shows("write a poem");
    // What is answered to the page, and how often it looks.
    tab.value(
        "(() => {
            window.refuse = true;
            window.looks = 0;
            const fetched = window.fetch;
            window.fetch = (url, options) => {
                if (String(url).includes('/api/live')) window.looks += 1;
                if (window.refuse && String(url).includes('/api/abort')) {
                    return Promise.resolve(new Response('It can only be stopped where it was started.', { status: 409 }));
                }
                return fetched(url, options);
            };
            document.querySelector('.stop').focus();
            document.querySelector('.stop').click();
         })()",
    );
    tab.until("document.querySelector('.stop').textContent === 'Really stop it?'");
    // Too soon to be meant.
    tab.value("document.querySelector('.stop').click()");
    tab.until("(document.querySelector('.stop.sure') && document.querySelector('.stop').click(), document.querySelector('.card [role=status]').textContent.includes('where it was started'))");
    tab.value("window.looks = 0");
    tab.until("window.looks >= 3");
    assert_eq!(
        tab.value("document.querySelector('.card [role=status]').textContent"),
        "It can only be stopped where it was started."
    );
    assert_eq!(
        tab.value("document.activeElement === document.querySelector('.stop')"),
        true
    );
    tab.is_legible();
    tab.value("window.refuse = false; document.querySelector('.stop').click()");
    tab.until("!document.querySelector('.stop') || (document.querySelector('.stop.sure') && document.querySelector('.stop').click(), false)");
    task.wait().ended(130);
    tab.shows("Nothing runs");
    assert_eq!(tab.faults, Vec::<String>::new());
}

/// Where processes can be told for certain.
#[test]
#[cfg(target_os = "linux")]
fn a_task_of_another_process_is_stopped_as_by_ctrl_c() {
    let sandbox = Sandbox::new();
    let (server, asked) = silent_model();
    let task = Running::start(&mut sandbox.with_model(&server, &["write a poem"]));
    asked.recv_timeout(LIMIT).unwrap();
    let page = Served::of(&sandbox);
    let live = page.until("/api/live/0", |live| {
        live["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1)
    });
    let running = &live["tasks"][0];
    assert_eq!(
        (&running["input"], &running["abort"]),
        (&json!("write a poem"), &json!({"how": "signal", "pid": task.id()}))
    );
    let id = running["task"].as_str().unwrap();

    let wrong = page.post("/api/abort", &json!({"task": "write_a_novel_00000000"}));
    assert_eq!(wrong.0, 409, "{wrong:?}");
    let (status, said) = page.post("/api/abort", &json!({ "task": id }));
    assert_eq!((status, said.contains("as by Ctrl+C")), (200, true), "{said}");
    task.wait().ended(130);
    let past = page.until("/api/past/0", |past| {
        past["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1)
    });
    assert_eq!(past["tasks"][0]["cause"], "aborted");
    assert_eq!(page.post("/api/abort", &json!({ "task": id })).0, 409, "it has ended");
}
