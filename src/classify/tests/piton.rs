//! Lines that are aimed at piton itself, and lines that are not.

use serde_json::json;

use super::cases::{WORKSPACE, verdict};
use super::evaluation::{context, policy};
use super::shared;
use crate::classify::{Context, ToolCall};
use crate::model::effect::Class;

#[test]
fn aimed_at_piton() {
    let lines = [
        "piton off",
        "piton delete 3 --yes",
        "piton prune --yes",
        "piton store clear --yes",
        "piton store delete 3 --yes",
        "piton store prune --yes",
        "piton daemon stop",
        "rm -rf ~/.local/share/piton",
        "rm -rf ~/.local/share/piton/store.git",
        "pkill piton",
        "pkill -9 -f 'piton daemon'",
        "killall piton",
        "kill $(pgrep piton)",
        "git -C ~/.local/share/piton/store.git gc",
        "echo x > ~/.local/share/piton/store.git/HEAD",
        "echo guard: off > ~/.config/piton/config.yaml",
        "sed -i s/turn/off/ ~/.config/piton/config.yaml",
        "rm -rf ~/.config",
        "systemctl --user stop piton",
        "piton uninstall",
        "sudo rm -rf ~/.local/share",
        "find ~/.local/share/piton -delete",
        "chmod -R 000 ~/.local/share/piton",
    ];
    for line in lines {
        let verdict = verdict(line);
        assert!(verdict.warnings.iter().any(|warning| warning.code == "piton-aimed-at"), "{line}: {verdict:?}");
        assert!(verdict.needs.warn() && verdict.effects.iter().any(|effect| effect.class == Class::Piton), "{line}");
    }
    for line in [
        "piton status",
        "piton list",
        "piton store list",
        "piton undo",
        "pgrep piton",
        "ls ~/.local/share/piton",
        "cat ~/.config/piton/config.yaml",
        "echo piton off",
        "git log --grep piton",
    ] {
        assert!(verdict(line).warnings.is_empty(), "{line}");
    }
}

