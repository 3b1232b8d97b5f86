"""pi."""
from clients import Client


class Pi(Client):
    name = "pi"
    program = "pi"
    package = "@earendil-works/pi-coding-agent"
    dialect = "chat"
    resumes = True
    without_hooks = ["--no-extensions"]
    switches = [
        ("left out", lambda box: box.write(".pi/agent/settings.json", {"extensions": ["-extensions/piton.ts"]})),
        ("by pattern", lambda box: box.write(".pi/agent/settings.json", {"extensions": ["!piton.*"]})),
    ]

    def environment(self, box):
        return {"PI_OFFLINE": "1"}

    def prepare(self, box):
        box.write(".pi/agent/models.json", {"providers": {"stand-in": {
            "baseUrl": f"http://127.0.0.1:{box.model.port}/v1", "apiKey": "none", "api": "openai-completions", "models": [{"id": "x"}],
        }}})

    def command(self, box, prompt, resume):
        return ["-p", "--model", "stand-in/x", *(["--continue"] if resume else []), prompt]

    def shell(self, command):
        return "bash", {"command": command}


CLIENT = Pi()
