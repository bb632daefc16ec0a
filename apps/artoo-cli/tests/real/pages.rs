//! The pages in a real browser: headless Chromium, where there is one, at the width of a phone and of a desk, in the light and in the dark.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use artoo_testkit::skipping::skipped;
use serde_json::Value;

use crate::support::Sandbox;

/// Where a Chromium may be.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome-headless-shell",
];

/// What is asked of a page, in a frame of each width. A thing that reaches over the right edge, a drawing without height, words that are too
/// small or too pale to be read, a script, and anything that was fetched are faults.
pub const LOOK: &str = r"
const rgb=c=>c.match(/[\d.]+/g).map(Number);
const light=c=>{const[r,g,b]=rgb(c).map(v=>v/255).map(v=>v<=.04045?v/12.92:((v+.055)/1.055)**2.4);return .2126*r+.7152*g+.0722*b};
const contrast=(a,b)=>{const[x,y]=[light(a),light(b)].sort((p,q)=>q-p);return(x+.05)/(y+.05)};
function look(frame){
 const d=frame.contentDocument,w=frame.contentWindow,all=[...d.body.querySelectorAll('*')];
 const over=all.filter(e=>e.getBoundingClientRect().right>w.innerWidth+1&&!e.closest('.scroll')).map(e=>e.tagName+'.'+e.getAttribute('class')+': '+e.textContent.slice(0,40));
 const back=e=>{for(;e;e=e.parentElement){const c=w.getComputedStyle(e).backgroundColor;if(rgb(c).length<4||rgb(c)[3]>0)return c}return'rgb(255,255,255)'};
 const words=all.filter(e=>[...e.childNodes].some(n=>n.nodeType==3&&n.data.trim())&&!e.closest('title')&&e.getBoundingClientRect().height>0);
 const pale=words.filter(e=>contrast(e instanceof w.SVGElement?w.getComputedStyle(e).fill:w.getComputedStyle(e).color,e.dataset.on||back(e))<4.5).map(e=>e.tagName+'.'+e.getAttribute('class')+': '+e.textContent.slice(0,40));
 const small=words.filter(e=>e.getBoundingClientRect().height<9).map(e=>e.textContent.slice(0,40));
 const svgs=[...d.querySelectorAll('svg')];
 return{width:w.innerWidth,scroll:d.documentElement.scrollWidth,over:over.slice(0,5),pale:pale.slice(0,5),small:small.slice(0,5),svgs:svgs.length,
  flat:svgs.filter(s=>s.getBoundingClientRect().height<40).length,scripts:d.scripts.length,fetched:w.performance.getEntriesByType('resource').length,
  back:w.getComputedStyle(d.body).backgroundColor,heading:d.querySelector('h1').textContent,text:d.body.innerText.length};
}
window.onload=()=>{const out=document.createElement('pre');out.textContent='<<'+JSON.stringify([...document.querySelectorAll('iframe')].map(look))+'>>';
 document.body.replaceChildren(out)};
";

#[derive(Clone, Copy)]
enum Scheme {
    Light,
    Dark,
}

pub fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    places.into_iter().find(|file| file.is_file())
}

/// What the browser saw of a page, once for each width.
fn seen(browser: &Path, page: &Path, scheme: Scheme) -> Vec<Value> {
    let html = std::fs::read_to_string(page).unwrap();
    let quoted = html.replace('&', "&amp;").replace('"', "&quot;");
    let frames =
        [360, 390, 1180].map(|width| format!("<iframe width={width} height=900 srcdoc=\"{quoted}\"></iframe>"));
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("frames.html");
    let scheme = match scheme {
        Scheme::Dark => 0,
        Scheme::Light => 1,
    };
    std::fs::write(
        &file,
        format!(
            "<!doctype html><meta charset=utf-8><script>{LOOK}</script>{}",
            frames.concat()
        ),
    )
    .unwrap();
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = dom
        .split_once("&lt;&lt;")
        .and_then(|(_, rest)| rest.split_once("&gt;&gt;"));
    let (told, _) = told.unwrap_or_else(|| panic!("{dom:.2000}\n{}", String::from_utf8_lossy(&output.stderr)));
    let told = told
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    serde_json::from_str(&told).unwrap_or_else(|e| panic!("{e}: {told}"))
}

