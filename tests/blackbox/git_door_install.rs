//! `piton install git`: the setting and the hooks by which git asks piton, beside those of others, and out again byte for byte.
//!
//! A stand-in takes the place of the installed program: it notes what git asks, and refuses where a file says so.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::support::*;

/// The gits of this machine.
fn gits() -> Vec<PathBuf> {
    let all = ["/usr/bin/git", "/usr/local/bin/git"].map(PathBuf::from);
    all.into_iter().filter(|git| git.exists()).collect()
}

/// A repository, with piton at a path of its own.
struct Door {
    lab: Lab,
    git: PathBuf,
}

/// Each file and link below a directory: mode and content. The index is git's own, and names the answers of a door.
type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl Door {
    /// Makes a repository with one commit, and a server for it.
    fn with(git: &Path) -> Door {
        let lab = Lab::new();
        let door = Door { lab, git: git.to_owned() };
        std::fs::create_dir(door.lab.home.join("bin")).unwrap();
        let exe = env!("CARGO_BIN_EXE_piton");
        if std::fs::hard_link(exe, door.program()).is_err() {
            std::fs::copy(exe, door.program()).unwrap();
        }
        std::fs::write(door.lab.home.join(".gitconfig"), "[user]\n\tname = t\n\temail = t@example.org\n").unwrap();
        let server = door.lab.root().join("server.git");
        door.git(&["init", "-q", "-b", "main", "--bare", server.to_str().unwrap()]);
        door.git(&["init", "-q", "-b", "main"]);
        door.git(&["remote", "add", "origin", server.to_str().unwrap()]);
        door.lab.write("f", "first");
        door.git(&["add", "."]);
        door.git(&["commit", "-qm", "first"]);
        door
    }

    /// `None`, said aloud, where there is no git.
    fn new() -> Option<Door> {
        let git = gits().pop();
        if git.is_none() {
            lacking("git");
        }
        Some(Door::with(&git?))
    }

    fn program(&self) -> PathBuf {
        self.lab.home.join("bin/piton")
    }

    fn run_in(&self, cwd: &Path, program: &Path, args: &[&str]) -> Output {
        let mut command = self.lab.command(program.to_str().unwrap(), cwd);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.git.parent().unwrap().display());
        let output = command.env("PATH", path).args(args).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn git_in(&self, cwd: &Path, args: &[&str]) -> Output {
        self.run_in(cwd, &self.git, args)
    }

    fn git(&self, args: &[&str]) -> String {
        let output = self.git_in(&self.lab.work, args);
        assert_eq!(output.code, 0, "git {args:?}: {output:?}");
        output.stdout
    }

    /// piton itself, by the path that it installs.
    fn piton(&self, args: &[&str]) -> Output {
        self.piton_in(&self.lab.work, args)
    }

    fn piton_in(&self, cwd: &Path, args: &[&str]) -> Output {
        self.run_in(cwd, &self.program(), args)
    }

    /// Puts the stand-in in the place of piton.
    fn stand_in(&self) {
        let text = format!(
            r#"#!/bin/sh
log='{log}'
{{
    printf '%s|' "$@"
    printf 'f=%s|' "$(cat f 2>/dev/null)"
    [ "$2" = fsmonitor ] || {{ cat; echo .; }}
    echo
}} >>"$log"
[ "$2" != fsmonitor ] || {{ printf 'token\0/\0'; exit; }}
if [ -e '{refuse}' ]; then
    echo 'piton says no' >&2
    exit "$(cat '{refuse}')"
fi
"#,
            log = self.lab.root().join("asked").display(),
            refuse = self.refusal().display()
        );
        let aside = self.lab.home.join("bin/stand-in");
        std::fs::write(&aside, text).unwrap();
        std::fs::set_permissions(&aside, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::rename(self.program(), self.lab.home.join("bin/piton.real")).unwrap();
        std::fs::rename(aside, self.program()).unwrap();
    }

    /// Puts piton back.
    fn no_stand_in(&self) {
        std::fs::rename(self.lab.home.join("bin/piton.real"), self.program()).unwrap();
    }

    /// The file to which hooks of others write.
    fn log(&self) -> PathBuf {
        self.lab.root().join("told")
    }

    fn refusal(&self) -> PathBuf {
        self.lab.root().join("refuse")
    }

    /// Returns what git has asked since the last call.
    fn asked(&self) -> String {
        self.taken("asked")
    }

    /// Returns what the hooks of others have told since the last call.
    fn told(&self) -> String {
        self.taken("told")
    }

    fn taken(&self, name: &str) -> String {
        let path = self.lab.root().join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        text
    }

    fn config(&self) -> PathBuf {
        self.lab.work.join(".git/config")
    }

    fn hook(&self, name: &str) -> PathBuf {
        self.lab.work.join(".git/hooks").join(name)
    }

    /// The small program to which the hook for refs is a link.
    fn hook_program(&self) -> PathBuf {
        std::fs::read_link(self.hook("reference-transaction")).unwrap()
    }

    /// The small programs in piton's home.
    fn programs(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.lab.home.join("piton/bin")).into_iter().flatten();
        listed.map(|entry| entry.unwrap().path()).collect()
    }

    /// The value of `core.fsmonitor` that counts.
    fn setting(&self) -> String {
        self.git(&["config", "core.fsmonitor"]).trim_end().to_owned()
    }

    /// The value that calls piton itself.
    fn plain_setting(&self) -> String {
        format!("[ -x '{0}' ] && exec '{0}' git-door fsmonitor", self.program().display())
    }

    /// Returns true if a command has git ask piton for changed files.
    fn asks_for_files(&self, args: &[&str]) -> bool {
        self.git(args);
        self.asked().contains("git-door|fsmonitor|2|")
    }

    /// The files of a repository that an installation may touch.
    fn picture(&self) -> Picture {
        let mut found = Picture::new();
        let mut open = vec![self.lab.work.join(".git")];
        for path in ["f", ".husky", "hooks", "scripts"] {
            open.push(self.lab.work.join(path));
        }
        open.push(self.lab.home.join(".gitconfig"));
        while let Some(path) = open.pop() {
            let Ok(facts) = path.symlink_metadata() else { continue };
            let name = path.strip_prefix(self.lab.root()).unwrap().to_owned();
            if facts.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                found.insert(name, (0, target.into_os_string().into_encoded_bytes()));
            } else if facts.is_dir() {
                let is_of_gits = ["objects", "logs", "refs"].iter().any(|own| path.ends_with(own));
                if !is_of_gits {
                    found.insert(name, (facts.mode(), Vec::new()));
                    open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                }
            } else if !["index", "ORIG_HEAD", "COMMIT_EDITMSG", "packed-refs"].iter().any(|own| path.ends_with(own)) {
                found.insert(name, (facts.mode(), std::fs::read(&path).unwrap()));
            }
        }
        found
    }

    fn install(&self, args: &[&str]) -> Value {
        let all: Vec<&str> = ["install", "git", "--json"].into_iter().chain(args.iter().copied()).collect();
        let output = self.piton(&all);
        assert_eq!(output.code, 0, "{output:?}");
        output.json()
    }

    fn uninstall(&self, args: &[&str]) -> Output {
        let all: Vec<&str> = ["uninstall", "git"].into_iter().chain(args.iter().copied()).collect();
        let output = self.piton(&all);
        assert_eq!(output.code, 0, "{output:?}");
        output
    }
}

