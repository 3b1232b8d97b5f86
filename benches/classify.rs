//! Time of one line: `cargo bench --bench classify`. Median and 99th percentile over the labelled set, and hostile lines.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use piton::classify::{Classifier, Context};
use piton::settings::{Sources, resolve};

const ROUNDS: usize = 20;

fn context() -> Context {
    Context {
        cwd: PathBuf::from("/home/dev/proj"),
        workspace: PathBuf::from("/home/dev/proj"),
        home: Some(PathBuf::from("/home/dev")),
        temp_dirs: vec![PathBuf::from("/tmp")],
        ..Context::default()
    }
}

fn command(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    value["cmd"].as_str().map(str::to_owned)
}

fn main() {
    let started = Instant::now();
    let classifier = Classifier::embedded();
    println!("a classifier in {:?}", started.elapsed());
    let (context, policy) = (context(), resolve(&Sources::default()).expect("the defaults are sound").policy);
    let lines: Vec<String> = include_str!("../tests/data/commands.jsonl").lines().filter_map(command).collect();
    let mut best = vec![Duration::MAX; lines.len()];
    for _ in 0..ROUNDS {
        for (line, best) in lines.iter().zip(&mut best) {
            let started = Instant::now();
            std::hint::black_box(classifier.shell(line, &context, &policy));
            *best = started.elapsed().min(*best);
        }
    }
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|index| best[*index]);
    let at = |share: usize| best[order[order.len() * share / 100]];
    println!("{} lines: median {:?}, 99% {:?}", lines.len(), at(50), at(99));
    for index in order.iter().rev().take(5) {
        println!("  {:?} {:.70}", best[*index], lines[*index].replace('\n', "⏎"));
    }
    // As a process does that judges one line: what the line's programs need is compiled first.
    let mut first: Vec<(Duration, &String)> = lines
        .iter()
        .map(|line| {
            let started = Instant::now();
            std::hint::black_box(Classifier::embedded().shell(line, &context, &policy));
            (started.elapsed(), line)
        })
        .collect();
    first.sort();
    println!("as the first line: median {:?}, 99% {:?}", first[first.len() / 2].0, first[first.len() * 99 / 100].0);
    for (time, line) in first.iter().rev().take(5) {
        println!("  {time:?} {:.70}", line.replace('\n', "⏎"));
    }
    let noise: String =
        (0..1 << 20).map(|n: u32| char::from((n.wrapping_mul(2_654_435_761) >> 24) as u8 % 95 + 32)).collect();
    for (name, line) in [
        ("1 MB of words", "word ".repeat(1 << 18).chars().take(1 << 20).collect()),
        ("1 MB in one word", "w".repeat(1 << 20)),
        ("10,000 nested $(", "$(".repeat(10_000)),
        ("100,000 ;", ";".repeat(100_000)),
        ("100,000 commands", "a;".repeat(100_000)),
        ("1 MB of noise", noise),
    ] {
        let started = Instant::now();
        std::hint::black_box(classifier.shell(&line, &context, &policy));
        println!("{name}: {:?}", started.elapsed());
    }
}
