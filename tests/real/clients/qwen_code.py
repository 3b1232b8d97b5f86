"""Qwen Code."""
from clients import Client


class QwenCode(Client):
    name = "qwen-code"
    program = "qwen"
    package = "@qwen-code/qwen-code"
    dialect = "chat"
    resumes = True
    tells_parent = True
    without_hooks = ["--safe-mode"]
    switches = [
        ("user", lambda box: box.change(".qwen/settings.json", disableAllHooks=True)),
        ("project", lambda box: box.write("../project/.qwen/settings.json", {"disableAllHooks": True})),
        ("managed", lambda box: box.administer("qwen-code/settings.json", {"disableAllHooks": True})),
        ("defaults", lambda box: box.administer("qwen-code/system-defaults.json", {"disableAllHooks": True})),
    ]

    def environment(self, box):
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{box.model.port}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "x"}

    def prepare(self, box):
        box.write(".qwen/settings.json", {
            "security": {"auth": {"selectedType": "openai"}}, "general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False},
        })

    def command(self, box, prompt, resume):
        return ["-p", prompt, "--yolo", *(["--continue"] if resume else [])]

    def shell(self, command):
        return "run_shell_command", {"command": command, "description": "a step", "is_background": False}

    def agent(self, prompt):
        return "agent", {"description": "a part", "prompt": prompt, "subagent_type": "general-purpose"}


CLIENT = QwenCode()
