//! The server as a whole: its clock, its forecast, its drain, its figures.

use crate::client::ADVANCE_TIMEOUT;
use crate::exchange::Call;
use crate::{Client, ClientError};
use tickwheel_api::{AdvanceBody, DrainBody, ForecastBody, ForecastQuery, NowBody};

impl Client {
    /// Moves the virtual clock and returns its new time, in ms since 1970. Answers once all that fell due is
    /// ready.
    ///
    /// # Errors
    ///
    /// As a problem: 404 on a server that runs on real time; see [`ClientError`].
    pub fn advance(&self, by_ms: u64) -> Result<i64, ClientError> {
        let call = Call::new("POST", "/v1/clock/advance".to_owned())
            .json(AdvanceBody { by_ms }.to_json())
            .timeout(ADVANCE_TIMEOUT);
        Ok(self.exchange.send(call)?.body::<NowBody>()?.now_ms)
    }

    /// How many tasks fall due when, of a queue or of all.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn forecast(&self, query: &ForecastQuery) -> Result<ForecastBody, ClientError> {
        self.exchange.send(Call::new("GET", "/v1/forecast".to_owned()).query(&query.to_query()))?.body()
    }

    /// The server takes no new tasks from now on, in whatever queue; those that are there are worked off. A new start ends it, too.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`].
    pub fn drain_server(&self) -> Result<DrainBody, ClientError> {
        self.exchange.send(Call::new("POST", "/v1/drain".to_owned()).twice_is_once())?.body()
    }

    /// Ends the drain of the server. What queues were told for themselves stays.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`].
    pub fn resume_server(&self) -> Result<DrainBody, ClientError> {
        self.exchange.send(Call::new("POST", "/v1/resume".to_owned()).twice_is_once())?.body()
    }

    /// The server's figures, as the page of OpenMetrics that Prometheus reads.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`].
    pub fn metrics(&self) -> Result<String, ClientError> {
        self.exchange.send(Call::new("GET", "/metrics".to_owned()))?.text()
    }

    /// Asks whether the server takes calls.
    ///
    /// # Errors
    ///
    /// Any error says that it does not, or not yet; see [`ClientError`].
    pub fn ready(&self) -> Result<(), ClientError> {
        self.exchange.send(Call::new("GET", "/readyz".to_owned())).map(|_| ())
    }
}