#[test]
fn what_reaches_pitons_own_files_is_held() {
    let held = [
        "rm -rf ~/.local/share/piton",
        "rm -rf ~/.local/share/pit*",
        "rm -rf ~/.local/sh*/pi*/",
        "rm -rf ~/.local/share/*",
        "rm -rf ~/*",
        "rm -rf ~ && reboot",
        "rm -rf /",
        "rm -rf \"${XDG_DATA_HOME:-$HOME/.local/share}/piton\"",
        "du -a ~/.local/share/piton | cut -f2 | tac | xargs rm -rf",
        "rm -rf \"$(piton status --json | jq -r .store)\"",
        "S=$(piton store status --json | jq -r .home); rm -rf \"$S\"",
        "rm -rf \"$PITON_HOME\"",
        "cd \"$PITON_HOME\" && rm -rf store.git",
        "cp -rl ~/.local/share/piton hard",
        "find ~/.local/share -maxdepth 1 -name 'pit*' | parallel rm -rf",
        "for f in ~/.local/share/piton/store.git/refs/*/*; do dd if=/dev/null of=$f; done",
        "rm -rf $XDG_DATA_HOME/piton",
        "shred -n1 $(find ~/.local/share/piton -type f)",
        "ln ~/.local/share/piton/store.git/refs/piton/*/manual/2 .",
        "mkdir d && ln -s ~/.local/share/piton d/l && rm -rf d/*/",
        "python3 -c 'import os, shutil; shutil.rmtree(os.path.join(os.getenv(\"XDG_DATA_HOME\"), \"piton\"))'",
        "cp -rs ~/.local/share/piton soft",
        "env -i HOME=$HOME PITON_GUARD=off setsid -f piton daemon run",
        "ln ~/.local/share/piton/store.git/HEAD hard",
        "cd ~/proj && rm -rf ~+/../.local/share/piton",
        "tcsh -c 'rm -rf ~/.local/share/piton'",
        "piton mcp-proxy -- rm -rf ~/.local/share/piton",
        "(sleep 1; env -u CLAUDECODE piton forget draft.txt --yes) &",
        "env -i HOME=$HOME PATH=$PATH piton forget draft.txt --yes",
        "perl -MFile::Path=remove_tree -e 'remove_tree(\"$ENV{HOME}/.local/share/piton\")'",
        "awk 'BEGIN{system(\"rm -rf \" ENVIRON[\"HOME\"] \"/.local/share/piton\")}'",
        "python3 -c 'import shutil, os; shutil.rmtree(f\"{os.environ[\"HOME\"]}/.local/share/piton\")'",
        "cd ~/.local/share && rm -rf *",
        "cd ~/.local && rm -rf share",
        "S=piton; rm -rf ~/.local/share/$S",
        "find / -name '*.git' -exec rm -rf {} +",
        "sudo find / -name '*.git' -delete",
        "find ~/.local/share -mindepth 1 -maxdepth 1 -exec rm -rf {} \\;",
        "rsync -a --delete x/ ~/.local/share/",
        "tar --remove-files -cf x.tar ~/.local/share",
        "zip -m -r x.zip ~/.local/share/piton",
        "git -C ~/.local/share/piton/store.git gc --prune=now",
        "git --git-dir=$HOME/.local/share/piton/store.git update-ref -d refs/piton/a",
        "GIT_DIR=~/.local/share/piton/store.git git gc",
        "cd ~/.local/share/piton/store.git && git reflog expire --all",
        "chmod -R 000 ~/.local/share",
        "chown -R nobody ~/.local/share/piton",
        "ln -sfn x ~/.local/share/piton",
        "shred -u ~/.local/share/piton/store.git/packed-refs",
        "truncate -s 0 ~/.local/share/piton/store.git/objects/pack/*.pack",
        "mv ~/.local/share/piton x",
        "ls | xargs rm -rf ~/.local/share/piton",
        "bash -c 'rm -rf ~/.local/share/piton'",
        "unheard-of ~/.local/share/piton",
        "echo x >> ~/.config/piton/config.yaml",
        "rm -rf ~/.config/*",
        "rm -rf ~/.local/share/*/store.git",
        "rm -rf ~/.local/share/*/*",
        "find ~ -name 'store*' -exec rm -rf {} +",
        "find ~ -name '*.pack' -delete",
        "chmod 000 ~/.local/share/piton",
        "dd if=/dev/null of=~/.config/piton/config.yaml",
        "git push --mirror ~/.local/share/piton/store.git",
        "git push file://$HOME/.local/share/piton/store.git :refs/piton/x",
        "git -C ~/.local/share/piton/store.git branch -D x",
        "git -C ~/.local/share/piton/store.git push . :refs/piton/x",
        "git bundle create ~/.local/share/piton/store.git/HEAD --all",
        // Git takes it along as an untracked or ignored file.
        "git -C ~ clean -fdx",
        "cd ~ && git clean -fdx",
        "cd ~ && git clean -fd",
        "cd ~ && git clean -fdx .local",
        "git -C ~ clean -fx .local",
        "git -C ~ clean -fdx ':(glob).local/**'",
        "git -C ~ clean -fdx '*.git'",
        "git clean -fdx ~/.local",
        "GIT_WORK_TREE=~ git clean -fdx",
        "sh -c 'cd ~; git stash -u'",
        "git -C ~ clean -fdx $X",
        "git -C ~ stash -u",
        "git -C ~ stash push --all",
        "git -C ~ stash push -u -- .local",
        "git --work-tree=$HOME clean -fdx",
        "git -c core.worktree=$HOME clean -fdx",
        "git -C ~/.local/share clean -ffdx",
        "git -C ~/.local/share/piton clean -fd",
        // Another directory for the names.
        "tar --remove-files -czf /tmp/h.tgz -C ~ .local",
        "tar -C ~/.local --remove-files -cf x share",
        "tar cf x.tar --remove-files --directory=$HOME/.local/share piton",
        // Links.
        "ln -s ~/.local/share/piton l && rm -rf l/",
        "ln -s ~/.local/share/piton l; rm -rf l/*",
        "ln -s ~/.local/share/piton l; find l/ -delete",
        "ln -s ~/.local/share/piton l; rsync -a --delete x/ l/",
        "ln -s ~/.local/share/piton l; cd l && rm -rf ./*",
        "ln -s ~/.local/share/piton l; cd l && find . -delete",
        "ln -s ~/.local/share l; rm -rf l/piton",
        "ln -s ~/.config/piton/config.yaml l; echo x > l",
        "ln -s ~/.local/share/piton/store.git l; git -C l gc --prune=now",
        // Patterns of bash.
        "rm -rf ~/.local/share/!(nvim)",
        "cd ~; rm -rf !(proj)",
        "rm -rf ~/.local/share/@(piton|x)",
        "rm -rf ~/.local/share/+(p*)",
        "rm -rf ~/.local/share/?(x)piton",
        "rm -rf ~/.local/**/store.git",
        "rm -rf ~/.local/**",
        "truncate -s0 ~/.local/**/packed-refs",
        "rm -rf ~/*/../.local",
        // Defaults of variables.
        "rm -rf ${PITON_HOME:-~/.local/share/piton}",
        "D=${1:-~/.local/share/piton}; rm -rf $D",
        "D=\"${1:-$HOME/.local/share}\"; rm -rf \"$D/piton\"",
        "D=${1:-\"$HOME/.local/share/piton\"}; rm -rf $D",
        "rm -rf \"${PITON_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/piton}\"",
        "D=${PITON_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/piton}; rm -rf $D",
        ": ${D:=$HOME/.local/share/piton}; rm -rf $D",
        ": \"${D:=$HOME/.local/share/piton}\"; rm -rf \"$D\"",
        "export GIT_DIR=~/.local/share/piton/store.git; git gc --prune=now",
        "declare -x GIT_DIR=~/.local/share/piton/store.git; git gc",
        // Names that another command prints.
        "printf '%s\\0' ~/.local/share/piton | xargs -0 rm -rf",
        "echo ~/.local/share/piton | while read d; do rm -rf $d; done",
        "while read -r d; do rm -rf \"$d\"; done <<< ~/.local/share/piton",
        "ls -d ~/.local/share/* | xargs rm -rf",
        "ls -d ~/.local/share/* | grep piton | head -1 | xargs rm -rf",
        "echo ~/.local/share/* | tr ' ' '\\n' | xargs rm -rf",
        "find ~/.local/share -type f | while read f; do truncate -s0 \"$f\"; done",
        "ls ~/.local/share | xargs -I{} rm -rf ~/.local/share/{}",
        "cd ~/.local/share && ls | xargs rm -rf",
        "ls -d ~/.local/share/* | while read d; do rm -rf $d; done",
        "for d in $(ls -d ~/.local/share/*); do rm -rf $d; done",
        "rm -rf \"$(dirname ~/.local/share/piton/store.git)\"",
        "rm -rf \"$(realpath ~/.local/share/piton)\"",
        "rm -rf $(readlink -f ~/.local/share/piton)",
        "docker run -v \"$HOME\":/h alpine sh -c 'rm -rf /h/.local/share/*'",
        "docker run -v \"$HOME\":/h alpine sh -c 'rm -rf /h/.local/share'",
        // Loops in code.
        "python3 -c \"from glob import glob; from shutil import rmtree; from os.path import expanduser\nfor p in \
         glob(expanduser('~/.local/share/*')): rmtree(p)\"",
        "python3 -c \"import os, shutil, pathlib\nfor p in (pathlib.Path.home() / '.local/share').iterdir():\n    shutil.rmtree(p)\"",
        "python3 -c \"import os, shutil\nd = os.path.expanduser('~/.local/share')\nfor n in os.listdir(d):\n    \
         shutil.rmtree(os.path.join(d, n))\"",
        // piton cannot recognize the agent there.
        "setsid env -i HOME=$HOME piton forget f --yes",
        "env -i setsid -f /usr/local/bin/piton store clear --yes",
        "tmux new-window 'piton store clear --yes'",
        "echo 'piton store clear --yes' | at now",
        "(crontab -l; echo '* * * * * piton prune --yes') | crontab -",
        "systemd-run --user piton delete 3 --yes",
        "screen -dm piton unpin 3 --yes",
        "screen -dm piton pin --remove 3",
        "screen -dm piton store delete 3 --yes",
        "tmux new-window 'piton store prune --yes'",
        // Changes of each file that is found.
        "find ~/.local/share -exec sed -i s/a/b/ {} +",
        "find ~/.local/share -type f -exec truncate -s0 {} +",
        "find ~ -type f | xargs sed -i s/a/b/",
        "find ~ -type l -exec sh -c 'rm -rf \"$1\"/*' _ {} \\;",
        "find ~ -type l -exec rm -rf {}/ \\;",
        "find ~ -delete -type l",
        "find ~ -type l -o -delete",
        "find ~ ! -type l -delete",
    ];
    let is_missed = |line: &&str| {
        !verdict(line).hold.is_some_and(|hold| hold.contains("piton store move") && hold.contains("PITON_HOME"))
    };
    let missed: Vec<&str> = held.into_iter().filter(is_missed).collect();
    assert!(missed.is_empty(), "not saved: {missed:#?}");
    // These only read there, or change something beside them.
    let free = [
        "ls -R ~/.local/share/piton",
        "du -sh ~/.local/share",
        "cat ~/.config/piton/config.yaml",
        "git -C ~/.local/share/piton/store.git log --all",
        "cp -r ~/.local/share/piton copy",
        "cp -r ~/.local/share/piton \"$BACKUP\"",
        "cp -r src lib && piton run -- make",
        "env -u DEBUG piton list",
        "du -sh ~/.local/share/piton; make clean",
        "piton status && npm test",
        "GIT_DIR=~/.local/share/piton/store.git git show x",
        "rsync -a ~/.local/share/piton /mnt/backup/",
        "tar cf x.tar ~/.local/share/piton",
        "cp x ~/",
        "mv x ~/",
        "tar xf x.tar -C ~",
        "mkdir -p ~/.local/share/other",
        "rm ~/*.log",
        "rm -rf ~/.cache/*",
        "rm -rf ~/.local/share/pitons",
        "chmod -R 755 ~/.local/bin",
        "find . -name '*.git' -delete",
        "git gc",
        "git push origin main",
        "git -C ~/.local/share/piton/store.git fsck --full",
        "git -C ~/.local/share/piton/store.git branch -a",
        "find ~/.local/share/piton -type f",
        "find ~/.local/share/piton -name '*.pack' -exec git verify-pack {} +",
        "find ~ -name '*.pyc' -delete",
        "find ~ -type d -name __pycache__ -exec rm -rf {} +",
        "find ~ -name '*.swp' -print0 | xargs -0 rm -f",
        "find / -xdev -name core -type f -delete",
        "chmod 700 ~",
        "chmod go-w ~ ~/.ssh ~/.ssh/authorized_keys",
        "chown me ~/.config",
        "rm -rf ~/.local/share/*/Cache",
        "rm -f ~/.config/*/*.bak",
        "git -C ~ stash",
        "git -C ~ reset --hard",
        "git -C ~ clean -n",
        "git -C ~ clean -fdx proj/build",
        "git -C ~ clean -fdx '*.pyc'",
        "git -C ~ clean -f",
        "git clean -fdx",
        "git clean -ffdx .",
        "git stash -u",
        "git stash push -u -- src",
        "git -C ~/.local/share/nvim clean -fdx",
        "tar --remove-files -czf /tmp/h.tgz -C ~ proj",
        "tar -czf /tmp/h.tgz -C ~ .local",
        "tar -xf x.tar --remove-files -C ~/other a",
        "ln -s ~/.local/share/piton l; rm l",
        "ln -s ~/.local/share/piton l; rm -rf l",
        "ln -s ~/.local/share/piton l; ls -R l/",
        "ln -s ../shared l; rm -rf l/",
        "rm -rf ~/proj/!(src)",
        "rm -rf !(keep)",
        "rm ~/@(a|b).log",
        "rm -rf ~/.local/share/!(x).tmp",
        "rm -rf ~/.local/**/*.pyc",
        "rm -rf ~/**/node_modules",
        "rm -rf ~/*/../.cache/x",
        "rm -rf ${OUT:-~/proj/build}",
        "rm -rf ${OUT:-${TARGET:-build}}",
        "D=${1:-~/proj/build}; rm -rf $D",
        "ls ~/.local/share | grep piton",
        "echo a b | while read d; do rm -rf $d; done",
        "printf '%s\\0' a b | xargs -0 rm -rf",
        "ls -d build/* | xargs rm -rf",
        "ls -d build/* | grep x | sort | xargs rm -rf",
        "find ~ -name '*.tmp' | while read f; do rm \"$f\"; done",
        "find ~/.local/share -type f | while read f; do wc -l \"$f\"; done",
        "cd \"$(dirname \"$0\")\" && rm -rf build",
        "docker run -v \"$PWD\":/w alpine sh -c 'rm -rf /w/build/*'",
        "docker run alpine sh -c 'rm -rf /h/.local/share/*'",
        "python3 -c \"from glob import glob; import os\nfor p in glob('/home/dev/proj/build/*'): os.remove(p)\"",
        "tmux new-window 'piton list'",
        "setsid npm run dev",
        "tmux new-window 'vim notes-on-piton store.md'",
        "find ~ -type l -xtype l -delete",
        "find ~ -xtype l -delete",
        "find ~ -type l -delete",
        "find ~ -xtype l -exec rm {} +",
        "find ~ -xtype l | xargs rm -f",
        "find ~ -type f -exec cp {} ~ \\;",
        "find ~/.local/share -type f -exec grep -l x {} +",
        "find ~/proj -type f -exec sed -i s/a/b/ {} +",
        "find ~ -name '*.md' -exec sed -i s/a/b/ {} +",
    ];
    let missed: Vec<&str> = free.into_iter().filter(|line| verdict(line).hold.is_some()).collect();
    assert!(missed.is_empty(), "held: {missed:#?}");
}

