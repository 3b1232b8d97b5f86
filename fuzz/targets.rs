//! The bodies of all fuzz targets. Each takes any bytes and asserts what must hold for them.
//!
//! One place for two users: the fuzzers (`fuzz/fuzz_targets/`, nightly) and `tests/seeds.rs`, which runs every kept
//! seed through them with the stable toolchain.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use piton::agents::stream::StreamReader;
use piton::agents::{Client, Decision, EventKind as Told};
use piton::checkpoint::history::journal;
use piton::classify::{Classifier, Context, ToolCall};
use piton::error::{Code, Error};
use piton::mcp::{Tools, refusal};
use piton::model::build;
use piton::model::checkpoint::{CheckpointKind, Layer, Record};
use piton::model::coverage::Coverage;
use piton::model::effect::{Class, Verdict};
use piton::model::id::{ObjectId, ObjectKind};
use piton::model::manifest::{EntryKind, Manifest, ManifestEntry};
use piton::model::number::Number;
use piton::model::path::RelPath;
use piton::model::policy::Policy;
use piton::model::tree::{self as trees, Mode, TreeEntry};
use piton::protocol::{ErrorReply, Line, LineReader};
use piton::settings::{self, Sources};
use piton::store::log as write_ahead;
use piton::worktree::{git_index as index, stamps as stamp_file};

/// A target's body.
pub type Target = fn(&[u8]);

/// All targets by name; seeds lie in `seeds/NAME/`.
pub const ALL: &[(&str, Target)] = &[
    ("protocol", protocol),
    ("shell", shell),
    ("tool", tool),
    ("rules", rules),
    ("tree", tree),
    ("manifest", manifest),
    ("meta", meta),
    ("journal", journal),
    ("stamps", stamps),
    ("settings", settings),
    ("message", message),
    ("git_index", git_index),
    ("log", log),
    ("hook", hook),
    ("config", config),
    ("stream", stream),
    ("mcp", mcp),
];

// ---- the protocol

/// Bytes to lines to requests. Lines are those of a naive reader, whatever the pieces they arrive in; every refusal
/// can be answered in one line.
pub fn protocol(data: &[u8]) {
    for limit in [1, 16, 1 << 20] {
        let whole = lines(data, limit, 1 << 16);
        assert_eq!(whole, naive_lines(data, limit), "limit {limit}");
        for capacity in [1, 2, 7] {
            assert_eq!(lines(data, limit, capacity), whole, "limit {limit}, pieces of {capacity}");
        }
    }
    for line in lines(data, 1 << 20, 1 << 16) {
        if let Line::Text(text, number) = line {
            request(&text, number);
        }
    }
}

fn lines(data: &[u8], limit: usize, capacity: usize) -> Vec<Line> {
    let mut reader = LineReader::new(BufReader::with_capacity(capacity, data), limit);
    std::iter::from_fn(|| reader.next_line().expect("memory is readable")).collect()
}

fn naive_lines(data: &[u8], limit: usize) -> Vec<Line> {
    let mut out = Vec::new();
    for (number, piece) in (1..).zip(data.split_inclusive(|byte| *byte == b'\n')) {
        let text = piece.strip_suffix(b"\n").unwrap_or(piece);
        if text.len() > limit {
            out.push(Line::TooLong(piece.len() as u64, number));
            continue;
        }
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if !text.iter().all(u8::is_ascii_whitespace) {
            out.push(Line::Text(text.to_vec(), number));
        }
    }
    out
}

fn request(text: &[u8], number: u64) {
    match piton::protocol::parse(text, number) {
        Ok(request) => {
            let read = piton::model::json::read(text);
            assert!(read.fault.is_none(), "a request is JSON, or almost");
            assert_eq!(read.value["type"], request.body.name());
            // A number that nobody can hold is an id all the same.
            assert!(request.id.is_some() || read.value["id"].is_null());
        }
        Err(failure) => {
            let code = failure.error.code();
            let known = matches!(
                code,
                Code::BadUtf8 | Code::BadJson | Code::BadRequest | Code::UnknownType | Code::UnsupportedVersion
            );
            assert!(known, "{code:?}");
            assert_eq!(failure.error.line_number(), Some(number));
            let reply = ErrorReply::line(failure.id.as_ref(), &failure.error);
            assert_eq!(reply.iter().filter(|byte| **byte == b'\n').count(), 1);
            let reply = piton::model::json::read(&reply);
            assert!(reply.fault.is_none() && !reply.is_doubtful, "a reply is JSON");
            assert_eq!(reply.value["error"]["code"], code.as_str());
        }
    }
}

