//! The doors: each translates one client's language into events, and decisions into its answers (rank 5).

mod aloud;
pub mod contents;
pub mod mcp;
mod output;
pub mod protection;
pub mod replies;
pub mod socket;
pub mod stdio;
pub mod stream;
