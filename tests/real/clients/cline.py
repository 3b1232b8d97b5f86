"""Cline CLI."""
from clients import Client


class Cline(Client):
    name = "cline"
    program = "cline"
    package = "cline"
    dialect = "chat"
    tells_parent = True

    def environment(self, box):
        return {"CLINE_TELEMETRY_DISABLED": "1"}

    def prepare(self, box):
        settings = {"provider": "openai-compatible", "apiKey": "none", "model": "x", "baseUrl": f"http://127.0.0.1:{box.model.port}/v1"}
        box.write(".cline/data/settings/providers.json", {
            "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
            "providers": {"openai-compatible": {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}},
        })

    def command(self, box, prompt, resume):
        return [prompt]

    def shell(self, command):
        return "run_commands", {"commands": [command]}

    def agent(self, prompt):
        return "spawn_agent", {"systemPrompt": "do as you are told", "task": prompt}


CLIENT = Cline()
