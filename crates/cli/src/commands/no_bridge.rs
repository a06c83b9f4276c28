//! `tickwheel bridge` in a program that was built without it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use tickwheel_api::WITH_ALL_BROKERS;

/// Delay the messages of another broker (not in this build)
///
/// This program was built without the bridge. The packages have it, and so has a program that was built from source by
/// `cargo build --release --features brokers`.
#[derive(Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Bridge {
    /// Not read
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

impl Bridge {
    /// Says how one gets a program with the bridge.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn run(self) -> Result<ExitCode> {
        bail!("this program was built without the bridge; {WITH_ALL_BROKERS}")
    }
}
