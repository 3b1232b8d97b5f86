//! Measurements, run by hand: `cargo test --release --lib watch::tests::measure -- --ignored --nocapture --test-threads 1`.

use super::*;

fn quantile(sorted: &[Duration], part: usize) -> Duration {
    sorted[(sorted.len() - 1) * part / 1000]
}

/// Directories of ten in each, three deep where it suffices.
fn tree(scene: &Scene, directories: usize) {
    for n in 0..directories {
        let path = format!("t{}/u{}/v{}", n / 500, n / 20 % 25, n % 20);
        fs::create_dir_all(scene.at(&path)).unwrap();
    }
}

fn time<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    eprintln!("{what}: {:?}", start.elapsed());
    result
}

#[test]
#[ignore = "a measurement"]
fn measure_syncs_and_starts() {
    for directories in [500, 5_000, 20_000] {
        let mut scene = Scene::new(&["file"]);
        tree(&scene, directories);
        time(&format!("{directories} new directories, one sync"), || scene.sync());
        scene.sync();
        eprintln!("watches: {}", scene.watcher.stats().watches);
        let options = Options::new(scene.outside("other"));
        let root = scene.at("");
        let second = time("start", || Watcher::start(&root, &rules, options).unwrap());
        time("end", || drop(second));

        let mut rounds: Vec<Duration> = Vec::new();
        for _ in 0..2000 {
            let start = Instant::now();
            let told = scene.sync();
            rounds.push(start.elapsed());
            assert_eq!(told, Changes::Paths(Dirty::default()));
        }
        rounds.sort();
        eprintln!("idle sync: p50 {:?}, p99 {:?}", quantile(&rounds, 500), quantile(&rounds, 990));

        let file = fs::File::options().write(true).open(scene.at("file")).unwrap();
        let mut rounds: Vec<Duration> = Vec::new();
        for _ in 0..2000 {
            std::os::unix::fs::FileExt::write_all_at(&file, b"x", 0).unwrap();
            let start = Instant::now();
            assert!(scene.sync().covers(&path("file")));
            rounds.push(start.elapsed());
        }
        rounds.sort();
        eprintln!("sync after one write: p50 {:?}, p99 {:?}", quantile(&rounds, 500), quantile(&rounds, 990));

        (0..1000).for_each(|n| fs::write(scene.at(&format!("t0/f{n}")), "x").unwrap());
        time("sync after 1,000 files", || scene.sync());
        fs::rename(scene.at("t0"), scene.at("moved")).unwrap();
        time("sync after a move of 500 directories", || scene.sync());
        fs::write(scene.at(".gitignore"), "x").unwrap();
        time("sync after new rules at the root", || scene.sync());
        time("rm -r of 500 directories", || fs::remove_dir_all(scene.at("moved")).unwrap());
        let told = time("sync after it", || scene.sync());
        eprintln!("told: {}", matches!(told, Changes::Paths(_)));
        time("next", || scene.sync());
        time("rm -r of the rest", || {
            for top in fs::read_dir(scene.at("")).unwrap() {
                let top = top.unwrap().path();
                if top.is_dir() {
                    fs::remove_dir_all(top).unwrap();
                }
            }
        });
        let told = time("sync after it", || scene.sync());
        eprintln!("told: {}", if let Changes::Everything(why) = told { why.to_string() } else { "paths".into() });
        time("next", || scene.sync());
    }
}
