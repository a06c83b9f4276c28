//! The server that a client command talks to.

use anyhow::Result;
use clap::Args;
use tickwheel_api::client::{Client, SERVER_URL_DEFAULT};

/// Which server.
#[derive(Args, Debug)]
pub(crate) struct Remote {
    /// The server's URL
    #[arg(long, global = true, value_name = "URL", env = "TICKWHEEL_SERVER", default_value = SERVER_URL_DEFAULT)]
    server: String,
}

impl Remote {
    /// A client of it. Nothing is sent yet.
    ///
    /// # Errors
    /// The URL is not one of a server.
    pub(crate) fn client(&self) -> Result<Client> {
        // An empty variable is how a shell says that it is not set.
        let url = if self.server.is_empty() { SERVER_URL_DEFAULT } else { &self.server };
        Ok(Client::new(url)?)
    }
}
