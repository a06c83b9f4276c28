//! The liveness phase: no more faults happen, and every task that is due has to be delivered in bounded time.

use tickwheel_engine::{Answer as ProductAnswer, CallId as ProductCall, Command, Input};

use super::{STEPS_MAX, Step, World};
use crate::oracle::{Answer, Call, Due, Limits, Mode, Pause, Verb, Violation};
use crate::words;

/// A time that is longer than any lease of the workload (ms).
const LONG_MS: u64 = 2 * 86_400_000;

impl World {
    pub(super) fn end_faults(&mut self) -> Step {
        self.hostile = false;
        self.renew_ownership();
        self.owners.forget();
        self.disk.forget_faults();
        self.disk.set_space(None);
        self.starved = false;
        self.clocks.calm();
        self.tell_time();
        self.switch.set(true);
        self.inputs.extend(std::mem::take(&mut self.wire).into_iter().map(|(_, input)| input));
        for _ in 0..2_000 {
            // The last fault may have hit the store already. In that case the store may report it only when its commit
            // is done.
            if self.has_failed() {
                self.crashed("killed, for its store has failed")?;
                self.switch.set(true);
            }
            self.end_waits(100);
            if self.nobody_waits() && self.server.as_ref().is_some_and(|server| server.is_idle()) {
                return self.learn_of_room();
            }
            self.turn()?;
        }
        Err(self.hang("calls are not answered"))
    }

    /// Checks that the server notices free space by itself, while no client puts anything. The server looks for space
    /// about once a second.
    fn learn_of_room(&mut self) -> Step {
        for _ in 0..20 {
            let Some(server) = &self.server else { return Ok(()) };
            if !server.asks_for_room() {
                return Ok(());
            }
            self.look_for_room();
            self.turn()?;
        }
        let what =
            "there is space again, and without a refused put the server does not learn of it".to_owned();
        Err(Violation { promise: "P8", what, story: Vec::new() })
    }

    /// Delivers and acks all tasks that fall due, until none is left. Time moves only to instants at which the server
    /// wants to be woken. So a task that would need another instant is late, and the check fails.
    pub(super) fn drain(&mut self) -> Step {
        self.let_go()?;
        self.all_jobs_are_kept()?;
        self.all_targets_are_kept()?;
        self.end_schedules()?;
        loop {
            self.count_step()?;
            if self.work_off_all()? {
                continue;
            }
            self.settle()?;
            match self.until_wake_ns() {
                // The remaining tasks fall due after the largest instant that the clocks of a run can show.
                Some(by_ns) if !self.clocks.may_pass(by_ns.saturating_add(LONG_MS * 1_000_000)) => {
                    self.list_all()?;
                    return self.oracle.finish();
                }
                Some(by_ns) => self.advance(by_ns),
                None => break,
            }
            self.turn()?;
        }
        self.advance(LONG_MS * 1_000_000);
        self.turn()?;
        if self.work_off_all()? {
            return Err(self.hang("something was to happen, and the server did not ask to be woken for it"));
        }
        self.all_made_came()?;
        self.sign_of_life()?;
        self.list_all()?;
        self.oracle.finish()
    }

    /// Ends every pause and most limits. Some queues keep or get limits of the tasks in flight: all of their tasks have
    /// to be delivered with these limits, too.
    fn let_go(&mut self) -> Step {
        for queue in self.workload.queues().to_vec() {
            self.insist(&queue, Verb::Pause(Pause::Off))?;
            if self.rng.chance(70) {
                self.insist(&queue, Verb::Settle(Limits::default()))?;
            } else if self.options.rate_percent > 0 {
                // The limits set here have no rate. No lease call waits now, so no rate wake-up would be planned.
                let limits = Limits { in_flight: Some(2), per_group: Some(1), ..Limits::default() };
                self.insist(&queue, Verb::Settle(limits))?;
            }
        }
        Ok(())
    }

