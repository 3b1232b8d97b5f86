use proptest::prelude::{any, proptest};

use super::{Bounds, Part, PipelineStage, RedirectKind, Script, TextPlace, Word, scan};

fn scanned(line: &str) -> (Script, Bounds) {
    let mut bounds = Bounds::default();
    let script = scan(line, TextPlace::At(0), &mut bounds);
    (script, bounds)
}

/// Simple commands in order, words joined by a blank; substitutions follow the command they are in.
fn commands(script: &Script, into: &mut Vec<String>) {
    for stage in script.pipelines.iter().flat_map(|pipeline| &pipeline.stages) {
        match stage {
            PipelineStage::Simple(simple) => {
                if !simple.words.is_empty() {
                    into.push(simple.words.iter().map(text).collect::<Vec<_>>().join(" "));
                }
                let values = simple.assignments.iter().map(|assignment| &assignment.value);
                let targets = simple.redirects.iter().map(|redirect| &redirect.target);
                for word in simple.words.iter().chain(values).chain(targets) {
                    inner(&word.parts, into);
                }
            }
            PipelineStage::Compound(compound) => {
                for word in &compound.words {
                    inner(&word.parts, into);
                }
                commands(&compound.body, into);
            }
        }
    }
}

fn inner(parts: &[Part], into: &mut Vec<String>) {
    for part in parts {
        match part {
            Part::Command { script, .. } | Part::Process { script } => commands(script, into),
            Part::Unknown { inner: parts, .. } => inner(parts, into),
            Part::Array { words } => words.iter().for_each(|word| inner(&word.parts, into)),
            Part::Literal { .. } | Part::Variable { .. } | Part::Elements { .. } => {}
        }
    }
}

fn text(word: &Word) -> String {
    let piece = |part: &Part| match part {
        Part::Literal { text, .. } => text.clone(),
        Part::Variable { name, .. } => format!("${name}"),
        Part::Command { .. } => "$()".to_owned(),
        Part::Process { .. } => "<()".to_owned(),
        Part::Unknown { .. } | Part::Array { .. } => "${}".to_owned(),
        Part::Elements { name, .. } => format!("${{{name}[@]}}"),
    };
    word.parts.iter().map(piece).collect()
}

fn check(line: &str, expected: &[&str]) {
    let (script, bounds) = scanned(line);
    let mut found = Vec::new();
    commands(&script, &mut found);
    assert_eq!(found, expected, "{line}");
    assert!(!bounds.partial && !bounds.overflow, "not whole: {line}");
}

