//! The tables that the source is held against.

/// The modules and their ranks: an arrow points to a lower rank, never to the same. The table in `docs/ARCHITECTURE.md`
/// says the same with more words, and is compared with this one.
pub(crate) const RANKS: &[(&str, i8)] = &[
    ("cli", 6), // and main.rs, its door
    ("doors", 5),
    ("engine", 4),
    ("checkpoint", 3),
    ("agents", 2),
    ("git", 2),
    ("mcp", 2),
    ("shell", 2),
    ("store", 2),
    ("watch", 2),
    ("worktree", 2),
    ("classify", 1),
    ("filter", 1),
    ("protocol", 1),
    ("settings", 1),
    ("model", 0),
    ("sys", 0),
    ("error", -1), // below all
];

/// Crates, and the only places that may name them.
pub(crate) const CONFINED: &[(&str, &[&str])] = &[
    ("git2", &["src/store/", "src/sys/libgit2.rs"]),
    ("libdeflater", &["src/store/"]),
    ("clap", &["src/cli/", "src/main.rs"]),
    ("clap_complete", &["src/cli/completion.rs", "src/cli/nushell.rs"]),
    ("clap_mangen", &["src/cli/man.rs"]),
    ("indicatif", &["src/cli/progress.rs"]),
    ("serde_saphyr", &["src/settings/", "src/classify/", "src/agents/edit/"]),
    ("notify", &["src/watch/"]),
    ("toml_edit", &["src/agents/"]),
    ("tokio", &["src/doors/socket/", "src/web/"]),
    ("sysinfo", &["src/sys/"]),
    ("rustix", &["src/sys/", "src/worktree/", "src/error.rs", "src/store/"]),
    ("libc", &["src/sys/", "src/worktree/", "src/error.rs", "src/store/"]),
];

/// The one place for what only Linux has: a port to another system is one more such folder.
pub(crate) const LINUX_ROOM: &str = "src/sys/linux/";
/// Calls and constants that only Linux has.
#[rustfmt::skip]
pub(crate) const LINUX_WORDS: &[&str] = &[
    "F_SETLEASE", "NOATIME", "O_NOATIME", "O_PATH", "O_TMPFILE", "RawDir", "RealtimeCoarse", "RenameFlags", "ResolveFlags",
    "TMPFILE", "copy_file_range", "fadvise", "fallocate", "malloc_trim", "memfd_create", "openat2", "prctl", "renameat_with",
    "socket_peercred", "statfs", "statx", "sync_file_range", "syncfs", "syscall", "target_os",
];
/// Readers of foreign text, to whom `/proc/` is a word of it.
pub(crate) const PROC_AS_TEXT: &[&str] = &["src/classify/", "src/model/"];

pub(crate) const MAX_FILE: usize = 500;
pub(crate) const MAX_FUNCTION: usize = 80;

/// Names that no tracked text may hold. Written in two halves, because this file is tracked too.
pub(crate) const UNNAMED: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("registry.", "npmjs", ".org"),
    concat!("deb.", "debian", ".org"),
    concat!("/wor", "k/"),
];

/// The largest circle of files that use one another, below one top folder.
pub(crate) const MAX_CIRCLE: usize = 3;
/// The one larger circle: the evaluator, whose cases call one another as the commands of a shell do.
pub(crate) const CIRCLE: &str = "src/classify/walk/";

/// The number of types of one name that there may be.
pub(crate) const MAX_MEANINGS: usize = 2;

