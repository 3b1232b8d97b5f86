//! The hook `reference-transaction` as a program of its own: git starts it five times for one commit, and each start of a shell
//! takes five times as long as one of this. `build.rs` makes it, and `piton install git` writes it with the path of piton in it.
//!
//! It asks piton in the state `prepared`, but for two cases. Either no command is known whose end is not told, and the git that has
//! called this certainly destroys nothing. Or the command of that git is the only such one. It is as careful as `hook.sh`: only piton's answer is a refusal; where piton is gone or fails, git goes on.
//!
//! It has no library, neither Rust's nor C's: loading one would take most of its time.

#![no_std]
#![no_main]

use core::arch::{asm, naked_asm};
use core::ffi::CStr;
use core::hint::black_box;
use core::slice;

#[path = "../../src/git/quiet.rs"]
mod quiet;

/// The length of the longest path, with its NUL (Linux's `PATH_MAX`).
const MAX_PATH: usize = 4096;

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

/// The longest command line that is read here; piton reads longer ones.
const MAX_LINE: usize = 16 << 10;

/// The numbers of system calls and of what they take, from Linux's headers.
mod sys {
    #[cfg(target_arch = "x86_64")]
    mod numbers {
        pub const READ: usize = 0;
        pub const CLONE: usize = 56;
        pub const EXECVE: usize = 59;
        pub const WAIT4: usize = 61;
        pub const GETPPID: usize = 110;
        pub const GETDENTS64: usize = 217;
        pub const EXIT_GROUP: usize = 231;
        pub const OPENAT: usize = 257;
        pub const O_DIRECTORY: usize = 0o200_000;
    }
    #[cfg(target_arch = "aarch64")]
    mod numbers {
        pub const OPENAT: usize = 56;
        pub const GETDENTS64: usize = 61;
        pub const READ: usize = 63;
        pub const EXIT_GROUP: usize = 94;
        pub const GETPPID: usize = 173;
        pub const CLONE: usize = 220;
        pub const EXECVE: usize = 221;
        pub const WAIT4: usize = 260;
        pub const O_DIRECTORY: usize = 0o40_000;
    }
    pub use numbers::*;

    pub const HERE: usize = -100_isize as usize;
    pub const O_CLOEXEC: usize = 0o2_000_000;
    pub const SIGCHLD: usize = 17;
    pub const ENOENT: isize = -2;
    pub const EINTR: isize = -4;
}

/// Asks the system.
///
/// # Safety
/// The arguments have to be those of the call.
unsafe fn call(number: usize, [first, second, third, fourth]: [usize; 4]) -> isize {
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") first as isize => result,
            in("x1") second,
            in("x2") third,
            in("x3") fourth,
            options(nostack)
        );
    }
    result
}

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
    exit(unsafe { hook(slice::from_raw_parts(arguments, count), environment) })
}

fn exit(code: usize) -> ! {
    unsafe { call(sys::EXIT_GROUP, [code, 0, 0, 0]) };
    loop {
        // The process is gone by now.
        core::hint::spin_loop();
    }
}

/// Answers git by an exit code.
///
/// # Safety
/// The arguments have to be C strings; the environment has to be a list of them with NULL at its end.
unsafe fn hook(arguments: &[*const u8], environment: *const *const u8) -> usize {
    let is_prepared = arguments.get(1).is_some_and(|state| unsafe { text(*state) } == b"prepared");
    if !is_prepared {
        return 0;
    }
    let caller = unsafe { call(sys::GETPPID, [0; 4]) }.unsigned_abs();
    let is_harmless = match unsafe { marks(environment, caller) } {
        Marks::None => is_quiet_git(caller),
        Marks::Callers => true,
        Marks::Unknown => false,
    };
    if !is_harmless {
        return unsafe { ask(environment) };
    }
    drain();
    0
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

/// # Safety
/// It has to be a C string.
unsafe fn text<'a>(pointer: *const u8) -> &'a [u8] {
    unsafe { CStr::from_ptr(pointer.cast()) }.to_bytes()
}

/// Reads all that git tells before it waits for the end.
fn drain() {
    let mut buffer = [0_u8; 4096];
    while read(0, &mut buffer) > 0 {}
}

fn read(file: usize, buffer: &mut [u8]) -> isize {
    loop {
        let got = unsafe { call(sys::READ, [file, buffer.as_mut_ptr() as usize, buffer.len(), 0]) };
        if got != sys::EINTR {
            return got;
        }
    }
}

/// Reads a file of a process; `None` where it is longer than the buffer, or cannot be read.
fn read_of<'b>(process: usize, name: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut path = Path::new();
    path.add(b"/proc/").number(process).add(name);
    let file = usize::try_from(path.opened(0)).ok()?;
    let mut length = 0;
    loop {
        match usize::try_from(read(file, &mut buffer[length..])).ok()? {
            0 => break,
            got => length += got,
        }
    }
    buffer.get(..length).filter(|read| read.len() < buffer.len())
}

/// Returns true for a git that certainly destroys nothing.
fn is_quiet_git(process: usize) -> bool {
    let mut line = [0_u8; MAX_LINE];
    // Each word has a NUL behind it. Where the last one has none, its process has written over it.
    let whole = read_of(process, b"/cmdline", &mut line).and_then(|line| line.strip_suffix(b"\0"));
    let words = whole.and_then(|line| core::str::from_utf8(line).ok()).map(|line| line.split('\0'));
    let parts = words.and_then(|words| quiet::parts(words, |_, _| ()));
    parts.is_some_and(|(verb, arguments)| quiet::is_quiet(verb, arguments) && !quiet::moves_by_settings(verb))
}

