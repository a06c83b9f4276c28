//! The routes: which operation a path and a method mean, and which handler carries it out.

use std::ops::Range;
use std::pin::Pin;

use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use tickwheel_api::Problem;
use tickwheel_api::openapi::{Needs, OPERATIONS, Operation, OperationId};
use tickwheel_queue::QueueName;

use crate::access::refusal::Refusal;
use crate::doors::http::call::Call;
use crate::doors::http::path::{decode, undecodable};
use crate::doors::http::{
    backups, batch, bulk, clock, dead, description, drain, events, export, forecast, health, holders, import,
    jobs, leases, metrics, problem, queues, schedules, search, story, targets, tasks, whoami,
};
use crate::telemetry::requests::UNMATCHED;
use crate::translate;

/// Carries out one operation.
pub(crate) type Handler = fn(Call) -> Answering;
/// An answer that a handler is making.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send>>;

/// Declares the handlers of a module, each with its operation in the table.
macro_rules! handlers {
    ($($Id:ident => $handler:ident,)+) => {
        pub(super) const HANDLERS: &[(tickwheel_api::openapi::OperationId, $crate::doors::http::routes::Handler)] =
            &[$((tickwheel_api::openapi::OperationId::$Id, |call| Box::pin($handler(call)))),+];
    };
}
pub(super) use handlers;

/// The modules with handlers.
const MODULES: [&[(OperationId, Handler)]; 23] = [
    backups::HANDLERS,
    batch::HANDLERS,
    bulk::HANDLERS,
    clock::HANDLERS,
    dead::HANDLERS,
    description::HANDLERS,
    drain::HANDLERS,
    events::HANDLERS,
    export::HANDLERS,
    forecast::HANDLERS,
    health::HANDLERS,
    holders::HANDLERS,
    import::HANDLERS,
    jobs::HANDLERS,
    leases::HANDLERS,
    metrics::HANDLERS,
    queues::HANDLERS,
    schedules::HANDLERS,
    search::HANDLERS,
    story::HANDLERS,
    targets::HANDLERS,
    tasks::HANDLERS,
    whoami::HANDLERS,
];

/// The operations by path and method, and their handlers.
pub(crate) struct Routes {
    root: Node,
    /// In the order of the table.
    handlers: [Handler; OPERATIONS.len()],
}

/// The paths of the table that begin with the same segments.
#[derive(Default)]
struct Node {
    /// The operations of the path that ends here, in the order of `Allow`.
    operations: Vec<&'static Operation>,
    words: Vec<(&'static str, Node)>,
    /// The paths that go on with a name, and the word of this name in the table.
    name: Option<(&'static str, Box<Node>)>,
}

/// The place of a request in the table.
#[derive(Default)]
pub(crate) struct Found<'r> {
    /// All operations of the path; none if the table has no such path.
    operations: &'r [&'static Operation],
    /// The operation that the method means.
    pub(crate) operation: Option<&'static Operation>,
    /// The queue that the path names, or the problem of a text that is not a queue name.
    pub(crate) queue: Option<Result<QueueName, Refusal>>,
    /// The other name in the path: its word in the table, and its bytes.
    pub(crate) name: Option<(&'static str, Range<usize>)>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        let mut root = Node::default();
        for operation in &OPERATIONS {
            root.add(operation);
        }
        let all = MODULES.concat();
        let handlers = OPERATIONS.each_ref().map(|operation| {
            let found = all.iter().find(|(id, _)| *id == operation.id);
            found.expect("each operation has a handler").1
        });
        Self { root, handlers }
    }

    /// The routes with another handler for one operation.
    #[cfg(test)]
    pub(crate) fn with(mut self, id: OperationId, handler: Handler) -> Self {
        self.handlers[id as usize] = handler;
        self
    }

    pub(crate) fn handler(&self, id: OperationId) -> Handler {
        self.handlers[id as usize]
    }

    /// Finds the place of a request. `HEAD` means the operation of `GET`.
    pub(crate) fn find(&self, path: &str, method: &Method) -> Found<'_> {
        let mut found = Found::default();
        let (mut node, mut rest) = (&self.root, path.strip_prefix('/'));
        while let Some(text) = rest {
            let (segment, after) = text.split_once('/').map_or((text, None), |(one, more)| (one, Some(more)));
            rest = after;
            if let Some((_, next)) = node.words.iter().find(|(word, _)| *word == segment) {
                node = next;
                continue;
            }
            let Some((name, next)) = &node.name else { return Found::default() };
            // An empty name gets a problem about the name, but the path of a collection may not end with `/`.
            if segment.is_empty() && after.is_none() && !["key", "name"].contains(name) {
                return Found::default();
            }
            let begin = path.len() - text.len();
            let at = begin..begin + segment.len();
            match *name {
                "q" => found.queue = Some(queue(segment)),
                name => found.name = Some((name, at)),
            }
            node = next;
        }
        if node.operations.is_empty() {
            return Found::default();
        }
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        found.operations = &node.operations;
        found.operation = node.operations.iter().copied().find(|operation| operation.method == method);
        found
    }
}

fn queue(segment: &str) -> Result<QueueName, Refusal> {
    let name = decode(segment).map_err(|fault| undecodable(fault, "queue name"))?;
    Ok(QueueName::new(&name).map_err(|error| translate::name_refused(&error))?)
}

