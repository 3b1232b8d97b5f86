#!/usr/bin/env python3
"""Counts how many command lines of real agents open a window, in which any path may be the agent's.

usage: transcripts.py LINES [--piton PITON] [--base N] [--list]

LINES has a JSON object a line, with `cmd` and the short name of its source, `s`. A line opens a window if piton cannot tell all that
it may change: `opens_window` of `piton classify`, or where that is missing, the confidence `opaque`. With --base it ends with 1 if
more than 1.15 times as many lines do. --list prints the lines that do, the most frequent program first. README.md beside this file
says where the lines of the last count came from.
"""
import argparse, collections, hashlib, json, os, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))


def opens_window(answer):
    return answer.get("opens_window", answer["confidence"] == "opaque")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("lines")
    parser.add_argument("--piton", default=os.environ.get("PITON_BIN") or os.path.join(HERE, "../../target/debug/piton"))
    parser.add_argument("--base", type=int)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    with open(asked.lines, "rb") as file:
        content = file.read()
    rows = [json.loads(line) for line in content.decode().split("\n") if line]
    given = "".join(json.dumps(row["cmd"]) + "\n" for row in rows)
    done = subprocess.run([asked.piton, "classify", "--stdin"], input=given, stdout=subprocess.PIPE, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(rows):
        raise SystemExit(f"{len(answers)} answers to {len(rows)} lines")
    opening = [row for row, answer in zip(rows, answers) if opens_window(answer)]
    opaque = sum(answer["confidence"] == "opaque" for answer in answers)
    if asked.list:
        programs = collections.Counter(row["cmd"].split()[0] for row in opening)
        for row in sorted(opening, key=lambda row: (-programs[row["cmd"].split()[0]], row["cmd"])):
            print(json.dumps(row["cmd"]))
    sources = collections.Counter(row["s"] for row in rows)
    by_source = collections.Counter(row["s"] for row in opening)
    print(f"sha256 {hashlib.sha256(content).hexdigest()}")
    for source, count in sorted(sources.items()):
        print(f"{source}: {by_source[source]} of {count} lines open a window")
    print(f"{len(opening)} of {len(rows)} lines open a window ({100 * len(opening) / len(rows):.1f} %); {opaque} are opaque")
    if asked.base is not None and len(opening) > 1.15 * asked.base:
        print(f"more than 1.15 times {asked.base}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
