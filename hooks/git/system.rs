//! The system, as a program without a library reaches it: its calls, and what compiled code takes for granted.

use core::arch::asm;
use core::ffi::CStr;

/// The length of the longest path, with its NUL (Linux's `PATH_MAX`).
pub const MAX_PATH: usize = 4096;

/// The numbers of system calls and of what they take, from Linux's headers.
pub mod numbers {
    #[cfg(target_arch = "x86_64")]
    mod of_machine {
        pub const READ: usize = 0;
        pub const WRITE: usize = 1;
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
    mod of_machine {
        pub const OPENAT: usize = 56;
        pub const GETDENTS64: usize = 61;
        pub const READ: usize = 63;
        pub const WRITE: usize = 64;
        pub const EXIT_GROUP: usize = 94;
        pub const GETPPID: usize = 173;
        pub const CLONE: usize = 220;
        pub const EXECVE: usize = 221;
        pub const WAIT4: usize = 260;
        pub const O_DIRECTORY: usize = 0o40_000;
    }
    pub use of_machine::*;

    pub const HERE: usize = -100_isize as usize;
    pub const O_NONBLOCK: usize = 0o4_000;
    pub const O_CLOEXEC: usize = 0o2_000_000;
    pub const SIGCHLD: usize = 17;
    pub const ENOENT: isize = -2;
    pub const EINTR: isize = -4;
    pub const ENOTDIR: isize = -20;
}

/// Asks the system.
///
/// # Safety
/// The arguments have to be those of the call.
pub unsafe fn call(number: usize, [first, second, third, fourth]: [usize; 4]) -> isize {
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

/// Ends the process.
pub fn exit(code: usize) -> ! {
    unsafe { call(numbers::EXIT_GROUP, [code, 0, 0, 0]) };
    loop {
        // The process is gone by now.
        core::hint::spin_loop();
    }
}

/// Reads from an open file; a negative number is an error.
pub fn read(file: usize, buffer: &mut [u8]) -> isize {
    loop {
        let got = unsafe { call(numbers::READ, [file, buffer.as_mut_ptr() as usize, buffer.len(), 0]) };
        if got != numbers::EINTR {
            return got;
        }
    }
}

/// Reads a file to its end; `None` where that does not fit into the buffer with a byte left, or fails.
pub fn whole(file: usize, buffer: &mut [u8]) -> Option<&[u8]> {
    let mut length = 0;
    loop {
        match usize::try_from(read(file, &mut buffer[length..])).ok()? {
            0 => break,
            got => length += got,
        }
    }
    buffer.get(..length).filter(|read| read.len() < buffer.len())
}

/// Writes all of it; false where that fails.
pub fn write(file: usize, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let done = unsafe { call(numbers::WRITE, [file, bytes.as_ptr() as usize, bytes.len(), 0]) };
        match usize::try_from(done) {
            Ok(0) => return false,
            Ok(done) => bytes = bytes.get(done..).unwrap_or_default(),
            Err(_) if done == numbers::EINTR => {}
            Err(_) => return false,
        }
    }
    true
}

/// Returns the bytes of a C string.
///
/// # Safety
/// It has to be a C string.
pub unsafe fn text<'a>(pointer: *const u8) -> &'a [u8] {
    unsafe { CStr::from_ptr(pointer.cast()) }.to_bytes()
}

/// Returns the value of a variable, whose name is given with `=` at its end.
///
/// # Safety
/// The environment has to be a list of C strings with NULL at its end.
pub unsafe fn variable<'a>(mut environment: *const *const u8, name: &[u8]) -> Option<&'a [u8]> {
    while !unsafe { *environment }.is_null() {
        if let Some(value) = unsafe { text(*environment) }.strip_prefix(name) {
            return Some(value);
        }
        environment = unsafe { environment.add(1) };
    }
    None
}

/// A path as a C string.
pub struct Path {
    bytes: [u8; MAX_PATH],
    length: usize,
}

impl Path {
    /// Returns an empty one.
    pub fn new() -> Path {
        Path { bytes: [0; MAX_PATH], length: 0 }
    }

    /// Adds to it. One that is too long becomes one that is not there.
    pub fn add(&mut self, part: &[u8]) -> &mut Path {
        match self.bytes.get_mut(self.length..self.length + part.len()) {
            Some(place) if self.length + part.len() < MAX_PATH => {
                place.copy_from_slice(part);
                self.length += part.len();
            }
            _ => (self.bytes[0], self.length) = (0, MAX_PATH),
        }
        self
    }

    /// Adds a number to it.
    pub fn number(&mut self, number: usize) -> &mut Path {
        if number > 9 {
            self.number(number / 10);
        }
        self.add(&[b'0' + (number % 10) as u8])
    }

    /// Returns what it is made of.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length)
    }

    /// Opens it to read; a negative number is an error.
    pub fn opened(&self, flags: usize) -> isize {
        unsafe { call(numbers::OPENAT, [numbers::HERE, self.bytes.as_ptr() as usize, flags | numbers::O_CLOEXEC, 0]) }
    }
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
