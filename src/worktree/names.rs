//! The names in one directory, in one piece of memory.

/// Names sorted by bytes.
#[derive(Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    /// Where each name starts and ends.
    spans: Vec<(usize, usize)>,
}

impl Names {
    /// Adds a name; [`Names::sort`] comes after the last.
    pub(super) fn push(&mut self, name: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.spans.push((start, self.bytes.len()));
    }

    /// Sorts, and drops what stands twice.
    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        let name = |(start, end): &(usize, usize)| &bytes[*start..*end];
        self.spans.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        self.spans.dedup_by(|a, b| name(a) == name(b));
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|(start, end)| &self.bytes[*start..*end])
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.spans.binary_search_by(|(start, end)| self.bytes[*start..*end].cmp(name)).is_ok()
    }
}
