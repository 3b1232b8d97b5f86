//! Bringing files back: a pure plan, and its application with a proof per path.
