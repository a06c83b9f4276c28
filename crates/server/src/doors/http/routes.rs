//! The routes: which handler answers which path and method.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use tickwheel_api::Problem;

use crate::doors::http::{
    backups, batch, bulk, clock, dead, description, drain, export, forecast, health, import, jobs, leases,
    metrics, problem, queues, schedules, tasks,
};
use crate::service::app::App;

/// A path, its allowed methods, and their handlers.
type Endpoint = (&'static str, &'static str, MethodRouter<Arc<App>>);

/// All routes; any other request gets a problem.
pub(crate) fn routes(app: Arc<App>) -> Router {
    let mut routes = Router::new();
    for (path, allowed, methods) in endpoints() {
        let methods = only(allowed, methods);
        // A path with an empty name gets a problem about the name, not about an unknown path.
        let unnamed = path.strip_suffix("{key}").or_else(|| path.strip_suffix("{name}"));
        if let Some(unnamed) = unnamed {
            routes = routes.route(unnamed, methods.clone());
        }
        routes = routes.route(path, methods);
    }
    routes.fallback(nothing_here).with_state(app)
}

fn endpoints() -> Vec<Endpoint> {
    let task = get(tasks::get).put(tasks::put).patch(tasks::patch).delete(tasks::cancel);
    let schedule = get(schedules::get).put(schedules::put).delete(schedules::delete);
    let queue = get(queues::one).put(queues::put).patch(queues::patch).delete(queues::delete);
    vec![
        ("/v1/queues", "GET, HEAD", get(queues::all)),
        ("/v1/queues/{q}", "GET, HEAD, PUT, PATCH, DELETE", queue),
        ("/v1/queues/{q}/pause", "POST", post(queues::pause)),
        ("/v1/queues/{q}/drain", "POST", post(queues::drain)),
        ("/v1/queues/{q}/resume", "POST", post(queues::resume)),
        ("/v1/queues/{q}/tasks", "GET, HEAD, POST", get(tasks::list).post(tasks::post)),
        ("/v1/queues/{q}/tasks/{key}", "GET, HEAD, PUT, PATCH, DELETE", task),
        ("/v1/queues/{q}/batch", "POST", post(batch::batch)),
        ("/v1/queues/{q}/lease", "POST", post(leases::lease)),
        ("/v1/queues/{q}/ack", "POST", post(leases::ack)),
        ("/v1/queues/{q}/nack", "POST", post(leases::nack)),
        ("/v1/queues/{q}/extend", "POST", post(leases::extend)),
        ("/v1/queues/{q}/dead", "GET, HEAD", get(tasks::list_dead)),
        ("/v1/queues/{q}/dead/redrive", "POST", post(dead::redrive)),
        ("/v1/queues/{q}/cancel", "POST", post(bulk::cancel)),
        ("/v1/queues/{q}/move", "POST", post(bulk::moving)),
        ("/v1/queues/{q}/purge", "POST", post(bulk::purge)),
        ("/v1/schedules", "GET, HEAD", get(schedules::all)),
        ("/v1/queues/{q}/schedules", "GET, HEAD", get(schedules::list)),
        ("/v1/queues/{q}/schedules/{name}", "GET, HEAD, PUT, DELETE", schedule),
        ("/v1/queues/{q}/schedules/{name}/preview", "GET, HEAD", get(schedules::preview)),
        ("/v1/jobs", "GET, HEAD", get(jobs::all)),
        ("/v1/jobs/{id}", "GET, HEAD, DELETE", get(jobs::get).delete(jobs::stop)),
        ("/v1/backups", "GET, HEAD, POST", get(backups::all).post(backups::begin)),
        ("/v1/backups/{id}", "GET, HEAD, DELETE", get(backups::one).delete(backups::stop)),
        ("/v1/forecast", "GET, HEAD", get(forecast::forecast)),
        ("/v1/export", "GET, HEAD", get(export::export)),
        ("/v1/import", "POST", post(import::import)),
        ("/v1/drain", "POST", post(drain::drain)),
        ("/v1/resume", "POST", post(drain::resume)),
        ("/v1/clock/advance", "POST", post(clock::advance)),
        ("/healthz", "GET, HEAD", get(health::alive)),
        ("/readyz", "GET, HEAD", get(health::ready)),
        ("/metrics", "GET, HEAD", get(metrics::metrics)),
        ("/openapi.json", "GET, HEAD", get(description::openapi)),
        ("/problems/{kind}", "GET, HEAD", get(description::problem_page)),
    ]
}

/// Handles these methods, and answers 405 with `Allow` to the others.
fn only(allowed: &'static str, methods: MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>> {
    methods
        .fallback(move |method: Method| async move { problem::method_not_allowed(method.as_str(), allowed) })
}

async fn nothing_here(uri: Uri) -> Response {
    problem::response(&Problem::no_endpoint(uri.path()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tickwheel_api::openapi::operations;

    use super::*;

    #[test]
    fn the_routes_are_the_described_operations() {
        let answered: BTreeSet<(&str, &str)> = endpoints()
            .iter()
            .flat_map(|(path, allowed, _)| allowed.split(", ").map(|method| (*path, method)))
            .filter(|(_, method)| *method != "HEAD")
            .collect();
        let operations = operations();
        let described: BTreeSet<_> =
            operations.iter().map(|operation| (operation.path, operation.method)).collect();
        assert_eq!(answered, described);
        for (path, allowed, _) in endpoints() {
            assert_eq!(allowed.contains("GET"), allowed.contains("HEAD"), "{path}");
        }
    }
}