#[test]
fn git_asks_before_it_goes_on_and_after_the_uninstallation_nothing_is_left() {
    for git in gits() {
        let door = Door::with(&git);
        // The path of the program needs its quotes.
        let before = door.picture();
        let done = door.install(&[]);
        let rows: Vec<&str> = done["files"].as_array().unwrap().iter().filter_map(|row| row["done"].as_str()).collect();
        assert_eq!(rows, ["changed", "created", "created"], "{done}");
        let again = door.install(&[]);
        assert!(again["files"].as_array().unwrap().iter().all(|row| row["done"] == "unchanged"), "{again}");
        door.stand_in();

        door.lab.write("f", "changed");
        assert_eq!(door.git(&["status", "--short"]), " M f\n");
        assert_eq!(door.asked(), "", "this destroys nothing");
        door.git(&["reset", "-q", "--hard"]);
        let asked = door.asked();
        assert!(asked.starts_with("git-door|fsmonitor|2|"), "{asked}");
        assert!(asked.contains("|f=changed|"), "before the file is lost: {asked}");
        assert_eq!(door.lab.read("f"), "first");

        door.git(&["branch", "quiet"]);
        assert_eq!(door.asked(), "", "this destroys nothing");
        door.git(&["update-ref", "refs/heads/b", "HEAD"]);
        let asked = door.asked();
        let id = door.git(&["rev-parse", "HEAD"]);
        let line = format!("{} {} refs/heads/b\n.\n", "0".repeat(40), id.trim());
        assert!(asked.contains(&format!("git-door|reference-transaction|prepared|f=first|{line}")), "{asked}");
        assert!(!asked.contains("committed"), "{asked}");
        std::fs::write(door.refusal(), "1").unwrap();
        let refused = door.git_in(&door.lab.work, &["branch", "-D", "b"]);
        assert!(refused.code != 0 && refused.stderr.contains("piton says no"), "{refused:?}");
        assert!(door.git(&["branch"]).contains('b'));
        let refused = door.git_in(&door.lab.work, &["push", "-q", "origin", "main"]);
        assert!(refused.code != 0 && refused.stderr.contains("piton says no"), "{refused:?}");
        let line = format!("refs/heads/main {0} refs/heads/main {1}\n.\n", id.trim(), "0".repeat(40));
        let asked = door.asked();
        assert!(asked.contains("git-door|pre-push|origin|") && asked.contains(&line), "{asked}");
        // A piton that fails, or does not know the word, refuses nothing.
        for code in ["2", "101", "139"] {
            std::fs::write(door.refusal(), code).unwrap();
            door.git(&["branch", "-D", "b"]);
            door.git(&["branch", "b"]);
        }
        door.git(&["push", "-q", "origin", "main"]);
        // Without piton, all of it is as if it were not there.
        door.asked();
        std::fs::rename(door.program(), door.lab.home.join("bin/gone")).unwrap();
        door.lab.write("f", "again");
        assert_eq!(door.git(&["status", "--short"]), " M f\n");
        door.git(&["commit", "-qam", "second"]);
        door.git(&["push", "-q", "origin", "main"]);
        assert_eq!(door.asked(), "");

        door.no_stand_in();
        door.uninstall(&[]);
        assert_eq!(door.picture().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        door.lab.write("f", "first");
        assert_eq!(door.picture(), before);
        assert_eq!(door.git(&["status", "--short"]), " M f\n");
        assert_eq!(std::fs::read_to_string(door.lab.home.join("piton/git-doors")).unwrap(), "");
    }
}

#[test]
fn the_setting_goes_into_files_of_every_form() {
    let Some(door) = Door::new() else { return };
    let plain = std::fs::read_to_string(door.config()).unwrap();
    let forms: [(&str, String); 5] = [
        ("without an end", plain.trim_end().to_owned()),
        ("of Windows", plain.replace('\n', "\r\n")),
        ("without a section", plain.replace("[core]", "[CORE] repositoryformatversion = 0")),
        ("with includes", format!("[include]\n\tpath = ../../further\n{plain}[include]\n\tpath = none")),
        ("with a long value", format!("[alias]\n\tx = \"!f() {{ \\\n[core] \\\n}}; f\"\n{plain}")),
    ];
    std::fs::write(door.lab.root().join("further"), "[core]\n\tfsmonitor = off\n").unwrap();
    for (name, text) in forms {
        std::fs::write(door.config(), &text).unwrap();
        if name == "with includes" {
            // An answer of no is a person's as well.
            let refused = door.piton(&["install", "git", "--json"]);
            assert_eq!(
                (refused.code, std::fs::read_to_string(door.config()).unwrap()),
                (5, text.clone()),
                "{refused:?}"
            );
            std::fs::write(door.lab.root().join("further"), "[user]\n\tname = z").unwrap();
        }
        door.install(&[]);
        let value = door.git(&["config", "core.fsmonitor"]);
        assert_eq!(value.matches(door.program().to_str().unwrap()).count(), 2, "{name}: {value}");
        let config = door.lab.work.join(".git/config");
        let mode = config.metadata().unwrap().mode() & 0o777;
        door.uninstall(&[]);
        assert_eq!(std::fs::read_to_string(&config).unwrap(), text, "{name}");
        assert_eq!(config.metadata().unwrap().mode() & 0o777, mode);
    }
    // Settings that git adds later stay.
    door.install(&[]);
    door.git(&["config", "core.editor", "vi"]);
    door.uninstall(&[]);
    assert_eq!(
        (door.git(&["config", "core.editor"]).trim(), door.git_in(&door.lab.work, &["config", "core.fsmonitor"]).code),
        ("vi", 1)
    );
}

#[test]
fn nobody_elses_fsmonitor_is_replaced() {
    let Some(door) = Door::new() else { return };
    let linked = door.lab.root().join("linked");
    door.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let global = door.lab.home.join(".gitconfig");
    let own = std::fs::read(&global).unwrap();
    let refused = |what: &str, args: &[&str]| {
        let before = door.picture();
        let output = door.piton(&[&["install", "git", "--json"], args].concat());
        let row = output.json()["files"][0].clone();
        assert_eq!((output.code, row["code"].as_str()), (5, Some("conflict")), "{what}: {output:?}");
        assert!(row["message"].as_str().unwrap().contains(what), "{row}");
        assert_eq!(door.picture(), before, "{what}");
    };
    for value in ["true", "/usr/bin/watcher hook", ".git/hooks/fsmonitor-watchman", "false"] {
        door.git(&["config", "core.fsmonitor", value]);
        refused(value, &[]);
        door.git(&["config", "--unset", "core.fsmonitor"]);
        door.git(&["config", "--global", "core.fsmonitor", value]);
        refused(value, &["--global"]);
        if value == "false" {
            // That of one repository counts before that of the user.
            door.install(&[]);
            door.uninstall(&[]);
        } else {
            refused(value, &[]);
        }
        std::fs::write(&global, &own).unwrap();
    }
    // A work tree may have a setting of its own.
    door.git(&["config", "extensions.worktreeConfig", "true"]);
    let output = door.git_in(&linked, &["config", "--worktree", "core.fsmonitor", "mine"]);
    assert_eq!(output.code, 0, "{output:?}");
    refused("mine", &[]);
    assert_eq!(door.piton_in(&linked, &["install", "git"]).code, 5);
    std::fs::write(door.lab.work.join(".git/config.lock"), "").unwrap();
    std::fs::remove_file(door.lab.work.join(".git/worktrees/linked/config.worktree")).unwrap();
    let busy = door.piton(&["install", "git", "--json"]);
    assert_eq!(busy.json()["files"][0]["code"], "busy", "{busy:?}");
    assert!(!door.hook("pre-push").exists());
}

fn put_hook(path: &Path, text: &str, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// A hook that tells its surroundings, and ends with a code of its own.
fn telling(shell: &str, log: &Path) -> String {
    let log = log.display();
    match shell {
        "python" => format!(
            r#"#!/usr/bin/env python3
import os, sys
mine = {{k: v for k, v in os.environ.items() if k.startswith("GIT") and k != "GIT_TRACE"}}
with open("{log}", "a") as log:
    print(os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd(), sorted(mine.items()), sys.stdin.read(), file=log)
sys.exit(7)
"#
        ),
        other => format!(
            "{other}{{ printf '%s|' \"${{0%/*}}/${{0##*/}}\" \"$@\" \"$PWD\"; env | grep '^GIT' | grep -v TRACE | sort; cat; }} >>'{log}'\nexit 7\n"
        ),
    }
}

/// Makes the existing hook of a repository.
type MakeHook = fn(&Door, &Path);

#[test]
fn a_hook_of_any_language_goes_on_as_before() {
    let Some(door) = Door::new() else { return };
    let kinds: [(&str, MakeHook); 8] = [
        ("sh", |door, at| put_hook(at, &telling("#!/bin/sh\n", &door.log()), 0o755)),
        ("sh that is strict", |door, at| put_hook(at, &telling("#!/bin/sh -eu\n", &door.log()), 0o700)),
        ("bash", |door, at| {
            put_hook(at, &telling("#!/usr/bin/env bash\nset -euo pipefail\n", &door.log()), 0o755);
        }),
        ("python", |door, at| put_hook(at, &telling("python", &door.log()), 0o755)),
        ("without a first line", |door, at| put_hook(at, &telling("", &door.log()), 0o755)),
        ("a link into the work tree", |door, at| {
            put_hook(&door.lab.work.join("scripts/hook.py"), &telling("python", &door.log()), 0o755);
            symlink("../../scripts/hook.py", at).unwrap();
        }),
        ("a link to nothing", |_, at| symlink("nothing", at).unwrap()),
        ("not executable", |door, at| put_hook(at, &telling("#!/bin/sh\n", &door.log()), 0o644)),
    ];
    let ids: Vec<String> = (0..3)
        .map(|n| {
            door.git(&["commit", "-q", "--allow-empty", "-m", &n.to_string()]);
            door.git(&["rev-parse", "HEAD"]).trim().to_owned()
        })
        .collect();
    for (name, make) in kinds {
        for hook in ["pre-push", "reference-transaction"] {
            let at = door.hook(hook);
            make(&door, &at);
            // The same push, and the same refs, each time.
            let act = || {
                let output = match hook {
                    "pre-push" => door
                        .git_in(&door.lab.work, &["push", "-q", "--dry-run", "origin", "main", "HEAD~1:refs/heads/o"]),
                    _ => door.git_in(&door.lab.work, &["update-ref", "refs/heads/x", &ids[0]]),
                };
                let _ = door.git_in(&door.lab.work, &["update-ref", "--no-deref", "-d", "refs/heads/x"]);
                // git hints at a hook that it does not run.
                let says = output.stderr.lines().filter(|line| !line.starts_with("hint:"));
                (output.code, says.map(|line| format!("{line}\n")).collect::<String>())
            };
            let _ = door.told();
            let alone = act();
            let told = door.told();
            let is_run = !matches!(name, "a link to nothing" | "not executable");
            assert_eq!(!told.is_empty(), is_run, "{name} {hook}: {told}");
            let before = door.picture();
            door.install(&[]);
            assert!(before != door.picture());
            let once = door.picture();
            door.install(&[]);
            assert_eq!(door.picture(), once, "{name} {hook}");
            door.stand_in();
            let with = act();
            let asked = door.asked();
            assert!(asked.contains(&format!("git-door|{hook}|")), "{name} {hook}: {asked}");
            let line = if hook == "pre-push" { " refs/heads/o " } else { " refs/heads/x\n" };
            assert!(asked.contains(line), "{name} {hook}: {asked}");
            assert_eq!((with, door.told()), (alone.clone(), told.clone()), "{name} {hook}");
            // A refusal of piton's comes before it.
            std::fs::write(door.refusal(), "1").unwrap();
            let refused = act();
            assert!(refused.0 != 0 && refused.1.contains("piton says no"), "{name} {hook}: {refused:?}");
            let later = door.told();
            assert!(!later.contains("prepared") && !later.contains("refs/heads/o"), "{name} {hook}: {later}");
            std::fs::remove_file(door.refusal()).unwrap();
            // Without piton the hook runs alone.
            std::fs::rename(door.program(), door.lab.home.join("bin/gone")).unwrap();
            assert_eq!((act(), door.told()), (alone, told), "{name} {hook}");
            door.no_stand_in();
            door.uninstall(&[]);
            assert_eq!(door.picture(), before, "{name} {hook}");
            std::fs::remove_file(&at).unwrap();
        }
    }
}

#[test]
fn managers_of_hooks_go_on() {
    let Some(door) = Door::new() else { return };
    let log = door.log();
    let text = |name: &str| format!("#!/bin/sh\n{{ echo \"{name} $*\"; cat; }} >>'{}'\n", log.display());
    // husky: stubs that find their script by their own name.
    door.git(&["config", "core.hooksPath", ".husky/_"]);
    put_hook(&door.lab.work.join(".husky/_/.gitignore"), "*", 0o644);
    let stub = "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"";
    let h = "#!/usr/bin/env sh\n[ \"$HUSKY\" = \"2\" ] && set -x\nn=$(basename \"$0\")\ns=$(dirname \"$(dirname \"$0\")\")/$n\n\n[ ! -f \"$s\" ] && exit 0\nsh -e \"$s\" \"$@\"\nc=$?\n[ $c != 0 ] && echo \"husky - $n script failed (code $c)\"\nexit $c\n";
    put_hook(&door.lab.work.join(".husky/_/h"), h, 0o644);
    put_hook(&door.lab.work.join(".husky/_/pre-push"), stub, 0o755);
    put_hook(&door.lab.work.join(".husky/pre-push"), &text("husky"), 0o644);
    let before = door.picture();
    let push = ["push", "-q", "--dry-run", "origin", "main"];
    door.install(&[]);
    assert!(!door.hook("pre-push").exists() && door.lab.work.join(".husky/_/reference-transaction").exists());
    door.stand_in();
    door.git(&push);
    let asked = door.asked() + &door.told();
    assert!(asked.contains("git-door|pre-push|origin|") && asked.contains("\nhusky origin "), "{asked}");
    assert_eq!(asked.matches("refs/heads/main").count(), 4, "both read all of it: {asked}");
    door.no_stand_in();
    // husky writes its stubs anew with each `npm install`.
    put_hook(&door.lab.work.join(".husky/_/pre-push"), stub, 0o755);
    door.install(&[]);
    assert!(std::fs::read_to_string(door.lab.work.join(".husky/_/pre-push")).unwrap().contains("# piton begin"));
    door.uninstall(&[]);
    assert_eq!(door.picture(), before);
    door.git(&["config", "--unset", "core.hooksPath"]);

    // pre-commit: its script has a mark, by which a later `pre-commit install` knows it.
    let script = format!(
        "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n# ID: 138fd403232d2ddd5efb44317e38bf03\n\n# start templated\nARGS=(hook-impl --hook-type=pre-push)\n# end templated\n\nHERE=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\nARGS+=(--hook-dir \"$HERE\" -- \"$@\")\nexec {} \"${{ARGS[@]}}\"\n",
        door.lab.home.join("pre_commit").display()
    );
    put_hook(&door.lab.home.join("pre_commit"), &text("pre-commit"), 0o755);
    put_hook(&door.hook("pre-push"), &script, 0o755);
    let before = door.picture();
    door.install(&[]);
    assert!(std::fs::read_to_string(door.hook("pre-push")).unwrap().contains("# ID: 138fd403232d2ddd5efb44317e38bf03"));
    door.stand_in();
    door.git(&push);
    let (asked, hooks) = (door.asked() + &door.told(), door.lab.work.join(".git/hooks"));
    let called = format!("\npre-commit hook-impl --hook-type=pre-push --hook-dir {} -- origin ", hooks.display());
    assert!(asked.contains(&called) && asked.matches("refs/heads/main").count() == 4, "{asked}");
    door.no_stand_in();
    door.uninstall(&[]);
    assert_eq!(door.picture(), before);
    // Installed after piton, it moves piton's script aside and runs it.
    std::fs::remove_file(door.hook("pre-push")).unwrap();
    door.install(&[]);
    std::fs::rename(door.hook("pre-push"), door.hook("pre-push.legacy")).unwrap();
    put_hook(&door.hook("pre-push"), &script, 0o755);
    put_hook(
        &door.lab.home.join("pre_commit"),
        "#!/bin/sh\ncd .git/hooks && exec ./pre-push.legacy origin url\n",
        0o755,
    );
    door.stand_in();
    door.git(&push);
    assert!(door.asked().contains("git-door|pre-push|origin|url|"));
    door.no_stand_in();
    door.uninstall(&[]);
    assert_eq!(door.picture(), before);
    // Installed once more, piton is asked once, and a hook that it ran belongs to the manager.
    for mine in [None, Some(telling("python", &log))] {
        std::fs::remove_file(door.hook("pre-push")).unwrap();
        if let Some(mine) = &mine {
            put_hook(&door.hook("pre-push"), mine, 0o755);
        }
        door.install(&[]);
        std::fs::rename(door.hook("pre-push"), door.hook("pre-push.legacy")).unwrap();
        put_hook(&door.hook("pre-push"), &script, 0o755);
        door.install(&["--dry-run"]);
        assert!(std::fs::read_to_string(door.hook("pre-push.legacy")).unwrap().contains("piton install git"));
        door.install(&[]);
        assert_eq!(std::fs::read_to_string(door.hook("pre-push.legacy")).ok(), mine);
        assert!(!door.hook("piton-next").exists());
        let legacy = "cd .git/hooks && if [ -x pre-push.legacy ]; then exec ./pre-push.legacy origin url; fi\n";
        put_hook(&door.lab.home.join("pre_commit"), &format!("#!/bin/sh\n{legacy}"), 0o755);
        door.stand_in();
        door.git_in(&door.lab.work, &push);
        assert_eq!(door.asked().matches("git-door|pre-push|").count(), 1);
        assert_eq!(door.told().contains("refs/heads/main"), mine.is_some());
        door.no_stand_in();
        door.uninstall(&[]);
        assert_eq!(std::fs::read_to_string(door.hook("pre-push.legacy")).ok(), mine);
        assert_eq!(std::fs::read_to_string(door.hook("pre-push")).unwrap(), script);
    }
    std::fs::remove_file(door.hook("pre-push.legacy")).unwrap();
    std::fs::remove_file(door.hook("pre-push")).unwrap();

    // lefthook: a script of its own name; it moves one that is not its own to `.old`.
    let lefthook = format!(
        "#!/bin/sh\n\nif [ \"$LEFTHOOK\" = \"0\" ]; then\n  exit 0\nfi\n\ncall_lefthook()\n{{\n  {} \"$@\"\n}}\n\ncall_lefthook run \"pre-push\" \"$@\"\n",
        door.lab.home.join("lefthook").display()
    );
    put_hook(&door.lab.home.join("lefthook"), &text("lefthook"), 0o755);
    put_hook(&door.hook("pre-push"), &telling("python", &log), 0o755);
    let mine = std::fs::read(door.hook("pre-push")).unwrap();
    door.install(&[]);
    std::fs::rename(door.hook("pre-push"), door.hook("pre-push.old")).unwrap();
    put_hook(&door.hook("pre-push"), &lefthook, 0o755);
    door.install(&[]);
    door.stand_in();
    door.git(&push);
    let asked = door.asked() + &door.told();
    assert!(asked.contains("git-door|pre-push|") && asked.contains("\nlefthook run pre-push origin "), "{asked}");
    door.no_stand_in();
    door.uninstall(&[]);
    // As lefthook would have left it without piton.
    assert_eq!(std::fs::read(door.hook("pre-push.old")).unwrap(), mine);
    assert_eq!(std::fs::read_to_string(door.hook("pre-push")).unwrap(), lefthook);
    assert!(!door.hook("piton-next").exists());
}

#[test]
fn a_hook_that_was_written_anew_over_pitons_stays() {
    let Some(door) = Door::new() else { return };
    put_hook(&door.hook("pre-push"), "#!/usr/bin/python3\nprint('old')\n", 0o755);
    door.install(&[]);
    assert!(door.hook("piton-next/pre-push").exists());
    put_hook(&door.hook("pre-push"), "#!/usr/bin/env ruby\n", 0o755);
    let gone = door.uninstall(&[]);
    assert!(gone.stderr.contains("another program has replaced pre-push"), "{gone:?}");
    assert_eq!(std::fs::read_to_string(door.hook("pre-push")).unwrap(), "#!/usr/bin/env ruby\n");
    assert!(!door.hook("piton-next").exists() && !door.hook("reference-transaction").exists());
    let kept = door.lab.home.join("piton/backups");
    let mut open = vec![kept];
    let mut texts = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { texts.push(std::fs::read_to_string(path).unwrap()) }
        }
    }
    assert!(texts.iter().any(|text| text.contains("print('old')")), "{texts:?}");
}

