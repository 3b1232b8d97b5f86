//! Custom commands in the form that most clients read: a Markdown file whose text is for a model that no hook answered for.

use crate::agents::install::FileContent;

/// `/rollback`.
pub(super) const ROLLBACK: FileContent = FileContent::Whole(include_str!("../../../hooks/rollback.md"));
/// `/undo`.
pub(super) const UNDO: FileContent = FileContent::Whole(include_str!("../../../hooks/undo.md"));