impl Node {
    fn add(&mut self, operation: &'static Operation) {
        let mut node = self;
        for segment in operation.path.split('/').skip(1) {
            node = match segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
                Some(name) => &mut node.name.get_or_insert_with(|| (name, Box::default())).1,
                None => {
                    let known = node.words.iter().position(|(word, _)| *word == segment);
                    let at = known.unwrap_or_else(|| {
                        node.words.push((segment, Self::default()));
                        node.words.len() - 1
                    });
                    &mut node.words[at].1
                }
            };
        }
        node.operations.push(operation);
        let order =
            |method| ["GET", "POST", "PUT", "PATCH", "DELETE"].iter().position(|known| *known == method);
        node.operations.sort_by_key(|operation| order(operation.method));
    }
}

impl Found<'_> {
    /// The path in the table, with placeholders such as `{q}` instead of names. Logs, metrics and spans use it,
    /// because they must not contain names.
    pub(crate) fn route(&self) -> &'static str {
        self.operations.first().map_or(UNMATCHED, |operation| operation.path)
    }

    /// The right that the call needs. A call without an operation has no handler, so any token may get its answer.
    /// At a path that needs no token, such a call needs none either.
    pub(crate) fn needs(&self) -> Needs {
        let is_open = |operation: &&Operation| operation.needs == Needs::Nothing;
        match self.operation {
            Some(operation) => operation.needs,
            None if self.operations.first().is_some_and(is_open) => Needs::Nothing,
            None => Needs::Token,
        }
    }

    /// The answer to a call without an operation: 404, or 405 with `Allow`.
    pub(crate) fn nothing_here(&self, method: &Method, path: &str) -> Response {
        let allowed = self.operations.iter().map(|operation| match operation.method {
            "GET" => "GET, HEAD",
            method => method,
        });
        let allowed = allowed.collect::<Vec<_>>().join(", ");
        if allowed.is_empty() {
            return problem::response(&Problem::no_endpoint(path));
        }
        let mut response = problem::response(&Problem::bad_method(method.as_str(), &allowed));
        let allowed = HeaderValue::from_str(&allowed).expect("methods are a header value");
        response.headers_mut().insert(ALLOW, allowed);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a path of the table, each replaced by a text.
    fn named(path: &str) -> String {
        path.replace("{q}", "shop%2Fq").replace("{key}", "").replace("{name}", "nightly").replace("{id}", "7")
    }

    #[test]
    fn each_operation_is_found_by_its_path_and_method() {
        let routes = Routes::new();
        for operation in &OPERATIONS {
            let path = named(operation.path);
            let find = |method: &str| routes.find(&path, &method.parse().expect("a method"));
            let found = find(operation.method);
            assert_eq!(found.operation.map(|operation| operation.id), Some(operation.id), "{path}");
            assert_eq!((found.route(), found.needs()), (operation.path, operation.needs));
            let queue = found.queue.map(|queue| queue.expect("a name").as_str().to_owned());
            assert_eq!(queue.as_deref(), operation.path.contains("{q}").then_some("shop/q"));
            let head = find("HEAD").operation.map(|operation| operation.id);
            assert_eq!(head, find("GET").operation.map(|operation| operation.id), "{path}");
        }
    }

    #[test]
    fn each_operation_has_one_handler() {
        for operation in &OPERATIONS {
            let handlers = MODULES.iter().flat_map(|module| module.iter());
            assert_eq!(handlers.filter(|(id, _)| *id == operation.id).count(), 1, "{:?}", operation.id);
        }
    }

    #[test]
    fn each_operation_below_v1_needs_a_right_or_tells_which_there_are() {
        for operation in OPERATIONS.iter().filter(|operation| operation.id != OperationId::Whoami) {
            let is_open = matches!(operation.needs, Needs::Nothing | Needs::Token);
            assert!(!is_open || !operation.path.starts_with("/v1"), "{}", operation.path);
        }
    }

    #[test]
    fn a_path_that_the_table_has_not_is_in_no_log() {
        let routes = Routes::new();
        for path in [
            "",
            "*",
            "//",
            "/v1/queues/",
            "/v1/queues/close/order:1",
            "/v1/queues/close/tasks/a/b",
            "/v1/jobs/",
            "/v1/clock",
            "//v1/queues/q",
            "/healthz/",
            "/V1/queues",
            "/queues/close/tasks/order:1",
        ] {
            let found = routes.find(path, &Method::GET);
            assert_eq!((found.route(), found.needs()), (UNMATCHED, Needs::Token), "{path}");
            assert!(found.queue.is_none() && found.name.is_none(), "{path}");
            assert_eq!(found.nothing_here(&Method::GET, path).status(), 404, "{path}");
        }
    }

    /// An empty name is a mistake in the name, not in the path.
    #[test]
    fn an_empty_name_is_found() {
        let routes = Routes::new();
        for (path, name, at) in [
            ("/v1/queues/q/tasks/", "key", 19..19),
            ("/v1/queues/q/schedules/", "name", 23..23),
            ("/v1/queues/q/schedules//preview", "name", 23..23),
        ] {
            assert_eq!(routes.find(path, &Method::GET).name, Some((name, at)), "{path}");
        }
        let refused = routes.find("/v1/queues//lease", &Method::POST).queue.expect("it is named");
        assert_eq!(refused.expect_err("it is empty").problem().status, 400);
    }

    #[test]
    fn another_method_is_told_those_there_are() {
        let routes = Routes::new();
        let path = "/v1/queues/q/tasks/k";
        let found = routes.find(path, &Method::POST);
        assert!(found.operation.is_none());
        assert_eq!(found.route(), "/v1/queues/{q}/tasks/{key}");
        let answer = found.nothing_here(&Method::POST, path);
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()[ALLOW]),
            (405, &HeaderValue::from_static("GET, HEAD, PUT, PATCH, DELETE"))
        );
    }
}
