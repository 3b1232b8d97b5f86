//! Default excludes: directories of dependencies and caches, known by what made them.
//!
//! As narrow as safety allows: a name alone is enough only for names that nothing but the tool uses. `build/`, `dist/`,
//! `out/`, `vendor/`, libraries, archives and media are never left out by name: they may be somebody's work.

/// Directories that a tool makes beside its own file, and can make again from it.
const BESIDE: &[(&str, &[&str])] = &[
    ("node_modules", &["package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb"]),
    ("bower_components", &["bower.json"]),
    ("target", &["Cargo.toml", "pom.xml"]),
    (".next", &["package.json"]),
    (".nuxt", &["package.json"]),
    (".svelte-kit", &["package.json"]),
    (".turbo", &["package.json"]),
    (".parcel-cache", &["package.json"]),
    (".gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    (".dart_tool", &["pubspec.yaml"]),
    ("_build", &["mix.exs"]),
    ("deps", &["mix.exs"]),
    (".stack-work", &["stack.yaml"]),
    ("dist-newstyle", &["cabal.project"]),
    ("elm-stuff", &["elm.json"]),
    ("zig-cache", &["build.zig"]),
    (".zig-cache", &["build.zig"]),
];

/// Names that only the tool itself uses.
const ALONE: &[&str] = &["__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".eggs"];

/// Files inside a directory that say what it is: Python's virtual environments, and the cache directory tagging
/// specification (its signature must be checked by whoever answers the question).
const INSIDE: &[&str] = &["pyvenv.cfg", "CACHEDIR.TAG"];

/// How a `CACHEDIR.TAG` must begin to count (Cache Directory Tagging Specification).
pub const CACHEDIR_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Usual names of virtual environments, for questions about directories that are not there any more.
const ENVIRONMENTS: &[&str] = &[".venv", "venv", "env", "virtualenv"];

/// Whether a directory was made by a tool that can make it again. `beside` and `inside` say whether a file of that name
/// stands beside the directory, or in it.
pub fn is_made(name: &[u8], beside: &dyn Fn(&str) -> bool, inside: &dyn Fn(&str) -> bool) -> bool {
    let named = |candidate: &str| name == candidate.as_bytes();
    if ALONE.iter().any(|candidate| named(candidate)) {
        return true;
    }
    let made = BESIDE.iter().any(|(dir, makers)| named(dir) && makers.iter().any(|maker| beside(maker)));
    made || INSIDE.iter().any(|tag| inside(tag))
}

/// Whether a directory of this name might be one of them: for the cautious side of a question.
pub fn is_made_name(name: &[u8]) -> bool {
    let all = ALONE.iter().chain(ENVIRONMENTS).copied().chain(BESIDE.iter().map(|(dir, _)| *dir));
    all.into_iter().any(|candidate| name == candidate.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_rarely_enough() {
        let table: &[(&str, &[&str], &[&str], bool)] = &[
            ("node_modules", &["package.json"], &[], true),
            ("node_modules", &[], &[], false),
            ("target", &["Cargo.toml"], &[], true),
            ("target", &["Makefile"], &[], false),
            (".venv", &[], &["pyvenv.cfg"], true),
            (".venv", &[], &[], false),
            ("anything", &[], &["CACHEDIR.TAG"], true),
            ("__pycache__", &[], &[], true),
            ("build", &["package.json", "Cargo.toml"], &[], false),
            ("dist", &["package.json"], &[], false),
            ("vendor", &["go.mod"], &[], false),
        ];
        for (name, beside, inside, expected) in table {
            let made = is_made(name.as_bytes(), &|n| beside.contains(&n), &|n| inside.contains(&n));
            assert_eq!(made, *expected, "{name} {beside:?} {inside:?}");
        }
    }
}