/// Looks at a page in every way; says whether it could.
fn look_at(page: &Path, heading: &str, drawings: u64) -> bool {
    let Some(browser) = browser() else {
        skipped("chromium", "there is none here");
        return false;
    };
    let mut backs = Vec::new();
    for scheme in [Scheme::Light, Scheme::Dark] {
        for look in seen(&browser, page, scheme) {
            let nothing = Value::Array(vec![]);
            assert_eq!(
                (&look["over"], &look["pale"], &look["small"]),
                (&nothing, &nothing, &nothing),
                "{look:#}"
            );
            assert!(look["scroll"].as_u64() <= look["width"].as_u64(), "{look:#}");
            assert_eq!(
                (&look["scripts"], &look["fetched"], &look["flat"]),
                (&0.into(), &0.into(), &0.into()),
                "{look:#}"
            );
            assert_eq!(
                (&look["heading"], look["svgs"].as_u64()),
                (&heading.into(), Some(drawings)),
                "{look:#}"
            );
            assert!(look["text"].as_u64() > Some(200), "{look:#}");
            backs.push(look["back"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!((&backs[0], &backs[3]), (&backs[1], &backs[4]));
    assert_ne!(backs[0], backs[3], "light and dark differ");
    true
}

/// A home in which a few things have happened.
fn busy() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["count the rs files and write the number to n.txt"])
        .ended(0);
    sandbox
        .run(&["find the largest files in src and write them to largest_files_in_the_source_folder.txt"])
        .ended(0);
    let abandoned = sandbox.run(&["read nothing_of_this_name_is_here.txt"]);
    assert_ne!(abandoned.code, Some(0));
    sandbox
}

#[test]
fn the_audit_page_can_be_read() {
    let sandbox = busy();
    let page = sandbox.home().join("audit.html");
    sandbox
        .run(&["audit", "report", "--html", page.to_str().unwrap()])
        .ended(0);
    look_at(&page, "What the auditor saw", 6);
}

/// A recorded task with two plans, of which the first left a gap.
const REPLANNED: &str = include_str!("../../../../fixtures/journals/replanned.jsonl");

#[test]
fn the_report_about_a_task_can_be_read_as_a_page() {
    let sandbox = busy();
    let tasks = sandbox.data().join("tasks");
    let finished = std::fs::read_dir(&tasks).unwrap().next().unwrap().unwrap().path();
    let id = finished.file_stem().unwrap().to_str().unwrap().to_owned();
    let page = sandbox.home().join("task.html");
    sandbox.run(&["report", &id, "--html", page.to_str().unwrap()]).ended(0);
    assert!(std::fs::read_to_string(&page).unwrap().contains(&id));

    std::fs::write(tasks.join("collect_email_addresses_074f2fe9.jsonl"), REPLANNED).unwrap();
    let done = sandbox.run(&["report", "074f2fe9", "--html", page.to_str().unwrap()]);
    done.ended(0);
    assert_eq!(done.out, "");
    let html = std::fs::read_to_string(&page).unwrap();
    for words in [
        "Plan 1",
        "Plan 2",
        "break_symmetry",
        "How sure is that?",
        "Who was busy when",
        "Memory that was written",
    ] {
        assert!(html.contains(words), "{words}");
    }
    // The time line, two plans, the loss.
    look_at(&page, &heading(&html), 4);
}

fn heading(html: &str) -> String {
    let (_, rest) = html.split_once("<h1>").unwrap();
    let (heading, _) = rest.split_once("</h1>").unwrap();
    heading
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[test]
fn the_report_about_a_task_is_also_markdown_and_json() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.data().join("tasks")).unwrap();
    std::fs::write(
        sandbox.data().join("tasks/collect_email_addresses_074f2fe9.jsonl"),
        REPLANNED,
    )
    .unwrap();
    let done = sandbox.run(&["report", "074f2fe9"]);
    done.ended(0)
        .says("## Plan 2")
        .says("The controller demanded `break_symmetry`")
        .says("## Costs")
        .says("## How sure is that?");
    let told = sandbox.run(&["report", "074f2fe9", "--json"]).ended(0).json();
    assert_eq!(told["rounds"].as_array().unwrap().len(), 2);
    assert_eq!(told["decisions"][0]["measured"]["table"]["cell"], 14);
    assert_eq!(told["result"]["directive"], "accept");
    sandbox.run(&["report", "nothing"]).refused(2, &["there is no task"]);
}

#[test]
fn the_look_at_a_page_finds_faults() {
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("bad.html");
    let bad = |style: &str| {
        let words = "word ".repeat(60);
        let html =
            format!("<!doctype html><body style='background:#fff'><h1>Bad</h1><p style='{style}'>{words}</p></body>");
        std::fs::write(&page, html).unwrap();
        std::panic::catch_unwind(|| look_at(&page, "Bad", 0)).is_err()
    };
    if browser().is_none() {
        return skipped("chromium", "there is none here");
    }
    assert!(bad("width:1500px"), "too wide");
    assert!(bad("color:#ccc"), "too pale");
    assert!(bad("font-size:5px;line-height:1;width:200px;height:5px"), "too small");
}
