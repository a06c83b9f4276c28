//! Which path and method goes where.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use tickwheel_api::Problem;

use crate::app::App;
use crate::{batch, bulk, clock, dead, health, jobs, leases, metrics, problem, queues, schedules, tasks};

/// All there is, and a problem for everything else.
pub(crate) fn routes(app: Arc<App>) -> Router {
    let task = get(tasks::get).put(tasks::put).patch(tasks::patch).delete(tasks::cancel);
    let task = only("GET, HEAD, PUT, PATCH, DELETE", task);
    let schedule = get(schedules::get).put(schedules::put).delete(schedules::delete);
    let schedule = only("GET, HEAD, PUT, DELETE", schedule);
    Router::new()
        .route("/v1/queues", only("GET, HEAD", get(queues::all)))
        .route(
            "/v1/queues/{q}",
            only("GET, HEAD, PUT, PATCH", get(queues::one).put(queues::put).patch(queues::patch)),
        )
        .route("/v1/queues/{q}/pause", only("POST", post(queues::pause)))
        .route("/v1/queues/{q}/drain", only("POST", post(queues::drain)))
        .route("/v1/queues/{q}/resume", only("POST", post(queues::resume)))
        .route("/v1/queues/{q}/tasks", only("GET, HEAD, POST", get(tasks::list).post(tasks::post)))
        .route("/v1/queues/{q}/tasks/{key}", task.clone())
        // A key that is empty is named as such, and not as an unknown path.
        .route("/v1/queues/{q}/tasks/", task)
        .route("/v1/queues/{q}/batch", only("POST", post(batch::batch)))
        .route("/v1/queues/{q}/lease", only("POST", post(leases::lease)))
        .route("/v1/queues/{q}/ack", only("POST", post(leases::ack)))
        .route("/v1/queues/{q}/nack", only("POST", post(leases::nack)))
        .route("/v1/queues/{q}/extend", only("POST", post(leases::extend)))
        .route("/v1/queues/{q}/dead", only("GET, HEAD", get(tasks::list_dead)))
        .route("/v1/queues/{q}/dead/redrive", only("POST", post(dead::redrive)))
        .route("/v1/queues/{q}/cancel", only("POST", post(bulk::cancel)))
        .route("/v1/queues/{q}/schedules", only("GET, HEAD", get(schedules::list)))
        .route("/v1/queues/{q}/schedules/{name}", schedule.clone())
        .route("/v1/queues/{q}/schedules/", schedule)
        .route("/v1/queues/{q}/schedules/{name}/preview", only("GET, HEAD", get(schedules::preview)))
        .route("/v1/jobs/{id}", only("GET, HEAD, DELETE", get(jobs::get).delete(jobs::stop)))
        .route("/v1/clock/advance", only("POST", post(clock::advance)))
        .route("/healthz", only("GET, HEAD", get(health::alive)))
        .route("/readyz", only("GET, HEAD", get(health::ready)))
        .route("/metrics", only("GET, HEAD", get(metrics::metrics)))
        .fallback(nothing_here)
        .with_state(app)
}

/// These methods, and 405 with `Allow` for the others.
fn only(allowed: &'static str, methods: MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>> {
    methods
        .fallback(move |method: Method| async move { problem::method_not_allowed(method.as_str(), allowed) })
}

async fn nothing_here(uri: Uri) -> Response {
    problem::response(&Problem::no_endpoint(uri.path()))
}