/// Looks for marks.
///
/// # Safety
/// As [`hook`].
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
    match path.opened(sys::O_DIRECTORY) {
        sys::ENOENT => Marks::None,
        file => usize::try_from(file).map_or(Marks::Unknown, |dir| marks_in(dir, caller)),
    }
}

/// # Safety
/// As [`hook`].
unsafe fn variable<'a>(mut environment: *const *const u8, name: &[u8]) -> Option<&'a [u8]> {
    while !unsafe { *environment }.is_null() {
        if let Some(value) = unsafe { text(*environment) }.strip_prefix(name) {
            return Some(value);
        }
        environment = unsafe { environment.add(1) };
    }
    None
}

/// Looks at the entries of an open directory but for itself and the one above it. An entry is its number, its place, its length, its
/// kind and its name (getdents64(2)).
fn marks_in(dir: usize, caller: usize) -> Marks {
    let mut buffer = [0_u8; 1024];
    let mut found = Marks::None;
    loop {
        let got = unsafe { call(sys::GETDENTS64, [dir, buffer.as_mut_ptr() as usize, buffer.len(), 0]) };
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

/// Returns true for the name of a process's mark: its number and the moment at which it has begun, as the kernel counts
/// (`ProcessId::key`).
fn is_mark_of(process: usize, name: &[u8]) -> bool {
    let mut stat = [0_u8; 1024];
    let Some(stat) = read_of(process, b"/stat", &mut stat) else { return false };
    // The name of the program stands in brackets, and may hold blanks and brackets of its own.
    let Some(end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    // The 22nd field of the line (proc_pid_stat(5)); the one behind the name is the third.
    let Some(began) = stat[end + 1..].trim_ascii_start().split(|byte| *byte == b' ').nth(22 - 3) else { return false };
    let mut mark = Path::new();
    mark.number(process).add(b"-").add(began);
    mark.bytes.get(..mark.length) == Some(name)
}

/// Asks piton, and takes nothing but its refusal for one.
///
/// # Safety
/// As [`hook`].
unsafe fn ask(environment: *const *const u8) -> usize {
    let program = black_box(&PROGRAM)[MARK.len()..].as_ptr();
    let words = [
        program,
        c"git-door".as_ptr().cast(),
        c"reference-transaction".as_ptr().cast(),
        c"prepared".as_ptr().cast(),
        core::ptr::null(),
    ];
    let child = unsafe { call(sys::CLONE, [sys::SIGCHLD, 0, 0, 0]) };
    if child == 0 {
        unsafe { call(sys::EXECVE, [program as usize, words.as_ptr() as usize, environment as usize, 0]) };
        exit(0);
    }
    let Ok(child) = usize::try_from(child) else { return 0 };
    let mut status = 0_i32;
    while unsafe { call(sys::WAIT4, [child, &raw mut status as usize, 0, 0]) } == sys::EINTR {}
    // The exit code is the second byte of one that was not ended by a signal.
    if status == (REFUSED as i32) << 8 { REFUSED } else { 0 }
}

/// A path as a C string.
struct Path {
    bytes: [u8; MAX_PATH],
    length: usize,
}

impl Path {
    fn new() -> Path {
        Path { bytes: [0; MAX_PATH], length: 0 }
    }

    /// Adds to it. One that is too long becomes one that is not there.
    fn add(&mut self, part: &[u8]) -> &mut Path {
        match self.bytes.get_mut(self.length..self.length + part.len()) {
            Some(place) if self.length + part.len() < MAX_PATH => {
                place.copy_from_slice(part);
                self.length += part.len();
            }
            _ => (self.bytes[0], self.length) = (0, MAX_PATH),
        }
        self
    }

    fn number(&mut self, number: usize) -> &mut Path {
        if number > 9 {
            self.number(number / 10);
        }
        self.add(&[b'0' + (number % 10) as u8])
    }

    /// Opens it to read.
    fn opened(&self, flags: usize) -> isize {
        unsafe { call(sys::OPENAT, [sys::HERE, self.bytes.as_ptr() as usize, flags | sys::O_CLOEXEC, 0]) }
    }
}

/// git goes on.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(0)
}

/// Rust's own library names it in tables of unwinding, which never takes place here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The functions that compiled code takes for granted. They are simple, as little is copied.
mod memory {
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
        let mut at = 0;
        while at < count {
            unsafe { to.add(at).write_volatile(from.add(at).read()) };
            at += 1;
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
        if (to as usize) <= from as usize {
            return unsafe { memcpy(to, from, count) };
        }
        let mut at = count;
        while at > 0 {
            at -= 1;
            unsafe { to.add(at).write_volatile(from.add(at).read()) };
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
        let mut at = 0;
        while at < count {
            unsafe { to.add(at).write_volatile(byte as u8) };
            at += 1;
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
        let mut at = 0;
        while at < count {
            let (one, other) = unsafe { (one.add(at).read_volatile(), other.add(at).read_volatile()) };
            if one != other {
                return i32::from(one) - i32::from(other);
            }
            at += 1;
        }
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
        unsafe { memcmp(one, other, count) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn strlen(text: *const u8) -> usize {
        let mut at = 0;
        while unsafe { text.add(at).read_volatile() } != 0 {
            at += 1;
        }
        at
    }
}
