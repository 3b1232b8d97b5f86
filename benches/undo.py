#!/usr/bin/env python3
"""Taking a turn back, beside git, in one run.

usage: undo.py [--files 50000] [--counts 10,1000] [--reps 7] [--piton target/release/piton] [--old PITON] [--dir DIR] [--json]

A generated tree under a running sidecar whose watcher is warm. For each repetition a turn begins, one action edits some files, and
the turn ends. Then `undo` takes it back over the protocol, and `redo` brings it again; both take their safety checkpoints. The same
edits are taken back by `git stash` and brought again by `git stash pop`, in a repository that knows all files. "event" rows are
round trips of events: a later action of a turn that names nothing, and its end. `--old PITON`: another binary guards the same
tree in the same run, for the event rows. Medians; compare rows of one run only.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from mutate import listing, mutate
from warm import Sidecar


def timed(work):
    os.sync()  # what others have written before is not waited for within
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def ask(sidecar, **body):
    reply, ms = sidecar.ask(body)
    if not reply.get("ok"):
        raise SystemExit(f"refused: {reply}")
    return reply, ms


def warm(sidecar):
    sidecar.until(lambda status: status["watcher"] in ("warm", "scan", "none"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=50000)
    p.add_argument("--counts", default="10,1000")
    p.add_argument("--reps", type=int, default=7)
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--old", help="another binary, whose events are measured beside")
    p.add_argument("--dir")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    scratch = tempfile.mkdtemp(prefix="piton-undo-", dir=a.dir)
    try:
        tree = os.path.join(scratch, "tree")
        subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)
        env = {"PATH": os.environ["PATH"], "HOME": scratch, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": os.path.join(scratch, "git"), "GIT_WORK_TREE": tree}
        git = lambda *args: subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@x", *args], cwd=tree, env=env, check=True, capture_output=True)
        git("init", "-q"), git("add", "-A"), git("commit", "-qm", "one")
        sides = {}
        for name, binary in (("piton", a.piton), ("old", a.old)):
            if binary:
                sidecar = Sidecar(os.path.abspath(binary), tree, os.path.join(scratch, "home-" + name))
                ask(sidecar, type="hello", session=name)
                sidecar.until(lambda status: status["baseline"] == "ready")
                warm(sidecar)
                sides[name] = sidecar
        piton, files = sides["piton"], listing(tree)
        rows, turn = {}, 0
        for count in (int(n) for n in a.counts.split(",")):
            times = {name: [] for name in ("piton undo", "piton redo", "git stash", "git stash pop")}
            for rep in range(a.reps):
                turn += 1
                ask(piton, type="turn.start", turn=f"t{turn}")
                ask(piton, type="shell.before", command="./generate", action="1")
                mutate(files, min(count, len(files)), 7_000_000 + 1000 * count + rep)
                ask(piton, type="shell.after", action="1")
                ask(piton, type="turn.end", turn=f"t{turn}")
                warm(piton)
                os.sync()
                time.sleep(0.15)
                reply, ms = ask(piton, type="undo")
                changed = sum(reply["done"][kind]["total"] for kind in ("created", "replaced", "deleted"))
                if changed != min(count, len(files)):
                    raise SystemExit(f"{changed} paths went back, not {count}: {reply}")
                times["piton undo"].append(ms)
                os.sync()
                time.sleep(0.15)
                times["piton redo"].append(ask(piton, type="redo")[1])
                times["git stash"].append(timed(lambda: git("stash", "-q")))
                times["git stash pop"].append(timed(lambda: git("stash", "pop", "-q")))
                git("checkout", "-q", "--", ".")
                ask(piton, type="checkpoint.create")
                warm(piton)
            rows[str(count)] = {name: statistics.median(of) for name, of in times.items()}
        for name, sidecar in sides.items():
            action, end = [], []
            for rep in range(a.reps * 5):
                turn += 1
                ask(sidecar, type="turn.start", turn=f"t{turn}")
                ask(sidecar, type="shell.before", command="rm nothing-here", action="1")
                ask(sidecar, type="shell.after", action="1")
                time.sleep(0.05)
                action.append(ask(sidecar, type="shell.before", command="ls", action="2")[1])
                ask(sidecar, type="shell.after", action="2")
                end.append(ask(sidecar, type="turn.end", turn=f"t{turn}")[1])
            rows.setdefault("event", {})[f"{name} action"] = statistics.median(action)
            rows["event"][f"{name} turn.end"] = statistics.median(end)
        for sidecar in sides.values():
            sidecar.close()
        if a.json:
            print(json.dumps(rows, indent=1))
        else:
            for row, of in rows.items():
                print(f"{row:>8}  " + "  ".join(f"{name} {ms:.2f} ms" for name, ms in of.items()))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
