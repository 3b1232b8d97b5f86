//! The uncommitted work that a git command takes away, by its verb and its options.

use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::FoundEffect;
use crate::model::effect::Class;
use crate::model::loss::{Loss, RepositoryFiles, RepositoryLoss, WorkSort};
use crate::model::pathspec::PathspecMagic;

use super::Walk;
use WorkSort::{Ignored, Staged, Unstaged, Untracked};

/// The most commands of one line whose losses are looked at.
const MOST: usize = 64;

/// The rule of `git worktree remove`, which names the work tree that goes.
const WORKTREE: &str = "git-worktree";

/// Verbs that rewrite commits, and check files out for that.
const REWRITING: [&str; 3] = ["rebase", "filter-branch", "filter-repo"];

/// The words behind a verb, sorted.
struct VerbWords<'a> {
    /// Long options, and single letters of short ones, each with its dashes.
    options: Vec<String>,
    /// Words that are no options, before `--`.
    operands: Vec<&'a Arg>,
    /// Words behind `--`.
    paths: Vec<&'a Arg>,
    /// The values of options, as far as they are known.
    values: Vec<&'a str>,
}

impl<'a> VerbWords<'a> {
    /// Sorts the words of a verb. `valued` are the options whose value is the next word.
    fn of(args: &'a [Arg], valued: &[&str]) -> VerbWords<'a> {
        let mut words = VerbWords { options: Vec::new(), operands: Vec::new(), paths: Vec::new(), values: Vec::new() };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let text = arg.text.as_str();
            if text == "--" {
                words.paths.extend(rest);
                break;
            }
            let whole = |arg: &'a Arg| arg.exact();
            match text.strip_prefix('-') {
                None | Some("") => words.operands.push(arg),
                Some(long) if long.starts_with('-') => {
                    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                    if valued.contains(&name) {
                        let value = if value.is_some() {
                            value.filter(|_| arg.is_exact())
                        } else {
                            rest.next().and_then(whole)
                        };
                        words.values.extend(value);
                    }
                    words.options.push(name.to_owned());
                }
                Some(letters) => {
                    let each: Vec<String> = letters.chars().map(|letter| format!("-{letter}")).collect();
                    // The rest of the word is its value, or the next word is.
                    let value = each.iter().position(|option| valued.contains(&option.as_str()));
                    if let Some(at) = value {
                        let own: usize = letters.chars().take(at + 1).map(char::len_utf8).sum();
                        let attached = Some(&letters[own..]).filter(|value| !value.is_empty());
                        let value = if attached.is_some() {
                            attached.filter(|_| arg.is_exact())
                        } else {
                            rest.next().and_then(whole)
                        };
                        words.values.extend(value);
                    }
                    words.options.extend(each.into_iter().take(value.map_or(usize::MAX, |at| at + 1)));
                }
            }
        }
        words
    }

    /// Returns true if one of some options is there. Long ones have their whole names here (`rules/beginnings`).
    fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.as_str()))
    }

    fn all(&self) -> Vec<&'a Arg> {
        self.operands.iter().chain(&self.paths).copied().collect()
    }
}

/// The loss by a command: its sorts of work, and the pathspecs; none for the whole repository.
type Taken<'a> = Option<(Vec<WorkSort>, Vec<&'a Arg>)>;

impl Walk<'_> {
    /// Notes the uncommitted work that a git command takes away. `args` begin with its verb.
    pub(super) fn git_loses(&mut self, args: &[Arg], shell: &Shell) {
        let Some(dir) = shell.cwd.as_ref().filter(|_| !self.site.elsewhere && self.losses.len() < MOST) else { return };
        let trees = removed_trees(args).into_iter().filter_map(Arg::exact).map(|tree| resolve(dir, tree));
        self.losses.extend(trees.map(|tree| Loss::Tree(tree.to_string_lossy().into_owned())));
        let Some((sorts, pathspecs)) = taken(args) else { return };
        // A word that is not known names nothing that is known.
        let mut known: Vec<String> =
            pathspecs.iter().filter(|arg| arg.is_exact() || arg.glob).map(|arg| arg.text.clone()).collect();
        let is_sparing = |word: &String| PathspecMagic::of(word).is_some_and(|magic| magic.is_excluding);
        if known.len() < pathspecs.len() && known.iter().all(is_sparing) {
            return;
        }
        if args.first().is_some_and(|verb| verb.text == "clean") {
            if known.iter().all(is_sparing) {
                // It works in its own directory, where no word names another one.
                known.push(".".to_owned());
            }
            known.extend(spared_by_clean(&args[1..]));
        }
        let dir = dir.to_string_lossy().into_owned();
        self.losses.push(Loss::Repository(RepositoryLoss { dir, pathspecs: known, sorts }));
    }
}

