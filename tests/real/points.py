"""The points: each is tried with one client in one box. A point returns a note, or raises Failed or Skipped."""
import os, time
from box import Failed, Skipped, holds

# A command whose effect files do not undo, and words of piton's warning.
EFFECT, WARNING = "psql -c 'delete from users'", ("piton: ", "may change a database")


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
       Point("removed", lambda box: switched(box, lambda box: box.strip())), Point("frozen", frozen), Point("silent", silent), Point("switched", None)]


def of(client):
    """Returns the points of a client; `switched` once for each switch that turns its hooks off."""
    points = [point for point in ALL if point.run]
    for title, change in client.switches:
        points.append(Point("switched", lambda box, change=change: switched(box, change), f"switched: {title}", True))
    return points
