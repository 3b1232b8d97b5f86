"""The world of the model tests: a home with piton, workspaces in it, and the processes of agents.

An agent's client runs as a process of its own, with this file as its program, so that piton sees a client whose children are its
hooks, its sidecar and its commands, while the person's commands belong to another process.
"""
import json, os, select, shutil, signal, stat, subprocess, sys, time

PATIENCE = 120


def environment(piton, home):
    """Returns the environment of every process in a home."""
    return {"HOME": home, "PATH": os.path.dirname(piton) + ":/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "NO_COLOR": "1",
            "PITON_HOME": os.path.join(home, "piton"), "XDG_CONFIG_HOME": os.path.join(home, ".config"), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org"}


def wipe(path):
    subprocess.run(["chmod", "-R", "u+rwX", path], stderr=subprocess.DEVNULL)
    shutil.rmtree(path, ignore_errors=True)


def tree(top, modes=False):
    """Returns what is below a directory, `.git` left out: each path with its content, and a directory with None."""
    found = {}
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if name != ".git"]
        for name in names + files:
            path = os.path.join(directory, name)
            state = os.lstat(path)
            key = os.path.relpath(path, top)
            if stat.S_ISLNK(state.st_mode):
                found[key] = "link " + os.readlink(path)
            elif stat.S_ISDIR(state.st_mode):
                found[key] = (None, stat.S_IMODE(state.st_mode)) if modes else None
            elif stat.S_ISREG(state.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
                content = content.decode(errors="surrogateescape")
                found[key] = (content, stat.S_IMODE(state.st_mode)) if modes else content
        names[:] = [name for name in names if not os.path.islink(os.path.join(directory, name))]
    return found


class Home:
    """A home directory with a store of piton's. Several workspaces may be made in it, one after another."""

    def __init__(self, piton, root):
        self.piton_path, self.root = os.path.abspath(piton), root
        wipe(root)
        self.dir = os.path.join(root, "home")
        os.makedirs(os.path.join(self.dir, ".config/piton"))
        with open(os.path.join(self.dir, ".config/piton/config.yaml"), "w") as file:
            file.write("deadline_ms: 60000\n")
        self.env = environment(self.piton_path, self.dir)
        self.hook_options = []  # of each hook that a client runs

    def piton(self, *words, cwd):
        done = subprocess.run([self.piton_path, *words], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=PATIENCE)
        return done.returncode, done.stdout, done.stderr

    def document(self, *words, cwd):
        """Runs piton with --json. Returns the exit code, the document, and all of the output."""
        code, out, err = self.piton(*words, "--json", cwd=cwd)
        try:
            return code, json.JSONDecoder().raw_decode(out)[0], out + err
        except ValueError:
            return code, {}, out + err

    def shell(self, line, cwd):
        """Runs a line as the person does, in a terminal of their own."""
        done = subprocess.run(["/bin/bash", "-c", line], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE)
        return done.returncode, done.stdout

    def end(self, keep=False):
        self.piton("daemon", "stop", cwd="/")
        if not keep:
            wipe(self.root)


class Client:
    """The process of an agent's client. It runs commands, hooks and a sidecar as its children, one after another."""

    def __init__(self, home, cwd):
        self.piton, self.hook_options = home.piton_path, home.hook_options
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), home.piton_path, cwd], cwd=cwd, env=home.env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise EOFError("the client is gone")
        return json.loads(line)

    def run(self, words, cwd, input=""):
        return self.ask(op="run", words=words, cwd=cwd, input=input)

    def shell(self, line, cwd):
        return self.run(["/bin/bash", "-c", line], cwd)

    def hook(self, client, event, cwd, **fields):
        done = self.run([self.piton, "hook", client, event, *self.hook_options], cwd, json.dumps({"hook_event_name": event, "cwd": cwd, **fields}))
        try:
            return json.loads(done["out"]) if done["out"].strip() else {}
        except ValueError:
            return {"raw": done["out"]}

    def sidecar(self, **request):
        return self.ask(op="sidecar", request=request)

    def kill_sidecar(self):
        return self.ask(op="kill-sidecar")

    def kill(self):
        """Kills the client as a crash does; its sidecar sees the end of its input."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        try:
            self.process.stdin.close()
            self.process.wait(PATIENCE)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()


class Served:
    """The client's side in its own process."""

    def __init__(self, piton, work):
        self.piton, self.work, self.sidecar, self.buffer, self.count = piton, work, None, b"", 0

    def run(self, request):
        cwd = request["cwd"] if os.path.isdir(request["cwd"]) else "/"
        done = subprocess.run(request["words"], cwd=cwd, input=request["input"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=PATIENCE)
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

    def line(self):
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.buffer:
            if not select.select([self.sidecar.stdout], [], [], max(0, end - time.monotonic()))[0]:
                return {"error": "no answer"}
            more = os.read(self.sidecar.stdout.fileno(), 1 << 16)
            if not more:
                return {"error": "the sidecar has ended"}
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def ask(self, body):
        if self.sidecar is None:
            self.sidecar = subprocess.Popen([self.piton, "sidecar", "--workspace", self.work], cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, bufsize=0)
            self.buffer = b""
        self.count += 1
        try:
            self.sidecar.stdin.write((json.dumps({"v": 1, "id": self.count, **body}) + "\n").encode())
        except OSError:
            return {"error": "the sidecar has ended"}
        while True:
            reply = self.line()
            if reply.get("id") == self.count or "id" not in reply and isinstance(reply.get("error"), str):
                return reply

    def kill(self):
        if self.sidecar is not None:
            self.sidecar.kill()
            self.sidecar.wait()
            self.sidecar = None
        return {}

    def serve(self):
        for line in sys.stdin:
            request = json.loads(line)
            if request["op"] == "run":
                reply = self.run(request)
            elif request["op"] == "sidecar":
                body = dict(request["request"])
                if body.get("pid"):
                    body["pid"] = os.getpid()
                reply = self.ask(body)
            else:
                reply = self.kill()
            print(json.dumps(reply), flush=True)
        if self.sidecar is not None:
            self.sidecar.stdin.close()
            self.sidecar.wait(PATIENCE)


if __name__ == "__main__":
    Served(sys.argv[1], sys.argv[2]).serve()
