use super::verbs::DemoArgs;
use super::Exit;
use crate::error::Result;
pub fn demo(_args: &DemoArgs) -> Result<Exit> { Ok(Exit::Done) }
