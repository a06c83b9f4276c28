//! Schedules: each instant makes one task, at its time, and no instant is forgotten. There is a book for each name of
//! a schedule. The book is made from the answers to calls and from the delivered tasks. Like the rest of the oracle
//! it knows nothing of the product.
//!
//! One client makes all calls, one at a time. After a crash it first reads each schedule whose last call has an unknown outcome.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;

/// The rule for the instants of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Instants at this distance (ms), counted from the anchor of the schedule.
    Every(u64),
    /// Instants at this distance (ms), counted from the Unix epoch, as a cron expression gives them.
    Cron(u64),
    /// Instants at which the clock of a zone shows a multiple of this length (ms), at least [`OFFSET_MS_MAX`]. The rules of the zone may change.
    Zoned(u64),
    /// The next instant comes this time after the end of the previous task (ms).
    Delay(u64),
}

/// The clock of the zone of [`Beat::Zoned`] is ahead of UTC by less than this (ms). So each instant belongs to one local time, under all rules: the next
/// multiple of the length.
pub const OFFSET_MS_MAX: u64 = 60_000;

/// The rule for missed instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Missed instants are left out.
    Skip,
    /// One missed instant still makes its task; the others make none.
    Once,
    /// Each missed instant still makes its task.
    All,
}

/// The rule for instants that come while the previous task is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// Such instants are left out.
    Skip,
    /// Such instants wait until the previous task has ended.
    Queue,
    /// Such instants make their tasks.
    Allow,
}

/// A schedule, as a client puts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of the plan; different plans have different numbers. The payload of each task contains it.
    pub number: u64,
    /// The rule for its instants.
    pub beat: Beat,
    /// The schedule has no instant before this one (wall clock, ms).
    pub start: Option<i64>,
    /// The schedule has no instant after this one (wall clock, ms).
    pub end: Option<i64>,
    /// The largest number of tasks, if there is a limit.
    pub count: Option<u64>,
    /// A task is due at its instant or at most this time later (ms).
    pub jitter_ms: u64,
    /// The rule for missed instants.
    pub missed: Missed,
    /// The rule for instants that come while the previous task is live.
    pub early: Early,
}

/// A schedule, as an answer shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The number of its plan.
    pub number: u64,
    /// The version: it changes with each put of a different plan.
    pub version: u64,
    /// The instant from which the instants of [`Beat::Every`] are counted (wall clock, ms).
    pub anchor: i64,
    /// The next instant, if it is known.
    pub next: Option<i64>,
    /// Whether the last task is live and must end before the next one is made.
    pub running: bool,
    /// Number of tasks made so far.
    pub made: u64,
    /// Number of instants that wait for the end of the live task.
    pub waiting: usize,
}

/// A task of a schedule in a worker's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The instant that its key names.
    pub at: i64,
    /// The id of the task.
    pub id: u64,
    /// The due instant (wall clock, ms).
    pub due_at: i64,
    /// The number of the plan, from the payload.
    pub number: u64,
}

/// The knowledge about the schedules of one name.
#[derive(Clone, Debug, Default)]
struct Book {
    /// The plans that may be stored now; `None` stands for no schedule. If there is one entry, it is certainly stored.
    may_be: Vec<Option<Plan>>,
    /// The version of the stored schedule, if an answer has shown it.
    version: Option<u64>,
    /// The numbers of the plans that the stored schedule has had since it was created.
    numbers: BTreeSet<u64>,
    /// Every plan that a client put, by its number, and the first answer that showed it.
    plans: BTreeMap<u64, (Plan, Option<Shown>)>,
    /// Tasks that were delivered, by their instant.
    tasks: BTreeMap<i64, Task>,
    /// The least number of tasks that the stored schedule has made.
    made: u64,
    /// Whether there was another schedule of this name before. Its tasks may still be live, also such that no worker has seen.
    is_later: bool,
}

#[derive(Clone, Debug)]
struct Task {
    id: u64,
    number: u64,
    /// The lowest reading of the wall clock (ms) while a call to ack the task was open; `None` before such a call.
    ended: Option<i64>,
    /// Whether a call to ack the task was answered.
    over: bool,
}

/// The books of all names.
#[derive(Clone, Debug, Default)]
pub struct Rota {
    books: BTreeMap<String, Book>,
    /// The highest reading of the wall clock so far (ms).
    high: i64,
    /// By how much the clock of the zone is ahead of UTC (ms): now, and so far.
    ahead_ms: u64,
    offsets: BTreeSet<u64>,
}

