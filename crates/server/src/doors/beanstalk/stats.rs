//! `stats`, `stats-tube`, `stats-job` and `list-tubes`.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::system::uname;
use tickwheel_api::beanstalk::{Reply, Tube, YamlMap};
use tickwheel_queue::{
    Durability, LEASE_MS_DEFAULT, LOG_FILE_BYTES_DEFAULT, ListQueues, State, TaskView, Timestamp, WhichQueues,
};

use super::command_error::CommandError;
use super::config::DEFAULT;
use super::door::BeanstalkDoor;
use super::inspect;
use crate::access::tokens::Right;
use crate::base::aside::aside;
use crate::base::queue_pages::Sums;
use crate::telemetry::metrics::process::Stat;

/// A text for the client.
type Text = Result<Vec<u8>, CommandError>;

/// The names of all tubes.
pub(super) async fn tubes(door: &BeanstalkDoor) -> Text {
    // Only tubes in use are listed: an emptied tube does not exist any more, as in beanstalkd, though HTTP still
    // lists its queue.
    let mut tubes = Vec::new();
    let mut pages = door.caller.queues(all_tubes(door))?;
    while let Some(page) = pages.next().await? {
        tubes.extend(page.iter().filter_map(|counts| door.tube_of(&counts.queue)));
    }
    // There may be 100,000 tubes, so the text is written on another thread.
    let text = aside(move || inspect::names(tubes.iter())).await;
    Ok(text.map_err(|_| Reply::InternalError)?)
}

/// The query for the queues that are tubes of this door.
fn all_tubes(door: &BeanstalkDoor) -> ListQueues {
    let prefix = door.namespace.clone().unwrap_or_else(|| "".into());
    ListQueues { which: WhichQueues::InUse, prefix, ..ListQueues::default() }
}

/// The statistics of one tube.
pub(super) async fn tube(door: &BeanstalkDoor, tube: &Tube) -> Text {
    let queue = door.queue_of(tube).ok_or(Reply::NotFound)?;
    let view = door.caller.queue(Right::Read, &queue)?.await?;
    if !view.exists && tube.as_str() != DEFAULT {
        return Err(Reply::NotFound.into());
    }
    let users = door.tubes.users(&queue);
    // The door itself uses the default tube, so that the tube exists. This use is not counted.
    let own = u64::from(tube.as_str() == DEFAULT);
    let now = door.caller.now();
    let left_s = view.paused_until.map(|until| match until {
        // The pause lasts until a call ends it.
        Timestamp::MAX => u64::from(u32::MAX),
        until => left_s(now, until),
    });
    let pause_s =
        left_s.map(|left_s| door.tubes.pause(&queue).map_or(left_s, |pause_s| left_s.max(pause_s.into())));
    let counts = &view.counts;
    let map = YamlMap::default()
        .tube("name", tube)
        .bare("current-jobs-urgent", counts.urgent)
        .bare("current-jobs-ready", counts.ready)
        .bare("current-jobs-reserved", counts.leased)
        .bare("current-jobs-delayed", counts.scheduled)
        .bare("current-jobs-buried", counts.dead)
        .bare("total-jobs", counts.totals.added)
        .bare("current-using", users.using.saturating_sub(own))
        .bare("current-watching", users.watching)
        .bare("current-waiting", users.waiting)
        .bare("cmd-delete", counts.totals.ended)
        .bare("cmd-pause-tube", counts.totals.pauses)
        .bare("pause", pause_s.unwrap_or(0))
        .bare("pause-time-left", left_s.unwrap_or(0));
    Ok(map.text())
}