// ---- the classifier

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(Classifier::embedded);
static POLICY: LazyLock<Policy> =
    LazyLock::new(|| settings::resolve(&Sources::default()).expect("the defaults are good").policy);
static CONTEXT: LazyLock<Context> = LazyLock::new(|| Context {
    cwd: PathBuf::from("/home/u/w/src"),
    workspace: PathBuf::from("/home/u/w"),
    home: Some(PathBuf::from("/home/u")),
    temp_dirs: vec![PathBuf::from("/tmp")],
    piton: vec![PathBuf::from("/home/u/.local/share/piton")],
    aliases: Vec::new(),
    links: Vec::new(),
    tops: vec![(PathBuf::from("/home/u/w/src"), PathBuf::from("/home/u/w"))],
    files: Vec::new(),
    existing: Vec::new(),
    checkouts: Vec::new(),
});

/// A shell line to a verdict whose places lie in the line; what only surrounds it takes nothing away.
pub fn shell(data: &[u8]) {
    let line = String::from_utf8_lossy(data);
    let verdict = CLASSIFIER.shell(&line, &CONTEXT, &POLICY);
    checked(&verdict, Some(&line));
    assert_eq!(verdict, CLASSIFIER.shell(&line, &CONTEXT, &POLICY));
    if verdict.effects.iter().any(|effect| effect.class == Class::Unknown) {
        assert!(verdict.needs.checkpoint(), "not understood, and no checkpoint: {line:?}");
    }
    let after = CLASSIFIER.shell(&format!("rm -rf /home/u/w/x\n{line}"), &CONTEXT, &POLICY);
    assert!(after.needs.checkpoint(), "a command before it is lost: {line:?}");
}

/// A tool call: the first line is the tool's name, the rest its input.
pub fn tool(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (name, input) = text.split_once('\n').unwrap_or((&text, ""));
    let input = serde_json::from_str(input).unwrap_or_else(|_| serde_json::json!({ "command": input }));
    let paths = [name.to_owned()];
    for (paths, writes) in [(&paths[..0], None), (&paths[..], None), (&paths[..], Some(true))] {
        let external = writes;
        let call = ToolCall { tool: name, input: &input, paths, writes, external };
        let verdict = CLASSIFIER.tool(&call, &CONTEXT, &POLICY);
        checked(&verdict, None);
    }
}

fn checked(verdict: &Verdict, line: Option<&str>) {
    for effect in &verdict.effects {
        let (start, end) = effect.span;
        assert!(start <= end);
        if let Some(line) = line {
            assert!(line.get(start..end).is_some(), "{effect:?} is not in the line");
        }
        // The verb of a tool call is the tool's name, which is the client's affair.
        assert!(!effect.rule.is_empty() && (line.is_none() || !effect.verb.is_empty()), "{effect:?}");
    }
    assert_eq!(verdict.needs.warn(), !verdict.warnings.is_empty());
    assert!(serde_json::to_string(verdict).is_ok());
}

/// A user's rules: compiled, or refused with a sentence.
pub fn rules(data: &[u8]) {
    match Classifier::with_user_rules(&String::from_utf8_lossy(data)) {
        Ok(classifier) => checked(&classifier.shell("rm -rf x; git push -f", &CONTEXT, &POLICY), None),
        Err(error) => {
            assert_eq!(error.code(), Code::BadRequest);
            assert!(!error.text().is_empty());
        }
    }
}

// ---- trees, manifests, `.piton`

/// Encodes everything that decodes as a tree to the very same bytes.
pub fn tree(data: &[u8]) {
    match trees::decode(data) {
        Ok(entries) => assert_eq!(trees::encode(entries), data),
        Err(error) => assert_eq!(error.code(), Code::StoreDamaged),
    }
}

