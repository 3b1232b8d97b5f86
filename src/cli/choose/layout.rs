//! The picture of a choice: the list above, the text of the row at the cursor below, and the keys.

use super::super::screen::facts;
use super::picker::{ChoiceMark, ListRow, Picker};
use crate::model::text::{count, fitted, printable, width};

/// The keys and what they do.
const KEYS: [&str; 8] =
    ["↑↓ move", "space choose", "a all", "→ open", "← close", "PgUp PgDn text", "enter continue", "q quit"];

/// The smallest screen: columns, and rows for list and text together.
const LEAST: (usize, usize) = (40, 5);

/// The most rows of the screen that one line of text takes.
const MOST_ROWS: usize = 5;

/// The blanks in place of a tab.
const TAB: &str = "    ";

/// A row of the screen, at most as wide as that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScreenRow {
    pub(super) text: String,
    pub(super) style: RowStyle,
}

/// The look of a row, on a terminal with colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowStyle {
    Plain,
    Bold,
    Faint,
    AtCursor,
    Added,
    Removed,
    Heading,
}

impl Picker {
    /// Draws the choice on a screen of this size. Scrolls so that the cursor can be seen.
    pub(super) fn draw(&mut self, columns: usize, rows: usize) -> Vec<ScreenRow> {
        let keys = facts(&KEYS.map(str::to_owned), 0, Some(columns));
        let room = rows.saturating_sub(3 + keys.len());
        if columns < LEAST.0 || room < LEAST.1 {
            let text = format!("Too small ({columns}x{rows}); q quits.");
            return vec![ScreenRow { text: fitted(&text, columns), style: RowStyle::Plain }];
        }
        let list = self.rows();
        let list_room = list.len().clamp(2, (room * 2 / 5).max(2));
        let text_room = room - list_room;
        let at = list.iter().position(|row| *row == self.cursor).unwrap_or_default();
        self.first_row = self.first_row.clamp((at + 1).saturating_sub(list_room), at);
        self.first_row = self.first_row.min(list.len().saturating_sub(list_room));
        let text: Vec<ScreenRow> = self.text().iter().flat_map(|line| wrapped(line, columns)).collect();
        self.page = text_room;
        self.first_line = self.first_line.min(text.len().saturating_sub(text_room));
        let plain = |text: &str, style| ScreenRow { text: fitted(text, columns), style };
        let mut all = vec![plain(&printable(&self.title), RowStyle::Bold)];
        all.extend(list.iter().skip(self.first_row).take(list_room).map(|row| self.row(*row, columns)));
        all.resize_with(1 + list_room, || plain("", RowStyle::Plain));
        all.push(plain(&self.divider(text.len(), columns), RowStyle::Faint));
        all.extend(text.into_iter().skip(self.first_line).take(text_room));
        all.resize_with(2 + list_room + text_room, || plain("", RowStyle::Plain));
        all.push(plain(&self.status(at, list.len()), RowStyle::Bold));
        all.extend(keys.iter().map(|line| plain(line, RowStyle::Faint)));
        all
    }

    /// Returns a row of the list.
    fn row(&self, row: ListRow, columns: usize) -> ScreenRow {
        let item = &self.items[row.item];
        let is_here = row == self.cursor;
        let pointer = if is_here { "> " } else { "  " };
        let style = if is_here { RowStyle::AtCursor } else { RowStyle::Plain };
        if let (Some(part), Some(details)) = (row.part, &item.details) {
            let part = &details.parts[part];
            let mark = if part.is_chosen { "[x]" } else { "[ ]" };
            return ScreenRow {
                text: fitted(&format!("{pointer}    {mark} {}", printable(&part.title)), columns),
                style,
            };
        }
        let parts = item.details.as_ref().map_or(0, |details| details.parts.len());
        let mark = match item.mark() {
            ChoiceMark::All => "[x]",
            ChoiceMark::Part => "[~]",
            ChoiceMark::None => "[ ]",
            ChoiceMark::Blocked => " - ",
        };
        let fold = match (parts, item.is_open) {
            (0, _) => " ",
            (_, true) => "-",
            (_, false) => "+",
        };
        let chosen = item.details.iter().flat_map(|details| &details.parts).filter(|part| part.is_chosen).count();
        let mut notes = item.notes.clone();
        notes.extend((parts > 0).then(|| format!("{chosen} of {}", count(parts as u64, "part"))));
        let notes = if notes.is_empty() { String::new() } else { format!("  ({})", printable(&notes.join(", "))) };
        let before = format!("{pointer}{mark}{fold} {:<8}", item.state);
        let room = columns.saturating_sub(width(&before) + width(&notes)).max(8);
        ScreenRow { text: fitted(&format!("{before}{}{notes}", end_of(&item.name, room)), columns), style }
    }

