//! Directories that a tool makes and can make again, recognised by what made them.
//!
//! A name alone is never enough where people use it for their own files (`build`, `dist`, `out`, `vendor` are not here
//! at all): the maker must stand beside the directory or inside of it. Left out on purpose: `.hypothesis` (found
//! counterexamples cannot be made again), `.ipynb_checkpoints` (copies of the user's own text), `.idea` and `.vscode`
//! (settings).

use std::sync::LazyLock;

/// The place of the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    /// One of these files beside the directory.
    Beside(&'static [&'static str]),
    /// One of these files inside of the directory.
    Inside(&'static [&'static str]),
    /// No tool but one uses this name.
    Itself,
}

use Maker::{Beside, Inside, Itself};

const PACKAGE: Maker = Beside(&["package.json"]);
const PYVENV: Maker = Inside(&["pyvenv.cfg"]);

/// Name, proof, what makes it again.
const TABLE: &[(&str, Maker, &str)] = &[
    ("node_modules", PACKAGE, "npm, yarn or pnpm install"),
    (
        "node_modules",
        Inside(&[".package-lock.json", ".yarn-integrity", ".yarn-state.yml", ".modules.yaml"]),
        "npm, yarn or pnpm install (no package.json next to it)",
    ),
    ("bower_components", Beside(&["bower.json"]), "bower install"),
    ("target", Beside(&["Cargo.toml", "pom.xml", "build.sbt"]), "cargo, maven or sbt build"),
    (".gradle", Beside(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]), "gradle"),
    (".venv", PYVENV, "python -m venv"),
    ("venv", PYVENV, "python -m venv"),
    ("env", PYVENV, "python -m venv"),
    (".env", PYVENV, "python -m venv"),
    ("virtualenv", PYVENV, "virtualenv"),
    ("__pycache__", Itself, "python"),
    (".mypy_cache", Itself, "mypy"),
    (".pytest_cache", Itself, "pytest"),
    (".ruff_cache", Itself, "ruff"),
    (".pytype", Itself, "pytype"),
    (".tox", Beside(&["tox.ini", "pyproject.toml", "setup.cfg"]), "tox"),
    (".nox", Beside(&["noxfile.py"]), "nox"),
    (".eggs", Beside(&["setup.py", "setup.cfg", "pyproject.toml"]), "setuptools"),
    (".next", PACKAGE, "next build"),
    (".nuxt", PACKAGE, "nuxt build"),
    (".svelte-kit", PACKAGE, "svelte-kit sync"),
    (".turbo", PACKAGE, "turbo"),
    (".parcel-cache", PACKAGE, "parcel"),
    (".angular", Beside(&["angular.json"]), "ng build"),
    (".pnpm-store", Beside(&["package.json", "pnpm-lock.yaml"]), "pnpm install"),
    (".sass-cache", Itself, "sass"),
    ("elm-stuff", Beside(&["elm.json"]), "elm make"),
    (".terraform", Beside(&[".terraform.lock.hcl"]), "terraform init"),
    (".dart_tool", Beside(&["pubspec.yaml"]), "dart pub get"),
    (".stack-work", Beside(&["stack.yaml"]), "stack build"),
    ("dist-newstyle", Beside(&["cabal.project"]), "cabal build"),
    ("_build", Beside(&["mix.exs", "dune-project"]), "mix or dune build"),
    ("zig-cache", Beside(&["build.zig"]), "zig build"),
    (".zig-cache", Beside(&["build.zig"]), "zig build"),
    (".build", Beside(&["Package.swift"]), "swift build"),
    ("Pods", Beside(&["Podfile.lock"]), "pod install"),
];

/// The tag by which a tool marks its directory as a cache (<https://bford.info/cachedir/>).
pub const CACHE_TAG: &[u8] = b"CACHEDIR.TAG";

