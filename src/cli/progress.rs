//! The line on the terminal that says how far long work has come.
//!
//! The work adds to the counters of a [`Progress`]; one thread reads them and draws. Nothing is drawn in the first second, and the
//! line is removed at the end. Everything else that piton prints hides it first ([`hide`]), and questions keep it hidden.

use std::io::{IsTerminal, Stderr, Write, stderr};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::stop;
use crate::model::text::bytes;
use crate::sys::progress::{Amount, Progress, ProgressReading, Stage};

/// The time before the first line.
const DELAY: Duration = Duration::from_secs(1);

/// The time before a line that was hidden is drawn again.
const PAUSE: Duration = Duration::from_millis(250);

/// The time between two drawings.
const FRAME: Duration = Duration::from_millis(100);

/// The share of a file or object in the percentage, in addition to its bytes: opening and naming a file takes as long as writing so
/// many bytes.
const ITEM_WEIGHT: u64 = 8 << 10;

/// The most dots after a line that is not drawn over.
const MOST_DOTS: usize = 40;

/// The one line of this process.
static SCREEN: OnceLock<Screen> = OnceLock::new();

/// The terminal, as the drawing thread and those who print share it.
struct Screen {
    progress: Progress,
    times: Times,
    line: Mutex<ProgressLine>,
    changed: Condvar,
}

/// The line as it is drawn.
struct ProgressLine {
    /// The bar on the terminal; `None` while nothing is drawn.
    bar: Option<ProgressBar>,
    /// The stage of that bar.
    stage: Stage,
    /// The moment before which nothing is drawn.
    not_before: Instant,
    /// The dots after a line that is not drawn over; `None` while there is no such line.
    dots: Option<usize>,
    /// The moment of the last dot.
    last_dot: Instant,
    is_over: bool,
}

