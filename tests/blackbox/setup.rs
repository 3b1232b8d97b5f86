//! `piton init` sets everything up, and `piton uninstall --all` takes it out again: in homes with dotfiles of every kind.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::installs;
use super::shells::{SHELLS, Typist};
use super::support::*;

/// Each file, link and directory of the home but piton's own: kind, mode and owner, links, time, content.
type Picture = Vec<(PathBuf, [u32; 3], u64, Option<SystemTime>, Vec<u8>)>;

fn picture(lab: &Lab) -> Picture {
    let mut found = Picture::new();
    let mut open = vec![lab.home.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let facts = path.symlink_metadata().unwrap();
            let (links, time) = (facts.nlink(), facts.modified().ok());
            let told = if path == lab.home.join("piton") {
                continue;
            } else if facts.is_symlink() {
                (1, None, std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
            } else if facts.is_file() {
                (links, time, std::fs::read(&path).unwrap())
            } else {
                open.push(path.clone());
                (0, None, Vec::new())
            };
            found.push((path, [facts.mode(), facts.uid(), facts.gid()], told.0, told.1, told.2));
        }
    }
    found.sort();
    found
}

/// Makes every file of the home old, so that a new time shows.
fn age(lab: &Lab) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (path, _, links, _, _) in picture(lab) {
        if links > 0 && path.is_file() && !path.is_symlink() {
            std::fs::File::open(path).unwrap().set_modified(old).unwrap();
        }
    }
}

