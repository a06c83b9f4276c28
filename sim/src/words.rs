//! Translates between the types of the product and those of the oracle. The oracle knows nothing of the product, so
//! this module stands between them.

use std::sync::Arc;

use tickwheel_engine::Input;
use tickwheel_queue as product;

use crate::oracle::{self, TokenAnswer, Verb, View};
use crate::rng::Rng;

/// The members of a task that its owner chose, except the due instant. All of them follow from one number, so the
/// oracle keeps that number only.
#[derive(PartialEq, Eq)]
struct Given {
    body: product::Body,
    terms: product::Terms,
}

impl Given {
    fn of(number: u64) -> Self {
        let made = number >> 1;
        let tags =
            made.is_multiple_of(4).then(|| product::Tag::new(&format!("t{}", made % 3)).expect("a tag"));
        let group =
            oracle::group_of(number).map(|group| product::Group::new(&format!("g{group}")).expect("a group"));
        Self {
            body: product::Body { tags: tags.into_iter().collect(), ..product::Body::bytes(payload(number)) },
            terms: product::Terms {
                priority: oracle::priority_of(number),
                group,
                retry: retry(number),
                ..product::Terms::default()
            },
        }
    }
}

/// The payload that stands for a number: the number itself, and for an odd number more than 4 KiB of bytes that follow from it.
fn payload(number: u64) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    if number % 2 == 1 {
        let mut rng = Rng::new(number);
        bytes.extend((0..4_090 + number % 3_000).map(|_| rng.next_u64() as u8));
    }
    bytes
}

/// The timeline of the task with this number, beginning at the instant `first`. All instants have the same payload.
fn timeline(first: i64, number: u64) -> Vec<product::Moment> {
    let (count, gap_ms) = oracle::steps_of(number).unwrap_or((0, 0));
    let at = |step: u64| first.saturating_add_unsigned(step * gap_ms);
    let moments = (0..count).map(|step| product::Moment {
        at: product::Timestamp::from_ms(at(step)).unwrap_or(product::Timestamp::MAX),
        payload: payload(number),
        content_type: product::Body::bytes([]).content_type,
    });
    moments.collect()
}

/// Whether `moments` is empty or the timeline of a task with this number.
fn is_timeline(moments: &[product::Moment], number: u64) -> bool {
    moments.first().is_none_or(|first| moments == timeline(first.at.as_ms(), number))
}

/// The retry policy of the task with this number. It has no random part, so the oracle knows the length of each wait.
fn retry(number: u64) -> Option<product::Retry> {
    let backoff = oracle::backoff_of(number).map(|(base_ms, doubles)| product::Backoff {
        doubles,
        base_ms,
        max_ms: oracle::BACKOFF_MS_MAX,
        jitter_percent: 0,
    });
    let max_attempts = oracle::max_attempts_of(number);
    (backoff.is_some() || max_attempts.is_some()).then_some(product::Retry { max_attempts, backoff })
}

/// The trace context of every put of this key: keys with an odd number have one.
fn trace_of(key: &str) -> Option<Arc<str>> {
    let traced =
        key.strip_prefix('k').and_then(|number| number.parse::<u64>().ok()).is_some_and(|n| n % 2 == 1);
    traced.then(|| format!("trace of {key}").into())
}

/// The number from which the members of a task follow. `traced`: the key, and the trace that is shown with it.
/// `shown`: the retry policy, if the answer shows it; a delivery does not.
fn number(
    traced: (&product::Key, Option<&Arc<str>>),
    body: &product::Body,
    priority: u32,
    group: Option<&product::Group>,
    shown: Option<Option<product::Retry>>,
) -> u64 {
    let number = body.payload.first_chunk().copied().map(u64::from_be_bytes);
    let mut body = body.clone();
    let timeline = std::mem::take(&mut body.timeline);
    let terms = |number| product::Terms {
        priority,
        group: group.cloned(),
        retry: shown.unwrap_or_else(|| retry(number)),
        ..product::Terms::default()
    };
    // No call puts any other task. For such a task the result is a number that no call has.
    let (key, trace) = traced;
    let traced_well = trace_of(key.as_str()).as_ref() == trace;
    let is_it = |number: u64| {
        traced_well
            && is_timeline(&timeline, number)
            && Given::of(number) == Given { body: body.clone(), terms: terms(number) }
    };
    number.filter(|&number| is_it(number)).unwrap_or(u64::MAX)
}

