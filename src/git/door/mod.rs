//! The git door: that by which git asks piton before it goes on. A setting, two hooks, and variables that have the setting alone.
//!
//! Text in, text out: nothing here reads or writes a file. `hooks/git/` has the scripts.

pub mod config;
pub mod hooks;
pub mod variables;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::quote::sh;

/// The setting with the program that git asks before it looks at the work tree.
pub const KEY: &str = "core.fsmonitor";

/// The text between the two commands of a value: git adds its own arguments to the last one alone.
const OR_ELSE: &[u8] = b" \"$@\"; ";

/// Returns the value of [`KEY`]. git gives it to a shell with its own arguments behind it; where the program is gone, the command
/// fails, and git looks at everything itself. `small` is a program that is called in its place as long as it is there (`hooks::small`).
pub fn value(program: &OsStr, small: Option<&OsStr>) -> OsString {
    let first = small.map(|small| [&command(small), OR_ELSE].concat()).unwrap_or_default();
    OsString::from_vec([first, command(program)].concat())
}

fn command(program: &OsStr) -> Vec<u8> {
    let program = sh(program);
    let parts: [&[u8]; 5] = [b"[ -x ", &program, b" ] && exec ", &program, b" git-door fsmonitor"];
    parts.concat()
}

/// Returns the program that a value of [`KEY`] calls, if it is one of piton's.
pub fn program_of(value: &OsStr) -> Option<OsString> {
    programs_of(value).map(|(program, _)| program)
}

/// Returns the small program that a value of [`KEY`] calls first, if it is one of piton's and has one.
pub fn small_of(value: &OsStr) -> Option<OsString> {
    programs_of(value)?.1
}

fn programs_of(value: &OsStr) -> Option<(OsString, Option<OsString>)> {
    let value = value.as_bytes();
    if let Some(program) = called(value) {
        return Some((program, None));
    }
    // A path may have the same text in it.
    let mut places = value.windows(OR_ELSE.len()).enumerate().filter(|(_, part)| *part == OR_ELSE);
    places.find_map(|(at, _)| Some((called(&value[at + OR_ELSE.len()..])?, Some(called(&value[..at])?))))
}

/// Returns the program of one command.
fn called(text: &[u8]) -> Option<OsString> {
    let inner = text.strip_prefix(b"[ -x ")?;
    // The word stands there twice.
    let length = inner.len().checked_sub(" ] && exec  git-door fsmonitor".len())? / 2;
    let program = unquoted(inner.get(..length)?)?;
    (command(&program) == text).then_some(program)
}

/// Returns true for a value by which git was to ask piton, though it may be damaged since.
pub fn is_pitons(value: &OsStr) -> bool {
    value.to_string_lossy().contains(" git-door fsmonitor")
}

/// Returns the word that [`sh`] has quoted.
fn unquoted(word: &[u8]) -> Option<OsString> {
    let inner = word.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let mut found = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [first, behind @ ..] = rest {
        let is_quote = *first == b'\'';
        rest = if is_quote { rest.strip_prefix(b"'\\''")? } else { behind };
        found.push(*first);
    }
    Some(OsString::from_vec(found))
}

/// Returns true for a value of [`KEY`] by which git asks nobody.
pub fn is_off(value: &OsStr) -> bool {
    let value = value.to_string_lossy().to_lowercase();
    matches!(value.as_str(), "" | "false" | "no" | "off" | "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_names_its_program() {
        let programs = [
            "/usr/bin/piton",
            "/opt/it's \"here\"/pi ton",
            "/a] && exec 'b' git-door fsmonitor",
            "/\\$x%",
            "/x' git-door fsmonitor \"$@\"; [ -x '/y",
        ]
        .map(OsStr::new);
        for program in programs {
            assert_eq!(programs_of(&value(program, None)), Some((program.into(), None)));
            for small in programs {
                let both = value(program, Some(small));
                assert_eq!((program_of(&both).as_deref(), small_of(&both).as_deref()), (Some(program), Some(small)));
                assert!(is_pitons(&both));
            }
        }
        let whole = value(programs[0], Some(programs[0])).into_string().unwrap();
        let other = [
            "",
            "true",
            "[ -x 'a' ] && exec 'b' git-door fsmonitor",
            "/usr/bin/piton git-door fsmonitor",
            &whole.replacen(" ] && ", " ] || ", 1),
            &whole[..whole.len() - 1],
        ];
        for value in other {
            assert_eq!(program_of(OsStr::new(value)), None, "{value}");
        }
        assert!(is_pitons(OsStr::new(other[3])) && !is_pitons(OsStr::new("true")));
        assert!(["", "False", "0"].into_iter().all(|value| is_off(OsStr::new(value))) && !is_off(OsStr::new("true")));
    }
}
