//! The blocking API: the same calls as the async API, for a program without an async runtime.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use tickwheel_api::TraceContext;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{ClientError, Retries};

/// A client whose calls block their thread until they are answered. Several threads may share one client, or its clones, and call at the
/// same time.
///
/// A blocking client is a [`crate::Client`] with a small runtime of its own. This runtime runs only on the threads that call. The effect of
/// a call, its time limit and its repetition are those of the async client. The client also works inside of an async runtime, and blocks
/// that runtime's thread.
///
/// ```no_run
/// use tickwheel_api::{Due, LeaseBody, PayloadBody, PutBody, PutQuery};
/// use tickwheel_client::SERVER_URL_DEFAULT;
/// use tickwheel_client::blocking::Client;
///
/// let client = Client::new(SERVER_URL_DEFAULT)?;
/// let payload = PayloadBody::json(br#"{"order":1}"#.to_vec());
/// let body = PutBody { due: Due::After(1_800_000), payload, ..PutBody::default() };
/// client.put("close", "order/1", &body, PutQuery::default(), None)?;
/// for task in client.lease("close", &LeaseBody { wait_ms: 20_000, ..LeaseBody::default() })? {
///     client.ack("close", vec![task.token])?;
/// }
/// # Ok::<(), tickwheel_client::ClientError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) client: crate::Client,
    runtime: Arc<Own>,
}

impl Client {
    /// A client of the server at this URL: see [`crate::Client::new`]. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// As for [`crate::Client::new`], and [`ClientError::NoRuntime`].
    pub fn new(server_url: &str) -> Result<Self, ClientError> {
        let client = crate::Client::new(server_url)?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(no_runtime)?;
        Ok(Self { client, runtime: Arc::new(Own(Some(runtime))) })
    }

    /// Sends this token with each request, for a server that wants one.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.client = self.client.with_token(token);
        self
    }

    /// Sends calls again where that is safe, and blocks in between.
    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.client = self.client.with_retries(retries);
        self
    }

    /// Gives this trace to each task that is put from now on: see [`crate::Client::with_trace`].
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.client = self.client.with_trace(trace);
        self
    }

    /// Trusts these root certificates (PEM) for a server over TLS: see [`crate::Client::with_roots`].
    ///
    /// # Errors
    ///
    /// As for [`crate::Client::with_roots`].
    pub fn with_roots(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        self.client = self.client.with_roots(pem)?;
        Ok(self)
    }

    /// The `HOST:PORT` of the server, or its `unix:PATH`.
    pub fn address(&self) -> &str {
        self.client.address()
    }

    /// Waits for a call.
    pub(crate) fn block_on<T: Send>(
        &self,
        call: impl Future<Output = Result<T, ClientError>> + Send,
    ) -> Result<T, ClientError> {
        let Own(Some(runtime)) = &*self.runtime else {
            return Err(no_runtime(io::Error::other("it has ended")));
        };
        if Handle::try_current().is_err() {
            return runtime.block_on(call);
        }
        // This thread runs another runtime, and tokio forbids entering a second one. So a new thread waits for the call.
        thread::scope(|scope| {
            let waiting = thread::Builder::new().spawn_scoped(scope, || runtime.block_on(call));
            waiting.map_err(no_runtime)?.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

fn no_runtime(source: io::Error) -> ClientError {
    ClientError::NoRuntime { source }
}

/// The runtime of a client and its clones. Its end does not wait, not even for the look-up of a name: the last client may be dropped inside
/// of another runtime, where waiting is forbidden.
#[derive(Debug)]
struct Own(Option<Runtime>);

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