impl Walk<'_> {
    /// Notes the files that a git command replaces or removes, where that was found from `first` on. `args` begin with its verb.
    pub(super) fn git_reaches(&mut self, first: usize, args: &[Arg], shell: &Shell) {
        let Some(dir) = shell.cwd.as_ref().filter(|_| !self.site.elsewhere && self.repositories.len() < MOST) else {
            return;
        };
        let verb = args.first().map_or("", |arg| arg.text.as_str());
        let takes = |found: &FoundEffect| match found.class {
            Class::VcsDiscard => found.rule != WORKTREE,
            Class::VcsHistory => REWRITING.contains(&verb),
            Class::FileDelete => verb == "rm",
            Class::FileMove | Class::FileOverwrite => verb == "mv",
            _ => false,
        };
        if !self.found[first.min(self.found.len())..].iter().any(takes) {
            return;
        }
        let (sorts, pathspecs) = match taken(args) {
            Some(taken) => taken,
            // git refuses to remove a file with changes, unless it is forced.
            None if matches!(verb, "rm" | "mv") => return,
            None => (vec![Staged, Unstaged], Vec::new()),
        };
        let is_clean = verb == "clean";
        let is_known = pathspecs.iter().all(|arg| arg.is_exact() || arg.glob);
        let pathspecs: Vec<String> = match () {
            // It works in its own directory, where no word names another one.
            () if is_clean && pathspecs.is_empty() => vec![".".to_owned()],
            () if is_known => pathspecs.iter().map(|arg| arg.text.clone()).collect(),
            () => Vec::new(),
        };
        let untracked = sorts.iter().any(|sort| matches!(sort, Untracked | Ignored));
        let files = RepositoryFiles { dir: dir.to_string_lossy().into_owned(), pathspecs, untracked };
        if !self.repositories.contains(&files) {
            self.repositories.push(files);
        }
    }
}

impl Walk<'_> {
    /// Reports a command that takes piton's own files along as untracked or ignored ones. `args` begin with its verb.
    pub(super) fn git_sweeps(&mut self, args: &[Arg], shell: &Shell) {
        let Some(verb) = args.first().filter(|verb| matches!(verb.text.as_str(), "clean" | "stash")) else { return };
        let (Some((sorts, pathspecs)), Some(dir)) = (taken(args), shell.cwd.clone()) else { return };
        let is_untracked = sorts.iter().any(|sort| matches!(sort, Untracked | Ignored));
        // Without a path and without `-d`, `clean` enters no untracked directory.
        let is_clean = verb.text == "clean";
        let enters = !is_clean || !pathspecs.is_empty() || VerbWords::of(&args[1..], SPARING).has(&["-d"]);
        if self.site.elsewhere || !is_untracked || !enters {
            return;
        }
        let selects = |arg: &&Arg| !PathspecMagic::of(&arg.text).is_some_and(|magic| magic.is_excluding);
        let selecting: Vec<&Arg> = pathspecs.into_iter().filter(selects).collect();
        let is_whole = |arg: &&Arg| arg.text.starts_with(':') || !(arg.is_exact() || arg.glob);
        let takes_all = selecting.is_empty() || selecting.iter().any(is_whole);
        // Only `clean` without such a path works in its own directory.
        let top = if takes_all && !(is_clean && selecting.is_empty()) { self.top_of(&dir) } else { None };
        let is_around =
            takes_all && (self.near_piton(&dir).is_some() || top.is_some_and(|top| self.near_piton(&top).is_some()));
        let is_named = |arg: &&Arg| {
            let path = resolve(&dir, &arg.text);
            let is_pattern = arg.text.contains(['*', '?', '[']);
            self.near_piton(&path).is_some() || is_pattern && self.context.may_select_piton(&path)
        };
        if is_around || selecting.iter().filter(|arg| !is_whole(arg)).any(is_named) {
            self.reaches_own_files(&format!("git {}", verb.text), verb.span);
        }
    }
}

