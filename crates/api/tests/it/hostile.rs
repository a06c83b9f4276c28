//! Tests that no parser panics, and that every request is read back as it was written.

use proptest::collection::vec;
use proptest::prelude::*;
use tickwheel_api::CADENCE_MS_MAX;
use tickwheel_api::duration::DURATION_MS_MAX;
use tickwheel_api::replay::{ReplayLine, ReplayOp};
use tickwheel_api::time::INSTANT_MS_MAX;
use tickwheel_api::{
    AckBody, AdvanceBody, BatchLine, BatchOp, Due, ExtendBody, LeaseBody, ListQuery, MomentBody, NackBody,
    PatchBody, PayloadBody, Problem, PutBody, PutMode, PutQuery, RetryBody, RevokeQuery, TaskFilter,
    TaskState, Terms, TermsPatch, if_match, no_query,
};

/// Runs every parser on the same bytes. Their errors must have no control characters and must not grow with the
/// input.
fn parse_all(bytes: &[u8]) {
    let check = |error: Option<String>| {
        if let Some(text) = error {
            assert!(text.len() < 1_000, "{} bytes: {text}", text.len());
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    };
    let refusal = |error: tickwheel_api::BadRequest| {
        let problem = Problem::bad_request(&error);
        assert_eq!(problem.status, 400);
        format!("{problem}")
    };
    check(PutBody::parse(bytes).err().map(refusal));
    check(PatchBody::parse(bytes).err().map(refusal));
    check(LeaseBody::parse(bytes).err().map(refusal));
    check(AckBody::parse(bytes).err().map(refusal));
    check(NackBody::parse(bytes).err().map(refusal));
    check(ExtendBody::parse(bytes).err().map(refusal));
    check(AdvanceBody::parse(bytes).err().map(refusal));
    check(BatchLine::parse(bytes).err().map(|bad| refusal(bad.refusal)));
    check(ReplayLine::parse(bytes).err().map(refusal));
    check(if_match(bytes).err().map(refusal));
    let text = String::from_utf8_lossy(bytes);
    check(PutQuery::parse(&text).err().map(refusal));
    check(RevokeQuery::parse(&text).err().map(refusal));
    check(ListQuery::parse(&text).err().map(refusal));
    check(no_query(&text).err().map(refusal));
}

#[test]
fn long_and_odd_inputs() {
    let megabyte = 1 << 20;
    for text in [
        "\"".repeat(megabyte),
        "[".repeat(megabyte),
        format!("{{\"{}\":1}}", "k".repeat(megabyte)),
        format!("{{\"at_ms\":{}}}", "9".repeat(megabyte)),
        format!("{{\"at_ms\":-{}}}", "9".repeat(megabyte)),
        format!("{{\"delay\":\"{}\"}}", "1h".repeat(megabyte / 2)),
        format!("{{\"delay\":\"{}\"}}", "\u{1b}".repeat(megabyte)),
        format!("{{\"at\":\"{}\"}}", "\\u0007".repeat(megabyte / 6)),
        format!("{{\"payload_base64\":\"{}\"}}", "?".repeat(megabyte)),
        format!("{{\"payload_base64\":\"AA==\",\"content_type\":\"{}\"}}", "\\n".repeat(megabyte / 2)),
        format!("{{\"tokens\":[{}]}}", ["\"\"", "1"].repeat(megabyte / 8).join(",")),
        format!("{{\"op\":\"{0}\",\"key\":\"{0}\"}}", "x".repeat(megabyte / 2)),
        (0..100_000).map(|index| format!("p{index}=&")).collect(),
        format!("mode={}", "%0a".repeat(megabyte / 3)),
        format!("{{{}\"x\":1}}", "\"delay\":\"1s\",".repeat(50_000)),
        format!("W/{}", "\n".repeat(megabyte)),
    ] {
        parse_all(text.as_bytes());
    }
}

fn due() -> impl Strategy<Value = Due> {
    prop_oneof![
        (0..=DURATION_MS_MAX).prop_map(Due::After),
        (0..=INSTANT_MS_MAX).prop_map(Due::At),
        (1..=1_000_u32).prop_map(Due::Level)
    ]
}

fn due_or_none() -> impl Strategy<Value = Due> {
    prop_oneof![Just(Due::Now), due()]
}

fn word() -> impl Strategy<Value = String> {
    "[a-zé \"]{1,20}"
}

fn words() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::btree_set(word(), 0..4).prop_map(|words| words.into_iter().collect())
}

fn retry() -> impl Strategy<Value = RetryBody> {
    let waits = (0..=DURATION_MS_MAX, 0..=DURATION_MS_MAX);
    (proptest::option::of(1..=1_000_000_u32), any::<bool>(), waits, 0..=100_u8).prop_map(
        |(max_attempts, exponential, (a, b), jitter_percent)| RetryBody {
            max_attempts,
            exponential,
            base_ms: a.min(b),
            max_ms: a.max(b),
            jitter_percent,
        },
    )
}

