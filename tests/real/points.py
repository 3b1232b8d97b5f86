"""The points: each is tried with one client in one box. A point returns a note, or raises Failed or Skipped."""
import os, re, shlex, shutil, subprocess, time
from box import Failed, Skipped, holds
from model.server import together

# A command whose effect files do not undo, and words of piton's warning.
EFFECT, WARNING = "psql -c 'delete from users'", ("piton: ", "might change a database")


class Point:
    def __init__(self, name, run, title=None, needs_etc=False):
        self.name, self.run, self.title, self.needs_etc = name, run, title or name, needs_etc


def undo(box):
    """A destructive command of the client is preceded by a checkpoint, and `piton undo` brings the files back."""
    box.install()
    process = box.ask(box.client.destroy)
    holds(not box.has("out"), f"the client did not remove `out`: {box.said(process)}")
    kinds = [item["kind"] for item in box.document("list")["checkpoints"]]
    holds("auto" in kinds, f"no checkpoint of the turn, only {kinds}")
    box.piton("undo", "--yes")
    with open(os.path.join(box.work, "out/sub/b")) as file:
        holds(file.read() == "another\n", "`out/sub/b` came back with another content")


def warned(box):
    """The warning of an effect that files do not undo reaches the model."""
    box.install()
    box.write("../bin/psql", "#!/bin/sh\n", executable=True)
    process = box.ask(EFFECT, "true")
    where = box.model.find(*WARNING)
    if not where and box.client.resumes:
        process = box.ask("true", resume=True)
        where = box.model.find(*WARNING)
        holds(where, f"no request of two turns has the warning: {box.said(process)}")
        return f"in the next turn: {where}"
    holds(where, f"no request has the warning: {box.said(process)}")
    return where


def tree(box):
    """The list of runs has the client, the client's own name of the run, and the run above where there are sub-agents."""
    box.install()
    steps = [box.client.destroy]
    if box.client.agent("") is not None:
        # An agent that does not wait for its sub-agents would end before them.
        steps += ["agent: touch made", "for n in $(seq 100); do [ -e made ] && break; sleep 0.1; done"]
    process = box.ask(*steps)
    runs = box.runs()
    holds(runs, f"no run: {box.said(process)}")
    _, text = box.piton("runs", "--tree")
    for run in runs:
        holds(run["client"] == box.client.name, f"a run of the client {run['client']}: {text}")
        holds(run["named"] or run["run"].startswith(f"{box.client.name}."), f"the run {run['run']} has no name of the client's")
    if len(steps) == 1:
        return "without a sub-agent"
    holds(box.has("made"), f"the sub-agent did nothing: {box.said(process)}")
    below = [run for run in runs if run["parent"]]
    if box.client.tells_parent:
        holds(below and below[0]["parent"] in [run["run"] for run in runs], f"no run stands below another: {text}")
        return f"{below[0]['run']} below its agent's"
    return f"{len(runs)} runs; the client does not tell which is above"


def turns(box):
    """Two prompts are two turns, the work of sub-agents included: each `piton undo` takes one of them back."""
    box.install()
    steps = ["touch one"]
    if box.client.agent("") is not None:
        steps += ["agent: touch made; rm -r out/sub", "for n in $(seq 100); do [ -e made ] && break; sleep 0.1; done"]
    box.ask(*steps)
    process = box.ask(box.client.destroy, "touch two", resume=box.client.resumes)
    holds(not box.has("out") and box.has("two"), f"the client did not work: {box.said(process)}")
    told = box.document("turns")["turns"]
    holds(len(told) == 2, f"{len(told)} turns: {told}")
    box.piton("undo", "--yes")
    holds(box.has("out/a") and box.has("one") and not box.has("two"), "the second prompt is not taken back, or more is")
    box.piton("undo", "--yes")
    holds(box.has("out/sub/b") and not box.has("one") and not box.has("made"), "the first prompt is not taken back as a whole")
    return "with a sub-agent" if len(steps) > 1 else "without a sub-agent"


def killed(box):
    """After `kill -9` of the client in the middle of a call, its run is open no more."""
    box.install()
    process = box.start([box.client.destroy, box.gate("kill")])
    box.reach(process, "kill")
    status = [run["status"] for run in box.runs()]
    holds(status == ["open"], f"the run was {status} before the kill")
    box.kill(process)
    status = [run["status"] for run in box.runs()]
    holds(status and "open" not in status, f"the run is {status} after the kill")
    return status[0]


