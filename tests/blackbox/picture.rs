//! The picture in `README.md` and the output below it: a real run of the built binary, drawn as `docs/undo.svg`.
//!
//! `PITON_RECORD=1` draws the picture and writes the README's block again.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::Lab;

/// The marks around the block in the README.
const BEGIN: &str = "<!-- made by tests/blackbox/picture.rs -->\n```console\n";
const END: &str = "```\n";

/// The workspace's path in the picture.
const SHOWN: &str = "/home/you/shop";

/// The size of a letter and of the margin, in pixels.
const LETTER: (usize, usize) = (8, 19);
const MARGIN: usize = 16;

/// Sends an event of an agent's session, whose client runs no daemon.
fn hook(lab: &Lab, event: &str, fields: &Value) {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["hook", "claude-code", event, "--no-daemon"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut payload = json!({ "hook_event_name": event, "session_id": "s", "prompt_id": "p-1", "cwd": lab.work });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Returns a session: an agent deletes a directory, and a person undoes that. Names and times that differ between two runs are replaced.
fn session() -> String {
    let lab = Lab::new();
    lab.sh("mkdir src; for name in cart main price; do seq 12 > src/$name.rs; done; echo todo > notes.md");
    hook(&lab, "UserPromptSubmit", &json!({ "prompt": "tidy up the build directories" }));
    let call = json!({ "tool_name": "Bash", "tool_input": { "command": "rm -rf src" }, "tool_use_id": "u1" });
    hook(&lab, "PreToolUse", &call);
    lab.sh("rm -rf src");
    hook(&lab, "PostToolUse", &call);
    hook(&lab, "Stop", &json!({}));
    let mut text = "# the agent: rm -rf src\n".to_owned();
    for line in ["piton list", "piton undo --yes", "ls src"] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = match words.as_slice() {
            ["piton", args @ ..] => lab.piton(args).stdout,
            _ => String::from_utf8(lab.command("sh", &lab.work).args(["-c", line]).output().unwrap().stdout).unwrap(),
        };
        text += &format!("$ {line}\n{}\n", said.trim_end());
    }
    let text = text.replace(lab.work.to_str().unwrap(), SHOWN);
    // The run has a name of its own, and the turn a time.
    let run = text.split_once("run ").unwrap().1.split(',').next().unwrap().to_owned();
    let time = text.split_once(&format!("run {run}, ")).unwrap().1.split("):").next().unwrap().to_owned();
    text.replace(&run, "claude-code-1").replace(&time, "2026-11-30 13:20")
}

/// Draws a session as a terminal: the lines that a person types in bold, those of the agent in another colour.
fn drawn(session: &str) -> String {
    let columns = session.lines().map(|line| line.chars().count()).max().unwrap();
    let (wide, high) = (columns * LETTER.0 + 2 * MARGIN, session.lines().count() * LETTER.1 + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" role=\"img\" \
         aria-label=\"An agent deletes a directory, and piton undo restores it\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e2227\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d7dae0\" xml:space=\"preserve\">\n"
    );
    for (number, line) in session.lines().enumerate() {
        let style = match line.chars().next() {
            Some('$') => " fill=\"#ffffff\" font-weight=\"bold\"",
            Some('#') => " fill=\"#e5786d\" font-weight=\"bold\"",
            _ => "",
        };
        let (y, line) = (MARGIN + (number + 1) * LETTER.1 - 5, line.replace('&', "&amp;").replace('<', "&lt;"));
        let long = line.chars().count() * LETTER.0;
        let fit = if long == 0 { String::new() } else { format!(" textLength=\"{long}\"") };
        let at = line.chars().take_while(|c| *c == ' ').count();
        let (x, line) = (MARGIN + at * LETTER.0, line.trim_start());
        let fit = if at == 0 { fit } else { format!(" textLength=\"{}\"", long - at * LETTER.0) };
        svg += &format!("<text x=\"{x}\" y=\"{y}\"{fit}{style}>{line}</text>\n");
    }
    svg + "</g>\n</svg>\n"
}

#[test]
fn the_readme_shows_a_real_run() {
    let session = session();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (picture, page) = (root.join("docs/undo.svg"), root.join("README.md"));
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("README.md has the block");
    let (shown, after) = rest.split_once(END).unwrap();
    let svg = drawn(&session);
    if std::env::var_os("PITON_RECORD").is_some() {
        std::fs::write(&picture, svg).unwrap();
        std::fs::write(&page, format!("{before}{BEGIN}{session}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, session, "PITON_RECORD=1 writes it again");
    assert_eq!(std::fs::read_to_string(&picture).unwrap(), svg, "PITON_RECORD=1 draws it again");
}
