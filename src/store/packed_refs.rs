//! Refs that share one file, as git packs them: a line each, sorted by name.
//!
//! A ref in a file of its own takes a block on the disk, and an `open` to be read. So refs of checkpoints, which never
//! move, are packed once there are many. A loose ref wins over a packed one.
//!
//! *Invariant:* a loose ref that was packed is removed only when its line is durable, and only under its workspace's
//! lock. So whoever reads loose refs before packed ones misses none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memchr::{memchr, memmem, memrchr};

use super::ref_name::RefName;
use super::refs::{Locked, RefEntry, collect, loose_target, parse};
use super::repository::Store;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::mark::FileMark;

/// The name of the file, in the repository.
pub(super) const PACKED: &str = "packed-refs";

/// The first line, as git writes it: names are sorted, and every tag has a line with the object that it points to.
const HEAD: &[u8] = b"# pack-refs with: peeled fully-peeled sorted \n";

/// The longest wait for another process that writes the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two attempts meanwhile.
const AGAIN: Duration = Duration::from_millis(5);

/// The content of the file at one moment.
#[derive(Clone)]
pub(super) struct PackedRefs {
    /// The content as text, of which names are parts.
    text: Arc<String>,
    /// The content itself, where it is no UTF-8: the names of such refs are only shown as text.
    raw: Option<Arc<[u8]>>,
}

impl Default for PackedRefs {
    fn default() -> PackedRefs {
        PackedRefs::of(Vec::new())
    }
}

/// The content as it was read last, with the file's mark then.
#[derive(Default)]
pub(super) struct PackedCache(std::sync::Mutex<Option<(FileMark, PackedRefs)>>);

impl PackedRefs {
    fn of(content: Vec<u8>) -> PackedRefs {
        match String::from_utf8(content) {
            Ok(text) => PackedRefs { text: text.into(), raw: None },
            Err(odd) => PackedRefs {
                text: Arc::new(String::from_utf8_lossy(odd.as_bytes()).into_owned()),
                raw: Some(odd.into_bytes().into()),
            },
        }
    }

    /// Returns the content, byte for byte.
    fn bytes(&self) -> &[u8] {
        self.raw.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Returns the refs whose names begin with `prefix`, by name.
    pub(super) fn below(&self, prefix: &str) -> Vec<RefEntry> {
        let (wanted, text) = (format!(" {prefix}"), self.text.as_bytes());
        let (mut found, mut is_sorted, mut last): (Vec<RefEntry>, bool, &[u8]) = (Vec::new(), true, b"");
        let finder = memmem::Finder::new(&wanted);
        let mut next = finder.find(text);
        while let Some(at) = next {
            let mut to = at + 1;
            // As nearly every line is.
            let digits = at.checked_sub(40).filter(|from| *from == 0 || text[from - 1] == b'\n');
            if let Some(id) = digits.and_then(|from| ObjectId::from_hex(&text[from..at])) {
                to += text[to..to + line_end(&text[to..])].trim_ascii_end().len();
                found.push(RefEntry { name: RefName::within(&self.text, at + 1, to), target: Ok(id) });
            } else if let Some((name, target)) = self.entry(at) {
                to += name.len();
                found.push(RefEntry { name: RefName::within(&self.text, at + 1, to), target });
            }
            let name = &text[at + 1..to];
            is_sorted &= last <= name;
            last = name;
            // Names are sorted, so that the next one mostly stands in the next line, behind the digits of an id.
            let beside = to + line_end(&text[to..]) + 41;
            let is_beside = text.get(beside..).is_some_and(|rest| rest.starts_with(wanted.as_bytes()));
            next = if is_beside { Some(beside) } else { finder.find(&text[to..]).map(|at| to + at) };
        }
        if !is_sorted {
            found.sort_by(|a, b| a.name.cmp(&b.name));
        }
        found
    }

    /// Returns where a ref is; `None` when it is not packed. The error says what is wrong with its line.
    pub(super) fn target(&self, name: &str) -> Option<Result<ObjectId, String>> {
        let wanted = format!(" {name}");
        let mut found = memmem::find_iter(self.text.as_bytes(), wanted.as_bytes()).filter_map(|at| self.entry(at));
        found.find(|(found, _)| *found == name).map(|(_, target)| target)
    }

    /// Returns where refs of these names are, as far as they are packed.
    pub(super) fn targets<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> HashMap<&'n str, Result<ObjectId, String>> {
        let lines = self.lines();
        let id = |line: &[u8]| parse(line.split(|byte| *byte == b' ').next().unwrap_or_default());
        names.filter_map(|name| Some((name, id(lines.get(name.as_bytes())?)))).collect()
    }

