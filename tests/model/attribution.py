#!/usr/bin/env python3
"""A model test of attribution: whose change it was, known from the contents, against what undo does.

usage: attribution.py [--piton PITON] [--dir DIR] [--count 1000] [--seeds 20] [--seed N [--only N]] [--judge KINDS] [--report FILE] [--alone] [--keep] [--verbose]

Each interleaving is a workspace of its own, in which one or two agents (hooks of Claude Code, or the line protocol) and a person act
in random order. Agents make exact, opaque, reading, denied and parallel calls, and run scripts that commit; the person edits, deletes
and commits in a second terminal; sidecars and clients are killed. Each content names its author and action, so that the truth is known
without piton. At the end every turn is undone by `undo --yes`, redone, and undone again. A violation is one of

  took       undo replaced or deleted a path that no action of the turn named and no git command of the turn wrote
  unlisted   a content that a turn destroyed is neither in `turns`, nor in `diff --turn`, nor in the output of undo
  redo       redo did not lead back to the tree before the undo
  stuck      undo stopped twice at the same operation, without doing anything
  again      the second undo led to another tree than the first
  failed     a command of piton's failed

and, over all interleavings without a person's edit, `unrestored`: more than 2 % of the deleted contents are still gone after undo, or
of all destroyed contents after the command that undo's output names. DIR must not be a directory of temporary files. Ends with 1 if
there are violations. `--seed N --only I` repeats one interleaving.
"""
import argparse, collections, json, os, random, re, shlex, sys, time
sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from world import Client, Home, tree, wipe

