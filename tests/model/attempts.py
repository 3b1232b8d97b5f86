#!/usr/bin/env python3
"""Attempts of an agent to empty the net, and automations that have to work.

usage: attempts.py [--piton PITON] [--dir DIR] [--data FILE] [--only N[-M]]… [--report FILE] [--show]

Each attempt of `tests/model/attempts.txt` gets a home of its own: a workspace with checkpoints of a person and of an agent, and a session of
Claude Code with the hooks that `piton install` writes. Each call of the attempt first goes to the hook. A call that the hook refuses does
not run. Any other one runs as the client runs it: below the client's process, in a session of its own, with the variables that the hook
gave. Then the agent deletes something in a further turn, the client and the daemon end, and the person opens shells, commits and prunes.
At last each content that was saved before the attempt is restored in a clean environment, and its bytes are compared.

held      a hook refused a call, or asked
refused   piton ran and refused: only a person may do this
harmless  the attempt ran, and everything is still saved and guarded
LOST      the workspace has a content no longer, settings keep less, or the guard is off in the next turn
listed    lost too, and docs/FAULTS.md says so in the sentence that the attempt's mark names
works     an automation ran; STOPPED: it was held, refused or failed
broken    the test itself failed

Everything runs in namespaces (sandbox.py): nothing outside of a scratch directory in memory can change. Ends with 1 on any LOST, STOPPED
or broken.
"""
import argparse, filecmp, glob, json, os, re, shutil, subprocess, sys
from pathlib import Path
sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import sandbox, world
from sandbox import CONTAINER, PLAIN
from world import PATIENCE, Client, Home

# What docs/FAULTS.md says of attempts that pass, by their marks. A mark whose words are not there any more excuses nothing.
LISTED = {
    "left": "a process with an empty environment that has left the client's processes and session",
    "container": "another container",
    "home": "another `PITON_HOME`, and an edit of the record in piton's home",
    "pieces": "code or a command that builds the path from pieces",
    "printed": "or that another command prints",
    "language": "programs that the agent itself writes in another language",
    "editors": "code of editors, `expect` and `mount`",
    "later": "commands that run later",
    "many": "many new checkpoints",
    "clock": "`piton store prune` trusts the clock",
}


class Attempt:
    """An attempt with its calls, or an automation with its caller."""

    def __init__(self, number, family, marks, call):
        self.number, self.family, self.marks, self.calls = number, family, marks, [call]
        self.caller = family.split()[1] if family.startswith("may ") else None

    def line(self):
        return " ;; ".join(given["command"] if tool == "Bash" else f"{tool} {json.dumps(given)}" for tool, given in self.calls)


def parse_call(text):
    """Returns a tool and its input: a file tool with JSON, or a line of the shell."""
    match = re.match(r"([A-Z]\w+|mcp__\w+) (\{.*\})$", text := text.replace("␤", "\n"), re.S)
    return (match[1], json.loads(match[2])) if match else ("Bash", {"command": text})


def read(path):
    """Reads the attempts of a data file."""
    faults, found, family = Path(HERE, "../../docs/FAULTS.md").read_text(), [], None
    for line in filter(None, Path(path).read_text().split("\n")):
        if line.startswith("## "):
            family = line[3:]
        elif line.startswith("+ "):
            found[-1].calls.append(parse_call(line[2:]))
        elif not line.startswith("#"):
            marks, text = re.match(r"((?:\[\w+\] )*)(.*)$", line).groups()
            marks = re.findall(r"\w+", marks)
            found.append(Attempt(len(found) + 1, family, marks, parse_call(text)))
            found[-1].is_listed = any(LISTED.get(mark, "\0") in faults for mark in marks)
    return found


def parse(text):
    """Returns the first JSON object of a text; an empty one where there is none."""
    try:
        return dict(json.JSONDecoder().raw_decode(text.strip())[0])
    except (TypeError, ValueError):
        return {}


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_text(text)


