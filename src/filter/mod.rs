//! What a capture looks at: ignore rules, default excludes, secrets, tracked-file patterns (rank 1). Pure: rules come in
//! as bytes, answers go out.

mod coverage;
mod ignore;
mod makers;
mod secret;
mod tracked;

pub use coverage::{CoverageView, Verdict, would_capture};
pub use ignore::{Ignored, Matcher, Rules, effective_patterns};
pub use makers::{CACHEDIR_SIGNATURE, is_made, is_made_name};
pub use secret::is_secret_name;
pub use tracked::Tracked;
