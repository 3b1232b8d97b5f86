//! The doors: each translates one client's language into events, and decisions into its answers (rank 5).

mod aloud;
pub mod mcp;
pub mod socket;
pub mod stdio;
pub mod stream;