#[test]
fn hooks_that_are_committed_or_shared_change_only_with_consent() {
    let Some(door) = Door::new() else { return };
    door.git(&["config", "core.hooksPath", "hooks"]);
    put_hook(&door.lab.work.join("hooks/pre-push"), "#!/bin/sh\n", 0o755);
    let hooks = |door: &Door| std::fs::read_dir(door.lab.work.join("hooks")).unwrap().count();
    let before = door.picture();
    let part = door.piton(&["install", "git", "--json"]);
    let rows = part.json()["files"].clone();
    assert_eq!((part.code, rows[0]["done"].as_str(), rows[1]["code"].as_str()), (4, Some("changed"), Some("conflict")));
    assert!(rows[1]["message"].as_str().unwrap().contains("committed"), "{rows}");
    assert_eq!(
        (hooks(&door), std::fs::read_to_string(door.lab.work.join("hooks/pre-push")).unwrap()),
        (1, "#!/bin/sh\n".to_owned())
    );
    door.install(&["--yes"]);
    assert_eq!(hooks(&door), 2);
    door.uninstall(&[]);
    assert_eq!(door.picture(), before);
    // The same behind a link.
    door.git(&["config", "--unset", "core.hooksPath"]);
    std::fs::remove_dir_all(door.lab.work.join(".git/hooks")).unwrap();
    symlink("../hooks", door.lab.work.join(".git/hooks")).unwrap();
    let before = door.picture();
    assert_eq!(door.piton(&["install", "git"]).code, 4);
    door.uninstall(&[]);
    assert_eq!(door.picture(), before);

    // A directory that all repositories of the user have.
    std::fs::remove_file(door.lab.work.join(".git/hooks")).unwrap();
    let shared = door.lab.home.join("shared hooks");
    put_hook(&shared.join("pre-push"), "#!/bin/sh\n", 0o755);
    door.git(&["config", "--global", "core.hooksPath", "~/shared hooks"]);
    let refused = door.piton(&["install", "git"]);
    assert!(refused.code == 4 && refused.stderr.contains("other repositories"), "{refused:?}");
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 1);
    door.uninstall(&[]);
    door.install(&["--global"]);
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 2);
    // A repository without a hook of its own needs nothing more.
    let again = door.install(&["--yes"]);
    assert!(again["files"].as_array().unwrap().iter().all(|row| row["done"] == "unchanged"), "{again}");
    let left = door.piton(&["uninstall", "git"]);
    assert!(left.code == 4 && left.stderr.contains("--global"), "{left:?}");
    door.uninstall(&["--global"]);
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(shared.join("pre-push")).unwrap(), "#!/bin/sh\n");
}

