//! Imports beside a drain of the server or of a queue.

use super::*;

#[test]
fn a_drain_stops_an_import_that_is_under_way() {
    let served = Served::memory();
    let mut connection = begin(&served, "");
    connection.send(chunk(&format!("{HEAD}{}{SETTINGS}", line("q", "a"))).as_bytes());
    until("the first lines are in", || served.expect(200, "GET", "/v1/queues/mark", "")["draining"] == true);
    served.expect(200, "POST", "/v1/drain", "");
    connection.send(chunk(&format!("{}{}", line("q", "b"), line("q", "c"))).as_bytes());
    connection.send(b"0\r\n\r\n");
    let end = end_of(&mut connection);
    assert_eq!((&end["next_line"], &end["added"]), (&json!(4), &json!(2)), "{end}");
    assert_eq!(end["problem"]["type"], "/problems/server-draining", "{end}");
    assert_eq!(served.counts("q"), [1, 0, 0]);
}

/// The story: an import filled a queue that was being drained. A drain holds for imports, too, so an export has the drain behind the tasks.
#[test]
fn a_queue_that_drains_takes_no_imported_task_and_its_own_export_is_imported() {
    let source = Served::memory();
    source.expect(200, "PUT", "/v1/queues/q", r#"{"max_in_flight":3}"#);
    for (queue, key) in [("q", "a"), ("q", "b"), ("plain", "c")] {
        source.expect(201, "PUT", &format!("/v1/queues/{queue}/tasks/{key}"), r#"{"delay":"1h"}"#);
    }
    for queue in ["q", "plain"] {
        source.expect(200, "POST", &format!("/v1/queues/{queue}/drain"), "");
    }
    let file = text(&export(&source));
    let target = Served::memory();
    let drains =
        |queue: &str| target.expect(200, "GET", &format!("/v1/queues/{queue}"), "")["draining"] == true;
    for (choice, added) in [("refuse", 7), ("skip", 0)] {
        let (end, _) = import(&target, &format!("?existing={choice}"), &file);
        assert_eq!((&end["problem"], &end["added"]), (&Value::Null, &json!(added)), "{choice}: {end}");
        assert_eq!((target.counts("q"), target.counts("plain")), ([2, 0, 0], [1, 0, 0]));
        assert!(drains("q") && drains("plain"), "{choice}");
    }
    let (end, _) = import(&target, "", &format!("{HEAD}{}", line("q", "new")));
    assert_eq!(
        (&end["next_line"], &end["problem"]["type"]),
        (&json!(2), &json!("/problems/draining")),
        "{end}"
    );
    assert_eq!(target.counts("q"), [2, 0, 0]);
    // The file is right, so it may fill the queue, and the drain comes back with its last line.
    source.expect(200, "POST", "/v1/queues/q/resume", "");
    source.expect(201, "PUT", "/v1/queues/q/tasks/new", r#"{"delay":"1h"}"#);
    source.expect(200, "POST", "/v1/queues/q/drain", "");
    let (end, _) = import(&target, "?existing=replace", &text(&export(&source)));
    assert_eq!((&end["problem"], target.counts("q"), drains("q")), (&Value::Null, [3, 0, 0], true), "{end}");
}