/// Whether the answer says that there was no space.
pub(crate) fn is_full(answer: &product::Answer) -> bool {
    let why = match answer {
        product::Answer::Put(Err(product::PutError::Unavailable(why)))
        | product::Answer::Patch(Err(product::PatchError::Unavailable(why)))
        | product::Answer::Cancel(Err(product::CancelError::Unavailable(why)))
        | product::Answer::Redrive(Err(product::RedriveError::Unavailable(why)))
        | product::Answer::ById(Err(product::ByIdError::Unavailable(why)))
        | product::Answer::ByKey(Err(product::ByKeyError::Unavailable(why)))
        | product::Answer::Nack(Err(product::NackError::Unavailable(why)))
        | product::Answer::ChangeQueue(Err(product::QueueError::Unavailable(why)))
        | product::Answer::Ack(Err(why))
        | product::Answer::Extend(Err(why))
        | product::Answer::Lease(Err(why)) => why,
        product::Answer::Import(Ok(product::Imported {
            refused: Some(product::ImportError::Unavailable(why)),
            ..
        })) => why,
        _ => return false,
    };
    matches!(why, product::Unavailable::Full { .. } | product::Unavailable::NoDescriptors)
}

/// The input that tells the server that these deliveries reached no worker.
pub(crate) fn undelivered(texts: &[String]) -> Input {
    let tokens =
        texts.iter().map(|text| product::Token::parse(text).expect("the server gave this token")).collect();
    Input::Undelivered { tokens }
}

fn view(task: &product::TaskView) -> View {
    View {
        key: task.key.as_str().to_owned(),
        id: task.id,
        version: task.version.0,
        state: match task.state {
            product::State::Scheduled => oracle::State::Scheduled,
            product::State::Ready => oracle::State::Ready,
            product::State::Leased => oracle::State::Leased,
            product::State::Dead => oracle::State::Dead,
        },
        due_at: task.due_at.as_ms(),
        payload: number(
            (&task.key, task.extra.trace.as_ref()),
            &task.body,
            task.priority,
            task.extra.group.as_ref(),
            Some(task.extra.retry),
        ),
        attempt: task.attempt,
        expire_at: task.extra.expire_at.map(product::Timestamp::as_ms),
    }
}

