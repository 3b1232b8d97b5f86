//! The names by which records know processes of piton's: of this start of the machine, and of one container.

use std::sync::OnceLock;

use crate::sys::clock::since_boot_ns;
use crate::sys::processes::ProcessId;

/// Returns the name of this process. Where the kernel tells nothing of processes, nobody can look for one of that name.
pub fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let own = ProcessId::of(std::process::id());
        own.map_or_else(|| format!("unknown {} {}", std::process::id(), since_boot_ns()), |own| own.key())
    })
}

/// Returns true if the process of a name has ended.
pub(super) fn has_ended(name: &str) -> bool {
    name != own_name() && ProcessId::of_key(name).and_then(|process| process.is_alive()) == Some(false)
}

/// Returns true if no process of a name can be seen to run: it has ended, or it may run in another container.
pub fn is_gone(name: &str) -> bool {
    name != own_name() && ProcessId::of_key(name).and_then(|process| process.is_alive()) != Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_cannot_be_seen_to_run_counts_as_gone() {
        let own = ProcessId::of(std::process::id()).unwrap().key();
        assert_eq!(own, own_name());
        let parts: Vec<&str> = own.split('-').collect();
        let [pid, started, space, boot] = parts[..] else { panic!("{own}") };
        for (name, is_expected_gone, is_expected_ended, why) in [
            (own.clone(), false, false, "this one"),
            (format!("{pid}-{started}--{boot}"), true, false, "a process that this one cannot see"),
            (format!("{pid}-{started}-{space}-00000000"), true, true, "a process from before a restart of the machine"),
            (format!("{pid}-1-{space}-{boot}"), true, true, "the number was used again"),
            (format!("{pid}-0"), true, false, "a name of an earlier version"),
        ] {
            assert_eq!((is_gone(&name), has_ended(&name)), (is_expected_gone, is_expected_ended), "{why}");
        }
    }
}
