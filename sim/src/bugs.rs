//! The bugs that the simulator has to find, and the promises on which each of them has to be found. Most bugs are patches in `sim/planted`, which
//! are put into a copy of the product. A bug of SQL is a statement that the simulated database carries out wrongly.

use crate::database::Wrong;

/// A planted bug, and the promises that it breaks.
#[derive(Copy, Clone, Debug)]
pub struct Bug {
    /// The name of the bug, and of its patch in `sim/planted`.
    pub name: &'static str,
    /// The promises that the bug breaks. If it is found on others, its effect is not understood.
    pub breaks: &'static [&'static str],
    /// Where the bug is looked for.
    pub sought: Sought,
}

/// The runs in which a bug is looked for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Sought {
    /// One server above a disk.
    OnDisk,
    /// Several nodes above one database.
    Cluster,
    /// Several nodes above one database, which carries this statement out wrongly. No patch is needed.
    Statement(Wrong),
}

const fn bug(name: &'static str, breaks: &'static [&'static str]) -> Bug {
    Bug { name, breaks, sought: Sought::OnDisk }
}

const fn statement(name: &'static str, wrong: Wrong, breaks: &'static [&'static str]) -> Bug {
    Bug { name, breaks, sought: Sought::Statement(wrong) }
}

/// The statements that seeds seldom show to be wrong: a test shows each by one order of events, see `sim/tests/it/postgres/fence.rs`.
pub const SELDOM_FOUND: [&str; 2] = ["no-fence", "end-without-beat"];

const LOST: &[&str] = &["P1", "P4", "P5", "P6", "inbox"];

/// The bugs of the statements.
pub const STATEMENTS: [Bug; 10] = [
    statement("no-fence", Wrong::NoFence, &["log"]),
    statement("no-number-before", Wrong::NoNumberBefore, &["log"]),
    // A commit that is lost was acknowledged: a put, a cancel, an ack, or a lease, as with a reply before the sync.
    statement("resolve-without-lock", Wrong::ResolveWithoutLock, LOST),
    statement("unknown-is-done", Wrong::UnknownIsDone, LOST),
    statement("rollback-is-done", Wrong::RollbackIsDone, LOST),
    statement("end-without-beat", Wrong::EndWithoutBeat, &["validity"]),
    statement("take-beside-others", Wrong::TakeBesideOthers, &["log"]),
    statement("small-step", Wrong::SmallStep, &["P6"]),
    statement("inbox-by-cursor", Wrong::InboxByCursor, &["inbox"]),
    statement("row-deleted-as-read", Wrong::RowDeletedAsRead, &["P1", "inbox"]),
];

/// All planted bugs that are patches.
///
/// A cancelled task that comes back breaks P5, an acked one P4; the seed decides which of the two comes first. A task
/// that is lost and put again looks like a second task (P6).
pub const BUGS: [Bug; 61] = [
    // In the store.
    bug("reply-before-sync", &["P1", "P4", "P5", "P6"]),
    bug("no-dir-sync", &["P1"]),
    bug("retry-failed-sync", &["P1", "P8"]),
    // The cut part had been acknowledged: a put, a cancel or an ack, as with a reply before the sync.
    bug("cut-acked-tail", &["P1", "P4", "P5", "P6", "P8"]),
    bug("accept-stale-frame", &["P1", "P6", "P8"]),
    bug("log-freed-before-checkpoint-durable", &["P1"]),
    bug("cancel-forgotten-at-recovery", &["P5"]),
    // A task that was moved is then in two places: the store notices and does not start.
    bug("tombstone-in-wrong-segment", &["P5", "P4", "P1"]),
    bug("segment-deleted-too-early", &["P1"]),
    bug("histogram-end-moves", &["counts"]),
    bug("replay-cancel-before-put", &["P5", "P6"]),
    bug("newest-log-not-missed", &["P8"]),
    bug("log-before-not-missed", &["P8"]),
    // In the wheel.
    bug("early-one-tick-at-cascade", &["P2"]),
    bug("u32-deadline-wrap", &["P2"]),
    // In the engine.
    bug("wall-clock-wait", &["P7"]),
    // A task that expires or fires too early does so by a clock that the start had no reason to believe.
    bug("hold-forgotten", &["P2", "P4", "P5", "limits"]),
    bug("hold-outlasts", &["P7", "P3"]),
    bug("lost-wake-up", &["P3"]),
    bug("cancel-after-grant", &["P5"]),
    // The old slot of the task may belong to another task when it is opened, and that task then fires early.
    bug("old-instant-fires", &["P5", "P2"]),
    bug("two-tasks-after-retry", &["P6"]),
    bug("ack-by-old-token", &["P4"]),
    bug("any-ack-of-done", &["P4"]),
    bug("attempt-not-counted", &["P4"]),
    bug("read-past-full", &["P8"]),
    bug("one-beyond-the-limit", &["limits"]),
    bug("pause-forgotten", &["limits"]),
    bug("drain-forgotten", &["limits"]),
    bug("backlog-forgotten", &["limits"]),
    bug("deleted-in-memory-only", &["limits", "P1", "P3", "P4"]),
    bug("parked-for-ever", &["P3", "P4"]),
    bug("instant-lost", &["P1"]),
    bug("instant-made-twice", &["P6", "P4"]),
    bug("turn-forgotten", &["P3"]),
    bug("turn-of-before-forgotten", &["limits"]),
    bug("zone-change-forgotten", &["P6", "P1"]),
    bug("zone-of-before-forgotten", &["P6", "P1"]),
    bug("pause-outlasts", &["P3", "P4"]),
    bug("rate-forgotten", &["limits"]),
    bug("gate-forgotten", &["P3"]),
    bug("start-forgotten", &["P2"]),
    bug("end-forgotten", &["limits"]),
    bug("expiry-forgotten", &["limits"]),
    bug("step-forgotten", &["P1", "P3"]),
    bug("row-forgotten", &["P1"]),
    bug("backoff-forgotten", &["P2", "P4"]),
    bug("forecast-of-the-past", &["counts"]),
    bug("death-parted-from-attempt", &["P4", "P5", "P6"]),
    bug("burial-forgotten", &["P4", "P5", "P6", "counts"]),
    bug("run-not-written", &["P1", "P3", "P6"]),
    bug("lease-ends-before-told", &["P4"]),
    bug("import-of-what-ended", &["P4", "P5"]),
    bug("import-beside-what-is-far", &["P1", "P4", "P5", "P6"]),
    bug("job-in-memory-only", &["P1"]),
    // At the seams. A former owner says what it remembers: a task as it was, or one that is gone.
    bug("answer-after-ownership", &["ownership", "P1", "P4", "P5", "P6"]),
    // Among several nodes. Each answer of a former owner breaks the validity before the ledger sees it, whatever it says. A process that goes on
    // without the database does not learn that its clock was set back, so it may also deliver a task too early (P2), which follows from the bug.
    bug("read-after-validity", &["validity"]).in_cluster(),
    // The numbers of changes are the versions of tasks: a version is then seen with two contents, or an id with two keys.
    bug("numbers-not-raised-after-loss", &["P6"]).in_cluster(),
    // A delay is over too early. A clock that is known too exactly is also one that seems to step.
    bug("delay-from-lower-end", &["P2"]).in_cluster(),
    bug("slow-answer-is-exact", &["P2"]).in_cluster(),
    // A task that is there is answered `not found`, or its key gets a second task. The database refuses the second one, so the store fails (P8).
    bug("new-key-not-known", &["P1", "P5", "P6", "P8"]).in_cluster(),
];

/// The number of seeds that have to fail before the verdict about the promises is given.
pub const FAILURES: usize = 20;

/// When a search ends before it has run all of its seeds.
#[derive(Copy, Clone, Debug)]
pub struct Enough {
    /// The number of seeds that have to fail.
    pub failures: usize,
    /// The bug that is looked for. A few seeds may all have failed on promises that only follow from it, so the search goes on until the verdict is
    /// good, or until [`FAILURES`] seeds have failed.
    pub bug: Option<Bug>,
}

impl Enough {
    /// Whether the search is over, with the promises that were found broken, one for each failed seed.
    pub fn is_met_by<'a>(&self, promises: impl Iterator<Item = &'a str>) -> bool {
        let promises: Vec<&str> = promises.collect();
        promises.len() >= self.failures
            && (promises.len() >= FAILURES || self.bug.is_none_or(|bug| bug.found_on(&promises).is_ok()))
    }
}

impl Bug {
    /// The same bug, looked for among several nodes.
    const fn in_cluster(self) -> Self {
        Self { sought: Sought::Cluster, ..self }
    }

    /// The verdict on the promises that were found broken, one for each failed seed: at least a third of them has to
    /// be promises that the bug breaks. The others may follow from the bug: a task that fires too early, for example,
    /// soon has a state that no world explains.
    ///
    /// # Errors
    /// A sentence: the bug was not found, or was found on other promises.
    pub fn found_on(&self, promises: &[&str]) -> Result<String, String> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for promise in promises {
            match counts.iter_mut().find(|(known, _)| known == promise) {
                Some((_, count)) => *count += 1,
                None => counts.push((promise, 1)),
            }
        }
        counts.sort_by_key(|&(promise, count)| (std::cmp::Reverse(count), promise.to_owned()));
        let said: Vec<String> =
            counts.iter().map(|(promise, count)| format!("{promise} {count} times")).collect();
        let said = said.join(", ");
        let named = promises.iter().filter(|promise| self.breaks.contains(promise)).count();
        match () {
            () if promises.is_empty() => Err("escaped: a hole in the simulator".to_owned()),
            () if 3 * named < promises.len() => {
                Err(format!("{said}, which is not {}", self.breaks.join(" or ")))
            }
            () => Ok(said),
        }
    }
}

