"""Codex. It refuses `rm -f` itself, behind the hook."""
import json, subprocess
from clients import Client

CONFIG = """model = "gpt-5.5"
model_provider = "here"
check_for_update_on_startup = false
[model_providers.here]
name = "here"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
[analytics]
enabled = false
[features]
multi_agent_v2 = true
"""


def edit(box, old, new, path=".codex/config.toml"):
    with open(f"{box.home}/{path}") as file:
        box.write(path, file.read().replace(old, new))


def features(box, above):
    """Switches hooks off in a `config.toml`."""
    if above == box.home:
        edit(box, "[features]", "[features]\nhooks = false")
    else:
        box.write(f"{above}/.codex/config.toml", "[features]\nhooks = false\n")
        edit(box, "[features]", f"[projects.{json.dumps(above)}]\ntrust_level = 'trusted'\n[features]")


class Codex(Client):
    name = "codex"
    program = "codex"
    package = "@openai/codex"
    dialect = "responses"
    destroy = "rm -r out"
    resumes = True
    tells_parent = True
    switches = [
        ("user", lambda box: features(box, box.home)),
        ("project", lambda box: features(box, box.work)),
        ("untrusted", lambda box: edit(box, "trusted_hash", "untrusted_hash")),
        ("disabled", lambda box: edit(box, "\ntrusted_hash", "\nenabled = false\ntrusted_hash")),
        ("managed", lambda box: box.administer("codex/managed_config.toml", "[features]\nhooks = false\n")),
        ("managed only", lambda box: box.administer("codex/requirements.toml", "allow_managed_hooks_only = true\n")),
        ("required", lambda box: box.administer("codex/requirements.toml", "[features]\nhooks = false\n")),
    ]

    def prepare(self, box):
        box.write(".codex/config.toml", CONFIG.format(port=box.model.port))

    def installed(self, box):
        """Trusts the hooks as `/hooks` does: with the hash that Codex itself tells."""
        lines = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "real", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [box.work]}},
        ]
        server = subprocess.Popen([self.path, "app-server"], cwd=box.work, env=box.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        server.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        server.stdin.flush()
        answer = next(line for line in map(json.loads, server.stdout) if line.get("id") == 2)
        server.stdin.close()
        server.wait()
        with open(f"{box.home}/.codex/config.toml", "a") as file:
            for hook in answer["result"]["data"][0]["hooks"]:
                file.write(f"[hooks.state.{json.dumps(hook['key'])}]\ntrusted_hash = {json.dumps(hook['currentHash'])}\n")

    def command(self, box, prompt, resume):
        words = ["exec", *(["resume", "--last"] if resume else []), "--dangerously-bypass-approvals-and-sandbox"]
        return [*words, prompt]

    def shell(self, command):
        return "exec_command", {"cmd": command}

    def agent(self, prompt):
        return "collaboration.spawn_agent", {"task_name": "part", "message": prompt, "fork_turns": "none"}


CLIENT = Codex()