/// Names of the standard library that a reader takes for it. `Error` and `Result` are the crate's own by custom.
#[rustfmt::skip]
pub(crate) const STANDARD_NAMES: &[&str] = &[
    // The prelude.
    "AsMut", "AsRef", "Box", "Clone", "Copy", "Default", "DoubleEndedIterator", "Drop", "Eq", "Err", "ExactSizeIterator",
    "Extend", "Fn", "FnMut", "FnOnce", "From", "FromIterator", "Future", "Into", "IntoFuture", "IntoIterator", "Iterator",
    "None", "Ok", "Option", "Ord", "PartialEq", "PartialOrd", "Send", "Sized", "Some", "String", "Sync", "ToOwned",
    "ToString", "TryFrom", "TryInto", "Unpin", "Vec",
    // Commonly imported.
    "Any", "Arc", "AtomicBool", "AtomicU64", "AtomicUsize", "BTreeMap", "BTreeSet", "Barrier", "BinaryHeap", "Borrow",
    "BufRead", "BufReader", "BufWriter", "Cell", "Command", "Component", "Components", "Condvar", "Cow", "Cursor", "Debug",
    "Deref", "DerefMut", "Display", "Duration", "ExitCode", "ExitStatus", "File", "FromStr", "Hash", "HashMap", "HashSet",
    "Hasher", "Instant", "JoinHandle", "LazyLock", "Mutex", "MutexGuard", "NonZero", "OnceCell", "OnceLock",
    "OpenOptions", "Ordering", "OsStr", "OsString", "Path", "PathBuf", "PhantomData", "Pin", "Range", "RangeInclusive",
    "Rc", "Read", "Receiver", "RefCell", "Reverse", "RwLock", "Seek", "Sender", "Stdin", "Stdio", "Stdout", "SystemTime",
    "TcpListener", "TcpStream", "UnixListener", "UnixStream", "VecDeque", "Weak", "Wrapping", "Write",
];

/// No doc comment begins with one of these: a function's begins with a verb, a type's with a noun.
pub(crate) const OPENINGS: &[&str] = &[
    "How", "That", "Those", "What", "Whatever", "When", "Where", "Whether", "Which", "Who", "Whoever", "Whom", "Whose",
    "Why",
];
/// Nor with one of these before such a word ("By which").
#[rustfmt::skip]
pub(crate) const PREPOSITIONS: &[&str] = &[
    "About", "After", "Against", "As", "At", "Before", "Behind", "Below", "Beside", "By", "For", "From", "In", "Into", "Of",
    "On", "Through", "To", "Under", "Until", "Upon", "With", "Without",
];
/// No sentence has one of these for its subject: a noun says who or which thing it is.
pub(crate) const SUBJECTS: &[&str] = &["What", "Whatever", "Who", "Whoever"];

/// Words and phrases that messages and pages do not use, each with the plain words to use instead. They are compared in lower case.
pub(crate) const PLAIN: &[(&str, &str)] = &[
    ("aimed at", "targets"),
    ("anew", "again"),
    ("ask piton", "call piton"),
    ("asks piton", "calls piton"),
    ("at work", "running, active"),
    ("beside", "next to, in addition to"),
    ("by which", "with which"),
    ("cap", "limit"),
    ("come back", "are restored"),
    ("comes back", "is restored"),
    ("go back", "return, are restored"),
    ("goes", "is deleted, continues, moves"),
    ("goes back", "is restored"),
    ("held", "saved, contained"),
    ("holds", "contains"),
    ("in any case", "always"),
    ("look at", "check"),
    ("looked at", "checked"),
    ("looks at", "checks"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("nobody", "no person, no process"),
    ("of which", "whose"),
    ("somebody", "a person, another process"),
    ("stands", "is, is stored"),
    ("step over", "undo"),
    ("steps over", "undoes"),
    ("tells", "reports"),
    ("told", "reported"),
    ("went", "moved, was deleted"),
    ("whoever", "the person, the process"),
];

/// The number of words that the pages for users may have together.
pub(crate) const MAX_PAGE_WORDS: usize = 25_000;

/// The number of words that a sentence may have.
pub(crate) const MAX_WORDS: usize = 35;

/// Words whose full stop ends no sentence.
pub(crate) const ABBREVIATIONS: &[&str] = &["cf.", "e.g.", "etc.", "i.e.", "vs."];