#[test]
fn hooks_behind_a_link_out_of_the_repository_change_only_with_consent() {
    let Some(door) = Door::new() else { return };
    let (shared, hooks) = (door.lab.home.join("team hooks"), door.lab.work.join(".git/hooks"));
    put_hook(&shared.join("pre-push"), "#!/bin/sh\n", 0o755);
    symlink(&shared, door.lab.home.join("between")).unwrap();
    let entries = || std::fs::read_dir(&shared).unwrap().count();
    for target in [shared.clone(), door.lab.home.join("between")] {
        std::fs::remove_dir_all(&hooks).or_else(|_| std::fs::remove_file(&hooks)).unwrap();
        symlink(&target, &hooks).unwrap();
        let before = door.picture();
        for args in [&["install", "git"][..], &["init", "--yes"]] {
            let refused = door.piton(args);
            assert!(refused.stderr.contains("other repositories"), "{args:?}: {refused:?}");
            assert!(refused.code == 4 || args[0] == "init", "{refused:?}");
            assert_eq!(entries(), 1, "{args:?}");
            assert_eq!(std::fs::read_to_string(shared.join("pre-push")).unwrap(), "#!/bin/sh\n");
        }
        door.uninstall(&[]);
        assert_eq!(door.picture(), before);
        door.install(&["--yes"]);
        assert_eq!(entries(), 2);
        let left = door.piton(&["uninstall", "git"]);
        assert!(left.code == 4 && left.stderr.contains("other repositories"), "{left:?}");
        assert_eq!(entries(), 2, "nothing there changes without a question");
        door.uninstall(&["--yes"]);
        assert_eq!(door.picture(), before);
        assert_eq!(std::fs::read_to_string(shared.join("pre-push")).unwrap(), "#!/bin/sh\n");
    }
}

#[test]
fn a_hook_that_cannot_be_put_in_is_told_and_all_else_is_done() {
    let make_dir = |path: &Path| std::fs::create_dir_all(path.join("inside")).unwrap();
    let make_pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let makers: [&dyn Fn(&Path); 2] = [&make_dir, &make_pipe];
    for (make, name, other) in [
        (makers[0], "pre-push", "reference-transaction"),
        (makers[0], "reference-transaction", "pre-push"),
        (makers[1], "pre-push", "reference-transaction"),
        (makers[1], "reference-transaction", "pre-push"),
    ] {
        let Some(door) = Door::new() else { return };
        std::fs::create_dir_all(door.hook(name).parent().unwrap()).unwrap();
        make(&door.hook(name));
        let part = door.piton(&["install", "git", "--json"]);
        let failed = part.json()["files"].as_array().unwrap().iter().find(|row| row["done"] == "failed").cloned();
        assert_eq!((part.code, &failed.unwrap()["code"]), (4, &Value::from("bad-path")), "{name}: {part:?}");
        assert!(door.hook(other).is_file(), "{name}: {part:?}");
        assert!(std::fs::read_to_string(door.config()).unwrap().contains("fsmonitor"), "{name}");
        // Neither waits for a pipe.
        assert!(door.piton(&["doctor", "--json"]).stdout.contains(name));
        door.uninstall(&[]);
        assert!(!door.hook(other).exists() && door.hook(name).symlink_metadata().is_ok());
    }
}

