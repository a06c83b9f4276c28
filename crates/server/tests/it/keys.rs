//! Names in paths.

use crate::served::Served;

/// The name in a path, with every byte encoded.
fn encoded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn every_key_makes_the_round_trip() {
    let served = Served::memory();
    let long = "ü".repeat(128);
    let keys = [
        "a/b",
        "100%",
        "%2F",
        "what?",
        "#1",
        "a b",
        "+",
        "ü/漢字/🎉",
        "..",
        ".",
        "a//b",
        "\"'<>{}|\\^`",
        &long,
    ];
    for key in keys {
        let target = format!("/v1/queues/close/tasks/{}", encoded(key));
        let reply = served.call("PUT", &target, r#"{"delay":"1h"}"#);
        assert_eq!((reply.status, reply.json()["key"].as_str()), (201, Some(key)), "{}", reply.text());
        let location = reply.header("location").expect("a new place").to_owned();
        assert_eq!(served.expect(200, "GET", &location, "")["key"], key);
    }
    assert_eq!(served.counts("close"), [keys.len() as u64, 0, 0], "no two are one");
    for key in keys {
        served.expect(200, "DELETE", &format!("/v1/queues/close/tasks/{}", encoded(key)), "");
    }
}

#[test]
fn a_slash_in_a_queue_name_is_encoded_like_any_other() {
    let served = Served::memory();
    let made = served.expect(201, "PUT", "/v1/queues/shop%2fclose+1;a.$_()/tasks/1", r#"{"delay":"1h"}"#);
    assert_eq!(made["queue"], "shop/close+1;a.$_()");
    let queues = served.expect(200, "GET", "/v1/queues", "");
    assert_eq!(queues["queues"][0]["queue"], "shop/close+1;a.$_()");
}

#[test]
fn invalid_names_are_refused_with_the_position() {
    let served = Served::memory();
    let long_key = "k".repeat(257);
    let long_queue = "q".repeat(201);
    for (queue, key, part) in [
        ("close", "a%", "`%` at byte 1"),
        ("close", "a%4", "`%` at byte 1"),
        ("close", "%zz", "`%` at byte 0"),
        ("close", "ab%C3", "not UTF-8 from byte 2"),
        ("close", "%C0%AF", "not UTF-8 from byte 0"),
        ("close", "a%00", "at byte 1"),
        ("close", "a%0A", "at byte 1"),
        ("close", "", "the key is empty"),
        ("close", &long_key, "257 bytes"),
        ("", "a", "the queue name is empty"),
        ("-a", "a", "at byte 0"),
        ("a%20b", "a", "at byte 1"),
        ("%C3%BC", "a", "at byte 0"),
        ("a%", "a", "`%` at byte 1"),
        (&long_queue, "a", "201 bytes"),
    ] {
        let target = format!("/v1/queues/{queue}/tasks/{key}");
        for method in ["PUT", "GET", "PATCH", "DELETE"] {
            let reply =
                served.call(method, &target, if method == "PATCH" { r#"{"delay":"1s"}"# } else { "" });
            reply.assert_problem(400, "bad-name", &format!("{method} {target}"));
            assert!(reply.text().contains(part), "{part:?} is not in {}", reply.text());
        }
    }
}