/// Lines of `KIND PERMISSIONS PATH` (`f`, `x`, `l`, `d`; octal) to a manifest, to trees, and back to the same manifest.
/// The rest of the bytes, after a line `--`, is read as tree objects that point at each other by number.
pub fn manifest(data: &[u8]) {
    let mut sections = sections(data);
    let first = if sections.is_empty() { &[][..] } else { sections.remove(0) };
    let mut manifest = Manifest::new();
    for line in first.split(|byte| *byte == b'\n') {
        listed(line, &mut manifest);
    }
    round_trip(&manifest, &Coverage::default());
    if !sections.is_empty() {
        foreign(&sections);
    }
}

fn sections(data: &[u8]) -> Vec<&[u8]> {
    const MARK: &[u8] = b"\n--\n";
    let (mut out, mut rest) = (Vec::new(), data);
    while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
        out.push(&rest[..at]);
        rest = &rest[at + MARK.len()..];
    }
    out.push(rest);
    out
}

fn listed(line: &[u8], manifest: &mut Manifest) {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (Some(kind), Some(perm), Some(path)) = (words.next(), words.next(), words.next()) else { return };
    let Ok(path) = RelPath::parse(path) else { return };
    let perm = perm.iter().fold(0u16, |perm, byte| perm << 3 | u16::from(byte & 7)) & 0o7777;
    let above = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent).collect::<Vec<_>>();
    let is_leaf = |path: &RelPath| manifest.get(path).is_some_and(|entry| entry.kind != EntryKind::Dir);
    if path.is_root() || manifest.contains(&path) || above(&path).iter().any(is_leaf) {
        return;
    }
    let id = ObjectId::of(ObjectKind::Blob, path.as_bytes()).expect("no collision");
    let entry = match kind {
        b"d" => ManifestEntry::dir(perm),
        b"l" => ManifestEntry { kind: EntryKind::Link, perm: 0o777, id, size: 0 },
        _ => ManifestEntry { kind: EntryKind::File, perm, id, size: 0 },
    };
    manifest.insert_parents(&path, 0o755);
    manifest.insert(path, entry);
}

/// Builds, loads and compares; every tree made is one that git would take.
fn round_trip(manifest: &Manifest, coverage: &Coverage) {
    let mut objects: HashMap<ObjectId, Vec<u8>> = HashMap::new();
    let built = build::build(manifest, coverage, &mut |_, id, bytes| {
        objects.insert(id, bytes.to_vec());
        Ok(())
    });
    let root = built.expect("memory takes all");
    let read = |id: &ObjectId| trees::decode(&objects[id]);
    let (back, covered) =
        build::load(&root, &|_| true, 192_000_000, &read, &|id| Ok(objects[id].clone())).expect("what was built loads");
    assert_eq!(&back, manifest);
    assert_eq!(&covered, coverage);
    for (path, entry) in manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir) {
        let stored = build::stored_path(path);
        let mut id = root;
        for name in stored.split(|byte| *byte == b'/') {
            let found = read(&id).expect("a tree").into_iter().find(|found| found.name == name);
            id = found.expect("the stored path is there").id;
        }
        assert_eq!(id, entry.id);
    }
}

/// Trees from anywhere, whose ids name sections by their first byte: refused, or read as something that can be built.
fn foreign(sections: &[&[u8]]) {
    let reads = Cell::new(0);
    let section = |id: &ObjectId| {
        reads.set(reads.get() + 1);
        let there = sections.get(usize::from(id.as_bytes()[0])).filter(|_| reads.get() < 300);
        there.copied().ok_or_else(|| Error::new(Code::StoreDamaged, "no such object"))
    };
    let root = ObjectId::from_bytes([0; 20]);
    let read_tree = |id: &ObjectId| section(id).and_then(trees::decode);
    let read_blob = |id: &ObjectId| section(id).map(<[u8]>::to_vec);
    match build::load(&root, &|_| true, 192_000_000, &read_tree, &read_blob) {
        Ok((manifest, coverage)) => round_trip(&manifest, &coverage),
        Err(error) => assert!([Code::StoreDamaged, Code::TooLarge].contains(&error.code()), "{error}"),
    }
}

