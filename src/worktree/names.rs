//! The names in one directory, in one piece of memory.

/// Names sorted by bytes.
#[derive(Default)]
pub(super) struct Names {
    /// All names, one behind the other.
    bytes: Vec<u8>,
    /// The names' places in `bytes`, sorted by the names.
    spans: Vec<Span>,
}

/// The place where a name starts and ends.
struct Span {
    start: usize,
    end: usize,
    /// The inode of what the listing says is a directory; 0 where it says something else, or nothing.
    dir: u64,
}

impl Span {
    fn of<'n>(&self, bytes: &'n [u8]) -> &'n [u8] {
        &bytes[self.start..self.end]
    }
}

impl Names {
    /// Adds a name; [`Names::sort`] comes after the last.
    pub(super) fn push(&mut self, name: &[u8]) {
        self.push_dir(name, 0);
    }

    /// Adds the name of a directory with this inode.
    pub(super) fn push_dir(&mut self, name: &[u8], dir: u64) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.spans.push(Span { start, end: self.bytes.len(), dir });
    }

    /// Sorts, and drops what stands twice.
    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        self.spans.sort_unstable_by(|a, b| a.of(bytes).cmp(b.of(bytes)));
        self.spans.dedup_by(|a, b| a.of(bytes) == b.of(bytes));
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the names in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|span| span.of(&self.bytes))
    }

    /// Returns each name, with the inode of what the listing said is a directory.
    pub(super) fn with_dirs(&self) -> impl Iterator<Item = (&[u8], Option<u64>)> {
        self.spans.iter().map(|span| (span.of(&self.bytes), Some(span.dir).filter(|dir| *dir != 0)))
    }

    /// Returns whether a name is among them.
    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.spans.binary_search_by(|span| span.of(&self.bytes).cmp(name)).is_ok()
    }
}
