//! What a person would read on a web page (design §8).
//!
//! Owns the way from markup to text. Works on a stream of tokens and keeps no tree, so hostile nesting cannot hurt, and never holds
//! more than a small multiple of the page. Pure.
//! Must not follow links.

use std::collections::BTreeSet;

use html5gum::{StartTag, Token, Tokenizer};

use crate::abandoned::Abandoned;

/// Links that are listed, at most.
const MAX_LINKS: usize = 20;
/// Links that are remembered while a page is read, at most; which part of it is shown turns out at its end.
const MAX_NOTED: usize = 2000;
/// Bytes of an address that is listed; a longer one is data, not an address.
const LONGEST_HREF: usize = 2048;
/// Characters of a page's main part from which on the rest is left out.
const ENOUGH: usize = 250;
/// Of a hundred characters of a block, how many may belong to links before it counts as navigation.
const LINKED_OF_HUNDRED: usize = 75;

/// A page as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Readable {
    /// Its title.
    pub title: String,
    /// Its text; blocks are separated by line ends.
    pub text: String,
    /// Words and address of the links in that text.
    pub links: Vec<(String, String)>,
}

/// Never read by a person.
const UNSEEN: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select", "head", "textarea",
];
/// Around what a page is about.
const AROUND: &[&str] = &["nav", "footer", "aside", "form", "button", "dialog", "menu"];
/// What a page is about, where it says so.
const MAIN: &[&str] = &["main", "article"];
/// Elements that begin and end a block of text.
const BLOCKS: &[&str] = &[
    "address",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
    "html",
    "br",
    "main",
    "article",
    "nav",
    "footer",
    "aside",
    "form",
    "title",
];

#[derive(Default)]
struct Block {
    text: String,
    linked: usize,
    around: bool,
    main: bool,
    links: Vec<(String, String)>,
}

#[derive(Default)]
struct Reader {
    title: String,
    blocks: Vec<Block>,
    block: Block,
    /// Open elements of each kind that matters; a page may close what it never opened.
    unseen: Option<(String, usize)>,
    around: usize,
    main: usize,
    pre: usize,
    in_title: bool,
    /// The address of the open link, which may be none worth listing, and where its words begin.
    link: Option<(String, usize)>,
    noted: usize,
}

/// Reads a page; `None` when nobody waits for it any more.
pub(super) fn readable(html: &str, abandoned: &Abandoned) -> Option<Readable> {
    Some(Reader::of(html, abandoned)?.finish())
}

