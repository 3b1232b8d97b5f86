//! Lines made to hang, to overflow the stack or to fill memory. Each must end soon, on a small stack.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::{any, proptest};

use super::evaluation::{context, policy};
use crate::classify::Context;
use crate::classify::walk::Walk;
use crate::model::effect::Class;

const SMALL_STACK: usize = 512 * 1024;

fn hostile_lines() -> Vec<(&'static str, String)> {
    let doubling = (0..200).map(|n| format!("v{}=$v{n}$v{n};", n + 1)).collect::<String>();
    vec![
        ("substitutions", "$(".repeat(20_000)),
        ("balanced substitutions", format!("{}a{}", "$(".repeat(2000), ")".repeat(2000))),
        ("quoted substitutions", "\"$(".repeat(2000)),
        ("groups", "{ ".repeat(20_000)),
        ("parentheses", "(".repeat(20_000)),
        ("closing parentheses", ")".repeat(20_000)),
        ("spaced parentheses", "( ".repeat(20_000)),
        ("arithmetic", "((".repeat(20_000)),
        ("dollar arithmetic", "$((1+".repeat(20_000)),
        ("if", "if ".repeat(2000)),
        ("while", "while x; do ".repeat(2000)),
        ("case", "case x in a) ".repeat(2000)),
        ("functions", "f() ".repeat(5000)),
        ("backticks", "`".repeat(20_001)),
        ("parameters", "${a:-".repeat(10_000)),
        ("arrays", "a=(".repeat(20_000)),
        ("globs", "a@(".repeat(20_000)),
        ("processes", "<(".repeat(20_000)),
        ("tests", "[[ ".repeat(20_000)),
        ("pipes", "a|".repeat(50_000)),
        ("separators", ";".repeat(250_000)),
        ("words", "word ".repeat(200_000)),
        ("one word", "w".repeat(1 << 20)),
        ("open quote", format!("\"{}", "x".repeat(1 << 20))),
        ("heredocs", "cat <<A ".repeat(5000) + "\n"),
        ("heredoc lines", "cat <<A\n".repeat(20_000)),
        ("braces", "{a,b}".repeat(2000)),
        ("nested braces", "{a,".repeat(2000)),
        ("many braces", "{{a,b},{c,d}}{e,f} ".repeat(10_000)),
        ("doubling", format!("v0=xxxxxxxx;{doubling} echo $v200")),
        ("payloads", format!("{}rm x", "eval ".repeat(5000))),
        (
            "shells",
            (0..14).fold("rm x".to_owned(), |line, _| format!("bash -c {line:?}")).chars().take(200_000).collect(),
        ),
        ("wrappers", format!("{} rm x", "sudo env nice ".repeat(3000))),
        ("xargs", "xargs ".repeat(9000)),
        ("escapes", "\\".repeat(200_001)),
        ("dollars", "$".repeat(200_000)),
        ("redirects", "> a ".repeat(50_000)),
        ("subshells", "(a=1;b=2);".repeat(20_000)),
        ("comments", "#".repeat(200_000)),
        (
            "loops",
            "for a in {1,2,3,4,5,6,7,8}; do for b in {1,2,3,4,5,6,7,8}; do rm $a$b$a$b$a$b; done; done;".repeat(500),
        ),
        ("sql", format!("psql -c \"{}\"", "/*".repeat(60_000))),
        ("quotes in code", format!("python3 -c \"{}\"", "'".repeat(100_000))),
    ]
}

#[test]
fn hostile_lines_end_on_a_small_stack() {
    super::shared();
    for (name, line) in hostile_lines() {
        let started = Instant::now();
        let run = move || {
            let started = Instant::now();
            let verdict = super::shared().shell(&line, &context(), &policy());
            for effect in &verdict.effects {
                assert!(effect.span.0 <= effect.span.1 && effect.span.1 <= line.len());
            }
            started.elapsed()
        };
        let thread = std::thread::Builder::new().stack_size(SMALL_STACK).spawn(run).expect("a thread");
        let took = thread.join().expect("no panic");
        println!("{name:24} {took:?}");
        assert!(took < Duration::from_secs(3), "{name}: {took:?}, {:?} in all", started.elapsed());
    }
}

#[test]
fn over_the_limits_is_one_checkpoint_and_no_warning() {
    let classifier = super::shared();
    for line in ["$(".repeat(5000), "a ".repeat(20_000), "ls\n".repeat(100_000), "echo 'open".to_owned()] {
        let verdict = classifier.shell(&line, &context(), &policy());
        assert!(verdict.effects.iter().any(|effect| effect.class == Class::Unknown));
        assert!(verdict.needs.checkpoint() && !verdict.needs.warn());
    }
}

proptest! {
    #[test]
    fn any_text_is_classified(line in any::<String>()) {
        let verdict = super::shared().shell(&line, &context(), &policy());
        for effect in verdict.effects {
            assert!(effect.span.0 <= effect.span.1 && effect.span.1 <= line.len());
        }
    }

    #[test]
    fn any_shell_like_text_is_classified(line in "((rm|git|reset|--hard|sudo|env|xargs|find|-exec|bash|-c|eval|psql|cat|echo|curl|docker|run|-v|:|é)|[ $(){}'\"`|&;<>=*~/.\n-]|<<EOF\n){0,60}") {
        let verdict = super::shared().shell(&line, &context(), &policy());
        for effect in verdict.effects {
            assert!(effect.span.0 <= effect.span.1 && effect.span.1 <= line.len());
        }
    }
}

/// Twice the line is twice the work, counted in words that were expanded.
#[test]
fn work_grows_with_the_length() {
    let shapes = [
        "rm a b; ",
        "a=$(echo x); ",
        "for f in a b c; do rm $f; done; ",
        "f() { rm a; }; f; ",
        "bash -c 'rm a; rm b'; ",
        "cat <<E | sh\nrm x\nE\n",
        "find . -name x -exec rm {} \\; ; ",
        "echo {a,b,c}{d,e} | xargs rm; ",
        "alias x='rm a'; x; ",
        "diff <(rm a) <(rm b); ",
        "case $x in a) rm a;; esac; ",
    ];
    for shape in shapes {
        let work = |times: usize| {
            let mut walk = Walk::new(&super::shared().rules, &HERE);
            walk.line(&shape.repeat(times));
            assert!(!walk.bounds.overflow, "{shape}");
            walk.bounds.words + walk.found.len()
        };
        // Past the values that loops are walked through one by one.
        let (once, twice) = (work(100), work(200));
        assert!(once > 0 && twice <= once * 2 + once / 10, "{shape}: {once}, then {twice}");
    }
}

static HERE: LazyLock<Context> = LazyLock::new(context);
