//! Arguments of a verb that are made only if the verb is called: those of all verbs together take longer than a short command.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};

/// True if the next grammar is made as a whole.
static WHOLE: AtomicBool = AtomicBool::new(false);

/// Has each grammar from now on made with the arguments of all verbs, as help, completions and pages need it.
pub(super) fn make_whole() {
    WHOLE.store(true, Ordering::Relaxed);
}

/// The arguments of a verb.
#[derive(Debug)]
pub(super) struct OnDemand<T>(T);

impl<T> Deref for OnDemand<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for OnDemand<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        if WHOLE.load(Ordering::Relaxed) { T::augment_args(command) } else { command.defer(T::augment_args) }
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for OnDemand<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(OnDemand)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