#[test]
fn the_users_own_file_is_the_one_that_git_chooses() {
    let Some(door) = Door::new() else { return };
    let own = door.lab.home.join(".gitconfig");
    let further = door.lab.home.join("config/git/config");
    // A link to dotfiles stays one.
    let kept = door.lab.home.join("dotfiles");
    std::fs::rename(&own, &kept).unwrap();
    symlink("dotfiles", &own).unwrap();
    let text = std::fs::read(&kept).unwrap();
    let done = door.install(&["--global"]);
    assert_eq!(done["files"][0]["path"], own.to_str().unwrap());
    assert!(own.is_symlink() && door.git(&["config", "--global", "core.fsmonitor"]).contains("git-door fsmonitor"));
    // In a repository only the hooks are missing.
    let rows = door.install(&[]);
    assert_eq!(rows["files"].as_array().unwrap().len(), 2, "{rows}");
    let still = door.uninstall(&[]);
    assert!(still.stderr.contains("uninstall git --global"), "{still:?}");
    door.uninstall(&["--global"]);
    assert!(own.is_symlink() && std::fs::read(&kept).unwrap() == text);
    std::fs::remove_file(&own).unwrap();
    // It is made where there is none, and goes again.
    door.install(&["--global"]);
    assert!(own.is_file());
    door.uninstall(&["--global"]);
    assert!(!own.exists());
    std::fs::create_dir_all(further.parent().unwrap()).unwrap();
    std::fs::write(&further, "[user]\n\tname = t").unwrap();
    let done = door.install(&["--global"]);
    assert_eq!(done["files"][0]["path"], further.to_str().unwrap());
    door.uninstall(&["--global"]);
    assert_eq!(std::fs::read_to_string(&further).unwrap(), "[user]\n\tname = t");
    let named = door.lab.root().join("named");
    let mut command = door.lab.command(door.program().to_str().unwrap(), &door.lab.work);
    let output = command.env("GIT_CONFIG_GLOBAL", &named).args(["install", "git", "--global"]).output().unwrap();
    assert!(output.status.success() && named.is_file(), "{output:?}");
}

#[test]
fn one_installation_serves_all_work_trees_and_none_of_a_submodule() {
    let Some(door) = Door::new() else { return };
    let linked = door.lab.root().join("linked");
    door.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let server = door.lab.root().join("server.git");
    door.git(&["push", "-q", "origin", "main"]);
    door.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", server.to_str().unwrap(), "sub"]);
    let sub = door.lab.work.join("sub");
    assert_eq!(door.piton_in(&linked, &["install", "git"]).code, 0);
    assert!(door.hook("pre-push").exists());
    door.stand_in();
    door.asked();
    for (tree, is_asked) in [(&door.lab.work, true), (&linked, true), (&sub, false)] {
        std::fs::write(tree.join("f"), "changed").unwrap();
        assert_eq!(door.git_in(tree, &["reset", "-q", "--hard"]).code, 0);
        let asked = door.asked();
        assert_eq!(asked.contains("f=changed"), is_asked, "{}: {asked}", tree.display());
    }
    door.no_stand_in();
    assert_eq!(door.piton_in(&sub, &["install", "git"]).code, 0);
    assert!(door.lab.work.join(".git/modules/sub/hooks/pre-push").exists());
    assert_eq!(door.piton_in(&sub, &["uninstall", "git"]).code, 0);
    assert!(door.hook("pre-push").exists());
    door.uninstall(&[]);
    assert!(!door.hook("pre-push").exists());
}

#[test]
fn what_git_cannot_do_here_is_said_with_a_code() {
    let Some(door) = Door::new() else { return };
    let server = door.lab.root().join("server.git");
    let none = door.lab.root().join("none");
    std::fs::create_dir(&none).unwrap();
    let code = |dir: &Path| door.piton_in(dir, &["install", "git", "--json"]).json()["files"][0]["code"].clone();
    assert_eq!(code(&server), "workspace-refused");
    assert_eq!(code(&door.lab.work.join(".git")), "workspace-refused");
    assert_eq!(code(&none), "bad-path");
    // A bare repository with work trees is asked from one of these.
    let tree = door.lab.root().join("tree");
    door.git(&["push", "-q", "origin", "main"]);
    assert_eq!(door.git_in(&server, &["worktree", "add", "-q", tree.to_str().unwrap(), "main"]).code, 0);
    assert_eq!(door.piton_in(&tree, &["install", "git"]).code, 0);
    assert!(server.join("hooks/reference-transaction").exists());
    assert_eq!(door.piton_in(&tree, &["uninstall", "git"]).code, 0);
    let owned = Command::new("chown").args(["-R", "1234"]).arg(&door.lab.work).output().unwrap();
    if owned.status.success() {
        assert_eq!(code(&door.lab.work), "permission");
    } else {
        not_allowed("giving a directory away");
    }
    std::fs::write(door.lab.home.join("bin/git"), "#!/bin/sh\necho git version 2.25.9\n").unwrap();
    std::fs::set_permissions(door.lab.home.join("bin/git"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = door.lab.command(door.program().to_str().unwrap(), &door.lab.work);
    let path = format!("{}:/usr/bin:/bin", door.lab.home.join("bin").display());
    let output = command.env("PATH", path).args(["install", "git"]).output().unwrap();
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && says.contains("git is version 2.25") && says.contains("2.28"), "{says}");
    let misplaced = door.piton(&["install", "claude-code", "--global", "--json"]);
    assert_eq!((misplaced.code, misplaced.error().as_str()), (2, "bad-request"));
}

#[test]
fn uninstall_all_takes_every_git_door_out() {
    let Some(door) = Door::new() else { return };
    let other = door.lab.root().join("other");
    let away = door.lab.root().join("a/way");
    for dir in [&other, &away] {
        std::fs::create_dir_all(dir).unwrap();
        assert_eq!(door.git_in(dir, &["init", "-q"]).code, 0);
    }
    put_hook(&door.hook("pre-push"), "#!/usr/bin/python3\n", 0o755);
    let before = (door.picture(), tree(&other.join(".git")), tree(&away.join(".git")));
    let dry = door.piton(&["install", "git", "--dry-run"]);
    assert!(dry.code == 0 && dry.stdout.contains("+\tfsmonitor = "), "{dry:?}");
    assert_eq!(door.picture(), before.0);
    door.install(&[]);
    door.install(&["--global"]);
    assert_eq!(door.piton_in(&other, &["install", "git"]).code, 0);
    assert_eq!(door.piton_in(&away, &["install", "git"]).code, 0);
    // Each hook once, links too.
    let dry = door.piton(&["uninstall", "--all", "--dry-run", "--json"]).json();
    let rows = dry["files"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_owned());
    let mut rows: Vec<String> = rows.filter(|path| path.contains("/hooks/")).collect();
    rows.sort();
    let all = rows.len();
    rows.dedup();
    assert_eq!((rows.len(), all >= 6), (all, true), "{dry}");
    let dry = door.piton(&["uninstall", "--all", "--dry-run"]).stdout;
    for path in &rows {
        let name = path.trim_start_matches(&format!("{}/", door.lab.root().display())).to_owned();
        assert!(dry.contains(&name), "{name}: {dry}");
    }
    std::fs::rename(door.lab.root().join("a"), door.lab.root().join("b")).unwrap();
    let gone = door.piton(&["uninstall", "--all"]);
    assert!(gone.code == 0 && gone.stderr.contains("a/way/.git"), "{gone:?}");
    assert_eq!(gone.stderr.matches("a/way").count(), 1, "{gone:?}");
    assert_eq!((door.picture(), tree(&other.join(".git"))), (before.0, before.1));
    std::fs::rename(door.lab.root().join("b"), door.lab.root().join("a")).unwrap();
    assert_eq!(door.piton(&["uninstall", "--all"]).code, 0);
    assert_eq!(tree(&away.join(".git")), before.2);
    assert!(
        !door.lab.home.join("piton/git-doors").exists()
            || std::fs::read(door.lab.home.join("piton/git-doors")).unwrap().is_empty()
    );
}

#[test]
fn the_scripts_are_clean() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/git");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    // The small hook is Rust, which rustfmt and clippy read in `.ci/run`.
    let scripts: Vec<PathBuf> = files.filter(|file| file.extension().is_none_or(|kind| kind != "rs")).collect();
    assert!(scripts.len() >= 2);
    for check in [&["shellcheck", "-s", "sh"][..], &["shfmt", "-i", "4", "-ci", "-ln", "posix", "-d"]] {
        for script in &scripts {
            let Ok(output) = Command::new(check[0]).args(&check[1..]).arg(script).output() else {
                lacking(check[0]);
                continue;
            };
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success() && said.is_empty(), "{check:?}: {said}");
        }
    }
}

