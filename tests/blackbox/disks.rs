//! Real full, small and read-only file systems, and limits of the process.
//!
//! Mounting needs root, or user namespaces; without either the tests say that they were skipped.

use std::process::Command;

use super::support::{Lab, Output, not_allowed, tree};

/// Runs the rest of a script with a mount namespace of its own; `None`, said aloud, where that is not allowed.
pub(crate) fn mounted(lab: &Lab, script: &str) -> Option<Output> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let mut command = lab.command("unshare", &lab.work);
    command.arg(if root { "-m" } else { "-rm" });
    let probe = command.args(["sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        not_allowed("mounting");
        return None;
    }
    let mut command = lab.command("unshare", &lab.work);
    command.arg(if root { "-m" } else { "-rm" }).args(["sh", "-eu", "-c", script]);
    let output = command.env("PITON", env!("CARGO_BIN_EXE_piton")).env("ROOT", lab.root()).output().unwrap();
    Some(Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

pub(crate) fn passes(output: Option<Output>) {
    if let Some(output) = output {
        assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    }
}

/// The head of all scripts: `code EXPECTED TEXT command…` checks the exit code and that the output names TEXT.
pub(crate) const CHECK: &str = r#"
    code() {
        want=$1 text=$2; shift 2
        got=0; said=$("$@" 2>&1) || got=$?
        [ "$got" = "$want" ] || { echo "$*: exit $got, not $want: $said"; exit 1; }
        case "$said" in *"$text"*) ;; *) echo "$*: does not say $text: $said"; exit 1;; esac
    }
"#;

#[test]
fn a_full_store() {
    let lab = Lab::new();
    lab.write("precious", "p");
    passes(mounted(
        &lab,
        &format!(
            r#"{CHECK}
            mkdir "$ROOT/small"; mount -t tmpfs -o size=2m none "$ROOT/small"; export PITON_HOME="$ROOT/small/piton"
            "$PITON" checkpoint one >/dev/null
            # More than there is room for: refused, and what is there stays good.
            head -c 4000000 /dev/urandom > big
            code 1 disk-full "$PITON" checkpoint --json two
            code 0 '"n": 1' "$PITON" list --json
            code 0 '' "$PITON" show 1:precious
            # Nearly full: the last part is left to others, and the need is named.
            rm big; echo more > more
            head -c 1 /dev/zero > "$ROOT/small/probe"
            free=$(stat -f -c '%a' "$ROOT/small"); block=$(stat -f -c '%S' "$ROOT/small")
            head -c $((free * block - 20000)) /dev/zero > "$ROOT/small/filler"
            code 1 'never uses the last' "$PITON" checkpoint three
            # Quite full: not a byte of what exists is touched, but for a log whose records are durable in their places.
            cat /dev/zero > "$ROOT/small/filler2" 2>/dev/null || true
            before=$(find "$ROOT/small/piton" -type f ! -name lock ! -name log ! -name guarded ! -name store.lock -exec sha1sum {{}} + | sort)
            code 1 disk-full "$PITON" checkpoint --json four
            code 1 pre-restore-failed "$PITON" restore 1 --yes --json
            # A sidecar says so, and the agent goes on.
            echo '{{"id":1,"type":"shell.before","command":"rm precious"}}' | "$PITON" sidecar > "$ROOT/replies"
            grep -q '"notice":"store.low-disk"' "$ROOT/replies" && grep -q '"status":"failed"' "$ROOT/replies"
            grep -q '"proceed":true' "$ROOT/replies"
            [ "$(cat precious)" = p ] && [ "$(cat more)" = more ]
            after=$(find "$ROOT/small/piton" -type f ! -name lock ! -name log ! -name guarded ! -name store.lock -exec sha1sum {{}} + | sort)
            [ "$before" = "$after" ] || {{ echo "changed: $before / $after"; exit 1; }}
            # Space is there again: all goes on.
            rm "$ROOT/small/filler" "$ROOT/small/filler2"
            "$PITON" checkpoint five >/dev/null
            code 0 'Restored' "$PITON" restore 1 --yes
            [ ! -e more ]
            "$PITON" undo --yes >/dev/null; [ "$(cat more)" = more ]
            git --git-dir="$PITON_HOME/store.git" fsck --full --strict --no-dangling 2>&1
            [ -z "$(find "$PITON_HOME/store.git" -name 'tmp_*')" ]"#
        ),
    ));
}

