//! Scripts and tasks of the workspace: asked for, and read as a lower bound.

use super::evaluation::{context, policy};
use super::shared;
use crate::classify::Context;
use crate::model::effect::{Class, Confidence, Verdict};

const PACKAGE: &str = r#"{"scripts": {"reset": "rimraf dist && node scripts/x.js", "seed": "psql -c 'DROP TABLE users'", "dev": "vite"}}"#;

fn with(line: &str, files: &[(&str, &str)]) -> Verdict {
    let in_workspace = |(name, text): &(&str, &str)| (context().workspace.join(name), Some((*text).into()));
    let context = Context { files: files.iter().map(in_workspace).collect(), ..context() };
    shared().shell(line, &context, &policy())
}

/// Returns classes and targets, without those of the script itself.
fn found(verdict: &Verdict) -> Vec<(Class, Option<&str>)> {
    let inner = verdict.effects.iter().filter(|effect| effect.class != Class::ExecOpaque);
    inner.map(|effect| (effect.class, effect.target.as_deref())).collect()
}

#[test]
fn a_line_asks_for_what_it_runs() {
    for (line, wanted) in [
        ("sh x.sh", &["x.sh"][..]),
        ("bash ./a/x.sh && python3 b.py", &["a/x.sh", "b.py"]),
        ("./x.sh --all", &["x.sh"]),
        ("source env.sh", &["env.sh"]),
        ("cd sub && npm run reset", &["sub/package.json"]),
        ("make -C lib clean", &["lib/GNUmakefile", "lib/makefile", "lib/Makefile"]),
        ("make -f other.mk clean", &["other.mk"]),
        ("just clean", &["justfile", "Justfile", ".justfile"]),
        ("./ls; sh test", &["ls", "test"]),
        ("sh /tmp/x.sh; python3 ../x.py; node -e 1; ls; /bin/ls; ssh host ./x.sh; sh $X; cat x.sh", &[]),
    ] {
        let asked = with(line, &[]).scripts;
        let wanted: Vec<String> = wanted.iter().map(|name| format!("/home/dev/proj/{name}")).collect();
        assert_eq!(asked, wanted, "{line}");
    }
}

#[test]
fn a_script_with_the_name_of_a_known_program_is_read() {
    for (line, script, wanted) in [
        ("./ls", ("ls", "rm x\n"), Some("x")),
        ("./test --all", ("test", "#!/bin/sh\nrm x\n"), Some("x")),
        ("bash ./grep", ("grep", "rm x\n"), Some("x")),
        ("./cat a", ("cat", "ls\n"), None),
        ("./gradlew build", ("gradlew", "rm x\n"), None),
    ] {
        let verdict = with(line, &[script]);
        let targets: Vec<_> = found(&verdict).into_iter().filter_map(|(_, target)| target).collect();
        assert_eq!(targets, wanted.into_iter().collect::<Vec<_>>(), "{line}");
        assert!(wanted.is_none() || verdict.confidence == Confidence::Opaque, "{line}");
    }
}

#[test]
fn what_a_script_surely_does_counts_and_it_stays_opaque() {
    let sh = "#!/bin/sh\nset -e\ncd data\nrm -rf cache\npsql -c 'DROP TABLE t'\nsh other.sh\n";
    let py = "import shutil\ndef wipe():\n    shutil.rmtree('a')\nshutil.rmtree('b')\n";
    let make = "clean:\n\trm -rf out $(NONE)\n";
    let (delete, database) = (Class::FileDelete, Class::Database);
    for (line, files, wanted) in [
        ("sh reset.sh", &[("reset.sh", sh)][..], &[(delete, Some("cache")), (database, None)][..]),
        ("./reset.sh", &[("reset.sh", sh)], &[(delete, Some("cache")), (database, None)]),
        ("sh del.sh gone", &[("del.sh", "rm \"$1\"\n")], &[(delete, Some("gone"))]),
        ("source del.sh", &[("del.sh", "rm x\n")], &[(delete, Some("x"))]),
        ("python3 w.py", &[("w.py", py)], &[(delete, Some("b"))]),
        ("npm run reset", &[("package.json", PACKAGE)], &[(delete, Some("dist"))]),
        ("pnpm seed", &[("package.json", PACKAGE)], &[(database, None)]),
        ("npm run dev", &[("package.json", PACKAGE)], &[]),
        ("make clean", &[("Makefile", make)], &[(delete, Some("out"))]),
        ("just clean", &[("justfile", "clean:\n    rm x\n")], &[(delete, Some("x"))]),
        ("sh harmless.sh", &[("harmless.sh", "ls\n")], &[]),
        ("sh broken.sh", &[("broken.sh", "if ((( \"\n")], &[]),
        ("./app", &[("app", "#!/usr/bin/unknown-language\nrm x\n")], &[]),
    ] {
        let verdict = with(line, files);
        let given = found(&verdict);
        for effect in wanted {
            let is_it = |(class, target): &&(Class, Option<&str>)| {
                *class == effect.0 && (effect.1.is_none() || *target == effect.1)
            };
            assert!(given.iter().any(|given| is_it(&given)), "{line}: {effect:?} is not in {given:?}");
        }
        if wanted.is_empty() {
            assert_eq!(given, [], "{line}");
        }
        assert_eq!(verdict.confidence, Confidence::Opaque, "{line}");
        let is_inner = |path: &String| path.ends_with("other.sh") || path.ends_with("x.js");
        assert!(!verdict.scripts.iter().any(is_inner), "one level deep: {line} asks for {:?}", verdict.scripts);
    }
    let moved = with("sh reset.sh", &[("reset.sh", sh)]);
    assert!(moved.targets.iter().any(|target| target.ends_with("data/cache")), "{:?}", moved.targets);
    assert!(!moved.warnings.is_empty());
}