fn taken(args: &[Arg]) -> Taken<'_> {
    let (verb, rest) = args.split_first()?;
    let all = || Some((vec![Staged, Unstaged], Vec::new()));
    match verb.text.as_str() {
        "reset" => {
            let words = VerbWords::of(rest, &[]);
            if words.has(&["--hard"]) { all() } else { words.has(&["--merge"]).then(|| (vec![Staged], Vec::new())) }
        }
        "checkout" => of_checkout(&VerbWords::of(rest, &["-b", "-B", "--orphan", "--conflict"])),
        "switch" => {
            let words = VerbWords::of(rest, &["-c", "-C", "--create", "--force-create", "--orphan", "--conflict"]);
            if words.has(&["-f", "--force", "--discard-changes"]) { all() } else { None }
        }
        "restore" => of_restore(&VerbWords::of(rest, &["-s", "--source", "--conflict"])),
        "clean" => of_clean(&VerbWords::of(rest, SPARING)),
        "stash" => of_stash(rest),
        "rm" => {
            let words = VerbWords::of(rest, &[]);
            let is_forced = words.has(&["-f", "--force"]) && !words.has(&["--cached", "-n", "--dry-run"]);
            of_paths(vec![Staged, Unstaged], words.all()).filter(|_| is_forced)
        }
        "mv" => {
            let words = VerbWords::of(rest, &[]);
            let is_forced = words.has(&["-f", "--force"]) && !words.has(&["-n", "--dry-run"]);
            // In a directory, it replaces the file of the same name: that is not named here.
            let target = words.all().pop().filter(|target| is_forced && !target.text.ends_with('/'));
            target.map(|target| (vec![Staged, Unstaged, Untracked], vec![target]))
        }
        "read-tree" => {
            let words = VerbWords::of(rest, &["--prefix", "--index-output"]);
            if words.has(&["--reset"]) && words.has(&["-u"]) { all() } else { None }
        }
        "checkout-index" => {
            let words = VerbWords::of(rest, &["--prefix", "--stage"]);
            let is_all = words.has(&["-a", "--all"]);
            let paths = if is_all { Vec::new() } else { words.all() };
            let is_done = words.has(&["-f", "--force"]) && (is_all || !paths.is_empty());
            is_done.then(|| (vec![Unstaged], paths))
        }
        "rebase" if VerbWords::of(rest, &[]).has(&["--abort", "--skip"]) => all(),
        _ => None,
    }
}

/// Returns the linked work trees that a command removes, whatever is in them; without a force, git refuses where work would be lost.
fn removed_trees(args: &[Arg]) -> Vec<&Arg> {
    let [verb, rest @ ..] = args else { return Vec::new() };
    let words = VerbWords::of(rest, &[]);
    let is_removal = verb.text == "worktree" && words.operands.first().is_some_and(|word| word.text == "remove");
    let trees = words.all().into_iter().skip(1).collect();
    if is_removal && words.has(&["-f", "--force"]) { trees } else { Vec::new() }
}

fn of_paths(sorts: Vec<WorkSort>, paths: Vec<&Arg>) -> Taken<'_> {
    (!paths.is_empty()).then_some((sorts, paths))
}

fn of_checkout<'a>(words: &VerbWords<'a>) -> Taken<'a> {
    let is_forced = words.has(&["-f", "--force"]);
    let makes = words.has(&["-b", "-B", "--orphan", "-t", "--track", "-d", "--detach"]);
    if words.has(&["-p", "--patch", "--pathspec-from-file"]) || (makes && !is_forced) {
        return None;
    }
    if !words.paths.is_empty() {
        // Without a commit the files come from the index.
        let sorts = if words.operands.is_empty() { vec![Unstaged] } else { vec![Staged, Unstaged] };
        return Some((sorts, words.paths.clone()));
    }
    let is_path = |arg: &&Arg| {
        let text = arg.text.as_str();
        let named = || text.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && !end.contains('/'));
        text == "."
            || text == ".."
            || text.starts_with("./")
            || text.starts_with("../")
            || text.ends_with('/')
            || named()
    };
    match words.operands.as_slice() {
        [] | [_] if is_forced && !words.operands.first().is_some_and(is_path) => {
            Some((vec![Staged, Unstaged], Vec::new()))
        }
        // A branch of that name is no path, and a path is no branch: git refuses a word that is both.
        [one] => Some((vec![Unstaged], vec![*one])),
        several => of_paths(vec![Staged, Unstaged], several.to_vec()),
    }
}