/// The records of `.piton`, as sections between lines `--`: `info`, those of the root's entries, those of `dir`'s.
/// Refused, or read as what comes back when it is written.
pub fn meta(data: &[u8]) {
    let sections = sections(data);
    let id = |n: u8| ObjectId::from_bytes([n; 20]);
    let entry = |name: &str, mode, n| TreeEntry { name: name.into(), mode, id: id(n) };
    let tree_of = |n: u8| match n {
        1 => vec![
            entry(".piton", Mode::Dir, 3),
            entry("dir", Mode::Dir, 2),
            entry("link", Mode::Link, 9),
            entry("run", Mode::Executable, 9),
        ],
        2 => vec![entry("file", Mode::File, 9), entry("new\nline", Mode::File, 9)],
        3 => vec![entry("info", Mode::File, 10), entry("tree", Mode::Dir, 4)],
        4 => vec![entry("d-dir", Mode::Dir, 5), entry("meta", Mode::File, 11)],
        _ => vec![entry("meta", Mode::File, 12)],
    };
    let blob = |id: &ObjectId| sections.get(usize::from(id.as_bytes()[0]) - 10).copied().unwrap_or_default().to_vec();
    let read_tree = |id: &ObjectId| Ok(tree_of(id.as_bytes()[0]));
    match build::load(&id(1), &|_| true, 192_000_000, &read_tree, &|id| Ok(blob(id))) {
        Ok((manifest, coverage)) => {
            assert_eq!(manifest.iter().count(), 5, "records make no entries");
            round_trip(&manifest, &coverage);
        }
        Err(error) => assert_eq!(error.code(), Code::StoreDamaged),
    }
}

// ---- files of piton's own

/// A journal: any bytes are read, what is whole is kept, and the next writer's line stands behind it. Also with its
/// checksums put right, so that the lines themselves are met.
pub fn journal(data: &[u8]) {
    journal_bytes(data);
    let mut framed = Vec::new();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let json = line.strip_suffix(b"\n").unwrap_or(line);
        framed.extend(format!("{:08x} ", crc32fast::hash(json)).bytes());
        framed.extend(line);
    }
    journal_bytes(&framed);
}

fn journal_bytes(bytes: &[u8]) {
    let read = journal::parse(bytes);
    let whole = usize::try_from(read.whole).expect("a length");
    assert!(bytes[..whole].is_empty() || bytes[..whole].ends_with(b"\n"));
    assert!(!bytes[whole..].contains(&b'\n'), "more than the tail would be cut");
    assert!(read.lines.len() + usize::try_from(read.damaged).expect("few") <= bytes.len());
    let last = journal::Line::Aborted { op: "o-1".to_owned() };
    let appended = [&bytes[..whole], &journal::frame(&last).expect("it is JSON")].concat();
    let again = journal::parse(&appended);
    assert_eq!(again.damaged, read.damaged);
    assert_eq!(again.lines.split_last(), Some((&last, read.lines.as_slice())));
    let frames: Vec<u8> = read.lines.iter().flat_map(|line| journal::frame(line).expect("it is JSON")).collect();
    let valid_first = journal::parse(&[&frames[..], bytes].concat());
    assert_eq!(valid_first.lines, [&read.lines[..], &read.lines].concat());
    for line in &read.lines {
        if let journal::Line::Restoring(begin) = line
            && let Ok(paths) = journal::unquoted(&begin.planned)
        {
            assert_eq!(journal::unquoted(&journal::quoted(&paths)).expect("our own spelling"), paths);
        }
    }
}

/// A stamps file, as it is and with a good header: refused, or written back as the same stamps.
pub fn stamps(data: &[u8]) {
    let empty = stamp_file::encode(&stamp_file::Stamps::default());
    let headed = [&empty[..12], &crc32fast::hash(data).to_le_bytes(), data].concat();
    for bytes in [data, &headed] {
        if let Ok(stamps) = stamp_file::decode(bytes) {
            assert!(stamps.known.entries().len() <= bytes.len() / 40);
            let again = stamp_file::encode(&stamps);
            assert_eq!(stamp_file::decode(&again), Ok(stamps));
        }
    }
}

// ---- other people's text

