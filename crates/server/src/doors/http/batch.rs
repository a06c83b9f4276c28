//! `/v1/queues/{q}/batch`: many changes in one call, streamed both ways.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use tickwheel_api::{BATCH_CONTENT_TYPE, BadBatchLine, BatchLine, BatchOp, BatchResult, Problem, PutQuery};
use tickwheel_queue::{Key, Put, QueueName};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::access::refusal::Refusal;
use crate::base::aside::{LONG_BYTES, aside};
use crate::doors::http::answer;
use crate::doors::http::body::BODY_BYTES_MAX;
use crate::doors::http::call::Call;
use crate::doors::http::lines::Line;
use crate::doors::http::paced_lines::{Form, LINES_TIME_MAX, PacedLines};
use crate::doors::http::problem;
use crate::doors::http::routes::handlers;
use crate::doors::http::rows::{Row, Rows};
use crate::service::app::App;
use crate::service::caller::Caller;
use crate::translate;

handlers! {
    Batch => batch,
}

const FORM: Form = Form { name: "batch", header_lines: 0, line_bytes_max: BODY_BYTES_MAX };

/// The largest number of commands under way. This fills a group commit. More commands of one client would only delay
/// those of other clients.
const UNDER_WAY_MAX: usize = 256;
/// The largest lines under way, in total (bytes), as a bound for large payloads.
const UNDER_WAY_BYTES_MAX: usize = 4 << 20;
/// A result costs as much work as this many bytes; a refusal with its hint costs [`REFUSED_BYTES`].
const RESULT_BYTES: usize = 64;
const REFUSED_BYTES: usize = 1 << 10;

/// `POST`: NDJSON in, NDJSON out, with a result for each line, in the order of the lines.
///
/// A batch is not atomic: each line is a call of its own, and lines on one key apply in order. A fault of the whole
/// body, such as its early end or its length, gives one last result without a key; the earlier lines stay applied.
/// The rest of the body is read and dropped before the answer ends: the head of the answer is sent already, so it
/// cannot close the connection any more.
///
/// The lines run on a task of their own, so the server reads the request even while the client does not read the
/// answer. Many clients send everything before they read anything. Otherwise both sides would wait for ever.
async fn batch(call: Call) -> Result<Response, Refusal> {
    let (name, trace) = (call.queue().clone(), call.trace());
    let Call { caller, parts, body, .. } = call;
    let lines = PacedLines::begin(&parts.headers, body, &caller, FORM).await?;
    let (rows, results) = mpsc::unbounded_channel();
    let under_way = VecDeque::new();
    let batch = Batch { caller, name, trace, under_way, bytes: 0, rows };
    tokio::spawn(batch.run(lines));
    Ok(answer::of(Body::new(Rows::new(results)), BATCH_CONTENT_TYPE))
}

/// A submitted line without a result yet.
struct UnderWay {
    bytes: usize,
    result: Pin<Box<dyn Future<Output = BatchResult> + Send>>,
}

struct Batch {
    caller: Caller,
    name: QueueName,
    /// The trace of all puts of the batch.
    trace: Option<Arc<str>>,
    /// Lines under way, in their order.
    under_way: VecDeque<UnderWay>,
    /// The bytes of the lines under way.
    bytes: usize,
    rows: mpsc::UnboundedSender<Row>,
}

impl Batch {
    async fn run(mut self, mut lines: PacedLines) {
        let rows = self.rows.clone();
        let mut late = pin!(sleep(LINES_TIME_MAX));
        let has_rest = tokio::select! {
            has_rest = self.all(&mut lines) => has_rest,
            // The client has left: lines that were not submitted yet are not applied.
            () = rows.closed() => return,
            () = &mut late => {
                self.send(&BatchResult::problem(None, problem::body_too_slow(LINES_TIME_MAX)));
                false
            }
        };
        lines.end(has_rest, &rows, late, &self.caller).await;
    }

    /// Submits each line and sends each result. Returns at the end of the body, or at a fault of the whole body. The
    /// result says whether a part of the body may be unread.
    async fn all(&mut self, lines: &mut PacedLines) -> bool {
        let fault = loop {
            let room = self.under_way.len() < UNDER_WAY_MAX && self.bytes < UNDER_WAY_BYTES_MAX;
            if !room {
                lines.wait_for_server();
            }
            tokio::select! {
                biased;
                result = first_result(&mut self.under_way), if !self.under_way.is_empty() => {
                    let begun = Instant::now();
                    self.finish_first(&result);
                    lines.steps.worked(work_of(&result)).await;
                    lines.worked_since(begun);
                }
                line = lines.next(), if room => match line {
                    Err(problem) => break Some(problem),
                    Ok(None) => break None,
                    Ok(Some(line)) => {
                        let begun = Instant::now();
                        lines.charge(&self.caller, &line).await;
                        self.submit(line).await;
                        lines.worked_since(begun);
                    }
                },
            }
        };
        while !self.under_way.is_empty() {
            let result = first_result(&mut self.under_way).await;
            self.finish_first(&result);
            lines.steps.worked(work_of(&result)).await;
        }
        let Some(problem) = fault else { return false };
        self.send(&BatchResult::problem(None, problem));
        true
    }

