//! The YAML dialect of `config/rules.yaml`, word for word. `docs/CLASSIFY.md` explains it to people.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::text::{List, Text};
use crate::model::effect::{Class, Severity, Stance};

/// A whole document: the embedded table, or a user's additions.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Document {
    /// Programs that only read, or whose writes do not matter.
    pub quiet: Text,
    /// Programs that take a long option by any beginning of its name.
    pub beginnings: Text,
    /// Ids of rules that do not apply.
    pub disable: Text,
    pub programs: Vec<ProgramSpec>,
    pub wrappers: Vec<WrapperSpec>,
    pub remotes: Vec<RemoteSpec>,
    pub databases: Vec<DatabaseSpec>,
    pub interpreters: Vec<InterpreterSpec>,
    pub calls: Vec<Spanned<CallSpec>>,
    pub rules: Vec<Spanned<RuleSpec>>,
}

/// The option grammar of programs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramSpec {
    pub program: Text,
    /// First operands for which it holds; for any without.
    #[serde(default)]
    pub sub: Text,
    /// Options that take the next argument.
    #[serde(default)]
    pub values: Text,
    /// Options that take the rest of their own argument only.
    #[serde(default)]
    pub attached: Text,
    /// `-name` is one option.
    #[serde(default)]
    pub single: bool,
    /// Options are the same in upper and lower case; rules spell them in lower case.
    #[serde(default)]
    pub fold: bool,
}

/// Programs that run the command given as their arguments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrapperSpec {
    pub program: Text,
    #[serde(default)]
    pub sub: Text,
    #[serde(default)]
    pub values: Text,
    #[serde(default)]
    pub attached: Text,
    /// The number of operands before the command.
    #[serde(default)]
    pub skip: usize,
    /// The name of the file that it writes unless the first operand names another (`script`); empty if it writes none.
    #[serde(default)]
    pub makes: Text,
    /// `NAME=value` may stand before the command.
    #[serde(default)]
    pub assignments: bool,
    /// With one of these the command is not run (`command -v`, `sudo -l`).
    #[serde(default)]
    pub unless: Text,
    /// The command is what follows `--`, if that is given.
    #[serde(default)]
    pub dashes: bool,
    /// Options whose value is a command line of its own (`env -S`, `script -c`).
    #[serde(default)]
    pub line: Text,
    /// The operands together are one command line (`watch`).
    #[serde(default)]
    pub joined: bool,
    /// Each operand is a command line (`concurrently`).
    #[serde(default)]
    pub each: bool,
    /// Only the lines of its options are commands: the rules judge the rest (`tar --to-command`).
    #[serde(default)]
    pub beside: bool,
    /// Options whose value is the directory to run in.
    #[serde(default)]
    pub directory: Text,
    /// Runs it as another user, usually root.
    #[serde(default)]
    pub privileged: bool,
    /// Fetches what it runs: an unknown command is `exec-remote`.
    #[serde(default)]
    pub fetches: bool,
}

/// Programs that run a command elsewhere.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoteSpec {
    pub program: Text,
    #[serde(default)]
    pub sub: Text,
    #[serde(default)]
    pub values: Text,
    #[serde(default)]
    pub single: bool,
    /// Operands before the command (the host, the container).
    #[serde(default)]
    pub skip: usize,
    /// The command only follows `--`.
    #[serde(default)]
    pub dashes: bool,
    /// Options whose value is the command line.
    #[serde(default)]
    pub line: Text,
    /// The rest is one command line for a shell over there (`ssh`).
    #[serde(default)]
    pub joined: bool,
    /// The class of effects over there.
    pub class: Class,
    /// A local directory mounted inside makes inner paths local again (`-v`).
    #[serde(default)]
    pub mounts: Text,
    /// True if the container takes everything with it that is not mounted.
    #[serde(default)]
    pub fresh: bool,
    /// With one of these nothing runs (`ssh -V`).
    #[serde(default)]
    pub unless: Text,
}

/// Clients of databases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseSpec {
    pub program: Text,
    pub language: QueryLanguage,
    /// The dialect of SQL that it reads.
    #[serde(default)]
    pub dialect: SqlDialect,
    #[serde(default)]
    pub sub: Text,
    #[serde(default)]
    pub values: Text,
    #[serde(default)]
    pub single: bool,
    /// Options whose value is a query.
    #[serde(default)]
    pub query: Text,
    /// Options whose value is a file of queries.
    #[serde(default)]
    pub file: Text,
    /// The operand (from 0) from which on operands are queries.
    pub operand: Option<usize>,
    /// The operand that is the database's file.
    pub local: Option<usize>,
    /// With one of these nothing can be written.
    #[serde(default)]
    pub unless: Text,
    /// Operands that end so are files of queries; with this, other operands are none.
    #[serde(default)]
    pub scripts: Text,
}

/// The language that a database client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueryLanguage {
    Sql,
    Redis,
    Mongo,
}

/// A dialect of SQL: what is a literal, what a comment, and which grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SqlDialect {
    /// Not known.
    #[default]
    Generic,
    Postgres,
    Mysql,
    Sqlite,
    Duckdb,
    Clickhouse,
    Mssql,
    Bigquery,
    Snowflake,
    Oracle,
}