fn rc(lab: &Lab, shell: &str) -> PathBuf {
    lab.home.join(match shell {
        "bash" => ".bashrc",
        "zsh" => ".zshrc",
        _ => "config/fish/config.fish",
    })
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn put(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn added(shell: &str) -> String {
    let piton = env!("CARGO_BIN_EXE_piton");
    match shell {
        "fish" => format!("{piton} init fish | source"),
        _ => format!("eval \"$({piton} init {shell})\""),
    }
}

/// Runs piton with a login shell.
fn with_login(lab: &Lab, shell: &str, args: &[&str]) -> Output {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.env("SHELL", format!("/bin/{shell}")).args(args).output().unwrap();
    Output {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A path beside a startup file, which no other one uses.
fn beside(at: &Path, name: &str) -> PathBuf {
    at.with_file_name(format!("{name}{}", at.file_name().unwrap().to_string_lossy()))
}

/// A kind of startup file.
struct Kind {
    name: &'static str,
    make: fn(&Path),
    /// True if piton adds its line.
    is_edited: bool,
    /// The exit codes of `init` and `uninstall --all`, and a part of what both say where they leave something.
    codes: (i32, i32),
    says: &'static str,
}

const fn edited(name: &'static str, make: fn(&Path)) -> Kind {
    Kind { name, make, is_edited: true, codes: (0, 0), says: "" }
}

const KINDS: &[Kind] = &[
    edited("plain", |at| put(at, "alias a=b\n")),
    edited("without an end", |at| put(at, "# first\nalias a=b")),
    edited("empty", |at| put(at, "")),
    edited("blank", |at| put(at, "\n\n")),
    edited("of Windows", |at| put(at, "alias a=b\r\n# last\r\n")),
    edited("of Windows without an end", |at| put(at, "alias a=b\r\n# last")),
    edited("no text", |at| put(at, b"# caf\xe9 \xff\nalias a=b\n")),
    edited("private", |at| {
        put(at, "alias a=b\n");
        mode(at, 0o600);
    }),
    edited("of another owner", |at| {
        put(at, "alias a=b\n");
        if std::os::unix::fs::chown(at, Some(1234), Some(4321)).is_err() {
            not_allowed("giving a file away");
        }
    }),
    edited("executable", |at| {
        put(at, "alias a=b\n");
        mode(at, 0o755);
    }),
    edited("a link", |at| {
        let kept = beside(at, "dotfiles/rc of mine");
        put(&kept, "alias a=b\n");
        mode(&kept, 0o640);
        symlink(kept.strip_prefix(at.parent().unwrap()).unwrap(), at).unwrap();
    }),
    edited("a link to a link to a blank file", |at| {
        put(&beside(at, "dotfiles/rc"), "");
        symlink(beside(at, "dotfiles/rc"), beside(at, "between")).unwrap();
        symlink(beside(at, "between").file_name().unwrap(), at).unwrap();
    }),
    edited("of two names", |at| {
        put(at, "alias a=b");
        std::fs::hard_link(at, beside(at, "second name")).unwrap();
    }),
    Kind {
        name: "read-only",
        make: |at| {
            put(at, "alias a=b\n");
            mode(at, 0o444);
        },
        is_edited: false,
        codes: (4, 0),
        says: "read-only",
    },
    Kind {
        name: "a link to nothing",
        make: |at| {
            put(&beside(at, "other"), "");
            symlink("nowhere", at).unwrap();
        },
        is_edited: false,
        codes: (4, 0),
        says: "leads nowhere",
    },
    Kind {
        name: "with a line of its owner's",
        make: |at| {
            let shell = at.to_string_lossy().rsplit(['.', '/']).next().unwrap().trim_end_matches("rc").to_owned();
            let piton = env!("CARGO_BIN_EXE_piton");
            put(at, format!("command -v {piton} >/dev/null && eval \"$({piton} init {shell})\"\nalias a=b\n"));
        },
        is_edited: false,
        codes: (0, 4),
        says: "in a form that piton did not write",
    },
];

#[test]
fn dotfiles_of_every_kind_there_and_back() {
    for kind in KINDS {
        let lab = Lab::new();
        lab.write("a", "a");
        for shell in SHELLS {
            (kind.make)(&rc(&lab, shell));
        }
        age(&lab);
        let before = picture(&lab);
        let name = kind.name;

        let done = lab.piton(&["init", "--yes"]);
        assert_eq!(done.code, kind.codes.0, "{name}: {done:?}");
        assert!(kind.codes.0 == 0 || done.stderr.contains(kind.says), "{name}: {done:?}");
        for shell in SHELLS {
            let path = rc(&lab, shell);
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
            assert!(!kind.is_edited || text.matches(&added(shell)).count() == 1, "{name}: {text}");
            let told = if kind.codes.0 == 0 { &done.stdout } else { &done.stderr };
            assert!(told.contains(&*path.to_string_lossy()), "{name}: {done:?}");
        }
        let installed = picture(&lab);
        assert_eq!(installed == before, !kind.is_edited, "{name}");

        let again = lab.piton(&["init", "--yes"]);
        assert_eq!((again.code, picture(&lab) == installed), (kind.codes.0, true), "{name}: {again:?}");
        assert!(again.stdout.contains("othing was changed"), "{name}: {again:?}");
        let dry = lab.piton(&["uninstall", "--all", "--dry-run"]);
        assert_eq!((dry.code, picture(&lab) == installed), (kind.codes.1, true), "{name}: {dry:?}");

        let gone = lab.piton(&["uninstall", "--all"]);
        assert_eq!(gone.code, kind.codes.1, "{name}: {gone:?}");
        assert!(kind.codes.1 == 0 || gone.stderr.contains(kind.says), "{name}: {gone:?}");
        assert!(gone.stdout.contains(&format!("rm -rf {}", lab.home.join("piton").display())), "{name}: {gone:?}");
        assert_eq!(picture(&lab), before, "{name}");
    }
}

#[test]
fn a_missing_file_is_made_and_goes_again() {
    for shell in SHELLS {
        let lab = Lab::new();
        lab.write("a", "a");
        let before = picture(&lab);
        let done = with_login(&lab, shell, &["init", "--yes"]);
        assert_eq!(done.code, 0, "{shell}: {done:?}");
        assert!(done.stdout.contains(&format!("created   {shell}")), "{shell}: {done:?}");
        assert_eq!(std::fs::read_to_string(rc(&lab, shell)).unwrap(), added(shell) + "\n");
        assert_eq!(rc(&lab, shell).metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(with_login(&lab, shell, &["uninstall", "--all"]).code, 0);
        assert_eq!(picture(&lab), before, "{shell}");
        // With text of its owner's in it by then, it stays.
        assert_eq!(with_login(&lab, shell, &["init", "--yes"]).code, 0);
        let text = std::fs::read_to_string(rc(&lab, shell)).unwrap();
        std::fs::write(rc(&lab, shell), format!("{text}export LATER=1\n")).unwrap();
        assert_eq!(lab.piton(&["uninstall", "--all"]).code, 0);
        assert_eq!(std::fs::read_to_string(rc(&lab, shell)).unwrap(), "export LATER=1\n", "{shell}");
    }
}

/// A file that has nothing but piton's line goes only if piton made it.
#[test]
fn a_file_that_its_owner_made_stays() {
    for shell in SHELLS {
        let lab = Lab::new();
        lab.write("a", "a");
        let (path, line) = (rc(&lab, shell), added(shell));
        let text = || std::fs::read_to_string(&path).ok();
        let init = || assert_eq!(with_login(&lab, shell, &["init", "--yes"]).code, 0);
        let uninstall = || {
            let gone = lab.piton(&["uninstall", "--all"]);
            assert_eq!(gone.code, 0, "{gone:?}");
            gone.stdout
        };
        // The owner's own line, with the end of a line and without.
        for own in [line.clone() + "\n", line.clone()] {
            put(&path, &own);
            init();
            assert_eq!(text().as_deref(), Some(own.as_str()));
            let dry = lab.piton(&["uninstall", "--all", "--dry-run", "--json"]).json();
            assert_eq!(dry["files"][0]["done"], "changed", "{dry}");
            assert!(uninstall().contains(&format!("changed   {shell}")));
            assert_eq!(text().as_deref(), Some(""), "{shell}");
        }
        // Now it is an empty file of the owner's, and comes back as one, also if its line is installed twice.
        init();
        init();
        uninstall();
        assert_eq!(text().as_deref(), Some(""), "{shell}");
        // It is gone when piton comes, so the next one is piton's.
        std::fs::remove_file(&path).unwrap();
        init();
        assert!(uninstall().contains(&format!("removed   {shell}")));
        assert_eq!(text(), None, "{shell}");
        // One that piton made, and in whose place the owner has put an own one.
        init();
        put(&path, "alias a=b\n");
        init();
        put(&path, line + "\n");
        uninstall();
        assert_eq!(text().as_deref(), Some(""), "{shell}");
        assert_eq!(std::fs::read_to_string(lab.home.join("piton/made-files")).unwrap(), "");
    }
}

#[test]
fn all_clients_and_shells_there_and_back() {
    let lab = installs::lab();
    lab.write(".git/HEAD", "ref: refs/heads/main\n");
    lab.write("read me.md", "kept\n");
    lab.write(".hidden", "x");
    // A file that is there without any text, for a client and in a shell.
    std::fs::write(lab.home.join(".cursor/hooks.json"), " \n").unwrap();
    SHELLS.iter().for_each(|shell| put(&rc(&lab, shell), "# mine"));
    age(&lab);
    let before = picture(&lab);
    let done = lab.piton(&["init", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    for name in ["claude-code", "goose", "bash", "zsh", "fish"] {
        assert!(done.stdout.contains(&format!("   {name}")), "{name}: {done:?}");
    }
    // The last line is a command that works as it stands.
    let command = done.stdout.lines().last().unwrap().trim().to_owned();
    assert!(command.ends_with(" restore 1 'read me.md'"), "{command}");
    std::fs::remove_file(lab.work.join("read me.md")).unwrap();
    lab.sh(&format!("{command} --yes"));
    assert_eq!(lab.read("read me.md"), "kept\n");
    let installed = picture(&lab);
    let again = lab.piton(&["init", "--yes"]);
    assert!(again.stdout.contains("nothing was changed"), "{again:?}");
    assert_eq!((again.code, picture(&lab) == installed), (0, true), "{again:?}");
    // A store that was moved is named with its link.
    let moved = lab.root().join("elsewhere");
    assert_eq!(lab.piton(&["store", "move", moved.to_str().unwrap(), "--yes"]).code, 0);
    let delete = format!("rm -rf {} {}\n", moved.display(), lab.home.join("piton").display());
    let said = lab.piton(&["uninstall", "--all"]);
    assert!(said.stdout.contains(&delete), "{said:?}");
    assert_eq!(lab.piton(&["init", "--yes"]).code, 0);
    let gone = lab.piton(&["uninstall", "--all", "--json"]);
    assert_eq!((gone.code, &gone.json()["store"]), (0, &json!(moved)), "{gone:?}");
    assert_eq!(picture(&lab), before);
    // The checkpoints are there as before.
    assert_eq!(lab.piton(&["show", "1:read me.md"]).stdout, "kept\n");
}

#[test]
fn uninstall_all_finds_what_was_installed_elsewhere() {
    let lab = Lab::new();
    lab.write(".git/HEAD", "ref: refs/heads/main\n");
    lab.write("a", "a");
    lab.take("first");
    // A project that is no workspace, one that is not there at the time, and hooks of a workspace.
    let (other, away) = (lab.root().join("other"), lab.root().join("away"));
    std::fs::create_dir_all(&away).unwrap();
    put(&other.join(".claude/settings.json"), "{}");
    for dir in [&lab.work, &other, &away] {
        assert_eq!(lab.piton_in(dir, &["-w", ".", "install", "--project", "claude-code", "cursor"]).code, 0);
    }
    assert!(other.join(".cursor/hooks.json").exists());
    let hidden = lab.root().join("hidden");
    std::fs::rename(&away, &hidden).unwrap();
    // The unit that the file's head tells to copy, enabled as systemd does.
    let units = lab.home.join("config/systemd/user");
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/service/piton.service");
    put(&units.join("piton.service"), std::fs::read(unit).unwrap());
    put(&units.join("pitonesque.service"), "[Service]\nExecStart=/bin/true\n");
    std::fs::create_dir(units.join("default.target.wants")).unwrap();
    symlink("../piton.service", units.join("default.target.wants/piton.service")).unwrap();
    // A broken file that has nothing of piton's is nobody's business.
    put(&lab.home.join(".qwen/settings.json"), "{ broken");
    assert_eq!(lab.piton(&["daemon", "start"]).code, 0);

    let gone = lab.piton(&["uninstall", "--all"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    assert!(gone.stdout.contains("has ended") && lab.piton(&["daemon", "status"]).code == 3, "{gone:?}");
    assert!(gone.stderr.contains(&*away.to_string_lossy()), "{gone:?}");
    assert_eq!(tree(&other).len(), 2, "{:?}", tree(&other).keys());
    assert_eq!(std::fs::read_to_string(other.join(".claude/settings.json")).unwrap(), "{}");
    assert!(!lab.work.join(".claude").exists() && !lab.work.join(".cursor").exists());
    let left: Vec<_> = tree(&units).into_keys().collect();
    assert_eq!(left, [PathBuf::from("pitonesque.service")]);
    // The one that was away is found when it is back.
    std::fs::rename(&hidden, &away).unwrap();
    let gone = lab.piton(&["uninstall", "--all"]);
    assert_eq!((gone.code, tree(&away).len()), (0, 0), "{gone:?}");
    assert_eq!(lab.piton(&["uninstall", "--all"]).code, 0);
    assert_eq!(std::fs::read_to_string(lab.home.join("piton/hooked-projects")).unwrap_or_default(), "");
}

#[test]
fn without_a_terminal_it_says_what_it_would_ask() {
    let lab = Lab::new();
    std::fs::create_dir(lab.home.join(".claude")).unwrap();
    put(&rc(&lab, "bash"), "");
    let before = picture(&lab);
    let said = with_login(&lab, "zsh", &["init"]);
    assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said:?}");
    for part in ["[claude-code]", "[bash zsh]", "piton init --yes"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    assert_eq!(lab.piton(&["init", "--json"]).error(), "bad-request");
    assert_eq!(lab.piton(&["init", "bash", "--yes"]).code, 2);
    assert_eq!(picture(&lab), before);
    assert!(!lab.home.join("piton").exists());
}

fn at_terminal(lab: Lab) -> Option<Typist> {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.arg("init").env("SHELL", "/bin/zsh");
    Typist::at("piton", lab, command)
}

#[test]
fn a_person_is_asked() {
    let lab = Lab::new();
    lab.write("a", "a");
    for dir in [".claude", ".codex"] {
        std::fs::create_dir(lab.home.join(dir)).unwrap();
    }
    put(&rc(&lab, "bash"), "");
    let mut person = at_terminal(lab).unwrap();
    person.until("[claude-code codex] ");
    person.press("claude\n");
    person.until("There is no `claude`");
    person.press("claude-code\n");
    person.until("[bash zsh] ");
    person.press("\n");
    let said = person.until(" restore 1 a");
    assert!(said.contains("created   claude-code") && !said.contains("created   codex"), "{said}");
    for shell in ["bash", "zsh"] {
        assert_eq!(std::fs::read_to_string(rc(&person.lab, shell)).unwrap(), added(shell) + "\n");
    }
    assert!(!person.lab.home.join(".codex/hooks.json").exists());
    // The end of the input is an answer, too.
    let lab = Lab::new();
    std::fs::create_dir(lab.home.join(".claude")).unwrap();
    let before = picture(&lab);
    let mut person = at_terminal(lab).unwrap();
    person.until("[claude-code] ");
    person.press("\u{4}");
    person.until("nothing was changed");
    assert_eq!(picture(&person.lab), before);
}

#[test]
fn the_file_is_the_one_that_the_shell_reads() {
    let lab = Lab::new();
    lab.write("a", "a");
    let at = |path: &str| lab.home.join(path);
    let has_line = |path: &str| std::fs::read_to_string(at(path)).is_ok_and(|text| text.contains(" init "));
    put(&at(".zshenv"), "export ZDOTDIR=\"$HOME/z dir\"\n");
    put(&at("z dir/.zshrc"), "# mine\n");
    // fish with nothing but a directory of files, and one whose file is not its owner's to change.
    put(&at("config/fish/conf.d/a.fish"), "# mine\n");
    assert_eq!(lab.piton(&["init", "--yes"]).code, 0);
    assert!(has_line("z dir/.zshrc") && !at(".zshrc").exists());
    assert!(has_line("config/fish/conf.d/piton.fish") && !at("config/fish/config.fish").exists());
    assert_eq!(lab.piton(&["uninstall", "--all"]).code, 0);
    assert!(!at("config/fish/conf.d/piton.fish").exists() && !has_line("z dir/.zshrc"));
    put(&at("config/fish/config.fish"), "# mine\n");
    mode(&at("config/fish/config.fish"), 0o444);
    assert_eq!(lab.piton(&["install", "fish"]).code, 0);
    assert!(has_line("config/fish/conf.d/piton.fish"));
    // A line in a file that Debian's or Fedora's `.bashrc` reads is not doubled.
    put(&at(".bashrc"), ". ~/.bash_aliases\n");
    put(&at(".bash_aliases"), added("bash") + "\n");
    assert_eq!(lab.piton(&["install", "bash"]).code, 0);
    assert!(!has_line(".bashrc"));
    // In a place that only zsh can work out, piton says so.
    put(&at(".zshenv"), "ZDOTDIR=$(mktemp -d)\n");
    let told = lab.piton(&["install", "zsh"]);
    assert!(told.code == 2 && told.stderr.contains("piton cannot tell where zsh's startup files are"), "{told:?}");
}

fn rows(lab: &Lab, about: &str) -> Vec<Value> {
    let told = lab.piton(&["doctor", "--json"]).json();
    told["rows"].as_array().unwrap().iter().filter(|row| row["about"] == about).cloned().collect()
}

#[test]
fn the_doctor_knows_the_shells() {
    let lab = Lab::new();
    lab.write("a", "a");
    for shell in SHELLS {
        assert!(rows(&lab, shell).is_empty(), "{shell}");
        put(&rc(&lab, shell), "# mine\n");
        let told = rows(&lab, shell);
        assert!(told[0]["state"] == "note" && told[0]["text"].to_string().contains("piton install"), "{told:?}");
        assert_eq!(lab.piton(&["install", shell]).code, 0);
        let told = rows(&lab, shell);
        assert_eq!(told[0]["state"], "well", "{told:?}");
        // A line that calls a program which is gone does nothing, and is renewed.
        let text = std::fs::read_to_string(rc(&lab, shell)).unwrap();
        std::fs::write(rc(&lab, shell), text.replace(env!("CARGO_BIN_EXE_piton"), "/gone/piton")).unwrap();
        let told = rows(&lab, shell);
        assert!(told[0]["state"] == "wrong" && told[0]["text"].to_string().contains("/gone/piton"), "{told:?}");
        assert_eq!(told[0]["mend"]["command"], format!("piton install {shell}"), "{told:?}");
        assert_eq!(lab.piton(&["install", shell]).code, 0);
        assert_eq!(std::fs::read_to_string(rc(&lab, shell)).unwrap(), text);
    }
    lab.set("policy: {file-delete: deny}\n");
    let texts = |shell| rows(&lab, shell).iter().map(|row| row["text"].to_string()).collect::<String>();
    assert!(texts("fish").contains("cannot cancel a command") && texts("fish").contains("file-delete: deny"));
    assert!(texts("bash").contains("its history leaves out") && !texts("zsh").contains("deny"));
    put(&lab.home.join(".bash_profile"), "PATH=/x\n");
    assert!(texts("bash").contains("login shells are not guarded"));
    put(&lab.home.join(".bash_profile"), ". ~/.bashrc\n");
    assert!(!texts("bash").contains("login shells"));
}

#[test]
fn lines_of_a_shell_that_was_set_up_are_protected() {
    for shell in SHELLS {
        let lab = Lab::new();
        lab.write(".git/HEAD", "ref: refs/heads/main\n");
        lab.write("a", "a");
        put(&rc(&lab, shell), "");
        assert_eq!(lab.piton(&["init", "--yes"]).code, 0);
        let waits = lab.piton(&["status"]);
        assert!(waits.stdout.contains(&format!("  lines typed in {shell}  installed, not used yet\n")), "{waits:?}");
        assert_eq!(lab.piton(&["daemon", "start"]).code, 0);
        let mut command = lab.command(shell, &lab.work);
        command.arg("-i");
        let Some(mut person) = Typist::at(shell, lab, command) else { continue };
        person.run("echo ready");
        person.run("rm a");
        person.await_turn("rm a");
        let lab = &person.lab;
        let protection = lab.piton(&["status", "--json"]).json()["protection"].clone();
        assert_eq!(protection["state"], "protected", "{shell}: {protection}");
        let door = &protection["doors"][0];
        assert_eq!((&door["door"], &door["client"], &door["guards"]), (&json!("shell"), &json!(shell), &json!(true)));
        for args in [&[][..], &["status"], &["doctor"]] {
            let said = lab.piton(args).stdout;
            let is_said = said.contains(&format!("protected for lines typed in {shell}, last event"))
                || (said.contains(" is protected")
                    && said.contains(&format!("  lines typed in {shell}  ok    last event")));
            assert!(is_said, "{shell}: {said}");
            assert!(said.contains("agents are not guarded") && said.contains("piton install --all"), "{said}");
        }
        // Without the line, the event is history.
        assert_eq!(lab.piton(&["uninstall", shell]).code, 0);
        assert!(lab.piton(&[]).stdout.contains(&format!("The last event came from lines typed in {shell}")));
        assert_eq!(lab.piton(&["status", "--json"]).json()["protection"]["state"], "not-guarded");
    }
}