    /// Submits a line. The command is in the queue when this returns, so the order of lines is the order of commands.
    async fn submit(&mut self, line: Line) {
        let (bytes, result) = match line {
            Line::TooLong => {
                let problem = Problem::body_too_large(BODY_BYTES_MAX as u64);
                (0, settled(BatchResult::problem(None, problem)))
            }
            Line::Text(text) => (text.len(), self.call(text).await),
        };
        self.bytes += bytes;
        self.under_way.push_back(UnderWay { bytes, result });
    }

    async fn call(&mut self, text: Vec<u8>) -> Pin<Box<dyn Future<Output = BatchResult> + Send>> {
        let line = match Self::read(self.caller.app(), text).await {
            Ok(line) => line,
            Err(refused) => return settled(*refused),
        };
        let key = match Key::new(&line.key) {
            Ok(key) => key,
            Err(error) => {
                return settled(BatchResult::problem(Some(line.key), translate::name_refused(&error)));
            }
        };
        let (name, version) = (self.name.clone(), line.if_match.map(translate::version));
        let refused = |key: &Key, problem| BatchResult::problem(Some(key.as_str().to_owned()), problem);
        let levels = self.caller.app().admission.levels();
        let settle = |key: &Key, refusal: Refusal| settled(refused(key, refusal.into()));
        match line.op {
            BatchOp::Put { body, mode } => {
                let query = PutQuery { mode, revoke: line.revoke };
                let put = match translate::put(&name, Some(key.clone()), body, query, version, levels) {
                    Ok(put) => Put { trace: self.trace.clone(), ..put },
                    Err(bad) => return settled(refused(&key, Problem::bad_request(&bad))),
                };
                let stored = match self.caller.put(put) {
                    Ok(stored) => stored,
                    Err(refusal) => return settle(&key, refusal),
                };
                Box::pin(async move {
                    match stored.await {
                        Ok(stored) => translate::put_line(&key, &stored),
                        Err(error) => {
                            refused(&key, translate::put_refused(&error, &name, Some(&key), version))
                        }
                    }
                })
            }
            BatchOp::Patch(body) => {
                let patch = match translate::patch(&name, &key, body, line.revoke, version, levels) {
                    Ok(patch) => patch,
                    Err(bad) => return settled(refused(&key, Problem::bad_request(&bad))),
                };
                let changed = match self.caller.patch(patch) {
                    Ok(changed) => changed,
                    Err(refusal) => return settle(&key, refusal),
                };
                Box::pin(async move {
                    match changed.await {
                        Ok(task) => translate::patch_line(&key, &task),
                        Err(error) => refused(&key, translate::patch_refused(&error, &name, &key, version)),
                    }
                })
            }
            BatchOp::Cancel => {
                let cancel = translate::cancel(&name, &key, line.revoke, version);
                let ended = match self.caller.cancel(cancel) {
                    Ok(ended) => ended,
                    Err(refusal) => return settle(&key, refusal),
                };
                Box::pin(async move { translate::cancel_line(&key, version, ended.await) })
            }
        }
    }

    /// The parsed line, or the result that says what is wrong with it. A long line is parsed on another thread.
    async fn read(app: &App, text: Vec<u8>) -> Result<BatchLine, Box<BatchResult>> {
        let check = |line: &BatchLine| {
            line.check_portable().map_err(|refusal| BadBatchLine { key: Some(line.key.clone()), refusal })
        };
        let read = app.admission.portable(BatchLine::parse, check);
        let line = match text.len() {
            ..=LONG_BYTES => read(&text),
            _ => aside(move || read(&text)).await.map_err(|problem| BatchResult::problem(None, problem))?,
        };
        let refused = |bad: BadBatchLine| BatchResult::problem(bad.key, Problem::bad_request(&bad.refusal));
        line.map_err(|bad| Box::new(refused(bad)))
    }

    fn finish_first(&mut self, result: &BatchResult) {
        let first = self.under_way.pop_front().expect("it was the first that had a result");
        self.bytes -= first.bytes;
        self.send(result);
    }