    /// Reads the line whose name begins behind the space at `at`; `None` if that is no line of a ref.
    fn entry(&self, at: usize) -> Option<(&str, Result<ObjectId, String>)> {
        let name = &self.text[at + 1..];
        let name = name[..line_end(name.as_bytes())].trim_ascii_end();
        let from = memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |end| end + 1);
        let id = &self.text.as_bytes()[from..at];
        let is_ref = !id.contains(&b' ') && !id.starts_with(b"#") && !id.starts_with(b"^");
        is_ref.then(|| (name, parse(id)))
    }

    /// Returns the lines of all refs by their names, each with the line of the object that a tag points to.
    fn lines(&self) -> BTreeMap<&[u8], &[u8]> {
        let mut lines = BTreeMap::new();
        let mut rest = self.bytes();
        while !rest.is_empty() {
            let mut end = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            if let Some(tail) = rest.get(end..).filter(|tail| tail.starts_with(b"^")) {
                end += memchr(b'\n', tail).map_or(tail.len(), |end| end + 1);
            }
            let (line, after) = rest.split_at(end);
            rest = after;
            let first = &line[..memchr(b'\n', line).unwrap_or(line.len())];
            if let Some(space) = memchr(b' ', first).filter(|_| !first.starts_with(b"#")) {
                lines.insert(first[space + 1..].trim_ascii_end(), line);
            }
        }
        lines
    }
}

impl Store {
    /// Returns the packed refs. Costs one look while the file stays as it is.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn packed(&self) -> Result<PackedRefs> {
        let path = self.git_dir.join(PACKED);
        let mut cache = self.packed.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(mark) = FileMark::at(&path)? else {
            *cache = None;
            return Ok(PackedRefs::default());
        };
        if let Some((_, refs)) = cache.as_ref().filter(|(known, _)| *known == mark) {
            return Ok(refs.clone());
        }
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.at("reading", &path)?,
        };
        let refs = PackedRefs::of(bytes);
        // The file is only ever replaced. One that was, after the look, has another mark at the next look.
        *cache = Some((mark, refs.clone()));
        Ok(refs)
    }

    /// Returns the names of the packed refs.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn packed_names(&self) -> Result<HashSet<String>> {
        Ok(self.packed()?.below("refs/").into_iter().map(|entry| entry.name.to_string()).collect())
    }

    /// Counts the loose refs of a workspace's kinds (`refs/piton/w/<kind>/…`), as long as they are fewer than `most`.
    pub fn loose_refs(&self, prefix: &str, most: usize) -> usize {
        // Refs that cannot be listed are not packed.
        let list = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
        let kinds = list(self.git_dir.join(prefix)).map(|kind| kind.path());
        kinds.flat_map(list).take(most).count()
    }

    /// Packs loose refs below prefixes (`refs/piton/w/`), at most `most` at a time, and returns their number. The caller
    /// holds the locks of the workspaces that they belong to. A ref that cannot be read stays as it is.
    ///
    /// # Errors
    /// `conflict` if another process writes the packed refs all the time; `disk-full`, `permission`. Every ref is there.
    pub fn pack_refs(&self, prefixes: &[String], most: usize) -> Result<usize> {
        let mut loose: BTreeMap<String, ObjectId> = BTreeMap::new();
        for prefix in prefixes {
            let mut found = BTreeMap::new();
            collect(&self.git_dir, prefix.trim_end_matches('/'), &mut found)?;
            loose.extend(found.into_iter().filter_map(|(name, target)| Some((name, target.ok()?))));
        }
        let loose: Vec<(String, ObjectId)> = loose.into_iter().take(most).collect();
        if loose.is_empty() {
            return Ok(0);
        }
        let mut lock = self.lock_packed()?;
        let packed = self.packed()?;
        let mut lines = packed.lines();
        let fresh: Vec<Vec<u8>> = loose.iter().map(|(name, id)| format!("{id} {name}\n").into_bytes()).collect();
        lines.extend(loose.iter().zip(&fresh).map(|((name, _), line)| (name.as_bytes(), line.as_slice())));
        lock.replace(&written(&lines))?;
        drop(lock);
        for (name, id) in &loose {
            let path = self.git_dir.join(name);
            let _lock = Locked::create(&path)?;
            // Only an ordinary git moves it meanwhile: the loose one wins then, and stays.
            if loose_target(&path) == Ok(Some(*id)) {
                std::fs::remove_file(&path).at("removing the packed ref", &path)?;
            }
        }
        Ok(loose.len())
    }

    /// Takes refs out of the packed ones.
    pub(super) fn unpack(&self, names: &HashSet<&str>) -> Result<()> {
        let mut lock = self.lock_packed()?;
        let packed = self.packed()?;
        let mut lines = packed.lines();
        lines.retain(|name, _| std::str::from_utf8(name).map_or(true, |name| !names.contains(name)));
        lock.replace(&written(&lines))
    }

    /// Puts other objects into the lines of refs, as far as these are packed. The caller holds the locks of their workspaces.
    pub(super) fn repoint(&self, targets: &HashMap<&str, ObjectId>) -> Result<()> {
        let mut lock = self.lock_packed()?;
        let packed = self.packed()?;
        let mut lines = packed.lines();
        let fresh: Vec<(&str, Vec<u8>)> =
            targets.iter().map(|(name, id)| (*name, format!("{id} {name}\n").into_bytes())).collect();
        let mut is_news = false;
        for (name, line) in &fresh {
            if let Some(known) = lines.get_mut(name.as_bytes()) {
                (*known, is_news) = (line, true);
            }
        }
        if is_news { lock.replace(&written(&lines)) } else { Ok(()) }
    }

    /// Takes git's lock of the file.
    fn lock_packed(&self) -> Result<Locked> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.remove_stale_lock(PACKED)?;
            match Locked::create(&self.git_dir.join(PACKED)) {
                Err(error) if error.code() == Code::Conflict && Instant::now() < until => std::thread::sleep(AGAIN),
                Err(error) if error.code() == Code::Conflict => {
                    let why = "another process keeps writing the packed refs of the store";
                    return Err(Error::new(Code::Conflict, why).hint("try again"));
                }
                locked => return locked,
            }
        }
    }
}

