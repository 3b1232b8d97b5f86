//! The small program that answers git, as its hook `reference-transaction` and as the program in `core.fsmonitor`: git starts the one
//! five times for one commit, and the other for each look at the work tree. A start of a shell takes five times as long, one of piton
//! ten times. `build.rs` makes it, and `piton install git` writes it with the path of piton in it.
//!
//! As the hook, it asks piton in the state `prepared`, but for two cases. Either no command is known whose end is not told, and the git
//! that has called this certainly destroys nothing. Or the command of that git is the only such one. It is as careful as `hook.sh`: only
//! piton's answer is a refusal; where piton is gone or fails, git goes on.
//!
//! As the program in `core.fsmonitor`, it answers in these two cases, and to a git that only reads, if nothing wants changed paths told.
//! The answer is then piton's own: everything may have changed. In all other cases it becomes piton.
//!
//! It has no library, neither Rust's nor C's: loading one would take most of its time.

#![no_std]
#![no_main]

use core::arch::naked_asm;
use core::hint::black_box;
use core::{ptr, slice};

use system::{MAX_PATH, Path, call, exit, numbers, read, text, variable, whole, write};

#[path = "../../src/git/quiet.rs"]
mod quiet;
mod system;

/// The bytes before the path of piton, by which the installation finds its place.
const MARK: &[u8; 24] = b"piton git-door program: ";

/// The path of piton behind the mark, filled with NUL.
#[used]
static PROGRAM: [u8; MARK.len() + MAX_PATH] = {
    let mut place = [0; MARK.len() + MAX_PATH];
    let mut at = 0;
    while at < MARK.len() {
        place[at] = MARK[at];
        at += 1;
    }
    place
};

/// The exit code by which a hook refuses.
const REFUSED: usize = 1;

/// The longest command line, or file of settings, that is read here; piton reads longer ones.
const MAX_READ: usize = 16 << 10;

/// The words behind the program in `core.fsmonitor`: its own, and those that git adds. The last one is a token.
const DOOR: [&[u8]; 3] = [b"git-door", b"fsmonitor", b"2"];

/// The answer that everything may have changed, with the token of one that watches nothing (`src/cli/git_door/answer.rs`).
const EVERYTHING: &[u8] = b"piton\0/\0";

/// The key by which settings want the changed paths told, and its variable (`src/cli/git_door/answer.rs`).
const KEY: &[u8] = b"fsmonitor_answers";
const VARIABLE: &[u8] = b"PITON_GIT_FSMONITOR_ANSWERS=";

/// The place of the user's settings below the directory of all programs' settings, and that of a work tree's at its top.
const USERS_SETTINGS: &[u8] = b"/piton/config.yaml";
const WORKSPACE_SETTINGS: &[u8] = b".piton.yaml";

/// Begins with the stack as the system has made it: the count of arguments, those, NULL, the environment, NULL.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start() -> ! {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("xor ebp, ebp", "mov rdi, rsp", "call {}", sym begin);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov x29, 0", "mov x0, sp", "bl {}", sym begin);
}

/// # Safety
/// `stack` has to be the stack of a new process.
unsafe extern "C" fn begin(stack: *const usize) -> ! {
    let count = unsafe { *stack };
    let arguments = unsafe { stack.add(1) }.cast::<*const u8>();
    let environment = unsafe { arguments.add(count + 1) };
    exit(unsafe { answer(slice::from_raw_parts(arguments, count), environment) })
}

/// Answers git by an exit code.
///
/// # Safety
/// The arguments have to be C strings; the environment has to be a list of them with NULL at its end.
unsafe fn answer(arguments: &[*const u8], environment: *const *const u8) -> usize {
    match arguments.get(1).map(|word| unsafe { text(*word) }) {
        Some(b"prepared") => unsafe { before_refs(environment) },
        Some(word) if word == DOOR[0] => unsafe { before_files(arguments, environment) },
        _ => 0,
    }
}

/// git is about to move refs.
///
/// # Safety
/// As [`answer`].
unsafe fn before_refs(environment: *const *const u8) -> usize {
    let caller = caller();
    let is_harmless = match unsafe { marks(environment, caller) } {
        Marks::None => {
            let mut buffer = [0; MAX_READ];
            line(caller, &mut buffer)
                .is_some_and(|(verb, words)| quiet::is_quiet(verb, words) && !quiet::moves_by_settings(verb))
        }
        Marks::Callers => true,
        Marks::Unknown => false,
    };
    if !is_harmless {
        return unsafe { ask(environment) };
    }
    drain();
    0
}

