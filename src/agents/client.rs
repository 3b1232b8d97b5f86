//! The agent clients by name.

use crate::error::{Code, Error, Result};
use crate::model::text::{cut, printable};

/// The end of the name under which the lines of a person are recorded.
const LINES: &str = "-lines";

/// An agent client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// Claude Code; `claude-code` on the command line.
    ClaudeCode,
    /// Codex; `codex`.
    Codex,
    /// Gemini CLI; `gemini-cli`.
    GeminiCli,
    /// opencode; `opencode`.
    Opencode,
    /// GitHub's Copilot CLI; `copilot-cli`.
    CopilotCli,
    /// Qwen Code, a fork of Gemini CLI; `qwen-code`.
    QwenCode,
    /// Cline; `cline`.
    Cline,
    /// pi; `pi`.
    Pi,
    /// Factory's droid; `droid`.
    Droid,
    /// Hermes Agent; `hermes-agent`.
    HermesAgent,
    /// Cursor; `cursor`.
    Cursor,
    /// Crush; `crush`.
    Crush,
    /// goose; `goose`.
    Goose,
    /// Kimi Code; `kimi-code`.
    KimiCode,
}

impl Client {
    /// All of them.
    pub const ALL: [Client; 14] = [
        Client::ClaudeCode,
        Client::Codex,
        Client::GeminiCli,
        Client::Opencode,
        Client::CopilotCli,
        Client::QwenCode,
        Client::Cline,
        Client::Pi,
        Client::Droid,
        Client::HermesAgent,
        Client::Cursor,
        Client::Crush,
        Client::Goose,
        Client::KimiCode,
    ];

    /// Returns the client of that name.
    ///
    /// # Errors
    /// `bad-request` with the names there are.
    pub fn named(name: &str) -> Result<Client> {
        let exact = Client::ALL.into_iter().find(|client| client.name() == name);
        // `claude` is `claude-code`; a word that begins several names is none of them.
        let is_first_word = |client: &Client| client.name().split_once('-').is_some_and(|(first, _)| first == name);
        let mut short = Client::ALL.into_iter().filter(is_first_word);
        exact.or_else(|| short.next().filter(|_| short.next().is_none())).ok_or_else(|| {
            let shown = cut(&printable(name), 60);
            let names: Vec<&str> = Client::ALL.iter().map(|client| client.name()).collect();
            Error::new(Code::BadRequest, format!("there is no client `{shown}`"))
                .field("client")
                .hint(format!("the clients are: {}", names.join(", ")))
        })
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the name of a session of the client, which names its run: the same by its hooks and by its stream.
    pub fn session_name(self, session: &str) -> String {
        format!("{}.{session}", self.name())
    }

    /// Returns the name of a sub-agent in a session of the client. The beginning of the session's id is enough: the client's id of a
    /// sub-agent is long by itself, and both together are no id of a run.
    pub fn agent_name(self, session: &str, agent: &str) -> String {
        let session: String = session.chars().take(8).collect();
        format!("{}.{session}.{agent}", self.name())
    }

    /// Returns the name under which the lines are recorded that a person types in the client's terminal. They are the person's work.
    pub fn lines_name(self) -> String {
        format!("{}{LINES}", self.name())
    }

    /// Returns the client in whose terminal a person types lines, by the name under which they are recorded.
    pub fn of_lines(name: &str) -> Option<Client> {
        Client::ALL.into_iter().find(|client| name.strip_suffix(LINES) == Some(client.name()))
    }

    /// Returns the name of the session of such lines.
    pub fn lines_session(self, session: &str) -> String {
        format!("{}.{session}", self.lines_name())
    }

    /// Returns the name for people.
    pub fn title(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Client::ClaudeCode => ("claude-code", "Claude Code"),
            Client::Codex => ("codex", "Codex"),
            Client::GeminiCli => ("gemini-cli", "Gemini CLI"),
            Client::Opencode => ("opencode", "opencode"),
            Client::CopilotCli => ("copilot-cli", "Copilot CLI"),
            Client::QwenCode => ("qwen-code", "Qwen Code"),
            Client::Cline => ("cline", "Cline"),
            Client::Pi => ("pi", "pi"),
            Client::Droid => ("droid", "Factory droid"),
            Client::HermesAgent => ("hermes-agent", "Hermes Agent"),
            Client::Cursor => ("cursor", "Cursor"),
            Client::Crush => ("crush", "Crush"),
            Client::Goose => ("goose", "goose"),
            Client::KimiCode => ("kimi-code", "Kimi Code"),
        }
    }
}