/// Any YAML resolves, and what is wrong with it is told with its file and line; as a workspace's file it fails nothing and,
/// untrusted, weakens nothing.
pub fn settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let user = Sources { user: Some(("u.yaml".into(), text.clone())), ..Sources::default() };
    let effective = settings::resolve(&user).expect("a mistake costs its own key");
    assert_eq!(effective.policy.sources, [PathBuf::from("u.yaml")]);
    assert!(effective.warnings.is_empty());
    sane(&effective.policy);
    for error in effective.mistakes.iter().map(settings::Mistake::error) {
        assert_eq!(error.code(), Code::BadRequest);
        let line = error.line_number().expect("a line");
        assert!(line as usize <= text.split(['\n', '\r']).count(), "line {line}: {}", error.text());
        assert!(error.text().contains("u.yaml"), "no file: {}", error.text());
    }
    for workspace_trusted in [false, true] {
        let workspace = Some((PathBuf::from("w.yaml"), text.clone()));
        let sources = Sources { workspace, workspace_trusted, ..Sources::default() };
        let effective = settings::resolve(&sources).expect("a workspace's file fails nothing");
        assert!(effective.warnings.iter().all(|warning| warning.contains("w.yaml")));
        sane(&effective.policy);
        if !workspace_trusted {
            assert!(as_strong(&effective.policy, &POLICY), "weakened by {text:?}: {:?}", effective.policy);
        }
    }
    let (key, value) = text.split_once('\n').unwrap_or(("guard", &text));
    let flags = vec![(key.to_owned(), value.to_owned())];
    let effective = settings::resolve(&Sources { flags, ..Sources::default() }).expect("a mistake costs its own key");
    assert!(effective.mistakes.iter().all(settings::Mistake::is_typed));
    assert!(!effective.mistakes.is_empty() || effective.origin(key) == "flag");
}

fn sane(policy: &Policy) {
    assert!(policy.limits.file_bytes > 0 && policy.limits.files > 0 && policy.limits.line_bytes > 0);
    assert!(!policy.deadline.is_zero());
}

fn as_strong(policy: &Policy, than: &Policy) -> bool {
    use piton::model::policy::{Guard, Opaque};
    policy.guard != Guard::Off
        && (policy.opaque == than.opaque || policy.opaque == Opaque::Checkpoint)
        && policy.limits.file_bytes >= than.limits.file_bytes
        && policy.limits.files >= than.limits.files
        && policy.retention.auto_per_run >= than.retention.auto_per_run
        && policy.retention.per_workspace >= than.retention.per_workspace
        && policy.exclude == than.exclude
        && policy.secrets == than.secrets
        && policy.read_only == than.read_only
        && policy.rules_yaml == than.rules_yaml
        && policy.classes.iter().all(|rule| rule.checkpoint != Some(false) && rule.warn != Some(false))
}

/// A commit message: parsed as it is, and made from a record whose texts are the input's parts between NULs. A parsed
/// message equals the record that wrote it, but for texts that did not fit on one harmless line; those settle at once.
pub fn message(data: &[u8]) {
    if let Some(record) = Record::parse(&String::from_utf8_lossy(data)) {
        settles(&Record::parse(&record.message()).expect("our own message"));
    }
    let (head, rest) = data.split_at(data.len().min(8));
    let bits = |n: usize| head.get(n).copied().unwrap_or(0);
    let mut texts = rest.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let mut text = || texts.next().unwrap_or_default();
    let kind = CheckpointKind::ALL[usize::from(bits(0)) % CheckpointKind::ALL.len()];
    let effects = Class::ALL.iter().enumerate().filter(|(i, _)| bits(2 + i / 8) >> (i % 8) & 1 == 1);
    let record = Record {
        kind,
        ordinal: u64::from(bits(5)) << 56 | u64::from(bits(6)),
        number: match u64::from(bits(5)) << 40 {
            0 => Number::NONE,
            main => Number { main, step: u32::from(bits(6)) },
        },
        workspace: text(),
        run: text(),
        turn: (bits(1) & 1 == 1).then(&mut text),
        codon_id: (bits(1) & 2 == 2).then(&mut text),
        codon_name: (bits(1) & 4 == 4).then(&mut text),
        reason: text(),
        time: text(),
        duration_ms: (bits(1) & 8 == 8).then_some(u64::from(bits(7))),
        effects: effects.map(|(_, class)| *class).collect(),
        files: u64::MAX - u64::from(bits(7)),
        bytes: u64::from(bits(6)),
        skipped: u64::from(bits(5)),
        flags: if bits(1) & 16 == 16 { vec!["partial".into(), "secrets".into()] } else { Vec::new() },
        pinned: bits(1) & 32 == 32,
        layer: match bits(6) {
            0 => None,
            1 => Some(Layer::None),
            sequence => Some(Layer::Sequence(u64::from(sequence))),
        },
        looked: (bits(1) & 64 == 64).then_some(i64::from(bits(6)) - 9),
        follows: (bits(1) & 2 == 2).then_some(u64::from(bits(5))),
        whole: (bits(1) & 128 == 128).then_some(u64::from(bits(7))),
    };
    settles(&record);
}

