//! The tables that the source is held against.

/// The modules and their ranks: an arrow points to a lower rank, never to the same.
pub const RANKS: &[(&str, i8)] = &[
    ("cli", 7), // and main.rs, its door
    ("daemon", 6),
    ("sidecar", 5),
    ("engine", 4),
    ("checkpoint", 3),
    ("agents", 2),
    ("git", 2),
    ("mcp", 2),
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
pub const CONFINED: &[(&str, &[&str])] = &[
    ("git2", &["src/store/"]),
    ("libdeflater", &["src/store/"]),
    ("clap", &["src/cli/", "src/main.rs"]),
    ("serde_saphyr", &["src/settings/", "src/classify/", "src/agents/edit/"]),
    ("sqlparser", &["src/classify/sql/"]),
    ("notify", &["src/watch/"]),
    ("tokio", &["src/daemon/", "src/web/"]),
    ("rustix", &["src/sys/", "src/worktree/", "src/error.rs", "src/store/"]),
    ("libc", &["src/sys/", "src/worktree/", "src/error.rs", "src/store/"]),
];

pub const MAX_FILE: usize = 500;
pub const MAX_FUNCTION: usize = 80;

/// What no tracked text may name. Written in two halves, because this file is tracked too.
pub const UNNAMED: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("registry.", "npmjs", ".org"),
    concat!("deb.", "debian", ".org"),
    concat!("/wor", "k/"),
];