type Verdict = Result<(), Violation>;

impl Rota {
    /// Takes a reading of the wall clock (ms).
    pub fn time(&mut self, wall_ms: i64) {
        self.high = self.high.max(wall_ms);
    }

    /// The rules of the zone are such now that its clock is ahead of UTC by this (ms).
    pub fn zone_is_ahead(&mut self, ahead_ms: u64) {
        self.ahead_ms = ahead_ms;
        self.offsets.insert(ahead_ms);
    }

    /// A look at a schedule was answered by a server that knows the present rules, and has decided by them.
    ///
    /// # Errors
    /// The next instant is none under these rules.
    pub fn is_by_these_rules(&self, name: &str, shown: &Shown) -> Verdict {
        let beat = self.books[name].plans[&shown.number].0.beat;
        match (beat, shown.next) {
            (Beat::Zoned(ms), Some(next)) if ahead_at(next, ms) != self.ahead_ms => {
                let what = format!("the zone is {} ms ahead, and {shown:?}", self.ahead_ms);
                Err(broken("P6", name, what))
            }
            _ => Ok(()),
        }
    }

    /// The stored plan. `Some(None)`: no schedule is stored. `None`: it is unknown which plan is stored.
    #[must_use]
    pub fn stands(&self, name: &str) -> Option<Option<Plan>> {
        match self.books.get(name).map(|book| &book.may_be[..]) {
            None | Some([]) => Some(None),
            Some([only]) => Some(*only),
            Some(_) => None,
        }
    }

    /// A client puts the plan `wanted`, or deletes the schedule (`None`). Until the answer, the old or the new plan may be stored.
    pub fn called(&mut self, name: &str, wanted: Option<Plan>) {
        let book = self.books.entry(name.to_owned()).or_default();
        if book.may_be.is_empty() {
            book.may_be.push(None);
        }
        book.may_be.push(wanted);
        if let Some(plan) = wanted {
            book.plans.entry(plan.number).or_insert((plan, None));
        }
    }

    /// The call was refused and has changed nothing.
    pub fn refused(&mut self, name: &str) {
        self.books.get_mut(name).expect("it was called").may_be.pop();
    }

    /// A put was accepted.
    ///
    /// # Errors
    /// The answer shows another plan, has a wrong version, or is wrong about whether there was a schedule before.
    pub fn stored(&mut self, name: &str, created: bool, shown: &Shown) -> Verdict {
        let book = self.books.get_mut(name).expect("it was called");
        let wanted = book.may_be.pop().flatten().expect("a put wants something");
        let before = book.may_be.pop().expect("something stood");
        if before.is_none() != created || shown.number != wanted.number {
            return Err(broken(
                "P6",
                name,
                format!("{before:?}, then {wanted:?} was answered {shown:?}, created {created}"),
            ));
        }
        if created {
            book.begin();
        }
        // A put of the plan that is already stored keeps the version.
        let same = before.is_some_and(|before| before.number == wanted.number);
        if same != (book.version == Some(shown.version)) && book.version.is_some() {
            return Err(broken("P6", name, format!("version {:?} is now {shown:?}", book.version)));
        }
        book.learn(wanted, shown);
        Ok(())
    }

    /// A delete was answered. `was_there`: the answer says that there was a schedule.
    ///
    /// # Errors
    /// `was_there` is wrong.
    pub fn deleted(&mut self, name: &str, was_there: bool) -> Verdict {
        let book = self.books.get_mut(name).expect("it was called");
        book.may_be.pop();
        let before = book.may_be.pop().expect("something stood");
        if before.is_some() != was_there {
            return Err(broken("P1", name, format!("{before:?} stood, and it was there: {was_there}")));
        }
        book.begin();
        book.may_be.push(None);
        Ok(())
    }

