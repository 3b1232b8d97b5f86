#!/usr/bin/env python3
"""Times git commands with piton's door and without it, in one run.

usage: git_door.py [--files 50000] [--reps 15] [--piton target/release/piton] [--git git] [--dir DIR] [--json]

Three clones of one repository: `bare` asks nobody, `setting` has `core.fsmonitor` alone, `door` has the hooks too. Each repetition runs
the command once in each, in turn; each begins in the same state, which is made without piton. `added` is the median of the differences
of pairs, the difference of the best times (on a busy machine the truer one), and the median of the added processor time of git and all
that it starts. Milliseconds of whole processes; compare columns of one run only.

Commands with `*` destroy something, or rewrite files: before them there is a checkpoint in addition.

`--paths` times `git status` alone, in one work tree with an index for each side: git that looks itself (`nothing`), with its own cache of
untracked files (`cache`), with the door that answers "everything" (`all`) and with the changed paths (`paths`), both beside that cache.
In the rows "1 changed", one file has changed since the last time.
"""
import argparse, json, os, resource, shutil, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
QUIET = {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false",
         "GIT_CONFIG_KEY_1": "core.hooksPath", "GIT_CONFIG_VALUE_1": "/dev/null"}
# name, state before, command, state after
COMMANDS = [
    ("status", "", "status --porcelain", ""),
    ("diff", "", "diff --quiet", ""),
    ("add", "date +%N >> changed", "add changed", ""),
    ("commit", "date +%N >> changed; git add changed", "commit -q -m more", ""),
    ("checkout -b", "", "checkout -q -b new", "git checkout -q main; git branch -D new"),
    ("fetch", "cd ../origin.git; git update-ref refs/heads/far $(git commit-tree -m far $(git rev-parse main^{tree}) -p far)", "fetch -q origin", ""),
    ("reset --hard *", "date +%N >> changed", "reset -q --hard", ""),
    ("stash *", "date +%N >> changed", "stash -q", "git stash drop -q"),
    ("rebase of 10 *", "git checkout -q -B side far-base; for n in 0 1 2 3 4 5 6 7 8 9; do echo $n > side-$n; git add side-$n; git commit -q -m $n; done",
     "rebase -q main", "git checkout -q main"),
]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=100)
    p.add_argument("--reps", type=int, default=15)
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--git", default=shutil.which("git"))
    p.add_argument("--only", help="commands whose names begin so")
    p.add_argument("--paths", action="store_true")
    p.add_argument("--dir")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    scratch = tempfile.mkdtemp(prefix="piton-git-door-", dir=a.dir)
    env = {"PATH": os.path.dirname(a.git) + ":" + os.environ["PATH"], "HOME": scratch, "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_AUTHOR_NAME": "b", "GIT_AUTHOR_EMAIL": "b@x", "GIT_COMMITTER_NAME": "b", "GIT_COMMITTER_EMAIL": "b@x"}
    try:
        (paths if a.paths else measure)(a, scratch, env)
    finally:
        subprocess.run([a.piton, "daemon", "stop"], env={**env, "PITON_HOME": os.path.join(scratch, "home")}, capture_output=True)
        shutil.rmtree(scratch, ignore_errors=True)


