//! Words of the languages, and names of functions that the reader itself knows.

/// Words that are no values.
pub(super) const WORDS: [&str; 44] = [
    "if", "elsif", "elif", "else", "unless", "while", "until", "do", "end", "then", "and", "or", "not", "in", "of",
    "is", "as", "def", "class", "function", "sub", "lambda", "try", "except", "finally", "rescue", "ensure", "catch",
    "raise", "throw", "pass", "break", "continue", "next", "last", "begin", "with", "assert", "del", "global", "case",
    "when", "async", "from",
];

/// Words before a value that do not change it.
pub(super) const TRANSPARENT: [&str; 8] = ["await", "new", "return", "yield", "void", "my", "our", "local"];

/// Functions that change the directory.
pub(super) const CHANGES: [&str; 5] = ["os.chdir", "chdir", "process.chdir", "Dir.chdir", "Deno.chdir"];

/// Functions that load a module by its name.
pub(super) const LOADS: [&str; 5] =
    ["require", "import", "__import__", "importlib.import_module", "process.getBuiltinModule"];

/// Methods that call a function for each item.
pub(super) const EACH: [&str; 5] = ["each", "forEach", "map", "each_with_index", "flatMap"];

/// Functions that only say something about a value.
pub(super) const ABOUT_VALUES: [&str; 12] =
    ["print", "help", "type", "repr", "str", "id", "dir", "callable", "hasattr", "isinstance", "console.log", "typeof"];

/// Names of the directory that the code is in.
pub(super) const OWN_DIRS: [&str; 4] = ["__dirname", "import.meta.dirname", "__DIR__", "__dir__"];

/// Names of the program that runs the code.
pub(super) const OWN_PROGRAMS: [(&str, &str); 5] = [
    ("sys.executable", "python3"),
    ("process.execPath", "node"),
    ("process.argv0", "node"),
    ("RbConfig.ruby", "ruby"),
    ("PHP_BINARY", "php"),
];