#[test]
fn a_full_disk_is_found_by_looking() {
    let lab = Lab::new();
    passes(mounted(
        &lab,
        &format!(
            r#"{CHECK}
            mkdir "$ROOT/small"; mount -t tmpfs -o size=4m none "$ROOT/small"; export PITON_HOME="$ROOT/small/piton"
            "$PITON" checkpoint one >/dev/null
            code 0 'Nothing is wrong' "$PITON" doctor
            head -c 8000000 /dev/zero > "$ROOT/small/fill" 2>/dev/null || true
            code 1 'free some space' "$PITON" doctor
            rm "$ROOT/small/fill"
            code 0 'Nothing is wrong' "$PITON" doctor
            "#
        ),
    ));
}

#[test]
fn a_full_workspace() {
    let lab = Lab::new();
    passes(mounted(
        &lab,
        &format!(
            r#"{CHECK}
            mkdir "$ROOT/small"; mount -t tmpfs -o size=2m none "$ROOT/small"; cd "$ROOT/small"
            mkdir w; cd w; head -c 900000 /dev/urandom > one; head -c 300000 /dev/urandom > two; echo s > small
            sums=$(sha1sum one two small)
            "$PITON" checkpoint >/dev/null
            rm one; echo changed > small
            cat /dev/zero > ../filler 2>/dev/null || true
            # What is staged does not fit: nothing at all is changed, and the need is said.
            code 1 disk-full "$PITON" restore 1 --yes --json
            [ "$(cat small)" = changed ] && [ ! -e one ] && [ -z "$(ls -A | grep piton-tmp || true)" ]
            rm ../filler
            "$PITON" restore 1 --yes >/dev/null
            [ "$(sha1sum one two small)" = "$sums" ]"#
        ),
    ));
}

#[test]
fn read_only_places() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.write("ro/b", "1");
    passes(mounted(
        &lab,
        &format!(
            r#"{CHECK}
            "$PITON" checkpoint >/dev/null
            echo 2 > a; echo 2 > ro/b
            mount --bind ro ro; mount -o remount,bind,ro ro
            # A part of the workspace is read-only: that is known beforehand, and nothing is changed; the rest can be had.
            code 1 '/ro`' "$PITON" restore 1 --yes
            [ "$(cat a)" = 2 ] && [ "$(cat ro/b)" = 2 ]
            code 0 'Restored' "$PITON" restore 1 a --yes
            [ "$(cat a)" = 1 ] && [ "$(cat ro/b)" = 2 ]
            umount ro
            "$PITON" undo --yes > /dev/null; [ "$(cat a)" = 2 ]
            # The store is read-only: checkpoints fail with a code, and reading goes on.
            mount --bind "$PITON_HOME" "$PITON_HOME"; mount -o remount,bind,ro "$PITON_HOME"
            echo 3 > a
            code 1 permission "$PITON" checkpoint --json
            code 0 '' "$PITON" list
            code 0 '' "$PITON" diff 1
            # Nothing is guarded there, whatever is installed.
            code 1 'is not guarded' "$PITON"
            code 1 'Read-only file system' "$PITON"
            code 1 'the store cannot be written' "$PITON" status
            code 1 'the store cannot be written' "$PITON" doctor
            code 1 'Read-only file system' "$PITON" doctor
            code 1 permission "$PITON" restore 1 --yes --json
            [ "$(cat a)" = 3 ]
            umount "$PITON_HOME"
            "$PITON" checkpoint > /dev/null
            # The workspace is read-only: it is captured all the same.
            mount --bind . .; mount -o remount,bind,ro .; cd "$PWD"
            code 0 'hanged' "$PITON" checkpoint
            code 1 permission "$PITON" restore 1 --yes --json"#
        ),
    ));
}

#[test]
fn a_part_of_the_home_that_is_mounted_elsewhere_is_not_written_to() {
    let lab = Lab::new();
    lab.write("a", "1");
    passes(mounted(
        &lab,
        &format!(
            r#"{CHECK}
            "$PITON" checkpoint >/dev/null
            mkdir "$ROOT/elsewhere"
            for part in . workspaces store.git/objects; do
                mount --bind "$PITON_HOME/$part" "$ROOT/elsewhere"
                code 2 bad-path "$PITON" restore 1 --to "$ROOT/elsewhere/new" --json
                [ ! -e "$ROOT/elsewhere/new" ]
                umount "$ROOT/elsewhere"
            done
            code 0 Wrote "$PITON" restore 1 --to "$ROOT/elsewhere/new"
            [ "$(cat "$ROOT/elsewhere/new/a")" = 1 ]"#
        ),
    ));
}

