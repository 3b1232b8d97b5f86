//! Putting a text together, piece by piece: adding to a `String` cannot fail, so that nothing is dropped where these are used.

/// Adds to a `String`, as `write!` does.
macro_rules! add {
    ($text:expr, $($piece:tt)*) => { $text.push_str(&format!($($piece)*)) };
}

/// Adds a line to a `String`, as `writeln!` does.
macro_rules! add_line {
    ($text:expr, $($piece:tt)*) => {{
        add!($text, $($piece)*);
        $text.push('\n');
    }};
}
