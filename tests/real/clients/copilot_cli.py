"""Copilot CLI."""
from clients import Client


class CopilotCli(Client):
    name = "copilot-cli"
    program = "copilot"
    package = "@github/copilot"
    dialect = "anthropic"
    resumes = True
    tells_parent = True
    switches = [
        ("project", lambda box: box.write("../project/.github/copilot/settings.json", {"disableAllHooks": True})),
        ("local", lambda box: box.write("../project/.github/copilot/settings.local.json", {"disableAllHooks": True})),
        ("of Claude Code", lambda box: box.write("../project/.claude/settings.json", {"disableAllHooks": True})),
        ("managed only", lambda box: box.administer("github-copilot/managed-settings.json", {"allowManagedHooksOnly": True})),
        ("plugins only", lambda box: box.administer("github-copilot/managed-settings.json", {"strictPluginOnlyCustomization": ["hooks"]})),
    ]

    def environment(self, box):
        return {
            "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{box.model.port}", "COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "claude-sonnet-4.5", "COPILOT_AUTO_UPDATE": "false",
        }

    def prepare(self, box):
        box.write(".copilot/config.json", {"trustedFolders": [box.work]})

    def command(self, box, prompt, resume):
        return ["-p", prompt, "--allow-all-tools", "--allow-all-paths", *(["--continue"] if resume else [])]

    def shell(self, command):
        return "bash", {"command": command, "description": "a step", "initial_wait": 60, "mode": "sync"}

    def agent(self, prompt):
        return "task", {"name": "part", "description": "a part", "prompt": prompt, "agent_type": "general-purpose"}


CLIENT = CopilotCli()
