"""Hermes Agent."""
import os
from clients import Client

SETTINGS = ".hermes/config.yaml"


def revoke(box):
    """Takes back the consent to all hooks."""
    box.write(SETTINGS, box.read(SETTINGS).replace("hooks_auto_accept: true", "hooks_auto_accept: false"))
    os.unlink(os.path.join(box.home, ".hermes/shell-hooks-allowlist.json"))


class HermesAgent(Client):
    name = "hermes-agent"
    program = "hermes"
    package = "pip: hermes-agent"
    dialect = "chat"
    resumes = True
    tells_parent = True
    switches = [("no consent", lambda box: revoke(box))]

    def prepare(self, box):
        box.write(SETTINGS, f"""\
hooks_auto_accept: true
model:
  provider: custom
  base_url: http://127.0.0.1:{box.model.port}/v1
  api_key: none
  default: x
""")

    def command(self, box, prompt, resume):
        return ["chat", "-Q", "--yolo", *(["--continue"] if resume else []), "-q", prompt]

    def shell(self, command):
        return "terminal", {"command": command}

    def agent(self, prompt):
        return "delegate_task", {"goal": prompt}


CLIENT = HermesAgent()
