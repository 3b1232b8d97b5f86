//! `piton config edit`: a settings file in the person's editor, checked afterwards.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use signal_hook::consts::SIGINT;

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::person;
use super::super::print;
use super::check::check;
use super::file::SettingsFile;
use crate::error::{Code, Error, IoContext, Result};
use crate::settings::lookup::example;
use crate::sys::fs::durable::with_callers_umask;

/// Opens a settings file in the editor, and reports the mistakes in it. A new file begins with the commented defaults, and is removed
/// again if nothing was changed in it.
///
/// # Errors
/// `needs-person` in a session of an agent; `internal` if the editor fails; the last mistake in the settings.
pub(super) fn edit(context: &mut Context, workspace: Option<&Path>) -> Result<Exit> {
    person::require("only a person can edit settings")?;
    let file = SettingsFile::of(context, workspace)?;
    let is_new = file.path.symlink_metadata().is_err();
    let blank = example();
    if is_new {
        file.write(None, &blank)?;
    }
    let opened = open(&file.path);
    if is_new && std::fs::read(&file.path).is_ok_and(|content| content == blank.as_bytes()) {
        std::fs::remove_file(&file.path).at("removing", &file.path)?;
        opened?;
        print::say("Nothing was changed, and no file was created.");
        return Ok(Exit::Nothing);
    }
    opened?;
    check(context, None)
}

/// Runs the editor on a file, and waits for its end.
fn open(path: &Path) -> Result<()> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| OsString::from("vi"));
    let mut line = OsString::from("exec ");
    line.push(&editor);
    line.push(" \"$1\"");
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).arg("sh").arg(path);
    // Ctrl-C is the editor's. Without a handler, it would end this program and leave an editor that no shell waits for.
    let _ = signal_hook::flag::register(SIGINT, Arc::default());
    let status = with_callers_umask(|| command.spawn())
        .and_then(|mut child| child.wait())
        .at("starting", Path::new("/bin/sh"))?;
    if status.success() {
        return Ok(());
    }
    let text = format!("the editor `{}` failed ({status})", editor.to_string_lossy());
    Err(Error::new(Code::Internal, text).path(path).hint("set VISUAL or EDITOR to a program that edits a file"))
}
