#!/usr/bin/env python3
"""Bringing files back, beside git, in one run.

usage: restore.py [--files 10000] [--counts 1,1000,10000] [--reps 5] [--piton target/release/piton] [--old PITON] [--dir DIR] [--json]

A generated tree; for each repetition some files are edited, and then brought back: by `git checkout-index -f --stdin` (writes
in place, syncs nothing), by `git restore --pathspec-from-file`, and by piton: a running sidecar whose watcher has
reported the edits (`restore`). It first takes the safety checkpoint that makes the restore undoable, writes every file aside,
syncs it, and swaps it in with its exact mode. `checkpoint` is the time before it touches anything. `--old PITON`: another
binary guards the same tree in the same run, the two in turn. Medians; compare rows of one run only. A row without a disk: `--dir` on a tmpfs (not below /dev, where piton guards only what is named).
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from mutate import listing, mutate
from warm import Sidecar


def timed(work):
    started = time.perf_counter()
    answer = work()
    return (time.perf_counter() - started) * 1000, answer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=10000)
    p.add_argument("--counts", default="1,1000,10000")
    p.add_argument("--reps", type=int, default=5)
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--old", help="another binary, measured beside")
    p.add_argument("--settings", default="")
    p.add_argument("--dir")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    scratch = tempfile.mkdtemp(prefix="piton-restore-", dir=a.dir)
    try:
        tree = os.path.join(scratch, "tree")
        subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)
        env = {"PATH": os.environ["PATH"], "HOME": scratch, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": os.path.join(scratch, "git"), "GIT_WORK_TREE": tree}
        git = lambda *args, text="": subprocess.run(["git", *args], cwd=tree, env=env, input=text, text=True, check=True, capture_output=True)
        git("init", "-q"), git("add", "-A"), git("-c", "user.name=b", "-c", "user.email=b@x", "commit", "-qm", "one")
        git("repack", "-adq")
        sides = {}
        for name, binary in (("piton", a.piton), ("old", a.old)):
            if binary:
                sidecar = Sidecar(os.path.abspath(binary), tree, os.path.join(scratch, "home-" + name), a.settings)
                sidecar.ask({"type": "hello"})
                sidecar.until(lambda status: status["watcher"] in ("warm", "scan", "none") and status["baseline"] == "ready")
                first, _ = sidecar.ask({"type": "checkpoint.create", "label": "first"})
                sides[name] = sidecar, first["checkpoint"]["id"]
        ways = ["git checkout-index", "git restore", *sides]
        files = listing(tree)
        rows = {}
        for count in (int(n) for n in a.counts.split(",")):
            times = {name: [] for name in (*ways, *(f"{name} checkpoint" for name in sides))}
            for rep in range(a.reps):
                # Who comes second finds caches warm: they take turns.
                for name in ways if rep % 2 == 0 else ways[::-1]:
                    if name in sides:
                        sidecar, target = sides[name]
                        # What git brought back a moment ago is no part of this restore: it is known, as an agent's
                        # last checkpoint would have made it.
                        sidecar.ask({"type": "checkpoint.create"})
                        sidecar.until(lambda status: status["watcher"] in ("warm", "scan", "none"))
                    chosen = mutate(files, min(count, len(files)), 9_000_000 + 1000 * count + rep)
                    names = "".join(os.path.relpath(path, tree) + "\n" for path in chosen)
                    if name == "git checkout-index":
                        ms, _ = timed(lambda: git("checkout-index", "-f", "-u", "--stdin", text=names))
                    elif name == "git restore":
                        ms, _ = timed(lambda: git("restore", "--pathspec-from-file=-", text=names))
                    else:
                        ms, (reply, _) = timed(lambda: sidecar.ask({"type": "restore", "sha": target}))
                        if not reply.get("ok"):
                            raise SystemExit(f"piton: {reply}")
                        times[f"{name} checkpoint"].append(sidecar.ask({"type": "status"})[0]["cost"]["total_us"] / 1000)
                        # What idle time does is not what is measured.
                        sidecar.until(lambda status: status["watcher"] in ("warm", "scan", "none"))
                        time.sleep(0.3)
                    times[name].append(ms)
                    if git("status", "--porcelain").stdout:
                        raise SystemExit(f"{name} did not bring everything back")
            rows[f"{count} files"] = {name: statistics.median(values) for name, values in times.items()}
            if a.old:
                rows[f"{count} files"]["times old"] = statistics.median(new / old for new, old in zip(times["piton"], times["old"]))
        for sidecar, _ in sides.values():
            sidecar.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if a.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(f"{name:12}", "  ".join(f"{key} {value:.1f}" for key, value in row.items()))


if __name__ == "__main__":
    main()