#[test]
fn commands_of_lines() {
    let table: &[(&str, &[&str])] = &[
        ("ls -la", &["ls -la"]),
        ("a;b&c\nd", &["a", "b", "c", "d"]),
        ("a && b || c | d |& e", &["a", "b", "c", "d", "e"]),
        ("! a | b", &["a", "b"]),
        ("time -p a", &["a"]),
        ("A=1 B='x y' cmd", &["cmd"]),
        (">x cmd a", &["cmd a"]),
        ("arr=(rm -rf x)", &[]),
        ("arr=($(ls) b); declare -a c=(rm)", &["ls", "declare -a c=${}"]),
        ("rm() { echo no; }", &["echo no"]),
        ("function f { a; }; f", &["a", "f"]),
        ("f() (cd x && ls)", &["cd x", "ls"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a; do b; done < f", &["a", "b"]),
        ("for x in a b; do c $x; done", &["c $x"]),
        ("for ((i=0;i<3;i++)); do c; done", &["c"]),
        ("for x; do c; done", &["c"]),
        ("select x in a; do break; done", &["break"]),
        ("case $x in a|b) c;; (d) e ;& *) f; esac", &["c", "e", "f"]),
        ("case x in esac; a", &["a"]),
        ("(a; (b)) && { c; }", &["a", "b", "c"]),
        ("[[ a > b && -f $(c) ]] && d", &["c", "d"]),
        ("[[ $V =~ ^a\\ (b|c)$ ]] && e", &["e"]),
        ("(( a > b )) && c", &["c"]),
        ("echo $(( 1 + $(n) )) $[2+3]", &["echo ${} ${}", "n"]),
        ("echo \"$(a \"$(b)\")\" `c \\`d\\``", &["echo $() $()", "a $()", "b", "c $()", "d"]),
        ("echo ${x:-$(a)} ${#y[@]} ${z//rm/mv}", &["echo ${} ${} ${}", "a"]),
        ("echo ${ a; } \"${| b c; }\" ${x:-${ d; }}", &["echo $() $() ${}", "a", "b c", "d"]),
        ("echo ${x@P} ${x@Q}", &["echo $() ${}", "eval $x"]),
        ("diff <(a) >(b)", &["diff <() <()", "a", "b"]),
        ("# rm x\na # rm", &["a"]),
        ("echo a#b", &["echo a#b"]),
        ("'rm' \"-r\"f $'\\x78' r\\m r''m", &["rm -rf x rm rm"]),
        ("rm $'top\\xe9' $'\\xc3\\xa9' $'\\351\\u00e9'", &["rm top? é ?é"]),
        ("rm \\\n  -rf \\\r\n out", &["rm -rf out"]),
        ("a\r\nb\r\n", &["a", "b"]),
        ("echo !(a|b).c x@(d)", &["echo !(a|b).c x@(d)"]),
        ("cat <<EOF | b; c\nrm\nEOF\nd", &["cat", "b", "c", "d"]),
        ("cat <<'EOF' > f && c\n$(rm)\nEOF", &["cat", "c"]),
        ("cat <<A <<-B\na\nA\n\tb\n\tB\nc", &["cat", "c"]),
        ("x=$(cat <<'EOF'\nrm 'x\nEOF\n); y", &["cat", "y"]),
        ("x=$(cat <<EOF\na\nEOF)\ny", &["cat", "y"]),
        ("cat <<\\EOF\n`rm`\nEOF", &["cat"]),
        ("cat <<\"E F\"\nE F\na", &["cat", "a"]),
        ("cat <<< 'rm x'", &["cat"]),
        ("coproc X { cat; }; echo hi >&${X[1]}", &["cat", "echo hi"]),
        ("exec {fd}>out 3>&- 2>&1", &["exec"]),
        ("a 2>&1 >/dev/null &>x >|y <>z", &["a"]),
        ("trap 'rm x' EXIT", &["trap rm x EXIT"]),
        ("echo }", &["echo }"]),
        ("a() { b; }; { c; } > f", &["b", "c"]),
        ("if [ -f a ]; then { b; }; fi; c", &["[ -f a ]", "b", "c"]),
        ("while read -r l; do case $l in x) a;; esac; done", &["read -r l", "a"]),
        ("$(case x in a) b;; esac)", &["$()", "b"]),
    ];
    for (line, expected) in table {
        check(line, expected);
    }
}

#[test]
fn redirects_of_lines() {
    let table: &[(&str, &[(RedirectKind, &str)])] = &[
        ("a > b", &[(RedirectKind::Output, "b")]),
        ("a >>b 2>c", &[(RedirectKind::Append, "b"), (RedirectKind::Output, "c")]),
        (
            "a >&2 2>&1 <&3 >&-",
            &[
                (RedirectKind::Duplicate, "2"),
                (RedirectKind::Duplicate, "1"),
                (RedirectKind::Duplicate, "3"),
                (RedirectKind::Duplicate, "-"),
            ],
        ),
        (
            "a >&file &>g &>>h",
            &[(RedirectKind::Output, "file"), (RedirectKind::Output, "g"), (RedirectKind::Append, "h")],
        ),
        ("a >| b <>c", &[(RedirectKind::Output, "b"), (RedirectKind::Output, "c")]),
        ("a < b <<< c", &[(RedirectKind::Input, "b"), (RedirectKind::HereString, "c")]),
        ("a {fd}> b", &[(RedirectKind::Output, "b")]),
        ("a x2>b", &[(RedirectKind::Output, "b")]),
    ];
    for (line, expected) in table {
        let (script, _) = scanned(line);
        let PipelineStage::Simple(simple) = &script.pipelines[0].stages[0] else { panic!("{line}") };
        let found: Vec<_> = simple.redirects.iter().map(|redirect| (redirect.kind, text(&redirect.target))).collect();
        let expected: Vec<_> = expected.iter().map(|(kind, target)| (*kind, (*target).to_owned())).collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn spans_point_into_the_line() {
    let line = "a && rm -rf 'x y' | b";
    let (script, _) = scanned(line);
    let PipelineStage::Simple(simple) = &script.pipelines[1].stages[0] else { panic!("a simple command") };
    assert_eq!(&line[simple.span.0..simple.span.1], "rm -rf 'x y'");
    assert_eq!(&line[simple.words[2].span.0..simple.words[2].span.1], "'x y'");
}

#[test]
fn broken_lines_are_read_as_far_as_possible() {
    for (line, expected) in [
        ("rm x; echo 'abc", vec!["rm x", "echo abc"]),
        (";rm x", vec!["rm x"]),
        ("a ) b", vec!["a", "b"]),
        ("fi; rm x", vec!["rm x"]),
        ("if a; then rm x", vec!["a", "rm x"]),
        ("(rm x", vec!["rm x"]),
        ("{ rm x", vec!["rm x"]),
        ("echo $(rm x", vec!["echo $()", "rm x"]),
        ("case x in a) rm x", vec!["rm x"]),
    ] {
        let (script, bounds) = scanned(line);
        let mut found = Vec::new();
        commands(&script, &mut found);
        assert_eq!(found, expected, "{line}");
        assert!(bounds.partial || line.starts_with(';'), "{line}");
    }
}

fn spans_hold(script: &Script, line: &str) {
    for stage in script.pipelines.iter().flat_map(|pipeline| &pipeline.stages) {
        match stage {
            PipelineStage::Simple(simple) => {
                for (start, end) in simple.words.iter().map(|word| word.span).chain([simple.span]) {
                    assert!(start <= end && end <= line.len(), "{line:?} {start} {end}");
                    assert!(line.is_char_boundary(start) && line.is_char_boundary(end), "{line:?}");
                }
            }
            PipelineStage::Compound(compound) => spans_hold(&compound.body, line),
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_scanned(line in any::<String>()) {
        let (script, _) = scanned(&line);
        spans_hold(&script, &line);
    }

    #[test]
    fn any_shell_like_text_is_scanned(line in "([a-z$(){}\\[\\]`'\"\\\\|&;<> \n\t#!=*?é\r]|\\$\\(|<<|EOF|if |then |fi|do |done|case |esac|\\(\\(|\\)\\)|\\[\\[ ){0,120}") {
        let (script, _) = scanned(&line);
        spans_hold(&script, &line);
    }
}
