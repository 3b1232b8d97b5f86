//! Hooks in a TOML file: `[[hooks]]` tables at its end, below a comment. `toml_edit` reads the file and writes the tables; they are put in
//! and cut out as text, so each other byte stays. A client that writes the file anew keeps piton's tables recognisable by their commands.

use std::ops::Range;

use toml_edit::{ArrayOfTables, Document, DocumentMut, Item, Table, Value};

use super::json::NewValue;
use crate::error::{Code, Error, Result};

/// The comment before piton's tables.
const HEAD: &str = "# piton: these hooks come from `piton install`, and go with `piton uninstall`.";
/// Its end where the line before had none.
const JOINED: &str = " The line above had no end.";

/// Returns the text with these entries.
///
/// # Errors
/// `bad-request`: not TOML; `conflict`: hooks in a form that is not edited.
pub(crate) fn merge(
    text: Option<&str>,
    wanted: &[(&'static str, NewValue)],
    ours: &dyn Fn(&str) -> bool,
) -> Result<String> {
    let text = text.unwrap_or_default();
    let tables = written(wanted);
    if found(text, ours)? == found(&tables, &|_| true)? {
        return Ok(text.to_owned());
    }
    let before = remove(text, ours)?.unwrap_or_default();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let is_joined = !before.is_empty() && !before.ends_with('\n');
    let (gap, joined) = if is_joined { (newline, JOINED) } else { ("", "") };
    let after = format!("{before}{gap}{HEAD}{joined}{newline}{}", tables.replace('\n', newline));
    // A second look must see all of them.
    match found(&after, ours)? == found(&tables, &|_| true)? {
        true => Ok(after),
        false => Err(refused("a form that piton cannot edit", "add the hooks by hand: docs/AGENTS.md")),
    }
}

/// Returns the text without our entries; nothing if nothing else was in it.
///
/// # Errors
/// As [`merge`].
pub(crate) fn remove(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    let document = read(text)?;
    let mut out = text.to_owned();
    for table in hooks(&document)?.into_iter().filter(|table| is_ours(table, ours)).rev() {
        out.replace_range(place(text, table), "");
    }
    let plain = out.trim_start_matches('\u{feff}').trim();
    Ok((!plain.is_empty()).then_some(out))
}

/// Calls `hear` with the command of each `[[hooks]]` table.
///
/// # Errors
/// As [`merge`].
pub(crate) fn commands(text: &str, hear: &dyn Fn(&str) -> bool) -> Result<()> {
    for table in hooks(&read(text)?)? {
        is_ours(table, hear);
    }
    Ok(())
}

fn refused(why: &str, hint: &str) -> Error {
    Error::new(Code::Conflict, format!("the file has {why}; it was not changed")).hint(hint)
}

fn read(text: &str) -> Result<Document<&str>> {
    Document::parse(text).map_err(|error| {
        // Further lines show the place again.
        let error = error.to_string();
        Error::new(Code::BadRequest, format!("the file is not TOML: {}", error.lines().next().unwrap_or_default()))
            .hint("fix the file first; it was not changed")
    })
}

/// Returns the `[[hooks]]` tables in their order.
fn hooks<'d>(document: &'d Document<&str>) -> Result<Vec<&'d Table>> {
    match document.as_table().get("hooks") {
        None => Ok(Vec::new()),
        Some(Item::ArrayOfTables(tables)) => Ok(tables.iter().collect()),
        Some(_) => {
            let hint = "write them as tables, then install again";
            Err(refused("hooks that are not written as `[[hooks]]` tables", hint))
        }
    }
}

fn is_ours(table: &Table, ours: &dyn Fn(&str) -> bool) -> bool {
    table.get("command").and_then(Item::as_str).is_some_and(ours)
}

