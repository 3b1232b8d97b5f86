//! Many runs: what `runs`, `list` and the preview of a rollback to a codon take in a workspace with thousands of typed
//! checkpoints.
//!
//! usage: runs DIR RUNS CODONS. Makes a workspace below DIR with RUNS runs of CODONS codons each, or uses the one that
//! is there. Prints medians of the built binary's verbs, as whole processes: `first` without the cache of commits,
//! `then` with it. For times of a release build: cargo bench --bench runs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use piton::checkpoint::runs::codon::{CodonMark, NewCodon};
use piton::checkpoint::runs::run::RunDetails;
use piton::checkpoint::{Home, Timeline, Workspace};
use piton::error::Result;
use piton::model::checkpoint::CheckpointKind;
use piton::model::policy::Durability;
use piton::sys::interrupt::Flow;

/// Runs of each verb, of which the median counts.
const TIMES: usize = 15;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let (Some(dir), Some(runs), Some(codons)) = (words.first(), number(1), number(2)) else {
        println!("usage: runs DIR RUNS CODONS");
        return Ok(());
    };
    let dir = Path::new(dir).canonicalize().expect("DIR is a directory");
    let (root, home) = (dir.join("workspace"), Home::at(&dir.join("home"))?);
    if !root.is_dir() {
        let begun = Instant::now();
        make(&root, &home, (runs, codons))?;
        println!("{} checkpoints on {runs} branches made in {:.1} s", runs * codons, begun.elapsed().as_secs_f64());
    }
    let middle = format!("r-{:05}", runs / 2);
    let codon = format!("codon-{}", codons / 2);
    let verbs: [(&str, Vec<&str>); 4] = [
        ("runs", vec!["runs", "--json"]),
        ("runs --tree, all of them", vec!["runs", "--tree", "-n", "1000000"]),
        ("list", vec!["list", "--json"]),
        (
            "rollback to a codon, preview",
            vec!["rollback", "codon", &codon, "end", "--run", &middle, "--preview", "--json"],
        ),
    ];
    let workspace = Workspace::open(&home, &root)?;
    for (name, verb) in verbs {
        let kept = workspace.dir.join("commits");
        let first = (0..3).map(|_| {
            // Absent is as good as removed.
            let _ = std::fs::remove_file(&kept);
            time(&root, home.path(), &verb)
        });
        let first = median(first.collect());
        let then = median((0..TIMES).map(|_| time(&root, home.path(), &verb)).collect());
        println!("{name:<32} first {first:>8.1} ms   then {then:>8.1} ms");
    }
    Ok(())
}

fn make(root: &Path, home: &Home, (runs, codons): (usize, usize)) -> Result<()> {
    std::fs::create_dir_all(root.join("src")).expect("a directory can be made");
    (0..50).for_each(|n| write(root, n, "as it began"));
    let policy = piton::settings::load(Some(root), home.path(), &[])?.policy;
    let policy = piton::model::policy::Policy { durability: Durability::Process, ..policy };
    let mut timeline = Timeline::open(home, Workspace::open(home, root)?, policy)?;
    for run in 0..runs {
        let name = format!("r-{run:05}");
        timeline.start_run(&RunDetails {
            run: name.clone(),
            goal: Some("to be measured".into()),
            ..RunDetails::default()
        })?;
        for n in 0..codons {
            let id = format!("codon-{n}");
            let tracked = vec![format!("src/f{n}*")];
            timeline.start_codon(
                &name,
                &NewCodon { id: id.clone(), name: Some(format!("Step {n}")), tracked, client: 0 },
            )?;
            write(root, n % 50, &format!("{name} {id}"));
            let mark =
                CodonMark { kind: CheckpointKind::Completed, id: Some(id), name: None, reason: None, turn: None };
            timeline.mark_codon(&name, &mark, &|| Flow::Continue)?;
        }
        if run % 20 == 0 {
            timeline.settle(&|| Flow::Continue)?;
        }
    }
    timeline.settle(&|| Flow::Continue)
}

fn write(root: &Path, n: usize, content: &str) {
    std::fs::write(root.join(format!("src/f{n}")), content).expect("a file can be written");
}

/// Milliseconds of one process.
fn time(root: &Path, home: &Path, verb: &[&str]) -> f64 {
    let begun = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_piton"))
        .args(verb)
        .env("PITON_HOME", home)
        .current_dir(root)
        .stdout(Stdio::null())
        .status()
        .expect("the binary runs");
    assert!(status.success(), "{verb:?}: {status}");
    begun.elapsed().as_secs_f64() * 1000.0
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
