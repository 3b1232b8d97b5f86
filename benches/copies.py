#!/usr/bin/env python3
"""What copies of a project add to piton's home.

usage: copies.py [--files 2000] [--size 1500] [--noise] [--copies 20] [--piton target/release/piton] [--dir DIR] [--json]

Makes a project of `--files` files of `--size` bytes of text (`--noise`: that no one can compress) in a git repository, and takes one
checkpoint in it. Then one in each of `--copies` - 1 copies: by `cp -a`, and, in another home, as worktrees of git. `piton prune --yes`
follows each. Sizes are of the whole home: apparent bytes of files, and blocks on the disk (du) with directories.
"""
import argparse, json, os, random, shutil, subprocess, tempfile

WORDS = [f"{a}{b}" for a in ("con", "ver", "get", "set", "map", "idx", "node") for b in ("_ptr", "_val", "_key(", "_len", " = ", ";\n", "_io")]


def measure(home):
    """Apparent bytes of files, and bytes of blocks."""
    apparent = blocks = 0
    for top, dirs, files in os.walk(home):
        for name in files + dirs:
            facts = os.lstat(os.path.join(top, name))
            blocks += facts.st_blocks * 512
            apparent += facts.st_size if name in files else 0
    return {"bytes": apparent, "blocks": blocks}


def shares(home):
    """Apparent bytes and number by the name of a file among the records of workspaces."""
    found = {}
    for top, dirs, files in os.walk(os.path.join(home, "workspaces")):
        for name in files:
            of = found.setdefault(name, [0, 0])
            of[0], of[1] = of[0] + os.lstat(os.path.join(top, name)).st_size, of[1] + 1
    return dict(sorted(found.items()))


def run(args, base, way):
    project, home = os.path.join(base, "project"), os.path.join(base, "home")
    env = {**os.environ, "PITON_HOME": home, "XDG_CONFIG_HOME": os.path.join(base, "config"), "GIT_CONFIG_GLOBAL": "/dev/null",
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
    rng = random.Random(1)
    for number in range(args.files):
        path = os.path.join(project, f"d{number // 50}", f"file{number}.txt")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(rng.randbytes(args.size) if args.noise else "".join(rng.choices(WORDS, k=args.size // 4)).encode()[:args.size])

    def do(dir, *command):
        end = subprocess.run(command, cwd=dir, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if end.returncode not in (0, 3):  # 3: nothing is to be dropped
            raise SystemExit(f"{command}: {end.stderr.decode()}")

    do(project, "git", "init", "-q")
    do(project, "git", "add", "-A")
    do(project, "git", "commit", "-qm", "one")
    do(project, args.piton, "checkpoint", "one")
    do(project, args.piton, "prune", "--yes")
    result = {"one": measure(home)}
    for number in range(1, args.copies):
        copy = os.path.join(base, f"copy{number}")
        if way == "worktree":
            do(project, "git", "worktree", "add", "-q", "-b", f"b{number}", copy)
        else:
            do(base, "cp", "-a", project, copy)
        do(copy, args.piton, "checkpoint", "one")
    result["all"] = measure(home)
    do(project, args.piton, "prune", "--yes")
    result["pruned"] = measure(home)
    one = result["one"]
    for row in ("all", "pruned"):
        result[row].update({f"{key} more, %": round((result[row][key] / one[key] - 1) * 100, 2) for key in one})
    result["records"] = shares(home)
    return result


def main():
    parse = argparse.ArgumentParser()
    for name, value in (("files", 2000), ("size", 1500), ("copies", 20)):
        parse.add_argument(f"--{name}", type=int, default=value)
    parse.add_argument("--noise", action="store_true")
    parse.add_argument("--piton", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "target", "release", "piton"))
    parse.add_argument("--dir")
    parse.add_argument("--json", action="store_true")
    args = parse.parse_args()
    args.piton = os.path.abspath(args.piton)
    result = {}
    for way in ("cp", "worktree"):
        base = tempfile.mkdtemp(prefix="piton-copies-", dir=args.dir)
        try:
            result[way] = run(args, base, way)
        finally:
            shutil.rmtree(base, ignore_errors=True)
    if args.json:
        return print(json.dumps(result))
    for way, rows in result.items():
        for name, row in rows.items():
            print(f"{way:9} {name:8}", "  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