fn settles(record: &Record) {
    let message = record.message();
    let back = Record::parse(&message).expect("our own message");
    let texts = |record: &Record| {
        let Record { workspace, run, turn, codon_id, codon_name, reason, time, .. } = record.clone();
        let optional = [turn, codon_id, codon_name];
        ([workspace, run, reason, time], optional)
    };
    // All but the texts is exact; whether an optional text is there, too.
    let (was, is) = (texts(record), texts(&back));
    assert_eq!(was.1.each_ref().map(Option::is_some), is.1.each_ref().map(Option::is_some), "{message}");
    let plain = |text: &str| {
        let harmless = text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        harmless && text.trim() == text && !text.is_empty() && text.len() <= 400
    };
    let optional = was.1.iter().flatten().zip(is.1.iter().flatten());
    for (was, is) in was.0.iter().zip(&is.0).chain(optional) {
        assert!(!is.chars().any(char::is_control), "{is:?}");
        assert!(!plain(was) || was == is, "{was:?} became {is:?}");
    }
    let exact = |record: &Record| Record {
        workspace: String::new(),
        run: String::new(),
        turn: None,
        codon_id: None,
        codon_name: None,
        reason: String::new(),
        time: String::new(),
        ..record.clone()
    };
    assert_eq!(exact(record), exact(&back));
    assert_eq!(Record::parse(&back.message()), Some(back));
}

/// A git index, and behind a line `--` the shared one it may refer to: refused, or paths in order, each once.
pub fn git_index(data: &[u8]) {
    let sections = sections(data);
    let shared = sections.get(1).copied().unwrap_or_default();
    let mut asked = BTreeMap::new();
    let read = index::tracked_in(sections[0], &mut |id| {
        *asked.entry(id.to_owned()).or_insert(0) += 1;
        Ok(shared.to_vec())
    });
    match read {
        Ok(paths) => {
            assert!(paths.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(paths.iter().all(|path| !path.is_root() && Path::new(path.to_path()).is_relative()));
            assert!(paths.len() <= data.len() / 62);
        }
        Err(error) => assert!(matches!(error.code(), Code::Conflict), "{:?}", error.code()),
    }
    assert!(asked.values().sum::<usize>() <= 2, "asked {asked:?}");
    assert!(asked.keys().all(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())));
}

/// A write-ahead log: any bytes are read, what is whole is a prefix and reads the same by itself, and whatever is read writes
/// itself. Also as one body whose checksum is right, so that the body is met.
pub fn log(data: &[u8]) {
    log_bytes(data);
    let mut framed = b"PTNL".to_vec();
    framed.extend((data.len() as u32).to_le_bytes());
    framed.extend(crc32fast::hash(data).to_le_bytes());
    framed.extend(data);
    log_bytes(&framed);
}

fn log_bytes(data: &[u8]) {
    let (records, whole) = write_ahead::decode(data);
    assert_eq!(write_ahead::decode(&data[..whole]), (records.clone(), whole));
    let written: Vec<u8> = records.iter().flat_map(write_ahead::Record::encode).collect();
    assert_eq!(write_ahead::decode(&written).0, records);
    // The next record stands behind it.
    let longer = [&data[..whole], &written].concat();
    assert_eq!(write_ahead::decode(&longer).0.len(), 2 * records.len());
}

