//! Hooks in a JSON file, with comments or without: `hooks` → event → list.

use serde_json::Value;

use super::scan::{ParsedItem, ParsedValue, comment_end, scan, space_end};
use crate::error::{Code, Error, Result};

/// The form in which a client writes its hooks down, below `hooks` and the event's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A list of groups, each with a list of handlers.
    Groups,
    /// A list of handlers.
    Flat,
    /// The same in a file that has a `version`.
    FlatVersioned,
    /// As `FlatVersioned`, with other names of the fields.
    Copilot,
}

/// A value to be written, its fields in order.
#[derive(Clone, Debug)]
pub(crate) enum NewValue {
    Text(String),
    Number(u64),
    List(Vec<NewValue>),
    Map(Vec<(&'static str, NewValue)>),
}

impl NewValue {
    /// Returns the value a parser would read.
    pub(crate) fn value(&self) -> Value {
        match self {
            NewValue::Text(text) => Value::from(text.as_str()),
            NewValue::Number(number) => Value::from(*number),
            NewValue::List(items) => items.iter().map(NewValue::value).collect(),
            NewValue::Map(fields) => fields.iter().map(|(key, node)| ((*key).to_owned(), node.value())).collect(),
        }
    }
}

/// The layout of new text: over lines after an indentation, or in one line.
#[derive(Clone)]
enum Layout {
    Lines { newline: &'static str, indent: String, unit: String },
    OneLine,
}

impl Layout {
    /// Returns the text between the elements, and before a closing bracket.
    fn gap(&self) -> String {
        match self {
            Layout::Lines { newline, indent, .. } => format!("{newline}{indent}"),
            Layout::OneLine => " ".to_owned(),
        }
    }

    fn inner(&self) -> Layout {
        match self {
            Layout::Lines { newline, indent, unit } => {
                Layout::Lines { newline, indent: format!("{indent}{unit}"), unit: unit.clone() }
            }
            Layout::OneLine => Layout::OneLine,
        }
    }
}

fn render(node: &NewValue, layout: &Layout) -> String {
    match node {
        NewValue::Text(text) => Value::from(text.as_str()).to_string(),
        NewValue::Number(number) => number.to_string(),
        NewValue::List(items) => {
            let items = items.iter().map(|item| render(item, &layout.inner())).collect();
            bracketed('[', items, ']', layout)
        }
        NewValue::Map(fields) => {
            let fields = fields.iter().map(|(key, node)| member(key, node, &layout.inner())).collect();
            bracketed('{', fields, '}', layout)
        }
    }
}

fn member(key: &str, node: &NewValue, layout: &Layout) -> String {
    format!("{}: {}", Value::from(key), render(node, layout))
}

/// White space before the closing bracket says that piton made it.
fn bracketed(open: char, items: Vec<String>, close: char, layout: &Layout) -> String {
    let gap = layout.inner().gap();
    format!("{open}{gap}{}{}{close}", items.join(&format!(",{gap}")), layout.gap())
}

/// Returns the text with these entries, each in its event's list.
///
/// # Errors
/// `bad-json`, `conflict`.
pub(crate) fn merge(
    text: Option<&str>,
    wanted: &[(&'static str, NewValue)],
    style: Style,
    ours: &dyn Fn(&str) -> bool,
) -> Result<String> {
    let blank = |text: &str| text.trim_start_matches('\u{feff}').trim().is_empty();
    let before = match text.filter(|text| !blank(text)) {
        None => None,
        Some(text) if present(&checked(text)?, wanted, style, ours) => return Ok(text.to_owned()),
        Some(text) => remove(text, style, ours)?,
    };
    let Some(mut text) = before else {
        return Ok(created(wanted, style));
    };
    // Each addition goes to the front, so the last comes first.
    for (event, node) in wanted.iter().rev() {
        text = insert(&text, event, node)?;
    }
    if !present(&checked(&text)?, wanted, style, ours) {
        return Err(Error::new(Code::Internal, "could not add the hooks to the file").hint("nothing was changed"));
    }
    Ok(text)
}

fn created(wanted: &[(&'static str, NewValue)], style: Style) -> String {
    let events = wanted.iter().map(|(event, node)| (*event, NewValue::List(vec![node.clone()]))).collect();
    let mut fields = vec![("hooks", NewValue::Map(events))];
    if matches!(style, Style::FlatVersioned | Style::Copilot) {
        fields.insert(0, ("version", NewValue::Number(1)));
    }
    let layout = Layout::Lines { newline: "\n", indent: String::new(), unit: "  ".to_owned() };
    render(&NewValue::Map(fields), &layout) + "\n"
}

fn wrong(what: &str) -> Error {
    Error::new(Code::Conflict, format!("the file has {what}")).hint("fix the file first; it was not changed")
}

/// Returns the root, if what piton edits has the form it knows.
fn checked(text: &str) -> Result<ParsedValue> {
    let root = scan(text)?;
    let members = root.members().ok_or_else(|| wrong("no JSON object at its root"))?;
    if members.iter().filter(|member| member.key == "hooks").count() > 1 {
        return Err(wrong("`hooks` twice"));
    }
    let Some(hooks) = root.get("hooks") else {
        return Ok(root);
    };
    let events = hooks.members().ok_or_else(|| wrong("`hooks`, but it is not an object"))?;
    for (at, event) in events.iter().enumerate() {
        if events[..at].iter().any(|other| other.key == event.key) {
            return Err(wrong(&format!("under `hooks`, `{}` twice", event.key)));
        }
    }
    Ok(root)
}

/// Returns the command of a handler.
fn command(handler: &ParsedValue, style: Style) -> Option<&str> {
    handler.get(if style == Style::Copilot { "bash" } else { "command" })?.text()
}

/// Returns whether an entry is ours as a whole.
fn is_ours(entry: &ParsedValue, style: Style, ours: &dyn Fn(&str) -> bool) -> bool {
    let mine = |handler: &ParsedValue| command(handler, style).is_some_and(ours);
    if style != Style::Groups {
        return mine(entry);
    }
    let handlers = entry.get("hooks").and_then(ParsedValue::elements).unwrap_or_default();
    !handlers.is_empty() && handlers.iter().all(|handler| mine(&handler.value))
}

/// Returns whether our entries, in all events, are exactly the wanted ones.
fn present(root: &ParsedValue, wanted: &[(&'static str, NewValue)], style: Style, ours: &dyn Fn(&str) -> bool) -> bool {
    let events = root.get("hooks").and_then(ParsedValue::members).unwrap_or_default();
    let mut left: Vec<(&str, Value)> = wanted.iter().map(|(event, node)| (*event, node.value())).collect();
    for event in events {
        for entry in event.value.elements().unwrap_or_default() {
            let place = left.iter().position(|(name, value)| *name == event.key && *value == entry.value.value());
            match place {
                Some(place) => drop(left.remove(place)),
                None if !ours_in(entry, style, ours).is_empty() => return false,
                None => {}
            }
        }
    }
    left.is_empty()
}

/// Returns the ways from an entry to what is ours in it: the entry itself, or handlers in it.
fn ours_in(entry: &ParsedItem, style: Style, ours: &dyn Fn(&str) -> bool) -> Vec<Option<usize>> {
    if is_ours(&entry.value, style, ours) {
        return vec![None];
    }
    if style != Style::Groups {
        return Vec::new();
    }
    let handlers = entry.value.get("hooks").and_then(ParsedValue::elements).unwrap_or_default().iter().enumerate();
    handlers.filter(|(_, handler)| command(&handler.value, style).is_some_and(ours)).map(|(at, _)| Some(at)).collect()
}

/// Returns the text without our entries; nothing if nothing else was in it.
///
/// # Errors
/// `bad-json`, `conflict`.
pub(crate) fn remove(text: &str, style: Style, ours: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    let mut text = text.to_owned();
    loop {
        let root = checked(&text)?;
        let Some(way) = first_of_ours(&root, style, ours) else {
            return Ok(Some(text));
        };
        match cut(&text, &root, &way, style) {
            Some(without) => text = without,
            None => return Ok(None),
        }
    }
}

/// A container and the place of an item in it, from the root down.
type Way<'s> = Vec<(&'s ParsedValue, usize)>;

fn first_of_ours<'s>(root: &'s ParsedValue, style: Style, ours: &dyn Fn(&str) -> bool) -> Option<Way<'s>> {
    let at_hooks = root.members()?.iter().position(|member| member.key == "hooks")?;
    let hooks = &root.members()?[at_hooks].value;
    for (at_event, event) in hooks.items().iter().enumerate() {
        // Some clients keep switches beside the events.
        for (at_entry, entry) in event.value.elements().unwrap_or_default().iter().enumerate() {
            let Some(part) = ours_in(entry, style, ours).first().copied() else {
                continue;
            };
            let mut way = vec![(root, at_hooks), (hooks, at_event), (&event.value, at_entry)];
            if let (Some(at), Some(handlers)) = (part, entry.value.get("hooks")) {
                way.push((handlers, at));
            }
            return Some(way);
        }
    }
    None
}

/// Takes one of piton's entries out, and the lists that piton made around it if they are empty then. Returns `None` if
/// that is the whole file.
fn cut(text: &str, root: &ParsedValue, way: &Way<'_>, style: Style) -> Option<String> {
    let mut way = way.as_slice();
    while let Some(((container, at), outer)) = way.split_last() {
        let alone = container.items().len() == 1;
        let made = text[..container.end - 1].ends_with([' ', '\n', '\t', '\r']);
        if outer.is_empty() && made && is_whole(root, *at, style) {
            return None;
        }
        if !(alone && made) || outer.is_empty() {
            return Some(without(text, container, *at));
        }
        way = outer;
    }
    None
}

/// Returns whether nothing but what piton wrote is in the root, of which the member `at` is `hooks`.
fn is_whole(root: &ParsedValue, at: usize, style: Style) -> bool {
    match root.items() {
        [_] => true,
        // In this order only a file that piton made has them: into others, `hooks` goes first.
        [version, _] => at == 1 && version.key == "version" && matches!(style, Style::FlatVersioned | Style::Copilot),
        _ => false,
    }
}

fn without(text: &str, container: &ParsedValue, at: usize) -> String {
    let items = container.items();
    let item = &items[at];
    match (item.comma, at.checked_sub(1).and_then(|before| items[before].comma)) {
        (Some(comma), _) => format!("{}{}", &text[..item.lead], &text[comma + 1..]),
        (None, Some(before)) => {
            format!("{}{}{}", &text[..before], &text[before + 1..item.lead], &text[item.value.end..])
        }
        (None, None) => format!("{}{}", &text[..item.start], &text[item.value.end..]),
    }
}

/// Puts an entry first into an event's list, making the list and `hooks` where they are missing.
fn insert(text: &str, event: &'static str, node: &NewValue) -> Result<String> {
    let root = checked(text)?;
    let Some(hooks) = root.get("hooks") else {
        let hooks = NewValue::Map(vec![(event, NewValue::List(vec![node.clone()]))]);
        return Ok(put(text, &root, &root, &|layout| member("hooks", &hooks, layout)));
    };
    Ok(match hooks.get(event) {
        None => {
            let list = NewValue::List(vec![node.clone()]);
            put(text, &root, hooks, &|layout| member(event, &list, layout))
        }
        Some(list) if list.elements().is_some() => put(text, &root, list, &|layout| render(node, layout)),
        Some(_) => return Err(wrong(&format!("`{event}` under `hooks`, but it is not a list"))),
    })
}

/// Puts an item first into a container.
fn put(text: &str, root: &ParsedValue, container: &ParsedValue, item: &dyn Fn(&Layout) -> String) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let unit = unit(text, root);
    if container.items().is_empty() {
        // Right before the bracket, which says that the container was there.
        let line = &text[text[..container.start].rfind('\n').map_or(0, |at| at + 1)..];
        let indent = line[..space_end(line, 0)].trim_end_matches(['\r', '\n']).to_owned();
        let several = text.trim_end().contains('\n') || container.start == root.start;
        let layout = if several { Layout::Lines { newline, indent, unit } } else { Layout::OneLine };
        let end = container.end - 1;
        return format!("{}{}{}", &text[..end], item(&layout), &text[end..]);
    }
    let at = same_line_comment_end(text, container.start + 1);
    let gap = &text[at..space_end(text, at)];
    let layout = match gap.rfind('\n') {
        Some(line) => Layout::Lines { newline, indent: gap[line + 1..].to_owned(), unit },
        None => Layout::OneLine,
    };
    let lead = if gap.contains('\n') { layout.gap() } else { gap.to_owned() };
    format!("{}{lead}{},{}", &text[..at], item(&layout), &text[at..])
}

/// Returns the end of the last comment that begins in the same line after an opening bracket; the bracket's own end
/// without one.
fn same_line_comment_end(text: &str, bracket: usize) -> usize {
    let mut at = bracket;
    loop {
        let next = space_end(text, at);
        // A comment without an end was refused before.
        let end = comment_end(text, next).unwrap_or(next);
        if end == next || text[at..next].contains('\n') {
            return at;
        }
        at = end;
    }
}

/// Returns the indentation of the first level, two spaces where there is none.
fn unit(text: &str, root: &ParsedValue) -> String {
    let first = root.items().first().map(|item| &text[..item.start]);
    let indent = first.and_then(|before| before.rsplit_once('\n')).map(|(_, indent)| indent);
    indent.filter(|indent| !indent.is_empty() && indent.trim().is_empty()).unwrap_or("  ").to_owned()
}

#[cfg(test)]
mod tests;
