//! `tickwheel token`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use tickwheel_server::{Tokens, hashed};

use crate::output::{STDOUT, say, stdout};

/// The number of random bytes in a token: 192 bits, which cannot be guessed and are 32 characters as base64.
const RANDOM_BYTES: usize = 24;

/// Make a token for a server that requires one
///
/// The token goes to stdout, for the client. The line for the server's token file goes to stderr, and has only the hash of the token. All
/// lines of the file are valid at the same time: to replace a token, add a line, give the new token to its client, and then remove the old
/// line.
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
    /// The rights: one or more of read,produce,consume,admin [default: all]
    #[arg(long, value_name = "RIGHTS")]
    rights: Option<String>,
    /// Where the token is valid: queues, and namespaces with their slash, such as close,shop/ [default: everywhere]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// The largest rate of calls, such as 100/s; each line of a batch counts as one call [default: no limit]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// The largest rate of body bytes, such as 1000000/s [default: no limit]
    #[arg(long, value_name = "RATE")]
    bytes: Option<String>,
    /// The largest number of tasks in the queues of the scope [default: no limit]
    #[arg(long, value_name = "N")]
    tasks: Option<String>,
    /// The longest time from a put until its task is due, such as 30d [default: the server's limit]
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