    /// A read of a schedule was answered with `shown`; `None`: there is no schedule.
    ///
    /// # Errors
    /// The shown schedule is none of those that may be stored, has another version than before, or counts fewer tasks
    /// than were shown or delivered before.
    pub fn seen(&mut self, name: &str, shown: Option<&Shown>) -> Verdict {
        let book = self.books.entry(name.to_owned()).or_default();
        if book.may_be.is_empty() {
            book.may_be.push(None);
        }
        let number = shown.map(|shown| shown.number);
        let Some(found) = book.may_be.iter().find(|one| one.map(|plan| plan.number) == number).copied()
        else {
            return Err(broken("P1", name, format!("{:?} may stand, and {shown:?} does", book.may_be)));
        };
        let in_doubt = book.may_be.len() > 1;
        if in_doubt && (found.is_none() || book.may_be[0].is_none()) {
            book.begin();
        }
        match (found, shown) {
            (Some(plan), Some(shown)) => {
                if !in_doubt && book.version.is_some_and(|version| version != shown.version) {
                    return Err(broken("P6", name, format!("version {:?} is now {shown:?}", book.version)));
                }
                book.learn(plan, shown);
                let there = book.tasks_of_this().count() as u64;
                if shown.made < book.made.max(there) {
                    let what = format!("{} tasks were made, {there} delivered, and {shown:?}", book.made);
                    return Err(broken("P1", name, what));
                }
                book.made = shown.made;
            }
            _ => book.may_be = vec![None],
        }
        Ok(())
    }

    /// A task was delivered.
    ///
    /// # Errors
    /// The task breaks a rule: its plan has no such instant; it came too early; it is due too late after its instant;
    /// it is the second task of one instant; there are more tasks than the plan allows; or an earlier task of its name had not
    /// ended, whichever plan made it.
    pub fn delivered(&mut self, name: &str, made: &Made) -> Verdict {
        let high = self.high;
        let book = self.books.entry(name.to_owned()).or_default();
        let bad = |promise, what: &str| Err(broken(promise, name, format!("{what}: {made:?}")));
        let Some(&(plan, anchor)) = book.plans.get(&made.number) else {
            return bad("P6", "of a plan that nobody put");
        };
        if made.due_at > high || made.due_at < made.at {
            return bad("P2", "before its time");
        }
        if plan.start.is_some_and(|start| made.at < start) {
            return bad("P2", "before the start of its schedule");
        }
        if plan.end.is_some_and(|end| made.at > end) {
            return bad("limits", "after the end of its schedule");
        }
        if made.due_at - made.at > i64::try_from(plan.jitter_ms).unwrap_or(i64::MAX) {
            return bad("P3", "later than its jitter");
        }
        let on_beat = match (plan.beat, anchor) {
            (Beat::Every(ms), Some(Shown { anchor, .. })) => {
                made.at >= anchor && (made.at - anchor).unsigned_abs().is_multiple_of(ms)
            }
            (Beat::Cron(ms), _) => made.at.unsigned_abs().is_multiple_of(ms),
            (Beat::Zoned(ms), _) => self.offsets.contains(&ahead_at(made.at, ms)),
            (Beat::Every(_), None) | (Beat::Delay(_), _) => true,
        };
        if !on_beat {
            return bad("P6", "of no instant of its plan");
        }
        match book.tasks.get(&made.at) {
            // A deleted schedule forgets which tasks it made. If the clock was set back, a new schedule of this name
            // may make a task of the same instant.
            Some(task)
                if task.id != made.id && (book.numbers.contains(&task.number) || task.ended.is_none()) =>
            {
                return bad("P6", "a second task of one instant");
            }
            Some(task) if task.id != made.id => {}
            Some(task) if task.over => return bad("P4", "it was acked"),
            Some(_) => return Ok(()),
            None => {}
        }
        if let Beat::Zoned(ms) = plan.beat {
            let of_plan = book.tasks.iter().filter(|(_, task)| task.number == made.number);
            let mut times = of_plan.map(|(at, _)| local(*at, ms));
            if times.any(|time| time == local(made.at, ms)) {
                return bad("P6", "a second task of one local time");
            }
        }
        let of_plan = book.tasks.values().filter(|task| task.number == made.number);
        let takes_turns = plan.early != Early::Allow || matches!(plan.beat, Beat::Delay(_));
        // Ids rise, so a task with a lower id was there when this one was made.
        if takes_turns && book.tasks.values().any(|task| task.id < made.id && task.ended.is_none()) {
            return bad("limits", "a task before has not ended");
        }
        if let Beat::Delay(ms) = plan.beat
            && let Some(ended) = of_plan.clone().max_by_key(|task| task.id).and_then(|task| task.ended)
            && made.at < ended.saturating_add_unsigned(ms)
        {
            return bad("P2", "before its delay was over");
        }
        if plan.count.is_some_and(|count| of_plan.count() as u64 >= count) {
            return bad("limits", "more than it counts");
        }
        let task = Task { id: made.id, number: made.number, ended: None, over: false };
        book.tasks.insert(made.at, task);
        Ok(())
    }

