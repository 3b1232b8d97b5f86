//! A few interleavings of `tests/model/attribution.py`, which judges attribution and undo against the truth in the contents.

use std::process::{Command, Stdio};

use super::support::{Lab, lacking};

#[test]
fn undo_takes_only_what_the_turn_named_and_redo_leads_back_exactly() {
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return lacking("python3");
    }
    let Some(lab) = Lab::lasting() else { return };
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/attribution.py");
    let mut command = Command::new("python3");
    command.args([
        program,
        "--piton",
        env!("CARGO_BIN_EXE_piton"),
        "--count",
        "6",
        "--seeds",
        "2",
        "--judge",
        "took,redo,again,failed",
        "--dir",
    ]);
    let output = command.arg(lab.root()).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
