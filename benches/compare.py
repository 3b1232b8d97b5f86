#!/usr/bin/env python3
"""piton beside the baselines, on one tree and in one run.

usage: compare.py [--files 10000 | --tree DIR] [--reps 5] [--changes 0,1,10,1000] [--piton target/release/piton] [--dir DIR] [--json]

Generates a tree (gen_tree.py), and after each edit (mutate.py) measures the baselines (baseline.py) and piton's command
line. piton's rows are whole processes (`piton checkpoint`), as the baselines' are; `engine` is the time the engine itself
says it took, without process start, settings and retention. `git status` (with an untracked cache) is what git takes to see
that nothing changed, where its index is up to date. Medians of --reps; the first snapshot is one run. Shared machines drift by 2-4x: compare rows of one run, never figures of two.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import baseline
from mutate import listing, mutate


def take(binary, tree, env):
    before, started = baseline.cpu(), time.monotonic()
    run = subprocess.run([binary, "checkpoint", "--json"], cwd=tree, env=env, capture_output=True, stdin=subprocess.DEVNULL)
    wall, used = (time.monotonic() - started) * 1000, baseline.cpu() - before
    if run.returncode:
        raise SystemExit("piton failed: " + run.stderr.decode())
    return wall, used, json.loads(run.stdout)["checkpoint"]


class Status:
    """A repository whose index and untracked cache know the tree."""
    def __init__(self, tree, path):
        self.store = baseline.Store(tree, path, True)
        self.store.git("config", "core.untrackedCache", "true")
        self.store.env["GIT_OPTIONAL_LOCKS"] = "1"

    def ready(self):
        """The index takes in what is there, and a first status fills the cache."""
        self.store.git("add", "-A")
        for _ in range(2):
            self.store.git("status", "--porcelain")

    def measure(self):
        return (*baseline.timed(lambda store: store.git("status", "--porcelain"), self.store), None)


def row(samples):
    """Medians of (wall, cpu, engine) in milliseconds."""
    walls, cpus, engines = zip(*samples)
    out = {"wall_ms": statistics.median(walls), "cpu_ms": statistics.median(cpus)}
    if engines[0] is not None:
        out["engine_ms"] = statistics.median(engines)
    return out


def measure(binary, tree, changes, reps, scratch):
    """Each side after the same edits, in turn, so that a busy moment of the machine meets all of them."""
    files = listing(tree)
    home = os.path.join(scratch, "home")
    env = {**os.environ, "PITON_HOME": home, "XDG_CONFIG_HOME": os.path.join(home, "none")}
    stores = {name: baseline.Store(tree, os.path.join(scratch, name + ".git"), True) for name, _ in baseline.BASELINES}

    status = Status(tree, os.path.join(scratch, "status.git"))

    def all_sides(expected, with_status=False):
        out = {}
        if with_status:
            out["status"] = status.measure()
        for name, fn in baseline.BASELINES:
            out[name] = (*baseline.timed(fn, stores[name]), None)
        wall, used, block = take(binary, tree, env)
        if block["status"] != expected:
            raise SystemExit(f"piton says {block['status']} where {expected} is right")
        out["piton"] = (wall, used, block["ms"])
        return out

    rows = {"files": len(files), **{name: {} for name in (*stores, "piton", "status")}}
    for name, sample in all_sides("taken").items():
        rows[name]["first"] = row([sample])
    for count in changes:
        samples = []
        if not count:
            status.ready()
        for i in range(reps):
            if count:
                mutate(files, min(count, len(files)), 7_000_000 + 1000 * count + i)
            samples.append(all_sides("taken" if count else "unchanged", not count))
        for name in samples[0]:
            rows[name][f"changed_{count}"] = row([sample[name] for sample in samples])
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=10000)
    p.add_argument("--tree", help="a tree to copy instead of a generated one")
    p.add_argument("--reps", type=int, default=5)
    p.add_argument("--changes", default="0,1,10,1000")
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--dir")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    scratch = tempfile.mkdtemp(prefix="piton-bench-", dir=a.dir)
    try:
        tree = os.path.join(scratch, "tree")
        if a.tree:
            shutil.copytree(a.tree, tree, symlinks=True)
        else:
            subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)
        out = measure(os.path.abspath(a.piton), tree, [int(x) for x in a.changes.split(",")], a.reps, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if a.json:
        print(json.dumps(out, indent=1))
        return
    steps = list(out["piton"])
    print(f"{out['files']} files; wall ms (cpu ms)\n")
    print("| step | " + " | ".join(["git", "hermes", "piton", "piton, engine alone"]) + " |\n|---|---|---|---|---|")
    for step in steps:
        cells = [f"{out[name][step]['wall_ms']:.1f} ({out[name][step]['cpu_ms']:.0f})" for name in ("git", "hermes", "piton")]
        print(f"| {step} | " + " | ".join(cells) + f" | {out['piton'][step]['engine_ms']:.1f} |")
    if "changed_0" in out["status"]:
        print(f"\n`git status` with an untracked cache, nothing changed: {out['status']['changed_0']['wall_ms']:.1f} ms")


if __name__ == "__main__":
    main()