#[test]
fn tools_that_reach_pitons_own_files_are_held() {
    let hold = |tool: &str, input: &serde_json::Value, context: &Context| {
        let call = ToolCall { tool, input, paths: &[], writes: None, external: None };
        shared().tool(&call, context, &policy()).hold
    };
    for (tool, input) in [
        ("mcp__filesystem__delete_directory", json!({"path": "~/.local/share"})),
        ("mcp__filesystem__delete_directory", json!({"path": "/home/dev/.local"})),
        ("remove_directory", json!({"path": "~"})),
        ("delete_file", json!({"target_file": "~/.local/share/piton/store.git"})),
        ("move_file", json!({"source": "~/.local/share", "destination": "x"})),
        ("move_file", json!({"source": "x", "destination": "~/.config/piton/config.yaml"})),
        ("Write", json!({"file_path": "~/.config/piton/config.yaml", "content": "x"})),
        ("delete_directory", json!({"path": "link/"})),
        ("Write", json!({"file_path": "link/HEAD", "content": "x"})),
    ] {
        assert!(hold(tool, &input, &linked()).is_some(), "{tool} {input}");
    }
    for (tool, input) in [
        ("delete_directory", json!({"path": "~/.cache"})),
        ("delete_directory", json!({"path": "build"})),
        ("delete_file", json!({"path": "link"})),
        ("move_file", json!({"source": "x", "destination": "~/.local/share"})),
        ("Write", json!({"file_path": "~/.local/share/x", "content": "x"})),
        ("list_directory", json!({"path": "~/.local/share/piton"})),
    ] {
        assert_eq!(hold(tool, &input, &linked()), None, "{tool} {input}");
    }
}