FILES = ["a.txt", "b.txt", "c.txt", "src/d.txt", "src/e.txt", "src/deep/f.txt", "lib/g.txt", "lib/h.txt", "notes/i.txt"]
UNTRACKED, IGNORED = ["draft.txt", "src/new.txt"], ["run.log"]
# Does what a plan says; piton cannot read it from the command line.
SCRIPT = """
import json, os, shutil, subprocess, sys
for op in json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv[1] + ".json"))):
    kind, rest = op[0], op[1:]
    if kind == "write":
        os.makedirs(os.path.dirname(rest[0]) or ".", exist_ok=True)
        open(rest[0], "w").write(rest[1])
    elif kind == "delete":
        os.path.exists(rest[0]) and os.remove(rest[0])
    elif kind == "rmtree":
        shutil.rmtree(rest[0], ignore_errors=True)
    elif kind == "rename":
        os.path.exists(rest[0]) and os.replace(rest[0], rest[1])
    else:
        subprocess.run(["git", *rest], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""
Event = collections.namedtuple("Event", "author turn call path old new git")
ABSENT = object()


class Call:
    """One call of a tool: what is announced, and what really runs, piece by piece."""

    def __init__(self, number, label, command=None, tool=None, path=None, named=(), pieces=()):
        self.number, self.label, self.command, self.tool, self.path = number, label, command, tool, path
        self.named, self.pieces = set(named), list(pieces)
        self.at = None  # the tree when piton answered to the announcement


class Turn:
    def __init__(self, agent, name):
        self.agent, self.name, self.calls, self.ended = agent, name, [], False


class Agent:
    """An agent with its client's process: by hooks of Claude Code, or by the line protocol."""

    def __init__(self, session, name, by_hooks):
        self.session, self.name, self.by_hooks, self.gone, self.deaf = session, name, by_hooks, False, False
        self.client = Client(session.home, session.work)
        self.id = f"{session.name}-{name}"
        self.turn = None
        self.steps = self.live()

    def open(self):
        if self.by_hooks:
            self.hook("SessionStart", source="startup")
        else:
            self.client.sidecar(type="hello", client=f"agent-{self.name}", pid=1, workspace=self.session.work, session=self.id)

    def hook(self, event, **fields):
        return self.client.hook("claude-code", event, self.session.work, session_id=self.id, permission_mode="default",
                                transcript_path=os.path.join(self.session.home.root, f"{self.id}.jsonl"), **fields)

    def say(self, **request):
        """Speaks the protocol, unless the sidecar is gone and the client works on without it."""
        return {} if self.deaf else self.client.sidecar(**request)

    def begin(self):
        self.turn = Turn(self, f"{self.id}-t{len(self.session.turns)}")
        self.session.turns.append(self.turn)
        self.session.say(f"{self.name}: prompt {self.turn.name}")
        if self.by_hooks:
            self.hook("UserPromptSubmit", prompt="do it", prompt_id=self.turn.name)
        else:
            self.say(type="turn.start", turn=self.turn.name)

    def payload(self, call):
        if call.tool:
            return {"tool_name": call.tool, "tool_input": {"file_path": os.path.join(self.session.work, call.path), "content": "…", "old_string": "a", "new_string": "b"}}
        return {"tool_name": "Bash", "tool_input": {"command": call.command, "description": "…"}}

    def before(self, call):
        self.turn.calls.append(call)
        self.session.say(f"{self.name}: before {call.number} {call.label}: {call.command or call.tool + ' ' + call.path}")
        if self.by_hooks:
            self.hook("PreToolUse", tool_use_id=f"u{call.number}", prompt_id=self.turn.name, **self.payload(call))
        elif call.tool:
            self.say(type="tool.before", tool=call.tool, action=str(call.number), cwd=self.session.work, input=self.payload(call)["tool_input"])
        else:
            self.say(type="shell.before", command=call.command, action=str(call.number), cwd=self.session.work)
        if not self.deaf:
            call.at = dict(self.session.seen)

    def run(self, call, piece):
        line, by_git = piece
        self.session.say(f"{self.name}: run {call.number}: {self.session.short(line)}")
        self.client.shell(line, self.session.work)
        self.session.observe(self.name, self.turn, call, by_git)

    def after(self, call):
        self.session.say(f"{self.name}: after {call.number}")
        if self.by_hooks:
            self.hook("PostToolUse", tool_use_id=f"u{call.number}", prompt_id=self.turn.name, tool_response={"stdout": ""}, **self.payload(call))
        else:
            self.say(type="tool.after" if call.tool else "shell.after", action=str(call.number), **({"ok": True} if call.tool else {"exit": 0}))

    def end_turn(self):
        self.session.say(f"{self.name}: turn ends")
        self.turn.ended = True
        if self.by_hooks:
            self.hook("Stop", stop_hook_active=False, prompt_id=self.turn.name)
        else:
            self.say(type="turn.end", turn=self.turn.name)

    def crash(self):
        """Kills the client, or the sidecar alone; a client whose sidecar is gone says hello again, or works on without."""
        dice = self.session.dice
        if self.by_hooks or dice.random() < 0.5:
            self.session.say(f"{self.name}: the client is killed")
            self.client.kill()
            self.gone = True
            return
        self.session.say(f"{self.name}: the sidecar is killed")
        self.client.kill_sidecar()
        self.deaf = dice.random() < 0.5
        if not self.deaf:
            self.open()
            self.session.say(f"{self.name}: a new sidecar")

    def live(self):
        """Acts one step at a time: a generator, so that others can act in between."""
        dice, session = self.session.dice, self.session
        for _ in range(dice.randint(1, 2)):
            self.begin()
            yield
            for _ in range(dice.randint(1, 3)):
                calls = [session.call(self)]
                if dice.random() < 0.3:
                    calls.append(session.call(self))
                denied = [call for call in calls if dice.random() < 0.15]
                for call in calls:
                    self.before(call)
                    yield
                if session.crashes and dice.random() < 0.3:
                    session.crashes -= 1
                    self.crash()
                    if self.gone:
                        return
                    yield
                running = [call for call in calls if call not in denied]
                order = [call for call in running for _ in call.pieces]
                if len(running) > 1:
                    dice.shuffle(order)
                left = {call.number: list(call.pieces) for call in running}
                done = []
                for call in order:
                    self.run(call, left[call.number].pop(0))
                    yield
                    if not left[call.number]:
                        self.after(call)
                        done.append(call)
                        yield
                for call in denied:
                    session.say(f"{self.name}: {call.number} was denied")
            self.end_turn()
            yield