/// The statistics of a job.
pub(super) async fn job(door: &BeanstalkDoor, task: TaskView) -> Text {
    let ttr_ms = match task.extra.ttr_ms {
        Some(ttr_ms) => ttr_ms,
        // The producer gave no ttr, so that of the queue applies.
        None => {
            let view = door.caller.queue(Right::Read, &task.queue)?.await?;
            view.settings.default_lease_ms.unwrap_or(LEASE_MS_DEFAULT)
        }
    };
    let now = door.caller.now();
    let (state, until) = match task.state {
        State::Ready => ("ready", None),
        State::Scheduled => ("delayed", Some(task.due_at)),
        State::Leased => ("reserved", task.leased_until),
        State::Dead => ("buried", None),
    };
    let tally = task.extra.tally;
    let delay_ms = tally.delay_ms.unwrap_or_else(|| task.due_at.ms_since(task.put_at));
    let leases = u64::from(tally.leases) + u64::from(task.state == State::Leased);
    let tube = door.tube_of(&task.queue).unwrap_or_else(|| Tube::new(DEFAULT.as_bytes()).expect("a name"));
    let map = YamlMap::default()
        .bare("id", task.id)
        .tube("tube", &tube)
        .bare("state", state)
        .bare("pri", task.priority)
        .bare("age", now.ms_since(task.put_at) / 1_000)
        .bare("delay", delay_ms.saturating_add(500) / 1_000)
        .bare("ttr", ttr_ms.div_ceil(1_000))
        .bare("time-left", until.map_or(0, |until| left_s(now, until)))
        .bare("file", 0)
        .bare("reserves", leases)
        .bare("timeouts", tally.expiries)
        .bare("releases", tally.nacks)
        .bare("buries", tally.burials)
        .bare("kicks", tally.redrives);
    Ok(map.text())
}

/// The whole seconds until `until`, as beanstalkd counts them. Its instants are not rounded up to the millisecond. So
/// right after a reserve with a ttr of 10 it says 9.
fn left_s(now: Timestamp, until: Timestamp) -> u64 {
    until.ms_since(now).saturating_sub(2) / 1_000
}

/// The statistics of the server, limited to the tubes of this door.
pub(super) async fn server(door: &BeanstalkDoor) -> Text {
    // The statistics of the last page are used. A tube that ended between two pages counts twice in this answer.
    let mut pages = door.caller.queues(all_tubes(door))?;
    let (mut tubes, mut stats) = (Sums::default(), Box::default());
    while let Some((page, figures)) = pages.next_with_stats().await? {
        let own = page.iter().filter(|counts| door.tube_of(&counts.queue).is_some());
        own.for_each(|counts| tubes.add(counts));
        stats = figures;
    }
    let mut map = YamlMap::default()
        .bare("current-jobs-urgent", tubes.urgent)
        .bare("current-jobs-ready", tubes.ready)
        .bare("current-jobs-reserved", tubes.leased)
        .bare("current-jobs-delayed", tubes.scheduled)
        .bare("current-jobs-buried", tubes.dead);
    let counters = &door.counters;
    for (verb, count) in counters.verbs() {
        map = map.bare(&format!("cmd-{verb}"), count);
    }
    let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
    // A server that keeps its tasks only in memory has no log. The log has the commits of all namespaces, so a door
    // with a namespace does not show its figures.
    let durable = door.namespace.is_none() && door.caller.health().durability != Durability::Memory;
    let commits = if durable { door.caller.commit_seconds().total() } else { 0 };
    let uname = uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let (user_us, system_us) = Stat::of_process().map_or((0, 0), |stat| (stat.user_us, stat.system_us));
    // With a namespace, the answer has the sums of its tubes and of its removed tubes.
    let (timeouts, jobs) = match door.namespace {
        Some(_) => {
            let gone = door.totals_of_gone(&stats);
            (tubes.totals.expiries + gone.expiries, tubes.totals.added + gone.added)
        }
        None => (stats.expired_total, stats.added_total),
    };
    let map = map
        .bare("job-timeouts", timeouts)
        .bare("total-jobs", jobs)
        .bare("max-job-size", door.job_bytes_max)
        .bare("current-tubes", tubes.queues)
        .bare("current-connections", now(&counters.connections))
        .bare("current-producers", now(&counters.producers))
        .bare("current-workers", now(&counters.workers))
        .bare("current-waiting", now(&counters.waiting))
        .bare("total-connections", now(&counters.connections_total))
        .bare("pid", std::process::id())
        .quoted("version", concat!("1.12.0+tickwheel.", env!("CARGO_PKG_VERSION")))
        .seconds("rusage-utime", user_us)
        .seconds("rusage-stime", system_us)
        .bare("uptime", door.begun.elapsed().as_secs())
        .bare("binlog-oldest-index", 0)
        .bare("binlog-current-index", 0)
        .bare("binlog-records-migrated", 0)
        .bare("binlog-records-written", commits)
        .bare("binlog-max-size", if durable { LOG_FILE_BYTES_DEFAULT } else { 0 })
        .bare("draining", door.is_draining())
        .quoted("id", &door.id)
        .quoted("hostname", &text(uname.nodename()))
        .quoted("os", &text(uname.version()))
        .quoted("platform", &text(uname.machine()));
    Ok(map.text())
}
