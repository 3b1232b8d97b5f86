//! The view of a workspace as a repository, for an ordinary git.

use super::context::Context;
use super::print;
use crate::checkpoint::remote::view::View;
use crate::error::Result;

/// Makes the view of the workspace, and says what it cannot show.
pub(super) fn up_to_date(context: &Context) -> Result<View> {
    let view = context.timeline()?.catalog().view()?;
    view.faults.iter().for_each(|fault| print::warning(&format!("not shown: {fault}")));
    Ok(view)
}

/// Has the index hold what HEAD holds. git unfolds every path of a tree for it: one that is too large is refused before.
pub(super) fn prepare_index(context: &Context, view: &View) -> Result<()> {
    if let Some(head) = view.head.as_ref().filter(|_| !view.has_index()) {
        context.timeline()?.catalog().check_size(&head.tree)?;
    }
    view.prepare_index()
}