class Session:
    """One interleaving: a workspace with its actors, and the record of what really happened."""

    def __init__(self, home, seed, index, verbose):
        self.home, self.dice, self.verbose = home, random.Random(seed * 100003 + index), verbose
        self.name = f"s{seed}-{index}"
        self.dir = os.path.join(home.dir, self.name)
        self.work, self.plans = os.path.join(self.dir, "work"), os.path.join(home.dir, f"plans-{self.name}")
        self.log, self.events, self.turns, self.count, self.violations = [], [], [], 0, []
        self.person = self.dice.random() < 0.6
        self.crashes = 1 if self.dice.random() < 0.2 else 0
        self.commits = self.dice.random() < 0.5
        self.took_person = 0
        self.prepare()

    # The record

    def say(self, text):
        self.log.append(text)
        if self.verbose:
            print("   ", text, flush=True)

    def short(self, line):
        found = re.search(r"do\.py (\d+)$", line)
        if not found:
            return line
        with open(os.path.join(self.plans, found[1] + ".json")) as file:
            return "; ".join(" ".join(op[:2] if op[0] == "write" else op) for op in json.load(file))

    def content(self, author, path):
        self.count += 1
        return f"author={author} write={self.count} path={path}\n"

    def observe(self, author, turn=None, call=None, by_git=False):
        """Charges what changed since the last look to the actor that has just acted."""
        now = tree(self.dir)
        for path in sorted(set(now) | set(self.seen)):
            old, new = self.seen.get(path, ABSENT), now.get(path, ABSENT)
            if old != new:
                self.events.append(Event(author, turn, call, path, old, new, by_git))
        self.seen = now

    # The actors

    def prepare(self):
        os.makedirs(self.work)
        os.makedirs(self.plans)
        with open(os.path.join(self.plans, "do.py"), "w") as file:
            file.write(SCRIPT)
        self.write(".gitignore", "*.log\n")
        for path in FILES:
            self.write(path, self.content("base", path))
        self.home.shell("git init -q -b main . && git add -A && git commit -qm one", self.work)
        for path in UNTRACKED + IGNORED:
            self.write(path, self.content("base", path))
        os.makedirs(os.path.join(self.dir, "beside"))
        with open(os.path.join(self.dir, "beside/todo.txt"), "w") as file:
            file.write(self.content("base", "beside/todo.txt"))
        if self.dice.random() < 0.5:
            self.home.piton("install", "git", "--yes", cwd=self.work)
            self.say("git asks piton in this repository")
        self.seen = tree(self.dir)
        self.agents = [Agent(self, "A", self.dice.random() < 0.5)]
        if self.dice.random() < 0.4:
            self.agents.append(Agent(self, "B", self.dice.random() < 0.5))
        for agent in self.agents:
            agent.open()
            self.say(f"{agent.name}: {'hooks' if agent.by_hooks else 'protocol'}")
        if self.dice.random() < 0.85:
            self.warm()

    def warm(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if self.home.document("status", cwd=self.work)[1].get("watcher") == "warm":
                return
            time.sleep(0.05)
        self.say("(not warm)")

    def write(self, path, content):
        path = os.path.join(self.work, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)

    def files(self):
        return [path[len("work/"):] for path, content in self.seen.items() if content is not None and path.startswith("work/") and not path.endswith(".gitignore")]

    def some(self):
        return self.dice.choice(self.files() or ["a.txt"])

    def fresh(self):
        self.count += 1
        return self.dice.choice(["", "src/", "lib/", "made/"]) + f"n{self.count}.txt"

    def act(self):
        """One act of the person, at a moment of their own."""
        time.sleep(0.02)
        kind, path = self.dice.choice(["edit", "edit", "edit", "create", "delete", "commit"]), self.some()
        if kind == "commit" and not self.commits:
            kind = "edit"
        if kind == "create":
            path = self.fresh()
        self.say(f"person: {kind} {'' if kind == 'commit' else path}")
        if kind == "commit":
            self.home.shell("git add -A && git commit -qm person --no-verify", self.work)
        elif kind == "delete":
            os.path.exists(os.path.join(self.work, path)) and os.remove(os.path.join(self.work, path))
        else:
            self.write(path, self.content("person", path))
        self.observe("person")
        time.sleep(0.02)

    def plan(self, ops):
        self.count += 1
        with open(os.path.join(self.plans, f"{self.count}.json"), "w") as file:
            json.dump(ops, file)
        return f"python3 {self.plans}/do.py {self.count}"

    def ops(self, agent):
        """What a script does to files that its command line does not name."""
        made = []
        for _ in range(self.dice.randint(1, 3)):
            kind, path = self.dice.choice(["write", "write", "delete", "delete", "create", "rename", "rmtree"]), self.some()
            if kind == "rename":
                made.append(["rename", path, path + ".old"])
            elif kind == "rmtree":
                made.append(["rmtree", self.dice.choice(["src", "lib", "src/deep", "made"])])
            elif kind == "create":
                path = self.fresh()
                made.append(["write", path, self.content(agent.name, path)])
            else:
                made.append([kind, path] + ([self.content(agent.name, path)] if kind == "write" else []))
        return made

    def call(self, agent):
        """A random call of an agent."""
        self.count += 1
        number, one, two = self.count, self.some(), self.some()
        text = lambda path: self.content(agent.name, path)
        kind = self.dice.choice(["write", "edit", "rm", "rm", "rmdir", "echo", "sed", "mv", "git", "outside", "script", "script", "script", "commit", "mixed", "read", "read"])
        exact = lambda line, *named: Call(number, "exact", line, named=named, pieces=[(line, False)])
        if kind in ("write", "edit"):
            path = one if kind == "edit" or self.dice.random() < 0.5 else self.fresh()
            line = f"mkdir -p {os.path.dirname(path) or '.'} && printf '%s' {shlex.quote(text(path))} > {path}"
            return Call(number, "tool", tool="Edit" if kind == "edit" else "Write", path=path, named=[path], pieces=[(line, False)])
        if kind == "rm":
            return exact(f"rm -f {one} {two}", one, two)
        if kind == "rmdir":
            where = self.dice.choice(["src", "lib", "src/deep"])
            return exact(f"rm -rf {where}", where)
        if kind == "echo":
            return exact(f"printf '%s\\n' {shlex.quote(text(one).strip())} > {one}", one)
        if kind == "sed":
            return exact(f"sed -i 's,.*,{text(one).strip()},' {one}", one)
        if kind == "mv":
            return exact(f"mv -f {one} {two}.moved", one, two + ".moved")
        if kind == "git":
            line = self.dice.choice([f"git checkout -- {one}", "git reset -q --hard", "git checkout -q -- .", "git clean -fdq", "git stash -q"])
            return Call(number, "git", line, named=[], pieces=[(line, True)])
        if kind == "outside":
            return exact(f"rm -f {self.dir}/beside/todo.txt", "../beside/todo.txt")
        if kind == "read":
            line = self.dice.choice(["ls -la", f"cat {one}", "git status", "sleep 0.1", "grep -r author ."])
            return Call(number, "reader", line, pieces=[(line, False)] * self.dice.randint(1, 2))
        if kind == "mixed":
            script = self.plan(self.ops(agent))
            return Call(number, "mixed", f"rm -f {one} && {script}", named=[one], pieces=[(f"rm -f {one}", False), (script, False)])
        pieces = [(self.plan(self.ops(agent)), False) for _ in range(self.dice.randint(1, 2))]
        if kind == "commit":
            pieces.append((self.plan([["git", "add", "-A"], ["git", "commit", "-qm", f"by {agent.name}"]]), False))
            if self.dice.random() < 0.3:
                pieces.append((self.plan(self.ops(agent)), False))
        return Call(number, kind, pieces[0][0], pieces=pieces)

    def play(self):
        live = list(self.agents)
        while live:
            if self.person and self.dice.random() < 0.25:
                self.act()
            agent = self.dice.choice(live)
            try:
                next(agent.steps)
            except StopIteration:
                live.remove(agent)
        if self.person and self.dice.random() < 0.3:
            self.act()
        if self.dice.random() < 0.5:
            for agent in self.agents:
                if not agent.gone:
                    agent.client.end()

    # The truth about a turn

    def allowed(self, turn, path):
        """Returns true if an action of the turn named the path, or a git command of the turn wrote it."""
        for call in turn.calls:
            for named in call.named:
                named = os.path.normpath(os.path.join("work", named))
                if path == named or path.startswith(named + "/") or named.startswith(path + "/"):
                    return True
        return any(event.turn is turn and event.git and event.path == path for event in self.events)

    def destroyed(self, turn, now):
        """Returns the contents that the turn destroyed and that are still gone: path to content. What appeared after the call was
        announced, and what no announced call destroyed, could not be saved."""
        own, lost = set(), {}
        for event in self.events:
            # Somebody has given the path its content back (`git checkout`): what comes then destroys that.
            if lost.get(event.path, ABSENT) == event.new:
                lost.pop(event.path, None)
            if event.turn is not turn:
                continue
            savable = event.call is not None and event.call.at is not None and event.call.at.get(event.path, ABSENT) == event.old
            if savable and event.old not in (ABSENT, None) and event.old not in own and not event.path.endswith(".gitignore"):
                lost.setdefault(event.path, event.old)
            if event.new not in (ABSENT, None):
                own.add(event.new)
        return {path: old for path, old in lost.items() if now.get(path, ABSENT) != old}

    def left_by(self, turn, path):
        """Returns the last state that the turn itself gave to a path."""
        states = [event.new for event in self.events if event.turn is turn and event.path == path]
        return states[-1] if states else None

    # The end

    def violate(self, kind, text):
        self.violations.append({"kind": kind, "text": text})
        self.say(f"VIOLATION {kind}: {text}")

    def listed(self):
        """Returns all that `turns` and `diff --turn` say."""
        _, turns, text = self.home.document("turns", cwd=self.work)
        for turn in turns.get("turns", []):
            text += self.home.document("diff", "--turn", turn["operation"], cwd=self.work)[2]
        return text

    def step(self, *words):
        code, document, text = self.home.document(*words, "--yes", cwd=self.work)
        self.say(f"piton {' '.join(words)}: {code}, over {((document.get('over') or {}).get('turn') or {}).get('turn')}, "
                 + ", ".join(f"{key} {[item['path'] for item in document['done'][key]['items']]}" for key in ("created", "replaced", "deleted", "kept", "failed")
                             if document.get("done", {}).get(key, {}).get("items")))
        if code not in (0, 3, 4):
            self.violate("failed", f"piton {' '.join(words)} ended with {code}: {text.strip()[-300:]}")
        self.text += text
        self.last = text
        return code, document

    def undo_all(self, counts):
        self.text = self.listed()
        first = tree(self.dir)
        lost = [(turn, path) for turn in self.turns for path in self.destroyed(turn, first)]
        stopped_at = None
        for _ in range(8):
            self.text += "".join(self.home.piton("undo", "--preview", cwd=self.work)[1:])
            before = tree(self.dir)
            code, document = self.step("undo")
            after = tree(self.dir)
            if not document.get("operation"):
                self.say("   " + " | ".join((document.get("message") or "").split("\n"))[:300])
                named = (document.get("over") or {}).get("operation")
                if named and named == stopped_at:
                    self.violate("stuck", f"undo stops at {named} again: {document.get('message')}")
                if not named or named == stopped_at:
                    break
                stopped_at = named
                continue
            self.compare(document, before, after, counts)
            self.back(before, after)
            self.include(document, before, counts)
        for turn, path in lost:
            if os.path.basename(path) not in self.text:
                self.violate("unlisted", f"{turn.name} destroyed {path}")

    def turn_of(self, document):
        name = ((document.get("over") or {}).get("turn") or {}).get("turn")
        return next((turn for turn in self.turns if turn.name == name), None)

    def compare(self, document, before, after, counts):
        turn = self.turn_of(document)
        for path in sorted(before):
            if before[path] == after.get(path, ABSENT) or before[path] is None:
                continue
            if turn is None or not self.allowed(turn, path):
                self.violate("took", f"undo of {turn and turn.name} {'deleted' if path not in after else 'replaced'} {path}, whose content was {before[path].strip()!r}")
            elif before[path].startswith("author=person") and any(event.author == "person" and event.new == before[path] for event in self.events):
                counts["person's contents on named paths"] += 1
                self.say(f"NOTE: undo took the person's content of {path}, which the turn names")
        if turn is None or self.person:
            return
        for path, old in self.destroyed(turn, before).items():
            if before.get(path, ABSENT) != (self.left_by(turn, path) or ABSENT):
                continue
            kind = "deleted" if path not in before else "replaced"
            who = "alone" if len(self.agents) == 1 else "two agents"
            counts[f"{kind}, {who}"] += 1
            if after.get(path, ABSENT) != old:
                counts[f"{kind}, {who}: left"] += 1
                self.say(f"NOTE: {kind} {path} is left by undo of {turn.name}")

    def back(self, before, after):
        """Redo leads back exactly, and undo forth again."""
        self.step("redo")
        again = tree(self.dir)
        if again != before:
            self.violate("redo", self.difference(before, again))
        self.step("undo")
        again = tree(self.dir)
        if again != after:
            self.violate("again", self.difference(after, again))

    def include(self, document, before, counts):
        """Follows the one command that undo names for what it left."""
        turn = self.turn_of(document)
        found = re.search(r"piton undo ([^`\n\"|]*--include[^`\n\"|,.;)]*)", self.last.replace("\\n", "\n"))
        if turn is None or self.person:
            return
        if found:
            self.step("undo", *[word for word in shlex.split(found[1]) if word != "--yes"])
        now = tree(self.dir)
        for path, old in self.destroyed(turn, before).items():
            if before.get(path, ABSENT) == (self.left_by(turn, path) or ABSENT):
                counts["destroyed"] += 1
                if now.get(path, ABSENT) != old:
                    counts["destroyed: left after the named command"] += 1
                    self.say(f"NOTE: {path} is left, {'after `' + found[0] + '`' if found else 'and no command is named'}")

    def difference(self, one, two):
        changed = [path for path in sorted(set(one) | set(two)) if one.get(path, ABSENT) != two.get(path, ABSENT)]
        shown = lambda tree, path: "absent" if path not in tree else repr(tree[path])
        return "; ".join(f"{path}: {shown(one, path)} -> {shown(two, path)}" for path in changed[:4])

    def end(self):
        for agent in self.agents:
            if not agent.gone:
                agent.client.end()
        wipe(self.dir)
        wipe(self.plans)


def interleave(home, seed, index, counts, verbose):
    """Plays one interleaving and judges it. Returns the session."""
    session = Session(home, seed, index, verbose)
    try:
        session.play()
        session.undo_all(counts)
    except Exception as error:  # a fault of one interleaving must not hide the others
        session.violate("failed", f"{type(error).__name__}: {error}")
        if verbose:
            raise
    finally:
        session.end()
    return session


class Tally:
    """The counts of all interleavings, and the shortest one of each kind of violation."""

    LIMITS = [(f"deleted, {who}: left", f"deleted, {who}") for who in ("alone", "two agents")]
    LIMITS += [("destroyed: left after the named command", "destroyed")]

    def __init__(self, judged):
        self.judged = judged  # the kinds that count, or None for all
        self.counts, self.found, self.shortest, self.played = collections.Counter(), collections.Counter(), {}, 0

    def add(self, seed, index, session):
        self.played += 1
        if self.judged is not None:
            session.violations = [violation for violation in session.violations if violation["kind"] in self.judged]
        for violation in session.violations:
            print(f"seed {seed} interleaving {index}: {violation['kind']}: {violation['text']}", flush=True)
        for note in session.log:
            if note.startswith("NOTE"):
                print(f"seed {seed} interleaving {index}: {note}", flush=True)
        for kind in {violation["kind"] for violation in session.violations}:
            self.found[kind] += 1
            if kind not in self.shortest or len(session.log) < len(self.shortest[kind][1]):
                self.shortest[kind] = (f"--seed {seed} --only {index}", session.log)

    def over(self):
        if self.judged is not None and "unrestored" not in self.judged:
            return []
        return [f"{left} {self.counts[left]} of {self.counts[whole]}" for left, whole in self.LIMITS if self.counts[left] > 0.02 * self.counts[whole]]

    def lines(self):
        lines = [f"{self.played} interleavings", *(f"{name}: {count}" for name, count in sorted(self.counts.items()))]
        lines += [f"interleavings with `{kind}`: {count}; the shortest is {self.shortest[kind][0]}" for kind, count in sorted(self.found.items())]
        return lines + [f"unrestored: {text}, over 2 %" for text in self.over()]

    def shortest_logs(self):
        lines = []
        for kind, (_, log) in sorted(self.shortest.items()):
            lines += ["", f"shortest with `{kind}`:", *("  " + step for step in log)]
        return lines


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--piton", default=os.environ.get("PITON_BIN") or os.path.join(HERE, "../../target/debug/piton"))
    parser.add_argument("--dir", default=os.path.join(HERE, "../../target/tmp"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--only", type=int)
    parser.add_argument("--judge", help="the kinds that count, by commas; all when absent")
    parser.add_argument("--report")
    parser.add_argument("--alone", action="store_true", help="each hook answers for itself, without the daemon")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    seeds = [asked.seed] if asked.seed is not None else range(1, asked.seeds + 1)
    each = max(1, asked.count // asked.seeds)
    tally = Tally(asked.judge.split(",") if asked.judge else None)
    for seed in seeds:
        home = Home(asked.piton, os.path.realpath(os.path.join(asked.dir, f"attribution-{os.getpid()}-{seed}")))
        home.hook_options = ["--no-daemon"] if asked.alone else []
        try:
            for index in [asked.only] if asked.only is not None else range(each):
                tally.add(seed, index, interleave(home, seed, index, tally.counts, asked.verbose))
        finally:
            home.end(asked.keep)
        if asked.report:
            with open(asked.report, "w") as file:
                file.write("\n".join(tally.lines() + tally.shortest_logs()) + "\n")
    print("\n".join(tally.lines() + ([] if asked.report else tally.shortest_logs())))
    print(f"{tally.played} interleavings, {sum(tally.found.values())} violations")
    return 1 if tally.found or tally.over() else 0


if __name__ == "__main__":
    sys.exit(main())
