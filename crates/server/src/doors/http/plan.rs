//! The configured HTTP door, before it opens.

use std::io;
use std::sync::Arc;

use crate::access::host::Hosts;
use crate::doors::http::console::Console;
use crate::doors::http::door::HttpDoor;
use crate::doors::http::routes::Routes;
use crate::doors::plan::Plan;
use crate::listen::door::Door;
use crate::listen::socket::ListenAt;
use crate::listen::tls::{Tls, TlsError};
use crate::service::app::App;
use crate::start_error::StartError;

pub(crate) struct Http {
    listen: ListenAt,
    is_encrypted: bool,
    allow_hosts: Vec<String>,
    access_log: bool,
    console: Console,
}

impl Http {
    pub(crate) fn new(
        listen: &ListenAt,
        allow_hosts: &[String],
        is_encrypted: bool,
        access_log: bool,
        console: Console,
    ) -> Self {
        Self { listen: listen.clone(), allow_hosts: allow_hosts.to_vec(), is_encrypted, access_log, console }
    }
}

impl Plan for Http {
    fn listen(&self) -> Option<&ListenAt> {
        Some(&self.listen)
    }

    fn tls(&self, server: Option<&Tls>) -> Result<Option<Tls>, TlsError> {
        Ok(server.cloned())
    }

    fn refused(&self, source: io::Error) -> StartError {
        StartError::Listen { listen: self.listen.clone(), source }
    }

    fn open(self: Box<Self>, app: Arc<App>, at: &ListenAt) -> Arc<dyn Door> {
        let hosts = Hosts::of(at, self.is_encrypted, &self.allow_hosts);
        Arc::new(HttpDoor::new(Routes::new(), app, hosts, self.access_log, self.console))
    }
}