fn of_restore<'a>(words: &VerbWords<'a>) -> Taken<'a> {
    let is_index_alone = words.has(&["-S", "--staged"]) && !words.has(&["-W", "--worktree"]);
    if words.has(&["-p", "--patch"]) || is_index_alone {
        return None;
    }
    let is_from_commit = words.has(&["-S", "--staged", "-s", "--source"]);
    of_paths(if is_from_commit { vec![Staged, Unstaged] } else { vec![Unstaged] }, words.all())
}

fn of_clean<'a>(words: &VerbWords<'a>) -> Taken<'a> {
    let is_done = words.has(&["-f", "--force"]) && !words.has(&["-n", "--dry-run", "-i", "--interactive"]);
    let sorts = match (words.has(&["-X"]), words.has(&["-x"])) {
        (true, _) => vec![Ignored],
        (false, true) => vec![Untracked, Ignored],
        (false, false) => vec![Untracked],
    };
    is_done.then(|| (sorts, words.all()))
}

/// The options of `clean` whose values are patterns.
const SPARING: &[&str] = &["-e", "--exclude"];

/// Returns as pathspecs what the patterns of `git clean -e` spare; with `-X` they name more that goes.
fn spared_by_clean(rest: &[Arg]) -> Vec<String> {
    let words = VerbWords::of(rest, SPARING);
    // A pattern with `!` takes a file out of those that others spare.
    let is_unknown = words.has(&["-X"]) || words.values.iter().any(|pattern| pattern.starts_with('!'));
    let patterns = if is_unknown { Vec::new() } else { words.values };
    let known = patterns.into_iter().filter(|pattern| !pattern.starts_with('#'));
    let spec = |pattern: &str| {
        // As a line of an ignore file: without a `/` inside, it counts in each directory.
        let name = pattern.trim_end_matches('/');
        let place = if name.contains('/') { name.trim_start_matches('/').to_owned() } else { format!("**/{name}") };
        // With a `/` at its end, it spares no file of that name.
        let forms = if pattern.ends_with('/') { &["/**"][..] } else { &["", "/**"] };
        forms.iter().map(move |below| format!(":(top,exclude,glob){place}{below}"))
    };
    known.flat_map(spec).collect()
}

