//! The choice among changes: which are chosen, where the cursor is, and the effect of each key. No terminal, no files.

use std::collections::BTreeSet;

use super::keys::KeyPress;

/// A change that can be chosen, as a person sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct ChoiceItem {
    /// Its path, quoted where that is needed.
    pub(super) name: String,
    /// One word: how it differs from the version to restore.
    pub(super) state: &'static str,
    /// Further facts, each a word or a few.
    pub(super) notes: Vec<String>,
    /// True if the command without a choice takes it back.
    pub(super) is_default: bool,
    /// The reason why it cannot be chosen; `None` if it can.
    pub(super) blocked: Option<String>,
    /// Its text and its parts; `None` until they are needed.
    pub(super) details: Option<ItemDetails>,
    /// True if it is chosen as a whole. Of a change with parts, only the parts count.
    pub(super) is_chosen: bool,
    /// True if its parts are listed.
    pub(super) is_open: bool,
}

/// The text of a change, and the parts that can be chosen one by one.
#[derive(Clone, Debug, Default)]
pub(super) struct ItemDetails {
    /// The lines of the whole change.
    pub(super) text: Vec<String>,
    /// Its parts; empty where it can only be chosen as a whole.
    pub(super) parts: Vec<ItemPart>,
}

/// A part of a change.
#[derive(Clone, Debug, Default)]
pub(super) struct ItemPart {
    /// One line.
    pub(super) title: String,
    /// Its lines.
    pub(super) text: Vec<String>,
    /// True if it is chosen.
    pub(super) is_chosen: bool,
}

/// The mark of a change in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChoiceMark {
    All,
    Part,
    None,
    Blocked,
}

impl ChoiceItem {
    fn parts(&self) -> &[ItemPart] {
        self.details.as_ref().map(|details| details.parts.as_slice()).unwrap_or_default()
    }

    /// Returns its mark.
    pub(super) fn mark(&self) -> ChoiceMark {
        let parts = self.parts();
        let chosen = parts.iter().filter(|part| part.is_chosen).count();
        match (self.blocked.is_some(), parts.len(), chosen) {
            (true, ..) => ChoiceMark::Blocked,
            (false, 0, _) => {
                if self.is_chosen {
                    ChoiceMark::All
                } else {
                    ChoiceMark::None
                }
            }
            (false, _, 0) => ChoiceMark::None,
            (false, all, some) if all == some => ChoiceMark::All,
            (false, ..) => ChoiceMark::Part,
        }
    }

    fn set(&mut self, is_chosen: bool) {
        self.is_chosen = is_chosen;
        let parts = self.details.iter_mut().flat_map(|details| &mut details.parts);
        parts.for_each(|part| part.is_chosen = is_chosen);
    }
}

/// A row of the list: a change, or a part of one that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListRow {
    pub(super) item: usize,
    pub(super) part: Option<usize>,
}

/// The effect of a key on the whole choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PickerStep {
    /// The choice continues.
    Stay,
    /// The chosen changes are to be taken back.
    Accept,
    /// Nothing is to be changed.
    Quit,
    /// The same, by Ctrl-C.
    Interrupt,
}

/// The chosen parts of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PickedParts {
    /// All of it.
    Whole,
    /// The parts with these places.
    Some(BTreeSet<usize>),
}

/// A choice among changes.
pub(super) struct Picker {
    pub(super) title: String,
    pub(super) items: Vec<ChoiceItem>,
    pub(super) cursor: ListRow,
    /// The first row of the list that is shown.
    pub(super) first_row: usize,
    /// The first line of the text that is shown.
    pub(super) first_line: usize,
    /// The lines of text that the screen had room for.
    pub(super) page: usize,
    /// A sentence in place of the count of what is chosen, until the next key.
    pub(super) message: Option<String>,
}

impl Picker {
    /// Makes a choice in which nothing is chosen. There is at least one item.
    pub(super) fn new(title: String, items: Vec<ChoiceItem>) -> Picker {
        let cursor = ListRow { item: 0, part: None };
        Picker { title, items, cursor, first_row: 0, first_line: 0, page: 1, message: None }
    }

    /// Returns the place of the change whose details have to be supplied before the next picture.
    pub(super) fn wanted(&self) -> Option<usize> {
        let item = &self.items[self.cursor.item];
        (item.details.is_none() && item.blocked.is_none()).then_some(self.cursor.item)
    }

    /// Supplies the details of a change. The parts of the only change are listed at once.
    pub(super) fn supply(&mut self, at: usize, mut details: ItemDetails) {
        let is_only = self.items.len() == 1;
        let item = &mut self.items[at];
        details.parts.iter_mut().for_each(|part| part.is_chosen = item.is_chosen);
        item.is_open = is_only && !details.parts.is_empty();
        item.details = Some(details);
    }

    /// Notes that a change cannot be chosen.
    pub(super) fn block(&mut self, at: usize, why: String) {
        self.items[at].set(false);
        self.items[at].blocked = Some(why);
    }

    /// Lists the rows of the list.
    pub(super) fn rows(&self) -> Vec<ListRow> {
        let of = |(item, one): (usize, &ChoiceItem)| {
            let parts = if one.is_open { one.parts().len() } else { 0 };
            [None].into_iter().chain((0..parts).map(Some)).map(move |part| ListRow { item, part }).collect::<Vec<_>>()
        };
        self.items.iter().enumerate().flat_map(of).collect()
    }

