//! `piton config`: show, check, trust.

use serde_json::json;

use super::verbs::{ConfigAction, ConfigArgs};
use super::{Context, Exit, print};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::text::printable;
use crate::settings::{WORKSPACE_FILE, trust, user_file};

pub fn config(context: &mut Context, args: &ConfigArgs) -> Result<Exit> {
    match args.action {
        ConfigAction::Show => show(context),
        ConfigAction::Check => check(context),
        ConfigAction::Trust => trust_file(context),
    }
}

fn show(context: &Context) -> Result<Exit> {
    let effective = context.settings()?;
    if context.json {
        let values: Vec<_> = effective
            .settings
            .iter()
            .map(|setting| json!({ "key": setting.key, "value": setting.value, "origin": setting.origin.to_string() }))
            .collect();
        print::json(&json!({ "settings": values, "warnings": effective.warnings }))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for setting in &effective.settings {
        let value = setting.value.as_str().map_or_else(|| setting.value.to_string(), str::to_owned);
        let origin = print::faint(&printable(&setting.origin.to_string()));
        add_line!(text, "{:<26} {:<32} {origin}", setting.key, printable(&value));
    }
    print::data(&text)?;
    effective.warnings.iter().for_each(|warning| print::warning(warning));
    Ok(Exit::Done)
}

fn check(context: &Context) -> Result<Exit> {
    let effective = context.settings()?;
    crate::engine::classifier(&effective)?;
    if context.json {
        let sources: Vec<String> = effective.policy.sources.iter().map(|path| path.display().to_string()).collect();
        print::json(&json!({ "sources": sources, "warnings": effective.warnings }))?;
    } else {
        effective.warnings.iter().for_each(|warning| print::warning(warning));
        let mut text = String::new();
        if effective.policy.sources.is_empty() {
            let place = user_file().map_or_else(String::new, |path| format!("; yours would be {}", print::path(&path)));
            add_line!(text, "No configuration files: the defaults hold{place}.");
        }
        for source in &effective.policy.sources {
            add_line!(text, "read {}", print::path(source));
        }
        print::data(&text)?;
    }
    Ok(if effective.warnings.is_empty() { Exit::Done } else { Exit::Part })
}

fn trust_file(context: &Context) -> Result<Exit> {
    let root = context.workspace()?.path;
    let path = root.join(WORKSPACE_FILE);
    let facts = path.symlink_metadata().map_err(|error| {
        Error::new(Code::NoSuchCheckpoint, "this workspace has no configuration of its own")
            .path(&path)
            .caused_by(error)
    })?;
    if !facts.is_file() {
        return Err(Error::new(Code::BadPath, "only a real file can be trusted").path(&path));
    }
    let content = std::fs::read(&path).at("reading", &path)?;
    trust::trust(context.home.path(), &path, &content)?;
    print::data(&format!("Trusted: {} as it is now. After an edit it must be trusted again.\n", print::path(&path)))?;
    Ok(Exit::Done)
}
