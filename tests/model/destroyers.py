#!/usr/bin/env python3
"""Shell lines that destroy work, run for real, and whether piton saved what each of them destroyed.

usage: destroyers.py [--piton PITON] [--dir DIR] [--mode MODE]… [--only N]… [--report FILE] [--keep] [--verbose]

The lines are in `tests/model/destroyers.txt`, whose head describes the form. Each line runs in a repository of its own, with a store
of its own. Within one turn there is a harmless action first. Then the agent writes files with new contents, and announces each write.
So the turn has its checkpoint already. Then the line is announced, runs if piton's answer allows it, and its end is announced.

  warm   a sidecar, whose watcher covers the workspace before the turn begins
  hooks  the hooks of Claude Code, and the daemon that they start
  git    as hooks, in a repository with `piton install git`
  cold   one hook before the line is the first thing that piton sees of the workspace; no daemon runs, and nothing is announced before

The truth is in the contents: each content of a regular file that was in the workspace right before the line and is in no file of it
right afterwards. Each of them must be an object that a ref of piton's stores reaches. For one line in ten, `piton restore` must also
bring each of them back exactly, from the checkpoint that `piton find` or `piton list` names. `.git` and empty files do not count.

A line whose program is missing is skipped. A line that destroys nothing is a fault of the table. Ends with 1 if a content is missing,
if a line destroyed nothing or was held, or if fewer than 250 lines ran. DIR must not be a directory of temporary files.
"""
import argparse, collections, hashlib, json, os, shutil, subprocess, sys, time
sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from world import Client, Home, tree, wipe

TABLE = os.path.join(HERE, "destroyers.txt")
MODES = ["warm", "hooks", "git", "cold"]
ENOUGH = 250
# Committed before the turn.
BASE = {".gitignore": "*.log\n", "a.txt": "a\none\ntwo\nthree\n", "b.txt": "b\none\ntwo\nthree\n", "src/c.txt": "c\n", "src/deep/d.txt": "d\n"}
# Written during the turn, before the line.
WORK = ["f", "a.txt", "src/n.txt", "src/deep/d.txt", ".hidden", "-dash", "sp ace", "ü.txt", "new\nline", "1/2/3/4/5/6/7/x", "run.log", ".env"]
HELPERS = """
exe() { mkdir -p "$(dirname "$1")"; printf '#!/bin/sh\\n%b\\n' "$2" > "$1"; chmod 755 "$1"; }
put() { mkdir -p "$(dirname "$1")"; printf '%b\\n' "$2" > "$1"; }
commit() { git add -A && git commit -qm "$1"; }
"""


class Entry:
    """A line of the table: what it needs, how its workspace is prepared, and the line itself."""

    def __init__(self, number, section, text):
        self.number, self.section, self.needs, self.files = number, section, [], []
        if text.startswith("["):
            words, text = text[1:].split("]", 1)
            self.needs = [word for word in words.split() if not word.startswith("+")]
            self.files = [word[1:] for word in words.split() if word.startswith("+")]
        setup, self.line = text.split("=> ", 1)
        self.setup, self.line = setup.strip().replace("¶", "\n"), self.line.strip().replace("¶", "\n")

    def lacks(self, env):
        """Returns the programs that this machine does not have."""
        return [name for name in self.needs if not shutil.which(name, path=env["PATH"])]

    def writes(self):
        """Returns the files that the agent writes in the turn, with their contents: the first line is of this entry alone."""
        return {path: f"work {self.number} on {path!r}\none\ntwo\nthree\n" for path in WORK + self.files}


def entries(path):
    found, section = [], ""
    with open(path) as file:
        for text in file.read().splitlines():
            if text.startswith("## "):
                section = text[3:]
            elif text.strip() and not text.startswith("#"):
                found.append(Entry(len(found) + 1, section, text))
    return found


def contents(work):
    """Returns the contents of all regular files of a workspace, each with one of its paths."""
    found = {}
    for path, state in tree(work).items() if os.path.isdir(work) else ():
        if state and not state.startswith("link ") and os.path.basename(path) != ".git":
            found.setdefault(state.encode(errors="surrogateescape"), path)
    return found


def write(work, path, content):
    path = os.path.join(work, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)


