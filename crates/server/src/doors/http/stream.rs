//! Lists of tasks in answers.
//!
//! A thousand payloads of 1 MiB are too much to copy at once, so a long list is written task by task, as fast as the
//! client reads it. The payloads themselves are shared with the queue, which has them in memory anyway.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;
use serde::Serialize;
use tickwheel_api::{Answer, Problem};

use crate::access::refusal::Refusal;
use crate::base::aside::{LONG_BYTES, aside};
use crate::base::others::let_others;
use crate::base::pieces::{PIECE_BYTES, Pieces, Sent};
use crate::doors::http::answer;

/// Payloads up to this total size (bytes) are answered at once, with a `Content-Length`.
const WHOLE_BYTES_MAX: usize = 1 << 20;
/// The largest number of tasks in a piece. Other tasks of the server run between two pieces, and a task without a
/// payload takes time, too.
const PIECE_TASKS: usize = 64;

/// Answers `{"tasks":[...]<rest>}`, with each task as `one` converts it. `lax`: the clients read any JSON. `rest` is the
/// JSON text of further members, each with a comma before it. `payload_bytes` returns the size of a task's payload.
pub(crate) async fn tasks<T, O>(
    tasks: Vec<T>,
    payload_bytes: fn(&T) -> usize,
    one: fn(&T) -> O,
    lax: bool,
    rest: String,
) -> Response
where
    T: Send + Unpin + 'static,
    O: 'static,
    Answer<O>: Serialize,
{
    let bytes: usize = tasks.iter().map(payload_bytes).sum();
    let mut list = TaskList { tasks: tasks.into_iter(), one, lax, rest, state: State::Open };
    let body = if bytes <= LONG_BYTES {
        list.whole().await.into_body()
    } else if bytes <= WHOLE_BYTES_MAX {
        match aside(move || list.whole_at_once()).await {
            Ok(whole) => whole.into_body(),
            Err(stopping) => return Refusal::from(stopping).into_response(),
        }
    } else {
        Body::new(Streamed { sending: Pieces::default().into_sent(), making: Some(making(list)) })
    };
    answer::of(body, "application/json")
}

/// A list that is being written.
struct TaskList<T, O> {
    tasks: std::vec::IntoIter<T>,
    one: fn(&T) -> O,
    lax: bool,
    rest: String,
    state: State,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    /// Nothing is written.
    Open,
    /// The array is open and empty.
    First,
    /// A task was written, without a comma behind it.
    Further,
    /// Everything is written.
    Closed,
}