fn terms() -> impl Strategy<Value = Terms> {
    use proptest::option::of;
    (words(), any::<u32>(), of(word()), of(retry()), of(0..=CADENCE_MS_MAX)).prop_map(
        |(tags, priority, group, retry, expire_after_ms)| Terms {
            tags,
            priority,
            group,
            retry,
            expire_after_ms,
        },
    )
}

fn terms_patch() -> impl Strategy<Value = TermsPatch> {
    use proptest::option::of;
    (of(words()), of(any::<u32>()), of(of(word())), of(of(retry())), of(of(0..=CADENCE_MS_MAX))).prop_map(
        |(tags, priority, group, retry, expire_after_ms)| TermsPatch {
            tags,
            priority,
            group,
            retry,
            expire_after_ms,
        },
    )
}

fn filter() -> impl Strategy<Value = TaskFilter> {
    use proptest::option::of;
    let state = prop::sample::select(TaskState::ALL.to_vec());
    let texts = (of(word()), of(word()), of(word()), of(word()));
    (of(state), of(0..=INSTANT_MS_MAX), of(0..=INSTANT_MS_MAX), texts).prop_map(|(state, a, b, texts)| {
        let in_order = a.zip(b).is_none_or(|(a, b)| a <= b);
        let (due_from_ms, due_to_ms) = if in_order { (a, b) } else { (b, a) };
        let (tag, group, key, key_contains) = texts;
        TaskFilter { state, due_from_ms, due_to_ms, tag, group, key, key_contains, ..TaskFilter::default() }
    })
}

fn timeline() -> impl Strategy<Value = Vec<MomentBody>> {
    proptest::collection::btree_map(0..=INSTANT_MS_MAX, payload(), 1..4).prop_map(|moments| {
        moments.into_iter().map(|(at_ms, payload)| MomentBody { at_ms, payload }).collect()
    })
}

fn put_body() -> impl Strategy<Value = PutBody> {
    let max_wait_ms = proptest::option::of(0..=DURATION_MS_MAX);
    let once =
        (due_or_none(), payload(), terms(), max_wait_ms).prop_map(|(due, payload, terms, max_wait_ms)| {
            PutBody { due, payload, terms, max_wait_ms, timeline: Vec::new() }
        });
    let often =
        (timeline(), terms()).prop_map(|(timeline, terms)| PutBody { timeline, terms, ..PutBody::default() });
    prop_oneof![once, often]
}

fn patch_body() -> impl Strategy<Value = PatchBody> {
    let once = (due(), proptest::option::of(payload()), terms_patch())
        .prop_map(|(due, payload, terms)| PatchBody { due: Some(due), payload, terms, timeline: None });
    let often = (timeline(), terms_patch()).prop_map(|(timeline, terms)| PatchBody {
        timeline: Some(timeline),
        terms,
        ..PatchBody::default()
    });
    prop_oneof![once, often]
}

fn payload() -> impl Strategy<Value = PayloadBody> {
    prop_oneof![
        "[a-z]{1,8}/[a-z]{1,8}".prop_flat_map(|content_type| {
            vec(any::<u8>(), 0..32)
                .prop_map(move |bytes| PayloadBody { bytes, content_type: content_type.clone() })
        }),
        r#"\{"a": ?\[(1|1\.0|1e5|true|null|"\\u00e9")?\n?\]\}"#
            .prop_map(|json| PayloadBody::json(json.into_bytes())),
        vec(any::<u8>(), 0..8).prop_map(PayloadBody::json),
    ]
}

fn token() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{32}"
}

fn mode() -> impl Strategy<Value = PutMode> {
    prop_oneof![Just(PutMode::Upsert), Just(PutMode::Create), Just(PutMode::Replace), Just(PutMode::Debounce)]
}

fn operation() -> impl Strategy<Value = BatchOp> {
    prop_oneof![
        (put_body(), mode()).prop_map(|(body, mode)| {
            let max_wait_ms = body.max_wait_ms.filter(|_| mode == PutMode::Debounce);
            BatchOp::Put { body: PutBody { max_wait_ms, ..body }, mode }
        }),
        patch_body().prop_map(BatchOp::Patch),
        Just(BatchOp::Cancel),
    ]
}