/// The value of an attribute.
pub(super) fn attribute(tag: &StartTag<()>, wanted: &str) -> Option<String> {
    let (_, value) = tag
        .attributes
        .iter()
        .find(|(name, _)| name.as_slice() == wanted.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

impl Reader {
    fn of(html: &str, abandoned: &Abandoned) -> Option<Self> {
        let mut reader = Self::default();
        for token in Tokenizer::new(html) {
            if abandoned.is_set() {
                return None;
            }
            let Ok(token) = token;
            reader.take(token);
        }
        Some(reader)
    }

    fn take(&mut self, token: Token<()>) {
        match token {
            Token::StartTag(tag) => self.open(&tag),
            Token::EndTag(tag) => self.close(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => self.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }

    fn open(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        if let Some((unseen, depth)) = &mut self.unseen {
            if *unseen == name && !tag.self_closing {
                *depth += 1;
            } else if name == "title" && unseen == "head" {
                self.in_title = true;
            } else if name == "body" && unseen == "head" {
                self.unseen = None;
            }
            return;
        }
        if UNSEEN.contains(&name.as_str()) {
            if !tag.self_closing {
                self.unseen = Some((name, 1));
            }
            return;
        }
        if BLOCKS.contains(&name.as_str()) {
            self.end_block();
        }
        match name.as_str() {
            "title" => self.in_title = true,
            "a" => {
                let href = attribute(tag, "href");
                self.link = href.map(|href| {
                    let listed = if href.len() <= LONGEST_HREF {
                        href
                    } else {
                        String::new()
                    };
                    (listed, self.block.text.len())
                });
            }
            "td" | "th" if !self.block.text.is_empty() => self.block.text.push_str(" | "),
            "pre" => self.pre += 1,
            "li" => self.block.text.push_str("- "),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.block.text.push_str("# "),
            around if AROUND.contains(&around) => self.around += 1,
            main if MAIN.contains(&main) => self.main += 1,
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if name == "title" {
            self.in_title = false;
        }
        if let Some((unseen, depth)) = &mut self.unseen {
            if unseen == name {
                *depth -= 1;
                if *depth == 0 {
                    self.unseen = None;
                }
            }
            return;
        }
        if name == "a" {
            self.end_link();
        }
        if BLOCKS.contains(&name) {
            self.end_block();
        }
        let closed = match name {
            "pre" => &mut self.pre,
            around if AROUND.contains(&around) => &mut self.around,
            main if MAIN.contains(&main) => &mut self.main,
            _ => return,
        };
        *closed = closed.saturating_sub(1);
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.push_str(text);
            return;
        }
        if self.unseen.is_some() {
            return;
        }
        if self.pre > 0 {
            self.block.text.push_str(text);
            return;
        }
        for (place, word) in text.split(char::is_whitespace).enumerate() {
            let ends_open = self.block.text.is_empty() || self.block.text.ends_with([' ', '\n']);
            if place > 0 && !ends_open {
                self.block.text.push(' ');
            }
            self.block.text.push_str(word);
        }
    }

    fn end_link(&mut self) {
        let Some((href, start)) = self.link.take() else { return };
        let words = self.block.text.get(start..).unwrap_or_default();
        self.block.linked += words.len();
        let room = self.block.links.len() < MAX_LINKS && self.noted < MAX_NOTED;
        if room && !href.is_empty() && !words.trim().is_empty() {
            self.noted += 1;
            self.block.links.push((words.trim().to_owned(), href));
        }
    }

    fn end_block(&mut self) {
        let open = self.link.take();
        if let Some((href, start)) = open {
            self.link = Some((href.clone(), start));
            self.end_link();
            // The link goes on in the next block.
            self.link = Some((href, 0));
        }
        let mut block = std::mem::take(&mut self.block);
        let kept = block.text.trim_end().len();
        block.text.truncate(kept);
        if block.text.trim_start_matches(['-', '#', ' ', '|', '\n']).is_empty() {
            return;
        }
        block.around = self.around > 0;
        block.main = self.main > 0;
        self.blocks.push(block);
    }

    fn finish(mut self) -> Readable {
        self.end_link();
        self.end_block();
        let length = |fits: &dyn Fn(&Block) -> bool| -> usize {
            let fitting = self.blocks.iter().filter(|block| fits(block));
            fitting.map(|block| block.text.len()).sum()
        };
        let prose = |block: &Block| !block.around && block.linked * 100 <= block.text.len() * LINKED_OF_HUNDRED;
        let main = |block: &Block| block.main && !block.around;
        let inner = |block: &Block| !block.around;
        let whole = length(&|_| true);
        // The narrowest choice that still leaves something to read.
        let chosen: &dyn Fn(&Block) -> bool = if length(&main) >= ENOUGH {
            &main
        } else if length(&prose) >= ENOUGH && length(&prose) * 2 >= whole {
            &prose
        } else if length(&inner) * 4 >= whole {
            &inner
        } else {
            &|_| true
        };
        let mut page = Readable {
            title: self.title.split_whitespace().collect::<Vec<_>>().join(" "),
            ..Readable::default()
        };
        let mut seen = BTreeSet::new();
        for block in self.blocks.iter().filter(|block| chosen(block)) {
            if !page.text.is_empty() {
                page.text.push('\n');
            }
            page.text.push_str(&block.text);
            for (words, href) in &block.links {
                if page.links.len() < MAX_LINKS && !href.starts_with('#') && seen.insert(href.clone()) {
                    page.links.push((words.clone(), href.clone()));
                }
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(html: &str) -> Readable {
        super::readable(html, &Abandoned::default()).unwrap()
    }

    /// A link that stays open over many blocks is remembered with each of them.
    #[test]
    fn a_page_is_never_held_many_times_over() {
        for (href, blocks) in [(100_000, 2000), (LONGEST_HREF, 20_000), (10, 100_000)] {
            let page = format!("<a href=\"{}\">{}", "A".repeat(href), "x<br>".repeat(blocks));
            let reader = Reader::of(&page, &Abandoned::default()).unwrap();
            let links = reader.blocks.iter().flat_map(|block| &block.links);
            let held: usize = links.map(|(words, href)| words.len() + href.len()).sum();
            assert!(held <= MAX_NOTED * (LONGEST_HREF + 1), "{href} {blocks}: {held}");
            assert_eq!(reader.finish().text.len(), 2 * blocks - 1);
        }
        assert_eq!(super::readable("<p>x", &Abandoned::already()), None);
    }

    #[test]
    fn a_page_is_read_without_what_stands_around() {
        let page = readable(&format!(
            "<!doctype html><html><head><title>The\n Title</title><style>x{{}}</style></head><body><nav><a href=/a>Home</a></nav>\
             <main><h1>Head&amp;line</h1><p>One <b>bold</b>  word,<br>next line. {}</p><ul><li>first<li><a href='/two'>second</a></ul>\
             <pre>  code\n    kept</pre><table><tr><th>a<th>b<tr><td>1<td>2</table><script>if (a < b) evil()</script></main>\
             <footer>imprint</footer></body></html>",
            "Lorem ipsum dolor. ".repeat(20)
        ));
        assert_eq!(page.title, "The Title");
        assert!(
            page.text.starts_with("# Head&line\nOne bold word,\nnext line. Lorem"),
            "{}",
            page.text
        );
        assert!(
            page.text.ends_with("- first\n- second\n  code\n    kept\na | b\n1 | 2"),
            "{}",
            page.text
        );
        assert_eq!(page.links, [("second".to_owned(), "/two".to_owned())]);
    }

    #[test]
    fn a_page_without_a_main_part_is_read_whole_and_a_list_of_links_stays() {
        assert_eq!(readable("just text").text, "just text");
        let link = |n: usize| format!("<p><a href=/{n}>story number {n}</a></p>");
        let links = (0..50).map(link).collect::<Vec<_>>().concat();
        let page = readable(&links);
        assert_eq!(page.text.lines().count(), 50);
        assert_eq!(page.links.len(), MAX_LINKS);
        assert_eq!(readable("<nav>only <a href=x>this</a></nav>").text, "only this");
        assert_eq!(readable(""), Readable::default());
    }

    #[test]
    fn hostile_markup_does_no_harm() {
        for evil in [
            "<div>",
            "<b><table>",
            "<svg>",
            "<a href=x>",
            "</main>",
            "<nav>",
            "<title>",
            "<!--",
            "<pre>",
            "\0",
        ] {
            let page = readable(&evil.repeat(100_000));
            assert!(page.text.len() < 1_000_000 && page.links.is_empty(), "{evil}");
        }
        assert!(readable("<nav><nav>x</nav> and the rest").text.contains("and the rest"));
        assert!(
            readable("<head><title>t<body>shown").text.is_empty(),
            "a title without an end swallows the page, as in a browser"
        );
    }
}
