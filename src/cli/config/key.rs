//! `piton config get`, `explain` and `path`: one key, and the files that settings come from.

use serde_json::Value;

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::print;
use crate::error::Result;
use crate::model::text::printable;
use crate::protocol::{ExplainDocument, SettingFilesDocument, SettingItem};
use crate::settings::lookup::{key_facts, value_of};
use crate::settings::{WORKSPACE_FILE, user_file};

/// Prints the value in force of a key, and nothing else.
///
/// # Errors
/// As [`value_of`], and those of reading the settings.
pub(super) fn get(context: &Context, name: &str) -> Result<Exit> {
    let effective = context.settings()?;
    let setting = value_of(&effective, name)?;
    match context.json {
        true => {
            let origin = setting.origin.to_string();
            print::json(&SettingItem { key: setting.key, value: setting.value, origin })?;
        }
        false => print::data(&format!("{}\n", shown(&setting.value)))?,
    }
    effective.faults().iter().for_each(|fault| print::warning(fault));
    Ok(Exit::Done)
}

/// Describes a key: its meaning, the values that it accepts, its default, and where its value comes from.
///
/// # Errors
/// As [`key_facts`], and those of reading the settings.
pub(super) fn explain(context: &Context, name: &str) -> Result<Exit> {
    let facts = key_facts(name)?;
    let effective = context.settings()?;
    let setting = value_of(&effective, facts.name)?;
    let origin = setting.origin.to_string();
    if context.json {
        print::json(&ExplainDocument {
            key: facts.name.to_owned(),
            about: facts.about,
            accepts: facts.accepts,
            default: facts.default,
            value: setting.value,
            origin,
            variable: facts.variable,
            direction: facts.direction.to_owned(),
        })?;
    } else {
        let mut text = format!("{}\n  {}\n\n", print::bold(facts.name), facts.about);
        add_line!(
            text,
            "  value     {}  {}",
            shown(&setting.value),
            print::faint(&format!("({})", printable(&origin)))
        );
        add_line!(text, "  default   {}", shown(&facts.default));
        add_line!(text, "  accepts   {}", facts.accepts);
        if let Some(variable) = &facts.variable {
            add_line!(text, "  variable  {variable}");
        }
        let trust = match facts.direction {
            "more" => "less protection waits for `piton config trust`; more protection applies at once",
            "less" => "a larger value waits for `piton config trust`; a smaller value applies at once",
            _ => "every change applies at once",
        };
        add_line!(text, "  change    {trust}");
        print::data(&text)?;
    }
    effective.faults().iter().for_each(|fault| print::warning(fault));
    Ok(Exit::Done)
}

/// Prints the files that settings are read from, the weakest first.
///
/// # Errors
/// Those of reading the settings.
pub(super) fn path(context: &Context) -> Result<Exit> {
    let effective = context.settings()?;
    let sources: Vec<String> = effective.policy.sources.iter().map(|path| path.display().to_string()).collect();
    let user = user_file().map(|path| path.display().to_string());
    let exit = if sources.is_empty() { Exit::Nothing } else { Exit::Done };
    if context.json {
        let workspace = context.root()?.join(WORKSPACE_FILE).display().to_string();
        print::json(&SettingFilesDocument { sources, user, workspace })?;
        return Ok(exit);
    }
    print::data(&effective.policy.sources.iter().map(|path| format!("{}\n", print::path(path))).collect::<String>())?;
    if sources.is_empty() {
        let place = user.map_or_else(String::new, |path| format!(" Your own file would be {}.", printable(&path)));
        print::say(&format!("There is no settings file, so the defaults apply.{place}"));
    }
    Ok(exit)
}

/// Returns a value as a person writes it: a text without quotes, anything else as JSON.
pub(super) fn shown(value: &Value) -> String {
    printable(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