/// Keeps the line away from the terminal while something else is printed.
pub(super) struct HiddenLine(MutexGuard<'static, ProgressLine>);

impl Drop for HiddenLine {
    fn drop(&mut self) {
        let pause = SCREEN.get().map_or(PAUSE, |screen| screen.times.pause);
        self.0.not_before = self.0.not_before.max(Instant::now() + pause);
    }
}

/// The times of the line.
struct Times {
    delay: Duration,
    pause: Duration,
    frame: Duration,
}

impl Times {
    /// Returns the times of this process. Builds for debugging draw at once and often where `PITON_TEST_PROGRESS` is set, for tests.
    fn of_process() -> Times {
        let is_test = cfg!(debug_assertions) && std::env::var_os("PITON_TEST_PROGRESS").is_some();
        match is_test {
            true => Times { delay: Duration::ZERO, pause: Duration::ZERO, frame: Duration::from_millis(1) },
            false => Times { delay: DELAY, pause: PAUSE, frame: FRAME },
        }
    }
}

/// Begins to draw, if stderr is a terminal that can. Returns the sink to which the work is to report.
pub(super) fn watch() -> Progress {
    let can_draw = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    if !can_draw || !stderr().is_terminal() {
        return Progress::NONE;
    }
    let times = Times::of_process();
    let not_before = Instant::now() + times.delay;
    let line =
        ProgressLine { bar: None, stage: Stage::Start, not_before, dots: None, last_dot: not_before, is_over: false };
    let screen = SCREEN.get_or_init(|| Screen {
        progress: Progress::counted(),
        times,
        line: Mutex::new(line),
        changed: Condvar::new(),
    });
    match Builder::new().name("progress".to_owned()).spawn(|| screen.draw_until_over()) {
        Ok(_) => screen.progress.clone(),
        // Without a thread the work is done unseen.
        Err(_) => Progress::NONE,
    }
}

/// Removes the line for as long as the result exists.
pub(super) fn hide() -> Option<HiddenLine> {
    let screen = SCREEN.get()?;
    let mut line = screen.locked();
    screen.draw_if_due(&mut line);
    line.clear();
    Some(HiddenLine(line))
}

/// Removes the line for good.
pub(super) fn end() {
    let Some(screen) = SCREEN.get() else { return };
    let mut line = screen.locked();
    screen.draw_if_due(&mut line);
    line.clear();
    line.is_over = true;
    drop(line);
    screen.changed.notify_all();
}

/// Stderr for log lines, which hide the line too.
pub(super) struct LogOutput(
    Stderr,
    #[expect(dead_code, reason = "kept until the log line is written")] Option<HiddenLine>,
);

impl LogOutput {
    /// Takes the terminal.
    pub(super) fn take() -> LogOutput {
        let hidden = hide();
        LogOutput(stderr(), hidden)
    }
}

impl Write for LogOutput {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.write(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl ProgressLine {
    /// Shows a stage in a line that is not drawn over: git or ssh may ask for a password after it. Later calls add dots, which show
    /// that the work goes on.
    fn draw_plain(&mut self, stage: Stage) {
        let now = Instant::now();
        let text = match self.dots {
            None => words(stage).0,
            Some(dots) if dots < MOST_DOTS && now >= self.last_dot + PAUSE => ".",
            Some(_) => return,
        };
        (self.dots, self.last_dot) = (Some(self.dots.map_or(0, |dots| dots + 1)), now);
        // If stderr is closed, no reader is left.
        let _ = stderr().write_all(text.as_bytes());
    }

    fn clear(&mut self) {
        if self.dots.take().is_some() {
            // As above.
            let _ = stderr().write_all(b"\r\x1b[2K");
        }
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Screen {
    fn locked(&self) -> MutexGuard<'_, ProgressLine> {
        // A thread that panicked while it drew has left a line that can be drawn again.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw_until_over(&self) {
        let mut line = self.locked();
        while !line.is_over {
            self.draw_if_due(&mut line);
            let pause = line.not_before.saturating_duration_since(Instant::now()).max(self.times.frame);
            line = self.changed.wait_timeout(line, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn draw_if_due(&self, line: &mut ProgressLine) {
        if !line.is_over && Instant::now() >= line.not_before {
            self.draw(line);
        }
    }

    fn draw(&self, line: &mut ProgressLine) {
        let reading = self.progress.read().unwrap_or_default();
        if line.stage != reading.stage {
            line.clear();
            line.stage = reading.stage;
        }
        if reading.stage == Stage::Connecting {
            return line.draw_plain(reading.stage);
        }
        let target = ProgressDrawTarget::stderr;
        let bar = line.bar.get_or_insert_with(|| new_bar(&reading, target()));
        if stop::is_asked() {
            bar.set_style(style(false));
            bar.set_prefix("Stopping");
            bar.set_message("press Ctrl-C again to end now");
        } else {
            advance(bar, &reading);
        }
        bar.tick();
        bar.force_draw();
    }
}

/// Makes the bar of a stage, without drawing it.
fn new_bar(reading: &ProgressReading, target: ProgressDrawTarget) -> ProgressBar {
    let all = weight(reading.total, reading.total);
    ProgressBar::with_draw_target((all > 0).then_some(all), target)
        .with_style(style(all > 0))
        .with_prefix(words(reading.stage).0)
        .with_position(weight(reading.done, reading.total).min(all))
        .with_message(detail(reading, None))
}

/// Has a bar show a later state of its stage.
fn advance(bar: &ProgressBar, reading: &ProgressReading) {
    let (all, done) = (weight(reading.total, reading.total), weight(reading.done, reading.total));
    let is_known = bar.length().is_some();
    if (all > 0) != is_known {
        // The stage has begun again with another total, as those of git do.
        bar.set_style(style(all > 0));
    }
    match all {
        0 => bar.unset_length(),
        all if bar.length() != Some(all) => bar.set_length(all),
        _ => {}
    }
    bar.set_position(done.min(all));
    let left = (all > 0 && done > 0 && done < all).then(|| bar.eta());
    bar.set_message(detail(reading, left));
}

/// Returns the style of a bar, or of a line for work whose end is not known.
fn style(has_total: bool) -> ProgressStyle {
    let template = match has_total {
        true => "{spinner} {prefix} [{bar:20}] {percent:>3}% {wide_msg}",
        false => "{spinner} {prefix} {wide_msg}",
    };
    // The templates are correct, as a test shows; the default one shows the bar alone.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.tick_chars("|/-\\ ").progress_chars("=> ")
}

/// Returns an amount as one number for the percentage; 0 for a total that is not known.
fn weight(amount: Amount, total: Amount) -> u64 {
    match (total.items, total.bytes) {
        (0, _) => amount.bytes,
        _ => amount.items.saturating_mul(ITEM_WEIGHT).saturating_add(amount.bytes),
    }
}

/// Returns what a stage does, and the noun for what it counts.
fn words(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::Start => ("Preparing", ""),
        Stage::Listing => ("Looking for files", "files"),
        Stage::Reading => ("Reading files", "files"),
        Stage::Recording => ("Writing the checkpoint", ""),
        Stage::Writing => ("Writing files", "files"),
        Stage::Syncing => ("Waiting for the disk", ""),
        Stage::Placing => ("Changing files", "steps"),
        Stage::Marking => ("Looking for objects in use", "objects"),
        Stage::Removing => ("Deleting objects", "objects"),
        Stage::Packing => ("Packing objects", "objects"),
        Stage::Searching => ("Searching checkpoints", "objects"),
        Stage::Proving => ("Verifying the removal", "objects"),
        Stage::Verifying => ("Checking objects", "objects"),
        Stage::Copying => ("Copying the store", "files"),
        Stage::Connecting => ("Connecting to the remote", ""),
        Stage::Preparing => ("Preparing the transfer", "objects"),
        Stage::Transferring => ("Transferring objects", "objects"),
        Stage::Judging => ("Checking what was fetched", "refs"),
    }
}

/// Returns the counts of a state, and the time that is left.
fn detail(reading: &ProgressReading, left: Option<Duration>) -> String {
    let ProgressReading { stage, done, total } = *reading;
    let mut parts = Vec::new();
    match (done.items, total.items) {
        (0, 0) => {}
        (done, 0) => parts.push(format!("{done} {}", words(stage).1)),
        (done, all) => parts.push(format!("{}/{all} {}", done.min(all), words(stage).1)),
    }
    match (done.bytes, total.bytes) {
        (0, 0) => {}
        (done, 0) => parts.push(bytes(done)),
        (done, all) => parts.push(format!("{}/{}", bytes(done.min(all)), bytes(all))),
    }
    parts.extend(left.map(|left| format!("{} left", duration(left))));
    parts.join(", ")
}

/// Returns a time in its two largest units, rounded up.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 100 columns that remembers its one line.
    #[derive(Clone, Debug, Default)]
    struct OneLine(Arc<Mutex<String>>);

    impl TermLike for OneLine {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _lines: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _lines: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _columns: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _columns: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> std::io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> std::io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }

        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn reading(stage: Stage, done: (u64, u64), total: (u64, u64)) -> ProgressReading {
        let amount = |(items, bytes)| Amount { items, bytes };
        ProgressReading { stage, done: amount(done), total: amount(total) }
    }

    /// Returns the line as a terminal of 100 columns shows it, without its spinner.
    fn drawn(reading: &ProgressReading) -> String {
        let term = OneLine::default();
        let bar = new_bar(reading, ProgressDrawTarget::term_like(Box::new(term.clone())));
        bar.force_draw();
        let shown = term.0.lock().unwrap().trim_end().to_owned();
        shown.split_once(' ').map_or(shown.clone(), |(_, line)| line.to_owned())
    }

    #[test]
    fn a_known_total_has_a_percentage_and_counts() {
        let half = reading(Stage::Reading, (50, 500_000), (100, 1_000_000));
        let line = drawn(&half);
        assert!(line.starts_with("Reading files [==========>"), "{line}");
        assert!(line.contains("]  50% 50/100 files, 500.0 kB/1.0 MB"), "{line}");
        // Counters of two moments never show more than all.
        let line = drawn(&reading(Stage::Placing, (7, 0), (5, 0)));
        assert_eq!(line, "Changing files [====================] 100% 5/5 steps");
    }

    #[test]
    fn an_unknown_total_has_counts_alone() {
        assert_eq!(drawn(&reading(Stage::Listing, (12, 0), (0, 0))), "Looking for files 12 files");
        assert_eq!(drawn(&reading(Stage::Proving, (2, 3000), (0, 0))), "Verifying the removal 2 objects, 3.0 kB");
        assert_eq!(drawn(&reading(Stage::Syncing, (0, 0), (0, 0))), "Waiting for the disk");
        let line = drawn(&reading(Stage::Copying, (2, 25), (0, 100)));
        assert!(line.contains(" 25% 2 files, 25 B/100 B"), "{line}");
    }

    #[test]
    fn times_are_rounded_up_and_short() {
        for (ms, text) in [(0, "0 s"), (1, "1 s"), (59_000, "59 s"), (61_000, "1 min 1 s"), (3_725_000, "1 h 2 min")] {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
        let late = detail(&reading(Stage::Writing, (1, 10), (2, 20)), Some(Duration::from_secs(9)));
        assert_eq!(late, "1/2 files, 10 B/20 B, 9 s left");
    }
}
