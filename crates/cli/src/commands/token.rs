//! `tickwheel token`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use tickwheel_server::{Tokens, hashed};

use crate::output::{STDOUT, say, stdout};

/// 192 random bits cannot be guessed, and encode to 32 characters.
const RANDOM_BYTES: usize = 24;

/// Make a token for a server that asks for one
///
/// The token goes to stdout, for the client that is to use it; the line for the server's token file goes to stderr, and has only its hash. Several lines of a file
/// are valid at once: to replace a token add a line, hand the new token out, and take the old line away.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel token 2>> tokens > my-token               may do everything
  tickwheel token --name billing --rights consume --scope close
                                                      a worker's
  tickwheel token --rights read,produce --scope shop/ for all queues of a namespace
  tickwheel token --scope partner/ --rate 50/s --tasks 100000 --max-delay 30d
  tickwheel serve --token-file tokens
  tickwheel ls close --token-file my-token")]
pub(crate) struct Token {
    /// The name in the server's log, such as billing [default: its line in the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The rights, some of read,produce,consume,admin [default: all]
    #[arg(long, value_name = "RIGHTS")]
    rights: Option<String>,
    /// Where: queues, and namespaces with their slash, such as close,shop/ [default: everywhere]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// The most calls, such as 100/s; each line of a batch is one [default: no limit]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// The most bytes of bodies, such as 1000000/s [default: no limit]
    #[arg(long, value_name = "RATE")]
    bytes: Option<String>,
    /// The most tasks in the queues of the scope [default: no limit]
    #[arg(long, value_name = "N")]
    tasks: Option<String>,
    /// The longest time from a put until its task is due, such as 30d [default: as the server]
    #[arg(long, value_name = "DURATION")]
    max_delay: Option<String>,
}

impl Token {
    /// Makes a token and prints it.
    ///
    /// # Errors
    /// The rights or the scope are not valid, the system has no random bytes, or stdout cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| anyhow!("the system has no random bytes: {error}"))?;
        let token = URL_SAFE_NO_PAD.encode(random);
        let mut line = hashed(&token);
        for (name, value) in [
            ("name", &self.name),
            ("rights", &self.rights),
            ("scope", &self.scope),
            ("rate", &self.rate),
            ("bytes", &self.bytes),
            ("tasks", &self.tasks),
            ("max_delay", &self.max_delay),
        ] {
            if let Some(value) = value {
                line += &format!(" {name}={value}");
            }
        }
        Tokens::parse(&line).map_err(|error| anyhow!("{}", error.what))?;
        let mut out = stdout();
        writeln!(out, "{token}").and_then(|()| out.flush()).context(STDOUT)?;
        say(&line);
        Ok(ExitCode::SUCCESS)
    }
}