/// The product's command for a call. A list is none of these calls, because it needs several commands.
pub(crate) fn command(call: &oracle::Call) -> product::Command {
    let queue = queue(&call.queue);
    let key = call.key.as_deref().map(|key| product::Key::new(key).expect("the workload gives good keys"));
    let named = || key.clone().expect("this verb names a key");
    let version = |version: Option<u64>| version.map(product::Seq);
    let on_lease = |revoke| if revoke { product::OnLease::Revoke } else { product::OnLease::Refuse };
    let tokens = |texts: &[String]| {
        texts.iter().map(|text| product::Token::parse(text).expect("the workload gives tokens")).collect()
    };
    match &call.verb {
        Verb::Put { due, payload: number, mode, if_match, revoke } => {
            let Given { mut body, mut terms } = Given::of(*number);
            if let (Some(oracle::Due::At(first)), Some(_)) = (due, oracle::steps_of(*number)) {
                body.timeline = timeline(*first, *number);
            }
            terms.expire_after_ms = oracle::expire_after_of(*number);
            // The oracle's `Replace` is one of two puts of the product: one with that mode, or one that must not add a
            // task. The number of the call decides.
            let may_add = *mode != oracle::Mode::Replace || number & 4 == 0;
            product::Command::Put(product::Put {
                queue,
                trace: call.key.as_deref().and_then(trace_of),
                key,
                due: due.map_or(product::Due::Now, due_of),
                body,
                terms,
                ttr_ms: None,
                mode: match mode {
                    oracle::Mode::Upsert => product::PutMode::Upsert,
                    oracle::Mode::Create => product::PutMode::Create,
                    oracle::Mode::Replace if may_add => product::PutMode::Replace,
                    oracle::Mode::Replace => product::PutMode::Upsert,
                    oracle::Mode::Once => product::PutMode::Once,
                    oracle::Mode::Debounce { max_wait_ms } => {
                        product::PutMode::Debounce { max_wait_ms: *max_wait_ms }
                    }
                },
                if_version: version(*if_match),
                on_lease: on_lease(*revoke),
                may_add,
                asked_at: None,
            })
        }
        Verb::Import { due, payload: number, attempts, there, revoke } => {
            let trace = call.key.as_deref().and_then(trace_of);
            product::Command::Import(product::ImportTasks {
                tasks: vec![imported(queue, named(), *due, *number, *attempts, trace)],
                existing: match there {
                    oracle::There::Skip => product::Existing::Skip,
                    oracle::There::Replace => product::Existing::Replace,
                    oracle::There::Refuse => product::Existing::Refuse,
                },
                on_lease: on_lease(*revoke),
                ids_below: None,
            })
        }
        Verb::Get => product::Command::Get(product::Get { queue, key: named() }),
        Verb::Patch { due, payload: number, if_match, revoke } => {
            let given = number.map(Given::of);
            product::Command::Patch(product::Patch {
                queue,
                key: named(),
                due: due.map(due_of),
                payload: given.as_ref().map(|given| product::Payload::bytes(given.body.payload.clone())),
                timeline: None,
                tags: given.as_ref().map(|given| given.body.tags.clone()),
                priority: given.as_ref().map(|given| given.terms.priority),
                group: given.as_ref().map(|given| given.terms.group.clone()),
                retry: given.map(|given| given.terms.retry),
                expire_after_ms: None,
                if_version: version(*if_match),
                on_lease: on_lease(*revoke),
            })
        }
        Verb::Cancel { if_match, revoke } => product::Command::Cancel(product::Cancel {
            queue,
            key: named(),
            if_version: version(*if_match),
            on_lease: on_lease(*revoke),
        }),
        Verb::Redrive { id } => product::Command::Redrive(product::Redrive { queue, id: *id }),
        Verb::ById { id, act } => {
            let act = match *act {
                oracle::Act::Get => product::Act::Get,
                oracle::Act::Cancel => product::Act::Cancel,
                oracle::Act::Run => product::Act::Run,
                oracle::Act::Lease { lease_ms } => product::Act::Lease { lease_ms: Some(lease_ms) },
            };
            product::Command::ById(product::ById {
                id: *id,
                act,
                within: None,
                if_version: None,
                worker: None,
            })
        }
        Verb::ByKey { act, if_match } => {
            let act = match act {
                oracle::KeyAct::Run => product::KeyAct::Run,
                oracle::KeyAct::Release => product::KeyAct::Release,
            };
            product::Command::ByKey(product::ByKey {
                queue,
                key: named(),
                act,
                if_version: version(*if_match),
            })
        }
        Verb::Lease { max, lease_ms } => product::Command::Lease(product::Lease {
            max: *max,
            lease_ms: Some(*lease_ms),
            ..product::Lease::new(&queue)
        }),
        Verb::Ack { tokens: texts } => product::Command::Ack(product::Ack { queue, tokens: tokens(texts) }),
        Verb::Nack { tokens: texts, delay_ms, at_least_ms, how } => {
            let how = match how {
                oracle::How::Returned => product::NackHow::Returned,
                oracle::How::Gone => product::NackHow::Gone,
                oracle::How::Buried => product::NackHow::Buried,
                // The oracle does not know the reason of a death. The delay, which has no effect here, chooses one of the three.
                oracle::How::Undeliverable => {
                    product::NackHow::Undeliverable(match delay_ms.unwrap_or(0) % 3 {
                        0 => product::Undeliverable::Refused,
                        1 => product::Undeliverable::Template,
                        _ => product::Undeliverable::TooLarge,
                    })
                }
            };
            let tokens: Vec<product::Token> = tokens(texts);
            product::Command::Nack(product::Nack {
                how,
                delay_ms: *delay_ms,
                at_least_ms: *at_least_ms,
                ..product::Nack::new(&queue, tokens)
            })
        }
        Verb::Extend { tokens: texts, lease_ms } => product::Command::Extend(product::Extend {
            queue,
            tokens: tokens(texts),
            lease_ms: Some(*lease_ms),
        }),
        Verb::Counts => product::Command::Queues(product::ListQueues::default()),
        Verb::Settle(oracle::Limits { in_flight, per_group, max_backlog, rate }) => {
            let number = |limit: Option<usize>| limit.map(|limit| limit as u64);
            let settings = product::QueueSettings {
                max_in_flight: number(*in_flight),
                max_in_flight_per_group: number(*per_group),
                max_backlog: number(*max_backlog),
                rate: rate.map(|oracle::Rate { tasks, per_ms, burst }| product::Rate {
                    tasks,
                    per_ms,
                    burst,
                }),
                ..product::QueueSettings::default()
            };
            change(queue, product::QueueChange::Settings(settings))
        }
        Verb::Pause(oracle::Pause::Off) => change(queue, product::QueueChange::Resume),
        Verb::Pause(oracle::Pause::On) => change(queue, product::QueueChange::Pause { ms: None }),
        Verb::Pause(oracle::Pause::For(ms)) => change(queue, product::QueueChange::Pause { ms: Some(*ms) }),
        Verb::Drain => change(queue, product::QueueChange::Drain),
        Verb::Delete => change(queue, product::QueueChange::Delete),
        Verb::List => unreachable!("a list is taken page by page"),
        Verb::Return { .. } => unreachable!("no client says this, the driver does"),
    }
}