    /// Returns the lines of the text at the cursor.
    pub(super) fn text(&self) -> Vec<String> {
        let item = &self.items[self.cursor.item];
        match (&item.blocked, &item.details, self.cursor.part) {
            (Some(why), ..) => vec![format!("This change cannot be chosen: {why}.")],
            (None, Some(details), Some(part)) => details.parts[part].text.clone(),
            (None, Some(details), None) => details.text.clone(),
            (None, None, _) => Vec::new(),
        }
    }

    /// Lists the chosen changes by their places.
    pub(super) fn picked(&self) -> Vec<(usize, PickedParts)> {
        let of = |(at, item): (usize, &ChoiceItem)| match item.mark() {
            ChoiceMark::All => Some((at, PickedParts::Whole)),
            ChoiceMark::Part => {
                let chosen = item.parts().iter().enumerate().filter(|(_, part)| part.is_chosen);
                Some((at, PickedParts::Some(chosen.map(|(place, _)| place).collect())))
            }
            ChoiceMark::None | ChoiceMark::Blocked => None,
        };
        self.items.iter().enumerate().filter_map(of).collect()
    }

    /// Has a key take effect.
    pub(super) fn press(&mut self, key: KeyPress) -> PickerStep {
        self.message = None;
        match key {
            KeyPress::Up | KeyPress::Letter('k') => self.move_by(-1),
            KeyPress::Down | KeyPress::Letter('j') => self.move_by(1),
            KeyPress::Home | KeyPress::Letter('g') => self.move_by(isize::MIN),
            KeyPress::End | KeyPress::Letter('G') => self.move_by(isize::MAX),
            KeyPress::PageUp | KeyPress::Letter('u') => self.first_line = self.first_line.saturating_sub(self.page),
            KeyPress::PageDown | KeyPress::Letter('d') => self.first_line = self.first_line.saturating_add(self.page),
            KeyPress::Right | KeyPress::Letter('l') => self.open(),
            KeyPress::Left | KeyPress::Letter('h') => self.close(),
            KeyPress::Letter(' ') => self.toggle(),
            KeyPress::Letter('a') => self.toggle_all(),
            KeyPress::Enter if self.picked().is_empty() => {
                self.message = Some("Nothing is chosen: space chooses, q quits.".to_owned());
            }
            KeyPress::Enter => return PickerStep::Accept,
            KeyPress::Letter('q') | KeyPress::EndOfInput => return PickerStep::Quit,
            KeyPress::Interrupt => return PickerStep::Interrupt,
            KeyPress::Letter(_) => {}
        }
        PickerStep::Stay
    }

    fn move_by(&mut self, by: isize) {
        let rows = self.rows();
        let at = rows.iter().position(|row| *row == self.cursor).unwrap_or_default();
        self.go_to(rows[at.saturating_add_signed(by).min(rows.len() - 1)]);
    }

    fn go_to(&mut self, row: ListRow) {
        if row != self.cursor {
            (self.cursor, self.first_line) = (row, 0);
        }
    }

    fn open(&mut self) {
        let item = &mut self.items[self.cursor.item];
        match item.parts().is_empty() {
            true => self.message = Some("This change can only be chosen as a whole.".to_owned()),
            false => item.is_open = true,
        }
    }

    fn close(&mut self) {
        self.items[self.cursor.item].is_open = false;
        self.go_to(ListRow { part: None, ..self.cursor });
    }

    fn toggle(&mut self) {
        let item = &mut self.items[self.cursor.item];
        match (&item.blocked, &mut item.details, self.cursor.part) {
            (Some(why), ..) => self.message = Some(format!("This change cannot be chosen: {why}.")),
            (None, Some(details), Some(part)) => details.parts[part].is_chosen ^= true,
            (None, ..) => item.set(item.mark() != ChoiceMark::All),
        }
    }

    /// Chooses all that the command without a choice takes back, then all changes, then none.
    fn toggle_all(&mut self) {
        let is_whole = |item: &&ChoiceItem| item.mark() == ChoiceMark::All;
        let free = || self.items.iter().filter(|item| item.blocked.is_none());
        let meant = || free().filter(|item| item.is_default);
        let has_others = free().any(|item| !item.is_default);
        let (is_all, is_meant) = (free().all(|item| is_whole(&item)), meant().all(|item| is_whole(&item)));
        let takes: fn(&ChoiceItem) -> bool = match (is_all, is_meant) {
            (true, _) => |_| false,
            (false, true) => |_| true,
            (false, false) => |item| item.is_default || item.mark() == ChoiceMark::All,
        };
        self.message = match (is_all, is_meant) {
            (false, true) if has_others => Some("Also chosen: changes that might be someone else's."),
            (false, false) if has_others => {
                Some("Press `a` again to also choose changes that might be someone else's.")
            }
            _ => None,
        }
        .map(str::to_owned);
        for item in self.items.iter_mut().filter(|item| item.blocked.is_none()) {
            let is_chosen = takes(item);
            item.set(is_chosen);
        }
    }
}
