#!/usr/bin/env python3
"""Real projects wrecked by an agent, and undone.

usage: wrecks.py [--piton PITON] [--dir DIR] [--projects DIR] [--project NAME]… [--wreck NAME]… [--report FILE] [--keep]

A crate, an npm package, a Python sdist, a Debian source and a git repository with a submodule, each with uncommitted work, an
ignored file, an untracked file and an empty directory. An agent (hooks of Claude Code) works for one turn, and wrecks the project in
the next one. Then `piton undo --yes` runs once; `exact` means that every file has the content and mode that it had before the turn,
and that git works. What is not exact is tried further: first the commands that the output names, then `piton undo --yes` again.
--projects keeps the fetched projects for the next run; cargo, npm, pip and apt-get fetch them. Ends with 1 if undo alone was not
exact everywhere.
"""
import argparse, glob, os, re, shlex, subprocess, sys
sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from world import Client, Home, tree, wipe

# Each with the directory that is wrecked, the ending of its files, and the command that fetches it into the current directory.
PROJECTS = {
    "crate": ("src", "rs", "mkdir -p src && touch src/lib.rs && printf '[package]\\nname = \"v\"\\nedition = \"2021\"\\n[dependencies]\\nmemchr = \"2\"\\n' > Cargo.toml"
              " && cargo vendor --versioned-dirs out >/dev/null && mv out/memchr-* project"),
    "npm": ("lib", "js", "npm pack express --silent >/dev/null && tar xf express-*.tgz && mv package project"),
    "sdist": ("src/requests", "py", "pip download -q --no-deps --no-binary :all: requests && tar xf requests-*.tar.gz && rm requests-*.tar.gz && mv requests-* project"),
    "debian": ("lib", "c", "mkdir -p parts lists/partial && for f in /etc/apt/sources.list.d/*.sources; do sed 's/^Types: deb$/Types: deb-src/' $f > parts/${f##*/}; done"
               " && apt='apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts='$PWD'/parts -o Dir::State::Lists='$PWD'/lists'"
               " && $apt update && $apt source bc && rm -f bc_* && mv bc-* project"),
    "submodule": ("src", "txt", "mkdir part && cd part && git init -q && echo part > part.txt && mkdir in && echo in > in/in.txt && git add -A && git commit -qm part"
                  " && cd .. && mkdir project && cd project && git init -q && mkdir -p src/deep && for n in 1 2 3 4 5 6; do echo text $n > src/$n.txt; echo deep $n > src/deep/$n.txt; done"
                  " && git add -A && git commit -qm one && git -c protocol.file.allow=always submodule -q add ../part src/part && git commit -qm two"),
}

PYTHON = """
import os, sys
for directory, names, files in os.walk("."):
    names[:] = [name for name in names if name != ".git"]
    for number, name in enumerate(sorted(files)):
        path = os.path.join(directory, name)
        if number % 3 == 0 and not os.path.islink(path):
            os.remove(path)
        elif number % 3 == 1 and not os.path.islink(path):
            open(path, "a").write("rewritten\\n")
"""

# SRC is the project's directory of sources, EXT the ending of its files, TOOLS a directory outside.
WRECKS = {
    "rm": "rm -rf SRC",
    "find": "find . -name '*.EXT' -delete",
    "clean": "git clean -fdx",
    "reset": "git reset --hard",
    "checkout": "git checkout .",
    "sed": "find SRC -name '*.EXT' -exec sed -i 's/e/E/g' {} +",
    "mv": "mv -f draft.txt edited.txt && for f in SRC/*.EXT; do mv -f \"$f\" SRC/one; done",
    "truncate": "for f in SRC/*.EXT; do : > \"$f\"; done; truncate -s 0 edited.txt",
    "tar": "tar xf TOOLS/older.tar",
    "python": "python3 TOOLS/rewrite.py",
    "root": "cd .. && rm -rf project",
    "chmod": "chmod -R 700 SRC && chmod 644 script.sh",
}


def fetch(name, cache):
    """Fetches a project once. Returns its directory."""
    where = os.path.join(cache, name)
    if not os.path.isdir(os.path.join(where, "project")):
        wipe(where)
        os.makedirs(where)
        env = {**os.environ, "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org"}
        subprocess.run(["bash", "-ec", PROJECTS[name][2]], cwd=where, env=env, check=True)
    return os.path.join(where, "project")


def prepare(home, source, src, ext):
    """Makes the project with its repository and its uncommitted work. Returns its directory and that of tools outside."""
    work, tools = os.path.join(home.dir, "code/project"), os.path.join(home.dir, "tools")
    os.makedirs(os.path.dirname(work))
    os.makedirs(tools)
    subprocess.run(["cp", "-a", "--no-preserve=ownership", source, work], check=True)
    if os.path.isdir(os.path.join(source, "../part")):
        subprocess.run(["cp", "-a", os.path.join(source, "../part"), os.path.dirname(work)], check=True)
    line = ("[ -d .git ] || git init -q; printf 'one\\n' > edited.txt; printf '#!/bin/sh\\n' > script.sh; chmod 755 script.sh; printf '*.log\\n' >> .gitignore;"
            " git add -A && git commit -qm base;"
            f" tar cf {tools}/older.tar edited.txt {src} --exclude=.git; printf 'two\\n' >> edited.txt;"
            f" for f in $(ls {src}/*.{ext} | head -2); do printf 'uncommitted\\n' >> $f; done;"
            f" printf 'draft\\n' > draft.txt; printf 'log\\n' > run.log; printf 'key\\n' > {src}/private.{ext}; chmod 600 {src}/private.{ext}; mkdir -p {src}/empty; ln -sf edited.txt {src}/link")
    code, text = home.shell(line, work)
    if code:
        raise SystemExit(f"cannot prepare: {text}")
    with open(os.path.join(tools, "rewrite.py"), "w") as file:
        file.write(PYTHON)
    return work, tools


