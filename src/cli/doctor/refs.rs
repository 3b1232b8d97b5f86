//! `piton doctor --refs`: does everything that names a checkpoint find it?

use crate::checkpoint::records::validate::{Finding, check, repair};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::print;
use crate::cli::stop;
use crate::error::Result;
use crate::model::text::printable;
use crate::protocol::{RefFinding, RefsDocument};
use crate::store::Store;
use crate::sys::clock::boot_id;

/// `piton doctor --refs [--repair]`.
///
/// # Errors
/// When refs or records cannot be listed.
pub(super) fn doctor(context: &Context, puts_back: bool) -> Result<Exit> {
    let mut store = Store::open(context.home.path())?;
    store.report_to(&context.progress);
    store.recover(&context.home.workspaces(), &boot_id())?;
    let proven = store.read_everything(&stop::flow)?;
    let mut findings = check(&context.home, &store, &proven)?;
    if !context.json {
        print::data(&text(&findings))?;
    }
    let mut done = Vec::new();
    // A mended ref may be the one that another one was missing.
    for _ in 0..3 {
        let due: Vec<Finding> = findings.iter().filter(|it| it.repair.is_some() && puts_back).cloned().collect();
        if due.is_empty() {
            break;
        }
        for finding in due {
            let line = finding.repair.as_ref().map(ToString::to_string).unwrap_or_default();
            print::note(&format!("repairing: {line}"));
            match repair(&context.home, &store, &finding) {
                Ok(()) => done.push(line),
                Err(error) => print::warning(&error.text()),
            }
        }
        findings = check(&context.home, &store, &proven)?;
    }
    let left = findings.iter().any(|finding| finding.damage.is_harm());
    if context.json {
        print::json(&RefsDocument { findings: findings.iter().map(item).collect(), repaired: done.clone() })?;
    } else if puts_back {
        print::data(&format!("Repaired {}.\n{}", done.len(), if left { text(&findings) } else { String::new() }))?;
    }
    Ok(match (left, done.is_empty()) {
        (false, _) => Exit::Done,
        (true, true) => Exit::Damaged,
        (true, false) => Exit::Part,
    })
}

fn item(finding: &Finding) -> RefFinding {
    RefFinding {
        workspace: finding.workspace.clone(),
        kind: finding.damage.word().to_owned(),
        what: finding.damage.to_string(),
        harm: finding.damage.is_harm(),
        repair: finding.repair.as_ref().map(ToString::to_string),
    }
}

fn text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "Every referenced checkpoint exists. Every object in the store was read and is intact.\n".to_owned();
    }
    let mut text = String::new();
    for finding in findings {
        let of = if finding.workspace.is_empty() { String::new() } else { format!("{}: ", finding.workspace) };
        add_line!(text, "{of}{}", printable(&finding.damage.to_string()));
        if let Some(repair) = &finding.repair {
            add_line!(text, "  `--repair` would {}", printable(&repair.to_string()));
        }
    }
    text
}
