#!/usr/bin/env python3
"""The size of piton's store against that of a git repository with the same history after `git gc --prune=now`.

usage: size.py [--files 10000] [--checkpoints 500] [--changes 10] [--sidecar] [--piton target/release/piton] [--prune | --maintain COMMAND] [--tree DIR] [--json]

Makes a tree (gen_tree.py), takes a first checkpoint, then edits files (mutate.py) and takes a checkpoint, again and again: by
`piton checkpoint`, or with `--sidecar` by one sidecar that is asked to. A git repository commits the same states in the same run. Sizes are
blocks on the disk (du). "before" is the store as it stands behind the last checkpoint, "after" the one behind `piton prune --yes` (`--prune`), or behind another command, which
finds piton's directory in PITON_HOME and PITON_KEEP_UP.
"""
import argparse, json, os, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from mutate import listing, mutate


def du(path):
    return sum(os.lstat(os.path.join(top, name)).st_blocks * 512 for top, dirs, files in os.walk(path) for name in files + dirs)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--files", type=int, default=10000)
    parse.add_argument("--checkpoints", type=int, default=500)
    parse.add_argument("--changes", type=int, default=10)
    parse.add_argument("--sidecar", action="store_true")
    parse.add_argument("--prune", action="store_true")
    parse.add_argument("--maintain", help="a shell command instead of `piton prune`")
    parse.add_argument("--tree", help="where the tree and both repositories are made; by default a temporary directory")
    parse.add_argument("--piton", default=os.path.join(HERE, "../target/release/piton"))
    parse.add_argument("--json", action="store_true")
    args = parse.parse_args()
    scratch = tempfile.TemporaryDirectory(dir=args.tree)
    base = os.path.abspath(scratch.name)
    args.piton = os.path.abspath(args.piton)
    tree, home, git = (os.path.join(base, name) for name in ("tree", "home", "git"))
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(args.files)], **quiet)
    env = {**os.environ, "PITON_HOME": home, "XDG_CONFIG_HOME": os.path.join(base, "config"),
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
    os.makedirs(os.path.join(base, "config/piton"))
    with open(os.path.join(base, "config/piton/config.yaml"), "w") as file:
        # Every checkpoint is kept, so that both sides have the same history.
        file.write("retention:\n  enabled: false\n")

    def run(*command):
        subprocess.run(command, cwd=tree, env=env, **quiet)

    def gits(*command):
        run("git", f"--git-dir={git}", f"--work-tree={tree}", "-c", "gc.auto=0", *command)

    sidecar = None
    if args.sidecar:
        from warm import Sidecar
        sidecar = Sidecar(args.piton, tree, home)

    def both(number):
        if sidecar:
            sidecar.ask({"type": "turn.start", "turn": f"t{number}"}, {"type": "shell.before", "turn": f"t{number}", "command": "rm -rf none"})
        else:
            run(args.piton, "checkpoint", f"number {number}")
        gits("add", "-A")
        gits("commit", "-qm", f"number {number}")

    run("git", f"--git-dir={git}", "init", "-q", "--bare")
    both(0)
    first, files, started = du(os.path.join(home, "store.git")), listing(tree), time.monotonic()
    for number in range(1, args.checkpoints + 1):
        mutate(files, args.changes, number)
        both(number)
    took = time.monotonic() - started
    if sidecar:
        time.sleep(5)
    store = os.path.join(home, "store.git")
    result = {"files": args.files, "checkpoints": args.checkpoints, "seconds": round(took, 1), "first": first, "before": du(store)}
    if sidecar:
        sidecar.process.stdin.close()
        sidecar.process.wait()
    listed = json.loads(subprocess.run([args.piton, "list", "--all", "--limit", "100000", "--json"], cwd=tree, env=env, capture_output=True, check=True).stdout)
    result["listed"] = len(listed["checkpoints"])
    if args.prune or args.maintain:
        started = time.monotonic()
        if args.maintain:
            subprocess.run(args.maintain, shell=True, env={**env, "PITON_KEEP_UP": home}, check=True, stdout=sys.stderr)
        else:
            run(args.piton, "prune", "--yes")
        result["after"], result["maintained"] = du(store), round(time.monotonic() - started, 1)
    gits("gc", "-q", "--prune=now")
    result["git"] = du(git)
    kinds = {"loose": 0, "packs": 0, "refs": du(os.path.join(store, "refs"))}
    for top, _, names in os.walk(os.path.join(store, "objects")):
        for name in names:
            kind = "packs" if os.path.basename(top) == "pack" else "loose"
            kinds[kind] += os.lstat(os.path.join(top, name)).st_blocks * 512
    result.update(kinds)
    if args.json:
        print(json.dumps(result))
        return
    print(f"{args.files} files, {result['listed']} checkpoints of {args.changes} changed files, in {took:.0f} s")
    for name in ("first", "before", "after", "git", "loose", "packs", "refs"):
        if name in result:
            print(f"  {name:7} {result[name] / 1e6:8.1f} MB   {result[name] / result['git']:5.2f} x git")


main()