/// The command that imports a live task which was put in another store, at the Unix epoch.
fn imported(
    queue: product::QueueName,
    key: product::Key,
    due_ms: i64,
    number: u64,
    attempts: u32,
    trace: Option<Arc<str>>,
) -> product::ImportTask {
    let Given { body, terms } = Given::of(number);
    product::ImportTask {
        id: 0,
        queue,
        key,
        due_at: product::Timestamp::from_ms(due_ms).expect("after 1970"),
        put_at: product::Timestamp::default(),
        priority: terms.priority,
        attempts,
        body: Arc::new(body),
        extra: product::Extra { group: terms.group, retry: terms.retry, trace, ..product::Extra::default() },
    }
}

fn change(queue: product::QueueName, change: product::QueueChange) -> product::Command {
    product::Command::ChangeQueue(product::ChangeQueue { queue, change })
}

pub(crate) fn queue(name: &str) -> product::QueueName {
    product::QueueName::new(name).expect("the workload gives good names")
}

fn due_of(due: oracle::Due) -> product::Due {
    match due {
        oracle::Due::At(ms) => product::Due::At(product::Timestamp::from_ms(ms).expect("after 1970")),
        oracle::Due::In(ms) => product::Due::After { ms },
    }
}

/// The oracle's words for an answer to `call`.
pub(crate) fn answer(call: &oracle::Call, answer: product::Answer) -> oracle::Answer {
    use oracle::Answer as A;
    use product::Answer as P;
    match answer {
        P::Put(Ok(stored)) => A::Stored { created: stored.created, task: view(&stored.task) },
        P::Put(Err(error)) => match error {
            product::PutError::Live { .. } => A::Live,
            product::PutError::NotFound | product::PutError::WouldAdd => A::NotFound,
            product::PutError::Done => A::Done,
            product::PutError::Leased => A::Leased,
            product::PutError::VersionMismatch { .. } => A::VersionMismatch,
            product::PutError::Draining => A::Draining,
            product::PutError::BacklogFull { .. } => A::BacklogFull,
            product::PutError::Unavailable(why) => unavailable(&why),
            _ => A::Refused,
        },
        P::Get(Ok(task)) => A::Task(view(&task)),
        // A get of the product distinguishes a done key from an unknown one. A get of the oracle does not.
        P::Get(Err(product::GetError::NotFound | product::GetError::Done)) => A::NotFound,
        P::Get(Err(product::GetError::Unavailable(why))) => unavailable(&why),
        P::Patch(Ok(task)) => A::Stored { created: false, task: view(&task) },
        P::Patch(Err(error)) => match error {
            product::PatchError::NotFound => A::NotFound,
            product::PatchError::Done => A::Done,
            product::PatchError::Leased => A::Leased,
            product::PatchError::Dead => A::Dead,
            product::PatchError::VersionMismatch { .. } => A::VersionMismatch,
            product::PatchError::Unavailable(why) => unavailable(&why),
            _ => A::Refused,
        },
        P::Cancel(Ok(product::Cancelled::Cancelled)) => A::Cancelled,
        P::Cancel(Ok(product::Cancelled::Revoked)) => A::Revoked,
        P::Cancel(Err(error)) => match error {
            product::CancelError::NotFound => A::NotFound,
            product::CancelError::Done => A::Done,
            product::CancelError::Leased => A::Leased,
            product::CancelError::VersionMismatch { .. } => A::VersionMismatch,
            product::CancelError::Unavailable(why) => unavailable(&why),
        },
        P::Forecast(_) => unreachable!("the oracle asks for no forecast"),
        P::TakeRow(_) => unreachable!("the oracle has no inbox"),
        P::Import(Ok(imported)) => of_import(&imported),
        P::Import(Err(why)) => unavailable(&why),
        P::ImportSchedule(_) => unreachable!("the oracle imports no schedule"),
        P::Redrive(Ok(task)) => A::Stored { created: false, task: view(&task) },
        P::Redrive(Err(error)) => match error {
            product::RedriveError::NotFound => A::NotFound,
            product::RedriveError::Live { .. } => A::Live,
            product::RedriveError::Draining => A::Draining,
            product::RedriveError::Unavailable(why) => unavailable(&why),
            _ => A::Refused,
        },
        P::ById(Ok(acted)) => match (acted, &call.verb) {
            (product::Acted::Task(task), Verb::ById { act: oracle::Act::Run, .. }) => {
                A::Stored { created: false, task: view(&task) }
            }
            (product::Acted::Task(task), _) => A::Task(view(&task)),
            (product::Acted::Cancelled, _) => A::Cancelled,
            (product::Acted::Leased(leased), _) => A::Delivered(vec![delivery(&leased)]),
        },
        P::ById(Err(error)) => match error {
            product::ByIdError::NotFound => A::NotFound,
            product::ByIdError::Leased => A::Leased,
            product::ByIdError::Ready => A::Ready,
            product::ByIdError::Live { .. } => A::Live,
            product::ByIdError::Draining => A::Draining,
            product::ByIdError::Unavailable(why) => unavailable(&why),
            _ => A::Refused,
        },
        P::ByKey(Ok(task)) => A::Stored { created: false, task: view(&task) },
        P::ByKey(Err(error)) => match error {
            product::ByKeyError::NotFound => A::NotFound,
            product::ByKeyError::Done => A::Done,
            product::ByKeyError::Dead => A::Dead,
            product::ByKeyError::Leased => A::Leased,
            product::ByKeyError::NotLeased => A::NotLeased,
            product::ByKeyError::VersionMismatch { .. } => A::VersionMismatch,
            product::ByKeyError::Unavailable(why) => unavailable(&why),
        },
        P::Lease(Ok(leased)) => A::Delivered(leased.iter().map(delivery).collect()),
        P::Ack(Ok(answers)) | P::Nack(Ok(answers)) | P::Extend(Ok(answers)) => A::Tokens(
            answers
                .iter()
                .map(|answer| match answer {
                    product::TokenAnswer::Acked => TokenAnswer::Acked,
                    product::TokenAnswer::Nacked => TokenAnswer::Nacked,
                    product::TokenAnswer::Extended => TokenAnswer::Extended,
                    product::TokenAnswer::Expired => TokenAnswer::Expired,
                    product::TokenAnswer::Revoked => TokenAnswer::Revoked,
                })
                .collect(),
        ),
        P::Queues(Ok(queues)) => {
            let name = queue(&call.queue);
            let counts = queues.queues.into_iter().find(|counts| counts.queue == name);
            let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            counts.map_or(A::Counted { scheduled: 0, ready: 0, leased: 0, dead: 0 }, |c| A::Counted {
                scheduled: number(c.scheduled),
                ready: number(c.ready),
                leased: number(c.leased),
                dead: number(c.dead),
            })
        }
        P::Lease(Err(why)) | P::Ack(Err(why)) | P::Extend(Err(why)) | P::Queues(Err(why)) => {
            unavailable(&why)
        }
        P::Nack(Err(product::NackError::Unavailable(why))) => unavailable(&why),
        P::Nack(Err(_)) => A::Refused,
        P::ChangeQueue(Ok(())) => A::Laid,
        P::ChangeQueue(Err(product::QueueError::Unavailable(why))) => unavailable(&why),
        P::ChangeQueue(Err(product::QueueError::NotEmpty { live, dead, schedules })) => A::NotEmpty {
            live: usize::try_from(live).unwrap_or(usize::MAX),
            dead: usize::try_from(dead).unwrap_or(usize::MAX),
            schedules: usize::try_from(schedules).unwrap_or(usize::MAX),
        },
        P::ChangeQueue(Err(_)) => A::Refused,
        P::List(_)
        | P::AllTasks(_)
        | P::AllSchedules(_)
        | P::Leases(_)
        | P::Stats(_)
        | P::Wheel(_)
        | P::Queue(_)
        | P::PutSchedule(_)
        | P::DeleteSchedule(_)
        | P::GetSchedule(_)
        | P::Schedules(_)
        | P::ChangeJob(_)
        | P::Jobs(_)
        | P::Targets(_) => {
            unreachable!("a list is taken page by page, and nobody asks for these by a call")
        }
    }
}

