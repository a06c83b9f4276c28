//! Reads the rows of the inbox.

use tickwheel_engine::{Body, Key, QueueName, RowAct, TakeRow, Timestamp};
use tickwheel_store::InboxRow;

use crate::database::{InboxEntry, PAYLOAD_BYTES_MAX};

/// The last instant that the API can write (ms), as in `tickwheel.put`.
const DUE_MS_MAX: i64 = 253_402_207_200_999;
const CONTENT_TYPE_BYTES_MAX: usize = 255;
/// The queue of this name belongs to the server.
const OWN_QUEUE: &str = "$jobs";

/// Checks a payload: its content type and its bytes. The error is the reason why the row is refused.
pub type PayloadCheck = fn(&str, &[u8]) -> Result<(), String>;

/// Reads a row. The functions of the schema have checked it; a row that was made by hand is checked here, by the same rules.
pub(crate) fn read(entry: InboxEntry, check: PayloadCheck) -> InboxRow {
    InboxRow { id: entry.id.cast_unsigned(), asked: take(entry, check) }
}

fn take(entry: InboxEntry, check: PayloadCheck) -> Result<TakeRow, String> {
    let InboxEntry { id, op, queue, key, due_at, payload, payload_bytes, content_type, put_at } = entry;
    let queue = QueueName::new(&queue).map_err(|error| error.to_string())?;
    if queue.as_str() == OWN_QUEUE {
        return Err(format!("the queue {OWN_QUEUE} belongs to the server"));
    }
    let key = Key::new(&key).map_err(|error| error.to_string())?;
    let act = match op {
        1 => RowAct::Put {
            due_at: due(due_at)?,
            put_at: Timestamp::from_ms(put_at).unwrap_or(Timestamp::EPOCH),
            body: body(payload, payload_bytes, content_type, check)?,
        },
        2 => RowAct::Cancel,
        other => return Err(format!("the op is {other}; it is 1 for a put or 2 for a cancel")),
    };
    Ok(TakeRow { row: id.cast_unsigned(), queue, key, act })
}

fn due(due_at: Option<i64>) -> Result<Timestamp, String> {
    let ms = due_at.ok_or("the row has no due time")?;
    let due = Timestamp::from_ms(ms).filter(|_| ms <= DUE_MS_MAX);
    due.ok_or_else(|| format!("the due time is {ms} ms; it takes 0 to {DUE_MS_MAX}"))
}

fn body(
    payload: Option<Vec<u8>>,
    payload_bytes: u64,
    content_type: Option<String>,
    check: PayloadCheck,
) -> Result<Body, String> {
    if payload_bytes > u64::from(PAYLOAD_BYTES_MAX) {
        return Err(format!("the payload has {payload_bytes} bytes; it takes at most {PAYLOAD_BYTES_MAX}"));
    }
    let payload = payload.ok_or("the row has no payload")?;
    let content_type = content_type.ok_or("the row has no content type")?;
    let is_one = content_type.len() <= CONTENT_TYPE_BYTES_MAX
        && content_type.contains('/')
        && content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if !is_one {
        return Err(format!(
            "{:?} is not a content type of 1 to {CONTENT_TYPE_BYTES_MAX} visible ASCII characters",
            content_type.chars().take(40).collect::<String>()
        ));
    }
    check(&content_type, &payload)?;
    Ok(Body { payload, content_type: content_type.into(), ..Body::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> InboxEntry {
        InboxEntry {
            id: 7,
            op: 1,
            queue: "shop/close".to_owned(),
            key: "order:1".to_owned(),
            due_at: Some(1_000),
            payload: Some(b"{}".to_vec()),
            payload_bytes: 2,
            content_type: Some("application/json".to_owned()),
            put_at: 900,
        }
    }

    fn any(_: &str, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    #[test]
    fn a_payload_that_the_check_refuses_refuses_its_row() {
        let check: PayloadCheck =
            |content_type, payload| Err(format!("{content_type}: {} bytes", payload.len()));
        assert_eq!(read(entry(), check).asked, Err("application/json: 2 bytes".to_owned()));
        let cancel = InboxEntry { op: 2, due_at: None, payload: None, content_type: None, ..entry() };
        assert!(read(cancel, check).asked.is_ok(), "a cancel has no payload");
    }

    #[test]
    fn a_row_of_the_functions_is_a_call() {
        let InboxRow { id, asked } = read(entry(), any);
        let take = asked.expect("it is in order");
        assert_eq!((id, take.row, take.key.as_str()), (7, 7, "order:1"));
        let RowAct::Put { due_at, put_at, body } = take.act else { panic!("it is a put") };
        assert_eq!((due_at.as_ms(), put_at.as_ms(), &body.payload[..]), (1_000, 900, &b"{}"[..]));
        let cancel = InboxEntry { op: 2, due_at: None, payload: None, content_type: None, ..entry() };
        assert_eq!(read(cancel, any).asked.map(|take| take.act), Ok(RowAct::Cancel));
    }

    #[test]
    fn a_row_that_was_made_by_hand_is_refused_with_its_reason() {
        let refused = |entry: InboxEntry| read(entry, any).asked.expect_err("it is wrong");
        assert!(refused(InboxEntry { queue: "no spaces".to_owned(), ..entry() }).contains("queue name"));
        assert!(refused(InboxEntry { queue: "$jobs".to_owned(), ..entry() }).contains("the server"));
        assert!(refused(InboxEntry { key: String::new(), ..entry() }).contains("key is empty"));
        assert!(refused(InboxEntry { op: 3, ..entry() }).contains("the op is 3"));
        for due_at in [None, Some(-1), Some(DUE_MS_MAX + 1)] {
            assert!(refused(InboxEntry { due_at, ..entry() }).contains("due time"));
        }
        assert!(refused(InboxEntry { payload: None, ..entry() }).contains("no payload"));
        let long = InboxEntry { payload: None, payload_bytes: 1 << 30, ..entry() };
        assert!(refused(long).contains("1073741824 bytes"));
        let types = ["", "json", "a/b\r\nX-Evil: 1", "text/\u{e4}"].map(str::to_owned);
        for content_type in types.into_iter().chain(["a/".repeat(128)]) {
            let why = refused(InboxEntry { content_type: Some(content_type), ..entry() });
            assert!(why.contains("is not a content type"), "{why}");
        }
    }
}
