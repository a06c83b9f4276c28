//! When the next backup is due.

use std::time::Duration;

use tickwheel_queue::Timestamp;
use tickwheel_queue::backup::system_now;

use super::keeper::Backups;

/// The interval at which the clock is read again. A user may set the clock at any time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The wait after a failed backup until the next attempt. If the interval of backups is shorter, that interval is
/// used.
const TRY_AGAIN: Duration = Duration::from_secs(600);

/// Begins a backup each time one is due, for ever. The first is due `every` after the newest one in the directory, or
/// at once if there is none. After a failed attempt the next one is due sooner.
pub(super) async fn keep_up(backups: &Backups, every: Duration) {
    let mut last = aside(backups, Backups::newest_begun).await.flatten();
    loop {
        let now = system_now();
        let due = due_after(last, every, now);
        let due = backups
            .failed_at()
            .map_or(due, |failed| due.min(due_after(Some(failed), every.min(TRY_AGAIN), now)));
        if now < due {
            let wait = Duration::from_millis(due.ms_since(now));
            tokio::time::sleep(wait.min(LOOK_AGAIN)).await;
            continue;
        }
        last = Some(slot(due, every, now));
        aside(backups, Backups::begin_by_schedule).await;
    }
}

/// Reads the directory on a thread that may block; `None`: the server's threads end.
async fn aside<T: Send + 'static>(backups: &Backups, work: fn(&Backups) -> T) -> Option<T> {
    let backups = backups.clone();
    tokio::task::spawn_blocking(move || work(&backups)).await.ok()
}

/// When the next backup is due.
fn due_after(last: Option<Timestamp>, every: Duration, now: Timestamp) -> Timestamp {
    let Some(last) = last else { return now };
    // The clock was set back, so the time of the last backup may be years ahead.
    if last > now.saturating_plus_ms(ms(LOOK_AGAIN)) {
        return now;
    }
    last.saturating_plus_ms(ms(every))
}

/// The instant from which the next interval is counted. If the backup is on time, this is the instant at which it was
/// due, so that the times do not drift.
fn slot(due: Timestamp, every: Duration, now: Timestamp) -> Timestamp {
    if now.ms_since(due) < ms(every) { due } else { now }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_goes_on_from_the_last_backup() {
        let at = |s: i64| Timestamp::from_ms(s * 1_000).expect("after 1970");
        let hour = Duration::from_secs(3_600);
        let now = at(100_000);
        assert_eq!(due_after(None, hour, now), now, "there is none");
        assert_eq!(
            due_after(Some(at(99_000)), hour, now),
            at(102_600),
            "after a restart it waits for its time"
        );
        assert_eq!(due_after(Some(at(90_000)), hour, now), at(93_600), "it is late, and made at once");
        assert_eq!(due_after(Some(at(900_000)), hour, now), now, "the clock was set back");
        assert_eq!(slot(at(99_999), hour, now), at(99_999), "a second late is no reason to move");
        assert_eq!(slot(at(93_600), hour, now), now, "what was missed is not made up for");
    }
}
