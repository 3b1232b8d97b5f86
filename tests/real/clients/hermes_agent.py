"""Hermes Agent."""
from clients import Client


class HermesAgent(Client):
    name = "hermes-agent"
    program = "hermes"
    package = "pip: hermes-agent"
    dialect = "chat"
    resumes = True

    def environment(self, box):
        return {"HERMES_ACCEPT_HOOKS": "1"}

    def prepare(self, box):
        box.write(".hermes/config.yaml", f"""\
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
