"""Gemini CLI."""
import json
from clients import Client


def commands(box):
    """Returns the commands of the hooks, by which the client names them."""
    hooks = json.loads(box.read(".gemini/settings.json"))["hooks"]
    return [hook["command"] for groups in hooks.values() for group in groups for hook in group["hooks"]]


class GeminiCli(Client):
    name = "gemini-cli"
    program = "gemini"
    package = "@google/gemini-cli"
    dialect = "gemini"
    resumes = True
    switches = [
        ("user", lambda box: box.change(".gemini/settings.json", hooksConfig={"enabled": False})),
        ("list", lambda box: box.change(".gemini/settings.json", hooksConfig={"disabled": commands(box)})),
        ("project", lambda box: box.write("../project/.gemini/settings.json", {"hooksConfig": {"enabled": False}})),
        ("managed", lambda box: box.administer("gemini-cli/settings.json", {"hooksConfig": {"enabled": False}})),
        ("defaults", lambda box: box.administer("gemini-cli/system-defaults.json", {"hooksConfig": {"enabled": False}})),
    ]

    def environment(self, box):
        return {"GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{box.model.port}", "GEMINI_API_KEY": "none"}

    def prepare(self, box):
        box.write(".gemini/trustedFolders.json", {box.work: "TRUST_FOLDER"})
        box.write(".gemini/settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "model": {"name": "gemini-2.5-pro"},
            "general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False},
        })

    def command(self, box, prompt, resume):
        return ["-p", prompt, "--yolo", *(["--resume", "latest"] if resume else [])]

    def shell(self, command):
        return "run_shell_command", {"command": command, "description": "a step"}

    def agent(self, prompt):
        return "invoke_agent", {"agent_name": "generalist", "prompt": prompt}


CLIENT = GeminiCli()
