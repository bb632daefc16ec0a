//! The paper of a report: one HTML page, light and dark, for a desk and for a hand, without a script and without anything from elsewhere (design §16).
//!
//! Owns style, frame and escaping. Must not know what stands on it.

use artoo_protocol::Timestamp;

const STYLE: &str = "
:root{--bg:#fbfaf7;--card:#fff;--ink:#1d2530;--soft:#68727f;--line:#e3e0d8;--a:#2f7d6b;--b:#d9a441;--c:#b5482f;--d:#3d6fa5;--e:#8a64a8}
@media(prefers-color-scheme:dark){:root{--bg:#14181d;--card:#1c2229;--ink:#e7e9ec;--soft:#97a1ad;--line:#2f3740;--a:#4fb39b;--b:#e0b45c;--c:#e07a5f;--d:#6fa3db;--e:#b592d6}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 20px 60px}h1{font-size:26px;margin:0}h2{font-size:16px;margin:0 0 2px}
p{margin:4px 0;color:var(--soft)}.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(470px,100%),1fr));gap:16px;margin-top:16px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;min-width:0}
.wide{grid-column:1/-1}.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(104px,1fr));gap:12px;margin-top:20px}
.figure{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px;min-width:0}
.figure b{display:block;font-size:21px;white-space:nowrap;line-height:1.2;font-variant-numeric:tabular-nums}.figure span{color:var(--soft);font-size:13px}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.axis{stroke:var(--line)}.a{fill:var(--a);stroke:var(--a)}.b{fill:var(--b);stroke:var(--b)}.c{fill:var(--c);stroke:var(--c)}.d{fill:var(--d);stroke:var(--d)}.e{fill:var(--e);stroke:var(--e)}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.bar{stroke:none}
.key{display:flex;flex-wrap:wrap;gap:4px 14px;margin:2px 0 6px;color:var(--soft);font-size:13px}.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.key .a{background:var(--a)}.key .b{background:var(--b)}.key .c{background:var(--c)}.key .d{background:var(--d)}.key .e{background:var(--e)}
table{border-collapse:collapse;width:100%;font-size:14px}td,th{text-align:left;padding:5px 10px 5px 0;border-top:1px solid var(--line);vertical-align:top}th{color:var(--soft);font-weight:500;border:0}
td.n{text-align:right;font-variant-numeric:tabular-nums;padding-right:0}td code{overflow-wrap:anywhere}td.word{white-space:nowrap;text-align:right;padding-right:0}ul{margin:6px 0 0;padding-left:18px}li{overflow-wrap:anywhere}
pre{overflow:auto;max-height:420px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px;background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:10px 12px}
h1{overflow-wrap:anywhere}td,p{overflow-wrap:anywhere}details{border-top:1px solid var(--line);padding:7px 0}summary{cursor:pointer;overflow-wrap:anywhere}
.scroll{overflow-x:auto}.scroll td,.scroll th{white-space:nowrap}.scroll svg{min-width:720px}.scroll svg text{font-size:11px}.plan svg text{fill:var(--ink);font-size:12px}
.box{stroke-width:1.5}.box.a{fill:var(--card);stroke:var(--a)}.box.c{fill:var(--card);stroke:var(--c)}.box.n{fill:var(--card);stroke:var(--soft);stroke-dasharray:4 3}.edge{stroke:var(--soft)}
@media(max-width:520px){.figure{padding:9px 10px}.figure b{font-size:17px}main{padding:22px 12px 40px}.card{padding:12px 12px}svg text{font-size:16px}}
.improving{color:var(--a)}.worsening{color:var(--c)}.stable{color:var(--soft)}code{font-size:13px}
";

/// A whole page. `title` and `heading` are this program's words; `body` is HTML.
pub fn sheet(title: &str, heading: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head><body><main><h1>{}</h1>{body}</main></body></html>\n",
        escaped(title),
        escaped(heading)
    )
}

/// Text that is safe inside an element and inside a quoted attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// A number with a narrow space at each thousand, at which no line breaks.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// An instant to the minute, in UTC.
pub fn minute(at: Timestamp) -> String {
    at.to_string().get(..16).unwrap_or_default().replace('T', " ")
}
