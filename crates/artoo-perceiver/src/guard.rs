//! What a model's reading of the input may not do, decided by code (design §5).
//!
//! Owns three checks: a direct answer needs input that plainly needs no tool, a reaction to the last turn is never asked
//! about, and a scope must stand in the user's own words. Each errs towards the full pipeline and the smaller permission.

use artoo_protocol::message::UserInput;

/// Longest input, in characters, that may be answered without the pipeline.
const DIRECT_CHARS: usize = 200;

/// Beginnings of words that speak of time, files, the machine, the world or an action: such input goes through the pipeline.
#[rustfmt::skip] // a table, not one word a line
const NEEDS_WORK: &[&str] = &[
    // time and what changes with it
    "time", "date", "day", "today", "tonight", "tomorrow", "yesterday", "hour", "minute", "week", "month", "year",
    "clock", "now", "recent", "latest", "current", "weather", "news", "price",
    // files and folders
    "disk", "disc", "drive", "space", "storage", "file", "folder", "director", "path", "document", "photo", "image",
    "picture", "video", "music", "download", "desktop", "log", "code", "repo", "git", "branch", "commit",
    // the machine
    "process", "program", "app", "port", "cpu", "ram", "memory", "battery", "network", "wifi", "internet", "ip",
    "host", "user", "version", "install", "system", "machine", "computer", "screen", "window", "docker", "server",
    "service",
    // the world
    "mail", "message", "calendar", "event", "remind", "schedule", "url", "http", "web", "site", "page",
    // earlier work
    "again", "redo", "repeat", "retry", "undo", "wrong", "same", "previous", "last", "before", "earlier", "instead",
    "remember", "recall", "forget", "translat", "result",
    // actions
    "delet", "remov", "kill", "stop", "start", "restart", "send", "open", "clos", "run", "execut", "creat", "mak",
    "writ", "sav", "find", "search", "look", "list", "count", "show", "print", "read", "copy", "mov", "renam",
    "chang", "edit", "fix", "updat", "check", "test", "build", "compil", "convert", "calculat", "sort", "clean",
    "mount",
    // German, French, Spanish
    "zeit", "uhr", "heute", "datei", "ordner", "platte", "prozess", "nochmal", "wieder", "lösch", "heure", "fichier",
    "dossier", "disque", "processus", "encore", "supprim", "hora", "hoy", "archivo", "carpeta", "disco", "proceso",
    "otra", "borra", "elimin",
];

/// The same for scripts without spaces between words, and for Russian and Arabic: found anywhere.
#[rustfmt::skip] // a table, not one word a line
const NEEDS_WORK_ANYWHERE: &[&str] = &[
    "时", "點", "点", "天", "日", "月", "年", "今", "现在", "文件", "檔", "档", "夹", "盘", "硬碟", "空间", "进程", "端口", "内存", "再", "重",
    "删", "杀", "找", "搜", "写", "打开", "运行", "下载", "ファイル", "フォルダ", "ディスク", "プロセス", "もう一度", "消", "探", "開", "書", "시간", "오늘",
    "파일", "폴더", "디스크", "다시", "врем", "час", "сегодня", "файл", "папк", "диск", "процесс", "снова", "ещё раз", "удал",
    "الوقت", "الساعة", "اليوم", "ملف", "مجلد", "القرص", "مرة أخرى", "احذف",
];

/// Words of which a mere reaction to the last turn consists.
#[rustfmt::skip] // a table, not one word a line
const REACTION_WORDS: &[&str] = &[
    "a", "again", "and", "as", "better", "but", "change", "correct", "do", "don", "different", "differently", "fix",
    "instead", "is", "it", "less", "longer", "make", "more", "no", "not", "now", "off", "ok", "once", "one", "please",
    "redo", "repeat", "retry", "right", "s", "same", "shorter", "simpler", "so", "still", "t", "that", "the", "them",
    "these", "this", "those", "too", "try", "undo", "well", "wrong", "yes",
];

/// The same in scripts that are compared whole.
#[rustfmt::skip] // a table, not one word a line
const REACTIONS: &[&str] = &[
    "不对", "不對", "错了", "錯了", "再来一次", "再來一次", "重做", "再试一次", "用中文", "用英文", "短一点", "长一点", "違う", "もう一度", "もっと短く", "다시",
    "틀렸어", "снова", "ещё раз", "неправильно", "короче", "خطأ", "مرة أخرى", "falsch", "nochmal", "kürzer",
    "auf deutsch", "encore", "plus court", "otra vez", "mal",
];

/// Whether input may be answered without a task: short, no number, no path, nothing of [`NEEDS_WORK`], and no word that
/// points at an earlier turn.
pub fn may_answer_directly(input: &UserInput) -> bool {
    let text = input.text.to_lowercase();
    let looks_like_data = |c: char| c.is_numeric() || matches!(c, '/' | '\\' | '~' | '@' | '$' | '`' | '*' | '_' | '=');
    if text.chars().count() > DIRECT_CHARS || text.chars().any(looks_like_data) {
        return false;
    }
    let inside_a_name = text.split_whitespace().any(|word| {
        word.trim_matches(|c: char| !c.is_alphanumeric())
            .contains(['.', ':', '#', '&', '|', '<', '>'])
    });
    let refers_back = !input.history.is_empty()
        && (is_reaction(input) || words(&text).any(|word| matches!(word, "it" | "that" | "this" | "them" | "in")));
    !inside_a_name
        && !refers_back
        && !words(&text).any(|word| NEEDS_WORK.iter().any(|stem| word.starts_with(stem)))
        && !NEEDS_WORK_ANYWHERE.iter().any(|part| text.contains(part))
}

