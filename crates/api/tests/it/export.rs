//! Tests of the lines of an export: they are read back as they were written, and wrong lines are refused by name.

use proptest::prelude::*;
use tickwheel_api::{
    CadenceBody, DeathBody, DeathReason, ExportDeath, ExportEnd, ExportHeader, ExportLine, ExportQueue,
    ExportSchedule, ExportTask, FailureBody, FailureKind, MomentBody, PayloadBody, RateBody, RetryBody,
    ScheduleSpec, SettingsBody, TallyBody, TaskState, TraceContext,
};

const YEAR_9999_MS: i64 = tickwheel_api::time::INSTANT_MS_MAX;

fn instant() -> impl Strategy<Value = i64> {
    prop_oneof![0..=YEAR_9999_MS, Just(0), Just(YEAR_9999_MS)]
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{1,20}"
}

fn payload() -> impl Strategy<Value = PayloadBody> {
    let json = prop_oneof![
        Just("null".to_owned()),
        "[a-z]{0,9}".prop_map(|text| format!("{{\"a\" : [1.0, \"{text}\"]}}")),
        "\\PC{0,20}".prop_map(|text| serde_json::to_string(&text).expect("JSON")),
        Just("{\n \"line\": 1\n}".to_owned()),
    ];
    prop_oneof![
        json.prop_map(|json| PayloadBody::json(json.into_bytes())),
        (prop::collection::vec(any::<u8>(), 0..40), "[ -~]{0,30}")
            .prop_map(|(bytes, content_type)| PayloadBody { bytes, content_type }),
    ]
}

fn timeline() -> impl Strategy<Value = Vec<MomentBody>> {
    prop::collection::btree_map(0..YEAR_9999_MS, payload_as_put(), 0..4).prop_map(|moments| {
        moments.into_iter().map(|(at_ms, payload)| MomentBody { at_ms, payload }).collect()
    })
}

/// A payload whose content type a request may have.
fn payload_as_put() -> impl Strategy<Value = PayloadBody> {
    payload().prop_map(|payload| match payload.content_type.contains('/') {
        true => payload,
        false => PayloadBody { content_type: "a/b".to_owned(), ..payload },
    })
}

fn retry() -> impl Strategy<Value = RetryBody> {
    (prop::option::of(1..=1_000_000_u32), any::<bool>(), 0..1_000_000_u64, 0..1_000_000_u64, 0..=100_u8)
        .prop_map(|(max_attempts, exponential, base_ms, more_ms, jitter_percent)| RetryBody {
            max_attempts,
            exponential,
            base_ms,
            max_ms: base_ms + more_ms,
            jitter_percent,
        })
}

fn failure() -> impl Strategy<Value = FailureBody> {
    use FailureKind::{Buried, LeaseEnded, Nacked, Revoked, WorkerGone};
    let how = prop::sample::select(vec![Nacked, LeaseEnded, Revoked, Buried, WorkerGone]);
    (instant(), any::<u32>(), how, prop::option::of(text()))
        .prop_map(|(at_ms, attempt, how, reason)| FailureBody { at_ms, attempt, how, reason })
}

fn tally() -> impl Strategy<Value = TallyBody> {
    (any::<[u32; 5]>(), prop::option::of(0..1_000_000_000_u64)).prop_map(
        |([leases, expiries, nacks, burials, redrives], delay_ms)| TallyBody {
            leases,
            expiries,
            nacks,
            burials,
            redrives,
            delay_ms,
        },
    )
}

fn death() -> impl Strategy<Value = ExportDeath> {
    let reasons = DeathReason::ALL.to_vec();
    (instant(), prop::sample::select(reasons), any::<bool>())
        .prop_map(|(at_ms, reason, keyless)| ExportDeath { death: DeathBody { at_ms, reason }, keyless })
}

fn trace() -> TraceContext {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    TraceContext::of_headers(parent, Some("vendor=1")).expect("well formed")
}