def moved(box):
    """The client works on where piton's program is gone."""
    box.install()
    os.rename(box.piton_path, box.at("bin/moved"))
    process = box.ask("touch made")
    holds(box.has("made"), f"the tool was not called: {box.said(process)}")
    holds(box.model.finished(), f"the model was not asked to the end: {box.said(process)}")
    holds(process.returncode == 0, f"the client ended with {process.returncode}: {box.said(process)}")


def silenced(box, change):
    """Something ends the guard while the client works: `status` and `doctor` say so within the same turn."""
    box.install()
    process = box.start([box.client.destroy, box.gate("one"), "touch made", box.gate("two")])
    box.reach(process, "one")
    before = box.document("status")["protection"]["state"]
    holds(before == "protected", f"before, the workspace was {before}")
    code, text = box.piton("doctor", codes=None)
    holds(code == 0, f"before, doctor ended with {code}: {text.strip()[-300:]}")
    change(box)
    box.open("one")
    box.reach(process, "two")
    protection = box.document("status", codes=None)["protection"]
    holds(protection["state"] in ("not-guarded", "cannot-tell"), f"status says {protection['state']}")
    code, text = box.piton("doctor", codes=None)
    holds(code == 1, f"doctor ended with {code}: {text.strip()[-300:]}")
    box.open("two")
    box.wait(process)
    said = [item["text"] for item in protection["silent"] + protection["reasons"]]
    holds(said, "status gives no reason")
    return said[0]


def switched(box, change):
    """As `silenced`; and what piton says is true: the client's next session runs no hook."""
    said = silenced(box, change)
    count = len(box.document("list")["checkpoints"])
    box.product()
    process = box.ask(box.client.destroy)
    holds(not box.has("out"), f"the client did not remove `out`: {box.said(process)}")
    holds(len(box.document("list")["checkpoints"]) == count, f"piton says: {said}. But the hooks run")
    return said


def silent(box):
    """A second session, started so that it runs no hooks: `status` and `doctor` say that it works without events."""
    if not box.client.without_hooks:
        raise Skipped("no argument of the client leaves hooks out")
    box.install()
    box.ask("true")
    # An act right behind the last event is taken for the one that it tells of.
    time.sleep(6)
    process = box.start(["touch made", box.client.destroy, box.gate("silent")], more=box.client.without_hooks)
    box.reach(process, "silent")
    end = time.monotonic() + 40
    while True:
        protection = box.document("status", codes=None)["protection"]
        if protection["silent"] or time.monotonic() > end:
            break
        time.sleep(1)
    holds(protection["silent"], f"status says {protection['state']}, and nothing of the silence")
    code, text = box.piton("doctor", codes=None)
    holds(code == 1, f"doctor ended with {code}: {text.strip()[-300:]}")
    return protection["silent"][0]["text"]


def text(box, path):
    """Returns the content of a file of the workspace; None where there is no such file."""
    try:
        with open(os.path.join(box.work, path)) as file:
            return file.read()
    except FileNotFoundError:
        return None


def put(box, path, content):
    """Writes a file of the workspace, as a person does."""
    with open(os.path.join(box.work, path), "w") as file:
        file.write(content)


def undone(box):
    """Runs `piton undo --yes`; it may leave what is not surely the turn's. Returns its output."""
    return box.piton("undo", "--yes", codes=(0, 4))[1]


def parallel(box):
    """Two calls of one answer: `piton undo` brings back what both of them removed."""
    box.install()
    process = box.ask(together("sleep 1.5; rm -r out/sub", "rm out/a"), "touch made")
    holds(box.has("made") and not box.has("out/a") and not box.has("out/sub"), f"the client did not work: {box.said(process)}")
    said = undone(box)
    holds(text(box, "out/a") == "product\n" and text(box, "out/sub/b") == "another\n", f"not all is back: {said.strip()[-300:]}")
    holds(not box.has("made"), "`made` is still there")