/// Returns surroundings with links that lead to piton's own files and to a directory around them.
fn linked() -> Context {
    let links = [("link", ".local/share/piton"), ("share", ".local/share")];
    let at = |(name, leads): (&str, &str)| (format!("{WORKSPACE}/{name}").into(), format!("/home/dev/{leads}").into());
    Context { links: links.map(at).to_vec(), ..context() }
}

#[test]
fn links_that_are_there_are_followed() {
    let hold = |line: &str| shared().shell(line, &linked(), &policy()).hold;
    for line in [
        "rm -rf link/",
        "rm -rf link/*",
        "rm -rf link/objects",
        "find link/ -delete",
        "rsync -a --delete x/ link/",
        "cd link && rm -rf ./*",
        "rm -rf share/piton",
        "rm -rf share/*",
        "cd share && rm -rf piton",
        "echo x > link/config.yaml",
    ] {
        assert!(hold(line).is_some(), "{line}");
    }
    for line in ["rm link", "rm -rf link", "ls link/", "mv link other", "rm -rf share/nvim", "rm -rf build/*"] {
        assert_eq!(hold(line), None, "{line}");
    }
}

#[test]
fn recipes_that_reach_pitons_own_files_are_held() {
    let hold = |makefile: &str| {
        let files = vec![(format!("{WORKSPACE}/GNUmakefile").into(), Some(makefile.into()))];
        shared().shell("make clean", &Context { files, ..context() }, &policy()).hold
    };
    for makefile in [
        "clean:\n\trm -rf $(HOME)/.local/share/piton\n",
        "D=$(HOME)/.local/share\nclean:\n\trm -rf $(D)/piton\n",
        "D = ~/.local\nclean:\n\trm -rf ${D}/share\n",
        "clean:\n\trm -rf $$HOME/.local/share/piton\n",
    ] {
        assert!(hold(makefile).is_some(), "{makefile}");
    }
    for makefile in
        ["clean:\n\trm -rf $(HOME)/.cache/x\n", "HOME = build\nclean:\n\trm -rf $(HOME)/.local/share/piton\n"]
    {
        assert_eq!(hold(makefile), None, "{makefile}");
    }
}

#[test]
fn the_top_of_a_repository_decides_on_what_a_stash_takes() {
    let hold = |line: &str, top: &str| {
        let tops = vec![(WORKSPACE.into(), top.into())];
        shared().shell(line, &Context { tops, ..context() }, &policy()).hold
    };
    assert_eq!(verdict("git stash -u").tops, [WORKSPACE]);
    for line in ["git stash -u", "git clean -fdx :/"] {
        assert!(hold(line, "/home/dev").is_some(), "{line}");
        assert_eq!(hold(line, WORKSPACE), None, "{line}");
    }
    assert_eq!(hold("git clean -fdx", "/home/dev"), None);
}