prop_compose! {
    fn task()(
        (queue, key, id) in (text(), text(), 0..=1_u64 << 53),
        (due_at_ms, put_at_ms, expire_at_ms) in (instant(), instant(), prop::option::of(instant())),
        (payload, timeline) in (payload(), timeline()),
        (tags, priority, group, attempt) in (prop::collection::vec(text(), 0..3), any::<u32>(), prop::option::of(text()), any::<u32>()),
        (retry, failures, ttr_ms, origin) in (prop::option::of(retry()), prop::collection::vec(failure(), 0..3), prop::option::of(0..1_000_000_u64), any::<u8>()),
        (tally, traced, death, state) in (tally(), any::<bool>(), prop::option::of(death()), prop::option::of(prop::sample::select(vec![TaskState::Scheduled, TaskState::Ready, TaskState::Leased]))),
    ) -> ExportTask {
        let step = if timeline.is_empty() { 0 } else { attempt % timeline.len() as u32 };
        let state = state.filter(|_| death.is_none());
        let trace = traced.then(trace);
        ExportTask { queue, key, id, due_at_ms, put_at_ms, state, payload, timeline, step, tags, priority, group, attempt, retry, expire_at_ms, failures, ttr_ms, origin, tally, trace, death }
    }
}

prop_compose! {
    fn schedule()(
        (queue, name, running) in (text(), text(), prop::option::of(text())),
        (anchor_ms, decided_ms, next_at_ms, last_at_ms) in (instant(), instant(), prop::option::of(instant()), prop::option::of(instant())),
        (made, skipped) in (0..1_000_000_u64, 0..1_000_000_u64),
        waiting in prop::collection::btree_set(0..YEAR_9999_MS, 0..4),
        payload in payload_as_put(),
    ) -> ExportSchedule {
        let spec = ScheduleSpec { payload, ..ScheduleSpec::new(CadenceBody::Every(made + 100)) };
        ExportSchedule { queue, name, spec, anchor_ms, decided_ms, next_at_ms, last_at_ms, made, skipped, running, waiting_ms: waiting.into_iter().collect() }
    }
}

fn line() -> impl Strategy<Value = ExportLine> {
    let header = (instant(), text(), any::<bool>(), prop::collection::vec(text(), 0..3), 0..=1_u64 << 53)
        .prop_map(|(at_ms, release, virtual_clock, scope, ids_below)| {
            let (queue, store) = (scope.first().cloned(), scope.last().cloned());
            ExportLine::Header(ExportHeader { at_ms, release, virtual_clock, store, scope, queue, ids_below })
        });
    let queue = (text(), any::<bool>(), prop::option::of(instant()), any::<bool>()).prop_map(
        |(queue, paused, until, draining)| {
            let rate = paused.then_some(RateBody { tasks: 5, per_ms: 1_000 });
            let settings = SettingsBody { max_in_flight: Some(3), rate, ..SettingsBody::default() };
            let paused_until_ms = until.filter(|_| paused);
            ExportLine::Queue(Box::new(ExportQueue { queue, settings, paused, paused_until_ms, draining }))
        },
    );
    prop_oneof![
        header,
        queue,
        task().prop_map(|task| ExportLine::Task(Box::new(task))),
        schedule().prop_map(|schedule| ExportLine::Schedule(Box::new(schedule))),
        "[0-9a-f-]{1,40}".prop_map(ExportLine::Cursor),
        any::<[u32; 4]>().prop_map(|counts| {
            let [queues, tasks, dead, schedules] = counts.map(u64::from);
            ExportLine::End(ExportEnd { queues, tasks, dead, schedules })
        }),
    ]
}

