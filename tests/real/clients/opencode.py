"""opencode."""
from clients import Client


class Opencode(Client):
    name = "opencode"
    program = "opencode"
    package = "opencode-ai"
    dialect = "anthropic"
    resumes = True
    tells_parent = True

    def environment(self, box):
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

    def prepare(self, box):
        options = {"baseURL": f"http://127.0.0.1:{box.model.port}/v1", "apiKey": "none"}
        box.write(".config/opencode/opencode.json", {
            "model": "anthropic/claude-sonnet-4-5", "small_model": "anthropic/claude-sonnet-4-5",
            "provider": {"anthropic": {"options": options}}, "permission": {"*": "allow"}, "share": "disabled", "autoupdate": False,
        })

    def command(self, box, prompt, resume):
        return ["run", *(["--continue"] if resume else []), prompt]

    def shell(self, command):
        return "bash", {"command": command, "description": "a step"}

    def agent(self, prompt):
        return "task", {"description": "a part", "prompt": prompt, "subagent_type": "general"}


CLIENT = Opencode()
