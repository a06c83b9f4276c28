//! Tests of the input that each request accepts, and of the text of each refusal.

use tickwheel_api::{
    AckBody, AdvanceBody, BadRequest, BulkCancelBody, DeathReason, Due, ExtendBody, LeaseBody, ListQuery,
    Location, MomentBody, NackBody, PatchBody, PayloadBody, PutBody, PutMode, PutQuery, RetryBody,
    RevokeQuery, TaskFilter, TaskState, Terms, TermsPatch, etag, if_match, no_query,
};

fn put(text: &str) -> PutBody {
    PutBody::parse(text.as_bytes()).expect(text)
}

/// Checks that each text is refused with the given error and with a hint.
fn refused<T: std::fmt::Debug>(parse: impl Fn(&[u8]) -> Result<T, BadRequest>, cases: &[(&str, &str)]) {
    for (text, what) in cases {
        let error = parse(text.as_bytes()).expect_err(text);
        assert_eq!(error.to_string(), *what, "{text}");
        assert!(!error.hint.is_empty(), "{text}");
    }
}

#[test]
fn put_of_nothing_is_due_now_with_null() {
    for text in ["", " \r\n", "{}"] {
        assert_eq!(put(text), PutBody::default());
    }
}

#[test]
fn put_times() {
    for (text, due) in [
        (r#"{"delay":"30m"}"#, Due::After(1_800_000)),
        (r#"{"delay":"0s"}"#, Due::After(0)),
        (r#"{"delay":"0.1ms"}"#, Due::After(1)),
        (r#"{"at":"2017-10-02T11:26:33Z"}"#, Due::At(1_506_943_593_000)),
        (r#"{"at":"1970-01-01T00:00:00.0000001Z"}"#, Due::At(1)),
        (r#"{"at_ms":0}"#, Due::At(0)),
        (r#"{"at_ms":1506943593001}"#, Due::At(1_506_943_593_001)),
        (r#"{"at_ms":253402207200999}"#, Due::At(253_402_207_200_999)),
        (r#"{"level":1}"#, Due::Level(1)),
        (r#"{"level":1000}"#, Due::Level(1_000)),
    ] {
        assert_eq!(put(text).due, due, "{text}");
    }
}

#[test]
fn put_times_refused() {
    refused(
        PutBody::parse,
        &[
            (r#"{"delay":"1s","at_ms":1}"#, "`at_ms`: `delay` and `at_ms` both say when the task is due"),
            (r#"{"at_ms":1,"at":"x"}"#, "`at`: `at_ms` and `at` both say when the task is due"),
            (r#"{"delay":"1s","delay":"1s"}"#, "`delay`: is given twice"),
            (r#"{"delay":30}"#, "`delay`: expected a string, got the number 30"),
            (r#"{"delay":null}"#, "`delay`: expected a string, got null"),
            (r#"{"delay":"-5s"}"#, "`delay`: `-5s` is negative"),
            (r#"{"delay":"30"}"#, "`delay`: `30` has no unit after 30"),
            (r#"{"delay":"\ud800"}"#, "`delay`: has an escape that is no character"),
            (r#"{"at":1506943593000}"#, "`at`: expected a string, got the number 1506943593000"),
            (r#"{"at":"2017-10-02T11:26:33"}"#, "`at`: `2017-10-02T11:26:33` has no zone"),
            (r#"{"at":"1969-12-31T23:59:59Z"}"#, "`at`: `1969-12-31T23:59:59Z` is before 1970"),
            (
                r#"{"at_ms":-5}"#,
                "`at_ms`: expected an integer from 0 to 253402207200999, got the negative number -5",
            ),
            (
                r#"{"at_ms":1.5}"#,
                "`at_ms`: expected an integer from 0 to 253402207200999, got the number 1.5",
            ),
            (
                r#"{"at_ms":-1.0}"#,
                "`at_ms`: expected an integer from 0 to 253402207200999, got the negative number -1",
            ),
            (
                r#"{"at_ms":1e3}"#,
                "`at_ms`: expected an integer from 0 to 253402207200999, got the number 1e3",
            ),
            (r#"{"at_ms":"1"}"#, "`at_ms`: expected an integer from 0 to 253402207200999, got a string"),
            (r#"{"at_ms":9007199254740993}"#, "`at_ms`: 9007199254740993 is not from 0 to 253402207200999"),
            (
                r#"{"at_ms":99999999999999999999}"#,
                "`at_ms`: 99999999999999999999 is not from 0 to 253402207200999",
            ),
            (r#"{"at_ms":253402207201000}"#, "`at_ms`: 253402207201000 is not from 0 to 253402207200999"),
            (r#"{"level":0}"#, "`level`: 0 is not from 1 to 1000"),
            (r#"{"level":-1}"#, "`level`: expected an integer from 1 to 1000, got the negative number -1"),
            (r#"{"level":"3"}"#, "`level`: expected an integer from 1 to 1000, got a string"),
            (r#"{"level":3,"delay":"1s"}"#, "`delay`: `level` and `delay` both say when the task is due"),
            (r#"{"at_ms":NaN}"#, "the body: is not JSON: expected value at column 10"),
        ],
    );
    let error = PutBody::parse(br#"{"at":5}"#).expect_err("a number");
    assert!(error.hint.starts_with("write it as `at_ms`"), "{}", error.hint);
    let error = PutBody::parse(br#"{"at_ms":1506943593000000}"#).expect_err("microseconds");
    assert!(error.hint.contains("not micro- or nanoseconds"), "{}", error.hint);
}

#[test]
fn integers_may_have_a_fraction_of_zeroes() {
    assert_eq!(put(r#"{"at_ms":5.0}"#).due, Due::At(5));
    assert_eq!(put(r#"{"level":3.000}"#).due, Due::Level(3));
    let cancel = BulkCancelBody::parse(br#"{"filter":{"due_from":5.0,"due_to":6.00}}"#).expect("a body");
    assert_eq!((cancel.filter.due_from_ms, cancel.filter.due_to_ms), (Some(5), Some(6)));
    let refused = BulkCancelBody::parse(br#"{"filter":{"due_from":5.01}}"#).expect_err("no integer");
    assert!(refused.to_string().starts_with("`filter.due_from`"), "{refused}");
}

#[test]
fn put_members_of_other_places() {
    for (name, hint) in [
        ("mode", "it is a query parameter: `?mode=create`"),
        ("due_at", "write `at` or `at_ms`; `due_at` is the name in answers"),
        ("Delay", "did you mean `delay`?"),
        ("paylod", "did you mean `payload`?"),
        (
            "ttl",
            "it may have `delay`, `at`, `at_ms`, `level`, `timeline`, `payload`, `payload_base64`, `content_type`, `tags`, `priority`, `group`, `retry`, `expire_after` and `max_wait`",
        ),
    ] {
        let error = PutBody::parse(format!(r#"{{"{name}":1}}"#).as_bytes()).expect_err(name);
        assert_eq!((error.location, error.hint.as_str()), (Location::Member(name.to_owned()), hint));
    }
}

#[test]
fn put_terms() {
    let terms = |text: &str| put(text).terms;
    assert_eq!(terms("{}"), Terms::default());
    assert_eq!(
        terms(r#"{"tags":["vip","a b"],"priority":0,"group":"user:7"}"#),
        Terms {
            tags: vec!["vip".into(), "a b".into()],
            group: Some("user:7".into()),
            priority: 0,
            ..Terms::default()
        }
    );
    assert_eq!(terms(r#"{"priority":4294967295,"tags":[],"group":null}"#).priority, u32::MAX);
    let patch = |text: &str| PatchBody::parse(text.as_bytes()).expect(text).terms;
    assert_eq!(patch(r#"{"group":null}"#), TermsPatch { group: Some(None), ..TermsPatch::default() });
    assert_eq!(patch(r#"{"tags":[]}"#), TermsPatch { tags: Some(Vec::new()), ..TermsPatch::default() });
    let retry = put(r#"{"retry":{"max_attempts":5},"expire_after":"1h"}"#).terms;
    assert_eq!(retry.retry, Some(RetryBody { max_attempts: Some(5), ..RetryBody::default() }));
    assert_eq!(retry.expire_after_ms, Some(3_600_000));
    let never = TermsPatch { retry: Some(None), expire_after_ms: Some(None), ..TermsPatch::default() };
    assert_eq!(patch(r#"{"retry":null,"expire_after":null}"#), never);
    let many = format!(r#"{{"tags":[{}"x"]}}"#, (0..32).map(|n| format!("\"{n}\",")).collect::<String>());
    let long = format!(r#"{{"tags":["{}"]}}"#, "x".repeat(129));
    for (text, what) in [
        (r#"{"expire_after":"36501d"}"#, "`expire_after`: 36501d is not from 0s to 36500d"),
        (r#"{"priority":4294967296}"#, "`priority`: 4294967296 is not from 0 to 4294967295"),
        (
            r#"{"priority":-1}"#,
            "`priority`: expected an integer from 0 to 4294967295, got the negative number -1",
        ),
        (r#"{"priority":null}"#, "`priority`: expected an integer from 0 to 4294967295, got null"),
        (r#"{"tags":"vip"}"#, "`tags`: expected an array, got a string"),
        (r#"{"tags":["a",7]}"#, "`tags[1]`: expected a string, got the number 7"),
        (r#"{"tags":["a",""]}"#, "`tags[1]`: is empty"),
        (r#"{"tags":["a","a"]}"#, "`tags[1]`: `a` is given twice"),
        (r#"{"tags":["a\u0000"]}"#, "`tags[0]`: has the control character `\\u{0}`"),
        (r#"{"retry":{"base":"1"}}"#, "`retry.base`: `1` has no unit after 1"),
        (r#"{"expire_after":"-1s"}"#, "`expire_after`: `-1s` is negative"),
        (r#"{"group":""}"#, "`group`: is empty"),
        (r#"{"group":7}"#, "`group`: expected a string, got the number 7"),
        (&many, "`tags`: has 33 tags; a task takes at most 32"),
        (&long, "`tags[0]`: has 129 bytes"),
    ] {
        refused(PutBody::parse, &[(text, what)]);
        refused(PatchBody::parse, &[(text, what)]);
    }
}

#[test]
fn only_a_debounced_put_has_a_longest_wait() {
    let body = put(r#"{"delay":"10s","max_wait":"1m"}"#);
    assert_eq!(body.max_wait_ms, Some(60_000));
    assert_eq!(body.check(PutMode::Debounce), Ok(()));
    let refused = body.check(PutMode::Upsert).expect_err("it is not debounced");
    assert_eq!(refused.to_string(), "`max_wait`: means nothing to a put of the mode `upsert`");
    let refused = PatchBody::parse(br#"{"max_wait":"1m"}"#).expect_err("a patch is no put");
    assert_eq!(refused.to_string(), "`max_wait`: is not a member of this request");
}

#[test]
fn a_timeline_stands_in_the_place_of_time_and_payload() {
    let body = put(r#"{"timeline":[{"at_ms":5,"payload":1},{"at_ms":6}]}"#);
    let moment =
        |at_ms, json: &str| MomentBody { at_ms, payload: PayloadBody::json(json.as_bytes().to_vec()) };
    assert_eq!(body.timeline, [moment(5, "1"), moment(6, "null")]);
    for (text, what) in [
        (r#"{"timeline":[{"at_ms":5}],"delay":"1s"}"#, "`timeline`: stands beside a second time"),
        (r#"{"timeline":[{"at_ms":5}],"payload":1}"#, "`timeline`: stands beside a second payload"),
        (r#"{"timeline":[]}"#, "`timeline`: has 0 instants, not from 1 to 1000"),
    ] {
        refused(PutBody::parse, &[(text, what)]);
        refused(PatchBody::parse, &[(text, what)]);
    }
}

#[test]
fn put_payloads() {
    let octets = |bytes: &[u8], content_type: &str| PayloadBody {
        bytes: bytes.to_vec(),
        content_type: content_type.to_owned(),
    };
    for (text, payload) in [
        (r#"{"payload": {"b":1.0,  "a":[1e2]} }"#, PayloadBody::json(br#"{"b":1.0,  "a":[1e2]}"#.to_vec())),
        (r#"{"payload":null}"#, PayloadBody::json(b"null".to_vec())),
        (r#"{"payload":"x"}"#, PayloadBody::json(br#""x""#.to_vec())),
        (r#"{"payload_base64":"AAH/"}"#, octets(&[0, 1, 255], "application/octet-stream")),
        (r#"{"payload_base64":"","content_type":"a/b; c=d"}"#, octets(b"", "a/b; c=d")),
        (r#"{"content_type":"application/json","payload_base64":"e30="}"#, PayloadBody::json(b"{}".to_vec())),
    ] {
        assert_eq!(put(text).payload, payload, "{text}");
    }
    refused(
        PutBody::parse,
        &[
            (
                r#"{"payload":1,"payload_base64":"AA=="}"#,
                "`payload_base64`: `payload` and `payload_base64` both say what the payload is",
            ),
            (r#"{"content_type":"a/b"}"#, "`content_type`: goes with `payload_base64` only"),
            (r#"{"payload":1,"content_type":"a/b"}"#, "`content_type`: goes with `payload_base64` only"),
            (r#"{"payload_base64":7}"#, "`payload_base64`: expected a string, got the number 7"),
            (r#"{"payload_base64":"AA"}"#, "`payload_base64`: is not base64: invalid padding"),
            (
                r#"{"payload_base64":"AA==","content_type":""}"#,
                "`content_type`: `` is not a content type of 1 to 255 visible ASCII characters",
            ),
            (
                r#"{"payload_base64":"AA==","content_type":"a/b\r\nX: y"}"#,
                "`content_type`: `a/b\\r\\nX: y` is not a content type of 1 to 255 visible ASCII characters",
            ),
        ],
    );
    for text in ["AA-_", "A A=", "AB==", "A===", "é"] {
        let error = PutBody::parse(format!(r#"{{"payload_base64":"{text}"}}"#).as_bytes()).expect_err(text);
        assert!(error.what.starts_with("is not base64: "), "{text}: {}", error.what);
    }
}

#[test]
fn patches() {
    let patch = PatchBody::parse(br#"{"payload":null}"#).expect("a payload");
    assert_eq!(
        patch,
        PatchBody { payload: Some(PayloadBody::json(b"null".to_vec())), ..PatchBody::default() }
    );
    let patch = PatchBody::parse(br#"{"delay":"0s"}"#).expect("a time");
    assert_eq!(patch, PatchBody { due: Some(Due::After(0)), ..PatchBody::default() });
    refused(PatchBody::parse, &[("", "the body: changes nothing"), ("{}", "the body: changes nothing")]);
}

#[test]
fn leases() {
    let parse = |text: &str| LeaseBody::parse(text.as_bytes()).expect(text);
    assert_eq!(parse(""), LeaseBody { max: 1, lease_ms: None, wait_ms: 0, worker: None });
    assert_eq!(
        parse(r#"{"max":1000,"lease":"12h","wait":"60s"}"#),
        LeaseBody { max: 1_000, lease_ms: Some(43_200_000), wait_ms: 60_000, worker: None }
    );
    assert_eq!(
        parse(r#"{"max":1,"lease":"1s","wait":"0s"}"#),
        LeaseBody { max: 1, lease_ms: Some(1_000), wait_ms: 0, worker: None }
    );
    refused(
        LeaseBody::parse,
        &[
            (r#"{"max":0}"#, "`max`: 0 is not from 1 to 1000"),
            (r#"{"max":1001}"#, "`max`: 1001 is not from 1 to 1000"),
            (r#"{"max":-1}"#, "`max`: expected an integer from 1 to 1000, got the negative number -1"),
            (r#"{"max":true}"#, "`max`: expected an integer from 1 to 1000, got true"),
            (r#"{"max":"1"}"#, "`max`: expected an integer from 1 to 1000, got a string"),
            (r#"{"lease":"999ms"}"#, "`lease`: 999ms is not from 1s to 12h"),
            (r#"{"lease":"12.0000001h"}"#, "`lease`: 12h1ms is not from 1s to 12h"),
            (r#"{"wait":"61s"}"#, "`wait`: 1m1s is not from 0s to 1m"),
            (r#"{"wait":20}"#, "`wait`: expected a string, got the number 20"),
            (r#"{"wiat":"1s"}"#, "`wiat`: is not a member of this request"),
        ],
    );
}

#[test]
fn tokens() {
    let (t, other) = ("a-Z_9aaaaaaaaaaaaaaaaaaaaaaaaaaa", "b".repeat(32));
    let with = |text: &str| text.replace("TOKEN", t);
    let ack =
        AckBody::parse(with(&format!(r#"{{"tokens":["TOKEN","{other}"]}}"#)).as_bytes()).expect("tokens");
    assert_eq!(ack.tokens, [t, &other]);
    let nack = NackBody::parse(with(r#"{"tokens":["TOKEN"]}"#).as_bytes()).expect("no delay");
    assert_eq!((nack.delay_ms, nack.reason), (None, None));
    let nack = NackBody::parse(with(r#"{"tokens":["TOKEN"],"delay":"5s","reason":"no\nanswer"}"#).as_bytes())
        .expect("a nack");
    assert_eq!((nack.delay_ms, nack.reason.as_deref()), (Some(5_000), Some("no\nanswer")));
    assert_eq!(
        ExtendBody::parse(with(r#"{"tokens":["TOKEN"]}"#).as_bytes()).expect("a default").lease_ms,
        None
    );
    let extend =
        ExtendBody::parse(with(r#"{"tokens":["TOKEN"],"lease":"1m"}"#).as_bytes()).expect("an extend");
    assert_eq!(extend.lease_ms, Some(60_000));

    let many = |count: usize| format!(r#"{{"tokens":[{}]}}"#, vec![format!("\"{t}\""); count].join(","));
    assert_eq!(AckBody::parse(many(1_000).as_bytes()).expect("1000").tokens.len(), 1_000);
    let long = "x".repeat(33);
    let cases = [
        ("", "`tokens`: is missing".to_owned()),
        (&many(0), "`tokens`: has 0 tokens, not from 1 to 1000".to_owned()),
        (&many(1_001), "`tokens`: has 1001 tokens, not from 1 to 1000".to_owned()),
        (r#"{"tokens":"a"}"#, "`tokens`: expected an array, got a string".to_owned()),
        (r#"{"token":"a"}"#, "`token`: is not a member of this request".to_owned()),
        (&with(r#"{"tokens":["TOKEN",7]}"#), "`tokens[1]`: expected a string, got the number 7".to_owned()),
        (
            &with(r#"{"tokens":["TOKEN",""]}"#),
            "`tokens[1]`: `` is not a token: it has 32 characters of A-Z a-z 0-9 _ -".to_owned(),
        ),
        (
            r#"{"tokens":["a b"]}"#,
            "`tokens[0]`: `a b` is not a token: it has 32 characters of A-Z a-z 0-9 _ -".to_owned(),
        ),
        (
            &format!(r#"{{"tokens":["{long}"]}}"#),
            format!("`tokens[0]`: `{}` is not a token: it has 32 characters of A-Z a-z 0-9 _ -", long),
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(text, what)| (*text, what.as_str())).collect();
    refused(AckBody::parse, &cases);
    refused(NackBody::parse, &cases);
    refused(ExtendBody::parse, &cases);
    refused(
        AckBody::parse,
        &[(&with(r#"{"tokens":["TOKEN"],"delay":"1s"}"#), "`delay`: is not a member of this request")],
    );
    refused(
        ExtendBody::parse,
        &[(&with(r#"{"tokens":["TOKEN"],"lease":"0s"}"#), "`lease`: 0s is not from 1s to 12h")],
    );
    let reason = |bytes: usize| format!(r#"{{"tokens":["{t}"],"reason":"{}"}}"#, "x".repeat(bytes));
    NackBody::parse(reason(1_024).as_bytes()).expect("1 KiB");
    refused(NackBody::parse, &[(&reason(1_025), "`reason`: has 1025 bytes, the limit is 1024")]);
}

#[test]
fn advances() {
    assert_eq!(AdvanceBody::parse(br#"{"by":"15d"}"#).expect("15 days").by_ms, 1_296_000_000);
    assert_eq!(AdvanceBody::parse(br#"{"by":"0s"}"#).expect("nothing").by_ms, 0);
    refused(
        AdvanceBody::parse,
        &[
            ("", "`by`: is missing"),
            (r#"{"by":"-1s"}"#, "`by`: `-1s` is negative"),
            (r#"{"by":"36526d"}"#, "`by`: 36526d is not from 0s to 36525d"),
            (r#"{"to":"2017-10-02T11:26:33Z"}"#, "`to`: is not supported by this version"),
            (r#"{"at":"2017-10-02T11:26:33Z"}"#, "`at`: is not a member of this request"),
        ],
    );
}

#[test]
fn queries() {
    let put = |mode, revoke| Ok(PutQuery { mode, revoke });
    assert_eq!(PutQuery::parse(""), put(PutMode::Upsert, false));
    assert_eq!(PutQuery::parse("mode=create"), put(PutMode::Create, false));
    assert_eq!(PutQuery::parse("revoke=true&mode=replace"), put(PutMode::Replace, true));
    assert_eq!(PutQuery::parse("m%6Fde=ups%65rt&&revoke=false&"), put(PutMode::Upsert, false));
    assert_eq!(PutQuery::parse("mode=debounce"), put(PutMode::Debounce, false));
    assert_eq!(RevokeQuery::parse("revoke=true"), Ok(RevokeQuery { revoke: true }));
    assert_eq!(
        ListQuery::parse(""),
        Ok(ListQuery { filter: TaskFilter::default(), limit: 100, cursor: None, payloads: true })
    );
    assert_eq!(
        ListQuery::parse("state=dead&limit=1000&cursor=a%2Bb%3D+c"),
        Ok(ListQuery {
            filter: TaskFilter { state: Some(TaskState::Dead), ..TaskFilter::default() },
            limit: 1_000,
            cursor: Some("a+b= c".to_owned()),
            payloads: true,
        })
    );
    let filter = TaskFilter {
        state: Some(TaskState::Ready),
        due_from_ms: Some(1_506_943_593_000),
        due_to_ms: Some(1_506_943_593_001),
        tag: Some("a b&c".to_owned()),
        group: Some("user:7".to_owned()),
        key: Some("order:1".to_owned()),
        key_contains: Some("der".to_owned()),
        ..TaskFilter::default()
    };
    let query = ListQuery { filter, payloads: false, ..ListQuery::default() };
    let text = "state=ready&due_from=2017-10-02T11:26:33Z&due_to=1506943593001&tag=a%20b%26c&group=user:7&key=order:1&key_contains=der&payloads=false";
    assert_eq!(ListQuery::parse(text), Ok(query.clone()));
    assert_eq!(ListQuery::parse(&query.to_query()), Ok(query));
    assert_eq!(ListQuery::parse_dead("tag=x").expect("a query").filter.state, Some(TaskState::Dead));
    let dead = ListQuery::parse_dead("reason=expired&failure=timed%0Aout&group_id=0123456789abcdef");
    let filter = dead.expect("a query").filter;
    assert_eq!((filter.reason, filter.failure.as_deref()), (Some(DeathReason::Expired), Some("timed\nout")));
    assert_eq!(filter.group_id.as_deref(), Some("0123456789abcdef"));
    assert_eq!(no_query(""), Ok(()));

    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the cases are UTF-8");
    refused(
        |bytes| PutQuery::parse(&text(bytes)),
        &[
            ("mode=Create", "parameter `mode`: `Create` is not known"),
            ("mode", "parameter `mode`: `` is not known"),
            ("max_wait=1s", "parameter `max_wait`: is not a parameter of this request"),
            ("mode=create&mode=create", "parameter `mode`: is given twice"),
            ("mdoe=create", "parameter `mdoe`: is not a parameter of this request"),
            ("revoke=1", "parameter `revoke`: `1` is not known"),
            ("revoke=%", "parameter `revoke`: has a `%` without two hex digits"),
            ("revoke=%2", "parameter `revoke`: has a `%` without two hex digits"),
            ("revoke=%zz", "parameter `revoke`: has a `%` without two hex digits"),
            ("revoke=%+1", "parameter `revoke`: has a `%` without two hex digits"),
            ("revoke=%ff", "parameter `revoke`: is not UTF-8"),
            ("%ff=true", "parameter `%ff`: is not UTF-8"),
            ("=true", "parameter ``: is not a parameter of this request"),
        ],
    );
    refused(
        |bytes| ListQuery::parse(&text(bytes)),
        &[
            ("state=done", "parameter `state`: `done` is not known"),
            ("group=", "parameter `group`: is empty"),
            ("key_contains=%0A", "parameter `key_contains`: has the control character `\\n`"),
            ("payloads=no", "parameter `payloads`: `no` is not known"),
            ("reason=expired", "parameter `reason`: is not a parameter of this request"),
            ("limit=0", "parameter `limit`: `0` is not a number from 1 to 1000"),
            ("limit=1001", "parameter `limit`: `1001` is not a number from 1 to 1000"),
            ("limit=%2B5", "parameter `limit`: `+5` is not a number from 1 to 1000"),
            (
                "limit=99999999999999999999999",
                "parameter `limit`: `99999999999999999999999` is not a number from 1 to 1000",
            ),
            ("cursor=", "parameter `cursor`: has 0 bytes, not from 1 to 256"),
            (&format!("cursor={}", "x".repeat(257)), "parameter `cursor`: has 257 bytes, not from 1 to 256"),
            ("tag=", "parameter `tag`: `` is no tag"),
            (
                "due_from=2017-10-02",
                "parameter `due_from`: `2017-10-02` is not an RFC 3339 time: expected `T` between date and time",
            ),
            (
                "due_to=253402207201000",
                "parameter `due_to`: 253402207201000 is after 9999-12-30T22:00:00.999Z, the last instant",
            ),
            (
                "due_from=2000&due_to=1999",
                "parameter `due_to`: 1970-01-01T00:00:01.999Z is before `due_from`, 1970-01-01T00:00:02.000Z",
            ),
        ],
    );
    refused(
        |bytes| RevokeQuery::parse(&text(bytes)),
        &[("mode=create", "parameter `mode`: is not a parameter of this request")],
    );
    refused(
        |bytes| no_query(&text(bytes)),
        &[
            ("x=1", "parameter `x`: is not a parameter of this request"),
            ("x", "parameter `x`: is not a parameter of this request"),
        ],
    );
    assert_eq!(PutQuery::parse("mdoe=x").expect_err("a slip").hint, "did you mean `mode`?");
}

#[test]
fn versions_in_headers() {
    assert_eq!(etag(41), "\"41\"");
    assert_eq!(if_match(etag(u64::MAX).as_bytes()), Ok(u64::MAX));
    for value in ["\"41\"", "41", " 41 ", "\"0041\""] {
        assert_eq!(if_match(value.as_bytes()), Ok(41), "{value}");
    }
    refused(
        if_match,
        &[
            ("", "header `If-Match`: `` is not a version"),
            ("\"", "header `If-Match`: `\"` is not a version"),
            ("\"\"", "header `If-Match`: `\"\"` is not a version"),
            ("\"41", "header `If-Match`: `\"41` is not a version"),
            ("+41", "header `If-Match`: `+41` is not a version"),
            ("-1", "header `If-Match`: `-1` is not a version"),
            ("abc", "header `If-Match`: `abc` is not a version"),
            ("18446744073709551616", "header `If-Match`: `18446744073709551616` is not a version"),
            ("*", "header `If-Match`: `*` names no version"),
            ("W/\"41\"", "header `If-Match`: `W/\"41\"` is a weak tag"),
            ("\"41\", \"42\"", "header `If-Match`: `\"41\", \"42\"` names several versions"),
        ],
    );
    assert!(if_match(b"\xff").is_err());
}