/// Whether input only reacts to the last turn ("wrong", "do it again", "in Chinese"), so that the history answers
/// whatever a model would ask.
pub fn is_reaction(input: &UserInput) -> bool {
    if input.history.is_empty() {
        return false;
    }
    let text = input.text.trim().to_lowercase();
    let whole = text.trim_matches(|c: char| !c.is_alphanumeric());
    if REACTIONS.contains(&whole) {
        return true;
    }
    let all: Vec<&str> = words(whole).collect();
    match all.as_slice() {
        [] => false,
        ["in", _language] => true,
        several => several.iter().all(|word| REACTION_WORDS.contains(word)),
    }
}

/// The scope, if it stands in the user's words as a whole: a piece of a longer path is none, so that `/` cannot be read
/// out of `/home/me`.
pub fn stated_scope(raw: &str, scope: &str) -> Option<String> {
    let scope = scope.trim();
    // `before / after`, `~ 5` and `wait ..` name no place; who means the whole disk or home can say so with `--scope`.
    if !scope.contains(char::is_alphanumeric) {
        return None;
    }
    raw.match_indices(scope)
        .any(|(at, found)| {
            let (before, rest) = raw.split_at(at);
            let after = rest.get(found.len()..).unwrap_or_default();
            !before.ends_with(part_of_path) && ends_here(scope, after)
        })
        .then(|| scope.to_owned())
}

fn ends_here(scope: &str, after: &str) -> bool {
    let (slash, rest) = match after.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (scope.ends_with('/'), after),
    };
    if slash && rest.starts_with(char::is_alphanumeric) {
        return false;
    }
    // The full stop of the sentence is no continuation.
    let rest = rest.strip_prefix(['.', '?', '!']).unwrap_or(rest);
    !rest.starts_with(part_of_path)
}

/// Scripts from U+2E80 on write no spaces, so what follows a path there may be the sentence going on.
fn part_of_path(c: char) -> bool {
    c.is_alphanumeric() && c < '\u{2e80}' || matches!(c, '/' | '\\' | '.' | '_' | '-' | '~' | '*' | '$' | '%')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use artoo_protocol::ids::TaskId;
    use artoo_protocol::message::Turn;

    fn input(text: &str, after_a_turn: bool) -> UserInput {
        UserInput {
            task_id: TaskId::new("input_00000001"),
            text: text.to_owned(),
            history: if after_a_turn {
                vec![Turn {
                    input: "list files".into(),
                    summary: "3 files".into(),
                }]
            } else {
                Vec::new()
            },
            person_present: true,
            scope: Vec::new(),
        }
    }

    #[test]
    fn chat_that_needs_a_tool_is_never_answered_directly() {
        for text in [
            "What time is it?",
            "how much disk is left",
            "kill what runs on port 80",
            "do it again",
            "what's 17*23",
            "is docker up",
            "read notes.txt",
            "现在几点",
            "硬盘还剩多少",
            "сколько времени",
            "كم الساعة",
            "wie spät ist es, welche Uhrzeit",
            "who is logged in",
            "ping localhost:http",
            "what did I ask last",
        ] {
            assert!(!may_answer_directly(&input(text, false)), "{text}");
        }
        for text in [
            "Hello",
            "hi there!",
            "What can you do?",
            "who are you?",
            "Thank you",
            "你好",
            "Bonjour !",
            "مرحبا",
            "👋",
        ] {
            assert!(may_answer_directly(&input(text, false)), "{text}");
        }
        assert!(!may_answer_directly(&input("in Chinese", true)));
        assert!(!may_answer_directly(&input("wrong", true)));
        assert!(!may_answer_directly(&input(&"hello ".repeat(100), false)));
    }

    #[test]
    fn reactions_are_known_only_after_a_turn() {
        for text in [
            "wrong",
            "it",
            "Do it again!",
            "in Chinese",
            "shorter",
            "that's not right",
            "不对",
            "再来一次",
        ] {
            assert!(is_reaction(&input(text, true)), "{text}");
            assert!(!is_reaction(&input(text, false)), "{text}");
        }
        for text in [
            "delete it from my mailbox",
            "open the report",
            "in the folder docs",
            "…",
        ] {
            assert!(!is_reaction(&input(text, true)), "{text}");
        }
    }

    #[test]
    fn a_scope_stands_in_the_users_words_or_is_dropped() {
        for (raw, scope, kept) in [
            ("tidy ~/Downloads", "~/Downloads", true),
            ("tidy ~/Downloads/.", "~/Downloads", true),
            ("tidy '/srv/my data' now", "/srv/my data", true),
            ("整理~/下载里的文件", "~/下载", true),
            ("整理~/下载里的文件", "~/", false),
            ("list /home/müller", "/home/m", false),
            ("list /home/me/.ssh", "/home/me", false),
            ("tidy ~/Downloads", "~", false),
            ("list /home/me", "/", false),
            ("list /home/me", "/home", false),
            ("compare and/or merge", "/", false),
            ("what is in /", "/", false),
            ("fill in the before / after table", "/", false),
            ("name about ~ 5 of them", "~", false),
            ("wait .. which ones", "..", false),
            ("tidy up", "/home", false),
            ("tidy up", " ", false),
            ("look into src.old", "src", false),
        ] {
            assert_eq!(stated_scope(raw, scope).is_some(), kept, "{scope:?} in {raw:?}");
        }
    }
}