def differences(one, two):
    changed = [path for path in sorted(set(one) | set(two)) if one.get(path) != two.get(path)]
    word = lambda path: "missing" if path not in two else "extra" if path not in one else "mode" if one[path][0] == two[path][0] else "content"
    return [f"{path} ({word(path)})" for path in changed]


def named(text):
    """Returns the commands of piton's that a text names."""
    found = []
    for match in re.findall(r"piton ((?:undo|restore|recover|git-undo)\b[^`\n|;)”]*)", text):
        match = re.split(r"\s{2,}|[,:.] |[.,:]$| (?:brings|takes|to bring|undoes|restores|to undo|to restore|shows)\b", match)[0].strip()
        if match not in found + ["undo", "undo --yes"] and not re.search(r"<|\.\.\.|…|\b(?:DIR|FILE|N|PATH)\b", match):
            found.append(match)
    return found


def attempt(piton, scratch, source, project, wreck, keep):
    """Wrecks a project in a home of its own. Returns how it came back, and what undo alone left."""
    src, ext, _ = PROJECTS[project]
    home = Home(piton, os.path.join(scratch, f"{project}-{wreck}"))
    try:
        work, tools = prepare(home, source, src, ext)
        line = WRECKS[wreck].replace("SRC", src).replace("EXT", ext).replace("TOOLS", tools)
        client, session = Client(home, work), {"session_id": "s"}
        client.hook("claude-code", "SessionStart", work, source="startup", **session)
        picture = None
        for turn, command in (("t1", "printf 'accepted\\n' > accepted.txt"), ("t2", line)):
            if turn == "t2":
                picture, status = tree(work, modes=True), home.shell("git status --short", work)
            fields = {**session, "prompt_id": turn}
            client.hook("claude-code", "UserPromptSubmit", work, prompt="do it", **fields)
            tool = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": turn}
            client.hook("claude-code", "PreToolUse", work, **fields, **tool)
            client.shell(command, work)
            client.hook("claude-code", "PostToolUse", work, tool_response={"stdout": ""}, **fields, **tool)
            client.hook("claude-code", "Stop", work, stop_hook_active=False, **fields)
        if not differences(picture, tree(work, modes=True)):
            return "harmless", "the wreck changed nothing"

        def left():
            found = differences(picture, tree(work, modes=True) if os.path.isdir(work) else {})
            return found or ([] if home.shell("git status --short", work) == status else ["git status"])

        def undo(*words):
            code, out, err = home.piton(*words, cwd=work if os.path.isdir(work) else os.path.dirname(work))
            return f"[piton {' '.join(words)}: {code}]\n{out}{err}"

        text = undo("undo", "--yes")
        alone = left()
        if not alone:
            return "exact", ""
        note = f"{len(alone)} paths: {', '.join(alone[:4])}; undo said: {' | '.join(text.strip().splitlines())[:500]}"
        for command in named(text)[:6]:
            undo(*shlex.split(command), "--yes")
            if not left():
                return "named", f"{note}; exact after `piton {command}`"
        return "failed", f"{note}; after the named commands: {', '.join(left()[:4])}"
    finally:
        home.end(keep)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--piton", default=os.environ.get("PITON_BIN") or os.path.join(HERE, "../../target/debug/piton"))
    parser.add_argument("--dir", default=os.path.join(HERE, "../../target/tmp"))
    parser.add_argument("--projects")
    parser.add_argument("--project", action="append", choices=list(PROJECTS))
    parser.add_argument("--wreck", action="append", choices=list(WRECKS))
    parser.add_argument("--report")
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    scratch = os.path.realpath(os.path.join(asked.dir, f"wrecks-{os.getpid()}"))
    counts, lines = {}, []
    for project in asked.project or PROJECTS:
        source = fetch(project, os.path.realpath(asked.projects or os.path.join(asked.dir, "projects")))
        for wreck in asked.wreck or WRECKS:
            word, note = attempt(asked.piton, scratch, source, project, wreck, asked.keep)
            counts[word] = counts.get(word, 0) + 1
            lines.append(f"{word:8} {project:10} {wreck:9} {note}")
            print(lines[-1], flush=True)
    total = sum(counts.values()) - counts.get("harmless", 0)
    lines.append(f"undo alone exact in {counts.get('exact', 0)} of {total}; with the commands that it named in {counts.get('exact', 0) + counts.get('named', 0)}")
    print(lines[-1])
    if asked.report:
        with open(asked.report, "w") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if counts.get("exact", 0) < total else 0


if __name__ == "__main__":
    sys.exit(main())
