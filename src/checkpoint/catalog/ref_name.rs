//! Names of refs, as git accepts them.

/// Returns true if git accepts a ref of this name, by the rules of `git check-ref-format`.
pub(crate) fn is_ref_name(name: &str) -> bool {
    let odd = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.split('/').all(part)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && !name.contains(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_takes() {
        for (name, taken) in [
            ("refs/heads/run-1", true),
            ("refs/heads/a.b_c", true),
            ("refs/heads/a.lock", false),
            ("refs/heads/a..b", false),
            ("refs/heads/a.", false),
            ("refs/heads/a b", false),
            ("refs/heads//b", false),
            ("refs/heads/.b", false),
            ("refs/heads/a\nb", false),
        ] {
            assert_eq!(is_ref_name(name), taken, "{name:?}");
        }
    }
}