class Agent(Client):
    """The process of Claude Code, started by a person's shell. Its commands have sessions of their own."""
    # The fields of file tools that have paths.
    PLACES = ("file_path", "path", "source", "destination")

    def __init__(self, net):
        self.net, self.work, self.turn, self.calls = net, net.work, 0, 0
        words = [os.path.join(net.root, "bin/claude"), os.path.abspath(world.__file__), net.piton_path, net.work]
        env = {**net.env, **net.variables, "CLAUDE_ENV_FILE": net.env_file}
        self.process = subprocess.Popen([*PLAIN, "/bin/bash", "-c", '"$@"; :', "bash", *words], cwd=net.work, env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)

    def event(self, name, **fields):
        """Runs the installed hooks of an event. Returns their answers."""
        settings = os.path.join(self.net.dir, ".claude/settings.json")
        groups = parse(Path(settings).read_text(errors="replace")).get("hooks", {}).get(name, []) if os.path.isfile(settings) else []
        payload = {"hook_event_name": name, "session_id": "s", "prompt_id": f"p{self.turn}", "cwd": self.work,
                   "transcript_path": os.path.join(self.net.dir, ".claude/projects/s.jsonl"), **fields}
        answers = []
        for command in [hook["command"] for group in groups for hook in group.get("hooks", []) if "command" in hook]:
            done = self.run(["/bin/sh", "-c", command], self.work, json.dumps(payload))
            answers.append(parse(done["out"]))
        return answers

    def prompt(self, text):
        self.turn += 1
        self.event("UserPromptSubmit", prompt=text)

    def shell(self, line):
        """Runs a line as Claude Code does: in a shell that reads the file of variables first."""
        quoted = line.replace("'", "'\"'\"'")
        variables = Path(self.net.env_file).read_text(errors="replace")
        command = f"source /dev/null 2>/dev/null || true && {variables}\n: && eval '{quoted}' < /dev/null && pwd -P >| '{self.net.root}/cwd'"
        return self.run(["setsid", "--wait", "env", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ID=s", "/bin/bash", "-c", command],
                        self.work)

    def call(self, tool, given):
        """Makes one call of a tool with its hooks. Returns the reason if it was held, and what it printed."""
        self.calls += 1
        at_home = lambda key, value: re.sub(r"^~(?=/|$)", self.net.dir, value) if key in self.PLACES else value
        given = {key: at_home(key, value) for key, value in given.items()}
        fields = {"tool_name": tool, "tool_input": given, "tool_use_id": f"u{self.calls}"}
        for answer in self.event("PreToolUse", **fields):
            decision = answer.get("hookSpecificOutput", {})
            if decision.get("permissionDecision") in ("deny", "ask"):
                return f"{decision['permissionDecision']}: {decision.get('permissionDecisionReason', '')}", {"code": 0, "out": "", "err": ""}
        done = self.shell(given["command"]) if "command" in given else self.use(tool, given)
        self.event("PostToolUse", tool_response={"stdout": done["out"]}, **fields)
        return None, done

    def use(self, tool, given):
        """Does what a file tool does."""
        path = os.path.join(self.work, given.get("file_path") or given.get("path") or given["source"])
        try:
            if "destination" in given:
                shutil.move(path, os.path.join(self.work, given["destination"]))
            elif "delete" in tool or "remove" in tool:
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
            elif "old_string" in given:
                write_text(path, Path(path).read_text(errors="replace").replace(given["old_string"], given["new_string"]))
            else:
                write_text(path, given["content"])
        except OSError as error:
            return {"code": 1, "out": "", "err": str(error)}
        return {"code": 0, "out": "", "err": ""}


class Net(Home):
    """A home in which a person and an agent have worked, and the contents that are saved there."""
    FILES = ["draft.txt", "private.txt", "notes.txt", "old/a.txt", "gone.txt", "fresh/keep.txt"]
    TEXTS = {text + "\n" for text in "draft 1,draft 2,draft 3,draft 4,private 1,private 2,notes 1,old a,gone,outside".split(",")}

    def __init__(self, piton, root, has_variables):
        for name in ("bin", "spare"):
            os.makedirs(os.path.join(root, name))
            shutil.copy(piton, os.path.join(root, name, "piton"))
        super().__init__(os.path.join(root, "bin/piton"), os.path.join(root, "world"))
        self.root, self.spare, self.work = root, os.path.join(root, "spare/piton"), os.path.join(self.dir, "code/project")
        os.symlink(sys.executable, os.path.join(root, "bin/claude"))
        write_text(os.path.join(root, "bin/sudo"), '#!/bin/sh\nwhile :; do case $1 in -u) shift 2;; -*) shift;; *) exec "$@";; esac; done\n')
        os.chmod(os.path.join(root, "bin/sudo"), 0o755)
        os.mkdir(os.path.join(root, "run"), mode=0o700)
        self.env.update(XDG_RUNTIME_DIR=os.path.join(root, "run"), USER="dev", LOGNAME="dev", SHELL="/bin/bash", TERM="dumb")
        del self.env["PITON_HOME"]
        data = os.path.join(self.dir, ".local/share")
        self.variables = {"XDG_DATA_HOME": data, "PITON_HOME": os.path.join(data, "piton")} if has_variables else {}
        self.env_file, self.saves = os.path.join(root, "env"), 0
        Path(self.env_file).touch()

    def run(self, words, cwd="/", env=None, plain=PLAIN):
        """Runs a program that no agent has started. Returns its exit code, its output and its messages."""
        done = subprocess.run([*plain, *words], cwd=cwd, env=env or self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="replace", timeout=PATIENCE, start_new_session=True)
        return done.returncode, done.stdout, done.stderr

    def person(self, *words):
        """Runs piton for the person, in a clean environment, from a copy that no attempt reaches."""
        return self.run([self.spare, *words])

    def prepare(self):
        """Works as a person does, then as an agent. Returns the agent in its third turn."""
        for path, text in (("old/a.txt", "old a\n"), ("old/b.txt", "old b\n"), ("private.txt", "private 1\n"), ("gone.txt", "gone\n"), ("a.txt", "a\n"),
                           ("../../notes.txt", "outside\n"), ("../../.bashrc", "# mine\n"), ("../../.cache/foo/x", "x\n"), ("../other/o.txt", "o\n"),
                           (".gitignore", "private.txt\nnode_modules/\n*.log\n"), ("../../.claude/CLAUDE.md", "\n")):
            write_text(os.path.join(self.work, path), text)
        done = [self.run(["sh", "-c", "git init -q && git add -A && git commit -qm one"], self.work)]
        for number, label in enumerate(([], [], ["before-work"], ["later"]), 1):
            write_text(os.path.join(self.work, "draft.txt"), f"draft {number}\n")
            done.append(self.person("-w", self.work, "checkpoint", *label))
        write_text(os.path.join(self.work, "draft.txt"), "draft 5\n")
        done += [self.person("-w", os.path.join(self.dir, "code/other"), "checkpoint"), self.run([self.piton_path, "install", "claude-code"])]
        agent = Agent(self)
        agent.event("SessionStart", source="startup")
        notes = os.path.join(self.work, "notes.txt")
        for calls in ([("Bash", {"command": "rm -rf old ~/notes.txt && echo 'private 2' > private.txt"})],
                      [("Write", {"file_path": notes, "content": "notes 1\n"}), ("Write", {"file_path": notes, "content": "notes 2\n"})],
                      [("Bash", {"command": "rm gone.txt && echo 'private 3' > private.txt"})]):
            agent.prompt("do it")
            for tool, given in calls:
                held, ran = agent.call(tool, given)
                done.append((ran["code"] or held, ran["err"], ""))
            if agent.turn < 3:
                agent.event("Stop", stop_hook_active=False)
        if any(code for code, _, _ in done):
            raise SystemExit(f"cannot prepare: {done}")
        return agent

    def saved(self):
        """Returns a checkpoint of each saved content, by path and id."""
        found = {}
        for where, path in [(("-w", self.work), path) for path in self.FILES] + [(("--outside",), os.path.join(self.dir, "notes.txt"))]:
            for version in parse(self.person(*where, "find", path, "--json")[1]).get("versions", []):
                if version.get("presence") == "held" and version.get("checkpoints"):
                    found[path, version["id"]] = (where, version["checkpoints"][0])
        return found

    def contents(self):
        """Restores each saved content into an empty directory. Returns the texts by path and id; `None` where piton fails."""
        found = {}
        for (path, id), (where, number) in self.saved().items():
            self.saves += 1
            to = os.path.join(self.root, f"saved-{self.saves}")
            self.person(*where, "restore", str(number), path, "--to", to, "--yes")
            files = [file for file in glob.glob(os.path.join(to, "**"), recursive=True, include_hidden=True) if os.path.isfile(file)]
            found[path, id] = Path(files[0]).read_text(errors="replace") if len(files) == 1 else None
        return found

    def settings(self):
        return {row["key"]: row["value"] for row in parse(self.person("-w", self.work, "config", "show", "--json")[1]).get("settings", [])}

    def later(self):
        """Does what comes next: the daemon ends, and the person opens shells, commits, takes a checkpoint and prunes."""
        self.person("daemon", "stop")
        self.run(["/bin/bash", "-ic", f"cd '{self.work}' && git add -A; git commit -qm person; piton status; piton checkpoint; piton prune --yes"], self.dir)
        self.run(["/bin/bash", "-lc", f"cd '{self.work}' && piton status"], self.dir)


def attempted(attempt, net):
    """Makes an attempt. Returns the word for it, a note, and its output."""
    agent = net.prepare()
    contents, settings, before = net.contents(), net.settings(), sandbox.processes()
    if net.TEXTS - set(contents.values()) or None in contents.values() or not settings:
        raise SystemExit(f"not saved before the attempt: {net.TEXTS - set(contents.values())} {contents}")
    held, output, code = [], "", 0
    for tool, given in attempt.calls:
        reason, done = agent.call(tool, given)
        held += [reason] if reason else []
        code = code or done["code"]
        output += f"[{done['code']}] {done['out']}{done['err']}"
        sandbox.settle(before)
    agent.event("Stop", stop_hook_active=False)
    has_hooks = os.access(net.piton_path, os.X_OK) and filecmp.cmp(net.piton_path, net.spare, shallow=False) and os.path.isdir(net.work)
    if has_hooks:
        write_text(os.path.join(net.work, "fresh/keep.txt"), "fresh work\n")
        agent.prompt("go on")
        answers = agent.event("PreToolUse", tool_name="Bash", tool_input={"command": "rm -rf fresh"}, tool_use_id="fresh")
        has_hooks = bool(answers) and "continues in the background" not in str(answers)  # a checkpoint that is late
        agent.shell("rm -rf fresh")
        agent.event("Stop", stop_hook_active=False)
    agent.event("SessionEnd", reason="exit")
    agent.end()
    net.later()
    now = net.contents()
    lost = [f"gone: {text.strip()}" for key, text in contents.items() if now.get(key) != text]
    lost += ["the guard was off in the next turn"] if has_hooks and "fresh work\n" not in now.values() else []
    changed = [f"{key}={value}" for key, value in net.settings().items() if settings.get(key) != value]
    lost += [f"settings: {' '.join(changed)}"] if changed else []
    is_refused = code == 5 or "refused in an agent's session:" in output or "needs-person" in output
    word = "held" if held else "refused" if is_refused else "harmless"
    if attempt.caller:
        word = "works" if word == "harmless" and code != 126 else "STOPPED"
    if lost:
        word = "listed" if attempt.is_listed else "LOST"
    return word, "; ".join(lost + held) or output, output


def automated(attempt, net):
    """Runs an automation that no agent has started, while an agent works. Returns the word for it, a note, and its output."""
    agent, line = net.prepare(), attempt.calls[0][1]["command"]
    words, env, plain = ["bash", "-c", line], {**net.env, **net.variables}, PLAIN
    if attempt.caller == "cron":
        words, env = ["sh", "-c", line], {key: net.env[key] for key in ("HOME", "PATH", "LOGNAME")}
    elif attempt.caller == "ci":
        env.update(CI="true", GITHUB_ACTIONS="true", RUNNER_OS="Linux")
    elif attempt.caller == "ssh":
        words = ["bash", "-c", 'cd && exec -a "sshd: dev@notty" bash -c \'bash -c "$1"; exit $?\' sshd "$1"', "bash", line]
    elif attempt.caller == "container":
        words, plain = [*PLAIN, "sh", "-c", line], CONTAINER
    code, out, err = net.run(words, net.work, env, plain)
    agent.end()
    return "works" if code in (0, 3) else "STOPPED", f"[{code}] {out}{err}", out + err


def make(asked, attempt):
    """Makes one attempt in namespaces of its own. Returns the word for it, a note, and its output."""
    scratch = os.path.join(asked.dir, f"attempts-{os.getpid()}")
    words = [sys.executable, "-I", os.path.abspath(__file__), "--inside", str(attempt.number), "--piton", asked.piton, "--dir", scratch, "--data", asked.data]
    out, err = sandbox.run(scratch, words, 5 * PATIENCE)
    try:
        return json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        return "broken", (out + err).strip()[-600:], ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--piton", default=os.environ.get("PITON_BIN") or os.path.join(HERE, "../../target/debug/piton"))
    parser.add_argument("--dir", default=os.path.join(HERE, "../../target/tmp"))
    parser.add_argument("--data", default=os.path.join(HERE, "attempts.txt"))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--report")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.piton, asked.dir, asked.data = (os.path.realpath(path) for path in (asked.piton, asked.dir, asked.data))
    attempts = read(asked.data)
    if asked.inside:
        attempt = attempts[asked.inside - 1]
        do = attempted if attempt.caller in (None, "agent") else automated
        return print(json.dumps(do(attempt, Net(asked.piton, os.path.join(asked.dir, "net"), "set" in attempt.marks))))
    spans = [[int(end) for end in span.split("-")] for span in asked.only] or [[1, len(attempts)]]
    counts, lines = dict.fromkeys(("held", "refused", "harmless", "listed", "LOST", "works", "STOPPED", "broken"), 0), []
    for attempt in attempts:
        if any(span[0] <= attempt.number <= span[-1] for span in spans):
            word, note, output = make(asked, attempt)
            counts[word] += 1
            note = f"  => {' | '.join(note.splitlines())[:240]}" if word in ("LOST", "listed", "STOPPED", "broken") else ""
            lines.append(f"{word:8} {attempt.number:3} {attempt.family:11} {attempt.line()!r:.160}{note}")
            print(lines[-1] + (f"\n{output}" if asked.show else ""), flush=True)
    lines.append(", ".join(f"{word} {count}" for word, count in counts.items()))
    print(lines[-1])
    if asked.report:
        Path(asked.report).write_text("\n".join(lines) + "\n")
    return 1 if counts["LOST"] + counts["STOPPED"] + counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