#[test]
fn aliases_of_git_are_expanded_and_unknown_ones_are_opaque() {
    let config = "[user]\n\tname = x\n[alias]\n\tco = checkout\n\tnuke = \"!rm -rf src\"\n\tst = status\n";
    let expected = [
        ("git co -f .", Class::VcsDiscard, None),
        ("git nuke", Class::FileDelete, Some("src")),
        ("git -C . nuke", Class::FileDelete, Some("src")),
    ];
    for (line, class, target) in expected {
        assert_eq!(with(line, &[]).confidence, Confidence::Opaque, "{line}");
        let verdict = with(line, &[(".git/config", config)]);
        let is_it = |(known, name): &(Class, Option<&str>)| *known == class && (target.is_none() || *name == target);
        assert!(found(&verdict).iter().any(is_it), "{line}: {verdict:?}");
    }
    let asked = with("git nuke", &[]).scripts;
    let names = ["/home/dev/proj/.git/config", "/home/dev/.gitconfig", "/home/dev/.config/git/config"];
    assert_eq!(asked, names);
    let verdict = with("git st", &[(".git/config", config)]);
    assert_eq!((verdict.confidence, found(&verdict)), (Confidence::Assumed, vec![]));
    assert_eq!(with("git status", &[]).scripts, Vec::<String>::new(), "git knows it itself");
}

#[test]
fn plug_ins_that_nobody_knows_are_opaque() {
    for line in [
        "git nuke",
        "cargo nuke",
        "gh nuke x",
        "kubectl nuke",
        "docker nuke",
        "terraform nuke",
        "helm nuke",
        "heroku app:frob",
        "python manage.py wipe_all",
        "php artisan app:wipe",
        "rails custom:task",
        "aws apigateway frob-x",
        "az acr frob x",
        "brew frob x",
        "pulumi --cwd infra frob",
    ] {
        assert_eq!(with(line, &[]).confidence, Confidence::Opaque, "{line}");
    }
    for line in [
        "git log",
        "cargo doc",
        "cargo --version",
        "gh browse",
        "kubectl options",
        "docker ps",
        "git --version",
        "terraform plan",
        "terraform -chdir=x output",
        "helm list",
        "heroku apps:info",
        "python manage.py check",
        "rails routes",
        "aws ec2 describe-instances",
        "az network application-gateway http-settings list",
        "brew info x",
        "pulumi --cwd infra preview",
        "terraform fmt -check",
        "kubectl apply -f x --dry-run=client",
    ] {
        assert_eq!(with(line, &[]).confidence, Confidence::Assumed, "{line}");
    }
}

#[test]
fn code_that_is_not_told_is_opaque() {
    for line in [
        "python3 -c 'import psycopg2; c = psycopg2.connect(\"x\").cursor(); c.execute(open(\"reset.sql\").read())'",
        "python3 -c 'def f(c, sql): c.execute(sql)'",
        "ssh h \"$(cat x.sh)\"",
        "python3 -c 'import subprocess; subprocess.run([\"bash\"], input=text)'",
        "python3 -c 'import subprocess; a = [\"ls\"]; a[0] = x; subprocess.run(a)'",
        "python3 -c 'import sys; sys.modules[\"os\"].remove(\"a\")'",
        "ruby -e 'Dir.children(\".\").each(&:unlink)'",
        "julia -e 'foreach(rm, readdir())'",
        "Rscript -e 'sapply(list.files(), unlink)'",
        "nvim --headless +PlugClean! +qa",
        "nix run .#clean",
    ] {
        assert_eq!(with(line, &[]).confidence, Confidence::Opaque, "{line}");
    }
    for line in [
        "python3 -c 'import psycopg2; c = psycopg2.connect(\"x\").cursor(); c.execute(\"SELECT 1\")'",
        "python3 -c 'import re; re.compile(x).sub(y, z)'",
        "julia -e 'println(1 + 1)'",
        "Rscript -e 'sessionInfo()'",
        "ssh h uptime",
    ] {
        assert_eq!(with(line, &[]).confidence, Confidence::Assumed, "{line}");
    }
}

#[test]
fn scripts_that_hide_an_effect_on_pitons_own_files_are_held() {
    let held = |line: &str, file: &str, text: &str| with(line, &[(file, text)]).hold.is_some();
    for (line, file, text) in [
        ("bash far.sh", "far.sh", "setsid -f env -i HOME=$HOME PATH=$PATH piton forget draft.txt --yes\n"),
        ("perl clean.pl", "clean.pl", "use File::Path;\nrmtree(\"$ENV{HOME}/.local/share/piton\");\n"),
        ("python3 c.py", "c.py", "import os, shutil\nshutil.rmtree(os.environ['HOME'] + '/.local/share/piton')\n"),
    ] {
        assert!(held(line, file, text), "{line}: {text}");
    }
    for (line, file, text) in [
        ("bash far.sh", "far.sh", "setsid -f env -i HOME=$HOME PATH=$PATH make\npiton list\n"),
        ("perl show.pl", "show.pl", "print \"$ENV{HOME}/.local/share/piton\";\n"),
        ("python3 c.py", "c.py", "import os, shutil\nshutil.rmtree(os.environ['HOME'] + '/.cache/x')\n"),
    ] {
        assert!(!held(line, file, text), "{line}: {text}");
    }
}
