#!/usr/bin/env python3
"""Times what `piton init SHELL` adds to a line that destroys nothing, beside a process that does nothing.

    benches/shells.py PITON [LINES]

Each shell runs its own hooks in a loop: for a line that its script answers for, and for one that piton judges. `true` is
started as often by the same shell in the same run. All figures are milliseconds a line, best of 5 rounds.
"""

import os
import subprocess
import sys
import tempfile

BASH = r"""
eval "$('@PITON@' init bash)"
set -o history
bench() { local i; for ((i = 0; i < @LINES@; i++)); do : "${PS0@P}"; __piton_after; done; }
spawn() { local i; for ((i = 0; i < @LINES@; i++)); do /bin/true; done; }
nothing() { local i; for ((i = 0; i < @LINES@; i++)); do :; done; }
lap() { local from=${EPOCHREALTIME/./}; "$2"; local to=${EPOCHREALTIME/./}; echo "lap $1 $((to - from))"; }
for round in 1 2 3 4 5; do
    history -s 'ls -l src'; lap reads bench
    history -s 'mkdir -p x && ls | head'; lap judged bench
    lap true spawn; lap none nothing
done
"""

ZSH = r"""
eval "$('@PITON@' init zsh)"
zmodload zsh/datetime
bench() { local i; for ((i = 0; i < @LINES@; i++)); do __piton_preexec "$line" "$line" "$line"; __piton_precmd; done }
spawn() { local i; for ((i = 0; i < @LINES@; i++)); do /bin/true; done }
nothing() { local i; for ((i = 0; i < @LINES@; i++)); do :; done }
lap() { local from=$EPOCHREALTIME; $2; local to=$EPOCHREALTIME; printf 'lap %s %d\n' $1 $(( (to - from) * 1000000 )) }
for round in 1 2 3 4 5; do
    line='ls -l src'; lap reads bench
    line='mkdir -p x && ls | head'; lap judged bench
    lap true spawn; lap none nothing
done
"""

FISH = r"""
'@PITON@' init fish | source
function bench; for i in (seq @LINES@); __piton_preexec $argv; __piton_postexec; end; end
function spawn; for i in (seq @LINES@); /bin/true; end; end
function nothing; for i in (seq @LINES@); end; end
function lap; set -l from (date +%s%N); $argv[2..-1]; set -l to (date +%s%N); echo lap $argv[1] (math "($to - $from) / 1000"); end
for round in 1 2 3 4 5
    lap reads bench 'ls -l src'
    lap judged bench 'mkdir -p x && ls | head'
    lap true spawn; lap none nothing
end
"""


def main():
    piton, lines = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    print(f"{lines} lines, milliseconds each   answered in the shell   judged by piton   true   judged - true")
    for shell, text in (("bash", BASH), ("zsh", ZSH), ("fish", FISH)):
        with tempfile.TemporaryDirectory() as home:
            text = text.replace("@PITON@", piton).replace("@LINES@", str(lines))
            env = {"HOME": home, "PITON_HOME": f"{home}/piton", "PATH": os.environ["PATH"], "TERM": "dumb"}
            no_files = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
            done = subprocess.run([shell, *no_files, "-i", "-c", text], env=env, cwd=home, capture_output=True, text=True)
            best = {}
            for line in done.stdout.splitlines():
                if line.startswith("lap "):
                    _, name, time = line.split()
                    best[name] = min(best.get(name, 1e18), float(time) / lines / 1000)
            if len(best) != 4:
                sys.exit(f"{shell} did not run: {done.stderr}")
            # The loop's own cost is no line's.
            reads, judged, true = (best[name] - best["none"] for name in ("reads", "judged", "true"))
            print(f"{shell:27} {reads:24.3f} {judged:17.3f} {true:6.3f} {judged - true:15.3f}")


if __name__ == "__main__":
    main()