/// Returns where the first line ends.
fn line_end(bytes: &[u8]) -> usize {
    memchr(b'\n', bytes).unwrap_or(bytes.len())
}

/// Returns the content of a file with these lines.
fn written(lines: &BTreeMap<&[u8], &[u8]>) -> Vec<u8> {
    let mut content = HEAD.to_vec();
    for line in lines.values() {
        content.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            content.push(b'\n');
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &str) -> PackedRefs {
        PackedRefs::of(text.as_bytes().to_vec())
    }

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn names_and_places_are_read() {
        let refs = packed(&format!(
            "# pack-refs with: peeled fully-peeled sorted \n{A} refs/heads/x\n{B} refs/piton/w/1-auto\n{A} refs/piton/w/10-auto\n\
             torn refs/piton/w/2-auto\n{A} refs/tags/t\n^{B}\n{B} refs/piton/w2/1\n"
        ));
        let names = |prefix| refs.below(prefix).into_iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names("refs/piton/w/"), ["refs/piton/w/1-auto", "refs/piton/w/10-auto", "refs/piton/w/2-auto"]);
        assert_eq!(names("refs/").len(), 6);
        assert_eq!(names("refs/none/"), [""; 0]);
        assert!(refs.below("refs/piton/w/2").iter().all(|entry| entry.target.is_err()));
        assert_eq!(refs.target("refs/piton/w/1-auto"), Some(Ok(B.parse().unwrap())));
        assert_eq!(refs.target("refs/piton/w/1"), None);
        assert!(refs.target("refs/piton/w/2-auto").unwrap().is_err());
        assert!(refs.target("with:").is_none(), "the head is no ref");
    }

    #[test]
    fn lines_go_with_the_objects_of_their_tags() {
        let refs = packed(&format!("{A} refs/b\n{A} refs/tags/t\n^{B}\n{B} refs/a"));
        let mut lines = refs.lines();
        assert_eq!(lines.len(), 3);
        lines.remove(&b"refs/b"[..]);
        let text = String::from_utf8(written(&lines)).unwrap();
        assert_eq!(text, format!("{}{B} refs/a\n{A} refs/tags/t\n^{B}\n", String::from_utf8_lossy(HEAD)));
    }
}