def committing(box):
    """A script edits, deletes and commits: `piton undo` brings the deleted file back, and names the way to the edited one."""
    box.install()
    put(box, "other", "other\n")
    box.shell("git add other && git commit -qm other")
    box.write("work.py", "import os, subprocess\nos.remove('other')\nopen('tracked', 'w').write('two\\n')\n"
              "subprocess.run(['git', 'commit', '-qam', 'by the agent'])\n")
    process = box.ask(f"python3 {box.home}/work.py")
    holds(text(box, "tracked") == "two\n" and not box.has("other"), f"the client did not work: {box.said(process)}")
    said = undone(box)
    holds(text(box, "other") == "other\n", f"`other` is not back: {said.strip()[-300:]}")
    if text(box, "tracked") == "one\n":
        return "at once"
    named = re.search(r"piton (undo [^`\n]*--include [\w,-]+)", said)
    holds(named, f"nothing leads to `tracked`: {said.strip()[-300:]}")
    box.piton(*shlex.split(named[1]), "--yes", codes=(0, 4))
    holds(text(box, "tracked") == "one\n", f"`{named[0]}` does not bring `tracked` back")
    return f"by `{named[0]}`"


def edited(box):
    """A person edits while a command runs and between two calls: `piton undo` takes back the agent's work alone."""
    box.install()
    process = box.start(["rm -r out/sub", box.gate("runs"), "wait: thinks", "touch made"])
    box.reach(process, "runs")
    put(box, "tracked", "by the person\n")
    time.sleep(0.2)
    box.open("runs")
    box.reach(process, "thinks")
    time.sleep(0.2)
    put(box, "notes", "by the person\n")
    time.sleep(0.2)
    box.open("thinks")
    box.wait(process)
    holds(box.has("made") and not box.has("out/sub"), f"the client did not work: {box.said(process)}")
    said = undone(box)
    holds(text(box, "tracked") == "by the person\n", f"`tracked` is {text(box, 'tracked')!r}: {said.strip()[-300:]}")
    holds(text(box, "notes") == "by the person\n", f"`notes` is {text(box, 'notes')!r}: {said.strip()[-300:]}")
    holds(text(box, "out/sub/b") == "another\n" and not box.has("made"), f"the agent's work is not taken back: {said.strip()[-300:]}")


def denied(box):
    """The client denies a call after the hook: what a person does afterwards in the same turn is not undone."""
    if box.client.denying(box, "") is None:
        raise Skipped("no argument of the client denies calls after its hook")
    box.install()
    process = box.start([box.client.destroy, "wait: denied"], denying=True)
    box.reach(process, "denied")
    holds(box.has("out/a"), "the call was not denied")
    time.sleep(0.2)
    put(box, "tracked", "by the person\n")
    time.sleep(0.2)
    box.open("denied")
    box.wait(process)
    code, said = box.piton("undo", "--yes", codes=(0, 3, 4))
    holds(text(box, "tracked") == "by the person\n", f"the person's work is gone: {said.strip()[-300:]}")
    return f"undo ends with {code}"


def worktree(box):
    """A sub-agent in a worktree of its own belongs to its prompt's turn: one `piton undo` takes all of it back."""
    if box.client.isolated("") is None:
        raise Skipped("the client has no sub-agents in worktrees")
    box.install()
    process = box.ask(f"isolated: rm tracked; touch made; touch {box.gates}/worked", box.client.destroy)
    holds(os.path.exists(os.path.join(box.gates, "worked")) and not box.has("out"), f"the client did not work: {box.said(process)}")
    holds(box.has("tracked") and not box.has("made"), "the sub-agent worked in no worktree")
    listed = subprocess.run(["git", "worktree", "list", "--porcelain"], cwd=box.work, env=box.env, stdout=subprocess.PIPE, text=True).stdout
    trees = [line.split(" ", 1)[1] for line in listed.splitlines() if line.startswith("worktree ")][1:]
    holds(trees, "the worktree is gone")
    told = box.document("turns")["turns"]
    holds(len(told) == 1, f"{len(told)} turns: {told}")
    said = undone(box)
    holds(text(box, "out/sub/b") == "another\n", f"`out` is not back: {said.strip()[-300:]}")
    holds(os.path.exists(os.path.join(trees[0], "tracked")) and not os.path.exists(os.path.join(trees[0], "made")), f"the worktree is not as before: {said.strip()[-300:]}")
    code, said = box.piton("undo", "--preview", codes=None)
    holds(code == 3, f"something of the prompt is left to undo: {said.strip()[-300:]}")


