//! The choice, driven by keys, and its pictures.

use super::keys::{KeyPress, KeyReader};
use super::layout::{RowStyle, ScreenRow};
use super::picker::{ChoiceItem, ItemDetails, ItemPart, PickedParts, Picker, PickerStep};
use crate::model::text::width;

fn item(name: &str, state: &'static str) -> ChoiceItem {
    ChoiceItem { name: name.to_owned(), state, is_default: true, ..ChoiceItem::default() }
}

fn hunk(number: usize) -> ItemPart {
    let title = format!("@@ -{number}0,3 +{number}0,3 @@");
    let text = vec![title.clone(), " same".to_owned(), format!("-old {number}"), format!("+new {number}")];
    ItemPart { title, text, is_chosen: false }
}

/// A choice among a file of three hunks, a new file, a change that another run shares, and one that cannot be chosen.
fn picker() -> Picker {
    let mut others = item("lib/shared.rs", "changed");
    (others.is_default, others.notes) = (false, vec!["shared".to_owned()]);
    let mut kept = item("edited", "kept");
    kept.blocked = Some("it has changed since".to_owned());
    let items = vec![item("src/search.rs", "changed"), item("notes.txt", "new"), others, kept];
    Picker::new("Undo of turn \"fix the search\" (t-3)".to_owned(), items)
}

/// Supplies what the choice wants, as the loop at the terminal does.
fn supply(picker: &mut Picker) {
    while let Some(at) = picker.wanted() {
        let parts = if at == 0 { (1..=3).map(hunk).collect() } else { Vec::new() };
        let text = vec![format!("text of {}", picker.items[at].name), "@@ -1 +1 @@".to_owned(), "+line".to_owned()];
        picker.supply(at, ItemDetails { text, parts });
    }
}

/// Presses keys, given as the bytes of a terminal. Returns the effect of the last one.
fn press(picker: &mut Picker, keys: &str) -> PickerStep {
    supply(picker);
    let mut last = PickerStep::Stay;
    for key in KeyReader::default().read(keys.as_bytes()) {
        last = picker.press(key);
        supply(picker);
    }
    last
}

fn lines(picture: &[ScreenRow]) -> Vec<&str> {
    picture.iter().map(|row| row.text.trim_end()).collect()
}

fn picked(picker: &Picker) -> Vec<(usize, Option<Vec<usize>>)> {
    let parts = |parts| match parts {
        PickedParts::Whole => None,
        PickedParts::Some(places) => Some(places.into_iter().collect()),
    };
    picker.picked().into_iter().map(|(at, some)| (at, parts(some))).collect()
}

#[test]
fn the_screen_of_80_by_24_shows_list_text_and_keys() {
    let mut picker = picker();
    press(&mut picker, "\x1b[C\x1b[B ");
    let picture = picker.draw(80, 24);
    let expected = [
        "Undo of turn \"fix the search\" (t-3)",
        "  [~]- changed src/search.rs  (1 of 3 parts)",
        ">     [x] @@ -10,3 +10,3 @@",
        "      [ ] @@ -20,3 +20,3 @@",
        "      [ ] @@ -30,3 +30,3 @@",
        "  [ ]  new     notes.txt",
        "  [ ]  changed lib/shared.rs  (shared)",
        "   -   kept    edited",
        "── src/search.rs ───────────────────────────────────────────────────────────────",
        "@@ -10,3 +10,3 @@",
        " same",
        "-old 1",
        "+new 1",
    ];
    let shown = lines(&picture);
    assert_eq!(shown[..expected.len()], expected, "{shown:#?}");
    assert_eq!(shown.len(), 24);
    assert!(shown[expected.len()..21].iter().all(|line| line.is_empty()), "{shown:#?}");
    assert_eq!(shown[21], "Chosen: 1 of 4 changes, in part · row 2 of 7");
    assert_eq!(shown[22], "↑↓ move · space choose · a all · → open · ← close · PgUp PgDn text");
    assert_eq!(shown[23], "enter continue · q quit");
    let styles: Vec<RowStyle> = picture[9..13].iter().map(|row| row.style).collect();
    assert_eq!(styles, [RowStyle::Heading, RowStyle::Plain, RowStyle::Removed, RowStyle::Added]);
    assert_eq!((picture[1].style, picture[2].style), (RowStyle::Plain, RowStyle::AtCursor));
}

#[test]
fn the_screen_of_60_by_20_fits_and_scrolls() {
    let mut picker = picker();
    let deep = format!("{}/the_end.rs", vec!["directory"; 20].join("/"));
    picker.items.extend((0..30).map(|n| item(&format!("many/{n}"), "new")));
    picker.items.push(item(&deep, "changed"));
    press(&mut picker, "G");
    let wide = "日本語".repeat(40);
    let text = [wide, "\tx\u{1b}[31m\u{202e}y".to_owned(), "z".repeat(10_000)];
    let text = text.into_iter().chain((0..40).map(|n| format!("+line {n}"))).collect();
    picker.items[34].details = Some(ItemDetails { text, parts: Vec::new() });
    let picture = picker.draw(60, 20);
    let shown = lines(&picture);
    assert_eq!(shown.len(), 20, "{shown:#?}");
    assert!(shown.iter().all(|line| width(line) <= 60), "{shown:#?}");
    assert!(shown[6].starts_with("> [ ]  changed …") && shown[6].ends_with("directory/the_end.rs"), "{shown:#?}");
    assert!(shown[7].contains("/the_end.rs  lines 1-9 of 50 ──"), "{shown:#?}");
    assert!(shown.contains(&"    x\\u{1b}[31m\\u{202e}y"), "nothing reaches the terminal as it is: {shown:#?}");
    assert_eq!(shown[16], "z".repeat(60));
    assert_eq!(shown[17], "Nothing chosen of 35 changes · row 35 of 35");
    assert_eq!(shown[18], "↑↓ move · space choose · a all · → open · ← close");
    assert_eq!(shown[19], "PgUp PgDn text · enter continue · q quit");
    // The end of the text, and not beyond.
    press(&mut picker, "\x1b[6~");
    let second = picker.draw(60, 20);
    assert!(lines(&second)[7].contains("lines 10-18 of 50"), "{second:#?}");
    assert_eq!(lines(&second)[8], format!("{}…", "z".repeat(59)), "a long line is cut");
    for _ in 0..20 {
        press(&mut picker, "d");
        picker.draw(60, 20);
    }
    let last = picker.draw(60, 20);
    assert!(lines(&last)[7].contains("lines 42-50 of 50") && lines(&last)[16] == "+line 39", "{last:#?}");
    press(&mut picker, "\x1b[5~");
    assert!(lines(&picker.draw(60, 20))[7].contains("lines 33-41 of 50"));
    // Another row begins with its own text, and the list follows the cursor.
    press(&mut picker, "g");
    let first = picker.draw(60, 20);
    assert_eq!(lines(&first)[1], "> [ ]+ changed src/search.rs  (0 of 3 parts)");
    assert_eq!(lines(&first)[8], "text of src/search.rs");
}

