//! The cost of watching for changes: `cargo bench --bench watch`. For 500, 5,000 and 20,000 directories: the start, a question
//! where nothing changed, one after a single write, and one after a move of 500 directories.

use std::error::Error;
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use piton::model::change::{Changes, Clock};
use piton::model::path::RelPath;
use piton::watch::{Options, Watcher};

const ROUNDS: usize = 2000;

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn report(what: &str, mut rounds: Vec<Duration>) {
    rounds.sort_unstable();
    println!(
        "  {what}: median {:?}, 99th percentile {:?}",
        rounds[rounds.len() / 2],
        rounds[(rounds.len() - 1) * 99 / 100]
    );
}

fn everything(_: &RelPath) -> bool {
    true
}

fn main() -> Result<(), Box<dyn Error>> {
    for directories in [500, 5_000, 20_000] {
        let scratch = tempfile::tempdir()?;
        let root = scratch.path().join("tree");
        for n in 0..directories {
            fs::create_dir_all(root.join(format!("t{}/u{}/v{}", n / 500, n / 20 % 25, n % 20)))?;
        }
        fs::write(root.join("file"), "x")?;
        let options = Options::new(scratch.path().join("cookies"));
        let (start, watcher) = timed(|| Watcher::start(&root, &everything, options));
        let mut watcher = watcher.map_err(|refusal| refusal.to_string())?;
        println!("{directories} directories, {} watches: started in {start:?}", watcher.stats().watches);
        let mut clock = Clock::default();
        let mut ask = |watcher: &mut Watcher| {
            let (next, changes) = watcher.sync(clock, &everything, Instant::now() + Duration::from_secs(30));
            clock = next;
            changes
        };
        ask(&mut watcher);
        report("nothing changed", (0..ROUNDS).map(|_| timed(|| ask(&mut watcher)).0).collect());
        let file = fs::File::options().write(true).open(root.join("file"))?;
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            file.write_all_at(b"x", 0)?;
            let (time, changes) = timed(|| ask(&mut watcher));
            if matches!(changes, Changes::Everything(_)) {
                return Err("a single write was told as everything".into());
            }
            rounds.push(time);
        }
        report("one write", rounds);
        fs::rename(root.join("t0"), root.join("moved"))?;
        report("a move of 500 directories", vec![timed(|| ask(&mut watcher)).0]);
    }
    Ok(())
}
