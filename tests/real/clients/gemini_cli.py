"""Gemini CLI."""
from clients import Client


class GeminiCli(Client):
    name = "gemini-cli"
    program = "gemini"
    package = "@google/gemini-cli"
    dialect = "gemini"
    resumes = True

    def environment(self, box):
        return {"GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{box.model.port}", "GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def prepare(self, box):
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