    /// Makes a call that changes settings. The server knows that there is space again, so it must not refuse.
    fn insist(&mut self, queue: &str, verb: Verb) -> Step {
        if self.finish_call(queue, None, verb.clone())? == Answer::Laid {
            return Ok(());
        }
        let what = format!("{verb:?} is refused though there is space again");
        Err(Violation { promise: "P8", what, story: Vec::new() })
    }

    fn list_all(&mut self) -> Step {
        self.workload.queues().to_vec().iter().try_for_each(|queue| self.list(queue))
    }

    /// Runs turns until the server is idle. Only then it knows the next instant at which it has to be woken.
    pub(super) fn settle(&mut self) -> Step {
        for _ in 0..1_000 {
            if self.server.as_ref().is_some_and(|server| server.is_idle()) {
                return Ok(());
            }
            self.turn()?;
        }
        Err(self.hang("the server does not come to rest"))
    }

    pub(super) fn count_step(&mut self) -> Step {
        if self.trace.step() > STEPS_MAX {
            return Err(self.hang("the liveness phase does not end"));
        }
        Ok(())
    }

    /// Checks that the server accepts a put again, no matter which faults the disk has had.
    fn sign_of_life(&mut self) -> Step {
        let queue = self.workload.queues()[0].clone();
        let verb = Verb::Put {
            due: Some(Due::In(0)),
            payload: 2,
            mode: Mode::Upsert,
            if_match: None,
            revoke: false,
        };
        let answer = self.finish_call(&queue, Some("life".to_owned()), verb)?;
        if matches!(answer, Answer::Stored { .. }) {
            return self.work_off_all().map(|_| ());
        }
        let what = "a put is refused though there is space again".to_owned();
        Err(Violation { promise: "P8", what, story: Vec::new() })
    }

    fn work_off_all(&mut self) -> Result<bool, Violation> {
        let mut busy = false;
        for queue in self.workload.queues().to_vec() {
            busy |= self.work_off(&queue)?;
        }
        Ok(busy | self.work_off_rota()?)
    }

    /// Leases the ready tasks of a queue and acks them. Returns whether there were any.
    fn work_off(&mut self, queue: &str) -> Result<bool, Violation> {
        let verb = Verb::Lease { max: 1_000, lease_ms: 1_000 };
        let Answer::Delivered(found) = self.finish_call(queue, None, verb)? else {
            return Err(self.hang("a lease was not answered with deliveries"));
        };
        if found.is_empty() {
            return Ok(false);
        }
        let tokens = found.into_iter().map(|one| one.token).collect();
        self.finish_call(queue, None, Verb::Ack { tokens })?;
        Ok(true)
    }

    fn finish_call(&mut self, queue: &str, key: Option<String>, verb: Verb) -> Result<Answer, Violation> {
        let call = Call { queue: queue.to_owned(), key, verb };
        let id = self.open_call(call.clone());
        let command = words::command(&call);
        let answer = self.ask_calmly(ProductCall(id.0), command)?;
        self.open.remove(&id);
        let answer = words::answer(&call, answer);
        self.trace.event(format_args!("{id:?} is answered {answer:?}"));
        self.oracle.answered(id, answer.clone())?;
        Ok(answer)
    }

    /// Makes a call while no other call is open, and waits for its answer.
    pub(super) fn ask_calmly(
        &mut self,
        call: ProductCall,
        command: Command,
    ) -> Result<ProductAnswer, Violation> {
        self.inputs.push(Input::Call { call, command });
        for _ in 0..1_000 {
            let server = self.server.as_mut().expect("no faults any more");
            server.turn(self.clocks.now(), &mut self.inputs);
            server.take_answers(&mut self.answers);
            if let Some((answered, answer)) = self.answers.pop() {
                assert_eq!(answered, call, "no other call is open");
                return Ok(answer);
            }
        }
        Err(self.hang("a call is not answered"))
    }
}
