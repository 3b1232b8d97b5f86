//! Hooks in a YAML file: `hooks` → event → list, as whole lines. Only the plain block form is edited; anything else is
//! refused with the lines to add by hand. A client that writes the file anew keeps piton's lines recognisable.

use serde_json::Value;

use super::json::NewValue;
use crate::error::{Code, Error, Result};

/// Stands after a colon, and makes a comment of the empty value that was there.
const MARK: &str = " #piton#";

/// Returns the text with these entries.
///
/// # Errors
/// `bad-request`: not YAML; `conflict`: not in a form that is edited.
pub(crate) fn merge(
    text: Option<&str>,
    wanted: &[(&'static str, NewValue)],
    ours: &dyn Fn(&str) -> bool,
) -> Result<String> {
    let text = text.unwrap_or_default();
    let by_hand = || by_hand(wanted);
    if found(text, ours)? == expected(wanted) {
        return Ok(text.to_owned());
    }
    let before = remove(text, ours)?.unwrap_or_default();
    let mut file = HookFile::read(&before).map_err(|why| refused(why, &by_hand()))?;
    file.insert(wanted).map_err(|why| refused(why, &by_hand()))?;
    let after = file.text();
    // A second reader must see what was there, and ours.
    let seen = found(&after, ours).is_ok_and(|found| found == expected(wanted));
    if seen && others(&after, ours)? == others(&before, ours)? {
        return Ok(after);
    }
    Err(refused("a form that piton cannot edit", &by_hand()))
}

/// Returns the text without our entries; nothing if nothing else was in it.
///
/// # Errors
/// As [`merge`].
pub(crate) fn remove(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    if found(text, ours)?.is_empty() {
        return Ok(if text.trim().is_empty() { None } else { Some(text.to_owned()) });
    }
    let take_out = "remove the calls of `piton hook` by hand";
    let mut file = HookFile::read(text).map_err(|why| refused(why, take_out))?;
    file.remove(ours).map_err(|why| refused(why, take_out))?;
    let after = file.text();
    let gone = found(&after, ours).is_ok_and(|found| found.is_empty());
    if gone && others(&after, ours)? == others(text, ours)? {
        return Ok(if after.is_empty() { None } else { Some(after) });
    }
    Err(refused("a form that piton cannot edit", take_out))
}

fn refused(why: &str, hint: &str) -> Error {
    Error::new(Code::Conflict, format!("the file has {why}; it was not changed")).hint(hint)
}

fn by_hand(wanted: &[(&'static str, NewValue)]) -> String {
    let mut file = HookFile { lines: Vec::new(), newline: "\n", ends: true };
    file.append(wanted);
    format!("add by hand:\n{}", file.text())
}

// ---- what a parser sees

fn parsed(text: &str) -> Result<Value> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| {
        Error::new(Code::BadRequest, format!("the file is not YAML: {error}"))
            .hint("fix the file first; it was not changed")
    })
}

fn mine(entry: &Value, ours: &dyn Fn(&str) -> bool) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(ours)
}

/// Our entries with their events.
fn found(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<Vec<(String, Value)>> {
    let root = parsed(text)?;
    let events = root.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let entries = events.flat_map(|(event, list)| {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter(|entry| mine(entry, ours)).map(move |entry| (event.clone(), entry.clone()))
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

fn expected(wanted: &[(&'static str, NewValue)]) -> Vec<(String, Value)> {
    let mut expected: Vec<_> = wanted.iter().map(|(event, node)| ((*event).to_owned(), node.value())).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    expected
}

/// Everything but our entries and what is empty without them.
fn others(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<Value> {
    let mut root = parsed(text)?;
    if let Some(events) = root.get_mut("hooks").and_then(Value::as_object_mut) {
        for list in events.values_mut().filter_map(Value::as_array_mut) {
            list.retain(|entry| !mine(entry, ours));
        }
        events.retain(|_, list| !list.is_null() && list.as_array().is_none_or(|list| !list.is_empty()));
    }
    if let Some(root) = root.as_object_mut() {
        root.retain(|key, value| {
            key != "hooks" || !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty())
        });
    }
    Ok(if root.as_object().is_some_and(serde_json::Map::is_empty) { Value::Null } else { root })
}

// ---- lines

/// Lines without their ends.
struct HookFile {
    lines: Vec<String>,
    newline: &'static str,
    /// True if the last line has an end.
    ends: bool,
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Neither blank nor a comment.
fn tells(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// Returns what follows `key:` at this indentation.
fn after_key<'l>(line: &'l str, depth: usize, key: &str) -> Option<&'l str> {
    let rest = line.get(depth..).filter(|_| indent(line) == depth)?.strip_prefix(key)?.strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with(' ')).then_some(rest)
}

/// Returns whether a value is there at all, or only an empty one.
fn is_empty_value(rest: &str) -> bool {
    let value = rest.split(" #").next().unwrap_or(rest).trim();
    matches!(value, "" | "{}" | "[]" | "null" | "~")
}

impl HookFile {
    fn read(text: &str) -> std::result::Result<HookFile, &'static str> {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut lines: Vec<String> = text.split(newline).map(str::to_owned).collect();
        // The text after the last line's end is no line.
        let ends = lines.last().is_some_and(String::is_empty);
        if ends {
            lines.pop();
        }
        let file = HookFile { lines, newline, ends };
        if file.lines.iter().any(|line| line.contains('\n') || line.contains('\r')) {
            return Err("line ends of several kinds");
        }
        for (at, line) in file.lines.iter().enumerate().filter(|(_, line)| tells(line)) {
            if line.starts_with('\u{feff}')
                || line.starts_with("...")
                || line.starts_with("---") && file.tells_before(at)
            {
                return Err("several documents");
            }
            if line.starts_with(['{', '[', '"', '\'', '?', '!', '&', '%']) {
                return Err("a root that is not a simple list of names");
            }
        }
        Ok(file)
    }

    fn tells_before(&self, at: usize) -> bool {
        self.lines[..at].iter().any(|line| tells(line))
    }

    fn text(&self) -> String {
        let mut text = self.lines.join(self.newline);
        if self.ends && !self.lines.is_empty() {
            text.push_str(self.newline);
        }
        text
    }

    /// Returns the line of `key` at an indentation within a range.
    fn find(&self, key: &str, depth: usize, within: std::ops::Range<usize>) -> Option<usize> {
        within.into_iter().find(|at| after_key(&self.lines[*at], depth, key).is_some())
    }

    /// Returns the end of the block below a line: the next line of the same indentation or less that tells something. A
    /// list may stand at its name's own indentation.
    fn block_end(&self, at: usize) -> usize {
        let depth = indent(&self.lines[at]);
        let inside = |line: &str| !tells(line) || indent(line) > depth || indent(line) == depth && is_item(line);
        let end = (at + 1..self.lines.len()).find(|at| !inside(&self.lines[*at])).unwrap_or(self.lines.len());
        // Comments and blank lines at its end belong to what follows.
        (at + 1..end).rev().find(|at| tells(&self.lines[*at])).map_or(at + 1, |last| last + 1)
    }

    /// Returns the indentation of the first line below one.
    fn inner(&self, at: usize) -> Option<usize> {
        (at + 1..self.block_end(at)).map(|at| &self.lines[at]).find(|line| tells(line)).map(|line| indent(line))
    }

    fn insert(&mut self, wanted: &[(&'static str, NewValue)]) -> std::result::Result<(), &'static str> {
        let Some(hooks) = self.find("hooks", 0, 0..self.lines.len()) else {
            self.append(wanted);
            return Ok(());
        };
        self.open(hooks, "hooks")?;
        let depth = self.inner(hooks).unwrap_or(2);
        for (event, node) in wanted.iter().rev() {
            let within = hooks + 1..self.block_end(hooks);
            match self.find(event, depth, within) {
                Some(at) => {
                    self.open(at, event)?;
                    let inner = self.inner(at).unwrap_or(depth + 2);
                    self.splice(at + 1, item(node, inner));
                }
                None => {
                    let mut lines = vec![format!("{}{event}:", " ".repeat(depth))];
                    lines.extend(item(node, depth + 2));
                    self.splice(hooks + 1, lines);
                }
            }
        }
        Ok(())
    }

    /// Makes room below a name: an empty value becomes a comment.
    fn open(&mut self, at: usize, key: &str) -> std::result::Result<(), &'static str> {
        let depth = indent(&self.lines[at]);
        let below = self.inner(at).is_some();
        let rest = after_key(&self.lines[at], depth, key).unwrap_or_default();
        let value = rest.split(" #").next().unwrap_or(rest).trim();
        if below && value.is_empty() {
            return Ok(());
        }
        if below || !is_empty_value(rest) {
            return Err("hooks that are not written as a block");
        }
        self.lines[at].insert_str(depth + key.len() + 1, MARK);
        Ok(())
    }

    fn append(&mut self, wanted: &[(&'static str, NewValue)]) {
        let mut lines = vec!["hooks:".to_owned()];
        for (event, node) in wanted {
            lines.push(format!("  {event}:"));
            lines.extend(item(node, 4));
        }
        let end = self.lines.len();
        // A file of nothing gets a last line with an end.
        self.ends |= end == 0;
        self.splice(end, lines);
    }

    fn splice(&mut self, at: usize, lines: Vec<String>) {
        self.lines.splice(at..at, lines);
    }

    fn remove(&mut self, ours: &dyn Fn(&str) -> bool) -> std::result::Result<(), &'static str> {
        let hooks = self.find("hooks", 0, 0..self.lines.len()).ok_or("hooks that are not written as a block")?;
        let depth = self.inner(hooks).ok_or("hooks that are not written as a block")?;
        let events: Vec<usize> = (hooks + 1..self.block_end(hooks))
            .filter(|at| tells(&self.lines[*at]) && indent(&self.lines[*at]) == depth && !is_item(&self.lines[*at]))
            .collect();
        for event in events.into_iter().rev() {
            let taken = self.remove_items(event, ours);
            if taken && self.inner(event).is_none() {
                self.close(event);
            }
        }
        if self.inner(hooks).is_none() {
            self.close(hooks);
        }
        Ok(())
    }

    /// Takes our items out of an event's list; whether there were any.
    fn remove_items(&mut self, event: usize, ours: &dyn Fn(&str) -> bool) -> bool {
        let mut taken = false;
        let mut at = event + 1;
        while at < self.block_end(event) {
            let depth = indent(&self.lines[at]);
            let next = (at + 1..self.lines.len())
                .find(|at| self.lines[*at].trim().is_empty() || indent(&self.lines[*at]) <= depth)
                .unwrap_or(self.lines.len());
            if is_item(&self.lines[at]) && self.is_ours(at..next, ours) {
                self.lines.drain(at..next);
                taken = true;
            } else {
                at += 1;
            }
        }
        taken
    }

    fn is_ours(&self, lines: std::ops::Range<usize>, ours: &dyn Fn(&str) -> bool) -> bool {
        // A part that is no YAML by itself is not ours.
        let list: Value = serde_saphyr::from_str(&self.lines[lines].join("\n")).unwrap_or_default();
        list.get(0).is_some_and(|entry| mine(entry, ours))
    }

    /// A name with nothing below it any more: its empty value comes back, or it goes.
    fn close(&mut self, at: usize) {
        match self.lines[at].find(MARK) {
            Some(mark) => self.lines[at].replace_range(mark..mark + MARK.len(), ""),
            None => drop(self.lines.remove(at)),
        }
    }
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    line == "-" || line.starts_with("- ")
}

/// Returns the lines of one list item.
fn item(node: &NewValue, depth: usize) -> Vec<String> {
    let NewValue::Map(fields) = node else {
        return Vec::new();
    };
    let lead = |at: usize| if at == 0 { "- " } else { "  " };
    let lines = fields.iter().enumerate();
    lines.map(|(at, (key, value))| format!("{}{}{key}: {}", " ".repeat(depth), lead(at), value.value())).collect()
}

#[cfg(test)]
mod tests;
