//! One admitted call, as its handler gets it.

use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use tickwheel_api::{BadRequest, if_match};
use tickwheel_queue::{Key, QueueName, ScheduleName, Seq};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::body::JsonBytes;
use crate::doors::http::header;
use crate::doors::http::path::{decode, undecodable};
use crate::doors::http::wire::Turn;
use crate::service::app::App;
use crate::service::caller::Caller;
use crate::service::permits::shares::Permit;
use crate::targets::Targets;
use crate::translate;

/// A call of a caller that has the right to it, with the head and the body of its request.
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) parts: Parts,
    pub(crate) body: Body,
    pub(crate) turn: Turn,
    /// The queue in the path; `None` if the path has none.
    pub(crate) queue: Option<QueueName>,
    /// The byte range of another name in the path.
    pub(crate) name: Range<usize>,
    /// The permit of a large body that was read.
    pub(crate) permit: Option<Permit>,
}

impl Call {
    pub(crate) fn app(&self) -> &Arc<App> {
        self.caller.app()
    }

    /// The queue in the path.
    pub(crate) fn queue(&self) -> &QueueName {
        self.queue.as_ref().expect("the path of the operation names a queue")
    }

    /// The targets, for a caller with this right in the queue in the path.
    ///
    /// # Errors
    /// The errors of [`Caller::may`].
    pub(crate) fn targets(&self, right: Right) -> Result<&Targets, Refusal> {
        self.caller.targets(right, Some(self.queue()))
    }

    /// The key in the path.
    ///
    /// # Errors
    /// The problem of a name that is not a key.
    pub(crate) fn key(&self) -> Result<Key, Refusal> {
        Ok(Key::new(&self.name("key")?).map_err(|error| translate::name_refused(&error))?)
    }

    /// The name of a schedule in the path.
    ///
    /// # Errors
    /// The problem of a name that is not a schedule's name.
    pub(crate) fn schedule_name(&self) -> Result<ScheduleName, Refusal> {
        let name = self.name("schedule name")?;
        Ok(ScheduleName::new(&name).map_err(|error| translate::name_refused(&error))?)
    }

    /// The number of a job or a backup in the path, as it was written.
    ///
    /// # Errors
    /// The problem of a text that cannot be decoded.
    pub(crate) fn number(&self) -> Result<String, Refusal> {
        self.name("number")
    }

    fn name(&self, what: &'static str) -> Result<String, Refusal> {
        decode(&self.path()[self.name.clone()]).map_err(|fault| undecodable(fault, what).into())
    }

    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// The text after the `?`, still encoded; empty if there is none.
    pub(crate) fn query(&self) -> &str {
        self.parts.uri.query().unwrap_or_default()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The version that a change requires, from `If-Match`; `None`: any.
    ///
    /// # Errors
    /// 400 if the header is malformed or the request has another condition.
    pub(crate) fn version(&self) -> Result<Option<Seq>, Refusal> {
        let value = header::condition(self.headers())?;
        Ok(value.map(|value| if_match(value.as_bytes())).transpose()?.map(translate::version))
    }

    /// The trace of the request, as it is stored. Malformed headers count as absent, because no request is refused for
    /// its tracing.
    pub(crate) fn trace(&self) -> Option<Arc<str>> {
        header::trace(self.headers()).map(|trace| trace.to_text().into())
    }

    /// Reads the whole body and parses it with `read`. The permit of a large body is held until the call ends.
    ///
    /// # Errors
    /// The errors of [`JsonBytes::of`] and of `read`.
    pub(crate) async fn read<T: Send + 'static>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Result<T, BadRequest> + Send + 'static,
    ) -> Result<T, Refusal> {
        let mut body = self.json().await?;
        let read = body.read(read).await?;
        self.permit = body.permit;
        Ok(read)
    }

    /// Reads the whole body like [`read`](Self::read), and checks its payloads with `check` unless the server takes any
    /// JSON.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read) and of `check`.
    pub(crate) async fn read_portable<T: Send + 'static>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Result<T, BadRequest> + Send + 'static,
        check: impl FnOnce(&T) -> Result<(), BadRequest> + Send + 'static,
    ) -> Result<T, Refusal> {
        let app = Arc::clone(self.app());
        self.read(app.admission.portable(read, check)).await
    }

    /// Reads the whole body, which is not parsed yet.
    ///
    /// # Errors
    /// The errors of [`JsonBytes::of`].
    pub(crate) async fn json(&mut self) -> Result<JsonBytes, Refusal> {
        JsonBytes::of(&self.parts.headers, &mut self.body, &self.caller).await
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use axum::http::Request;
    use axum::response::{IntoResponse, Response};

    use super::*;
    use crate::access::producer::Producer;
    use crate::access::tokens::Grant;
    use crate::doors::http::routes::Routes;

    /// The answer to a caller with these rights.
    pub(crate) async fn answered(app: &Arc<App>, grant: Grant, request: Request<Body>) -> Response {
        let routes = Routes::new();
        let (parts, body) = request.into_parts();
        let found = routes.find(parts.uri.path(), &parts.method);
        let producer = Producer::new(grant.token(), None);
        let caller = Caller::new(Arc::clone(app), grant, producer);
        let queue = found.queue.transpose().expect("the name is valid");
        let name = found.name.map_or(0..0, |(_, at)| at);
        let call = Call { caller, parts, body, turn: Turn::default(), queue, name, permit: None };
        let operation = found.operation.expect("the table has it");
        routes.handler(operation.id)(call).await.unwrap_or_else(IntoResponse::into_response)
    }
}
