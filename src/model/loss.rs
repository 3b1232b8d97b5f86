//! The work that an action takes away, as its line or its call tells: what the engine then looks for the owners of.

/// A sort of work that git has no commit of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkSort {
    /// Changes in the index.
    Staged,
    /// Changes of tracked files that are not in the index.
    Unstaged,
    /// Files that git does not track.
    Untracked,
    /// Files that git ignores.
    Ignored,
}

impl WorkSort {
    /// Holds all of them.
    pub const ALL: [WorkSort; 4] = [WorkSort::Staged, WorkSort::Unstaged, WorkSort::Untracked, WorkSort::Ignored];
}

/// The uncommitted work that a command of git takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryLoss {
    /// The absolute directory in which it runs.
    pub dir: String,
    /// The pathspecs, which count from there; none for the whole repository.
    pub pathspecs: Vec<String>,
    /// The sorts of work that go.
    pub sorts: Vec<WorkSort>,
}

/// The files of a repository that a command of git may replace or remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryFiles {
    /// The absolute directory in which it runs.
    pub dir: String,
    /// The pathspecs, which count from there; none for the whole work tree.
    pub pathspecs: Vec<String>,
    /// True if untracked files go as well.
    pub untracked: bool,
}

/// A name that an action gives to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacedName {
    /// This one.
    Name(String),
    /// The last names of all that an absolute pattern matches.
    Matching(String),
}

/// The content of a file that an action takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLoss {
    /// The absolute path.
    pub path: String,
    /// The names of the files in it that go, if it is a directory.
    pub placed: Vec<PlacedName>,
    /// True if a link at the path is followed: the file goes to which it leads.
    pub is_followed: bool,
}

/// Something that an action takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All that stands at an absolute path, and below it.
    Tree(String),
    /// The content of a file.
    File(FileLoss),
    /// All that an absolute pattern matches, and below it.
    Matches(String),
    /// Work that no commit of a repository has.
    Repository(RepositoryLoss),
}