proptest! {
    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..200)) {
        parse_all(&bytes);
    }

    /// A text made from the words of the API. It passes the first checks of a parser.
    #[test]
    fn arbitrary_words(
        words in vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ":", ",", "\"", "\\", "\\u", "d800", "\"delay\"", "\"at\"", "\"at_ms\"", "\"payload\"",
                "\"payload_base64\"", "\"tokens\"", "\"op\"", "\"put\"", "\"cancel\"", "\"key\"", "\"max\"", "\"wait\"", "\"by\"",
                "30m", "-1", "1e9", "9007199254740993", "null", "true", " ", "\n", "=", "&", "%", "mode", "limit", "\u{0}", "é",
            ]),
            0..24,
        )
    ) {
        parse_all(words.concat().as_bytes());
    }

    /// An object with one known member and any value.
    #[test]
    fn arbitrary_values(
        name in prop::sample::select(vec![
            "delay", "at", "at_ms", "payload", "payload_base64", "content_type", "max", "lease", "wait", "tokens", "reason", "by",
            "op", "key", "mode", "if_match", "revoke", "due_at", "queue", "tags", "priority", "group", "level",
        ]),
        value in prop_oneof![
            "\"[0-9a-zTZ:.+ -]{0,30}\"", "-?[0-9]{1,25}(\\.[0-9]{1,3})?(e[0-9]{1,4})?", "\\[(1|\"a\"|\\{\\}|,){0,6}\\]", "true|null",
        ],
    ) {
        parse_all(format!("{{\"{name}\":{value}}}").as_bytes());
    }

    #[test]
    fn put_round_trip(body in put_body()) {
        prop_assert_eq!(PutBody::parse(&body.to_json()), Ok(body));
    }

    #[test]
    fn patch_round_trip(body in patch_body()) {
        prop_assert_eq!(PatchBody::parse(&body.to_json()), Ok(body));
    }

    #[test]
    fn lease_round_trip(max in 1_usize..=1_000, lease_ms in 1_000_u64..=43_200_000, wait_ms in 0_u64..=60_000) {
        let body = LeaseBody { max, lease_ms: Some(lease_ms), wait_ms, worker: None };
        prop_assert_eq!(LeaseBody::parse(&body.to_json()), Ok(body));
    }

    #[test]
    fn tokens_round_trip(
        tokens in vec(token(), 1..8),
        delay_ms in proptest::option::of(0..=DURATION_MS_MAX),
        reason in proptest::option::of(".{0,64}"),
        lease_ms in 1_000_u64..=43_200_000,
    ) {
        let ack = AckBody { tokens: tokens.clone() };
        prop_assert_eq!(AckBody::parse(&ack.to_json()), Ok(ack));
        let nack = NackBody { tokens: tokens.clone(), delay_ms, reason };
        prop_assert_eq!(NackBody::parse(&nack.to_json()), Ok(nack));
        let extend = ExtendBody { tokens, lease_ms: Some(lease_ms) };
        prop_assert_eq!(ExtendBody::parse(&extend.to_json()), Ok(extend));
    }

    #[test]
    fn advance_round_trip(by_ms in 0_u64..=36_525 * 86_400_000) {
        let body = AdvanceBody { by_ms };
        prop_assert_eq!(AdvanceBody::parse(&body.to_json()), Ok(body));
    }

    #[test]
    fn batch_round_trip(
        key in ".{0,20}",
        if_match in proptest::option::of(0_u64..=1 << 53),
        revoke in any::<bool>(),
        op in operation(),
    ) {
        let line = BatchLine { key, if_match, revoke, op };
        prop_assert_eq!(BatchLine::parse(&line.to_json()), Ok(line));
    }

    #[test]
    fn replay_round_trip(
        at_ms in 0..=INSTANT_MS_MAX,
        queue in ".{0,20}",
        key in ".{0,20}",
        // A line of a replay has no delay levels, because their list is in the configuration of a server.
        put in proptest::option::of((due_or_none().prop_filter("no level", |due| !matches!(due, Due::Level(_))), payload())),
    ) {
        let op = put.map_or(ReplayOp::Cancel, |(due, payload)| ReplayOp::Put { due, payload });
        let line = ReplayLine { at_ms, queue, key, op };
        let text = line.to_json();
        prop_assert!(!text.contains(&b'\n'));
        prop_assert_eq!(ReplayLine::parse(&text), Ok(line));
    }

    #[test]
    fn query_round_trip(
        mode in mode(),
        revoke in any::<bool>(),
        filter in filter(),
        limit in 1_usize..=1_000,
        cursor in proptest::option::of(".{1,60}"),
    ) {
        let put = PutQuery { mode, revoke };
        prop_assert_eq!(PutQuery::parse(&put.to_query()), Ok(put));
        let change = RevokeQuery { revoke };
        prop_assert_eq!(RevokeQuery::parse(&change.to_query()), Ok(change));
        let list = ListQuery { filter, limit, cursor, payloads: limit % 2 == 0 };
        prop_assert_eq!(ListQuery::parse(&list.to_query()), Ok(list));
    }
}