/// Programs that run code given on the line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterpreterSpec {
    pub program: Text,
    pub language: CodeLanguage,
    #[serde(default)]
    pub values: Text,
    #[serde(default)]
    pub attached: Text,
    #[serde(default)]
    pub single: bool,
    /// Options whose value is code.
    #[serde(default)]
    pub code: Text,
    /// The subcommand whose operands are code (`deno eval`).
    #[serde(default)]
    pub sub: Text,
    /// Options with which nothing foreign is run (`-m py_compile`, `--check`).
    #[serde(default)]
    pub unless: Text,
    /// Operands that are code themselves (`awk`).
    #[serde(default)]
    pub operand: bool,
    /// Options that name modules to load (`-M`, `--require`).
    #[serde(default)]
    pub loads: Text,
    /// The code runs within an application (`rails runner`), whose parts nobody sees.
    #[serde(default)]
    pub within: bool,
}

/// A language whose calls can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CodeLanguage {
    Shell,
    Python,
    Javascript,
    Ruby,
    Perl,
    Php,
    Awk,
    Powershell,
    Lisp,
    Vim,
    /// Any other; it is read as if it were Python.
    Other,
}

/// A call that does something, in code given to an interpreter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallSpec {
    /// Languages it occurs in.
    pub language: List<CodeLanguage>,
    /// A regular expression over the code, in which comments and the inside of long strings are blanked out.
    #[serde(default)]
    pub pattern: Text,
    /// Instead of a pattern: names of functions (`os.remove`), of methods (`.unlink`), and those that count wherever they come from
    /// (`*rmSync`).
    #[serde(default)]
    pub call: Text,
    /// Instead of a pattern: modules whose calls are harmless, but for those that other rows name.
    #[serde(default)]
    pub harmless: Text,
    /// Names of its parameters, in their order.
    #[serde(default)]
    pub params: Text,
    /// The parameters that are targets: a name, `name=default`, `self`, `*` for all values, `*1` for those from the second on.
    #[serde(default)]
    pub target: Text,
    /// A parameter, and the pieces of text of which its value has one; without them, it is given and not false.
    #[serde(default)]
    pub mode: Text,
    /// The method is called on a path.
    #[serde(default)]
    pub of_path: bool,
    /// A change of a database that is no query.
    #[serde(default)]
    pub no_query: bool,
    /// The pattern is only looked for in code that runs within an application (`rails runner`).
    #[serde(default)]
    pub within: bool,
    /// `None`: the argument is a shell command line.
    pub class: Option<Class>,
    #[serde(default)]
    pub severity: Option<Severity>,
}

/// One rule. All conditions must hold; the first rule of a program that holds decides.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleSpec {
    pub id: Text,
    /// Names of programs, without directories.
    pub program: Text,
    /// Alternatives of leading operands, separated by commas; `*` and `a|b` inside a word.
    #[serde(default)]
    pub sub: Text,
    /// One of these options is given.
    #[serde(default)]
    pub when: Text,
    /// And one of these.
    #[serde(default)]
    pub also: Text,
    /// None of these options is given.
    #[serde(default)]
    pub unless: Text,
    /// An operand matches.
    pub operand: Option<Text>,
    /// No operand matches.
    pub no_operand: Option<Text>,
    /// The last operand matches.
    pub last: Option<Text>,
    /// The value of an option, or an operand, matches.
    pub value: Option<Text>,
    #[serde(default)]
    pub at_least: usize,
    pub at_most: Option<usize>,
    /// It runs as root (behind `sudo`).
    #[serde(default)]
    pub root: bool,
    /// Something is piped or redirected into it.
    #[serde(default)]
    pub input: bool,
    /// `--dry-run` and `--help` do not silence it.
    #[serde(default)]
    pub always: bool,

    /// The class of its effect; without a class the command is understood and harmless.
    pub class: Option<Class>,
    /// Further classes of the same action.
    #[serde(default)]
    pub and: List<Class>,
    #[serde(default)]
    pub severity: Option<Severity>,
    /// The place of its targets: `operands first last rest init here`, or options whose value is one. `first.zip` is the first with
    /// that ending where it has none. `operands^.gz` is each with that ending or, where it has it, without it. `rest+-i` is the rest
    /// with the value of an option at their end, and `last+~` the last with a text there.
    #[serde(default)]
    pub target: Text,
    /// Targets must be given, else the rule does not hold.
    #[serde(default)]
    pub needs_target: bool,
    /// It makes files (`file-write`), and replaces one that stands there: whoever may look at the disk has to.
    #[serde(default)]
    pub replaces: bool,
    /// Operands are addresses: on this very machine it is only recorded.
    #[serde(default)]
    pub address: bool,
    /// It cannot be seen into.
    #[serde(default)]
    pub opaque: bool,
    /// Subcommands that are harmless beside the usual ones that read; with any other one, it cannot be seen into.
    pub known: Option<Text>,
    /// Its operands name a script; alarming names count.
    #[serde(default)]
    pub named: bool,
    pub reversible: Option<bool>,
    pub checkpoint: Option<bool>,
    pub warn: Option<bool>,
    /// `allow`, `warn`, `ask` or `deny`.
    pub answer: Option<Stance>,
    /// A sentence for people; `{verb}` is the program with its subcommand.
    pub say: Option<Text>,

    /// Lines that must give this class, one per list item.
    #[serde(default, rename = "match")]
    #[allow(dead_code, reason = "examples are run by the tests; build.rs drops them")]
    pub matches: List<Text>,
    /// Lines that this rule must not hold for.
    #[serde(default, rename = "not")]
    #[allow(dead_code, reason = "examples are run by the tests; build.rs drops them")]
    pub misses: List<Text>,
}
