//! Lists of tasks in answers.
//!
//! A thousand payloads of 1 MiB fit into no budget at once, so a long list is written task by task, as the client takes it.
//! The payloads themselves are shared with the queue, which holds them anyway.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use hyper::body::Frame;
use serde::Serialize;

/// Up to 1 MiB of payloads an answer is made at once, with its length in its head.
const WHOLE_BYTES_MAX: usize = 1 << 20;
/// 64 KiB a piece, so that small tasks share one.
const PIECE_BYTES: usize = 64 << 10;

/// Answers `{"tasks":[...]<rest>}`, each task as `one` makes it; `rest` is JSON text of further members, each with a comma
/// before it. `payload_bytes` measures a task.
pub(crate) fn tasks<T, O>(
    tasks: Vec<T>,
    payload_bytes: fn(&T) -> usize,
    one: fn(&T) -> O,
    rest: String,
) -> Response
where
    T: Send + Unpin + 'static,
    O: Serialize + 'static,
{
    let bytes: usize = tasks.iter().map(payload_bytes).sum();
    let mut list = TaskList { tasks: tasks.into_iter(), one, rest, state: State::Open };
    let body = if bytes <= WHOLE_BYTES_MAX { Body::from(list.piece(usize::MAX)) } else { Body::new(list) };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A list under way.
struct TaskList<T, O> {
    tasks: std::vec::IntoIter<T>,
    one: fn(&T) -> O,
    rest: String,
    state: State,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    /// Nothing is written.
    Open,
    /// The array is open and empty.
    First,
    /// A task was written, and no comma behind it.
    Further,
    /// All is written.
    Closed,
}

impl<T, O: Serialize> TaskList<T, O> {
    /// The next piece, which ends with the task that reaches `bytes_min`; empty at the end.
    fn piece(&mut self, bytes_min: usize) -> Vec<u8> {
        let mut piece = Vec::new();
        while piece.len() < bytes_min && self.state != State::Closed {
            self.state = self.write(&mut piece);
        }
        piece
    }

    fn write(&mut self, piece: &mut Vec<u8>) -> State {
        if self.state == State::Open {
            piece.extend_from_slice(br#"{"tasks":["#);
            return State::First;
        }
        let Some(task) = self.tasks.next() else {
            piece.push(b']');
            piece.extend_from_slice(self.rest.as_bytes());
            piece.push(b'}');
            return State::Closed;
        };
        if self.state == State::Further {
            piece.push(b',');
        }
        serde_json::to_writer(&mut *piece, &(self.one)(&task))
            .expect("our own types have string keys, and a vector takes all");
        State::Further
    }
}

impl<T: Unpin, O: Serialize> HttpBody for TaskList<T, O> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.piece(PIECE_BYTES);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece.into()))))
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_api::{LeasedTask, LeasedTasks, PayloadBody, TasksPage};

    use super::*;
    use crate::body::next_piece;

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
    async fn a_list_is_the_same_text_at_once_and_in_pieces() {
        for (count, payload_bytes, piece_count) in
            [(0, 0, 1), (1, 10, 1), (3, 10, 1), (40, 40_000, 21), (3, 500_000, 4)]
        {
            let tasks = leased(count, payload_bytes);
            let expected = serde_json::to_vec(&LeasedTasks { tasks: tasks.clone() }).expect("JSON");
            let answer = super::tasks(tasks, |task| task.payload.bytes.len(), Clone::clone, String::new());
            let pieces = pieces(answer.into_body()).await;
            assert!(pieces.concat() == expected, "{count} of {payload_bytes}");
            assert_eq!(pieces.len(), piece_count, "{count} of {payload_bytes}");
        }
    }

    #[tokio::test]
    async fn what_follows_the_list_is_kept() {
        let page = TasksPage { tasks: Vec::new(), next_cursor: Some("c".to_owned()) };
        let expected = serde_json::to_vec(&page).expect("JSON");
        let rest = ",\"next_cursor\":\"c\"".to_owned();
        let answer = super::tasks(Vec::<u64>::new(), |_| 0, |task| *task, rest);
        assert_eq!(pieces(answer.into_body()).await.concat(), expected);
    }
}