class BySidecar:
    """An agent that speaks the protocol with a sidecar, whose watcher is warm."""

    def __init__(self, client, work):
        self.client, self.work = client, work

    def begin(self):
        self.client.sidecar(type="hello", client="agent", pid=1, workspace=self.work, session="s")
        end = time.monotonic() + 60
        while self.client.sidecar(type="status").get("watcher") != "warm":
            if time.monotonic() > end:
                raise RuntimeError("the watcher is never warm")
            time.sleep(0.02)
        self.client.sidecar(type="turn.start", turn="t")

    def before(self, action, line=None, path=None, content=None):
        """Announces an action. Returns why it is held, or None."""
        if line is not None:
            reply = self.client.sidecar(type="shell.before", command=line, action=action, cwd=self.work)
        else:
            reply = self.client.sidecar(type="tool.before", tool="Write", action=action, cwd=self.work, input={"file_path": os.path.join(self.work, path), "content": content})
        return None if reply.get("proceed") is True else str(reply.get("reason") or reply)

    def after(self, action, line=None, path=None, content=None):
        self.client.sidecar(type="shell.after" if line is not None else "tool.after", action=action)

    def end(self):
        self.client.sidecar(type="turn.end")


class ByHooks:
    """An agent with the hooks of Claude Code."""

    def __init__(self, client, work):
        self.client, self.work, self.fields = client, work, {"session_id": "s", "prompt_id": "t", "permission_mode": "bypassPermissions"}

    def begin(self):
        self.client.hook("claude-code", "SessionStart", self.work, session_id="s", source="startup")
        self.client.hook("claude-code", "UserPromptSubmit", self.work, prompt="do it", **self.fields)

    def tool(self, action, line, path, content):
        name = {"tool_name": "Bash", "tool_input": {"command": line, "description": "…"}}
        if line is None:
            name = {"tool_name": "Write", "tool_input": {"file_path": os.path.join(self.work, path), "content": content}}
        return {**self.fields, **name, "tool_use_id": action}

    def before(self, action, line=None, path=None, content=None):
        """Announces an action. Returns why it is held, or None."""
        reply = self.client.hook("claude-code", "PreToolUse", self.work, **self.tool(action, line, path, content))
        said = reply.get("hookSpecificOutput", {})
        return said.get("permissionDecisionReason", "held") if said.get("permissionDecision") in ("deny", "ask") else None

    def after(self, action, line=None, path=None, content=None):
        self.client.hook("claude-code", "PostToolUse", self.work, tool_response={"stdout": ""}, **self.tool(action, line, path, content))

    def end(self):
        self.client.hook("claude-code", "Stop", self.work, stop_hook_active=False, **self.fields)


def git_objects(home):
    """Returns the ids of all objects that the refs of piton's stores reach."""
    found = set()
    for store in ("store.git", "local.git"):
        where = os.path.join(home.dir, "piton", store)
        if os.path.isdir(where):
            done = subprocess.run(["git", "--git-dir", where, "rev-list", "--objects", "--all"], env=home.env, stdout=subprocess.PIPE, check=True, text=True, errors="replace")
            found.update(row[:40] for row in done.stdout.splitlines())
    return found


def blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def checkpoints_of(home, work, path, content):
    """Returns the checkpoints that contain a content at a path: first by the numbers that `piton find` names, then all ids of `piton list`."""
    versions = home.document("find", os.path.join(work, path), cwd=work)[1].get("versions", [])
    named = [str(name) for version in versions if version["id"] == blob(content) for name in version["checkpoints"] if name is not None]
    rows = home.document("list", "--all", "--steps", "--limit", "1000", cwd=work)[1].get("checkpoints", [])
    return named + [row["id"] for row in rows]


def restores(home, work, path, content):
    """Returns true if `piton restore` brings a content back at its path."""
    file = os.path.join(work, path)
    for name in checkpoints_of(home, work, path, content):
        home.piton("restore", name, os.path.join(work, path), "--yes", cwd=work)
        if os.path.isfile(file) and not os.path.islink(file):
            with open(file, "rb") as opened:
                if opened.read() == content:
                    return True
    return False


class Result:
    """What became of a line: the contents that it destroyed, those that are missing from the stores, and the faults."""

    def __init__(self):
        self.destroyed, self.missing, self.unrestored, self.restored, self.fault, self.output, self.waited = {}, [], [], 0, None, "", 0


def prepare(home, entry, mode):
    """Makes the workspace of an entry. Returns its directory."""
    work = os.path.join(home.dir, "code/w")
    for path, content in BASE.items():
        write(work, path, content)
    os.symlink("src", os.path.join(work, "link"))
    code, text = home.shell(f"set -e; {HELPERS} git init -q -b main .; commit base\n{entry.setup}", work)
    if code:
        raise RuntimeError(f"cannot prepare: {text}")
    if mode == "git":
        home.piton("install", "git", "--yes", cwd=work)
    return work


