#!/usr/bin/env python3
"""The longest silence of long work on a terminal.

usage: progress.py [--files 100000] [--bytes 3000000000] [--verbs checkpoint,restore,…] [--piton target/release/piton]
                   [--dir DIR] [--other DIR] [--json]

Runs each verb on a pseudo-terminal, in a tree of many small files and in one of few large ones, and notes each moment at which
something appears on the terminal. A row has the time of the verb, the time of the first line, the longest time without any output
after that (and from its last output to its end), and what the line said last. A verb that takes less than the first second shows
nothing. The exit code is 1 if any silence after the first second was longer than a second. `--other` is a directory on another
file system, to which `store move` copies; without it that verb is left out.
"""
import argparse, json, os, pty, random, re, select, shutil, subprocess, sys, tempfile, time
HERE = os.path.dirname(os.path.abspath(__file__))
LARGE = 8_000_000  # below the largest file that a checkpoint takes by default


def on_terminal(command, cwd, env):
    """Runs a command whose terminal is a new one: its seconds, the moments of output, what was shown, its exit code."""
    person, program = pty.openpty()
    started = time.monotonic()
    child = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=program)
    os.close(program)
    moments, shown = [], b""
    while True:
        select.select([person], [], [])
        try:
            piece = os.read(person, 1 << 16)
        except OSError:  # the program's end is closed
            piece = b""
        if not piece:
            break
        moments.append(time.monotonic() - started)
        shown += piece
    code = child.wait()
    os.close(person)
    return time.monotonic() - started, moments, shown.decode(errors="replace"), code


def silence(seconds, moments):
    """The longest time without output after the first second."""
    edges = [1.0] + [moment for moment in moments if moment > 1.0] + [seconds]
    return max((after - before for before, after in zip(edges, edges[1:])), default=0.0) if seconds > 1.0 else 0.0


def small_files(dest, files):
    subprocess.run([sys.executable, os.path.join(HERE, "gen_tree.py"), dest, str(files)], check=True, stdout=subprocess.DEVNULL)


def large_files(dest, size):
    os.makedirs(dest)
    rng = random.Random(1)
    for number in range(max(1, size // LARGE)):
        with open(os.path.join(dest, f"large-{number}"), "wb") as file:
            file.write(rng.randbytes(min(LARGE, size)))


def change(tree):
    """Changes a third of the files and deletes another third."""
    paths = sorted(os.path.join(at, name) for at, _, names in os.walk(tree) for name in names)
    for number, path in enumerate(paths):
        if number % 3 == 0:
            with open(path, "r+b") as file:
                file.write(b"changed")
        elif number % 3 == 1:
            os.remove(path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=100_000)
    p.add_argument("--bytes", type=int, default=3_000_000_000)
    p.add_argument("--verbs", default="checkpoint,restore,undo,doctor,push,fetch,forget,delete,prune,move")
    p.add_argument("--piton", default=os.path.join(HERE, "..", "target", "release", "piton"))
    p.add_argument("--dir")
    p.add_argument("--other")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    wanted, piton, rows = a.verbs.split(","), os.path.abspath(a.piton), []
    for kind, make, amount in (("small", small_files, a.files), ("large", large_files, a.bytes)):
        if amount == 0:
            continue
        scratch = tempfile.mkdtemp(prefix="piton-progress-", dir=a.dir)
        elsewhere = tempfile.mkdtemp(prefix="piton-progress-", dir=a.other) if a.other else None
        try:
            tree, remote, second = (os.path.join(scratch, name) for name in ("tree", "remote.git", "second"))
            make(tree, amount)
            os.makedirs(second)
            env = {"PATH": os.environ["PATH"], "HOME": scratch, "TERM": "xterm", "PITON_HOME": os.path.join(scratch, "home")}
            theirs = {**env, "PITON_HOME": os.path.join(scratch, "second-home")}
            subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=env)

            def row(name, words, cwd=tree, env=env, codes=(0,)):
                if name not in wanted:
                    return
                seconds, moments, shown, code = on_terminal([piton, *words], cwd, env)
                lines = [line for line in re.split(r"[\r\n]|\x1b\[[0-9]*[A-Z]", shown) if line.strip()]
                rows.append({"tree": kind, "verb": name, "seconds": round(seconds, 2), "first": round(moments[0], 2) if moments else None,
                             "silence": round(silence(seconds, moments), 2), "last": lines[-1].strip() if lines else ""})
                if not a.json:
                    print("{tree:6} {verb:11} {seconds:8.2f} s  first {first}  longest silence {silence} s  {last}".format(**rows[-1]), flush=True)
                if code not in codes:
                    sys.exit(f"{words}: exit code {code}\n{shown}")

            row("checkpoint", ["checkpoint", "first"])
            change(tree)
            row("restore", ["restore", "1", "--yes"])
            row("undo", ["undo", "--yes"])
            row("doctor", ["doctor"], codes=(0, 1))
            row("push", ["push", remote])
            row("fetch", ["fetch", remote], cwd=second, env=theirs)
            some = sorted(name for name in os.listdir(tree))[-1]
            row("forget", ["forget", some, "--yes"], codes=(0, 1, 3, 4))
            row("delete", ["store", "delete", "1", "--yes"], codes=(0, 3, 4, 5))
            row("prune", ["store", "prune", "--yes"], codes=(0, 3, 4))
            if elsewhere:
                row("move", ["store", "move", os.path.join(elsewhere, "moved"), "--yes"])
        finally:
            shutil.rmtree(scratch)
            if elsewhere:
                shutil.rmtree(elsewhere, ignore_errors=True)
    if a.json:
        print(json.dumps(rows, indent=1))
    sys.exit(any(row["silence"] > 1.0 for row in rows))


if __name__ == "__main__":
    main()
