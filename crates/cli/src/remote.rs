//! The server that a client command talks to.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use clap::Args;
use tickwheel_client::blocking::Client;
use tickwheel_client::{Retries, SERVER_URL_DEFAULT};
use tickwheel_server::HASHED;

use crate::portable::way_on::Words;

/// Options that choose the server.
#[derive(Args, Debug)]
pub(crate) struct Remote {
    /// The URL of the server, or `unix:PATH` for a server that listens on a unix socket of this machine
    #[arg(long, global = true, value_name = "URL", env = "TICKWHEEL_SERVER", default_value = SERVER_URL_DEFAULT)]
    server: String,
    /// A file with the token, for a server that requires one; without this option the variable TICKWHEEL_TOKEN is used
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A PEM file with the root certificates to trust for https; without this option, the roots that browsers trust
    #[arg(long, global = true, value_name = "FILE", env = "TICKWHEEL_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// How many times to repeat a call if the server cannot be reached or is busy; after a lost answer, only a call that is safe to repeat
    /// is repeated
    #[arg(long, global = true, value_name = "N", env = "TICKWHEEL_RETRIES", default_value_t = 0)]
    retries: u32,
}

/// The environment variable with the token. There is no option for the token, because every user of a machine can read command lines.
pub(crate) const TOKEN_VARIABLE: &str = "TICKWHEEL_TOKEN";
/// The environment variable with the password for RabbitMQ, for the bridge.
pub(crate) const RABBITMQ_PASSWORD_VARIABLE: &str = "TICKWHEEL_RABBITMQ_PASSWORD";

impl Remote {
    /// Makes a client of the server. Nothing is sent yet.
    ///
    /// # Errors
    /// The URL is not that of a server.
    pub(crate) fn client(&self) -> Result<Client> {
        let mut client = Client::new(self.url())?.with_retries(self.retries());
        if let Some((path, pem)) = self.roots()? {
            client = client.with_roots(&pem).with_context(|| format!("failed to take {}", path.display()))?;
        }
        Ok(match self.checked_token()? {
            Some(token) => client.with_token(&token),
            None => client,
        })
    }

    /// Makes an async client of the server. Nothing is sent yet.
    ///
    /// # Errors
    /// As for [`client`](Self::client).
    #[cfg(feature = "bridge")]
    pub(crate) fn async_client(&self) -> Result<tickwheel_client::Client> {
        let mut client = tickwheel_client::Client::new(self.url())?.with_retries(self.retries());
        if let Some((path, pem)) = self.roots()? {
            client = client.with_roots(&pem).with_context(|| format!("failed to take {}", path.display()))?;
        }
        Ok(match self.checked_token()? {
            Some(token) => client.with_token(&token),
            None => client,
        })
    }

    /// The URL. An empty variable counts as one that is not set, as in a shell.
    fn url(&self) -> &str {
        if self.server.is_empty() { SERVER_URL_DEFAULT } else { &self.server }
    }

    fn retries(&self) -> Retries {
        Retries { calls: self.retries.saturating_add(1), ..Retries::default() }
    }

    /// The file with the root certificates and its text, if there is one.
    fn roots(&self) -> Result<Option<(&Path, Vec<u8>)>> {
        let Some(path) = &self.ca_file else { return Ok(None) };
        let url = self.url();
        if url.starts_with("unix:") {
            bail!("there is no TLS at {url}; leave out --ca-file and the variable TICKWHEEL_CA_FILE");
        }
        let pem = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok(Some((path, pem)))
    }

    /// The token, with letters that a header may have.
    fn checked_token(&self) -> Result<Option<String>> {
        let token = self.token()?;
        if token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            bail!(
                "the token has a byte that no header may have; it has letters, digits and signs of ASCII only"
            );
        }
        Ok(token)
    }

    /// Adds the options of this command line, so that a printed command goes to the same server. The name of a token file is added, but
    /// never a token.
    pub(crate) fn add_to(&self, words: &mut Words) {
        if !self.server.is_empty() && self.server != SERVER_URL_DEFAULT {
            words.option("--server", &self.server);
        }
        for (name, path) in [("--token-file", &self.token_file), ("--ca-file", &self.ca_file)] {
            if let Some(path) = path {
                words.path(name, path);
            }
        }
        if self.retries > 0 {
            words.option("--retries", &self.retries.to_string());
        }
    }

    fn token(&self) -> Result<Option<String>> {
        let Some(path) = &self.token_file else {
            let token = env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
            if token.as_deref().is_some_and(is_hash) {
                bail!(
                    "{TOKEN_VARIABLE} has the hash of a token, which is for a server; a client needs the token itself"
                );
            }
            return Ok(token);
        };
        let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        let mut words = text.lines().filter_map(|line| line.split('#').next()?.split_whitespace().next());
        let token = words.find(|word| !is_hash(word));
        let none = || {
            format!(
                "{} has no token, or only the hash of one; write the token itself into it",
                path.display()
            )
        };
        token.map(|token| Some(token.to_owned())).with_context(none)
    }
}

/// Whether the word is the hash of a token, as in a server's file, and not the token.
fn is_hash(word: &str) -> bool {
    word.get(..HASHED.len()).is_some_and(|start| start.eq_ignore_ascii_case(HASHED))
}
