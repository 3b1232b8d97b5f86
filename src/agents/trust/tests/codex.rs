//! The switches of Codex, and the hooks that it trusts.

use super::*;

/// The state of a hook that Codex trusts.
const TRUSTED: &str = "[hooks.state.\"/home/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n";

/// The same, with a project that Codex trusts.
const TRUSTED_PROJECT: &str = "[projects.'/work']\ntrust_level = 'trusted'\n[hooks.state.\"/home/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n";

#[test]
fn codex_is_switched_off_in_each_of_its_files() {
    check(
        Client::Codex,
        &[
            (&[("~/.codex/config.toml", TRUSTED)], Run),
            (&[], Off("ignores piton's hooks until you trust them")),
            (&[("~/.codex/config.toml", "hooks.state = {}\n")], Off("until you trust them")),
            (
                &[(
                    "~/.codex/config.toml",
                    "[hooks.state.\"/home/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"1\"\nenabled = false\n",
                )],
                Off("until you trust them"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "allow_managed_hooks_only = true"),
                ],
                Off("`allow_managed_hooks_only` is set in /etc/codex/requirements.toml"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "# none\n\"allow_managed_hooks_only\"=true # yes\n[x]\ny = 1"),
                ],
                Off("allow_managed_hooks_only"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    (
                        "/etc/codex/requirements.toml",
                        "# allow_managed_hooks_only = true\nx = '''\nallow_managed_hooks_only = true'''",
                    ),
                ],
                Run,
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "[t]\nallow_managed_hooks_only = true"),
                ],
                Run,
            ),
            (
                &[("~/.codex/config.toml", TRUSTED), ("/etc/codex/requirements.toml", "[features]\nhooks = false")],
                Off("/etc/codex/requirements.toml"),
            ),
            (
                &[("~/.codex/config.toml", TRUSTED), ("/etc/codex/config.toml", "features = { hooks = false }")],
                Off("/etc/codex/config.toml"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/managed_config.toml", "features.codex_hooks = false"),
                ],
                Off("`[features]` of /etc/codex/managed_config.toml"),
            ),
            // Codex reads the files of a project that it trusts, and of no other.
            (
                &[("~/.codex/config.toml", TRUSTED_PROJECT), ("./.codex/config.toml", "[features]\nhooks = false")],
                Off("./.codex/config.toml"),
            ),
            (&[("~/.codex/config.toml", TRUSTED), ("./.codex/config.toml", "[features]\nhooks = false")], Run),
            (
                &[
                    ("/etc/codex/config.toml", "[features]\nhooks = false"),
                    (
                        "~/.codex/config.toml",
                        "features.hooks = true\n[hooks.state.\"/home/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"1\"\n",
                    ),
                ],
                Run,
            ),
            (
                &[(
                    "/etc/codex/requirements.toml",
                    "allow_managed_hooks_only = true\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"/usr/bin/piton hook codex PreToolUse\"\n",
                )],
                Run,
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "allow_managed_hooks_only = yes"),
                ],
                Unknown("it is not TOML"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "allow_managed_hooks_only = \"true\""),
                ],
                Unknown("neither true nor false"),
            ),
            (
                &[("~/.codex/config.toml", TRUSTED), ("/etc/codex/requirements.toml", LOCKED)],
                Unknown("permission denied"),
            ),
            (&[("~/.codex/config.toml", "[features")], Unknown("~/.codex/config.toml")),
            (&[("~/.codex/config.toml", TRUSTED), ("./.codex/config.toml", "hooks")], Run),
            (
                &[("~/.codex/config.toml", TRUSTED_PROJECT), ("./.codex/config.toml", "hooks")],
                Unknown("./.codex/config.toml"),
            ),
        ],
    );
}

/// Seen in Codex 0.171.0.
#[test]
fn codex_reads_the_hooks_of_trusted_projects_only() {
    let entry = |dir: &str, level: &str| format!("{TRUSTED}[projects.\"{dir}\"]\ntrust_level = \"{level}\"\n");
    let check = |config: &str, git: &[(&str, &str)], is_trusted: bool| {
        let mut files = vec![("~/.codex/config.toml", config)];
        files.extend(git);
        let doubts = doubts_of(Client::Codex, &files, true);
        assert_eq!(doubts.is_empty(), is_trusted, "{config} {git:?}: {doubts:?}");
        assert!(is_trusted || doubts[0].what.contains("does not trust this project"), "{doubts:?}");
    };
    let (repository, worktree) = ([("./.git", LOCKED)], [("./.git", "gitdir: /main/.git/worktrees/w\n")]);
    check(TRUSTED, &[], false);
    check(TRUSTED, &repository, false);
    check(&entry("/work", "trusted"), &repository, true);
    check(&entry("/work", "untrusted"), &repository, false);
    check(&entry("/", "trusted"), &[], true);
    check(&entry("/", "trusted"), &repository, false);
    check(&entry("/main", "trusted"), &worktree, true);
    check(&entry("/other", "trusted"), &worktree, false);
}
