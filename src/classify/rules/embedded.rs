//! The table that comes with piton: `config/rules.yaml` as `build.rs` read and printed it. Nothing is read when the program
//! starts.

#[allow(clippy::enum_glob_use, reason = "the printed table has thousands of variants by their short names")]
use super::dialect::{
    CallSpec, CodeLanguage::*, DatabaseSpec, InterpreterSpec, ProgramSpec, QueryLanguage::*, RemoteSpec, RuleSpec,
    SqlDialect::*, WrapperSpec,
};
#[allow(clippy::enum_glob_use, reason = "as above")]
use super::index::{Index, Name, Prefix, Section::*, SpecEntry};
use super::table::Specs;
use super::text::{List, Text};
#[allow(clippy::enum_glob_use, reason = "as above")]
use crate::model::effect::{Class::*, Severity::*};

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// Returns the embedded document.
pub(super) fn specs() -> Specs {
    Specs {
        disable: Text::default(),
        programs: List::of(&PROGRAMS),
        wrappers: List::of(&WRAPPERS),
        remotes: List::of(&REMOTES),
        databases: List::of(&DATABASES),
        interpreters: List::of(&INTERPRETERS),
        calls: List::of(&CALLS),
        rules: List::of(&RULES),
        index: Index { names: List::of(&NAMES), prefixes: List::of(&PREFIXES), slots: List::of(&SLOTS) },
    }
}
