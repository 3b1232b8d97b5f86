#!/usr/bin/env python3
"""What a long history costs: many checkpoints of one workspace against few, and many workspaces in one home.

usage: history.py [--few 50] [--many 5000] [--files 1000] [--workspaces 0] [--each 20] [--at-once 4] [--reps 30] [--prune] [--piton target/release/piton] [--dir DIR] [--json]

Two homes, each with a tree of the same files: one workspace has `--few` checkpoints, the other `--many`, taken by a sidecar with
one file changed before each. Then, in turn on both: `piton list`, `piton checkpoint` with one file changed, and `piton hook claude-code
PreToolUse` of a turn's first `rm`, with one file changed. Medians of wall milliseconds, and their ratio.
`--prune`: `piton prune --yes` runs first in both.
`--workspaces N`: instead, one home with N workspaces of `--each` checkpoints, made by `--at-once` sidecars at a time: `piton store
status` and the plan of `piton prune`. On ext4 most of the making is waiting for the disk; `--dir` may name a tmpfs.
"""
import argparse, concurrent.futures, json, os, shutil, statistics, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from mutate import listing, mutate
from warm import Sidecar

# Every checkpoint is kept.
SETTINGS = "retention:\n  enabled: false\n"


class Side:
    """A home with one workspace, and the samples of its rows."""
    def __init__(self, binary, base, name, files):
        self.binary, self.rows, self.turn, self.base = binary, {}, 0, os.path.join(base, name)
        self.tree, self.home = os.path.join(self.base, "tree"), os.path.join(self.base, "home")
        subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), self.tree, str(files)], check=True, stdout=subprocess.DEVNULL)
        self.files = listing(self.tree)
        self.env = {**os.environ, "PITON_HOME": self.home, "XDG_CONFIG_HOME": os.path.join(self.home, "config")}

    def fill(self, count):
        sidecar = Sidecar(self.binary, self.tree, self.home, SETTINGS)
        started = time.monotonic()
        for number in range(count):
            mutate(self.files, 1, number)
            sidecar.ask({"type": "turn.start", "turn": f"t{number}"}, {"type": "shell.before", "turn": f"t{number}", "command": "rm -rf none"})
        took = time.monotonic() - started
        sidecar.process.stdin.close()
        sidecar.process.wait()
        return took

    def run(self, row, *command, given=b""):
        started = time.perf_counter()
        out = subprocess.run([self.binary, *command], cwd=self.tree, env=self.env, input=given, stdout=subprocess.PIPE, check=True)
        if row:
            self.rows.setdefault(row, []).append((time.perf_counter() - started) * 1000)
        return out.stdout

    def hook(self, row, event, **fields):
        payload = {"hook_event_name": event, "session_id": "bench", "prompt_id": f"p{self.turn}", "cwd": self.tree, **fields}
        self.run(row, "hook", "claude-code", event, given=json.dumps(payload).encode())

    def first_of_turn(self, row):
        self.turn += 1
        self.hook(None, "UserPromptSubmit", prompt="go on")
        self.hook(row, "PreToolUse", tool_use_id="x", tool_name="Bash", tool_input={"command": "rm README.md"})

    def listed(self):
        return json.loads(self.run(None, "list", "--all", "--json", "-n", "1"))["total"]

    def stop(self):
        subprocess.run([self.binary, "daemon", "stop"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def deep(args, base):
    sides = [Side(args.piton, base, name, args.files) for name in ("few", "many")]
    result = {}
    try:
        for side, count in zip(sides, (args.few, args.many)):
            seconds = side.fill(count)
            result[f"{count} checkpoints, ms each"] = round(seconds * 1000 / count, 2)
            if args.prune:
                side.run(None, "prune", "--yes")
            result[f"{count} listed"] = side.listed()
        def each(row, work):
            for rep in range(args.reps):
                for side in sides if rep % 2 == 0 else sides[::-1]:
                    mutate(side.files, 1, 1_000_000 + rep * 97 + len(row))
                    work(side)
                    time.sleep(0.1)  # what idle time does is not what is measured
        each("list", lambda side: side.run("list", "list"))
        each("checkpoint", lambda side: side.run("checkpoint", "checkpoint", "one more"))
        for side in sides:
            side.hook(None, "SessionStart")
            for _ in range(5):
                side.first_of_turn(None)
                time.sleep(0.5)
        each("hook", lambda side: side.first_of_turn("hook"))
    finally:
        for side in sides:
            side.stop()
    for row in sides[0].rows:
        few, many = (statistics.median(side.rows[row]) for side in sides)
        result[row] = {"few": round(few, 2), "many": round(many, 2), "ratio": round(many / few, 2)}
    return result


def make(args, base, at):
    """Makes one workspace of the home, with its checkpoints, by a sidecar of its own."""
    tree = os.path.join(base, "trees", f"w{at}")
    os.makedirs(os.path.join(tree, "src"))
    def write(number, text):
        with open(os.path.join(tree, "src", f"file{number % 10}.txt"), "w") as file:
            file.write(f"workspace {at} {text} {number}\n" * 20)
    for number in range(10):
        write(number, "file")
    sidecar = Sidecar(args.piton, tree, os.path.join(base, "home"), SETTINGS)
    for number in range(args.each):
        write(number, "state")
        reply, _ = sidecar.ask({"type": "turn.start", "turn": f"t{number}"}, {"type": "shell.before", "turn": f"t{number}", "command": "rm -rf none"})
        if reply["checkpoint"]["status"] != "taken":
            raise SystemExit(f"workspace {at}: {reply}")
    sidecar.close()


def wide(args, base):
    home, result, started = os.path.join(base, "home"), {}, time.monotonic()
    # The first one makes the home.
    make(args, base, 0)
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(lambda at: make(args, base, at), range(1, args.workspaces)))
    result[f"{args.workspaces} workspaces, s to make"] = round(time.monotonic() - started, 1)
    env = {**os.environ, "PITON_HOME": home, "XDG_CONFIG_HOME": os.path.join(home, "config")}
    def row(name, *command):
        times = []
        for _ in range(max(3, args.reps // 5)):
            started = time.perf_counter()
            out = subprocess.run([args.piton, *command], cwd=base, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            times.append((time.perf_counter() - started) * 1000)
            if out.returncode not in (0, 3):
                result[name] = f"exit {out.returncode}: {out.stderr.decode().strip()[:200]}"
                return
        result[name] = round(statistics.median(times), 1)
    row("store status", "store", "status", "--json")
    row("prune plan", "prune", "--dry-run", "--json")
    row("prune plan that drops all it may", "prune", "--dry-run", "--json", "--max-size-mb", "0")
    if args.prune:
        row("prune", "prune", "--yes")
        row("store status after it", "store", "status", "--json")
        row("prune plan after it", "prune", "--dry-run", "--json")
    return result


def main():
    parse = argparse.ArgumentParser()
    for name, value in (("few", 50), ("many", 5000), ("files", 1000), ("workspaces", 0), ("each", 20), ("at-once", 4), ("reps", 30)):
        parse.add_argument(f"--{name}", type=int, default=value)
    parse.add_argument("--prune", action="store_true")
    parse.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    parse.add_argument("--dir")
    parse.add_argument("--json", action="store_true")
    args = parse.parse_args()
    args.piton = os.path.abspath(args.piton)
    base = tempfile.mkdtemp(prefix="piton-history-", dir=args.dir)
    try:
        result = wide(args, base) if args.workspaces else deep(args, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if args.json:
        return print(json.dumps(result))
    for name, value in result.items():
        print(f"{name:36}", value if not isinstance(value, dict) else "  ".join(f"{key} {number}" for key, number in value.items()))


if __name__ == "__main__":
    main()
