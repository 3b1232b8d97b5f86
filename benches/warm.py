#!/usr/bin/env python3
"""Round trips of one running sidecar: what an agent waits for.

usage: warm.py TREE [--reps 40] [--changes 1,10,1000] [--beside 5] [--idle 2] [--piton target/release/piton] [--old PITON] [--json]

One `piton sidecar` guards TREE. For each row a turn is opened, files are edited (mutate.py), and the time from sending
`shell.before` to its reply is taken: with edits since the last checkpoint, with none (after a rest, and at once), and for later
actions of a turn that has its checkpoint; a `ping` shows what of it is the pipe's. "With its turn": `turn.start` and the action are
sent together, so the action comes before anything was done for the turn. Medians, and the 95th percentile.
`--beside N`: in the first N rounds of a row git and hermes (baseline.py) record the same edits, in the same run. `--old PITON`: another binary guards the same tree in the same run, the two in turn. Shared machines drift by 2-4x: compare rows of one run only.
"""
import argparse, json, os, select, statistics, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import baseline
from mutate import listing, mutate

# Seconds in which nothing is asked before a request that is measured: longer than idle work waits, and long enough for
# processors to go to sleep, which is then a good part of what is measured. "At once" is without.
REST = 0.15


class Sidecar:
    def __init__(self, binary, tree, home, settings=""):
        env = {**os.environ, "PITON_HOME": home, "XDG_CONFIG_HOME": os.path.join(home, "config")}
        os.makedirs(os.path.join(home, "config/piton"), exist_ok=True)
        with open(os.path.join(home, "config/piton/config.yaml"), "w") as file:
            file.write(settings)
        self.process = subprocess.Popen([binary, "sidecar"], cwd=tree, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.number, self.rest = 0, b""

    def line(self):
        """A line, and the time at which it was there."""
        while b"\n" not in self.rest:
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise SystemExit("the sidecar ended")
            self.rest += piece
        came = time.perf_counter()
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line), came

    def ask(self, *bodies):
        """Sends requests at once; gives the last one's reply and the milliseconds in between."""
        text = b""
        for body in bodies:
            self.number += 1
            text += json.dumps({"id": self.number, **body}).encode() + b"\n"
        started = time.perf_counter()
        self.process.stdin.write(text)
        while True:
            reply, came = self.line()
            if reply.get("id") == self.number:
                return reply, (came - started) * 1000

    def until(self, wanted, patience=300):
        """Asks for the status until `wanted` holds; gives the seconds that took."""
        started = time.monotonic()
        while True:
            reply, _ = self.ask({"type": "status"})
            if wanted(reply):
                return time.monotonic() - started
            if time.monotonic() - started > patience:
                raise SystemExit(f"waited in vain: {reply}")
            time.sleep(0.02)

    def memory(self):
        """Resident and peak kilobytes."""
        with open(f"/proc/{self.process.pid}/status") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
        return int(lines["VmRSS"].split()[0]), int(lines["VmHWM"].split()[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def spread(times):
    times = sorted(times)
    return {"ms": statistics.median(times), "p95": times[min(len(times) - 1, int(len(times) * 0.95))]}


class Beside:
    """The baselines, whose stores know the tree, for the first rounds of each row."""
    def __init__(self, tree, home, rounds):
        self.rounds = rounds
        names = baseline.BASELINES if rounds else ()
        self.sides = [(name, fn, baseline.Store(tree, os.path.join(home, name + ".git"), True)) for name, fn in names]
        for _, fn, store in self.sides:
            fn(store)

    def record(self, rep, times):
        for name, fn, store in self.sides if rep < self.rounds else ():
            times.setdefault(name, []).append(baseline.timed(fn, store)[0])

    def told(self, times, ms):
        """Medians, and how many times faster piton is."""
        medians = {name: statistics.median(walls) for name, walls in times.items()}
        return {**medians, **{f"{name} times": median / ms for name, median in medians.items()}}


class Side:
    """One binary with a sidecar of its own on the tree, and the samples of its rows."""
    def __init__(self, binary, tree, home, settings):
        self.sidecar, self.samples, self.steps = Sidecar(binary, tree, home, settings), {}, {}
        self.turns = iter(range(1, 1 << 30))
        self.started = time.monotonic()
        self.sidecar.ask({"type": "hello"})

    def turn(self, rest=REST):
        """Opens a turn, and waits for its base capture and idle work, which are not what is measured."""
        self.sidecar.ask({"type": "turn.start", "turn": f"t{next(self.turns)}"})
        self.sidecar.until(lambda status: status["watcher"] in ("warm", "scan", "none") and status["baseline"] == "ready")
        time.sleep(rest)

    def before(self, row, expected, command, *ahead):
        """Times one action, which must be answered with one of `expected`; `ahead` are requests that are sent with it."""
        reply, ms = self.sidecar.ask(*ahead, {"type": "shell.before", "command": command})
        status = reply["checkpoint"]["status"]
        if status not in expected:
            raise SystemExit(f"`{command}` was answered {status} where {expected} is right: {reply}")
        self.samples.setdefault(row, []).append(ms)

    def with_turn(self, row, command):
        """Times an action that is sent together with the start of its turn."""
        start = {"type": "turn.start", "turn": f"t{next(self.turns)}"}
        self.before(row, ("taken",), command, start)

    def ping(self):
        self.samples.setdefault("ping", []).append(self.sidecar.ask({"type": "ping"})[1])

    def note_cost(self, row):
        self.steps.setdefault(row, []).append(self.sidecar.ask({"type": "status"})[0]["cost"])

    def rows(self):
        rows = {row: spread(times) for row, times in self.samples.items()}
        for row, costs in self.steps.items():
            rows[row].update({key: statistics.median(cost[key] or 0 for cost in costs) for key in costs[0]})
        return rows


def measure(binaries, tree, changes, reps, home, settings="", rounds=0, idle=0):
    """The rows of the first binary; with a second one both see the same edits, in turn, and `times old` is the median of the
    ratios pair by pair."""
    beside = Beside(tree, home, rounds)
    sides = [Side(binary, tree, os.path.join(home, f"side{at}"), settings) for at, binary in enumerate(binaries)]

    def each(rep, work):
        # Who comes second finds caches warm: they take turns.
        for side in sides if rep % 2 == 0 else sides[::-1]:
            work(side)

    for side in sides:
        side.turn()
        side.before("ready", ("taken", "unchanged"), "rm nothing-there")
        side.samples["ready"] = [(time.monotonic() - side.started) * 1000]
    files = listing(tree)
    name = os.path.relpath(files[len(files) // 2], tree)
    others = {"unchanged": {}}

    def quiet(side):
        side.turn()
        side.before("unchanged", ("unchanged",), f"rm {name}")
        for _ in range(3):
            side.before("held, naming a file", ("held",), f"rm {name}")
            side.before("held, naming nothing", ("held",), "make")
            side.ping()
        side.turn(rest=0)
        side.before("unchanged, at once", ("unchanged",), f"rm {name}")

    for rep in range(reps):
        each(rep, quiet)
        beside.record(rep, others["unchanged"])

    def changed(row, count, seed, rest, rep):
        for side in sides:
            side.turn(rest if side is sides[-1] else 0)
        mutate(files, min(count, len(files)), seed)
        each(rep, lambda side: side.before(row, ("taken",), f"rm {name}"))

    # A small file that an ignore rule leaves out, beside one that no rule does.
    with open(os.path.join(tree, ".gitignore"), "a") as rules:
        rules.write("\n*.bench-private\n")
    for row, ending in ("1 small file", "bench-shared"), ("1 small private file", "bench-private"):
        for i in range(reps):
            for side in sides:
                side.turn()
            with open(os.path.join(tree, "one." + ending), "w") as file:
                file.write(f"{i} of {row}\n" * 9)
            each(i, lambda side: side.before(row, ("taken",), f"rm {name}"))

    for count in changes:
        repeat, row = reps if count < 100 else max(5, reps // 5), f"changed {count}"
        for i in range(repeat):
            changed(f"{row}, at once", count, 6_000_000 + 1000 * count + i, 0, i)
        for i in range(repeat):
            for side in sides:
                side.turn()
            mutate(files, min(count, len(files)), 7_000_000 + 1000 * count + i)
            each(i, lambda side: side.with_turn(f"{row}, with its turn", f"rm {name}"))
        beside.record(0, {})
        for i in range(repeat):
            changed(row, count, 5_000_000 + 1000 * count + i, REST, i)
            each(i, lambda side: side.note_cost(row))
            beside.record(i, others.setdefault(row, {}))
    rows, pairs = sides[0].rows(), [side.samples for side in sides]
    for row, times in others.items():
        rows[row].update(beside.told(times, rows[row]["ms"]))
    for row in rows if len(sides) > 1 else ():
        new, old = pairs[0][row], pairs[1][row]
        rows[row]["old ms"] = statistics.median(old)
        rows[row]["times old"] = statistics.median(a / b for a, b in zip(new, old))
    first = sides[0].sidecar
    status, _ = first.ask({"type": "status"})
    time.sleep(idle)
    rows["memory"] = dict(zip(("resident_kb", "peak_kb"), first.memory()))
    rows["watching"] = {"word": status["watcher"], **status.get("watching", {})}
    for side in sides:
        side.sidecar.close()
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tree")
    p.add_argument("--reps", type=int, default=40)
    p.add_argument("--changes", default="1,10,1000")
    p.add_argument("--settings", default="")
    p.add_argument("--beside", type=int, default=0)
    p.add_argument("--idle", type=float, default=2, help="seconds of rest before memory is looked at; after 30 freed memory is given back")
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--old", help="another binary, measured beside")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    binaries = [os.path.abspath(binary) for binary in (a.piton, a.old) if binary]
    with tempfile.TemporaryDirectory(prefix="piton-warm-") as home:
        rows = measure(binaries, a.tree, [int(n) for n in a.changes.split(",") if n], a.reps, home, a.settings, a.beside, a.idle)
    if a.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(f"{name:26}", "  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
