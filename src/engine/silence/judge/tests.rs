use std::collections::BTreeMap;

use super::*;
use crate::sys::clock::rfc3339;

/// The start of the day: 09:00 in the log.
const DAY: i64 = 1_795_770_000_000;

/// The step in which the virtual clock is asked.
const TICK: i64 = 10_000;

/// Something that happens.
#[derive(Clone, Debug)]
enum Happening {
    Opened(Client),
    Closed(Client),
    /// An event of a hook; `Some` begins or ends an action.
    Event(Client, Option<bool>),
    /// The client uses a tool.
    Act(Client, &'static str),
    /// A step that its files keep.
    Grown(Client),
    /// A command of its is at work.
    Command(Client, bool),
    Change,
}

/// A turn of a client, by its times.
#[derive(Clone, Copy, Debug)]
struct LoggedTurn {
    client: Client,
    from: i64,
    to: i64,
    /// The changes that its acts have made.
    changes: usize,
    /// The time from its first change to its last.
    length: i64,
}

/// The log, in the order of time.
struct Day {
    happenings: Vec<(i64, Happening)>,
    turns: Vec<LoggedTurn>,
}

fn time(text: &str) -> i64 {
    let parts: Vec<i64> = text.split(':').map(|part| part.parse().unwrap()).collect();
    DAY + ((parts[0] - 9) * 3600 + parts[1] * 60 + parts[2]) * 1000
}

impl Day {
    fn read() -> Day {
        let mut day = Day { happenings: Vec::new(), turns: Vec::new() };
        let lines = include_str!("../../../../tests/data/silence/day.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let (at, rest) = (time(words[0]), &words[2..]);
            match (words[1], rest) {
                ("person", ["save"]) => day.add(at, Happening::Change),
                ("person", ["pull"]) => (0..20).for_each(|n| day.add(at + n * 10, Happening::Change)),
                ("person", ["build", seconds]) => day.changes(at, seconds.parse().unwrap()),
                (client, [what, steps @ ..]) => {
                    let client = Client::named(client).unwrap();
                    match *what {
                        "open" => {
                            day.add(at, Happening::Opened(client));
                            day.add(at + 1000, Happening::Event(client, None));
                        }
                        "close" => {
                            day.add(at - 1000, Happening::Event(client, None));
                            day.add(at, Happening::Closed(client));
                        }
                        _ => day.turn(client, at, steps),
                    }
                }
                _ => panic!("{line}"),
            }
        }
        day.happenings.sort_by_key(|(at, _)| *at);
        day
    }

    fn add(&mut self, at: i64, happening: Happening) {
        self.happenings.push((at, happening));
    }

    fn changes(&mut self, from: i64, seconds: i64) {
        (0..=seconds / 5).for_each(|n| self.add(from + 400 + n * 5000, Happening::Change));
    }

    /// An act: a line of the session, the event before it, its work, the event after it.
    fn act(&mut self, client: Client, at: i64, tool: &'static str, (waits, lasts): (i64, i64)) {
        self.add(at, Happening::Act(client, tool));
        self.add(at + 200, Happening::Event(client, Some(true)));
        let begins = at + 400 + waits * 1000;
        if lasts > 0 {
            self.add(begins, Happening::Command(client, true));
            self.add(begins + lasts * 1000, Happening::Command(client, false));
        }
        self.add(begins + lasts * 1000 + 500, Happening::Grown(client));
        self.add(begins + lasts * 1000 + 600, Happening::Event(client, Some(false)));
    }