/// git is about to look at the work tree.
///
/// # Safety
/// As [`answer`].
unsafe fn before_files(arguments: &[*const u8], environment: *const *const u8) -> usize {
    let mut words = arguments.iter().skip(1).map(|word| unsafe { text(*word) });
    let is_asked = arguments.len() == DOOR.len() + 2 && DOOR.iter().all(|word| words.next() == Some(word));
    if is_asked && unsafe { is_harmless(environment) && !may_want_paths(environment) } {
        // A part of it is no answer: git looks at everything itself.
        return usize::from(!write(1, EVERYTHING));
    }
    unsafe { become_piton(arguments, environment) }
}

/// Returns true if there is nothing to do before a command goes on to files, and no end of an earlier one to tell.
///
/// # Safety
/// As [`answer`].
unsafe fn is_harmless(environment: *const *const u8) -> bool {
    let caller = caller();
    let mut buffer = [0; MAX_READ];
    let line = line(caller, &mut buffer);
    let quiet = line.filter(|(verb, words)| quiet::is_quiet(verb, words.clone())).map(|(verb, _)| verb);
    // A git that only reads is no part of an earlier command, told or not.
    quiet.is_some_and(quiet::is_reading)
        || match unsafe { marks(environment, caller) } {
            Marks::None => quiet.is_some(),
            Marks::Callers => true,
            Marks::Unknown => false,
        }
}

/// Returns true if a layer of the settings may want the changed paths told.
///
/// # Safety
/// As [`answer`].
unsafe fn may_want_paths(environment: *const *const u8) -> bool {
    let named = |name: &[u8]| unsafe { variable(environment, name) };
    let is_named = |value: &&[u8]| !value.is_empty();
    let mut users = Path::new();
    match (named(b"XDG_CONFIG_HOME=").filter(is_named), named(b"HOME=").filter(is_named)) {
        (Some(config), _) => users.add(config),
        (None, Some(home)) => users.add(home).add(b"/.config"),
        (None, None) => return true,
    };
    let mut workspaces = Path::new();
    named(VARIABLE).is_some()
        || may_hold_key(users.add(USERS_SETTINGS))
        || may_hold_key(workspaces.add(WORKSPACE_SETTINGS))
}

/// Returns true if a file of settings may hold the key, or cannot be read here.
fn may_hold_key(path: &Path) -> bool {
    let mut buffer = [0; MAX_READ];
    // A pipe would be waited for.
    match path.opened(numbers::O_NONBLOCK) {
        numbers::ENOENT | numbers::ENOTDIR => false,
        file => usize::try_from(file)
            .ok()
            .and_then(|file| whole(file, &mut buffer))
            .is_none_or(|text| text.windows(KEY.len()).any(|part| part == KEY)),
    }
}

/// Becomes piton, with the same words. Returns where there is none: git looks at everything itself.
///
/// # Safety
/// As [`answer`].
unsafe fn become_piton(arguments: &[*const u8], environment: *const *const u8) -> usize {
    let mut words = [ptr::null(); DOOR.len() + 3];
    words.iter_mut().zip(arguments).take(DOOR.len() + 2).for_each(|(place, word)| *place = *word);
    words[0] = program();
    unsafe { call(numbers::EXECVE, [words[0] as usize, words.as_ptr() as usize, environment as usize, 0]) };
    REFUSED
}

/// Returns the path of piton.
fn program() -> *const u8 {
    black_box(&PROGRAM)[MARK.len()..].as_ptr()
}

/// Returns the process that has called this.
fn caller() -> usize {
    unsafe { call(numbers::GETPPID, [0; 4]) }.unsigned_abs()
}

/// The marks of commands that were told of, and whose ends are not told yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// There are none: whatever this command changes is no part of an earlier one.
    None,
    /// The git that has called this has one, and nobody else.
    Callers,
    /// There are others, or it is not known.
    Unknown,
}

/// Reads all that git tells before it waits for the end.
fn drain() {
    let mut buffer = [0_u8; 4096];
    while read(0, &mut buffer) > 0 {}
}