// ---- the agent clients

/// The first byte chooses a client, the second one of its events, and the rest is the input of its hook. The result is
/// an event or an error with a hint, and a reply that is always JSON.
pub fn hook(data: &[u8]) {
    let [client, event, payload @ ..] = data else { return };
    let client = Client::ALL[usize::from(*client) % Client::ALL.len()];
    let events: Vec<&str> = client.events().collect();
    let event = events[usize::from(*event) % events.len()];
    if let Err(error) = client.parse(event, payload) {
        assert!(error.hint_text().is_some(), "{error:?}");
    }
    let text = Some(String::from_utf8_lossy(payload).into_owned());
    let decision = Decision {
        deny: text.clone(),
        context: text.clone().into_iter().collect(),
        message: text.clone(),
        answer: text,
        ..Decision::default()
    };
    if let Some(reply) = client.reply(event, &decision) {
        assert!(serde_json::from_str::<serde_json::Value>(&reply).is_ok_and(|reply| reply.is_object()), "{reply}");
    }
}

/// Lines of an MCP client (`>`) and its server (`<`): only what calls a tool is held, and a refusal is one line of JSON.
pub fn mcp(data: &[u8]) {
    let mut tools = Tools::default();
    for line in data.split(|byte| *byte == b'\n') {
        match line.split_first() {
            Some((b'<', line)) => drop(tools.from_server(line)),
            Some((b'>', line)) => {
                let calls = tools.from_client(line);
                let value = piton::model::json::read(line).value;
                assert!(calls.is_empty() || value.to_string().contains("\"tools/call\""));
                let answers = calls.iter().filter(|call| call.id.is_some()).count();
                match refusal(line, "no") {
                    None => assert_eq!(answers, 0),
                    Some(answer) => {
                        assert_eq!(answer.iter().filter(|byte| **byte == b'\n').count(), 1);
                        let answer: serde_json::Value = serde_json::from_slice(&answer).expect("a refusal is JSON");
                        assert_eq!(answer.is_array(), value.is_array());
                    }
                }
            }
            _ => {}
        }
    }
}

/// The first line names a client, the rest is its stream: events of that client, turns that begin and end one after the other.
pub fn stream(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let name = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let Ok(client) = Client::named(&name) else { return };
    let Ok(mut reader) = StreamReader::new(client, "x") else { return };
    let mut turn = None;
    for line in lines {
        let events = match reader.read(line) {
            Ok(events) => events,
            Err((_, error)) => {
                assert!(!error.text().is_empty() && error.hint_text().is_some());
                continue;
            }
        };
        for event in events {
            assert_eq!(event.client, client);
            match event.kind {
                Told::TurnStart { .. } => {
                    assert!(event.turn.is_some() && event.turn != turn);
                    turn = event.turn;
                }
                Told::TurnEnd => assert!(turn.is_some() && event.turn == turn.take()),
                Told::Before { .. } | Told::After { .. } | Told::SessionStart => assert_eq!(event.turn, turn),
                other => panic!("a stream does not tell of {other:?}"),
            }
        }
    }
}

/// The first byte chooses a client, the second one of its files, the rest is the file's text. Hooks go in once, however often;
/// taken out, they leave the very text, unless it had hooks of piton's before.
pub fn config(data: &[u8]) {
    let [client, file, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let client = Client::ALL[usize::from(*client) % Client::ALL.len()];
    let files = client.files(false);
    let file = &files[usize::from(*file) % files.len()];
    let program = "/opt/piton";
    let Ok(merged) = file.merge(client, program, Some(text)) else {
        return;
    };
    assert_eq!(file.merge(client, program, Some(&merged)).unwrap(), merged);
    let without = file.remove(client, &merged).unwrap();
    let blank = text.trim_start_matches('\u{feff}').trim().is_empty();
    if !text.contains("piton") {
        assert_eq!(without.as_deref(), Some(text).filter(|_| !blank), "{merged}");
        assert_eq!(file.remove(client, text).unwrap_or_default().as_deref(), Some(text).filter(|_| !blank));
    }
}
