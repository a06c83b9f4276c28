//! Lists, read page by page, and forecasts, both while no other call is open.

use tickwheel_engine::{
    Answer as ProductAnswer, CallId as ProductCall, Command, Forecast, Grid, Input, Timestamp,
};
use tickwheel_queue::{List, ListLeases, State, TaskFilter};

use super::{Step, World};
use crate::oracle::{self, Answer, Buckets, Call, Verb, Violation};
use crate::words;

impl World {
    pub(super) fn list_one(&mut self) -> Step {
        let queues = self.workload.queues();
        let queue = queues[self.rng.index(queues.len())].clone();
        self.list(&queue)
    }

    /// Reads the whole list of a queue, either all states together or one state after the other.
    pub(super) fn list(&mut self, queue: &str) -> Step {
        assert!(self.open.is_empty(), "a list is taken alone");
        let id = self.open_call(Call { queue: queue.to_owned(), key: None, verb: Verb::List });
        let states: &[Option<State>] = match self.rng.below(3) {
            0 => &[Some(State::Ready), Some(State::Leased), Some(State::Scheduled)],
            _ => &[None],
        };
        let mut rows = Vec::new();
        for &state in states {
            let mut after = None;
            loop {
                let max = self.rng.pick(&[1, 2, 100]);
                let filter = TaskFilter { state, ..TaskFilter::default() };
                let list = List { max, after, filter, ..List::new(&words::queue(queue)) };
                let lives = self.coverage.crashes;
                let Some(answer) = self.call_through(Command::List(list))? else {
                    assert!(self.coverage.crashes > lives, "only a crash leaves a page unanswered");
                    return Ok(());
                };
                let ProductAnswer::List(Ok(page)) = answer else {
                    self.open.remove(&id);
                    return self.oracle.lost(id);
                };
                rows.extend(words::rows(&page));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        let leased = rows.iter().filter(|row| row.state == oracle::State::Leased);
        let leased = leased.map(|row| row.key.clone()).collect();
        if !self.leases_are(queue, leased)? {
            return Ok(());
        }
        self.coverage.lists += 1;
        self.open.remove(&id);
        self.trace.event(format_args!("{id:?} lists {rows:?}"));
        self.oracle.answered(id, Answer::Listed(rows))
    }

    /// Reads all leases of a queue, page by page, and compares their tasks with those that a list has just shown as leased. `false`: the server died.
    fn leases_are(&mut self, queue: &str, mut listed: Vec<String>) -> Result<bool, Violation> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let list = ListLeases { queue: Some(words::queue(queue)), worker: None, after, max: 2 };
            let Some(answer) = self.call_through(Command::Leases(list))? else { return Ok(false) };
            let ProductAnswer::Leases(Ok(page)) = answer else { return Ok(true) };
            found.extend(page.leases.iter().map(|lease| lease.key.as_str().to_owned()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        found.sort();
        listed.sort();
        if found == listed {
            return Ok(true);
        }
        let what = format!("the leases of {queue} are of {found:?}, and its list shows {listed:?} as leased");
        Err(Violation { promise: "P4", what, story: Vec::new() })
    }

    /// Asks for a forecast of one queue. If there is no planner, it may be of all queues; the oracle does not count the
    /// tasks of the planner.
    pub(super) fn forecast_one(&mut self) -> Step {
        let queues = self.workload.queues();
        let queue = queues[self.forecasts.index(queues.len())].clone();
        let of_all = self.options.schedules_percent == 0 && self.forecasts.chance(25);
        let queue = Some(queue).filter(|_| !of_all);
        let width_ms: i64 = self.forecasts.pick(&[1, 7, 1_000, 60_000, 3_600_000, 86_400_000]);
        let count = self.forecasts.pick(&[1, 10, 200]);
        let shape = match self.forecasts.chance(50) {
            true => Buckets::Even { width_ms, count },
            false => {
                Buckets::Ends((0..count.min(40)).map(|power| width_ms.saturating_mul(1 << power)).collect())
            }
        };
        let grid = match &shape {
            Buckets::Even { .. } => Grid::Even { width_ms: width_ms.unsigned_abs(), buckets: count as usize },
            Buckets::Ends(ends) => Grid::Ends(ends.iter().map(|end| end.unsigned_abs()).collect()),
        };
        let wall = self.clocks.now().wall.as_ms();
        let asked = self
            .forecasts
            .chance(30)
            .then(|| (wall + self.forecasts.pick(&[-5_000, -1, 0, 1, 777, 90_000])).max(0));
        let from = asked.and_then(Timestamp::from_ms);
        let forecast = Forecast { queue: queue.as_deref().map(words::queue), from, grid };
        let Some(ProductAnswer::Forecast(Ok(seen))) = self.call_through(Command::Forecast(forecast))? else {
            return Ok(());
        };
        if self.has_failed() {
            return Ok(());
        }
        self.coverage.forecasts += 1;
        self.trace.event(format_args!("a forecast of {queue:?} from {asked:?} by {shape:?} is {seen:?}"));
        self.oracle.forecast(queue.as_deref(), asked, seen.from.as_ms(), &shape, &seen.counts)
    }

    /// Makes one call of which the oracle is not told, and waits for its answer. `None`: the server died. While its ownership is in doubt a server
    /// answers nothing, so the doubt ends before.
    fn call_through(&mut self, command: Command) -> Result<Option<ProductAnswer>, Violation> {
        self.renew_ownership();
        self.next_call += 1;
        let call = ProductCall(self.next_call);
        self.inputs.push(Input::Call { call, command });
        self.switch.set(true);
        for turn in 0..1_000 {
            if turn == 500 && self.starved {
                // The list may wait for a commit. If other writes have taken even the reserve, the commit waits for
                // space.
                self.fill_disk();
            }
            let Some(server) = &mut self.server else { return Ok(None) };
            server.turn(self.clocks.now(), &mut self.inputs);
            server.take_answers(&mut self.answers);
            if self.disk.is_crashed() {
                self.answers.clear();
                self.crashed("died during a list")?;
                return Ok(None);
            }
            if let Some((answered, answer)) = self.answers.pop() {
                assert_eq!(answered, call, "no other call is open");
                return Ok(Some(answer));
            }
        }
        Err(self.hang("a list is not answered"))
    }
}
