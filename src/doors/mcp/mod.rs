//! The MCP proxy: a server's messages pass, and a call that writes waits for its checkpoint.

mod guard;
mod proxy;

pub use proxy::{Guarding, Proxied, proxy};
