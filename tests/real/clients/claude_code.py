"""Claude Code."""
from clients import Client


class ClaudeCode(Client):
    name = "claude-code"
    program = "claude"
    package = "@anthropic-ai/claude-code"
    dialect = "anthropic"
    resumes = True
    tells_parent = True
    switches = [
        ("project", lambda box: box.write("../project/.claude/settings.json", {"disableAllHooks": True})),
        ("local", lambda box: box.write("../project/.claude/settings.local.json", {"disableAllHooks": True})),
        ("managed", lambda box: box.administer("claude-code/managed-settings.json", {"disableAllHooks": True})),
        ("managed only", lambda box: box.administer("claude-code/managed-settings.json", {"allowManagedHooksOnly": True})),
        ("user", lambda box: box.change(".claude/settings.json", disableAllHooks=True)),
    ]

    def environment(self, box):
        return {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{box.model.port}", "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
        }

    def command(self, box, prompt, resume):
        return ["-p", prompt, "--dangerously-skip-permissions", *(["--continue"] if resume else [])]

    def shell(self, command):
        return "Bash", {"command": command, "description": "a step"}

    def agent(self, prompt):
        return "Agent", {"description": "a part", "prompt": prompt, "subagent_type": "general-purpose"}

    def isolated(self, prompt):
        name, words = self.agent(prompt)
        return name, {**words, "isolation": "worktree"}

    def denying(self, box, prompt):
        return ["-p", prompt]

    def terminal(self, box, prompt):
        box.write(".claude.json", {
            "hasCompletedOnboarding": True, "bypassPermissionsModeAccepted": True, "customApiKeyResponses": {"approved": ["none"], "rejected": []},
            "projects": {box.work: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        })
        return ["--dangerously-skip-permissions", prompt]


CLIENT = ClaudeCode()
