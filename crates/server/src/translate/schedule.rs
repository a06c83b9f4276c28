//! Translates schedules between the API and the queue.

use std::sync::Arc;

use tickwheel_api as api;
use tickwheel_api::{BadRequest, Problem};
use tickwheel_queue as queue;
use tickwheel_queue::cron::{ClockChange, Cron, CronError};
use tickwheel_queue::{QueueName, ScheduleName, Seq, Timestamp};

use crate::base::hex;
use crate::translate;
use crate::translate::twin::Twin;

/// A schedule of a request, for the queue.
pub(crate) fn schedule(spec: api::ScheduleSpec) -> Result<queue::Schedule, BadRequest> {
    let api::ScheduleSpec { cadence, start_ms, end_ms, count, jitter_ms, catch_up, overlap, payload, terms } =
        spec;
    let bytes = payload.bytes.len() + terms.tags.iter().map(String::len).sum::<usize>();
    if bytes > queue::Schedule::BODY_BYTES_MAX {
        let limit = queue::Schedule::BODY_BYTES_MAX;
        let what = format!("has {bytes} bytes with the tags; a schedule takes at most {limit}");
        let hint =
            "schedules are kept in memory: store longer data elsewhere, and put its name into the payload";
        return Err(BadRequest::member("payload", what, hint));
    }
    let instant = |ms: i64| Timestamp::from_ms(ms).expect("parsed instants are not before 1970");
    Ok(queue::Schedule {
        cadence: cadence_of(cadence)?,
        start: start_ms.map(instant),
        end: end_ms.map(instant),
        count,
        jitter_ms,
        catch_up: catch_up.twin(),
        overlap: overlap.twin(),
        body: Arc::new(queue::Body {
            payload: payload.bytes,
            content_type: payload.content_type.into(),
            tags: translate::tags(&terms.tags),
            timeline: Vec::new(),
        }),
        terms: translate::terms(&terms),
    })
}

fn cadence_of(cadence: api::CadenceBody) -> Result<queue::Cadence, BadRequest> {
    Ok(match cadence {
        api::CadenceBody::Cron { cron, tz } => {
            Cron::parse(&cron, &tz).map_err(|error| bad_cron(&error))?;
            queue::Cadence::Cron { text: cron.into(), zone: tz.into() }
        }
        api::CadenceBody::Every(ms) => queue::Cadence::Every { ms },
        api::CadenceBody::FixedDelay(ms) => queue::Cadence::FixedDelay { ms },
    })
}

fn bad_cron(error: &CronError) -> BadRequest {
    let member = if matches!(error, CronError::Zone { .. }) { "tz" } else { "cron" };
    BadRequest::member(member, error.to_string(), error.hint())
}

/// A schedule as the API shows it.
pub(crate) fn schedule_body(view: &queue::ScheduleView) -> api::ScheduleBody {
    let queue::ScheduleRecord { schedule, version, next, last, made, skipped, running, waiting, .. } =
        &*view.record;
    api::ScheduleBody {
        queue: view.queue.as_str().to_owned(),
        name: view.name.as_str().to_owned(),
        version: version.0,
        next_at_ms: next.map(Timestamp::as_ms),
        fault: if next.is_none() { fault(schedule).map(|error| error.to_string()) } else { None },
        last_at_ms: last.map(Timestamp::as_ms),
        made: *made,
        skipped: *skipped,
        running: !running.is_empty(),
        waiting: waiting.len() as u64,
        spec: spec(schedule),
    }
}

/// Why the instants of a stored schedule cannot be found; `None`: they can.
fn fault(schedule: &queue::Schedule) -> Option<CronError> {
    let queue::Cadence::Cron { text, zone } = &schedule.cadence else { return None };
    Cron::check_stored(text, zone).err()
}

pub(crate) fn spec(schedule: &queue::Schedule) -> api::ScheduleSpec {
    let queue::Schedule { cadence, start, end, count, jitter_ms, catch_up, overlap, body, terms } = schedule;
    api::ScheduleSpec {
        cadence: match cadence {
            queue::Cadence::Cron { text, zone } => {
                api::CadenceBody::Cron { cron: text.to_string(), tz: zone.to_string() }
            }
            queue::Cadence::Every { ms } => api::CadenceBody::Every(*ms),
            queue::Cadence::FixedDelay { ms } => api::CadenceBody::FixedDelay(*ms),
        },
        start_ms: start.map(Timestamp::as_ms),
        end_ms: end.map(Timestamp::as_ms),
        count: *count,
        jitter_ms: *jitter_ms,
        catch_up: catch_up.twin(),
        overlap: overlap.twin(),
        payload: translate::payload_body(body, 0),
        terms: translate::terms_body(body, terms),
    }
}

