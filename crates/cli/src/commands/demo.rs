//! `tickwheel demo`.
use anyhow::Result;
use clap::Args;
use std::process::ExitCode;
/// Demo
#[derive(Args, Debug)]
pub(crate) struct Demo {}
impl Demo {
    pub(crate) fn run(self) -> Result<ExitCode> {
        Ok(ExitCode::SUCCESS)
    }
}
