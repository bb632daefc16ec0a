//! A headless Chromium that a test steers over two pipes: it opens pages, asks them things, and hears of everything that goes wrong in them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use artoo_testkit::skipping::skipped;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pages::{LOOK, browser};
use crate::support::LIMIT;

/// A page in a browser that ends with the test.
pub struct Tab {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// Errors and warnings of the page, and what it could not load.
    pub faults: Vec<String>,
    _profile: TempDir,
}

impl Tab {
    /// An empty page; none where there is no Chromium.
    pub fn open() -> Option<Self> {
        let Some(browser) = browser() else {
            skipped("chromium", "there is none here");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // It reads from the third stream and writes to the fourth.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(browser)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--remote-debugging-pipe", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(stdout).split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    break;
                }
            }
        });
        let mut tab = Self {
            child,
            to,
            from,
            calls: 0,
            session: None,
            faults: Vec::new(),
            _profile: profile,
        };
        let target = tab.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = tab.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        tab.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(tab)
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut heard = self.from.recv_timeout(LIMIT).expect("the browser answers");
            if heard["id"] == self.calls {
                assert!(heard["error"].is_null(), "{method}: {}", heard["error"]);
                return heard["result"].take();
            }
            self.hear(&heard);
        }
    }

    fn hear(&mut self, heard: &Value) {
        let params = &heard["params"];
        match heard["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.faults.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => self.faults.push(params["args"].to_string()),
            "Log.entryAdded" => self.faults.push(params["entry"].to_string()),
            _ => {}
        }
    }

    /// As wide as this, in the light or in the dark.
    pub fn size(&mut self, width: u32, dark: bool) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// Opens an address.
    pub fn go(&mut self, url: &str) {
        let went = self.call("Page.navigate", &json!({ "url": url }));
        assert!(went["errorText"].is_null(), "{went}");
    }

    /// What an expression of the page gives.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression holds.
    #[track_caller]
    pub fn until(&mut self, expression: &str) {
        let limit = LIMIT.as_millis() / 2;
        let waiting = format!(
            "new Promise(done => {{ const end = Date.now() + {limit};
             const holds = () => {{ try {{ return {expression}; }} catch {{ return false; }} }};
             const look = () => holds() ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 20); look(); }})"
        );
        if self.value(&waiting) != json!(true) {
            let text = self.value("document.body.innerText + ' @ ' + location.hash");
            panic!("`{expression}` never holds: {text}\n{:#?}", self.faults);
        }
    }

    /// Waits until these words are to be seen.
    #[track_caller]
    pub fn shows(&mut self, words: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(words)));
    }

    /// What a reader would stumble over: parts that reach over the edge, words that are too pale or too small.
    #[track_caller]
    pub fn is_legible(&mut self) {
        let look = LOOK.split("window.onload").next().unwrap();
        let seen = self.value(&format!(
            "(() => {{ {look} return look({{contentDocument: document, contentWindow: window}}); }})()"
        ));
        let nothing = json!([]);
        assert_eq!(
            (&seen["over"], &seen["pale"], &seen["small"]),
            (&nothing, &nothing, &nothing),
            "{seen:#}"
        );
        assert!(seen["scroll"].as_u64() <= seen["width"].as_u64(), "{seen:#}");
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
