#!/usr/bin/env python3
"""Round trips of one running sidecar: what an agent waits for.

usage: warm.py TREE [--reps 40] [--changes 1,10,1000] [--beside 5] [--idle 2] [--piton target/release/piton] [--json]

One `piton sidecar` guards TREE. For each row a turn is opened, files are edited (mutate.py), and the time from sending
`shell.before` to its reply is taken: with edits since the last checkpoint, with none (after a rest, and at once), and for later
actions of a turn that has its checkpoint; a `ping` shows what of it is the pipe's. Medians, and the 95th percentile. `--beside N`: in the first N rounds of a row git and hermes (baseline.py)
record the same edits, in the same run. Shared machines drift by 2-4x: compare rows of one run only.
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

    def ask(self, body):
        """Sends a request; gives its reply and the milliseconds in between."""
        self.number += 1
        text = json.dumps({"id": self.number, **body}).encode() + b"\n"
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


def measure(binary, tree, changes, reps, home, settings="", rounds=0, idle=0):
    beside = Beside(tree, home, rounds)
    sidecar = Sidecar(binary, tree, home, settings)
    started = time.monotonic()
    sidecar.ask({"type": "hello"})
    turns = iter(range(1, 1 << 30))

    def before(expected, command, turn=True, rest=REST):
        if turn:
            sidecar.ask({"type": "turn.start", "turn": f"t{next(turns)}"})
            # The base capture of the turn, and what idle time does then, are not what is measured.
            sidecar.until(lambda status: status["watcher"] in ("warm", "scan", "none") and status["baseline"] == "ready")
            time.sleep(rest)
        reply, ms = sidecar.ask({"type": "shell.before", "command": command})
        status = reply["checkpoint"]["status"]
        if status not in expected:
            raise SystemExit(f"`{command}` was answered {status} where {expected} is right: {reply}")
        return ms, reply["checkpoint"]

    before(("taken", "unchanged"), "rm nothing-there")
    rows = {"ready": {"ms": (time.monotonic() - started) * 1000}}
    files = listing(tree)
    name = os.path.relpath(files[len(files) // 2], tree)
    none, busy, held, bare, pings, quiet = [], [], [], [], [], {}
    for rep in range(reps):
        none.append(before(("unchanged",), f"rm {name}")[0])
        for _ in range(3):
            held.append(before(("held",), f"rm {name}", turn=False)[0])
            bare.append(before(("held",), "make", turn=False)[0])
            pings.append(sidecar.ask({"type": "ping"})[1])
        busy.append(before(("unchanged",), f"rm {name}", rest=0)[0])
        beside.record(rep, quiet)
    rows["ping"], rows["held, naming nothing"], rows["held, naming a file"] = spread(pings), spread(bare), spread(held)
    rows["unchanged, at once"], rows["unchanged"] = spread(busy), spread(none)
    rows["unchanged"].update(beside.told(quiet, rows["unchanged"]["ms"]))

    def changed(count, seed, rest):
        sidecar.ask({"type": "turn.start", "turn": f"t{next(turns)}"})
        sidecar.until(lambda status: status["watcher"] in ("warm", "scan", "none") and status["baseline"] == "ready")
        time.sleep(rest)
        mutate(files, min(count, len(files)), seed)
        return before(("taken",), f"rm {name}", turn=False)[0]

    for count in changes:
        repeat = reps if count < 100 else max(5, reps // 5)
        busy = [changed(count, 6_000_000 + 1000 * count + i, 0) for i in range(repeat)]
        beside.record(0, {})
        times, engine, others = [], [], {}
        for i in range(repeat):
            times.append(changed(count, 5_000_000 + 1000 * count + i, REST))
            engine.append(sidecar.ask({"type": "status"})[0]["cost"])
            beside.record(i, others)
        steps = {key: statistics.median(cost[key] or 0 for cost in engine) for key in engine[0]}
        rows[f"changed {count}, at once"] = spread(busy)
        rows[f"changed {count}"] = {**spread(times), **beside.told(others, statistics.median(times)), **steps}
    status, _ = sidecar.ask({"type": "status"})
    time.sleep(idle)
    rows["memory"] = dict(zip(("resident_kb", "peak_kb"), sidecar.memory()))
    rows["watching"] = {"word": status["watcher"], **status.get("watching", {})}
    sidecar.close()
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
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="piton-warm-") as home:
        rows = measure(os.path.abspath(a.piton), a.tree, [int(n) for n in a.changes.split(",") if n], a.reps, home, a.settings, a.beside, a.idle)
    if a.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(f"{name:22}", "  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