#[test]
fn a_limit_of_file_sizes() {
    let lab = Lab::new();
    lab.write("small", "s");
    let n = lab.take("before");
    let before = tree(&lab.home.join("piton/store.git"));
    let mut state = 1u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    lab.write("big", noise.take(3_000_000).collect::<Vec<_>>());
    // In blocks of 512 bytes: half a megabyte.
    let script = format!("ulimit -f 1000; exec '{}' checkpoint --json", env!("CARGO_BIN_EXE_piton"));
    let output = lab.command("/bin/sh", &lab.work).args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("disk-full"), "{said}");
    assert_eq!(tree(&lab.home.join("piton/store.git")), before, "nothing came, nothing went");
    lab.take("without the limit");
    assert_eq!(lab.piton(&["show", &format!("{n}:small")]).stdout, "s");
}

#[test]
fn directories_and_files_of_others() {
    if !Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n") {
        not_allowed("giving files to others");
        return;
    }
    let lab = Lab::new();
    lab.write("mine", "1");
    lab.write("theirs/file", "1");
    lab.write("hidden/file", "1");
    lab.sh("chmod 755 .. . theirs; chown -R 65534:65534 . ../home; chown -R 1:1 theirs hidden; chmod 700 hidden");
    lab.sh("chmod 711 ..");
    let piton = |args: &[&str]| {
        let mut command = lab.command("setpriv", &lab.work);
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_piton")]).args(args);
        let output = command.output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap_or(-1), text)
    };
    let reachable = piton(&["--version"]);
    if reachable.0 != 0 {
        not_allowed(&format!("running the binary as somebody else ({reachable:?})"));
        return;
    }
    let (code, text) = piton(&["checkpoint"]);
    assert!(code == 0, "{text}");
    let shown = piton(&["show", "1"]).1;
    assert!(shown.contains("hidden") && shown.contains("cannot be read"), "what was left out is said: {shown}");
    lab.sh("echo 2 > mine; echo 2 > theirs/file; chown 65534 mine; chown 1:1 theirs/file");
    let (code, text) = piton(&["restore", "1", "--yes"]);
    assert_eq!(code, 1, "known beforehand, so nothing is changed: {text}");
    assert!(text.contains("/theirs`") && text.contains("piton restore N PATH…"), "{text}");
    assert_eq!((lab.read("mine").as_str(), lab.read("theirs/file").as_str()), ("2\n", "2\n"));
    let (code, text) = piton(&["restore", "1", "mine", "--yes"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!((lab.read("mine").as_str(), lab.read("theirs/file").as_str()), ("1", "2\n"));
}

#[test]
fn no_room_for_a_second_copy_of_a_large_checkpoint() {
    let lab = Lab::new();
    lab.sh("for n in $(seq 40); do seq $n 160000 > f$n; done");
    passes(mounted(
        &lab,
        &format!(
            r#"{CHECK}
            mkdir "$ROOT/small"; mount -t tmpfs -o size=200m none "$ROOT/small"; export PITON_HOME="$ROOT/small/piton"
            packs="$PITON_HOME/store.git/objects/pack"
            code 0 '' "$PITON" checkpoint one
            ls "$packs"/pack-light-*.pack >/dev/null
            touch -d '1 hour ago' "$packs"/pack-light-*.pack
            before=$(cd "$packs"; ls pack-light-*)
            # It stays as it is, and that is said; what was asked for is done.
            room=$(df --output=avail -B1 "$ROOT/small" | tail -1)
            head -c $((room - 4900000)) /dev/zero > "$ROOT/small/filler"
            code 0 'no space for a second copy' "$PITON" checkpoint two
            [ "$before" = "$(cd "$packs"; ls pack-light-*)" ]
            code 0 '"n": 2' "$PITON" list --json
            rm "$ROOT/small/filler"
            n=0
            while ls "$packs"/pack-light-* >/dev/null 2>&1; do
                n=$((n + 1)); [ $n -lt 50 ] || {{ echo "it is never compressed"; exit 1; }}
                code 0 '' "$PITON" checkpoint
            done
            [ $n -gt 2 ] || {{ echo "all of it in $n commands"; exit 1; }}
            seq 7 160000 > expected; "$PITON" show 1:f7 | cmp - expected
            # Where there is no room for both from the beginning, it is compressed at once.
            rm -r "$PITON_HOME"; head -c 100000000 /dev/zero > "$ROOT/small/filler"
            code 0 '' "$PITON" checkpoint three
            ls "$packs"/pack-*.pack >/dev/null
            ! ls "$packs"/pack-light-* >/dev/null 2>&1
            "#
        ),
    ));
}