/// Returns the row of `piton doctor` about git, if one has this text.
fn row(door: &Door, part: &str) -> Value {
    let told = door.piton(&["doctor", "--json"]).json();
    let rows = told["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| row["about"] == "git" && row["text"].as_str().unwrap().contains(part));
    found.unwrap_or_else(|| panic!("{part}: {told}")).clone()
}

#[test]
fn the_small_hook_asks_before_a_loss_alone() {
    for git in gits() {
        let door = Door::with(&git);
        door.install(&[]);
        assert!(door.hook_program().starts_with(door.lab.home.join("piton/bin")), "{:?}", door.hook_program());
        door.stand_in();
        let asks = |args: &[&str]| {
            door.git(args);
            door.asked().contains("|reference-transaction|prepared|")
        };
        for args in [
            &["commit", "-q", "--allow-empty", "-m", "one"][..],
            &["checkout", "-q", "-b", "new"],
            &["branch", "other"],
            &["-c", "user.name=x", "-C", ".", "commit", "-q", "--allow-empty", "-m", "x"],
        ] {
            assert!(!asks(args), "{args:?}");
        }
        for args in [
            &["commit", "-q", "--amend", "--allow-empty", "-m", "two"][..],
            &["-C", ".", "branch", "-D", "other"],
            &["update-ref", "-d", "refs/heads/main"],
            &["reset", "-q", "--soft", "HEAD~1"],
        ] {
            assert!(asks(args), "{args:?}");
        }
        // Which refs are fetched is also for the configuration to say.
        door.git(&["push", "-q", "origin", "new"]);
        door.asked();
        assert!(!asks(&["fetch", "-q", "origin"]));
        door.git(&["tag", "here-alone"]);
        door.git(&["config", "fetch.prune", "true"]);
        door.git(&["config", "fetch.pruneTags", "true"]);
        door.asked();
        assert!(asks(&["fetch", "-q", "origin"]), "it deletes a tag");
        // The end of an earlier command is told first.
        let calls = door.lab.home.join("piton/git-calls");
        std::fs::create_dir_all(&calls).unwrap();
        assert!(!asks(&["commit", "-q", "--allow-empty", "-m", "three"]));
        std::fs::write(calls.join("1-2"), "").unwrap();
        assert!(asks(&["commit", "-q", "--allow-empty", "-m", "four"]));
        std::fs::remove_file(calls.join("1-2")).unwrap();
        // A command of which another hook has told is asked about once. The process of the shell becomes that of git.
        let words = ["-c", TOLD, calls.to_str().unwrap(), "update-ref", "refs/heads/told", "HEAD"];
        let done = door.run_in(&door.lab.work, Path::new("/bin/sh"), &words);
        assert_eq!((done.code, door.asked().as_str()), (0, ""), "{done:?}");
        assert!(asks(&["update-ref", "refs/heads/again", "HEAD"]), "the mark of one that is gone is another's");
        std::fs::remove_dir_all(&calls).unwrap();
        // As on another machine, where the link leads nowhere.
        std::fs::rename(door.hook_program(), door.lab.home.join("aside")).unwrap();
        let gone = door.git_in(&door.lab.work, &["commit", "-q", "--amend", "--allow-empty", "-m", "five"]);
        assert_eq!((gone.code, gone.stderr.as_str()), (0, ""), "{gone:?}");
        assert_eq!(door.asked().matches("reference-transaction").count(), 0);
        // Other users are to write here: their git would find a link into a private directory.
        door.no_stand_in();
        door.git(&["config", "core.sharedRepository", "group"]);
        door.install(&[]);
        let script = std::fs::read_to_string(door.hook("reference-transaction")).unwrap();
        assert!(script.starts_with("#!/bin/sh") && !door.hook("reference-transaction").is_symlink());
        door.uninstall(&[]);
        assert!(!door.hook("reference-transaction").exists());
    }
}

/// A script that has a git with its mark of a told command, as its process becomes that of git.
const TOLD: &str = r#"touch "$0/$$-$(cut -d' ' -f22 /proc/$$/stat)-0-0" && exec git "$@""#;

#[test]
fn a_git_that_destroys_nothing_starts_no_piton() {
    for git in gits() {
        let door = Door::with(&git);
        door.git(&["branch", "side"]);
        door.install(&[]);
        door.stand_in();
        let linked = door.lab.root().join("linked");
        door.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "side"]);
        door.lab.write("g", "new");
        door.lab.write("f", "changed");
        door.asked();
        for args in [
            &["status", "--short"][..],
            &["-c", "user.name=x", "-C", ".", "status"],
            &["diff", "--quiet", "HEAD", "--", "g"],
            &["add", "g"],
            &["commit", "-qm", "more"],
            &["checkout", "-q", "-b", "new"],
            &["-C", linked.to_str().unwrap(), "status"],
        ] {
            assert!(!door.asks_for_files(args), "{args:?}");
        }
        let index = std::fs::read(door.lab.work.join(".git/index")).unwrap();
        assert!(index.windows(6).any(|part| part == b"piton\0"), "git was answered");
        assert_eq!(door.git(&["status", "--short"]), " M f\n");
        for args in [
            &["stash", "-q"][..],
            &["stash", "pop", "-q"],
            &["checkout", "-q", "--", "f"],
            &["restore", "f"],
            &["checkout", "-q", "main"],
            &["switch", "-q", "-"],
            &["merge", "-q", "main"],
            &["cherry-pick", "--keep-redundant-commits", "side"],
            &["rebase", "-q", "--force-rebase", "side"],
            &["clean", "-qfd"],
            &["read-tree", "-u", "-m", "HEAD"],
            &["rm", "-q", "f"],
            &["reset", "-q", "--hard"],
            &["reset", "-q", "HEAD~0"],
            &["commit", "-q", "--amend", "--no-edit", "--allow-empty"],
            &["-C", linked.to_str().unwrap(), "reset", "-q", "--hard"],
        ] {
            assert!(door.asks_for_files(args), "{args:?}");
        }
        // Words that do not fit into what is read of a command.
        let many = vec!["f"; 16 << 10];
        assert!(door.asks_for_files(&[&["status", "--short"], &many[..]].concat()));
        // No git asks; and the question has another form.
        for form in ["2", "1"] {
            let script = format!("{} \"$@\"", door.setting());
            door.run_in(&door.lab.work, Path::new("/bin/sh"), &["-c", &script, "git", form, "token"]);
            assert!(door.asked().contains(&format!("git-door|fsmonitor|{form}|token|")));
        }
        // The end of an earlier command is told first, but not by a git that only reads.
        let calls = door.lab.home.join("piton/git-calls");
        std::fs::create_dir_all(&calls).unwrap();
        assert!(!door.asks_for_files(&["add", "."]));
        std::fs::write(calls.join("1-2"), "").unwrap();
        assert!(door.asks_for_files(&["add", "."]));
        assert!(!door.asks_for_files(&["status"]));
        std::fs::remove_file(calls.join("1-2")).unwrap();
        // A command that was told of is asked about once.
        let words = ["-c", TOLD, calls.to_str().unwrap(), "reset", "-q", "--hard"];
        let done = door.run_in(&door.lab.work, Path::new("/bin/sh"), &words);
        assert_eq!((done.code, door.asked().as_str()), (0, ""), "{done:?}");
        assert!(door.asks_for_files(&["reset", "-q", "--hard"]), "the mark of one that is gone is another's");
    }
}

