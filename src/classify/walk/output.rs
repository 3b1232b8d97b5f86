//! The output of commands, where it decides what the next one runs.

use std::path::PathBuf;

use super::Stream;
use super::dispatch::Invocation;
use crate::classify::expand::Arg;

/// The place to which redirects send a command's output.
pub(super) enum OutputPlace {
    /// Nowhere else: it flows on to the next command.
    Onward,
    /// A file whose path the line does not tell.
    Unknown,
    /// The file at this path.
    File(PathBuf),
}

/// Programs whose output is shell code for their own set-up.
const SETUP: [&str; 38] = [
    "ssh-agent",
    "direnv",
    "pyenv",
    "rbenv",
    "nodenv",
    "jenv",
    "goenv",
    "brew",
    "starship",
    "zoxide",
    "mise",
    "asdf",
    "fnm",
    "conda",
    "mamba",
    "micromamba",
    "opam",
    "dircolors",
    "minikube",
    "docker-machine",
    "luarocks",
    "thefuck",
    "atuin",
    "gpg-agent",
    "keychain",
    "kubectl",
    "gh",
    "helm",
    "rustup",
    "register-python-argcomplete",
    "fzf",
    "pip",
    "poetry",
    "volta",
    "lesspipe",
    "nvm",
    "rtx",
    "resize",
];

/// Returns what one list prints, from what two of its parts print.
pub(super) fn join(first: Stream, second: Stream) -> Stream {
    match (first, second) {
        (Stream::Nothing, other) | (other, Stream::Nothing) => other,
        (Stream::Text(first), Stream::Text(second)) => Stream::Text(first + &second),
        (Stream::Remote, _) | (_, Stream::Remote) => Stream::Remote,
        (Stream::Decoded, _) | (_, Stream::Decoded) => Stream::Decoded,
        _ => Stream::Opaque,
    }
}

/// Returns what a command prints.
pub(super) fn made_by(call: &Invocation<'_>) -> Stream {
    let args = call.args;
    let decodes = |options: &[&str]| args.iter().any(|arg| options.contains(&arg.text.as_str()));
    match call.program {
        "echo" | "write-output" => echo(args),
        "printf" => printf(args),
        "pwd" | "true" | "false" | ":" | "cd" | "mkdir" | "export" | "set" | "test" | "[" | "trap" | "rm" => {
            Stream::Nothing
        }
        "cat" | "bat" | "tee" | "sponge" | "get-content" => passed(call),
        "curl" | "wget" | "fetch" | "http" | "https" | "xh" | "aria2c" | "lynx" | "iwr" | "irm"
        | "invoke-webrequest" | "invoke-restmethod" | "nc" | "ncat" | "netcat" => Stream::Remote,
        "base64" | "base32" if decodes(&["-d", "-D", "--decode", "-di"]) => Stream::Decoded,
        "xxd" if args.iter().any(|arg| arg.text.starts_with("-r")) => Stream::Decoded,
        "openssl" if decodes(&["-d", "-decrypt"]) => Stream::Decoded,
        "uudecode" | "rev" | "tr" | "gpg" => match call.input {
            Stream::Remote => Stream::Remote,
            _ => Stream::Decoded,
        },
        program if SETUP.contains(&program) => Stream::Setup,
        _ => match &call.input {
            Stream::Remote => Stream::Remote,
            Stream::Decoded => Stream::Decoded,
            Stream::Nothing | Stream::Text(_) | Stream::Files | Stream::Setup | Stream::Opaque => Stream::Opaque,
        },
    }
}

fn passed(call: &Invocation<'_>) -> Stream {
    let mut files = call.args.iter().filter(|arg| !arg.text.starts_with('-'));
    if call.program == "tee" || files.next().is_none() {
        return call.input.clone();
    }
    match call
        .args
        .iter()
        .map(|arg| arg.origin)
        .max_by_key(|origin| *origin == crate::classify::expand::TextOrigin::Remote)
    {
        Some(crate::classify::expand::TextOrigin::Remote) => Stream::Remote,
        _ => Stream::Files,
    }
}

fn echo(args: &[Arg]) -> Stream {
    let options = args.iter().take_while(|arg| matches!(arg.text.as_str(), "-n" | "-e" | "-ne" | "-en" | "-E")).count();
    let escapes = args[..options].iter().any(|arg| arg.text.contains('e'));
    let words: Vec<&str> = args[options..].iter().map(|arg| arg.text.as_str()).collect();
    let text = words.join(" ");
    if let Some(origin) = tainted(args) {
        return origin;
    }
    Stream::Text(if escapes { unescaped(&text) } else { text } + "\n")
}

fn printf(args: &[Arg]) -> Stream {
    if let Some(origin) = tainted(args) {
        return origin;
    }
    let Some(format) = args.first() else {
        return Stream::Nothing;
    };
    let mut values = args[1..].iter().map(|arg| arg.text.as_str());
    let mut text = String::new();
    let mut pieces = format.text.split('%');
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let kind = piece.chars().next();
        let rest = piece.get(kind.map_or(0, char::len_utf8)..).unwrap_or_default();
        if let Some('s' | 'b' | 'q' | 'd') = kind {
            text.push_str(values.next().unwrap_or_default());
        }
        text.push_str(rest);
    }
    for value in values {
        text.push(' ');
        text.push_str(value);
    }
    Stream::Text(unescaped(&text))
}

fn tainted(args: &[Arg]) -> Option<Stream> {
    use crate::classify::expand::TextOrigin;
    args.iter().find_map(|arg| match arg.origin {
        TextOrigin::Remote => Some(Stream::Remote),
        TextOrigin::Decoded => Some(Stream::Decoded),
        TextOrigin::Plain | TextOrigin::Temporary | TextOrigin::Setup => None,
    })
}

/// Returns the escapes of `printf` and `echo -e`: letters, octal and hexadecimal numbers.
fn unescaped(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let hex = rest.starts_with('x');
        let (from, most, radix) = if hex { (1, 2, 16) } else { (usize::from(rest.starts_with('0')), 3, 8) };
        let digits = rest[from..].chars().take(most).take_while(|letter| letter.is_digit(radix)).count();
        let number = match digits {
            // `\0` alone is a NUL.
            0 if from == 1 && !hex => Some('\0'),
            _ => u32::from_str_radix(&rest[from..from + digits], radix).ok().and_then(char::from_u32),
        };
        let length = match (number, rest.chars().next()) {
            (Some(letter), _) => {
                plain.push(letter);
                from + digits
            }
            (None, Some('n')) => {
                plain.push('\n');
                1
            }
            (None, Some('t')) => {
                plain.push('\t');
                1
            }
            (None, Some('\\')) => {
                plain.push('\\');
                1
            }
            (None, _) => {
                plain.push('\\');
                0
            }
        };
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}