/// Returns our entries: the names of each with their values, in an order of their own.
fn found(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<Vec<Vec<(String, String)>>> {
    let document = read(text)?;
    let entry = |table: &Table| {
        let value = |item: &Item| match item.as_value() {
            Some(Value::String(text)) => format!("{:?}", text.value()),
            Some(Value::Integer(number)) => number.value().to_string(),
            _ => format!("{item:?}"),
        };
        let mut fields: Vec<_> = table.iter().map(|(name, item)| (name.to_owned(), value(item))).collect();
        fields.sort();
        fields
    };
    let tables = hooks(&document)?.into_iter().filter(|table| is_ours(table, ours));
    let mut entries: Vec<_> = tables.map(entry).collect();
    entries.sort();
    Ok(entries)
}

/// Returns the entries as tables.
fn written(wanted: &[(&'static str, NewValue)]) -> String {
    let mut tables = ArrayOfTables::new();
    for (event, node) in wanted {
        let mut table = Table::new();
        table.insert("event", (*event).into());
        let NewValue::Map(fields) = node else { continue };
        for (key, field) in fields {
            table.insert(key, Item::Value(value(field)));
        }
        tables.push(table);
    }
    let mut document = DocumentMut::new();
    document.insert("hooks", Item::ArrayOfTables(tables));
    // An empty line between them would be left behind by a client that drops comments.
    document.to_string().replace("\n\n[[", "\n[[")
}

fn value(node: &NewValue) -> Value {
    match node {
        NewValue::Text(text) => text.as_str().into(),
        NewValue::Number(number) => i64::try_from(*number).unwrap_or(i64::MAX).into(),
        NewValue::List(items) => items.iter().map(value).collect(),
        NewValue::Map(fields) => fields.iter().map(|(key, node)| (*key, value(node))).collect(),
    }
}

/// Returns the place of one of our tables, with the comment of ours before it.
fn place(text: &str, table: &Table) -> Range<usize> {
    let head = table.span().unwrap_or_default();
    let prefix = table.decor().prefix().and_then(toml_edit::RawString::span).unwrap_or(head.start..head.start);
    let ends = table.iter().filter_map(|(_, item)| Some(item.span()?.end));
    let end = ends.max().unwrap_or(head.end).max(head.end);
    let end = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
    let before = &text[prefix.start..head.start];
    let Some(at) = before.find(HEAD).map(|at| prefix.start + at) else { return head.start..end };
    if !before.contains(JOINED) {
        return at..end;
    }
    // The line end before the comment is ours too.
    let joined = text[..at].strip_suffix('\n').map_or(at, |text| text.strip_suffix('\r').unwrap_or(text).len());
    joined..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(command: &str) -> bool {
        command.contains("piton")
    }

    fn wanted() -> Vec<(&'static str, NewValue)> {
        let fields = |command: &str| {
            NewValue::Map(vec![("command", NewValue::Text(command.to_owned())), ("timeout", NewValue::Number(10))])
        };
        vec![("PreToolUse", fields("'/p i/piton' hook || :")), ("Stop", fields("/é\"\\/piton hook"))]
    }

    #[test]
    fn every_text_comes_back() {
        let texts = [
            "a = 1\n",
            "a = 1",
            "\u{feff}a = 1",
            "# mine\r\na = 1\r\n[t]\r\nb = 2",
            "a = 1\n\n\n",
            "a = 1\n# mine",
            "# mine alone\n",
            "[[hooks]]\nevent = \"Stop\"\ncommand = \"bell\"\n\n[t]\nx = 1 # y\n",
            "[[hooks]]\nevent = \"Stop\"\ncommand = \"bell\" # mine\n\n",
            "a = \"\"\"\n[[hooks]]\ncommand = \"piton\"\n\"\"\"\n",
            "a = '''\n# piton: these hooks come from `piton install`, and go with `piton uninstall`.\n'''\n",
            "a = \"#\" # \"\"\"\nb = '\\'\n",
            "a = [\n  [\"x\"],\n  [\"]\"], # [\n  \"piton\",\n]\n",
            "hookshot = 1\n[other.hooks]\nhooks = 1\n",
        ];
        for text in texts {
            let merged = merge(Some(text), &wanted(), &ours).unwrap();
            assert!(merged.starts_with(text) && merged.len() > text.len(), "{merged}");
            assert!(!text.contains('\r') || !merged.replace("\r\n", "").contains('\n'), "{merged}");
            assert_eq!(merge(Some(&merged), &wanted(), &ours).unwrap(), merged);
            assert_eq!(remove(&merged, &ours).unwrap().as_deref(), Some(text), "{merged}");
            assert_eq!(remove(text, &ours).unwrap().as_deref(), Some(text));
            // Something behind ours stays.
            let more = format!("{merged}\n# theirs\n[behind]\nx = 1\n");
            let left = remove(&more, &ours).unwrap().unwrap();
            assert_eq!(left, format!("{text}\n# theirs\n[behind]\nx = 1\n"));
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_comes_back(text in "[a-c=\\[\\]\"'#\\r\\n .{}1,hoks]{0,60}") {
            let _ = remove(&text, &ours);
            if let Ok(merged) = merge(Some(&text), &wanted(), &ours) {
                let before = (!text.trim().is_empty()).then_some(text);
                proptest::prop_assert_eq!(remove(&merged, &ours).unwrap(), before);
            }
        }
    }

    #[test]
    fn tables_without_comments_are_known() {
        let text = "a = 1\n\n[[hooks]]\ncommand = \"bell\"\nevent = \"Stop\"\n\n[[hooks]]\ntimeout = 10\nevent = \"PreToolUse\"\ncommand = '/old/piton hook'\n\n[t]\nx = 1\n";
        let heard = std::cell::RefCell::new(Vec::new());
        let hear = |command: &str| {
            heard.borrow_mut().push(command.to_owned());
            ours(command)
        };
        commands(text, &hear).unwrap();
        assert_eq!(*heard.borrow(), ["bell", "/old/piton hook"]);
        let left = remove(text, &ours).unwrap().unwrap();
        assert_eq!(left, "a = 1\n\n[[hooks]]\ncommand = \"bell\"\nevent = \"Stop\"\n\n\n[t]\nx = 1\n");
        // Reordered and without comments, current ones are still current.
        let merged = merge(None, &wanted(), &ours).unwrap();
        let bare: String =
            merged.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        assert_eq!(merge(Some(&bare), &wanted(), &ours).unwrap(), bare);
        assert_eq!(remove(&bare, &ours).unwrap(), None);
    }

    #[test]
    fn other_forms_are_refused() {
        for text in
            ["hooks = []\n", "a = 1\n\"hooks\" = [{event = \"Stop\"}]\n", "[hooks]\n", "[hooks.x]\n", "hooks.x = 1\n"]
        {
            assert_eq!(merge(Some(text), &wanted(), &ours).unwrap_err().code(), Code::Conflict, "{text}");
            assert_eq!(remove(text, &ours).unwrap_err().code(), Code::Conflict, "{text}");
        }
        for text in ["a = \"\"\"\n", "a = [\n", "a = [[\"x\"]\n", "a\n"] {
            assert_eq!(merge(Some(text), &wanted(), &ours).unwrap_err().code(), Code::BadRequest, "{text}");
        }
    }
}
