//! The ids of runs, as refs spell them.

use super::id::{ObjectId, ObjectKind};
use super::redact::holds_secret;

/// Returns a client's id of a run as one of ours: as it is when it fits and is no secret, else hashed.
pub fn run_id(text: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = text.len() <= 64
        && text.starts_with(plain)
        && text.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
        && !text.contains("..")
        && !text.ends_with('.')
        && !text.ends_with(".lock")
        && !holds_secret(text);
    if fits {
        return text.to_owned();
    }
    let id = ObjectId::of(ObjectKind::Blob, text.as_bytes());
    id.map_or_else(|_| "s-unnamed".to_owned(), |id| format!("s-{}", &id.to_string()[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_run_ids_become_ours() {
        for plain in ["r-1", "20260101-abc", "a.b_c"] {
            assert_eq!(run_id(plain), plain);
        }
        for odd in ["R-1", "", "-x", "a..b", "a.lock", "../x", &"a".repeat(65), "späth", "glpat-abcdefghijklmnop"] {
            let id = run_id(odd);
            assert!(id.starts_with("s-") && id.len() == 18 && run_id(&id) == id, "{odd} became {id}");
        }
    }
}