impl<T, O> TaskList<T, O>
where
    Answer<O>: Serialize,
{
    /// Writes the next piece, which ends with the task that reaches the size of a piece; small tasks share one piece.
    /// `false`: nothing is left.
    fn piece(&mut self, out: &mut Pieces) -> bool {
        let (begun, tasks_left) = (out.len(), self.tasks.len().saturating_sub(PIECE_TASKS));
        while out.len() - begun < PIECE_BYTES && self.state != State::Closed {
            self.state = self.write(out);
            if self.tasks.len() == tasks_left && tasks_left > 0 {
                break;
            }
        }
        out.len() > begun
    }

    /// All pieces. Other tasks have their turn between two pieces.
    async fn whole(&mut self) -> Pieces {
        let mut whole = Pieces::default();
        while self.piece(&mut whole) {
            let_others().await;
        }
        whole
    }

    fn whole_at_once(&mut self) -> Pieces {
        let mut whole = Pieces::default();
        while self.piece(&mut whole) {}
        whole
    }

    fn write(&mut self, out: &mut Pieces) -> State {
        if self.state == State::Open {
            out.push(br#"{"tasks":["#);
            return State::First;
        }
        let Some(task) = self.tasks.next() else {
            out.push(b"]");
            out.push(self.rest.as_bytes());
            out.push(b"}");
            return State::Closed;
        };
        if self.state == State::Further {
            out.push(b",");
        }
        serde_json::to_writer(out, &Answer { body: (self.one)(&task), lax: self.lax })
            .expect("our own types have string keys, and memory takes all");
        State::Further
    }
}

/// A list whose next pieces are made on another thread when the client has taken the earlier ones.
struct Streamed<T, O> {
    sending: Sent,
    /// `None`: everything is written.
    making: Option<Making<T, O>>,
}

/// The next pieces, which another thread makes now; they are empty at the end.
type Making<T, O> = Pin<Box<dyn Future<Output = Result<(TaskList<T, O>, Pieces), Problem>> + Send>>;

fn making<T: Send + 'static, O: 'static>(mut list: TaskList<T, O>) -> Making<T, O>
where
    Answer<O>: Serialize,
{
    Box::pin(aside(move || {
        let mut pieces = Pieces::default();
        list.piece(&mut pieces);
        (list, pieces)
    }))
}

impl<T: Send + 'static, O: 'static> HttpBody for Streamed<T, O>
where
    Answer<O>: Serialize,
{
    type Data = Bytes;
    type Error = Problem;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Problem>>> {
        loop {
            if let Some(Ok(frame)) = ready!(Pin::new(&mut self.sending).poll_frame(cx)) {
                return Poll::Ready(Some(Ok(frame)));
            }
            let Some(under_way) = &mut self.making else { return Poll::Ready(None) };
            let made = ready!(under_way.as_mut().poll(cx));
            self.making = None;
            match made {
                // The connection is cut, so that the client sees that tasks are missing.
                Err(stopping) => return Poll::Ready(Some(Err(stopping))),
                Ok((_, pieces)) if pieces.len() == 0 => return Poll::Ready(None),
                Ok((list, pieces)) => {
                    self.making = Some(making(list));
                    self.sending = pieces.into_sent();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tickwheel_api::{LeasedTask, LeasedTasks, PayloadBody, TasksPage};

    use super::*;
    use crate::base::others::tests::turns;
    use crate::doors::http::body::next_piece;

    fn leased(count: u64, payload_bytes: usize) -> Vec<LeasedTask> {
        let one = |id: u64| LeasedTask {
            key: format!("k{id}"),
            id,
            payload: PayloadBody::json(format!("\"{}\"", "x".repeat(payload_bytes)).into_bytes()),
            tags: Vec::new(),
            priority: 1024,
            group: None,
            due_at_ms: 0,
            attempt: 1,
            token: "t".to_owned(),
            lease_until_ms: 1_000,
            trace: None,
        };
        (0..count).map(one).collect()
    }

    async fn pieces(mut body: Body) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Some(piece) = next_piece(&mut body).await.expect("it does not fail") {
            pieces.push(piece);
        }
        pieces
    }

    #[tokio::test]
    async fn a_list_has_equal_text_at_once_and_in_pieces() {
        for (count, payload_bytes, piece_count) in
            [(0, 0, 1), (1, 10, 1), (3, 10, 1), (40, 40_000, 41), (3, 500_000, 25)]
        {
            let tasks = leased(count, payload_bytes);
            let expected = serde_json::to_vec(&LeasedTasks { tasks: tasks.clone() }).expect("JSON");
            let answer =
                super::tasks(tasks, |task| task.payload.bytes.len(), Clone::clone, false, String::new())
                    .await;
            let pieces = pieces(answer.into_body()).await;
            assert!(pieces.concat() == expected, "{count} of {payload_bytes}");
            assert_eq!(pieces.len(), piece_count, "{count} of {payload_bytes}");
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES), "{count} of {payload_bytes}");
        }
    }

    #[tokio::test]
    async fn others_have_their_turn_between_two_pieces() {
        // A list of this size is written in steps on this thread; the work of other threads would not block it.
        let turns = turns();
        let bytes = |task: &LeasedTask| task.payload.bytes.len();
        let answer = super::tasks(leased(1_000, 10), bytes, Clone::clone, false, String::new()).await;
        pieces(answer.into_body()).await;
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= 14, "{turns} turns while 1,000 tasks were written");
    }

    #[tokio::test]
    async fn further_members_follow_the_list() {
        let page = TasksPage { tasks: Vec::new(), next_cursor: Some("c".to_owned()), looked_at: None };
        let expected = serde_json::to_vec(&page).expect("JSON");
        let rest = ",\"next_cursor\":\"c\"".to_owned();
        let answer = super::tasks(leased(0, 0), |_| 0, Clone::clone, false, rest).await;
        assert_eq!(pieces(answer.into_body()).await.concat(), expected);
    }
}