#[test]
fn a_git_that_may_be_told_paths_asks_piton() {
    type Pairs = &'static [(&'static str, &'static str)];
    let Some(door) = Door::new() else { return };
    door.install(&[]);
    door.stand_in();
    let own = std::fs::read(door.lab.user_file()).unwrap_or_default();
    let others = "guard: off\n# ".to_owned() + &"long ".repeat(4096);
    let texts = [
        ("guard: off\n", false),
        ("", false),
        ("git: {fsmonitor_answers: paths}\n", true),
        ("# fsmonitor_answers\n", true),
        // These are not read here as a whole.
        (&others, true),
    ];
    let workspaces = door.lab.work.join(".piton.yaml");
    std::fs::create_dir_all(door.lab.user_file().parent().unwrap()).unwrap();
    for file in [&door.lab.user_file(), &workspaces] {
        for (text, asks) in texts {
            std::fs::write(file, text).unwrap();
            assert_eq!(door.asks_for_files(&["status"]), asks, "{}: {text:.40}", file.display());
        }
        std::fs::write(file, "").unwrap();
    }
    std::fs::remove_file(&workspaces).unwrap();
    std::fs::create_dir(&workspaces).unwrap();
    assert!(door.asks_for_files(&["status"]), "what cannot be read may hold it");
    std::fs::remove_dir(&workspaces).unwrap();
    assert_eq!(door.run_in(&door.lab.work, Path::new("/usr/bin/mkfifo"), &[workspaces.to_str().unwrap()]).code, 0);
    assert!(!door.asks_for_files(&["status"]), "a pipe is no settings file");
    std::fs::remove_file(&workspaces).unwrap();
    std::fs::remove_file(door.lab.user_file()).unwrap();
    let environments: [(Pairs, &[&str], bool); 5] = [
        (&[], &[], false),
        (&[("PITON_GIT_FSMONITOR_ANSWERS", "")], &[], true),
        (&[], &["XDG_CONFIG_HOME"], false),
        (&[("HOME", "")], &["XDG_CONFIG_HOME"], true),
        (&[], &["XDG_CONFIG_HOME", "HOME"], true),
    ];
    for (set, unset, asks) in environments {
        let mut command = door.lab.command(door.git.to_str().unwrap(), &door.lab.work);
        command.args(["status", "--short"]).envs(set.iter().copied());
        for name in unset {
            command.env_remove(name);
        }
        assert!(command.status().unwrap().success());
        assert_eq!(door.asked().contains("|fsmonitor|"), asks, "{set:?} {unset:?}");
    }
    std::fs::create_dir_all(door.lab.home.join(".config/piton")).unwrap();
    std::fs::write(door.lab.home.join(".config/piton/config.yaml"), texts[2].0).unwrap();
    let mut command = door.lab.command(door.git.to_str().unwrap(), &door.lab.work);
    assert!(command.args(["status", "--short"]).env_remove("XDG_CONFIG_HOME").status().unwrap().success());
    assert!(door.asked().contains("|fsmonitor|"));
    std::fs::write(door.lab.user_file(), own).unwrap();
}

#[test]
fn the_setting_names_its_small_program_where_that_can_be_used() {
    let Some(door) = Door::new() else { return };
    let before = door.picture();
    let plain = door.plain_setting();
    door.install(&[]);
    let value = door.setting();
    assert_eq!(door.programs().len(), 2, "of the setting, and of a hook");
    let small = door.programs().into_iter().find(|program| *program != door.hook_program()).unwrap();
    let named = format!("[ -x '{0}' ] && exec '{0}' git-door fsmonitor \"$@\"; {plain}", small.display());
    assert_eq!(value, named);
    // The form of a piton of before is renewed, and goes out.
    let old = std::fs::read_to_string(door.config()).unwrap();
    let end = old.find("\tfsmonitor = ").unwrap();
    let old = format!("{}\tfsmonitor = \"{plain}\"{}", &old[..end], &old[old.find(" # piton install git").unwrap()..]);
    for takes_out in [false, true] {
        std::fs::write(door.config(), &old).unwrap();
        assert_eq!(door.setting(), plain);
        assert_eq!(row(&door, "before it destroys files, moves refs or pushes")["state"], "well");
        if takes_out {
            door.uninstall(&[]);
            assert_eq!(door.picture(), before);
            assert!(door.programs().is_empty());
        } else {
            assert_eq!(door.install(&[])["files"][0]["done"], "changed");
            assert_eq!(door.setting(), named);
        }
    }
    door.install(&[]);
    // Without it, and on another machine, git asks piton itself; without both, nobody.
    door.stand_in();
    assert!(!door.asks_for_files(&["status"]));
    std::fs::remove_file(&small).unwrap();
    assert!(door.asks_for_files(&["status"]));
    door.no_stand_in();
    assert_eq!(
        row(&door, "its helper program, which saves it from starting piton each time, is missing")["state"],
        "note"
    );
    std::fs::write(&small, "#!/bin/sh\n").unwrap();
    assert_eq!(row(&door, "starting piton each time, is of a different build")["state"], "note");
    door.install(&[]);
    assert_eq!(small.metadata().unwrap().mode() & 0o777, 0o500);
    std::fs::rename(door.program(), door.lab.home.join("bin/gone")).unwrap();
    for args in [&["status"][..], &["reset", "--hard"], &["checkout", "-q", "-b", "other"]] {
        let alone = door.git_in(&door.lab.work, args);
        assert_eq!((alone.code, alone.stderr.as_str()), (0, ""), "{args:?}");
    }
    std::fs::rename(door.lab.home.join("bin/gone"), door.program()).unwrap();
    // Other users are to write here, who would not find it.
    door.git(&["config", "core.sharedRepository", "group"]);
    door.install(&[]);
    assert_eq!((door.setting(), door.programs()), (plain, Vec::new()));
    door.git(&["config", "--unset", "core.sharedRepository"]);
    door.install(&[]);
    assert_eq!((door.setting(), door.programs().len()), (named, 2));
    door.uninstall(&[]);
    // The setting of all repositories has one of its own.
    door.install(&["--global"]);
    let [small] = door.programs().try_into().unwrap();
    assert!(door.setting().starts_with(&format!("[ -x '{}' ]", small.display())));
    door.git(&["status"]);
    assert_eq!(door.piton(&["uninstall", "--all"]).code, 0);
    assert!(door.programs().is_empty() && !door.lab.home.join("piton/bin").exists());
}

#[test]
fn a_hook_that_is_written_through_the_link_is_its_owners() {
    let Some(door) = Door::new() else { return };
    let other = door.lab.root().join("other");
    door.git(&["init", "-q", other.to_str().unwrap()]);
    assert_eq!(door.piton_in(&other, &["install", "git"]).code, 0);
    let others = std::fs::read_link(other.join(".git/hooks/reference-transaction")).unwrap();
    let hook = door.hook("reference-transaction");
    let theirs = "#!/bin/sh\necho theirs >&2\n";
    for takes_out in [true, false] {
        door.install(&[]);
        let program = door.hook_program();
        assert_ne!(program, others, "each hook has a program of its own");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(&hook, theirs).unwrap();
        assert_eq!(row(&door, "replaced the hook reference-transaction")["state"], "wrong");
        if takes_out {
            door.uninstall(&[]);
        } else {
            door.install(&[]);
            assert!(std::fs::read_to_string(&hook).unwrap().contains("# piton begin"));
            let said = door.git_in(&door.lab.work, &["branch", "b"]).stderr;
            assert!(said.contains("theirs"), "{said}");
            door.uninstall(&[]);
        }
        assert!(!hook.is_symlink() && !program.exists());
        assert_eq!(std::fs::read_to_string(&hook).unwrap(), theirs);
        assert_eq!(std::fs::metadata(&hook).unwrap().mode() & 0o777, 0o755);
        std::fs::remove_file(&hook).unwrap();
    }
    assert!(others.exists());
}

#[test]
fn a_script_of_pitons_that_its_owner_has_changed_is_kept() {
    let Some(door) = Door::new() else { return };
    door.git(&["config", "core.sharedRepository", "group"]);
    door.install(&[]);
    let hook = door.hook("reference-transaction");
    let text = std::fs::read_to_string(&hook).unwrap() + "# mine\n";
    std::fs::write(&hook, &text).unwrap();
    door.git(&["config", "--unset", "core.sharedRepository"]);
    door.install(&[]);
    assert!(hook.is_symlink());
    let kept = |dir: &Path| {
        let mut open = vec![dir.to_owned()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false if std::fs::read(&path).unwrap() == text.as_bytes() => return true,
                    false => {}
                }
            }
        }
        false
    };
    assert!(kept(&door.lab.home.join("piton/backups")));
    // A copy of a repository that follows links has the program itself.
    let program = std::fs::read(&hook).unwrap();
    std::fs::remove_file(&hook).unwrap();
    std::fs::write(&hook, program).unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    door.uninstall(&[]);
    assert!(!hook.exists());
}