fn written(line: &ExportLine) -> Vec<u8> {
    let mut out = Vec::new();
    line.write(&mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_line_is_read_as_it_was_written(line in line()) {
        let out = written(&line);
        prop_assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(ExportLine::parse(&out), Ok(line));
    }

    #[test]
    fn a_cut_line_is_refused_wherever_it_is_cut(line in line(), cut in any::<prop::sample::Index>()) {
        let out = written(&line);
        let cut = cut.index(out.len() - 1);
        prop_assert!(ExportLine::parse(&out[..cut]).is_err(), "cut at {} of {}", cut, out.len());
    }

    #[test]
    fn a_strange_member_is_refused_by_name(line in line()) {
        let out = String::from_utf8(written(&line)).expect("UTF-8");
        let more = out.trim_end().replacen('{', "{\"strange\":1,", 1);
        let refused = ExportLine::parse(more.as_bytes()).expect_err("a stranger").to_string();
        prop_assert_eq!(refused, "`strange`: is not a member of this request");
        if !matches!(line, ExportLine::Cursor(_)) {
            let inside = out.trim_end().replacen(":{", ":{\"strange\":1,", 1);
            let refused = ExportLine::parse(inside.as_bytes()).expect_err("a stranger").to_string();
            prop_assert!(refused.ends_with(".strange`: is not a member of this request"), "{}", refused);
        }
    }

    #[test]
    fn any_bytes_are_a_line_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _line = ExportLine::parse(&bytes);
    }
}

#[test]
fn what_is_wrong_is_told_by_its_place() {
    for (text, what) in [
        ("{}", "the body: has no member"),
        (r#"{"cursor":"a","end":{}}"#, "the body: has 2 members; a line has exactly one"),
        (r#"{"tasks":{}}"#, "`tasks`: is not a member of this request"),
        (r#"{"task":7}"#, "`task`: expected an object, got the number 7"),
        (r#"{"task":{"queue":"q"}}"#, "`task.key`: is missing"),
        (
            r#"{"task":{"queue":"q","key":"k","due_at":"x","put_at":"x"}}"#,
            "`task.due_at`: `x` is not an RFC 3339 time",
        ),
        (r#"{"task":{"dead_at":1}}"#, "`task.dead_at`: is not a member of this request"),
        (
            r#"{"dead":{"queue":"q","key":"k","due_at":"2030-01-01T00:00:00Z","put_at":"2030-01-01T00:00:00Z"}}"#,
            "`dead.reason`: is missing",
        ),
        (r#"{"export":{"format":2}}"#, "`export.format`: is 2; this release reads 1"),
        (r#"{"queue":{"queue":"q","settings":{"rate":7}}}"#, "`queue.settings.rate`:"),
        (
            r#"{"schedule":{"queue":"q","name":"s","spec":{}}}"#,
            "`schedule.spec`: has none of `cron`, `every` and `fixed_delay`",
        ),
        (r#"{"dead":{"keyless":true,"keyless":true}}"#, "`dead.keyless`: is given twice"),
        (r#"{"dead":{"payload":1,"payload":2}}"#, "`dead.payload`: is given twice"),
        (r#"{"end":{"queues":0}}"#, "`end.tasks`: is missing"),
        (r#"{"cursor":""}"#, "`cursor`: has 0 bytes"),
    ] {
        let refused = ExportLine::parse(text.as_bytes()).expect_err(text).to_string();
        assert!(refused.starts_with(what), "{text}: {refused}");
    }
}

/// A bug that was found: for a member of the other kind of task the hint was `did you mean` with the same member.
#[test]
fn a_member_of_the_other_kind_of_task_is_told_where_it_belongs() {
    for (text, hint) in [
        (r#"{"task":{"dead_at":1}}"#, "a dead task is a line with the member `dead`"),
        (r#"{"task":{"reason":"buried"}}"#, "a dead task is a line with the member `dead`"),
        (r#"{"task":{"keyless":true}}"#, "a dead task is a line with the member `dead`"),
        (r#"{"dead":{"state":"ready"}}"#, "a live task is a line with the member `task`"),
    ] {
        let refused = ExportLine::parse(text.as_bytes()).expect_err(text);
        assert!(refused.hint.contains(hint), "{text}: {}", refused.hint);
    }
    let refused = ExportLine::parse(br#"{"task":{"colour":1}}"#).expect_err("an unknown member");
    assert!(refused.hint.contains("expire_at") && !refused.hint.contains("keyless"), "{}", refused.hint);
}
