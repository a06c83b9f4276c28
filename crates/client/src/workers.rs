//! What a worker does: it leases tasks, and acks, nacks or extends its leases.

use crate::client::CALL_TIMEOUT;
use crate::exchange::Call;
use crate::url::queue_path;
use crate::{Client, ClientError};
use std::time::Duration;
use tickwheel_api::{
    AckBody, ExtendBody, LeaseBody, LeasedTask, LeasedTasks, NackBody, TokenResult, TokenResults,
};

impl Client {
    /// Takes ready tasks to work on, empty if none was ready in time. Blocks for as long as the body says to
    /// wait.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. After [`NoAnswer`](ClientError::NoAnswer) tasks may be leased to nobody; they
    /// come back when their lease ends.
    pub fn lease(&self, queue: &str, body: &LeaseBody) -> Result<Vec<LeasedTask>, ClientError> {
        let call = Call::new("POST", queue_path(queue, "lease"))
            .twice_is_once()
            .json(body.to_json())
            .timeout(CALL_TIMEOUT + Duration::from_millis(body.wait_ms));
        Ok(self.exchange.send(call)?.body::<LeasedTasks>()?.tasks)
    }

    /// Says that the work of these leases is done. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn ack(&self, queue: &str, tokens: Vec<String>) -> Result<Vec<TokenResult>, ClientError> {
        let call = Call::new("POST", queue_path(queue, "ack")).json(AckBody { tokens }.to_json());
        self.tokens(call.twice_is_once())
    }

    /// Gives leases back. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn nack(&self, queue: &str, body: &NackBody) -> Result<Vec<TokenResult>, ClientError> {
        self.tokens(Call::new("POST", queue_path(queue, "nack")).json(body.to_json()))
    }

    /// Keeps leases for longer. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn extend(&self, queue: &str, body: &ExtendBody) -> Result<Vec<TokenResult>, ClientError> {
        let call = Call::new("POST", queue_path(queue, "extend")).json(body.to_json());
        self.tokens(call.twice_is_once())
    }

    fn tokens(&self, call: Call) -> Result<Vec<TokenResult>, ClientError> {
        Ok(self.exchange.send(call)?.body::<TokenResults>()?.results)
    }
}
