//! Black-box tests: the built binary, real files, real git.

#[path = "blackbox/agreed.rs"]
mod agreed;
#[path = "blackbox/attacks.rs"]
mod attacks;
#[path = "blackbox/bench.rs"]
mod bench;
#[path = "blackbox/bounds.rs"]
mod bounds;
#[path = "blackbox/capture.rs"]
mod capture;
#[path = "blackbox/codons.rs"]
mod codons;
#[path = "shared/conversations.rs"]
mod conversations;
#[path = "blackbox/crowd.rs"]
mod crowd;
#[path = "blackbox/damage.rs"]
mod damage;
#[path = "shared/dice.rs"]
mod dice;
#[path = "blackbox/disarm.rs"]
mod disarm;
#[path = "blackbox/disks.rs"]
mod disks;
#[path = "blackbox/doctor.rs"]
mod doctor;
#[path = "shared/ends.rs"]
mod ends;
#[path = "blackbox/environment.rs"]
mod environment;
#[path = "blackbox/faults.rs"]
mod faults;
#[path = "blackbox/git.rs"]
mod git;
#[path = "blackbox/golden.rs"]
mod golden;
#[path = "blackbox/hooks.rs"]
mod hooks;
#[path = "blackbox/input.rs"]
mod input;
#[path = "blackbox/installs.rs"]
mod installs;
#[path = "blackbox/kills.rs"]
mod kills;
#[path = "blackbox/lessons.rs"]
mod lessons;
#[path = "blackbox/links.rs"]
mod links;
#[path = "shared/mapping.rs"]
mod mapping;
#[path = "blackbox/mcp.rs"]
mod mcp;
#[path = "blackbox/named.rs"]
mod named;
#[path = "blackbox/peers.rs"]
mod peers;
#[path = "blackbox/reach.rs"]
mod reach;
#[path = "blackbox/recall.rs"]
mod recall;
#[path = "blackbox/remotes.rs"]
mod remotes;
#[path = "blackbox/restore.rs"]
mod restore;
#[path = "blackbox/rollback.rs"]
mod rollback;
#[path = "blackbox/secrets.rs"]
mod secrets;
#[path = "blackbox/settings.rs"]
mod settings;
#[path = "blackbox/sidecar.rs"]
mod sidecar;
#[path = "blackbox/slow.rs"]
mod slow;
#[path = "blackbox/store.rs"]
mod store;
#[path = "blackbox/streams.rs"]
mod streams;
#[path = "blackbox/support.rs"]
mod support;
#[path = "blackbox/watching.rs"]
mod watching;