#[test]
fn keys_choose_files_and_hunks() {
    let mut picker = picker();
    assert_eq!(press(&mut picker, "\r"), PickerStep::Stay, "nothing is chosen");
    assert!(lines(&picker.draw(80, 24))[21].starts_with("Nothing is chosen: space chooses"));
    // A whole file, and back.
    press(&mut picker, " ");
    assert_eq!(picked(&picker), [(0, None)]);
    press(&mut picker, " ");
    assert_eq!(picked(&picker), []);
    // Hunks one by one; all of them are the whole file.
    press(&mut picker, "ljj ");
    assert_eq!(picked(&picker), [(0, Some(vec![1]))]);
    press(&mut picker, "k j j ");
    assert_eq!(picked(&picker), [(0, Some(vec![0, 2]))], "the second was taken out again");
    press(&mut picker, "k ");
    assert_eq!(picked(&picker), [(0, None)]);
    // Closed, it keeps its hunks.
    press(&mut picker, " h");
    assert_eq!((picked(&picker), picker.rows().len()), (vec![(0, Some(vec![0, 2]))], 4));
    // From a part, space on the file chooses all.
    press(&mut picker, " ");
    assert_eq!(picked(&picker), [(0, None)]);
    assert_eq!(press(&mut picker, "\r"), PickerStep::Accept);
}

#[test]
fn all_means_all_that_the_plain_command_takes() {
    let mut picker = picker();
    press(&mut picker, "a");
    assert_eq!(picked(&picker), [(0, None), (1, None)]);
    assert!(
        lines(&picker.draw(80, 24))[21]
            .starts_with("Press `a` again to also choose changes that might be someone else's")
    );
    press(&mut picker, "a");
    assert_eq!(picked(&picker), [(0, None), (1, None), (2, None)]);
    press(&mut picker, "a");
    assert_eq!(picked(&picker), []);
    press(&mut picker, "jj ");
    // One that cannot be chosen is not, and says why.
    press(&mut picker, "j ");
    assert_eq!(picked(&picker), [(2, None)]);
    let shown = picker.draw(80, 24);
    assert_eq!(lines(&shown)[21], "This change cannot be chosen: it has changed since.");
    assert!(lines(&shown).contains(&"This change cannot be chosen: it has changed since."));
    // A file that is opened after it was chosen has all its parts chosen.
    let mut picker = self::picker();
    picker.items[1].is_chosen = true;
    press(&mut picker, "a");
    assert_eq!(picked(&picker), [(0, None), (1, None)]);
    let mut picker = self::picker();
    picker.items.iter_mut().for_each(|item| item.is_default = false);
    press(&mut picker, "a");
    assert_eq!(picked(&picker), [(0, None), (1, None), (2, None)], "there is nothing that the command takes by itself");
    assert!(lines(&picker.draw(80, 24))[21].contains("might be someone else's"));
}

#[test]
fn quitting_is_not_an_interruption() {
    for (keys, step) in [
        ("q", PickerStep::Quit),
        (" q", PickerStep::Quit),
        ("\x04", PickerStep::Quit),
        (" \x03", PickerStep::Interrupt),
        ("x", PickerStep::Stay),
        ("\x1a", PickerStep::Stay),
    ] {
        assert_eq!(press(&mut picker(), keys), step, "{keys:?}");
    }
    assert_eq!(picker().press(KeyPress::Letter('z')), PickerStep::Stay);
}

#[test]
fn the_only_file_shows_its_hunks_at_once_and_errors_block() {
    let mut picker = Picker::new("t".to_owned(), vec![item("one", "changed")]);
    supply(&mut picker);
    assert_eq!(picker.rows().len(), 4);
    picker.block(0, "the files have changed since they were shown; nothing was done".to_owned());
    assert_eq!((press(&mut picker, " \r"), picked(&picker)), (PickerStep::Stay, Vec::new()));
}

#[test]
fn a_small_screen_says_so_and_none_breaks() {
    let mut picker = picker();
    supply(&mut picker);
    assert_eq!(lines(&picker.draw(39, 24)), ["Too small (39x24); q quits."]);
    for columns in 0..90 {
        for rows in 0..30 {
            let picture = picker.draw(columns, rows);
            assert!(picture.len() <= rows.max(1), "{columns}x{rows}");
            assert!(picture.iter().all(|row| width(&row.text) <= columns.max(1)), "{columns}x{rows}: {picture:#?}");
        }
    }
}
