"""Kimi Code."""
from clients import Client

SETTINGS = ".kimi-code/config.toml"


class KimiCode(Client):
    name = "kimi-code"
    program = "kimi"
    package = "@moonshot-ai/kimi-code"
    dialect = "chat"
    resumes = True
    switches = [
        ("odd hook", lambda box: box.write(SETTINGS, box.read(SETTINGS) + '[[hooks]]\nevent = "Stop"\ncommand = "true"\nasync = true\n')),
        ("odd event", lambda box: box.write(SETTINGS, box.read(SETTINGS) + '[[hooks]]\nevent = "NoEvent"\ncommand = "true"\n')),
    ]

    def environment(self, box):
        return {"KIMI_DISABLE_TELEMETRY": "1"}

    def prepare(self, box):
        box.write(SETTINGS, f"""\
default_model = "m"
[providers.stand-in]
type = "openai"
base_url = "http://127.0.0.1:{box.model.port}/v1"
api_key = "none"
[models.m]
provider = "stand-in"
model = "x"
max_context_size = 100000
""")

    def command(self, box, prompt, resume):
        return [*(["--continue"] if resume else []), "-p", prompt]

    def shell(self, command):
        return "Bash", {"command": command, "description": "a step"}

    def agent(self, prompt):
        return "Agent", {"description": "a part", "prompt": prompt, "subagent_type": "coder"}


CLIENT = KimiCode()