    /// A call to ack the task of the instant `at` is open while the wall clock shows `wall_ms`.
    pub fn acks(&mut self, name: &str, at: i64, wall_ms: i64) {
        if let Some(task) = self.books.get_mut(name).and_then(|book| book.tasks.get_mut(&at)) {
            task.ended = Some(task.ended.map_or(wall_ms, |ended| ended.min(wall_ms)));
        }
    }

    /// The ack of the task of the instant `at` was answered: the task is done.
    pub fn acked(&mut self, name: &str, at: i64) {
        if let Some(task) = self.books.get_mut(name).and_then(|book| book.tasks.get_mut(&at)) {
            task.over = true;
        }
    }

    /// Checks the schedule `shown`, at this reading of the wall clock (ms). All due tasks were delivered before.
    ///
    /// # Errors
    /// The schedule has no next instant, or one outside of its start and end.
    pub fn caught_up(&self, name: &str, shown: &Shown, wall_ms: i64) -> Verdict {
        let plan = self.books[name].plans[&shown.number].0;
        let is_over = plan.count.is_some_and(|count| shown.made + shown.waiting as u64 >= count);
        let step = match plan.beat {
            Beat::Every(step) | Beat::Cron(step) | Beat::Delay(step) => step,
            Beat::Zoned(step) => step + OFFSET_MS_MAX,
        };
        let last = plan.end.unwrap_or(i64::MAX);
        let ends = matches!(plan.beat, Beat::Cron(_) | Beat::Zoned(_)) && wall_ms > LAST_CRON_MS
            // The server may have ended the schedule at a higher reading, before the clock was set back. A schedule
            // that has ended stays so.
            || last <= self.high.max(plan.start.unwrap_or(i64::MIN)).saturating_add_unsigned(step);
        // If all tasks that were made are done, no live task delays the next one.
        let over = self.books[name].tasks_of_this().filter(|(_, task)| task.over).count() as u64;
        if shown.running && over == shown.made && !self.books[name].is_later {
            return Err(broken("P3", name, format!("all {over} tasks are done, and still {shown:?}")));
        }
        match shown.next {
            // While a task is live, the instant that waits for its end is not shown as the next one.
            None if shown.running => Ok(()),
            Some(next) if next > last || plan.start.is_some_and(|start| next < start) => {
                Err(broken("limits", name, format!("outside of its start and end: {plan:?}, {shown:?}")))
            }
            Some(next) if next <= wall_ms => {
                Err(broken("P3", name, format!("it is {wall_ms}, and still {shown:?}")))
            }
            None if !is_over && !ends => {
                Err(broken("P3", name, format!("nothing is next: {plan:?}, {shown:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Checks a deleted schedule that had made `made` tasks. All of them should have been delivered.
    ///
    /// # Errors
    /// The number of delivered tasks is wrong, or instants between them are missing.
    pub fn complete(&self, name: &str, made: u64) -> Verdict {
        let book = &self.books[name];
        let there: Vec<(i64, u64)> = book.tasks_of_this().map(|(at, task)| (*at, task.number)).collect();
        if there.len() as u64 != made {
            return Err(broken(
                "P1",
                name,
                format!("{made} tasks were made, and {} delivered: {there:?}", there.len()),
            ));
        }
        for (number, (plan, first)) in book.plans.iter().filter(|(number, _)| book.numbers.contains(number)) {
            let step = match plan.beat {
                Beat::Every(ms) | Beat::Cron(ms) | Beat::Zoned(ms)
                    if plan.missed == Missed::All && plan.early == Early::Allow =>
                {
                    ms
                }
                _ => continue,
            };
            // Instants before the first one that this plan was shown with are left out. They belong to an earlier plan,
            // or they waited for the end of a task.
            let time_of = |at: i64| match plan.beat {
                Beat::Zoned(ms) => local(at, ms),
                _ => at,
            };
            let first = first.and_then(|first| first.next).map_or(i64::MAX, time_of);
            let times = there.iter().filter(|(_, of)| of == number).map(|(at, _)| time_of(*at));
            let of_plan: Vec<i64> = times.filter(|time| *time >= first).collect();
            if let Some(gap) =
                of_plan.windows(2).find(|pair| pair[0].saturating_add_unsigned(step) != pair[1])
            {
                return Err(broken("P1", name, format!("nothing was made between {gap:?} of {plan:?}")));
            }
        }
        Ok(())
    }
}

/// The last instant of cron expressions that the server computes, about the year 5000 (ms since the Unix epoch).
const LAST_CRON_MS: i64 = 95_600_000_000_000;

impl Book {
    /// Forgets what belongs to the stored schedule: another schedule of this name begins, or there is none any more.
    fn begin(&mut self) {
        self.is_later |= !self.numbers.is_empty();
        self.numbers.clear();
        (self.version, self.made) = (None, 0);
    }

    fn learn(&mut self, plan: Plan, shown: &Shown) {
        self.may_be = vec![Some(plan)];
        self.version = Some(shown.version);
        self.numbers.insert(plan.number);
        self.plans.entry(plan.number).or_insert((plan, None)).1.get_or_insert(*shown);
    }

    fn tasks_of_this(&self) -> impl Iterator<Item = (&i64, &Task)> {
        self.tasks.iter().filter(|(_, task)| self.numbers.contains(&task.number))
    }
}

/// By how much the clock of the zone is ahead of UTC if it shows a multiple of `ms` at this instant (ms).
fn ahead_at(at: i64, ms: u64) -> u64 {
    at.wrapping_neg().rem_euclid(ms.cast_signed()).unsigned_abs()
}

/// The local time of an instant of [`Beat::Zoned`], as the instant at which a clock in UTC shows it (ms).
fn local(at: i64, ms: u64) -> i64 {
    at.saturating_add_unsigned(ahead_at(at, ms))
}

fn broken(promise: &'static str, name: &str, what: String) -> Violation {
    Violation { promise, what: format!("schedule {name}: {what}"), story: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        number: 7,
        beat: Beat::Every(1_000),
        start: None,
        end: None,
        count: None,
        jitter_ms: 0,
        missed: Missed::All,
        early: Early::Allow,
    };

    fn shown(made: u64, next: i64) -> Shown {
        Shown { number: 7, version: 1, anchor: 1_000, next: Some(next), running: false, made, waiting: 0 }
    }

    fn made(at: i64, id: u64) -> Made {
        Made { at, id, due_at: at, number: 7 }
    }

    fn begun(plan: Plan) -> Rota {
        let mut rota = Rota::default();
        rota.called("s", Some(plan));
        rota.stored("s", true, &shown(0, 1_000)).expect("taken");
        rota.time(10_000);
        rota
    }

    fn promise(verdict: Verdict) -> &'static str {
        verdict.expect_err("broken").promise
    }

    #[test]
    fn what_is_right_passes() {
        let mut rota = begun(PLAN);
        (1..=3).for_each(|n| rota.delivered("s", &made(n * 1_000, 5)).expect("right"));
        rota.delivered("s", &made(3_000, 5)).expect("again: nobody acked it");
        rota.seen("s", Some(&shown(3, 4_000))).expect("right");
        rota.caught_up("s", &shown(3, 4_000), 3_999).expect("right");
        rota.complete("s", 3).expect("right");
    }

    #[test]
    fn what_is_wrong_is_found() {
        let mut rota = begun(PLAN);
        assert_eq!(promise(rota.delivered("s", &made(11_000, 5))), "P2");
        assert_eq!(promise(rota.delivered("s", &made(1_500, 5))), "P6");
        rota.delivered("s", &made(1_000, 5)).expect("right");
        assert_eq!(promise(rota.delivered("s", &made(1_000, 6))), "P6");
        rota.acks("s", 1_000, 1_100);
        rota.acked("s", 1_000);
        assert_eq!(promise(rota.delivered("s", &made(1_000, 5))), "P4");
        assert_eq!(promise(rota.seen("s", Some(&shown(0, 2_000)))), "P1");
        assert_eq!(promise(rota.seen("s", None)), "P1");
        assert_eq!(promise(rota.caught_up("s", &shown(1, 2_000), 2_000)), "P3");
        rota.delivered("s", &made(3_000, 7)).expect("right as far as is known");
        assert_eq!(promise(rota.complete("s", 2)), "P1");
        assert_eq!(promise(rota.complete("s", 3)), "P1");
    }

    #[test]
    fn another_schedule_may_meet_an_instant_again_once_its_task_is_over() {
        let mut rota = begun(PLAN);
        rota.delivered("s", &made(1_000, 5)).expect("right");
        rota.called("s", None);
        rota.deleted("s", true).expect("it was there");
        rota.called("s", Some(Plan { number: 8, ..PLAN }));
        rota.stored("s", true, &Shown { number: 8, version: 2, ..shown(0, 1_000) }).expect("taken");
        let again = Made { number: 8, ..made(1_000, 6) };
        assert_eq!(promise(rota.clone().delivered("s", &again)), "P6", "the first has the key");
        rota.acks("s", 1_000, 1_100);
        rota.delivered("s", &again).expect("the ack may have been taken");
        assert_eq!(promise(rota.delivered("s", &Made { number: 8, ..made(1_000, 7) })), "P6");
    }

    #[test]
    fn nothing_comes_before_the_start_or_behind_the_end() {
        let rota = begun(Plan { start: Some(2_000), end: Some(4_000), ..PLAN });
        assert_eq!(promise(rota.clone().delivered("s", &made(1_000, 5))), "P2");
        assert_eq!(promise(rota.clone().delivered("s", &made(5_000, 5))), "limits");
        for at in [2_000, 4_000] {
            rota.clone().delivered("s", &made(at, 5)).expect("both are instants of it");
        }
        for next in [1_000, 5_000] {
            assert_eq!(
                promise(rota.caught_up("s", &shown(1, next), 500)),
                "limits",
                "{next} is shown as next"
            );
        }
        let over = Shown { next: None, ..shown(3, 0) };
        rota.caught_up("s", &over, 4_500).expect("its end is over");
        let rota = begun(Plan { end: Some(90_000), ..PLAN });
        assert_eq!(promise(rota.caught_up("s", &over, 4_500)), "P3", "there is more to come");
    }

    #[test]
    fn no_local_time_comes_twice_and_none_is_lost_when_rules_change() {
        let begun = || {
            let mut rota = begun(Plan { beat: Beat::Zoned(60_000), ..PLAN });
            rota.time(1_000_000);
            [0, 20_000].into_iter().for_each(|ahead_ms| rota.zone_is_ahead(ahead_ms));
            rota.delivered("s", &made(60_000, 5)).expect("right");
            rota
        };
        let mut rota = begun();
        assert_eq!(promise(rota.delivered("s", &made(40_000, 6))), "P6", "00:01:00 once more");
        assert_eq!(promise(rota.delivered("s", &made(90_000, 6))), "P6", "under no rules");
        rota.delivered("s", &made(100_000, 6)).expect("00:02:00 under the new rules");
        rota.complete("s", 2).expect("right");
        let mut rota = begun();
        rota.delivered("s", &made(160_000, 6)).expect("right as far as is known");
        assert_eq!(promise(rota.complete("s", 2)), "P1", "00:02:00 is lost");
        assert_eq!(promise(rota.is_by_these_rules("s", &shown(2, 180_000))), "P6", "by the rules of before");
        rota.is_by_these_rules("s", &shown(2, 220_000)).expect("right");
    }

    #[test]
    fn turns_are_taken() {
        let mut rota = begun(Plan { early: Early::Skip, ..PLAN });
        rota.delivered("s", &made(1_000, 5)).expect("right");
        assert_eq!(promise(rota.delivered("s", &made(2_000, 6))), "limits");
        rota.acks("s", 1_000, 1_100);
        rota.delivered("s", &made(2_000, 6)).expect("the ack may have been taken");
        let mut rota = begun(Plan { beat: Beat::Delay(500), ..PLAN });
        rota.delivered("s", &made(1_000, 5)).expect("right");
        rota.acks("s", 1_000, 1_100);
        assert_eq!(promise(rota.delivered("s", &made(1_500, 6))), "P2");
    }

    #[test]
    fn a_doubt_is_settled_by_a_look() {
        let mut rota = begun(PLAN);
        rota.called("s", None);
        assert_eq!(rota.stands("s"), None);
        rota.seen("s", None).expect("it may be gone");
        assert_eq!(rota.stands("s"), Some(None));
        assert_eq!(promise(rota.seen("s", Some(&shown(0, 1_000)))), "P1");
    }
}
