//! The paths of queues, tasks and schedules, and percent-encoding.

use std::fmt::Write as _;

/// The path of a queue.
pub fn queue_root(queue: &str) -> String {
    let mut path = String::with_capacity(128);
    path.push_str("/v1/queues/");
    push_segment(&mut path, queue);
    path
}

/// The path of a resource below a queue.
pub fn queue_path(queue: &str, below: &str) -> String {
    queue_root(queue) + "/" + below
}

/// The path of a task.
pub fn task_path(queue: &str, key: &str) -> String {
    let mut path = queue_path(queue, "tasks/");
    push_segment(&mut path, key);
    path
}

/// The path of a schedule.
pub fn schedule_path(queue: &str, name: &str) -> String {
    let mut path = queue_path(queue, "schedules/");
    push_segment(&mut path, name);
    path
}

/// Appends a name as one segment of a path. `.` and `..` alone are encoded, too: a client, or a proxy on the way, would otherwise treat them as
/// steps in the path.
pub fn push_segment(path: &mut String, name: &str) {
    match name {
        "." => path.push_str("%2E"),
        ".." => path.push_str("%2E%2E"),
        _ => push_encoded(path, name),
    }
}

/// Appends `text` with all characters percent-encoded except those that never need it (RFC 3986 section 2.3), and `:`, which is frequent in keys and
/// times and is allowed in a path and in a query.
pub(crate) fn push_encoded(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a string takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment() {
        for (key, segment) in [
            ("order:1", "order:1"),
            ("a/b?c#d%e f", "a%2Fb%3Fc%23d%25e%20f"),
            ("é", "%C3%A9"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("...", "..."),
        ] {
            assert_eq!(task_path("shop/close", key), format!("/v1/queues/shop%2Fclose/tasks/{segment}"));
        }
        assert_eq!(schedule_path("q", "a b"), "/v1/queues/q/schedules/a%20b");
        assert_eq!(
            (queue_root("q"), queue_path("q", "ack")),
            ("/v1/queues/q".into(), "/v1/queues/q/ack".into())
        );
    }
}
