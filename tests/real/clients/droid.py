"""Factory droid. Its sub-agents need its daemon and are not tried."""
import json, os
from clients import Client

MODEL = {"model": "m", "displayName": "m", "apiKey": "none", "provider": "anthropic", "maxOutputTokens": 8192}

OFF = {"hooks": {"hooksDisabled": True}}


def switch(box, path):
    """Switches hooks off beside the hooks that are there."""
    try:
        with open(os.path.join(box.home, path)) as file:
            settings = json.load(file)
    except FileNotFoundError:
        settings = {}
    box.write(path, {**settings, "hooks": {**settings.get("hooks", {}), **OFF["hooks"]}})


class Droid(Client):
    name = "droid"
    program = "droid"
    package = "droid"
    dialect = "anthropic"
    switches = [
        ("user", lambda box: switch(box, ".factory/settings.json")),
        ("project", lambda box: switch(box, "../project/.factory/settings.json")),
        ("a file of hooks alone", lambda box: box.write(".factory/hooks.json", {"hooksDisabled": True})),
        ("other hooks alone", lambda box: box.write(".factory/hooks.json", {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "true"}]}]})),
        ("managed", lambda box: box.administer("factory/settings.json", OFF)),
        ("managed only", lambda box: box.administer("factory/settings.json", {"allowManagedHooksOnly": True})),
    ]

    def environment(self, box):
        return {"FACTORY_API_KEY": "fk-none", "FACTORY_API_BASE_URL": f"http://127.0.0.1:{box.model.port}"}

    def prepare(self, box):
        model = {**MODEL, "baseUrl": f"http://127.0.0.1:{box.model.port}"}
        box.write(".factory/settings.json", {"customModels": [model], "enableHooks": True})

    def command(self, box, prompt, resume):
        return ["exec", "--skip-permissions-unsafe", "-m", "custom:m", prompt]

    def shell(self, command):
        return "Execute", {"command": command, "summary": "a step", "riskLevel": {"value": "low", "reason": "none"}, "timeout": 60}


CLIENT = Droid()
