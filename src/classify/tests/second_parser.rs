//! Our scanner finds everything that another parser of bash finds: every program's name and every redirect's target, as written.
//!
//! `brush-parser` is an oracle for lines it can read, no more: it hangs and overflows on hostile ones.

use std::collections::BTreeSet;

use brush_parser::ast::{
    AndOr, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, IoFileRedirectTarget, IoRedirect,
    Pipeline, RedirectList, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};

use crate::classify::shell::{self, Bounds, Part, RedirectKind, Script, TextPlace, Word, scan};

/// Words as they stand in the line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    programs: BTreeSet<String>,
    targets: BTreeSet<String>,
}

// ---- theirs

fn theirs(line: &str) -> Option<Seen> {
    let mut parser = Parser::new(line.as_bytes(), &ParserOptions::default());
    let program = parser.parse_program().ok()?;
    let mut seen = Seen::default();
    program.complete_commands.iter().for_each(|list| of_list(list, &mut seen));
    Some(seen)
}

fn of_list(list: &CompoundList, seen: &mut Seen) {
    for item in &list.0 {
        of_pipeline(&item.0.first, seen);
        for AndOr::And(pipeline) | AndOr::Or(pipeline) in &item.0.additional {
            of_pipeline(pipeline, seen);
        }
    }
}

fn of_pipeline(pipeline: &Pipeline, seen: &mut Seen) {
    pipeline.seq.iter().for_each(|command| of_command(command, seen));
}

fn of_command(command: &Command, seen: &mut Seen) {
    match command {
        Command::Simple(simple) => of_simple(simple, seen),
        Command::Compound(compound, redirects) => {
            of_compound(compound, seen);
            of_redirects(redirects.as_ref(), seen);
        }
        Command::Function(function) => {
            of_compound(&function.body.0, seen);
            of_redirects(function.body.1.as_ref(), seen);
        }
        Command::ExtendedTest(_, redirects) => of_redirects(redirects.as_ref(), seen),
    }
}

fn of_simple(simple: &SimpleCommand, seen: &mut Seen) {
    seen.programs.extend(simple.word_or_name.iter().map(|word| word.value.clone()));
    let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
    let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
    for item in prefix.chain(suffix) {
        match item {
            Item::IoRedirect(redirect) => of_redirect(redirect, seen),
            Item::ProcessSubstitution(_, subshell) => of_list(&subshell.list, seen),
            Item::Word(_) | Item::AssignmentWord(..) => {}
        }
    }
}

fn of_compound(compound: &CompoundCommand, seen: &mut Seen) {
    match compound {
        CompoundCommand::Arithmetic(_) => {}
        CompoundCommand::ArithmeticForClause(clause) => of_list(&clause.body.list, seen),
        CompoundCommand::BraceGroup(group) => of_list(&group.list, seen),
        CompoundCommand::Subshell(subshell) => of_list(&subshell.list, seen),
        CompoundCommand::ForClause(clause) => of_list(&clause.body.list, seen),
        CompoundCommand::CaseClause(clause) => {
            clause.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|list| of_list(list, seen));
        }
        CompoundCommand::IfClause(clause) => {
            of_list(&clause.condition, seen);
            of_list(&clause.then, seen);
            for branch in clause.elses.iter().flatten() {
                branch.condition.iter().for_each(|list| of_list(list, seen));
                of_list(&branch.body, seen);
            }
        }
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            of_list(&clause.0, seen);
            of_list(&clause.1.list, seen);
        }
        CompoundCommand::Coprocess(coprocess) => of_command(&coprocess.body, seen),
    }
}

fn of_redirects(redirects: Option<&RedirectList>, seen: &mut Seen) {
    redirects.iter().flat_map(|list| &list.0).for_each(|redirect| of_redirect(redirect, seen));
}

fn of_redirect(redirect: &IoRedirect, seen: &mut Seen) {
    match redirect {
        IoRedirect::File(_, _, IoFileRedirectTarget::Filename(word)) | IoRedirect::OutputAndError(word, _) => {
            seen.targets.insert(word.value.clone());
        }
        IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, subshell)) => of_list(&subshell.list, seen),
        IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_) | IoFileRedirectTarget::Duplicate(_))
        | IoRedirect::HereDocument(..)
        | IoRedirect::HereString(..) => {}
    }
}

// ---- ours

fn ours(line: &str) -> Seen {
    let mut seen = Seen::default();
    let script = scan(line, TextPlace::At(0), &mut Bounds::default());
    of_script(&script, line, &mut seen);
    seen
}

fn written(word: &Word, line: &str) -> String {
    line.get(word.span.0..word.span.1).unwrap_or_default().to_owned()
}

fn of_script(script: &Script, line: &str, seen: &mut Seen) {
    for command in script.pipelines.iter().flat_map(|pipeline| &pipeline.stages) {
        let redirects = match command {
            shell::PipelineStage::Simple(simple) => {
                seen.programs.extend(simple.words.first().map(|word| written(word, line)));
                simple.words.iter().for_each(|word| of_word(word, line, seen));
                simple.assignments.iter().for_each(|assignment| of_word(&assignment.value, line, seen));
                &simple.redirects
            }
            shell::PipelineStage::Compound(compound) => {
                compound.words.iter().for_each(|word| of_word(word, line, seen));
                of_script(&compound.body, line, seen);
                &compound.redirects
            }
        };
        for redirect in redirects {
            of_word(&redirect.target, line, seen);
            if matches!(redirect.kind, RedirectKind::Input | RedirectKind::Output | RedirectKind::Append) {
                seen.targets.insert(written(&redirect.target, line));
            }
        }
    }
}

fn of_word(word: &Word, line: &str, seen: &mut Seen) {
    for part in &word.parts {
        if let Part::Process { script } = part {
            of_script(script, line, seen);
        }
    }
}

#[test]
fn what_another_parser_finds_is_found() {
    let (mut wrong, mut both) = (Vec::new(), 0);
    for line in super::oracle::labelled() {
        let Some(theirs) = theirs(&line) else { continue };
        let ours = ours(&line);
        both += 1;
        if !theirs.programs.is_subset(&ours.programs) || !theirs.targets.is_subset(&ours.targets) {
            wrong.push(format!("{line:?}\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(both > 1000, "{both} lines");
    println!("{both} lines");
}