    fn divider(&self, lines: usize, columns: usize) -> String {
        let place = match lines > self.page {
            true => format!(" lines {}-{} of {lines} ", self.first_line + 1, (self.first_line + self.page).min(lines)),
            false => String::new(),
        };
        let name = end_of(&self.items[self.cursor.item].name, columns.saturating_sub(width(&place) + 6).max(8));
        let text = format!("── {name} {place}");
        let rest = columns.saturating_sub(width(&text));
        text + &"─".repeat(rest)
    }

    fn status(&self, at: usize, rows: usize) -> String {
        if let Some(message) = &self.message {
            return printable(message);
        }
        let marked = |mark: ChoiceMark| self.items.iter().filter(|item| item.mark() == mark).count();
        let (whole, part) = (marked(ChoiceMark::All), marked(ChoiceMark::Part));
        let of = count(self.items.len() as u64, "change");
        let chosen = match (whole, part) {
            (0, 0) => format!("Nothing chosen of {of}"),
            (whole, 0) => format!("Chosen: {whole} of {of}"),
            (0, part) => format!("Chosen: {part} of {of}, in part"),
            (whole, part) => format!("Chosen: {whole} of {of}, and {part} in part"),
        };
        format!("{chosen} · row {} of {rows}", at + 1)
    }
}

/// Returns the end of a name that takes at most so many columns.
fn end_of(name: &str, columns: usize) -> String {
    let mut from = 0;
    if width(name) > columns {
        let cut = |(at, _): &(usize, char)| width(&name[*at..]) < columns;
        from = name.char_indices().find(cut).map_or(name.len(), |(at, _)| at);
    }
    if from == 0 { name.to_owned() } else { format!("…{}", &name[from..]) }
}

/// Returns the rows of the screen that a line of a patch takes. A very long line is cut.
fn wrapped(line: &str, columns: usize) -> Vec<ScreenRow> {
    let style = match line.as_bytes().first() {
        Some(b'+') => RowStyle::Added,
        Some(b'-') => RowStyle::Removed,
        Some(b'@') => RowStyle::Heading,
        _ => RowStyle::Plain,
    };
    let line = line.trim_end_matches('\n');
    // No more than that is shown of it, however long it is.
    let most = line.char_indices().nth(columns * (MOST_ROWS + 1)).map_or(line.len(), |(at, _)| at);
    let text = printable(&line[..most].replace('\t', TAB));
    let (mut rows, mut row, mut taken) = (Vec::new(), String::new(), 0);
    for letter in text.chars() {
        let wide = width(letter.encode_utf8(&mut [0; 4]));
        if taken + wide > columns {
            rows.push(std::mem::take(&mut row));
            taken = 0;
        }
        taken += wide;
        row.push(letter);
    }
    rows.push(row);
    if rows.len() > MOST_ROWS {
        rows.truncate(MOST_ROWS);
        let last = rows.pop().unwrap_or_default();
        rows.push(fitted(&format!("{last}……"), columns));
    }
    rows.into_iter().map(|text| ScreenRow { text, style }).collect()
}
