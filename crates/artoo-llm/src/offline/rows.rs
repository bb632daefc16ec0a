//! The table of what can be said to the offline model (design §18).
//!
//! Owns every sentence that it knows. Each row stands with its forms, its meaning and its examples, which are its tests and
//! the text that people are shown. See `form` for the language of forms.

use super::form::Filled;
use super::step::{FileSet, Sort, Step, Unit};

/// What a piece of a sentence turned out to be.
pub(super) enum Meaning {
    /// A step by itself.
    Step(Step),
    /// `count them`: the count of what the step before finds.
    CountThem,
    /// `write it to x`: the result of the step before, or of the step with that number.
    WriteResult { step: Option<usize>, file: String },
    /// `tell me the number`: what happens anyway.
    Nothing,
}

/// One thing that can be said, in every way in which it can be said.
pub(super) struct Row {
    /// For people.
    pub name: &'static str,
    pub forms: &'static [&'static str],
    /// What the filled slots mean; `None` when they do not go together.
    pub means: fn(Filled) -> Option<Meaning>,
    /// A sentence, and the canonical sentence it is read as.
    pub examples: &'static [(&'static str, &'static str)],
}

fn here(place: Option<String>) -> String {
    place.unwrap_or_else(|| ".".to_owned())
}

#[allow(clippy::unnecessary_wraps, reason = "the shape that the table needs")]
fn step(step: Step) -> Option<Meaning> {
    Some(Meaning::Step(step))
}

fn only_files(files: FileSet) -> Option<FileSet> {
    (files.sort == Sort::Files).then_some(files)
}