/// The next occurrences of a schedule as the API shows them. `name`: that of the schedule, or nothing if it has none.
pub(crate) fn preview(record: &queue::ScheduleRecord, name: &str, count: usize) -> api::PreviewBody {
    let all = match queue::upcoming(record, count) {
        Ok(all) => all,
        Err(error) => {
            let note = Some(format!("no further instants: {error}; {}", error.hint()));
            return api::PreviewBody { occurrences: Vec::new(), note };
        }
    };
    let note = (all.len() < count).then(|| why_no_more(record));
    let occurrence = |one: queue::Upcoming| api::OccurrenceBody {
        at_ms: one.at.as_ms(),
        local: one.local,
        key: format!("{name}@{}", one.at.to_utc()),
        note: Some(one.change).filter(|change| *change != ClockChange::None).map(|change| change.to_string()),
    };
    api::PreviewBody { occurrences: all.into_iter().map(occurrence).collect(), note }
}

fn why_no_more(record: &queue::ScheduleRecord) -> String {
    let is_delay = matches!(record.schedule.cadence, queue::Cadence::FixedDelay { .. });
    match record.schedule.count {
        Some(count) if record.is_counted_out() || !is_delay => {
            format!("no further instants: the schedule makes at most {count} tasks, or its `end` comes first")
        }
        _ if is_delay => "an instant is known when the task of the instant before it has ended".to_owned(),
        _ => "no further instants: the `end` of the schedule comes first".to_owned(),
    }
}

/// The cursor after a page of schedules: the name in hex, so that each name has one spelling.
pub(crate) fn cursor(name: &ScheduleName) -> String {
    hex::write(name.as_str().as_bytes())
}

/// The name in a cursor; `None`: the text is not a cursor.
pub(crate) fn read_cursor(text: &str) -> Option<ScheduleName> {
    ScheduleName::new(&String::from_utf8(hex::read(text)?).ok()?).ok()
}

/// The cursor after a page of the schedules of all queues.
pub(crate) fn all_cursor(queue: &QueueName, name: &ScheduleName) -> String {
    format!("{}-{}", hex::write(queue.as_str().as_bytes()), cursor(name))
}

/// The place of a schedule in the order of next instants. Those that have none are last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NextPlace {
    has_none: bool,
    at: Timestamp,
    queue: QueueName,
    name: ScheduleName,
}

impl NextPlace {
    pub(crate) fn of(view: &queue::ScheduleView) -> Self {
        Self::new(view.record.next, view.queue.clone(), view.name.clone())
    }

    fn new(next: Option<Timestamp>, queue: QueueName, name: ScheduleName) -> Self {
        Self { has_none: next.is_none(), at: next.unwrap_or_default(), queue, name }
    }

    /// The cursor after this place: `n`, the instant in hex if there is one, and then the cursor of the other order.
    pub(crate) fn cursor(&self) -> String {
        let at = if self.has_none { String::new() } else { format!("{:x}", self.at.as_ms()) };
        format!("n{at}-{}", all_cursor(&self.queue, &self.name))
    }

    /// The place in such a cursor; `None`: the text is not a cursor of this order.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (at, id) = text.strip_prefix('n')?.split_once('-')?;
        let next = match at {
            "" => None,
            at => Some(Timestamp::from_ms(i64::from_str_radix(at, 16).ok()?)?),
        };
        let (queue, name) = read_all_cursor(id)?;
        let place = Self::new(next, queue, name);
        // Each place has one spelling.
        (place.cursor() == text).then_some(place)
    }
}

/// The queue and the name in such a cursor; `None`: the text is not a cursor.
pub(crate) fn read_all_cursor(text: &str) -> Option<(QueueName, ScheduleName)> {
    let (queue, name) = text.split_once('-')?;
    let queue = QueueName::new(&String::from_utf8(hex::read(queue)?).ok()?).ok()?;
    Some((queue, read_cursor(name)?))
}

pub(crate) fn refused(
    error: &queue::ScheduleError,
    queue: &QueueName,
    name: &ScheduleName,
    version: Option<Seq>,
) -> Problem {
    match error {
        queue::ScheduleError::NotFound => Problem::no_schedule(queue.as_str(), name.as_str()),
        queue::ScheduleError::VersionMismatch { current } => Problem::schedule_version_mismatch(
            version.map_or(0, |version| version.0),
            current.map(|current| current.0),
        ),
        queue::ScheduleError::Exists { .. } => translate::exported::exists(&format!(
            "schedule `{}` of queue `{}` already exists and differs",
            name.as_str(),
            queue.as_str()
        )),
        other => unfit(other),
    }
}