def measure(a, scratch, env):
    home = {**env, "PITON_HOME": os.path.join(scratch, "home")}
    tree = os.path.join(scratch, "first")
    subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)

    def sh(script, side, **more):
        done = subprocess.run(["/bin/sh", "-ec", script], cwd=os.path.join(scratch, side), env={**home, **more}, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{side}: {script}: {done.stderr}")

    sh("git init -q -b main; git config gc.auto 0; git config maintenance.auto false; echo x > changed; git add -A; git commit -q -m one; git branch far-base; git branch far;"
       "echo y > other; git add -A; git commit -q -m two; git clone -q --bare . ../origin.git", "first", **QUIET)
    sides = ["bare", "setting", "door"]
    for side in sides:
        shutil.copytree(tree, os.path.join(scratch, side), symlinks=True)
        sh("git remote add origin ../origin.git; git fetch -q origin; git update-index -q --refresh || :", side, **QUIET)
    for side in sides[1:]:
        done = subprocess.run([a.piton, "install", "git", "--yes"], cwd=os.path.join(scratch, side), env=home, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
    sh("rm -f .git/hooks/reference-transaction .git/hooks/pre-push", "setting")
    rows = {}
    for name, before, command, after in COMMANDS:
        if a.only and not name.startswith(a.only):
            continue
        times = {side: [] for side in sides}
        for rep in range(a.reps + 1):
            for side in sides:
                sh(before, side, **QUIET)
                started, cpu = time.perf_counter(), processor()
                subprocess.run([a.git, *command.split()], cwd=os.path.join(scratch, side), env=home, check=True, stdout=subprocess.DEVNULL)
                took = ((time.perf_counter() - started) * 1000, processor() - cpu)
                settle(home["PITON_HOME"])
                sh(after, side, **QUIET)
                if rep:
                    times[side].append(took)
        wall = {side: [wall for wall, _ in times[side]] for side in sides}
        pairs = lambda side, at: statistics.median(x[at] - y[at] for x, y in zip(times[side], times["bare"]))
        added = {side: (pairs(side, 0), min(wall[side]) - min(wall["bare"]), pairs(side, 1)) for side in sides[1:]}
        rows[name] = {"bare": (statistics.median(wall["bare"]), min(wall["bare"])), **{f"added by {side}": ms for side, ms in added.items()}}
        if not a.json:
            print(f"{name:18}" + "".join(f"  {key}" + "".join(f" {ms:7.2f}" for ms in all) for key, all in rows[name].items()), flush=True)
    if a.json:
        print(json.dumps({"files": a.files, "git": a.git, "rows": rows}))


def paths(a, scratch, env):
    tree, config = os.path.join(scratch, "tree"), os.path.join(scratch, "config", "piton")
    subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), tree, str(a.files)], check=True, stdout=subprocess.DEVNULL)
    os.makedirs(config)
    with open(os.path.join(config, "config.yaml"), "w") as file:
        file.write("git: {fsmonitor_answers: paths}\n")
    home = {**env, "PITON_HOME": os.path.join(scratch, "home"), "XDG_CONFIG_HOME": os.path.dirname(config)}
    run = lambda *words, **more: subprocess.run(words, cwd=tree, env={**home, **more}, check=True, capture_output=True)
    run(a.git, "init", "-q"), run(a.git, "add", "-A"), run(a.git, "commit", "-qm", "one"), run(a.git, "config", "core.untrackedCache", "true")
    run(a.piton, "install", "git", "--yes")
    index = lambda name: {"GIT_INDEX_FILE": os.path.join(tree, ".git", "index-" + name)}
    own = ["-c", "core.fsmonitor=false"]
    sides = {
        "nothing": ([*own, "-c", "core.untrackedCache=false"], index("nothing")),
        "cache": (own, index("cache")),
        "all": ([], {**index("all"), "XDG_CONFIG_HOME": os.path.join(scratch, "none")}),
        "paths": ([], {}),
    }
    for name in ("nothing", "cache", "all"):
        shutil.copy2(os.path.join(tree, ".git", "index"), index(name)["GIT_INDEX_FILE"])

    def status(side):
        options, more = sides[side]
        started = time.perf_counter()
        done = run(a.git, *options, "status", "--porcelain", **more)
        return (time.perf_counter() - started) * 1000, done.stdout

    trace, until = os.path.join(scratch, "trace"), time.monotonic() + 120
    while True:  # until all directories are watched, and the index has a token
        for side in sides:
            status(side)
        run(a.git, "status", GIT_TRACE_FSMONITOR=trace)
        with open(trace) as file:
            if "piton:" in file.read():
                break
        if time.monotonic() > until:
            raise SystemExit("the work tree is not watched")
        time.sleep(0.1)
    files = [os.path.join(dir, name) for dir, dirs, names in os.walk(tree) if not dirs.__contains__(".git") and "/.git" not in dir for name in names]
    rows = {}
    for changed in (0, 1):
        times = {side: [] for side in sides}
        for rep in range(a.reps + 2):
            if changed:
                with open(files[rep * 7919 % len(files)], "a") as file:
                    file.write("x")
            answers = set()
            for side in sides:
                ms, text = status(side)
                answers.add(text)
                if rep >= 2:
                    times[side].append(ms)
            if len(answers) != 1:
                raise SystemExit("the sides do not agree")
        rows[f"{changed} changed"] = {side: statistics.median(ms) for side, ms in times.items()}
        if not a.json:
            print(f"{changed} changed" + "".join(f"  {side} {ms:8.1f}" for side, ms in rows[f"{changed} changed"].items()), flush=True)
    if a.json:
        print(json.dumps({"files": a.files, "git": a.git, "rows": rows}))


def processor():
    """The processor time of all children that have ended, in milliseconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def settle(home):
    """Waits until the ends of all commands are told: they are no part of the next one."""
    calls = os.path.join(home, "git-calls")
    until = time.monotonic() + 20
    while os.path.isdir(calls) and os.listdir(calls) and time.monotonic() < until:
        time.sleep(0.002)


if __name__ == "__main__":
    main()