    fn send(&self, result: &BatchResult) {
        if let Some(kind) = result.refusal() {
            self.caller.app().observed.refusals().count(kind);
        }
        // `run` notices it if the client has left.
        let _sent = self.rows.send(Row::Result(result.to_line()));
    }
}

/// The work of a result, in bytes of [`Steps`](crate::base::aside::Steps).
fn work_of(result: &BatchResult) -> usize {
    if result.refusal().is_some() { REFUSED_BYTES } else { RESULT_BYTES }
}

/// The result of the first line under way. The future can be dropped and called again.
async fn first_result(under_way: &mut VecDeque<UnderWay>) -> BatchResult {
    match under_way.front_mut() {
        Some(first) => first.result.as_mut().await,
        None => std::future::pending().await,
    }
}

fn settled(result: BatchResult) -> Pin<Box<dyn Future<Output = BatchResult> + Send>> {
    Box::pin(std::future::ready(result))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::task::{Context, Poll, ready};
    use std::time::Duration;

    use axum::body::{Bytes, HttpBody};
    use axum::http::{HeaderMap, Request};
    use hyper::body::Frame;
    use tokio::time::{Sleep, sleep_until};

    use super::*;
    use crate::access::producer::Producer;
    use crate::access::tokens::{Grant, Tokens};
    use crate::base::aside::ONE_BYTES;
    use crate::base::others::tests::turns;
    use crate::base::stopping::{self, Stop};
    use crate::doors::http::body::next_piece;
    use crate::doors::http::call::tests::answered;
    use crate::doors::http::pace::{PACE_BYTES, PACE_TIME};
    use crate::doors::http::paced_lines::LINES_MAX;
    use crate::doors::http::rows::CutShort;
    use crate::service::permits::limits::Limits;

    /// A body that sends its pieces at intervals. After the last piece it either ends, or stays open without further
    /// bytes.
    struct Paced {
        pieces: VecDeque<&'static [u8]>,
        apart: Duration,
        /// Whether the body ends after the last piece.
        ends: bool,
        next: Pin<Box<Sleep>>,
    }

    impl HttpBody for Paced {
        type Data = Bytes;
        type Error = CutShort;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
            if self.pieces.is_empty() {
                return if self.ends { Poll::Ready(None) } else { Poll::Pending };
            }
            ready!(self.next.as_mut().poll(cx));
            let again = sleep(self.apart);
            self.next.set(again);
            Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(Bytes::from_static(piece)))))
        }
    }

    fn pieces(pieces: &[&'static [u8]], apart: Duration, ends: bool) -> Body {
        let next = Box::pin(sleep(Duration::ZERO));
        Body::new(Paced { pieces: pieces.iter().copied().collect(), apart, ends, next })
    }

    fn paced(of: &[&'static [u8]], apart: Duration) -> Body {
        pieces(of, apart, false)
    }

    /// A server with one permit for batches.
    fn one_place() -> (Arc<App>, Stop) {
        with(Limits { batches: 1, ..Limits::default() })
    }

    fn with(limits: Limits) -> (Arc<App>, Stop) {
        let (stop, stopping) = stopping::signal();
        (Arc::new(App::with_limits(stopping, &limits)), stop)
    }

    async fn post(app: &Arc<App>, body: Body) -> Response {
        post_as(app, Grant::everything(), body).await
    }

    async fn post_as(app: &Arc<App>, grant: Grant, body: Body) -> Response {
        let request = Request::post("/v1/queues/q/batch").body(body).expect("a request");
        answered(app, grant, request).await
    }

    async fn lines(answer: Response) -> Vec<serde_json::Value> {
        let mut body = answer.into_body();
        let mut text = Vec::new();
        while let Some(piece) = next_piece(&mut body).await.expect("whole") {
            text.extend_from_slice(&piece);
        }
        let text = String::from_utf8(text).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// A line that is answered without the queue, because the queue's thread does not follow the test's clock.
    const LINE: &[u8] = b"no JSON\n";

    /// A bug that was found: silent batches of one producer took all permits for ten minutes.
    #[tokio::test(start_paused = true)]
    async fn a_silent_batch_makes_way_for_a_waiting_one() {
        let (app, _stop) = one_place();
        let silent = post(&app, paced(&[LINE], Duration::ZERO)).await;
        let begun = Instant::now();
        let other = post(&app, Body::from(LINE)).await;
        assert_eq!(other.status(), 200);
        assert!(begun.elapsed() <= PACE_TIME, "{:?}", begun.elapsed());
        assert_eq!(lines(other).await[0]["status"], 400, "the line of the other one is answered");
        let ended = lines(silent).await;
        assert_eq!((ended.len(), &ended[0]["status"], &ended[1]["status"]), (2, &400.into(), &408.into()));
        let detail = ended[1]["problem"]["detail"].as_str().expect("a text");
        assert!(
            detail.contains("1024 bytes a second for 5s") && detail.contains("--max-batches"),
            "{detail}"
        );
    }

    static BLANK: [u8; PACE_BYTES] = [b'\n'; PACE_BYTES];

    #[tokio::test(start_paused = true)]
    async fn a_batch_takes_a_place_of_its_sender() {
        let (app, _stop) = with(Limits { batches: 2, batches_per_caller: 1, ..Limits::default() });
        let tokens = Tokens::parse("one\ntwo").expect("tokens");
        let of = |token: &str| tokens.grant(token.as_bytes()).expect("it is known");
        let _steady = post_as(&app, of("one"), paced(&[&BLANK[..]; 20], Duration::from_secs(4))).await;
        let refused = post_as(&app, of("one"), Body::from(LINE)).await;
        let problem = lines(refused).await;
        let detail = problem[0]["detail"].as_str().expect("a text");
        assert!(detail.contains("--max-batches-per-caller"), "{detail}");
        assert_eq!(post_as(&app, of("two"), Body::from(LINE)).await.status(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_sends_enough_keeps_its_place() {
        let (app, _stop) = one_place();
        let steady = post(&app, paced(&[&BLANK[..]; 20], Duration::from_secs(4))).await;
        let begun = Instant::now();
        let refused = post(&app, Body::from(LINE)).await;
        assert_eq!(
            (refused.status(), begun.elapsed()),
            (429.try_into().expect("a status"), Duration::from_secs(6))
        );
        drop(steady);
        assert_eq!(post(&app, Body::from(LINE)).await.status(), 200, "a client that leaves gives it back");
    }

    /// A bug that was found: ten thousand lines that had already arrived delayed all other calls until the last one
    /// was read.
    #[tokio::test]
    async fn others_have_their_turn_between_the_lines() {
        let (app, _stop) = one_place();
        let many = b"no JSON\n".repeat(LINES_MAX);
        let turns = turns();
        let answered = lines(post(&app, Body::from(many)).await).await;
        assert_eq!(answered.len(), LINES_MAX);
        let (turns, least) = (turns.load(Ordering::Relaxed), LINES_MAX * ONE_BYTES / LONG_BYTES);
        assert!(turns >= least, "{turns} turns, not {least}");
    }

    /// A long line is parsed on another thread. Meanwhile this thread runs other tasks, and the lines keep their
    /// order.
    #[tokio::test]
    async fn long_lines_are_read_aside_and_keep_their_order() {
        let (app, _stop) = one_place();
        let put = |value: usize, bytes: usize| {
            let filler = "x".repeat(bytes);
            format!(
                "{{\"op\":\"put\",\"key\":\"k\",\"delay\":\"1h\",\"priority\":{value},\"payload\":\"{filler}\"}}\n"
            )
        };
        let text =
            [put(1, 10), put(2, 1_000_000), put(3, 10), "{}\n".to_owned(), put(4, LONG_BYTES)].concat();
        let answered = lines(post(&app, Body::from(text)).await).await;
        let statuses: Vec<_> = answered.iter().map(|line| line["status"].as_u64()).collect();
        assert_eq!(statuses, [Some(201), Some(200), Some(200), Some(400), Some(200)]);
        let versions: Vec<_> = answered.iter().filter_map(|line| line["version"].as_u64()).collect();
        assert!(versions.is_sorted(), "{answered:?}");
    }

    /// A batch is not slow while no other batch waits.
    #[tokio::test(start_paused = true)]
    async fn a_slow_batch_keeps_its_place_while_no_other_waits() {
        let (app, _stop) = one_place();
        let slow = post(&app, paced(&[LINE, LINE, LINE], Duration::from_secs(20))).await;
        sleep(Duration::from_secs(95)).await;
        let other = post(&app, Body::from(LINE)).await;
        assert_eq!(other.status(), 200, "and gives it up at once");
        let ended = lines(slow).await;
        let statuses: Vec<_> = ended.iter().map(|line| line["status"].as_u64()).collect();
        assert_eq!(statuses, [Some(400), Some(400), Some(400), Some(408)]);
    }

    /// A batch whose lines wait for the server, with the only permit of the server.
    async fn waiting_for_the_server(app: &Arc<App>, body: Body, wait: Duration) -> Response {
        let caller = Caller::new(Arc::clone(app), Grant::everything(), Producer::new(None, None));
        let begun = PacedLines::begin(&HeaderMap::new(), body, &caller, FORM).await;
        let Ok(lines) = begun else { panic!("no free permit") };
        let (rows, answer) = mpsc::unbounded_channel();
        let known = Instant::now() + wait;
        let late = || UnderWay {
            bytes: 0,
            result: Box::pin(async move {
                sleep_until(known).await;
                BatchResult::problem(None, Problem::stopping())
            }),
        };
        let under_way = (1..UNDER_WAY_MAX).map(|_| late()).collect();
        let name = QueueName::new("q").expect("a name");
        let batch = Batch { caller, name, trace: None, under_way, bytes: 0, rows };
        tokio::spawn(batch.run(lines));
        Response::new(Body::new(Rows::new(answer)))
    }

    /// A bug that was found: a client paused for 8 s, then filled its batch, and lost its permit while the server was
    /// busy with its lines.
    #[tokio::test(start_paused = true)]
    async fn a_batch_that_waits_for_the_server_is_not_slow() {
        let (app, _stop) = one_place();
        let body = pieces(&[b"\n", LINE, LINE], Duration::from_secs(8), true);
        let batch = waiting_for_the_server(&app, body, Duration::from_secs(30)).await;
        sleep(Duration::from_secs(10)).await;
        let refused = post(&app, Body::from(LINE)).await;
        assert_eq!(refused.status(), 429, "its permit is not another's");
        let rows = lines(batch).await;
        assert_eq!(rows.len(), UNDER_WAY_MAX + 1, "all its lines have results");
        assert_eq!(rows[UNDER_WAY_MAX]["status"], 400);
    }

    /// The head of the answer is sent before the batch ends, so the connection must be usable for the next call.
    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_batch_is_read_and_dropped_while_it_arrives() {
        static MORE: [u8; 2 * PACE_BYTES] = [b'x'; 2 * PACE_BYTES];
        let all: &'static [u8] = Vec::leak(b"no JSON\n".repeat(LINES_MAX + 1));
        let (app, _stop) = one_place();
        for (more, ends, seconds) in [(20, true, 80), (20, false, 85), (0, false, 5)] {
            let body = [vec![all], vec![&MORE[..]; more]].concat();
            let begun = Instant::now();
            let batch = post(&app, pieces(&body, Duration::from_secs(4), ends)).await;
            let rows = lines(batch).await;
            assert_eq!((rows.len(), &rows[LINES_MAX]["status"]), (LINES_MAX + 1, &413.into()));
            let waited = begun.elapsed().as_secs();
            assert!((seconds..=seconds + 5).contains(&waited), "{waited} s, not {seconds}");
            assert_eq!(post(&app, Body::from(LINE)).await.status(), 200);
        }
    }

    static STEADY: [u8; 2 * PACE_BYTES] = [b'x'; 2 * PACE_BYTES];

    /// A batch with one line more than the limit, and further bytes for 800 s.
    fn too_many_and_more() -> Body {
        let all: &'static [u8] = Vec::leak(b"no JSON\n".repeat(LINES_MAX + 1));
        paced(&[vec![all], vec![&STEADY[..]; 200]].concat(), Duration::from_secs(4))
    }

    /// A bug that was found: the time of a batch ended while the rest of its body was read, and the answer got a
    /// second last result.
    #[tokio::test(start_paused = true)]
    async fn a_batch_has_one_last_result_however_long_its_rest_takes() {
        let (app, _stop) = one_place();
        let begun = Instant::now();
        let rows = lines(post(&app, too_many_and_more()).await).await;
        assert_eq!((rows.len(), &rows[LINES_MAX]["status"]), (LINES_MAX + 1, &413.into()));
        let waited = begun.elapsed();
        assert!((LINES_TIME_MAX..LINES_TIME_MAX + PACE_TIME).contains(&waited), "{waited:?}");
    }

    /// A bug that was found: a client that left before the end of its answer was not charged for the rest of the
    /// body.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_is_charged_for_the_dropped_rest() {
        let (app, _stop) = one_place();
        let tokens = Tokens::parse("one bytes=200000/h").expect("tokens");
        let grant = tokens.grant(b"one").expect("it is known");
        let answer = post_as(&app, grant.clone(), too_many_and_more()).await;
        sleep(Duration::from_secs(100)).await;
        drop(answer);
        let refused = post_as(&app, grant, Body::from(LINE)).await;
        assert_eq!(refused.status(), 429);
    }
}
