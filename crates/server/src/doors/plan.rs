//! The plan of a door, before it is open.

use std::io;
use std::sync::Arc;

use crate::listen::door::Door;
use crate::listen::socket::ListenAt;
use crate::listen::tls::{Tls, TlsError};
use crate::service::app::App;
use crate::start_error::StartError;
use crate::telemetry::metrics::Figures;

/// A door as it is configured, before the store is open.
pub(crate) trait Plan: Send {
    /// The address or path of the door; `None`: the door stays closed.
    fn listen(&self) -> Option<&ListenAt>;

    /// The TLS of the door's TCP connections, given the certificate of the server if there is one.
    ///
    /// # Errors
    /// A file that the door needs in addition to the certificate cannot be read.
    fn tls(&self, server: Option<&Tls>) -> Result<Option<Tls>, TlsError>;

    /// The start error for a door that cannot listen.
    fn refused(&self, source: io::Error) -> StartError;

    /// The metrics of the door, whether it is closed or open.
    fn figures(&self) -> Option<Arc<dyn Figures>> {
        None
    }

    /// Opens the door in front of the service. `at`: its address, with the port that the system chose.
    fn open(self: Box<Self>, app: Arc<App>, at: &ListenAt) -> Arc<dyn Door>;
}
