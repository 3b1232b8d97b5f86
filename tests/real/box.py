"""A box: a home, a workspace, a store and a model of their own, in which a client works with piton's hooks."""
import glob, json, os, pty, shutil, signal, subprocess, tempfile, threading, time
from model.server import Model, call

# Longest time of a client for one prompt, and for a tool call to begin.
PATIENCE = 120


class Failed(Exception):
    """A point that does not hold."""


class Skipped(Exception):
    """A point that cannot be tried here."""


def holds(condition, text):
    """Fails the point unless the condition is true."""
    if not condition:
        raise Failed(text)


class Box:
    def __init__(self, client, piton, others, needs_etc):
        self.client = client
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix=f"piton-real-{client.name}-"))
        self.home, self.work, self.store, self.gates = (self.at(name) for name in ("home", "project", "store", "gates"))
        for directory in (self.home, self.work, self.gates, self.at("bin")):
            os.mkdir(directory)
        self.piton_path = self.at("bin/piton")
        try:
            os.link(piton, self.piton_path)
        except OSError:  # another file system
            shutil.copy(piton, self.piton_path)
        self.model = Model(client, self.gates)
        self.inside = []  # the words before each command that is to see the box's own /etc
        if needs_etc:
            shutil.copytree("/etc", self.at("etc"), symlinks=True, ignore_dangling_symlinks=True)
            words = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', self.at("etc")]
            if shutil.which("unshare") and subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0:
                self.inside = words
        self.started = []
        self.before = {}
        kept = {key: os.environ[key] for key in ("LANG", "SHELL", "USER", "LOGNAME") if key in os.environ}
        for program in (client.path, shutil.which("node")):
            if program:
                os.symlink(program, self.at(f"bin/{os.path.basename(program)}"))
        # Other clients stay unseen: the doctor would ask for their hooks.
        path = [directory for directory in os.environ["PATH"].split(os.pathsep) if not any(os.path.exists(os.path.join(directory, other)) for other in others)]
        path = os.pathsep.join([self.at("bin"), *path])
        self.env = {**kept, "PATH": path, "HOME": self.home, "PITON_HOME": self.store, "NO_COLOR": "1", "TERM": "dumb"}
        self.env.update(client.environment(self))
        self.shell("git init -q . && git config user.name a && git config user.email a@b && echo one > tracked && git add . && git commit -qm one")
        self.product()
        client.prepare(self)

    def at(self, path):
        return os.path.join(self.dir, path)

    def shell(self, line):
        subprocess.run(["sh", "-c", line], cwd=self.work, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def write(self, path, content, executable=False):
        """Writes a file below the home; what is not text becomes JSON."""
        path = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")
        if executable:
            os.chmod(path, 0o755)

    def read(self, path):
        """Returns the text of a file below the home."""
        with open(os.path.join(self.home, path)) as file:
            return file.read()

    def change(self, path, **settings):
        """Changes settings in a JSON file below the home."""
        self.write(path, {**json.loads(self.read(path)), **settings})

    def administer(self, path, content):
        """Writes a file below /etc, which only this box sees."""
        if not self.inside:
            raise Skipped("this user cannot make a mount namespace with another /etc")
        self.write(os.path.join(self.at("etc"), path), content)

    def product(self):
        """Makes the untracked directory `out`, which the agent removes."""
        os.makedirs(os.path.join(self.work, "out/sub"), exist_ok=True)
        for name, text in (("out/a", "product\n"), ("out/sub/b", "another\n")):
            with open(os.path.join(self.work, name), "w") as file:
                file.write(text)

    def has(self, path):
        return os.path.exists(os.path.join(self.work, path))

    # piton

    def piton(self, *words, codes=(0,)):
        """Runs piton. Returns its exit code and all of its output."""
        done = subprocess.run([*self.inside, self.piton_path, *words], cwd=self.work, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        text = (done.stdout + done.stderr).decode(errors="replace")
        if codes is not None and done.returncode not in codes:
            raise Failed(f"piton {' '.join(words)} ended with {done.returncode}: {text.strip()[-300:]}")
        return done.returncode, text

    def document(self, *words, codes=(0,)):
        """Runs piton with --json. Returns its document."""
        _, text = self.piton(*words, "--json", codes=codes)
        return json.JSONDecoder().raw_decode(text)[0]

    def install(self):
        """Installs the client's hooks, and remembers its files as they were."""
        for file in self.document("install", self.client.name, "--dry-run")["files"]:
            try:
                with open(file["path"], "rb") as content:
                    self.before[file["path"]] = content.read()
            except FileNotFoundError:
                self.before[file["path"]] = None
        self.piton("install", self.client.name)
        self.client.installed(self)

    def strip(self):
        """Gives the client's files back as they were before the installation, as a person with an editor does."""
        for path, content in self.before.items():
            if content is None:
                os.unlink(path)
            else:
                with open(path, "wb") as file:
                    file.write(content)

    def runs(self):
        return self.document("runs", codes=(0, 3)).get("runs", [])

    # The client

    def start(self, steps, resume=False, more=(), denying=False, first=()):
        """Starts the client with a prompt that makes the model take the steps, one after another, and with more arguments. `denying`: it
        denies the calls of tools; `first`: words before its command line."""
        log = open(self.at(f"log{len(self.started)}"), "wb")
        prompt = "tidy up " + " ".join(call(step) for step in steps)
        argv = self.client.denying(self, prompt) if denying else self.client.command(self, prompt, resume)
        process = subprocess.Popen([*self.inside, *first, self.client.path, *more, *argv], cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, start_new_session=True)
        process.log = log.name
        self.started.append(process)
        return process

    def start_in_terminal(self, *steps):
        """Starts the client in a terminal, with a prompt. Returns the process; `process.type(text)` types."""
        ours, theirs = pty.openpty()
        argv = self.client.terminal(self, "tidy up " + " ".join(call(step) for step in steps))
        process = subprocess.Popen([self.client.path, *argv], cwd=self.work, env={**self.env, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs,
                                   start_new_session=True)
        os.close(theirs)
        log = open(self.at(f"log{len(self.started)}"), "wb")
        process.log = log.name

        def copy():
            while True:
                try:
                    log.write(os.read(ours, 1 << 16))
                    log.flush()
                except OSError:  # the terminal's other side is gone
                    return

        threading.Thread(target=copy, daemon=True).start()
        process.type = lambda text: os.write(ours, text.encode())
        self.started.append(process)
        return process

    def until(self, condition, what):
        """Waits until a condition is true."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"in vain: {what}")
            time.sleep(0.1)

    def wait(self, process):
        """Waits for the end of a client. Returns its output."""
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed(f"the client did not end: {self.said(process)}")
        return self.output(process)

    def output(self, process):
        with open(process.log, errors="replace") as log:
            return log.read()

    def said(self, process):
        return " | ".join(self.output(process).strip().splitlines()[-4:])[-300:]

    def ask(self, *steps, resume=False):
        """Lets the client work on one prompt to its end. Returns the process."""
        process = self.start(steps, resume)
        self.wait(process)
        return process

    def gate(self, name):
        """Returns a command that waits until the gate is opened, or the box is gone."""
        gate = os.path.join(self.gates, name)
        return f"touch {gate}.here; while [ -d {self.gates} ] && [ ! -e {gate}.open ]; do sleep 0.1; done"

    def reach(self, process, name):
        """Waits until the client's command stands at the gate."""
        end = time.monotonic() + PATIENCE
        while not os.path.exists(os.path.join(self.gates, f"{name}.here")):
            if process.poll() is not None or time.monotonic() > end:
                raise Failed(f"the client never came to `{name}`: {self.said(process)}")
            time.sleep(0.05)

    def open(self, name):
        open(os.path.join(self.gates, f"{name}.open"), "w").close()

    def kill(self, process):
        """Kills the client with all processes of its group, as a closed terminal does."""
        end = time.monotonic() + 10
        try:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            while time.monotonic() < end:  # a large process behind a wrapper takes its time to die
                os.killpg(process.pid, 0)
                time.sleep(0.01)
        except ProcessLookupError:
            process.wait()

    # The end

    def freeze(self):
        """Makes the store immutable; the socket of the daemon cannot be."""
        subprocess.run(["chattr", "-R", "-f", "+i", self.store], stderr=subprocess.DEVNULL)

    def thaw(self):
        """Makes the store writable again."""
        subprocess.run(["chattr", "-R", "-f", "-i", self.store], stderr=subprocess.DEVNULL)

    def end(self):
        self.thaw()
        for process in self.started:
            self.kill(process)
        for gate in glob.glob(os.path.join(self.gates, "*.here")):
            self.open(os.path.basename(gate)[: -len(".here")])
        self.model.end()
        if os.path.exists(self.piton_path):
            self.piton("daemon", "stop", codes=None)
        self.client.end(self)

    def remove(self):
        for _ in range(5):  # a process that was just killed may still write
            shutil.rmtree(self.dir, ignore_errors=True)
            if not os.path.exists(self.dir):
                return
            time.sleep(0.2)
