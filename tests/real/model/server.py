"""The server. It thinks nothing: the prompt holds the steps that the model takes, so each session has its own.

A step is `[[[COMMAND]]]`, a call of the shell tool. Other steps: `[[[ONE ||| TWO]]]`, both calls in one answer;
`[[[agent: COMMAND]]]`, a sub-agent whose prompt is that step; `[[[isolated: COMMAND]]]`, such a sub-agent in a worktree of its own;
`[[[wait: GATE]]]`, an answer that is not given before the gate is open. The results of tools after the prompt tell which step is
next. After the last one, or where the request offers no tools, the answer is `done`.

A dialect is a module with `is_chat(path, body)`; `talk(body)`, a list of ("user" | "result", text); `tools(body)`, the names of the
tools; and `answer(body, calls, n)`, the content type and the text of the answer: `calls` are names with arguments, or none.
"""
import http.server, importlib, json, os, re, threading, time

STEP = re.compile(r"\[\[\[(.*?)\]\]\]", re.S)


def call(step):
    return f"[[[{step}]]]"


def together(*commands):
    """Returns a step of several calls in one answer."""
    return " ||| ".join(commands)


def text_of(content):
    """Returns all text of a message's content, whatever its form is."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = content.values()
    return "\n".join(text_of(part) for part in content or [] if isinstance(part, (str, dict, list)))


class Model:
    def __init__(self, client, gates):
        self.gates = gates
        self.client, self.dialect = client, importlib.import_module(f"model.{client.dialect}")
        self.requests = []  # the bodies, as they came
        self.answers = []  # the steps that were answered; None for `done`
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def reply(self, kind, text, status=200):
                data = text.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def do_GET(self):
                get = getattr(model.client, "get", lambda path: None)(self.path)
                self.reply("application/json", json.dumps(get if get is not None else {}))

            do_HEAD = do_GET

            def do_POST(self):
                data = self.body()
                try:
                    body = json.loads(data or b"{}")
                except ValueError:
                    body = {}
                if isinstance(body, dict) and model.dialect.is_chat(self.path, body):
                    self.reply(*model.answer(self.path, body))
                else:
                    self.reply("application/json", "{}")

            def body(self):
                if self.headers.get("transfer-encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path, body):
        talk, tools = self.dialect.talk(body), self.dialect.tools(body)
        self.requests.append(body)
        steps, done = [], 0
        for role, text in talk:
            found = STEP.findall(text) if role == "user" else []
            if found:
                steps, done = found, 0
            elif role == "result":
                done += 1
        step = self.next(steps, done) if tools else None
        self.answers.append(step)
        calls = [self.made(part) for part in step.split(" ||| ")] if step else []
        return self.dialect.answer(body, calls, len(self.answers))

    def next(self, steps, done):
        """Returns the step after so many results of tools; None after the last one."""
        for step in steps:
            count = 0 if step.startswith("wait: ") else len(step.split(" ||| "))
            if done < count:
                return step
            done -= count
            if not count:
                self.wait(step.removeprefix("wait: "))
        return None

    def wait(self, gate):
        """Waits until the gate is open, or the box is gone."""
        gate = os.path.join(self.gates, gate)
        if os.path.isdir(self.gates):
            open(f"{gate}.here", "w").close()
        while os.path.isdir(self.gates) and not os.path.exists(f"{gate}.open"):
            time.sleep(0.05)

    def made(self, step):
        """Returns the call of a tool, a name with arguments, for a part of a step."""
        for word, agent in (("agent: ", self.client.agent), ("isolated: ", self.client.isolated)):
            if step.startswith(word):
                return agent(call(step.removeprefix(word)))
        return self.client.shell(step)

    def find(self, *words):
        """Returns the place and the beginning of the first text of a request that has all words, or None."""
        for body in self.requests:
            for place, text in texts(body):
                if all(word in text for word in words):
                    return f"{place}: {' '.join(text.split())[:120]}"
        return None

    def finished(self):
        """Tells whether a conversation came to its end after a step."""
        steps = [n for n, step in enumerate(self.answers) if step]
        return bool(steps) and None in self.answers[steps[-1]:]

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def texts(value, place="request"):
    """Yields each text in a document, with the role or the type of what it stands in."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for part in value:
            yield from texts(part, place)
    elif isinstance(value, dict):
        kind = value.get("type")
        place = kind if isinstance(kind, str) and ("result" in kind or "output" in kind) else value.get("role") or place
        for key, part in value.items():
            yield from texts(part, key if key == "functionResponse" else place)


def events(items):
    """Returns a stream of events: each with its name, or None, and its data."""
    lines = []
    for name, data in items:
        lines.append((f"event: {name}\n" if name else "") + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
    return "text/event-stream", "".join(lines)