fn of_stash(rest: &[Arg]) -> Taken<'_> {
    let verb = rest.first().map(|arg| arg.text.as_str()).filter(|text| !text.starts_with('-'));
    let rest = match verb {
        None => rest,
        Some("push" | "save") => &rest[1..],
        Some(_) => return None,
    };
    let words = VerbWords::of(rest, &["-m", "--message"]);
    if words.has(&["-p", "--patch", "--pathspec-from-file"]) {
        return None;
    }
    let sorts = match () {
        () if words.has(&["-S", "--staged"]) => vec![Staged],
        () if words.has(&["-a", "--all"]) => vec![Staged, Unstaged, Untracked, Ignored],
        () if words.has(&["-u", "--include-untracked"]) => vec![Staged, Unstaged, Untracked],
        () if words.has(&["-k", "--keep-index"]) => vec![Unstaged],
        () => vec![Staged, Unstaged],
    };
    // The words of `save` are its message.
    let paths = if verb == Some("save") { words.paths.clone() } else { words.all() };
    Some((sorts, paths))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Classifier, Context};
    use crate::settings;

    #[test]
    fn each_verb_takes_its_sorts_of_work() {
        let (classifier, policy) =
            (Classifier::embedded(), settings::resolve(&settings::Sources::default()).unwrap().policy);
        let files = vec![("/w/reset.sh".into(), Some("cd sub\ngit reset --hard\n".into()))];
        let context = Context { cwd: "/w".into(), workspace: "/w".into(), files, ..Context::default() };
        let letter = |sort: &WorkSort| match sort {
            Staged => 's',
            Unstaged => 'u',
            Untracked => '?',
            Ignored => '!',
        };
        for (line, expected) in [
            ("git reset --hard", "su"),
            ("git reset --hard HEAD~1", "su"),
            ("git reset --har", "su"),
            ("git reset --merge", "s"),
            ("git reset --keep HEAD~1", ""),
            ("git reset", ""),
            ("git reset -- a", ""),
            ("git -C sub reset --hard", "su in /w/sub"),
            ("cd sub; git reset --hard", "su in /w/sub"),
            ("git checkout -f", "su"),
            ("git checkout -f main", "su"),
            ("git checkout -f feature/x", "su"),
            ("git checkout -f .", "u ."),
            ("git checkout main", "u main"),
            ("git checkout .", "u ."),
            ("git checkout -- a 'b c'", "u a b c"),
            ("git checkout HEAD -- a", "su a"),
            ("git checkout HEAD a", "su HEAD a"),
            ("git checkout -b x main", ""),
            ("git checkout -p", ""),
            ("git checkout -- *.rs", "u *.rs"),
            ("git checkout -- $FILE", ""),
            ("git switch main", ""),
            ("git switch --discard-changes main", "su"),
            ("git switch -fc x", "su"),
            ("git restore a", "u a"),
            ("git restore .", "u ."),
            ("git restore -S .", ""),
            ("git restore -SW .", "su ."),
            ("git restore --source=HEAD~1 a", "su a"),
            ("git restore -s HEAD~1 a", "su a"),
            ("git clean -fd", "? ."),
            ("git clean -fdx", "?! ."),
            ("git clean -fdX", "! ."),
            ("git clean -fdX -e a", "! ."),
            ("git clean -n", ""),
            ("git clean -fdn", ""),
            ("git clean -fd -e keep build", "? build :(top,exclude,glob)**/keep :(top,exclude,glob)**/keep/**"),
            ("git clean -fde/a/b", "? . :(top,exclude,glob)a/b :(top,exclude,glob)a/b/**"),
            ("git clean -fd --exclude=b/", "? . :(top,exclude,glob)**/b/**"),
            ("git clean -fd -e '*' -e '!b'", "? ."),
            ("git mv -f b a", "su? a"),
            ("git mv b a", ""),
            ("git clean -fd -e '!keep'", "? ."),
            ("git clean -fd -e $KEEP", "? ."),
            ("git clean -fd ':!a'", "? :!a ."),
            ("git checkout -- . ':!a'", "u . :!a"),
            ("git checkout -- ':!a'", "u :!a"),
            ("git checkout -- $FILE ':!a'", ""),
            ("git restore . :^a", "u . :^a"),
            ("git stash", "su"),
            ("git stash -u", "su?"),
            ("git stash push -m 'x y' -- a", "su a"),
            ("git stash save wip", "su"),
            ("git stash --keep-index", "u"),
            ("git stash pop", ""),
            ("git stash list", ""),
            ("git rm a", ""),
            ("git rm -f a", "su a"),
            ("git rm --cached -f a", ""),
            ("git read-tree -u --reset HEAD", "su"),
            ("git checkout-index -fa", "u"),
            ("git rebase --abort", "su"),
            ("git merge --abort", ""),
            ("git commit -am x", ""),
            ("git status", ""),
            ("ssh host git reset --hard", ""),
            ("sh -c 'git reset --hard'", "su"),
            ("sh reset.sh", "su in /w/sub"),
            ("git worktree remove ../wt", ""),
            ("git worktree remove --force ../wt", "/wt/**"),
            ("git worktree remove -ff -- wt", "/w/wt/**"),
            ("git worktree prune -f", ""),
            ("git -c alias.wipe='reset --hard' wipe", "su"),
        ] {
            let losses = classifier.shell(line, &context, &policy).losses;
            let shown = losses.iter().filter_map(|loss| match loss {
                Loss::Repository(loss) => {
                    let sorts: String = loss.sorts.iter().map(letter).collect();
                    let words = loss.pathspecs.iter().map(String::as_str);
                    let dir = if loss.dir == "/w" { String::new() } else { format!(" in {}", loss.dir) };
                    Some(std::iter::once(sorts.as_str()).chain(words).collect::<Vec<_>>().join(" ") + &dir)
                }
                Loss::Tree(path) => Some(format!("{path}/**")),
                Loss::File(_) | Loss::Matches(_) => None,
            });
            assert_eq!(shown.collect::<Vec<_>>().join(", "), expected, "{line}");
        }
    }
}