/// Returns the verb of a git and the words behind it; `None` for another program, and where its command line cannot be read here.
fn line(process: usize, buffer: &mut [u8]) -> Option<(&str, impl Iterator<Item = &str> + Clone)> {
    // Each word has a NUL behind it. Where the last one has none, its process has written over it.
    let line = read_of(process, b"/cmdline", buffer)?.strip_suffix(b"\0")?;
    quiet::parts(core::str::from_utf8(line).ok()?.split('\0'), |_, _| ())
}

/// Reads a file of a process; `None` where it is longer than the buffer, or cannot be read.
fn read_of<'b>(process: usize, name: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut path = Path::new();
    path.add(b"/proc/").number(process).add(name);
    whole(usize::try_from(path.opened(0)).ok()?, buffer)
}

/// Looks for marks.
///
/// # Safety
/// As [`answer`].
unsafe fn marks(environment: *const *const u8, caller: usize) -> Marks {
    let mut path = Path::new();
    let named = |name: &[u8]| unsafe { variable(environment, name) }.filter(|value| !value.is_empty());
    match (named(b"PITON_HOME="), named(b"XDG_DATA_HOME="), named(b"HOME=")) {
        (Some(home), _, _) => path.add(home),
        (None, Some(data), _) => path.add(data).add(b"/piton"),
        (None, None, Some(home)) if home.starts_with(b"/") => path.add(home).add(b"/.local/share/piton"),
        _ => return Marks::Unknown,
    };
    path.add(b"/git-calls");
    match path.opened(numbers::O_DIRECTORY) {
        numbers::ENOENT => Marks::None,
        file => usize::try_from(file).map_or(Marks::Unknown, |dir| marks_in(dir, caller)),
    }
}

/// Looks at the entries of an open directory but for itself and the one above it. An entry is its number, its place, its length, its
/// kind and its name (getdents64(2)).
fn marks_in(dir: usize, caller: usize) -> Marks {
    let mut buffer = [0_u8; 1024];
    let mut found = Marks::None;
    loop {
        let got = unsafe { call(numbers::GETDENTS64, [dir, buffer.as_mut_ptr() as usize, buffer.len(), 0]) };
        let entries = usize::try_from(got).ok().and_then(|got| buffer.get(..got));
        let Some(mut entries) = entries else { return Marks::Unknown };
        if entries.is_empty() {
            return found;
        }
        while let [_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, low, high, _, name @ ..] = entries {
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if name != b"." && name != b".." {
                if !is_mark_of(caller, name) {
                    return Marks::Unknown;
                }
                found = Marks::Callers;
            }
            let Some(rest) = entries.get(usize::from(u16::from_le_bytes([*low, *high]))..) else {
                return Marks::Unknown;
            };
            entries = rest;
        }
    }
}

/// Returns true for the name of a process's mark: it begins with its number and the moment of its start, as the kernel counts
/// (`ProcessId::key`).
fn is_mark_of(process: usize, name: &[u8]) -> bool {
    let mut stat = [0_u8; 1024];
    let Some(stat) = read_of(process, b"/stat", &mut stat) else { return false };
    // The name of the program stands in brackets, and may hold blanks and brackets of its own.
    let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    // The 22nd field of the line (proc_pid_stat(5)); the one behind the name is the third.
    let Some(began) = stat[end + 1..].trim_ascii_start().split(|byte| *byte == b' ').nth(22 - 3) else { return false };
    let mut mark = Path::new();
    mark.number(process).add(b"-").add(began).add(b"-");
    mark.bytes().is_some_and(|mark| name.starts_with(mark))
}

/// Asks piton, and takes nothing but its refusal for one.
///
/// # Safety
/// As [`answer`].
unsafe fn ask(environment: *const *const u8) -> usize {
    let program = program();
    let words = [
        program,
        c"git-door".as_ptr().cast(),
        c"reference-transaction".as_ptr().cast(),
        c"prepared".as_ptr().cast(),
        ptr::null(),
    ];
    let child = unsafe { call(numbers::CLONE, [numbers::SIGCHLD, 0, 0, 0]) };
    if child == 0 {
        unsafe { call(numbers::EXECVE, [program as usize, words.as_ptr() as usize, environment as usize, 0]) };
        exit(0);
    }
    let Ok(child) = usize::try_from(child) else { return 0 };
    let mut status = 0_i32;
    while unsafe { call(numbers::WAIT4, [child, &raw mut status as usize, 0, 0]) } == numbers::EINTR {}
    // The exit code is the second byte of one that was not ended by a signal.
    if status == (REFUSED as i32) << 8 { REFUSED } else { 0 }
}

/// git goes on.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(0)
}
