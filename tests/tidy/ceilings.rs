//! Figures on their way down: a folder may have as many findings as stand here, and no more.

use std::collections::BTreeMap;

use super::Finding;

/// Files in circles, names, openings, and long sentences, by folder. A folder that is not here has none.
const CEILINGS: &[(&str, [usize; 4])] =
    &[("docs", [0, 0, 0, 4]), ("src/cli", [0, 0, 1, 0]), ("src/doors", [0, 0, 0, 1]), ("src/engine", [0, 0, 0, 2])];

/// The rules that have a ceiling, in the order of its columns.
pub(crate) const RULES: [&str; 4] = ["files in circles", "names of types", "openings", "long sentences"];

/// Returns the findings of folders that have too many. Says which ceilings may be lowered.
pub(crate) fn above(found: [Vec<Finding>; 4]) -> Vec<Finding> {
    above_of(CEILINGS, found)
}

fn above_of(ceilings: &[(&str, [usize; 4])], found: [Vec<Finding>; 4]) -> Vec<Finding> {
    let mut by_folder: BTreeMap<String, [Vec<Finding>; 4]> = BTreeMap::new();
    for (folder, _) in ceilings {
        by_folder.entry((*folder).to_owned()).or_default();
    }
    for (rule, found) in found.into_iter().enumerate() {
        for finding in found {
            by_folder.entry(folder(&finding.path)).or_default()[rule].push(finding);
        }
    }
    let mut above = Vec::new();
    for (folder, found) in by_folder {
        let ceiling = ceilings.iter().find(|(name, _)| *name == folder).map_or([0; 4], |(_, ceiling)| *ceiling);
        let counts = [0, 1, 2, 3].map(|rule| found[rule].len());
        if (0..4).any(|rule| counts[rule] < ceiling[rule]) {
            println!("{folder}: lower the ceiling from {ceiling:?} to {counts:?}");
        }
        for (rule, mut found) in found.into_iter().enumerate() {
            if found.len() > ceiling[rule] {
                let text = format!("{} {}; at most {}:", found.len(), RULES[rule], ceiling[rule]);
                above.push(Finding::new(&folder, 1, text));
                above.append(&mut found);
            }
        }
    }
    above
}

/// The folder of the table to which a file belongs: two levels of `src`, one of anything else.
fn folder(path: &str) -> String {
    let levels = if path.starts_with("src/") { 2 } else { 1 };
    let parts: Vec<&str> = path.split('/').collect();
    parts[..levels.min(parts.len())].join("/")
}

#[test]
fn ceilings_hold() {
    let three = || (1..=3).map(|line| Finding::new("src/a/b.rs", line, "x".to_owned())).collect::<Vec<_>>();
    let above =
        |ceilings| above_of(ceilings, [vec![], three(), vec![], vec![]]).iter().map(Finding::text).collect::<Vec<_>>();
    assert_eq!(above(&[("src/a", [0, 3, 0, 0])]), Vec::<String>::new());
    assert_eq!(above(&[("src/a", [9, 4, 0, 0]), ("docs", [0, 0, 0, 9])]), Vec::<String>::new());
    assert_eq!(above(&[("src/a", [9, 2, 9, 9])])[..2], ["src/a:1: 3 names of types; at most 2:", "src/a/b.rs:1: x"]);
    assert_eq!(above(&[]).len(), 4);
}