/// The bug of this name.
///
/// # Errors
/// A sentence with the names of all bugs.
pub fn find(name: &str) -> Result<Bug, String> {
    let known = || BUGS.map(|bug| bug.name).join(", ");
    let found = BUGS.into_iter().chain(STATEMENTS).find(|bug| bug.name == name);
    found.ok_or_else(|| format!("`{name}` has no promise that it breaks; there are {}", known()))
}

/// Switches the bug on for the rest of the process. A statement is switched on by each run itself.
///
/// # Errors
/// A sentence: this build has no planted bugs.
pub fn plant(bug: Bug) -> Result<(), String> {
    if matches!(bug.sought, Sought::Statement(_)) {
        return Ok(());
    }
    Err(format!(
        "this build has no bug `{}`; `BUGS={} scripts/sim bugs` makes one that has it",
        bug.name, bug.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_is_found_on_the_promise_it_breaks() {
        let bug = find("u32-deadline-wrap").expect("it is one");
        assert_eq!(bug.found_on(&["P2", "P3", "P2"]), Ok("P2 2 times, P3 1 times".to_owned()));
        assert!(bug.found_on(&["P3", "P3", "P3", "P2"]).is_err(), "mostly on another one");
        assert!(bug.found_on(&[]).is_err(), "not found");
        assert!(find("u33").is_err());
    }

    #[test]
    fn a_search_goes_on_while_its_failures_only_follow_from_the_bug() {
        let bug = find("u32-deadline-wrap").ok();
        let enough = Enough { failures: 2, bug };
        assert!(!enough.is_met_by(["P2"].into_iter()), "too few");
        assert!(enough.is_met_by(["P3", "P2"].into_iter()));
        assert!(!enough.is_met_by(["P3", "P3"].into_iter()), "none on the promise that the bug breaks");
        assert!(enough.is_met_by(["P3", "P3", "P2"].into_iter()));
        assert!(enough.is_met_by(["P3"; FAILURES].into_iter()), "a verdict is given at last");
        assert!(Enough { failures: 1, bug: None }.is_met_by(["P3"].into_iter()));
    }
}
