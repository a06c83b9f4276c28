//! The limits for a put by HTTP: hyper alone, which parses the same JSON and answers as much. It answers at once, or, as
//! a second limit, when the body is durable.

use std::convert::Infallible;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The body of a put.
#[derive(Deserialize)]
struct Put<'a> {
    delay: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The answer to a put, as long as ours.
#[derive(Serialize)]
struct Stored<'a> {
    queue: &'a str,
    key: &'a str,
    id: u64,
    version: u64,
    state: &'a str,
    due_at: &'a str,
    priority: usize,
}

/// A thread with a file: it writes what has come, syncs once, and tells all who wait.
#[derive(Clone, Debug)]
struct Log(mpsc::Sender<(Bytes, oneshot::Sender<()>)>);

impl Log {
    fn start(dir: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let mut file = File::create(dir.join("log")).context("create a log")?;
        let (sender, bodies) = mpsc::channel::<(Bytes, oneshot::Sender<()>)>();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            while let Ok(first) = bodies.recv() {
                let (bodies, told): (Vec<_>, Vec<_>) =
                    std::iter::once(first).chain(bodies.try_iter()).unzip();
                file.write_all(&bodies.concat()).expect("the disk has space");
                file.sync_data().expect("the disk works");
                for told in told {
                    // A client that left hears nothing.
                    let _told = told.send(());
                }
            }
        })?;
        Ok(Self(sender))
    }

    /// Waits until this body is durable.
    async fn keep(&self, body: Bytes) {
        let (told, durable) = oneshot::channel();
        self.0.send((body, told)).expect("the thread runs as long as this end is there");
        durable.await.expect("the thread tells all");
    }
}

/// Serves until its input ends. With `dir` each body is durable in a file there before its answer.
pub(super) fn serve(dir: Option<&Path>) -> anyhow::Result<()> {
    let log = Arc::new(dir.map(Log::start).transpose()?);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start a runtime")?;
    let listener = runtime.block_on(TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))))?;
    let address = listener.local_addr()?;
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _set = stream.set_nodelay(true);
            let log = Arc::clone(&log);
            let answers = service_fn(move |request| answer(request, Arc::clone(&log)));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answers);
            tokio::spawn(async move {
                // A client that leaves ends its connection.
                let _ended = connection.await;
            });
        }
    });
    super::server::tell(address)
}

async fn answer(
    request: Request<Incoming>,
    log: Arc<Option<Log>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (status, json) = match serde_json::from_slice::<Put<'_>>(&body) {
        Ok(put) => (StatusCode::CREATED, stored(&path, &put)),
        Err(_) => (StatusCode::BAD_REQUEST, Vec::new()),
    };
    if let Some(log) = &*log {
        log.keep(body).await;
    }
    let mut response = Response::new(Full::from(json));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (ETAG, "\"1000001\""),
    ] {
        headers.insert(name, hyper::header::HeaderValue::from_static(value));
    }
    if let Ok(location) = path.parse() {
        headers.insert(LOCATION, location);
    }
    Ok(response)
}

fn stored(path: &str, put: &Put<'_>) -> Vec<u8> {
    let mut names = path.split('/').skip(3);
    let stored = Stored {
        queue: names.next().unwrap_or_default(),
        key: names.nth(1).unwrap_or_default(),
        id: 1_000_001,
        version: 1_000_001,
        state: if put.delay.is_empty() { "ready" } else { "scheduled" },
        due_at: "2026-01-01T00:00:00.000Z",
        priority: put.payload.get().len(),
    };
    serde_json::to_vec(&stored).unwrap_or_default()
}
