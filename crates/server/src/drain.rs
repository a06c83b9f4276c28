//! `/v1/drain` and `/v1/resume`: a server that takes no new tasks while workers go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::DrainBody;

use crate::answer;
use crate::app::{App, Shared};
use crate::body::NoBody;
use crate::events;
use crate::problem::Refusal;
use crate::query::NoQuery;

/// Tells a server to take no new tasks. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// From now on puts are refused; all else goes on. [`end`](Self::end), a `POST /v1/resume` or a new start ends it.
    pub fn begin(&self) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::warn!(event = events::DRAIN_BEGUN, "no new tasks are taken from now on");
        }
    }

    /// From now on puts are taken again.
    pub fn end(&self) {
        if self.0.swap(false, Ordering::Relaxed) {
            tracing::warn!(event = events::DRAIN_OVER, "new tasks are taken again");
        }
    }

    /// Whether puts are refused.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// `POST /v1/drain`: no task is added, in whatever queue.
pub(crate) async fn drain(app: Shared, _: NoQuery, _: NoBody) -> Result<Response, Refusal> {
    app.draining.begin();
    Ok(show(&app))
}

/// `POST /v1/resume`: the end of it.
pub(crate) async fn resume(app: Shared, _: NoQuery, _: NoBody) -> Result<Response, Refusal> {
    app.draining.end();
    Ok(show(&app))
}

fn show(app: &App) -> Response {
    answer::json(StatusCode::OK, &DrainBody { draining: app.draining.is_on() })
}
