use super::Exit;
use super::verbs::DemoArgs;
use crate::error::Result;
pub fn demo(_args: &DemoArgs) -> Result<Exit> {
    Ok(Exit::Done)
}