/// The refusal of a schedule, whatever its name is.
pub(crate) fn unfit(error: &queue::ScheduleError) -> Problem {
    match error {
        queue::ScheduleError::Invalid { what } => {
            Problem::bad_request(&BadRequest::body(format!("has {what}"), "leave it out or correct it"))
        }
        queue::ScheduleError::Cadence { why } => {
            let hint = "write five fields, minute hour day month weekday, or six with the seconds first";
            Problem::bad_request(&BadRequest::member("cron", why.to_string(), hint))
        }
        queue::ScheduleError::NeverFires => {
            let hint = "move `start` or `end`, raise `count`, or DELETE the schedule first to count anew";
            Problem::bad_request(&BadRequest::body("leaves no occurrence ahead", hint))
        }
        queue::ScheduleError::TooMany { schedules, bytes } => {
            Problem::too_many(&format!("schedules, with {bytes} bytes of payloads and texts,"), *schedules)
        }
        queue::ScheduleError::ShareUsedUp { schedules, bytes } => {
            let what = format!(
                "schedules in the scope of the token, with {bytes} bytes of payloads and texts (a quarter of what the shard has)"
            );
            Problem::too_many(&what, *schedules)
        }
        queue::ScheduleError::Unavailable(why) => translate::unavailable(why),
        // These are about a schedule that is stored.
        queue::ScheduleError::NotFound
        | queue::ScheduleError::VersionMismatch { .. }
        | queue::ScheduleError::Exists { .. } => translate::unknown(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The story: a stored schedule whose zone the machine lacks had no next instant, and its preview blamed its end.
    #[test]
    fn a_schedule_whose_zone_is_missing_says_so() {
        let cadence = |zone: &str| queue::Cadence::Cron { text: "0 2 * * *".into(), zone: zone.into() };
        let record = |zone: &str, next: Option<Timestamp>| {
            let schedule = queue::Schedule::new(cadence(zone)).into();
            let record = queue::ScheduleRecord::new(schedule, Seq(1), Timestamp::EPOCH, Timestamp::EPOCH);
            queue::ScheduleRecord { next, ..record }
        };
        let body = |record: queue::ScheduleRecord| {
            let (queue, name) =
                (QueueName::new("q").expect("a name"), ScheduleName::new("s").expect("a name"));
            schedule_body(&queue::ScheduleView { queue, name, record: record.into() })
        };
        let missing = "`Mars/Olympus` is no time zone";
        assert_eq!(body(record("Mars/Olympus", None)).fault.as_deref(), Some(missing));
        assert_eq!(body(record("Europe/Berlin", None)).fault, None, "its end has come");
        assert_eq!(body(record("Europe/Berlin", Some(Timestamp::EPOCH))).fault, None);
        let note = preview(&record("Mars/Olympus", None), "s", 3).note.expect("nothing comes");
        assert!(note.contains(missing) && !note.contains("`end`"), "{note}");
    }

    #[test]
    fn a_cursor_leads_back_to_its_name() {
        for name in ["a", "nightly & Ü/%", &"n".repeat(200)] {
            let name = ScheduleName::new(name).expect("a name");
            let text = cursor(&name);
            assert!(text.len() <= api::SchedulesQuery::CURSOR_BYTES_MAX);
            assert_eq!(read_cursor(&text), Some(name));
        }
        let place = (
            QueueName::new(&"q".repeat(200)).expect("a name"),
            ScheduleName::new(&"n".repeat(200)).expect("a name"),
        );
        let text = all_cursor(&place.0, &place.1);
        assert!(text.len() <= api::SchedulesQuery::CURSOR_BYTES_MAX);
        assert_eq!(read_all_cursor(&text), Some(place.clone()));
        for bad in ["", "-", "61", "61-", "-61", "61-6g", "2d-61", "61-61-61"] {
            assert_eq!(read_all_cursor(bad), None, "{bad}");
        }
        let at = Timestamp::MAX;
        for next in [None, Some(Timestamp::default()), Some(at)] {
            let place = NextPlace::new(next, place.0.clone(), place.1.clone());
            let text = place.cursor();
            assert!(text.len() <= api::SchedulesQuery::CURSOR_BYTES_MAX, "{}", text.len());
            assert_eq!((NextPlace::read(&text), read_all_cursor(&text)), (Some(place), None));
        }
        for bad in
            ["", "n", "n-", "n1", "61-61", "nx-61-61", "n-1-61-61", "n01-61-61", "n+1-61-61", "nA-61-61"]
        {
            assert_eq!(NextPlace::read(bad), None, "{bad}");
        }
        for bad in ["", "6", "6g", "zz", "ff", "00", "616"] {
            assert_eq!(read_cursor(bad), None, "{bad}");
        }
    }
}