#[test]
fn the_doctor_tries_the_door_and_says_how_to_mend_it() {
    let Some(door) = Door::new() else { return };
    assert_eq!(row(&door, "to guard them, run `piton install git`")["state"], "note");
    door.install(&["--global"]);
    assert_eq!(row(&door, "before it destroys files")["state"], "well");
    assert_eq!(row(&door, "commands that only move refs, and pushes, are not guarded")["state"], "note");
    door.uninstall(&["--global"]);
    door.install(&[]);
    let well = || assert_eq!(row(&door, "before it destroys files, moves refs or pushes")["state"], "well");
    well();
    let wrong = |part: &str, mend: Option<&str>| {
        let found = row(&door, part);
        assert_eq!(found["state"], "wrong", "{found}");
        assert_eq!(found["mend"]["command"].as_str(), mend, "{found}");
        let said = door.piton(&["status"]).stdout;
        assert!(said.contains("  commands of git  FAIL  ") && said.contains(part), "{said}");
        if mend.is_some() {
            door.install(&[]);
            well();
        }
    };
    let again = Some("piton install git");
    std::fs::remove_file(door.hook("reference-transaction")).unwrap();
    wrong("the hook reference-transaction is missing", again);
    std::fs::remove_file(door.hook_program()).unwrap();
    wrong("the program of the hook reference-transaction no longer exists", again);
    put_hook(&door.hook("pre-push"), "#!/bin/sh\nexit 0\n", 0o755);
    wrong("another program has replaced the hook pre-push", again);
    std::fs::set_permissions(door.hook("reference-transaction"), PermissionsExt::from_mode(0o644)).unwrap();
    wrong("because it is not executable", again);
    let text = std::fs::read_to_string(door.config()).unwrap();
    std::fs::write(door.config(), text.replace(" ] && exec ", " ] && ")).unwrap();
    wrong("`core.fsmonitor` is incomplete", again);
    door.git(&["config", "--unset", "core.fsmonitor"]);
    wrong("`core.fsmonitor` is no longer set", again);
    std::fs::write(door.config(), text.clone() + "[core]\n\tfsmonitor = true\n").unwrap();
    wrong("sets `core.fsmonitor` to `true`", None);
    std::fs::write(door.config(), text.clone()).unwrap();
    well();
    // A program that answers nothing is not well.
    std::fs::write(door.config(), text.replace("/bin/piton", "/bin/pitoff")).unwrap();
    wrong("which does not exist or cannot be run", again);

    let unseen = door.piton(&["status"]).stdout;
    assert!(unseen.contains("  commands of git  installed, not used yet\n"), "{unseen}");
    door.lab.write("f", "changed");
    door.git(&["reset", "-q", "--hard"]);
    let seen = door.piton(&["status"]).stdout;
    assert!(seen.contains(" is protected") && seen.contains("  commands of git  ok    last event"), "{seen}");
    door.piton(&["daemon", "stop"]);
}

#[test]
fn init_asks_for_the_git_door_in_a_repository() {
    let Some(door) = Door::new() else { return };
    let question = "Guard git commands that destroy something in this repository? [git]";
    let unasked = door.piton(&["init"]);
    assert!(unasked.code == 2 && unasked.stderr.contains(question), "{unasked:?}");
    let none = door.lab.root().join("none");
    std::fs::create_dir(&none).unwrap();
    let unasked = door.piton_in(&none, &["init"]);
    assert!(!unasked.stderr.contains("git"), "{unasked:?}");
    // Where git asks somebody else, it goes on to.
    door.git(&["config", "core.fsmonitor", "true"]);
    let before = door.picture();
    assert_eq!(door.piton(&["init", "--yes"]).code, 0);
    assert_eq!(door.picture(), before);
    door.git(&["config", "--unset", "core.fsmonitor"]);
    let before = door.picture();
    let done = door.piton(&["init", "--yes", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let rows = done.json()["files"].as_array().unwrap().clone();
    assert!(rows.len() == 3 && rows.iter().all(|row| row["client"] == "git"), "{rows:?}");
    assert!(door.hook("pre-push").exists());
    assert_eq!(door.piton(&["uninstall", "--all"]).code, 0);
    assert_eq!(door.picture(), before);
}

/// The variables of git in the environment of a command.
const VARIABLES: &str = "env | grep ^GIT_CONFIG_ | sort; git config --show-scope core.fsmonitor || echo none";

#[test]
fn an_agent_under_run_has_the_door_without_any_setting() {
    let Some(door) = Door::new() else { return };
    let before = door.picture();
    let run = |setting: &[(&str, &str)]| {
        let mut command = door.lab.command(door.program().to_str().unwrap(), &door.lab.work);
        command.envs(setting.iter().copied()).args(["run", "--quiet", "--", "sh", "-c", VARIABLES]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let given = |at: u8| format!("GIT_CONFIG_KEY_{at}=core.fsmonitor\n");
    let said = run(&[]);
    assert!(said.starts_with("GIT_CONFIG_COUNT=1\n") && said.contains(&given(0)), "{said}");
    let [small] = door.programs().try_into().unwrap();
    let value =
        format!("[ -x '{0}' ] && exec '{0}' git-door fsmonitor \"$@\"; {1}", small.display(), door.plain_setting());
    assert!(said.ends_with(&format!("command\t{value}\n")), "{said}");
    let said = run(&[("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "user.name"), ("GIT_CONFIG_VALUE_0", "x")]);
    assert!(said.starts_with("GIT_CONFIG_COUNT=2\nGIT_CONFIG_KEY_0=user.name\n") && said.contains(&given(1)), "{said}");
    // A person's own is not replaced, and one of piton's is there once.
    let own = run(&[("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.fsmonitor"), ("GIT_CONFIG_VALUE_0", "x")]);
    assert!(own.starts_with("GIT_CONFIG_COUNT=1\n") && own.ends_with("command\tx\n"), "{own}");
    door.git(&["config", "core.fsmonitor", "true"]);
    assert_eq!(run(&[]), "local\ttrue\n");
    door.git(&["config", "--unset", "core.fsmonitor"]);
    assert_eq!(door.picture(), before);
    door.install(&[]);
    assert_eq!(run(&[]), format!("local\t{}\n", door.setting()));
    door.uninstall(&[]);
    assert_eq!(door.programs(), [small], "sessions may go on");
    door.piton(&["daemon", "stop"]);
    assert_eq!(door.piton(&["uninstall", "--all"]).code, 0);
    assert!(!door.lab.home.join("piton/bin").exists());
}

#[test]
fn hooks_of_clients_give_their_commands_the_door() {
    let Some(door) = Door::new() else { return };
    let file = door.lab.root().join("claude env");
    std::fs::write(&file, "export A=b").unwrap();
    let hook = |client: &str, event: &str, payload: &str| {
        let mut command = door.lab.command(door.program().to_str().unwrap(), &door.lab.work);
        command.env("CLAUDE_ENV_FILE", &file).args(["hook", client, event, "--no-daemon"]);
        let mut child =
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let work = door.lab.work.to_str().unwrap();
    let start = format!(r#"{{"hook_event_name":"SessionStart","session_id":"s","cwd":"{work}","source":"startup"}}"#);
    for _ in 0..2 {
        hook("claude-code", "SessionStart", &start);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("export A=b\nexport GIT_CONFIG_KEY_0=") && text.lines().count() == 3, "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].ends_with(" PITON_SESSION='claude-code'") && lines[2].contains("--lines-of claude-code"),
        "{text}"
    );
    let script = format!(". '{}' && {VARIABLES}", file.display());
    let said = door.run_in(&door.lab.work, Path::new("/bin/sh"), &["-c", &script]);
    assert!(said.stdout.contains("command\t[ -x '") && said.stdout.contains("GIT_CONFIG_COUNT=1\n"), "{said:?}");
    let asks = format!(r#"{{"hook":"shell.env","directory":"{work}","input":{{"cwd":"{work}","sessionID":"s"}}}}"#);
    let given: Value = serde_json::from_str(&hook("opencode", "shell.env", &asks)).unwrap();
    assert_eq!(
        (&given["env"]["GIT_CONFIG_COUNT"], &given["env"]["GIT_CONFIG_KEY_0"]),
        (&"1".into(), &"core.fsmonitor".into())
    );
    // Where it is installed, nothing more is needed.
    door.install(&[]);
    assert_eq!(hook("opencode", "shell.env", &asks), "");
    std::fs::remove_file(&file).unwrap();
    hook("claude-code", "SessionStart", &start);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!((text.lines().next(), text.lines().count()), (Some("export PITON_SESSION='claude-code'"), 2), "{text}");
    door.piton(&["daemon", "stop"]);
}
