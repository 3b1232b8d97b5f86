//! The one way to stop long work: the work itself asks again and again if it should stop.

/// The answer to long work that asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on with the work.
    Continue,
    /// Ends the work as soon as it can; a capture with `shutting-down`.
    Stop,
}

/// A question that long work asks between its steps.
pub type Interrupt<'a> = &'a dyn Fn() -> Flow;