/// The first bytes of a valid [`CACHE_TAG`] file.
pub const CACHE_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Tells whether a directory of this name is generated, given the names beside it.
pub fn made_beside(name: &[u8], beside: &dyn Fn(&[u8]) -> bool) -> bool {
    rows(name).any(|maker| match maker {
        Itself => true,
        Beside(makers) => makers.iter().any(|maker| beside(maker.as_bytes())),
        Inside(_) => false,
    })
}

/// Returns whether a directory of this name is generated, given what it holds. [`CACHE_TAG`] is the caller's to check,
/// because its content counts.
pub fn made_inside(name: &[u8], inside: &dyn Fn(&[u8]) -> bool) -> bool {
    rows(name).any(|maker| match maker {
        Inside(makers) => makers.iter().any(|maker| inside(maker.as_bytes())),
        Itself | Beside(_) => false,
    })
}

/// Returns whether directories of this name may be generated.
pub fn may_be_made(name: &[u8]) -> bool {
    rows(name).next().is_some()
}

/// First bytes and lengths of marks: most names are none, and every name of a walk is asked for.
static SHAPES: LazyLock<([bool; 256], u64)> = LazyLock::new(|| {
    let mut shapes = ([false; 256], 0);
    for maker in TABLE.iter().flat_map(|(_, maker, _)| match maker {
        Itself => &[],
        Beside(makers) | Inside(makers) => *makers,
    }) {
        shapes.0[usize::from(maker.as_bytes()[0])] = true;
        shapes.1 |= 1 << maker.len();
    }
    shapes
});

/// Returns whether a file of this name can tell that a directory beside or around it is generated.
pub fn is_mark(name: &[u8]) -> bool {
    let (firsts, lengths) = &*SHAPES;
    let shaped = name.first().is_some_and(|first| firsts[usize::from(*first)]);
    if !shaped || name.len() > 63 || lengths >> name.len() & 1 == 0 {
        return false;
    }
    TABLE.iter().any(|(_, maker, _)| match maker {
        Itself => false,
        Beside(makers) | Inside(makers) => makers.iter().any(|maker| maker.as_bytes() == name),
    })
}

fn rows(name: &[u8]) -> impl Iterator<Item = Maker> {
    TABLE.iter().filter(move |(row, _, _)| row.as_bytes() == name).map(|(_, maker, _)| *maker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_only_with_its_maker() {
        let table: &[(&str, &[&str], &[&str], bool)] = &[
            ("node_modules", &["package.json"], &[], true),
            ("node_modules", &[], &[], false),
            ("node_modules", &[], &[".package-lock.json"], true),
            ("target", &["Cargo.toml"], &[], true),
            ("target", &["pom.xml"], &[], true),
            ("target", &["Makefile"], &[], false),
            (".venv", &["pyvenv.cfg"], &[], false),
            (".venv", &[], &["pyvenv.cfg"], true),
            ("__pycache__", &[], &[], true),
            ("__PYCACHE__", &[], &[], false),
            ("build", &["package.json", "Cargo.toml", "build.gradle"], &[], false),
            ("dist", &["package.json"], &[], false),
            ("vendor", &["composer.json", "go.mod"], &[], false),
        ];
        for (name, beside, inside, expected) in table {
            let has = |names: &[&str], name: &[u8]| names.iter().any(|n| n.as_bytes() == name);
            let made = made_beside(name.as_bytes(), &|maker| has(beside, maker))
                || made_inside(name.as_bytes(), &|maker| has(inside, maker));
            assert_eq!(made, *expected, "{name} beside {beside:?} inside {inside:?}");
        }
    }

    #[test]
    fn marks_are_what_makers_leave() {
        for mark in ["package.json", "Cargo.toml", "pyvenv.cfg", ".yarn-state.yml", "Podfile.lock", "cabal.project"] {
            assert!(is_mark(mark.as_bytes()), "{mark}");
        }
        let long = "package.json".repeat(9);
        for other in ["", "package.jsom", "Package.json", "node_modules", "Cargo.lock", &long] {
            assert!(!is_mark(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn every_row_says_what_makes_it_again() {
        assert!(TABLE.iter().all(|(_, _, why)| !why.is_empty()));
    }
}