def play(home, entry, mode, work, result):
    """Plays the turn with the line, and notes what the line destroyed."""
    client = Client(home, work)
    try:
        agent = (BySidecar if mode == "warm" else ByHooks)(client, work)
        if mode != "cold":
            agent.begin()
            agent.before("first", line="touch begun")
            client.shell("touch begun", work)
            agent.after("first", line="touch begun")
        for path, content in entry.writes().items():
            if mode != "cold":
                agent.before(path, path=path, content=content)
            write(work, path, content)
            if mode != "cold":
                agent.after(path, path=path, content=content)
        began = time.monotonic()
        result.fault = agent.before("line", line=entry.line)
        result.waited = time.monotonic() - began
        if result.fault:
            result.fault = f"held: {result.fault}"
            return
        picture = contents(work)
        done = client.shell(entry.line, work)
        left = contents(work)
        result.output = f"[{done['code']}] {done['out'][-300:]}{done['err'][-600:]}"
        agent.after("line", line=entry.line)
        agent.end()
        result.destroyed = {content: path for content, path in picture.items() if content not in left}
        if not result.destroyed:
            result.fault = "destroyed nothing"
    finally:
        client.end()


def judge(home, entry, work, result):
    """Notes which of the destroyed contents piton has not saved."""
    home.piton("daemon", "stop", cwd="/")
    saved = git_objects(home)
    result.missing = [path for content, path in result.destroyed.items() if blob(content) not in saved]
    if entry.number % 10 == 0 and not result.missing and os.path.isdir(work):
        result.unrestored = [path for content, path in result.destroyed.items() if not restores(home, work, path, content)]
        result.restored = len(result.destroyed) - len(result.unrestored)


def attempt(piton, root, entry, mode, keep):
    """Runs an entry in a home of its own. Returns the result."""
    home, result = Home(piton, root), Result()
    try:
        work = prepare(home, entry, mode)
        play(home, entry, mode, work, result)
        judge(home, entry, work, result)
    except Exception as error:  # a fault of one line must not hide the others
        result.fault = f"{type(error).__name__}: {error}"
    finally:
        home.end(keep)
    return result


def run(asked, mode, table, say):
    """Runs a mode. Returns its counts."""
    counts = collections.Counter({"lines": 0, "skipped": 0, "destroyed": 0, "saved": 0, "missing": 0, "restored": 0, "unrestored": 0, "faults": 0})
    root = os.path.realpath(os.path.join(asked.dir, f"destroyers-{os.getpid()}-{mode}"))
    for entry in table:
        lacking = entry.lacks({"PATH": "/usr/local/bin:/usr/bin:/bin"})
        if lacking:
            counts["skipped"] += 1
            say(f"{mode} {entry.number}: skipped: no {', '.join(lacking)}: {entry.line!r}")
            continue
        result = attempt(asked.piton, root, entry, mode, asked.keep)
        counts["lines"] += result.fault is None
        counts["destroyed"] += len(result.destroyed)
        counts["missing"] += len(result.missing)
        counts["saved"] += len(result.destroyed) - len(result.missing)
        counts["restored"] += result.restored
        counts["unrestored"] += len(result.unrestored)
        if result.fault:
            counts["faults"] += 1
            say(f"{mode} {entry.number}: FAULT: {result.fault}: {entry.line!r} {result.output}")
        for word, paths in (("MISSING", result.missing), ("NOT RESTORED", result.unrestored)):
            if paths:
                say(f"{mode} {entry.number}: {word}: {', '.join(map(repr, paths))}: {entry.line!r} (answered after {result.waited:.1f} s)")
        if asked.verbose:
            say(f"{mode} {entry.number}: destroyed {sorted(result.destroyed.values())} by {entry.line!r} {result.output}")
    return counts


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--piton", default=os.environ.get("PITON_BIN") or os.path.join(HERE, "../../target/debug/piton"))
    parser.add_argument("--dir", default=os.path.join(HERE, "../../target/tmp"))
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--only", action="append", type=int, help="the number of a line, as the messages give it")
    parser.add_argument("--report")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    table, lines = [entry for entry in entries(TABLE) if not asked.only or entry.number in asked.only], []

    def say(text):
        lines.append(text)
        print(text, flush=True)

    counts = {mode: run(asked, mode, table, say) for mode in asked.mode or MODES}
    say("; ".join(f"{mode}: {', '.join(f'{count} {word}' for word, count in of.items())}" for mode, of in counts.items()))
    if asked.report:
        with open(asked.report, "w") as file:
            file.write("\n".join(lines) + "\n")
    too_few = not asked.only and any(of["lines"] < ENOUGH for of in counts.values())
    return 1 if too_few or any(of["missing"] or of["unrestored"] or of["faults"] for of in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
