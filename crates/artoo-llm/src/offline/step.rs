//! What a sentence asks for, and the one canonical sentence for it (design §18).
//!
//! Owns the meaning. A step travels from planner to executor as its canonical sentence, because the model keeps no state:
//! what [`Step::sentence`] writes, the grammar reads back to the same step.

use super::words::{named, quoted};

/// What is counted in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Lines,
    Words,
}

/// Files, or folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Files,
    Folders,
}

/// Which files are meant: by sort, and by the patterns of their names (any of them; none means all).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileSet {
    pub sort: Sort,
    pub patterns: Vec<String>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Count {
        files: FileSet,
        place: String,
    },
    Measure {
        unit: Unit,
        file: String,
    },
    MeasureAll {
        unit: Unit,
        files: FileSet,
        place: String,
    },
    Find {
        files: FileSet,
        place: String,
    },
    List {
        place: String,
    },
    Search {
        text: String,
        files: FileSet,
        place: String,
    },
    FilesWith {
        text: String,
        files: FileSet,
        place: String,
    },
    Occurrences {
        text: String,
        files: FileSet,
        place: String,
    },
    Largest {
        count: u32,
        files: FileSet,
        place: String,
    },
    DiskUse {
        place: String,
    },
    Duplicates {
        place: String,
    },
    Read {
        file: String,
    },
    Write {
        text: String,
        file: String,
    },
    /// Writes what an earlier step gave; steps count from 1.
    WriteResult {
        step: usize,
        file: String,
    },
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Words => "words",
        }
    }
}

/// How names are written into a sentence.
type Naming = fn(&str) -> String;

impl FileSet {
    fn phrase(&self, naming: Naming) -> String {
        let list = self
            .patterns
            .iter()
            .map(|pattern| naming(pattern))
            .collect::<Vec<_>>()
            .join(" or ");
        match (self.sort, list.is_empty()) {
            (Sort::Files, true) => "files".to_owned(),
            (Sort::Files, false) => format!("{list} files"),
            (Sort::Folders, true) => "folders".to_owned(),
            (Sort::Folders, false) => format!("folders named {list}"),
        }
    }

    fn in_files(&self, naming: Naming) -> String {
        if self.patterns.is_empty() {
            String::new()
        } else {
            format!("the {} in ", self.phrase(naming))
        }
    }
}

impl Step {
    /// The sentence that the grammar reads back to this step: a plain one where that works, else one with every name in
    /// quotes, else one that also says what is a folder. `reads_back` says what the grammar makes of a sentence.
    pub fn sentence(&self, reads_back: impl Fn(&str) -> Option<Self>) -> String {
        let fits = |sentence: &String| reads_back(sentence).as_ref() == Some(self);
        let plain = self.written(named, "");
        if fits(&plain) {
            return plain;
        }
        let in_quotes = self.written(quoted, "");
        if fits(&in_quotes) {
            in_quotes
        } else {
            self.written(quoted, "the folder ")
        }
    }

    fn written(&self, naming: Naming, folder: &str) -> String {
        let text = |text: &str| quoted(text);
        let at = |place: &str| format!("{folder}{}", naming(place));
        match self {
            Self::Count { files, place } => format!("count the {} in {}", files.phrase(naming), at(place)),
            Self::Measure { unit, file } => format!("count the {} in {}", unit.name(), naming(file)),
            Self::MeasureAll { unit, files, place } => {
                format!(
                    "count the {} of all {} in {}",
                    unit.name(),
                    files.phrase(naming),
                    at(place)
                )
            }
            Self::Find { files, place } => format!("find all {} in {}", files.phrase(naming), at(place)),
            Self::List { place } => format!("list the entries of {}", at(place)),
            Self::Search {
                text: what,
                files,
                place,
            } => {
                format!(
                    "search for the text {} in {}{}",
                    text(what),
                    files.in_files(naming),
                    at(place)
                )
            }
            Self::FilesWith {
                text: what,
                files,
                place,
            } => {
                format!(
                    "find the {} containing {} in {}",
                    files.phrase(naming),
                    text(what),
                    at(place)
                )
            }
            Self::Occurrences {
                text: what,
                files,
                place,
            } => {
                let set = files.in_files(naming);
                format!("count the occurrences of {} in {set}{}", text(what), at(place))
            }
            Self::Largest { count, files, place } => {
                format!("find the {count} largest {} in {}", files.phrase(naming), at(place))
            }
            Self::DiskUse { place } => format!("measure the disk space used by {}", at(place)),
            Self::Duplicates { place } => format!("find duplicate files in {}", at(place)),
            Self::Read { file } => format!("read the file {}", naming(file)),
            Self::Write { text: what, file } => format!("write {} to {}", text(what), naming(file)),
            Self::WriteResult { step, file } => format!("write the result of step {step} to {}", naming(file)),
        }
    }

    /// A slug for tasks of this kind.
    pub fn slug(&self) -> String {
        let of = |verb: &str, files: &FileSet| {
            let sort = match files.sort {
                Sort::Files => "files",
                Sort::Folders => "folders",
            };
            let kind = files
                .patterns
                .first()
                .map(|pattern| pattern.trim_start_matches(['*', '.']));
            match kind.filter(|kind| !kind.is_empty()) {
                Some(kind) => format!("{verb}_{kind}_{sort}"),
                None => format!("{verb}_{sort}"),
            }
        };
        match self {
            Self::Count { files, .. } => of("count", files),
            Self::Measure { unit, .. } | Self::MeasureAll { unit, .. } => format!("count_{}", unit.name()),
            Self::Find { files, .. } => of("find", files),
            Self::List { .. } => "list_folder".to_owned(),
            Self::Search { .. } | Self::FilesWith { .. } => "search_text".to_owned(),
            Self::Occurrences { .. } => "count_occurrences".to_owned(),
            Self::Largest { files, .. } => of("find_largest", files),
            Self::DiskUse { .. } => "measure_disk_use".to_owned(),
            Self::Duplicates { .. } => "find_duplicates".to_owned(),
            Self::Read { .. } => "read_file".to_owned(),
            Self::Write { .. } | Self::WriteResult { .. } => "write_file".to_owned(),
        }
    }
}
