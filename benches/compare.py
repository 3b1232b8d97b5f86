#!/usr/bin/env python3
"""piton beside the baselines, on one tree and in one run.

usage: compare.py [--files 10000] [--reps 5] [--changes 0,1,10,1000] [--piton target/release/piton] [--dir DIR] [--json]

Generates a tree (gen_tree.py), measures the baselines (baseline.py) and then piton's command line on it, each edit made by
mutate.py. piton's rows are whole processes (`piton checkpoint`), as the baselines' are; `engine` is the time the
engine itself says it took, without process start, settings and retention. Medians of --reps; the first snapshot is
one run. Shared machines drift by 2-4x: compare rows of one run, never figures of two.
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


def measure(binary, tree, files, changes, reps, home):
    env = {**os.environ, "PITON_HOME": home, "XDG_CONFIG_HOME": os.path.join(home, "none")}
    wall, used, block = take(binary, tree, env)
    rows = {"first": {"wall_ms": wall, "cpu_ms": used, "engine_ms": block["ms"]}}
    for count in changes:
        walls, cpus, engines = [], [], []
        for i in range(reps):
            if count:
                mutate(files, min(count, len(files)), 7_000_000 + 1000 * count + i)
            wall, used, block = take(binary, tree, env)
            expected = "taken" if count else "unchanged"
            if block["status"] != expected:
                raise SystemExit(f"piton says {block['status']} where {expected} is right")
            walls.append(wall), cpus.append(used), engines.append(block["ms"])
        middle = statistics.median
        rows[f"changed_{count}"] = {"wall_ms": middle(walls), "cpu_ms": middle(cpus), "engine_ms": middle(engines)}
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=10000)
    p.add_argument("--reps", type=int, default=5)
    p.add_argument("--changes", default="0,1,10,1000")
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--dir")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    scratch = tempfile.mkdtemp(prefix="piton-bench-", dir=a.dir)
    try:
        tree = os.path.join(scratch, "tree")
        subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)
        script = [sys.executable, os.path.join(HERE, "baseline.py"), tree, "--reps", str(a.reps), "--changes", a.changes, "--json"]
        out = json.loads(subprocess.run(script, check=True, capture_output=True).stdout)
        changes = [int(x) for x in a.changes.split(",")]
        out["piton"] = measure(os.path.abspath(a.piton), tree, listing(tree), changes, a.reps, os.path.join(scratch, "home"))
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


if __name__ == "__main__":
    main()
