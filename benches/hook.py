#!/usr/bin/env python3
"""What a hook costs an agent, as whole processes beside `true` and `git --version`, in one run.

usage: hook.py [--files 50000] [--reps 40] [--piton target/release/piton] [--old PITON] [--dir DIR] [--json]

A generated tree, and a daemon whose watcher is warm. Then, in turn: `true`, `git --version`, and `piton hook claude-code
PreToolUse` for a harmless command, for one that the turn's checkpoint covers (`held`), and, with one file edited before it and a
turn of its own, for one that takes a checkpoint. Then 8 hooks at once, as an agent with parallel tool calls starts them: harmless
ones, and, with 8 files edited before and a turn of their own, `rm FILE` and `Edit FILE`, each of a file of its own. The turn must
have one checkpoint then, and a whole one. Medians of wall milliseconds and 95th percentiles; compare rows of one run only.
`--old PITON`: another binary, with a daemon of its own on the same tree, the two in turn.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from mutate import listing, mutate
from warm import spread

# Parallel tool calls of one turn.
TOGETHER = 8


class Side:
    """One binary with a home and a daemon of its own on the tree, and the samples of its rows."""
    def __init__(self, binary, tree, home):
        self.binary, self.tree, self.rows, self.turn = os.path.abspath(binary), tree, {}, 0
        self.env = {**os.environ, "PITON_HOME": home, "XDG_CONFIG_HOME": os.path.join(home, "none")}
        self.hook("SessionStart")
        while True:  # until the daemon hears of changes: a checkpoint costs no scan then
            self.begin()
            self.shell("rm README.md")
            if self.shell("rm README.md") < 30:
                self.begin()
                if self.shell("rm README.md") < 30:
                    break
            time.sleep(0.2)

    def begin(self):
        """Opens a turn of the user's."""
        self.turn += 1
        self.hook("UserPromptSubmit", prompt="go on")

    def start(self, event, **fields):
        argv = [self.binary, "hook", "claude-code", event]
        payload = {"hook_event_name": event, "session_id": "bench", "prompt_id": f"p{self.turn}", "cwd": self.tree, **fields}
        started = time.perf_counter()
        process = subprocess.Popen(argv, cwd=self.tree, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(json.dumps(payload).encode())
        process.stdin.close()
        return process, started

    def hook(self, event, **fields):
        process, started = self.start(event, **fields)
        out = process.stdout.read()
        process.wait()
        ms = (time.perf_counter() - started) * 1000
        if out or process.returncode:
            raise SystemExit(f"the hook ended with {process.returncode} and said {out.decode()}")
        return ms

    def shell(self, command):
        return self.hook("PreToolUse", tool_use_id="x", tool_name="Bash", tool_input={"command": command})

    def note(self, row, ms):
        self.rows.setdefault(row, []).append(ms)

    def together(self, row, calls):
        """Starts a hook for each call, a tool and its input, and times each until it has ended."""
        begun = [
            self.start("PreToolUse", tool_use_id=f"x{at}", tool_name=tool, tool_input=given)
            for at, (tool, given) in enumerate(calls)
        ]
        pending = {process.pid: (process, started) for process, started in begun}
        while pending:
            pid, status = os.wait()
            if pid in pending:
                process, started = pending.pop(pid)
                self.note(row, (time.perf_counter() - started) * 1000)
                process.returncode = os.waitstatus_to_exitcode(status)
                out = process.stdout.read()
                if out or process.returncode:
                    raise SystemExit(f"the hook ended with {process.returncode} and said {out.decode()}")

    def check(self):
        """The newest turn has one checkpoint, and it is whole."""
        out = subprocess.run([self.binary, "list", "--json", "-n", "50"], cwd=self.tree, env=self.env, stdout=subprocess.PIPE, check=True).stdout
        rows = [row for row in json.loads(out)["checkpoints"] if row["turn"] == f"p{self.turn}" and row["kind"] == "auto"]
        if len(rows) != 1 or "partial" in rows[0]["flags"]:
            raise SystemExit(f"the turn's checkpoints: {rows}")

    def stop(self):
        subprocess.run([self.binary, "daemon", "stop"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=50000)
    p.add_argument("--reps", type=int, default=40)
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--old", help="another binary, measured beside; its turns are not checked")
    p.add_argument("--dir")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    scratch = tempfile.mkdtemp(prefix="piton-hook-", dir=a.dir)
    tree, sides, others = os.path.join(scratch, "tree"), [], {"true": [], "git --version": []}
    try:
        subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)
        sides = [Side(binary, tree, os.path.join(scratch, f"home{at}")) for at, binary in enumerate((a.piton, a.old)) if binary]
        files = listing(tree)

        def each(rep, work):
            # Who comes second finds caches warm: they take turns.
            for side in sides if rep % 2 == 0 else sides[::-1]:
                work(side)
                time.sleep(0.15)  # what idle time does is not what is measured

        def edited(rep, count, work):
            for side in sides:
                side.begin()
            time.sleep(0.15)  # a model thinks
            chosen = mutate(files, count, 5_000_000 + rep)
            each(rep, lambda side: work(side, chosen))

        def quiet(side):
            side.note("harmless", side.shell("ls -la"))
            side.note("held", side.shell("rm README.md"))

        for rep in range(a.reps):
            for command in others:
                started = time.perf_counter()
                subprocess.run(command.split(), stdout=subprocess.DEVNULL, check=True)
                others[command].append((time.perf_counter() - started) * 1000)
            each(rep, quiet)
            edited(rep, 1, lambda side, _: side.note("checkpoint, 1 file changed", side.shell("rm README.md")))
        at_once = f"{TOGETHER} at once"
        ways = {
            f"{at_once}, rm FILE": lambda path: ("Bash", {"command": f"rm '{path}'"}),
            f"{at_once}, Edit FILE": lambda path: ("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}),
        }
        for rep in range(a.reps):
            each(rep, lambda side: side.together(f"{at_once}, harmless", [("Bash", {"command": "ls -la"})] * TOGETHER))
            for way, (row, call) in enumerate(ways.items()):
                edited(10_000 * (way + 1) + rep, TOGETHER, lambda side, chosen: side.together(row, map(call, chosen)))
                sides[0].check()
    finally:
        for side in sides:
            side.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    out = {name: spread(times) for name, times in (*others.items(), *sides[0].rows.items())}
    for name in sides[0].rows if a.old else ():
        out[name] |= {f"old {key}": value for key, value in spread(sides[1].rows[name]).items()}
    if a.json:
        return print(json.dumps(out))
    for name, row in out.items():
        print(f"{name:28}", "  ".join(f"{key} {ms:.2f}" for key, ms in row.items()), f" over true {row['ms'] - out['true']['ms']:+.2f}")


if __name__ == "__main__":
    main()
