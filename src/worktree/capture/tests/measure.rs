//! Not a test: `PITON_MEASURE=DIR cargo test --release --lib measure -- --ignored --nocapture`.

use super::*;
use crate::model::sink::HashOnly;

#[test]
#[ignore = "a measurement on the tree in PITON_MEASURE"]
fn measure_a_first_and_an_unchanged_capture() {
    let Some(root) = std::env::var_os("PITON_MEASURE") else {
        eprintln!("skipped: PITON_MEASURE names no directory");
        return;
    };
    let mut bench = Bench::new();
    for round in ["first", "unchanged", "unchanged", "unchanged"] {
        let request = Request { root: Path::new(&root), ..bench.request() };
        let started = Instant::now();
        let capture = capture(&request, &HashOnly, &|| Flow::Continue).unwrap();
        println!("{round}: {} ms, {:?}", started.elapsed().as_millis(), capture.stats);
        bench.known = capture.known;
    }
}