    fn turn(&mut self, client: Client, at: i64, steps: &[&str]) {
        self.add(at, Happening::Grown(client));
        self.add(at + 100, Happening::Event(client, None));
        let mut changed = Vec::new();
        let mut words = steps.iter();
        while let Some(word) = words.next() {
            let step = at + word.parse::<i64>().unwrap() * 1000;
            let what = *words.next().unwrap();
            let seconds: i64 = if matches!(what, "run" | "ask") { words.next().unwrap().parse().unwrap() } else { 0 };
            match what {
                "read" => self.act(client, step, "read", (0, 0)),
                "think" => self.add(step, Happening::Grown(client)),
                "refused" => self.add(step, Happening::Act(client, "edit")),
                "edit" => {
                    self.act(client, step, "edit", (0, 0));
                    self.add(step + 450, Happening::Change);
                    changed.push(step);
                }
                "run" => {
                    self.act(client, step, "run", (0, seconds));
                    self.changes(step, seconds);
                    changed.extend([step, step + seconds * 1000]);
                }
                "ask" => {
                    assert_eq!(words.next(), Some(&"edit"));
                    self.act(client, step, "edit", (seconds, 0));
                    self.add(step + seconds * 1000 + 450, Happening::Change);
                    changed.push(step + seconds * 1000);
                }
                how @ ("end" | "interrupt") => {
                    if how == "end" {
                        self.add(step + 100, Happening::Event(client, None));
                    }
                    self.add(step, Happening::Grown(client));
                    let length = changed.last().unwrap_or(&0) - changed.first().unwrap_or(&0);
                    self.turns.push(LoggedTurn { client, from: at, to: step, changes: changed.len(), length });
                }
                other => panic!("{other}"),
            }
        }
    }
}

/// The facts about one client, as they are at a moment.
#[derive(Clone, Default)]
struct Facts {
    heard: Option<i64>,
    began: Option<i64>,
    /// The acts that lines of its session tell of.
    acts: Vec<i64>,
    grown: Option<i64>,
    commands: Vec<i64>,
    is_open: bool,
}

fn is_told(client: Client) -> bool {
    client.traces().iter().any(|trace| matches!(trace, crate::agents::trail::Trace::Sessions(..)))
}

fn line(client: Client, tool: &str, at: i64) -> String {
    let time = rfc3339(at);
    match client {
        Client::ClaudeCode => {
            let name = match tool {
                "read" => "Read",
                "edit" => "Edit",
                _ => "Bash",
            };
            format!(
                r#"{{"type":"assistant","timestamp":"{time}","message":{{"content":[{{"type":"tool_use","name":"{name}"}}]}}}}"#
            )
        }
        Client::Codex => {
            let (kind, name) = match tool {
                "read" => ("function_call", "view_image"),
                "edit" => ("custom_tool_call", "apply_patch"),
                _ => ("function_call", "exec_command"),
            };
            format!(r#"{{"type":"response_item","timestamp":"{time}","payload":{{"type":"{kind}","name":"{name}"}}}}"#)
        }
        _ => String::new(),
    }
}

/// Replays the day. Events of `dead` do not come from that time on; returns the first alarm of each client, with its `since`.
fn replay(day: &Day, dead: Option<(Client, i64)>) -> BTreeMap<&'static str, (i64, i64)> {
    let mut facts: BTreeMap<&'static str, (Client, Facts)> = BTreeMap::new();
    let (mut changes, mut alarms) = (Vec::new(), BTreeMap::new());
    let mut happenings = day.happenings.iter().peekable();
    let end = time("17:30:00");
    let mut now = DAY;
    while now <= end {
        while let Some((at, happening)) = happenings.next_if(|(at, _)| *at <= now) {
            let mut of = |client: Client, change: &dyn Fn(&mut Facts)| {
                change(&mut facts.entry(client.name()).or_insert_with(|| (client, Facts::default())).1);
            };
            match happening {
                Happening::Opened(client) => of(*client, &|facts| facts.began = Some(*at)),
                Happening::Closed(client) => of(*client, &|facts| (facts.began, facts.commands) = (None, Vec::new())),
                Happening::Event(client, _) if dead.is_some_and(|(one, from)| one == *client && *at >= from) => {}
                Happening::Event(client, open) => of(*client, &|facts| {
                    facts.heard = Some(*at);
                    facts.is_open = open.unwrap_or(false);
                }),
                Happening::Act(client, tool) => of(*client, &|facts| {
                    facts.acts.extend(client.acts(line(*client, tool, *at).as_bytes()));
                    facts.grown = Some(*at);
                }),
                Happening::Grown(client) => of(*client, &|facts| facts.grown = Some(*at)),
                Happening::Command(client, true) => of(*client, &|facts| facts.commands.push(*at)),
                Happening::Command(client, false) => of(*client, &|facts| facts.commands.clear()),
                Happening::Change => changes.push(*at),
            }
        }
        for (client, facts) in facts.values() {
            let told = is_told(*client);
            let clues = ClientClues {
                client: *client,
                heard: facts.heard,
                began: facts.began,
                acts: facts.acts.clone(),
                grown: facts.grown.filter(|_| !told),
                commands: facts.commands.clone(),
            };
            let said = suspicion(&clues, now).and_then(|one| one.verdict(*client, &changes, facts.is_open));
            if let Some(silence) = said {
                alarms.entry(client.name()).or_insert((now, silence.since));
            }
        }
        now += TICK;
    }
    alarms
}

#[test]
fn eight_hours_of_work_raise_no_alarm() {
    let day = Day::read();
    assert!(day.happenings.len() > 800 && day.turns.len() > 25, "{} {}", day.happenings.len(), day.turns.len());
    assert_eq!(replay(&day, None), BTreeMap::new());
}

#[test]
fn hooks_that_die_at_any_turn_are_told_of_within_it() {
    let day = Day::read();
    let (mut strong, mut weak) = (0, 0);
    for turn in day.turns.iter().filter(|turn| turn.changes > 0) {
        let alarms = replay(&day, Some((turn.client, turn.from)));
        let found = alarms.get(turn.client.name());
        assert!(alarms.len() <= 1, "only the silent client is named: {alarms:?}");
        if is_told(turn.client) {
            let (told, since) = *found.unwrap_or_else(|| panic!("{turn:?}"));
            // A single act has half a minute for its event.
            assert!(told <= turn.to + SINGLE + TICK, "{turn:?}: told at {}", rfc3339(told));
            assert!((turn.from..=turn.to).contains(&since), "{turn:?}: since {}", rfc3339(since));
            strong += 1;
        } else if turn.length > GROWTH + NEAR / 2 {
            let (told, since) = *found.unwrap_or_else(|| panic!("{turn:?}"));
            assert!(
                told <= turn.to + TICK && (turn.from..=told).contains(&since),
                "{turn:?}: told at {}",
                rfc3339(told)
            );
            weak += 1;
        }
    }
    assert!(strong >= 15 && weak >= 2, "{strong} {weak}");
}

#[test]
fn each_clue_has_its_bounds() {
    let base = || ClientClues { heard: Some(DAY), began: Some(DAY - 60_000), ..ClientClues::none(Client::ClaudeCode) };
    let since = |clues: &ClientClues, after: i64| suspicion(clues, DAY + after).map(|one| one.since - DAY);
    let acts = |acts: &[i64]| ClientClues { acts: acts.iter().map(|at| DAY + at).collect(), ..base() };
    // An act has an event of its own, or one that is noted a moment before it.
    assert_eq!(since(&acts(&[-60_000, SLACK]), 3_600_000), None);
    assert_eq!(since(&acts(&[20_000]), 20_000 + SINGLE - 1), None);
    assert_eq!(since(&acts(&[20_000]), 20_000 + SINGLE), Some(20_000));
    assert_eq!(since(&acts(&[25_000, 20_000]), 20_000 + SEVERAL), Some(20_000));
    assert_eq!(since(&acts(&[20_000]), 20_001 + HISTORY), None);
    // A command counts once it runs for some seconds, and helpers of the beginning do not.
    let command = |began: i64| ClientClues { commands: vec![DAY + 20_000], began: Some(DAY + began), ..base() };
    assert_eq!(since(&command(-60_000), 20_000 + COMMAND - 1), None);
    assert_eq!(since(&command(-60_000), 20_000 + COMMAND), Some(20_000));
    assert_eq!(since(&command(0), 60_000), None);
    let grown = |at: i64, began: Option<i64>| ClientClues { grown: Some(DAY + at), began, ..base() };
    assert_eq!(since(&grown(GROWTH - 1, Some(DAY)), GROWTH), None);
    assert_eq!(since(&grown(GROWTH, Some(DAY)), GROWTH), Some(GROWTH - NEAR));
    // Without a process somebody else has written to the files.
    assert_eq!(since(&grown(GROWTH, None), GROWTH), None);

    let strong = suspicion(&acts(&[20_000]), DAY + 60_000).unwrap();
    let verdict = |changes: &[i64], is_open| {
        let changes: Vec<i64> = changes.iter().map(|at| DAY + at).collect();
        strong.verdict(Client::ClaudeCode, &changes, is_open).is_some()
    };
    assert!(!verdict(&[], false) && !verdict(&[17_999], false), "nothing changed since");
    assert!(verdict(&[18_000], false) && verdict(&[50_000], true));
    let weak = suspicion(&grown(300_000, Some(DAY)), DAY + 300_000).unwrap();
    let verdict = |changes: &[i64], is_open| {
        let changes: Vec<i64> = changes.iter().map(|at| DAY + at).collect();
        weak.verdict(Client::Opencode, &changes, is_open).is_some()
    };
    assert!(verdict(&[200_000, 280_000], false) && !verdict(&[200_000, 280_000], true));
    // A checkout changes many files at once, and changes of before are the person's.
    assert!(!verdict(&[280_000, 280_100, 281_000], false) && !verdict(&[100_000, 280_000], false));
}