def first_process(box):
    """The client is process 1 of a container. After it was killed its run is open no more, and `piton undo` works."""
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("this user cannot make a namespace of processes")
    box.install()
    process = box.start([box.client.destroy, box.gate("kill")], first=words)
    box.reach(process, "kill")
    box.kill(process)
    status = [run["status"] for run in box.runs()]
    holds(status and "open" not in status, f"the run is {status} after the kill")
    said = undone(box)
    holds(text(box, "out/sub/b") == "another\n", f"`out` is not back: {said.strip()[-300:]}")
    return status[0]


def typed(box):
    """A line of the person that begins with `!` runs in the client, but is no work of the agent's."""
    if box.client.terminal(box, "") is None:
        raise Skipped("the client has no such lines, or no way to type them is known")
    box.install()
    process = box.start_in_terminal("rm -r out/sub")
    box.until(lambda: not box.has("out/sub"), "the agent's work")
    ended = lambda: [turn for turn in box.document("turns", codes=(0, 3)).get("turns", []) if not turn["open"]]
    box.until(ended, "the end of the turn")
    agents = ended()[0]["operation"]
    for line in ("echo by the person > tracked", "git commit -qam typed; touch typed"):
        for part in ("!", line, "\r"):
            process.type(part)
            time.sleep(1)  # the client takes what comes at once for a pasted text
        box.until(lambda: text(box, "tracked") != "one\n", f"the line {line}")
    box.until(lambda: box.has("typed"), "the second line")
    # The lines are turns of the person, and newer.
    said = box.piton("undo", "--turn", agents, "--yes", codes=(0, 4))[1]
    holds(text(box, "out/sub/b") == "another\n", f"`out/sub` is not back: {said.strip()[-300:]}")
    holds(text(box, "tracked") == "by the person\n" and box.has("typed"), f"the person's work is gone: {said.strip()[-300:]}")


def two(box):
    """Two clients in one checkout: each one's turn is undone by itself."""
    box.install()
    one = box.start(["rm -r out/sub", "wait: one"])
    box.reach(one, "one")
    other = box.start(["touch made", "rm out/a", "wait: other"])
    box.reach(other, "other")
    box.open("one")
    box.wait(one)
    box.open("other")
    box.wait(other)
    holds(box.has("made") and not box.has("out/a") and not box.has("out/sub"), f"the clients did not work: {box.said(one)} / {box.said(other)}")
    told = box.document("turns")["turns"]
    holds(len(told) == 2 and len({turn["run"] for turn in told}) == 2, f"not a turn of each: {told}")
    owners = {turn["run"]: box.piton("diff", "--turn", turn["operation"], "--json")[1] for turn in told}
    run = next((run for run, changed in owners.items() if "out/sub" in changed), None)
    holds(run, "no turn has `out/sub`")
    said = box.piton("undo", "--run", run, "--yes", codes=(0, 4))[1]
    holds(text(box, "out/sub/b") == "another\n", f"`out/sub` is not back: {said.strip()[-300:]}")
    holds(box.has("made") and not box.has("out/a"), "the other client's turn was undone too")
    said = undone(box)
    holds(text(box, "out/a") == "product\n" and not box.has("made"), f"the other turn is not undone: {said.strip()[-300:]}")


def frozen(box):
    """The store is made immutable."""
    def change(box):
        box.freeze()
        try:
            open(os.path.join(box.store, "probe"), "w").close()
        except PermissionError:
            return
        raise Skipped("this file system or user cannot make files immutable")
    return silenced(box, change)


ALL = [Point("undo", undo), Point("warned", warned), Point("tree", tree), Point("turns", turns), Point("killed", killed), Point("moved", moved),
       Point("parallel", parallel), Point("committing", committing), Point("edited", edited), Point("denied", denied), Point("worktree", worktree),
       Point("first-process", first_process), Point("typed", typed), Point("two", two),
       Point("removed", lambda box: switched(box, lambda box: box.strip())), Point("frozen", frozen), Point("silent", silent), Point("switched", None)]


def of(client):
    """Returns the points of a client; `switched` once for each switch that turns its hooks off."""
    points = [point for point in ALL if point.run]
    for title, change in client.switches:
        points.append(Point("switched", lambda box, change=change: switched(box, change), f"switched: {title}", True))
    return points