/// The table. Of rows that both fit, the first is meant.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "count files",
        forms: &[
            "count|count_up|total [up] {files} [that_are|there_are|found|located] {where}",
            "how_many {files} [are|are_there|there_are|exist|do_we_have|do_i_have|can_be_found|live|sit|lie] [there] {where} [exist|there|in_total]",
            "how_many {files} does|do {place} have|contain|hold",
            "how_many {files} is|are in|inside {place}",
            "[what_is|what's|tell_me|give_me|get] [the] [total] number_of|count_of {files} [there_are] {where}",
        ],
        means: |f| step(Step::Count { files: f.files, place: here(f.place) }),
        examples: &[
            ("count the Rust files in crates", "count the *.rs files in crates"),
            ("Count all the .md files under docs.", "count the *.md files in docs"),
            ("How many Python files are there in this folder?", "count the *.py files in ."),
            ("how many files does the folder src contain?", "count the files in src"),
            ("what is the number of folders in \"my project\"?", "count the folders in \"my project\""),
            ("how many *.c and *.h files are in src?", "count the *.c or *.h files in src"),
            ("count files ending in .rs under crates", "count the *.rs files in crates"),
            ("how many rust files are here", "count the *.rs files in ."),
            ("How many TOML files are in this repository?", "count the *.toml files in ."),
        ],
    },
    Row {
        name: "count lines or words",
        forms: &[
            "how_many {unit} [of_code|of_text] [are|are_there|there_are] [there] in|of {file} [have|contain]",
            "how_many {unit} [of_code|of_text] does|do|has {file} [have|contain|hold]",
            "count {unit} [of_code|of_text] [there_are] in|of {file}",
            "[what_is|what's|tell_me|give_me|get] [the] [total] number_of|count_of {unit} [of_code|of_text] in|of {file}",
            "[what_is|what's|tell_me|give_me|get] [the] line_count|length_in_lines of|for {file}",
        ],
        means: |f| {
            let file = f.file?;
            let unit = f.unit.unwrap_or(Unit::Lines);
            step(Step::Measure { unit, file })
        },
        examples: &[
            ("how many lines are in README.md", "count the lines in README.md"),
            ("Count the words in \"my notes.txt\"", "count the words in \"my notes.txt\""),
            ("how many lines does src/lib.rs have?", "count the lines in src/lib.rs"),
            ("what is the number of lines in ~/a.txt?", "count the lines in ~/a.txt"),
            ("line count of Cargo.toml", "count the lines in Cargo.toml"),
        ],
    },
    Row {
        name: "count lines or words of many files",
        forms: &[
            "how_many {unit} [of_code|of_text] [are|are_there|there_are] [there] in|of|across {files} {where} [have|contain]",
            "how_many {unit} [of_code|of_text] do|does {files} {where} have|contain",
            "how_many {unit} of {code} [are|are_there|there_are] [there] {where}",
            "count {unit} [of_code|of_text] in|of|across {files} {where}",
            "count {unit} of {code} {where}",
            "[what_is|what's|tell_me|give_me] [the] [total] number_of {unit} [of_code] in|of|across {files} {where}",
            "[what_is|what's|tell_me|give_me] [the] [total] number_of {unit} of {code} {where}",
        ],
        means: |f| {
            let (unit, files) = (f.unit?, only_files(f.files)?);
            step(Step::MeasureAll { unit, files, place: here(f.place) })
        },
        examples: &[
            ("how many lines of Rust code are in crates?", "count the lines of all *.rs files in crates"),
            ("count the lines in all Markdown files under docs", "count the lines of all *.md files in docs"),
            ("How many words are there in the *.txt files here", "count the words of all *.txt files in ."),
        ],
    },
    Row {
        name: "count occurrences of a text",
        forms: &[
            "count [all] [the] [number_of] occurrences|mentions|uses of {word} in {files} {where}",
            "count [all] [the] [number_of] occurrences|mentions|uses of {word} {where}",
            "count how_often|how_many_times {word} occurs|appears {where}",
            "how_often|how_many_times does|is {word} occur|appear|used|mentioned {where}",
            "how_many occurrences|mentions|uses of {word} are|are_there [there] {where}",
        ],
        means: |f| {
            let (text, files) = (f.text?, only_files(f.files)?);
            step(Step::Occurrences { text, files, place: here(f.place) })
        },
        examples: &[
            ("how often does \"TODO\" occur in crates?", "count the occurrences of \"TODO\" in crates"),
            ("count the occurrences of foo in the *.rs files in src", "count the occurrences of \"foo\" in the *.rs files in src"),
        ],
    },
    Row {
        name: "find the largest files",
        forms: &[
            "[what_are|which_are|find|list|show|show_me|give_me|get|tell_me|name] [the] [top] [{n}] [top] largest|biggest|heaviest {files} {where} [by_size]",
            "[what_is|what's|which_is|find|show|show_me] [the] largest|biggest|heaviest {files} {where}",
            "what|which {n} {files} [are|is] [the] largest|biggest|heaviest {where}",
            "what|which {files} are|is [the] largest|biggest|heaviest {where}",
            "what|which {files} {where} are|is [the] largest|biggest|heaviest",
        ],
        means: |f| {
            let count = f.number.unwrap_or(if f.single { 1 } else { 10 });
            step(Step::Largest { count, files: only_files(f.files)?, place: here(f.place) })
        },
        examples: &[
            ("what are the 5 largest files in .", "find the 5 largest files in ."),
            ("find the three biggest videos under ~", "find the 3 largest *.mp4 or *.mkv or *.mov or *.avi or *.webm or *.MP4 or *.MKV or *.MOV or *.AVI files in ~"),
            ("Which file is the largest in src?", "find the 1 largest files in src"),
            ("show me the top 10 largest files here", "find the 10 largest files in ."),
            ("the largest Rust file in crates", "find the 1 largest *.rs files in crates"),
        ],
    },
    Row {
        name: "find duplicates",
        forms: &[
            "find|list|show|show_me|look_for|search_for|identify|detect|check_for|get [all] [the] [any] duplicate|duplicated|identical files|file {where}",
            "find|list|show|show_me|look_for|search_for|identify|detect|check_for|get [all] [the] [any] duplicates [of_files] {where}",
            "[what|which] files are duplicates|duplicated|identical {where}",
            "are_there|is_there [any] [a] duplicate|duplicated|identical files|file {where}",
            "are_there [any] duplicates {where}",
        ],
        means: |f| step(Step::Duplicates { place: here(f.place) }),
        examples: &[
            ("find duplicate files in docs", "find duplicate files in docs"),
            ("Are there any duplicates in this folder?", "find duplicate files in ."),
            ("list all identical files under \"my photos\"", "find duplicate files in \"my photos\""),
        ],
    },
    Row {
        name: "measure disk use",
        forms: &[
            "[what_is|what's|show|show_me|tell_me|measure|get|give_me|find] [the] [total] disk_usage|disk_use|size [of|for|in] {place}",
            "how_much [disk] space|storage does|do {place} use|take|take_up|occupy|need|consume",
            "how_much [disk] space|storage is used|taken|occupied|taken_up by|in {place}",
            "measure [the] [disk] space|storage used|taken by {place}",
            "how_big|how_large is|are {place}",
        ],
        means: |f| step(Step::DiskUse { place: f.place? }),
        examples: &[
            ("how much disk space does crates use?", "measure the disk space used by crates"),
            ("how big is this folder", "measure the disk space used by ."),
            ("What is the size of the folder docs?", "measure the disk space used by docs"),
            ("disk usage of ~/Downloads", "measure the disk space used by ~/Downloads"),
        ],
    },
    Row {
        name: "find files that hold a text",
        forms: &[
            "find|list|show|show_me|get|what|which {files} containing|contain|contains|that_contain|mentioning|mention|mentions|that_mention|with|holding|including {word} {where}",
            "find|list|show|show_me|get|what|which {files} {where} containing|contain|contains|that_contain|mentioning|mention|mentions|that_mention {word}",
        ],
        means: |f| {
            let (text, files) = (f.text?, only_files(f.files)?);
            step(Step::FilesWith { text, files, place: here(f.place) })
        },
        examples: &[
            ("which files contain \"unsafe\" in crates?", "find the files containing \"unsafe\" in crates"),
            ("find all *.rs files in src that mention TODO", "find the *.rs files containing \"TODO\" in src"),
        ],
    },
    Row {
        name: "read a file",
        forms: &[
            "read|cat [me] [the] [contents_of|content_of|text_of] {file}",
            "print|display|show|show_me|open|output|view|give_me [me] [the] [contents_of|content_of|text_of] {name}",
            "what_does {name} say|contain",
            "[what_is|what's] [the] [contents_of|content_of|in|inside] {name}",
        ],
        means: |f| step(Step::Read { file: f.file? }),
        examples: &[
            ("show Cargo.toml", "read the file Cargo.toml"),
            ("read the file \"my notes.txt\"", "read the file \"my notes.txt\""),
            ("What's in README.md?", "read the file README.md"),
            ("print the contents of docs/design.md", "read the file docs/design.md"),
        ],
    },
    Row {
        name: "list a folder",
        forms: &[
            "list|show|show_me|ls|print|display|give_me [the] [all_the] files|contents|content|entries|everything [and_folders] in|of|inside {place}",
            "list|show|show_me|ls|print|display [the] files|contents|entries|everything [here]",
            "list|ls [the] [folder|directory] {place}",
            "ls",
            "what|which [files|things] is|are|is_there|are_there [there] in|inside {place}",
            "what|which [files] is|are here",
        ],
        means: |f| step(Step::List { place: here(f.place) }),
        examples: &[
            ("list the files in src", "list the entries of src"),
            ("show me the contents of this directory", "list the entries of ."),
            ("what is in the folder docs?", "list the entries of docs"),
            ("ls ~/Downloads", "list the entries of ~/Downloads"),
        ],
    },
    Row {
        name: "find files",
        forms: &[
            "find|list|show|show_me|search_for|search|look_for|locate|get|give_me|which|what [me] {files} [are|are_there|there_are|exist|that_are|located] [there] {where} [exist]",
            "find|locate|where_is|where_are|where's {filename} {where}",
        ],
        means: |f| {
            let files = match f.file {
                Some(name) if name.contains('/') => return None,
                Some(name) => FileSet { sort: Sort::Files, patterns: vec![name] },
                None => f.files,
            };
            step(Step::Find { files, place: here(f.place) })
        },
        examples: &[
            ("find all *.md files under docs", "find all *.md files in docs"),
            ("list all the Rust files in crates", "find all *.rs files in crates"),
            ("Where is Cargo.toml?", "find all Cargo.toml files in ."),
            ("find files named \"read me.txt\" in my home folder", "find all \"read me.txt\" files in ~"),
            ("find all photos in ~/Pictures", "find all *.jpg or *.jpeg or *.png or *.gif or *.webp or *.svg or *.heic or *.JPG or *.JPEG or *.PNG or *.GIF or *.HEIC files in ~/Pictures"),
            ("find folders named target", "find all folders named target in ."),
            ("find *.toml in crates", "find all *.toml files in crates"),
        ],
    },
    Row {
        name: "search for a text",
        forms: &[
            "search|search_for|grep|grep_for|look_for|find [the] [all] [every] [occurrences_of|mentions_of|uses_of|lines_with|lines_containing] {text} in {files} {where}",
            "search|search_for|grep|grep_for|look_for|find [the] [all] [every] [occurrences_of|mentions_of|uses_of|lines_with|lines_containing] {text} {where}",
            "search|search_for|grep|grep_for|look_for {word} in {files} {where}",
            "search|search_for|grep|grep_for|look_for {word} in|under|inside|within|below {place}",
            "find [the] [all] [every] occurrences_of|mentions_of|uses_of|lines_with|lines_containing {word} {where}",
            "search|search_in|look_in|grep_in {files} {where} for {word}",
            "search|search_in|look_in|grep_in {place} for {word}",
        ],
        means: |f| {
            let (text, files) = (f.text?, only_files(f.files)?);
            step(Step::Search { text, files, place: here(f.place) })
        },
        examples: &[
            ("search for \"foo\" in crates", "search for the text \"foo\" in crates"),
            ("Search the *.rs files in src for \"fn main\"", "search for the text \"fn main\" in the *.rs files in src"),
            ("grep TODO in crates", "search for the text \"TODO\" in crates"),
            ("search crates for the word panic", "search for the text \"panic\" in crates"),
            ("find all mentions of \"artoo\" in this repository", "search for the text \"artoo\" in ."),
        ],
    },
    Row {
        name: "write a text to a file",
        forms: &[
            "write|save|put|store [the] {text} to|into|in {file}",
            "create|make|write|add [a] [new] {file} with|containing|that_contains|saying|that_says [the] [content|contents|text|words] {text}",
        ],
        means: |f| step(Step::Write { text: f.text?, file: f.file? }),
        examples: &[
            ("write \"hello\" to notes.txt", "write \"hello\" to notes.txt"),
            ("Create a file called \"my note.txt\" with the text 'a b'", "write \"a b\" to \"my note.txt\""),
            ("save the word done into a new file named x.txt", "write \"done\" to x.txt"),
        ],
    },
    Row {
        name: "write the previous result to a file",
        forms: &[
            "write|save|put|store|record|dump|output [the] result of step {step} to|into|in {file}",
            "write|save|put|store|record|dump|output [down] [{result}] to|into|in {file}",
        ],
        means: |f| {
            let step = f.step.and_then(|step| usize::try_from(step).ok());
            Some(Meaning::WriteResult { step, file: f.file? })
        },
        examples: &[
            ("count the files in src and write the number to count.txt", "count the files in src, then write the result of step 1 to count.txt"),
            ("find all *.rs files in src, then save the list of files into \"my list.txt\"", "find all *.rs files in src, then write the result of step 1 to \"my list.txt\""),
            ("How many lines are in README.md? Write it to lines.txt.", "count the lines in README.md, then write the result of step 1 to lines.txt"),
        ],
    },
    Row {
        name: "count what was found",
        forms: &["count them|it|these|those|the_results|the_files|the_matches", "how_many [are_there|are_they|of_them_are_there]"],
        means: |_| Some(Meaning::CountThem),
        examples: &[(
            "find the rust files in src, count them, and write the number to n.txt",
            "find all *.rs files in src, then count the *.rs files in src, then write the result of step 2 to n.txt",
        )],
    },
    Row {
        name: "say the result",
        forms: &["tell_me|show|show_me|print|report|give_me|return|display|say|output {result}", "tell_me|report [back]"],
        means: |_| Some(Meaning::Nothing),
        examples: &[("count the files in src and tell me the number", "count the files in src")],
    },
];
