#!/usr/bin/env python3
"""What a hook costs an agent, as whole processes beside `true` and `git --version`, in one run.

usage: hook.py [--files 50000] [--reps 40] [--piton target/release/piton] [--dir DIR] [--json]

A generated tree, and a daemon whose watcher is warm. Then, in turn: `true`, `git --version`, and `piton hook claude-code
PreToolUse` for a harmless command, for one that the turn's checkpoint covers (`held`), and, with one file edited before it and a
turn of its own, for one that takes a checkpoint. Medians of wall milliseconds; compare rows of one run only.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from mutate import listing, mutate


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=50000)
    p.add_argument("--reps", type=int, default=40)
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--dir")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    piton = os.path.abspath(a.piton)
    scratch = tempfile.mkdtemp(prefix="piton-hook-", dir=a.dir)
    tree = os.path.join(scratch, "tree")
    env = {**os.environ, "PITON_HOME": os.path.join(scratch, "home"), "XDG_CONFIG_HOME": os.path.join(scratch, "none")}
    try:
        subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)
        turn = 0

        def run(argv, text=""):
            started = time.perf_counter()
            out = subprocess.run(argv, cwd=tree, env=env, input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
            return (time.perf_counter() - started) * 1000, out

        def hook(event, **fields):
            payload = {"hook_event_name": event, "session_id": "bench", "prompt_id": f"p{turn}", "cwd": tree, **fields}
            ms, out = run([piton, "hook", "claude-code", event], json.dumps(payload))
            if out:
                raise SystemExit(f"the hook said {out.decode()}")
            return ms

        def shell(command):
            return hook("PreToolUse", tool_use_id="x", tool_name="Bash", tool_input={"command": command})

        hook("SessionStart")
        files = listing(tree)
        while True:  # until the daemon hears of changes: a checkpoint costs no scan then
            turn += 1
            shell("rm README.md")
            if shell("rm README.md") < 30:
                turn += 1
                if shell("rm README.md") < 30:
                    break
            time.sleep(0.2)
        rows = {name: [] for name in ("true", "git --version", "harmless", "held", "checkpoint, 1 file changed")}
        for rep in range(a.reps):
            rows["true"].append(run(["true"])[0])
            rows["git --version"].append(run(["git", "--version"])[0])
            rows["harmless"].append(shell("ls -la"))
            rows["held"].append(shell("rm README.md"))
            turn += 1
            hook("UserPromptSubmit", prompt="go on")
            time.sleep(0.15)  # a model thinks
            mutate(files, 1, 5_000_000 + rep)
            rows["checkpoint, 1 file changed"].append(shell("rm README.md"))
            time.sleep(0.15)  # what idle time does is not what is measured
        out = {name: statistics.median(times) for name, times in rows.items()}
    finally:
        subprocess.run([piton, "daemon", "stop"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(scratch, ignore_errors=True)
    if a.json:
        return print(json.dumps(out))
    for name, ms in out.items():
        print(f"{name:28} {ms:7.2f} ms   over true {ms - out['true']:+.2f}")


if __name__ == "__main__":
    main()