/// The answer of the oracle for an import of one task.
fn of_import(imported: &product::Imported) -> oracle::Answer {
    use oracle::Answer as A;
    match (imported.outcomes.first(), &imported.refused) {
        (Some(product::ImportOutcome::Added { .. }), _) => A::Added,
        (Some(product::ImportOutcome::Replaced), _) => A::Replaced,
        (Some(product::ImportOutcome::Skipped(_)), _) => A::Skipped,
        (None, Some(product::ImportError::Live { .. })) => A::Live,
        (None, Some(product::ImportError::Dead { .. })) => A::Dead,
        (None, Some(product::ImportError::Leased)) => A::Leased,
        (None, Some(product::ImportError::Draining)) => A::Draining,
        (None, Some(product::ImportError::BacklogFull { .. })) => A::BacklogFull,
        (None, Some(product::ImportError::Unavailable(why))) => unavailable(why),
        (None, Some(_)) => A::Refused,
        (None, None) => unreachable!("an import of one task says what became of it"),
    }
}

fn delivery(one: &product::Leased) -> oracle::Delivery {
    let payload = number((&one.key, one.trace.as_ref()), &one.body, one.priority, one.group.as_ref(), None);
    oracle::Delivery {
        key: one.key.as_str().to_owned(),
        id: one.id,
        due_at: one.due_at.as_ms(),
        payload,
        attempt: one.attempt,
        token: one.token.to_string(),
        lease_until: one.lease_until.as_ms(),
    }
}

/// The rows of one page.
pub(crate) fn rows(page: &product::TaskPage) -> Vec<View> {
    page.tasks.iter().map(view).collect()
}

fn unavailable(why: &product::Unavailable) -> oracle::Answer {
    match why {
        product::Unavailable::Indeterminate { .. } => oracle::Answer::Unknown,
        _ => oracle::Answer::Refused,
    }
}
