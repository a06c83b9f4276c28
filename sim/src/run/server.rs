//! The server's turns: its inputs, its answers, and whether it may sleep.

use tickwheel_engine::{Answer as ProductAnswer, CallId as ProductCall, Input};
use tickwheel_queue::State;

use super::{Server, Step, World};
use crate::oracle::{Act, Answer, Call, CallId, KeyAct, TokenAnswer, Verb, Violation};
use crate::words;

/// The largest number of changes of the disk in one turn. A turn that makes more of them hangs. The longest turns,
/// after years with a schedule, make some thousands of changes.
const CHANGES_OF_TURN_MAX: u64 = 200_000;

impl World {
    /// Runs one turn of the server, and checks its answers.
    pub(super) fn turn(&mut self) -> Step {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let (mut inputs, mut answers) = (std::mem::take(&mut self.inputs), std::mem::take(&mut self.answers));
        let turned = self.turn_of(&mut server, &mut inputs, &mut answers);
        (self.inputs, self.answers) = (inputs, answers);
        turned?;
        self.server = Some(server);
        if self.disk.is_crashed() {
            // The server may have died before it sent the answers of this turn.
            self.answers.clear();
            return self.crashed("died at a disk call");
        }
        for (id, count) in std::mem::take(&mut self.returning) {
            self.open.remove(&id);
            self.oracle.answered(id, Answer::Tokens(vec![TokenAnswer::Returned; count]))?;
        }
        let answers = std::mem::take(&mut self.answers);
        for (call, answer) in answers {
            self.take_answer(CallId(call.0), answer)?;
        }
        self.look_at_server()
    }

    /// Does what the shard thread does several times a second while there is little space: it lets the server ask how much space there is.
    pub(super) fn look_for_room(&mut self) {
        let asks = self.server.as_ref().is_some_and(|server| server.asks_for_room());
        if asks && !self.stopping {
            self.inputs.push(Input::LookForRoom);
        }
    }

    /// Runs one turn of a server, which has to end.
    pub(super) fn turn_of(
        &mut self,
        server: &mut Server,
        inputs: &mut Vec<Input>,
        answers: &mut Vec<(ProductCall, ProductAnswer)>,
    ) -> Step {
        self.disk.allow_changes(Some(CHANGES_OF_TURN_MAX));
        server.turn(self.clocks.now(), inputs);
        server.take_answers(answers);
        if self.disk.has_no_changes_left() {
            return Err(self.hang("a turn does not end"));
        }
        self.disk.allow_changes(None);
        Ok(())
    }

    fn look_at_server(&mut self) -> Step {
        let Some(server) = &self.server else { return Ok(()) };
        self.coverage.checkpoints =
            self.coverage.checkpoints.max(server.store().look(|store| store.checkpoints_begun()));
        if self.doomed.is_none() && self.has_failed() {
            self.coverage.poisoned += 1;
            self.doomed = Some(self.rng.below(30));
        }
        // A server with a waiting input is not idle: the turn that takes the input does the rest of its work.
        if self.server.as_ref().is_some_and(|server| server.is_idle())
            && self.inputs.is_empty()
            && self.doomed.is_none()
        {
            let next = self.server.as_ref().map(Server::next_wake).unwrap_or_default();
            let wake = next.wall.map(|at| at.as_ms());
            if let Some((queue, key)) = self.oracle.oversleeps(wake) {
                let (queue, key) = (queue.to_owned(), key.to_owned());
                return Err(self.overslept(&queue, &key, wake));
            }
            if let Some((queue, key)) = self.oracle.lets_a_lease_outlast(next.mono_ms) {
                let what = format!("a lease is over, and the server sleeps until {:?} ms", next.mono_ms);
                return Err(self.oracle.accuse(queue, key, "P7", what));
            }
            let waiting = self.arrived_waits();
            self.coverage.waits += u64::from(!waiting.is_empty());
            if let Some((queue, key)) = self.oracle.keeps_waiting(&waiting) {
                let what = "a lease waits, and the server sleeps".to_owned();
                return Err(self.oracle.accuse(queue, key, "P3", what));
            }
        }
        Ok(())
    }

    /// The server has no wake-up for a task. A get shows which promise this breaks: the task is ready already (too
    /// early), or it will be too late.
    fn overslept(&mut self, queue: &str, key: &str, wake: Option<i64>) -> Violation {
        let command =
            words::command(&Call { queue: queue.to_owned(), key: Some(key.to_owned()), verb: Verb::Get });
        self.next_call += 1;
        self.inputs.push(Input::Call { call: ProductCall(self.next_call), command });
        self.switch.set(true);
        if let Some(server) = &mut self.server {
            server.turn(self.clocks.now(), &mut self.inputs);
            server.take_answers(&mut self.answers);
        }
        let answer = self.answers.pop().map(|(_, answer)| answer);
        let promise = match &answer {
            Some(ProductAnswer::Get(Ok(task))) if task.state != State::Scheduled => "P2",
            _ => "P3",
        };
        let what = format!("the server sleeps until {wake:?}, with the task at {answer:?}");
        self.oracle.accuse(queue, key, promise, what)
    }

    /// Whether the store has failed, so that it takes no more commits.
    pub(super) fn has_failed(&self) -> bool {
        self.server
            .as_ref()
            .and_then(|server| server.engine())
            .is_some_and(|engine| engine.failure().is_some())
    }

    fn take_answer(&mut self, id: CallId, answer: ProductAnswer) -> Step {
        let is_other = self.answer_planner(id.0, &answer)?
            || self.answer_keeper(id.0, &answer)?
            || self.answer_pusher(id.0, &answer)?;
        if is_other {
            return Ok(());
        }
        let call = self.open.remove(&id).expect("answers come to open calls");
        self.waiting.remove(&id);
        if words::is_full(&answer) {
            self.coverage.refused_full += 1;
            if !may_grow(&call.verb) {
                let what = format!("{call:?} was refused for want of space: {answer:?}");
                return Err(Violation { promise: "P8", what, story: Vec::new() });
            }
        }
        let client = self.clients.iter_mut().find(|client| client.waits == Some(id));
        if let Some(client) = client {
            client.waits = None;
            client.tries = 0;
        }
        if self.hostile && self.rng.chance(self.options.lost_percent) {
            self.ask_again(id, &call);
            return self.lose_answer(id, answer);
        }
        let answer = words::answer(&call, answer);
        self.trace.event(format_args!("{id:?} is answered {answer:?}"));
        let mut parcels = None;
        match &answer {
            Answer::Stored { task, .. } | Answer::Task(task) => self.workload.saw(&call.queue, task),
            Answer::Delivered(found) if !found.is_empty() => {
                self.coverage.delivered += found.len() as u64;
                let tokens: Vec<String> = found.iter().map(|one| one.token.clone()).collect();
                if self.hostile && !self.stopping && self.rng.chance(self.options.undelivered_percent) {
                    parcels = Some(tokens);
                } else {
                    tokens.iter().for_each(|token| self.workload.saw_token(&call.queue, token));
                }
            }
            Answer::Laid if matches!(call.verb, Verb::Delete) => self.coverage.forgotten += 1,
            Answer::NotEmpty { .. } => self.coverage.not_empty += 1,
            _ => {}
        }
        self.oracle.answered(id, answer)?;
        if let Some(tokens) = parcels {
            self.return_undelivered(&call.queue, tokens);
        }
        Ok(())
    }

    /// The connection breaks and the server does not notice it. A lost delivery stays leased until its lease runs out.
    fn lose_answer(&mut self, id: CallId, answer: ProductAnswer) -> Step {
        self.trace.event(format_args!("the answer to {id:?} is lost: {answer:?}"));
        self.coverage.lost += 1;
        self.oracle.lost(id)?;
        // If the store has failed, it is unknown whether the change is durable; the next start shows it.
        if self.has_failed() || self.server.is_none() { Ok(()) } else { self.oracle.settled(id) }
    }
}

/// Whether the call may need space that the store does not have.
fn may_grow(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Put { .. }
            | Verb::Import { .. }
            | Verb::Patch { .. }
            | Verb::Redrive { .. }
            | Verb::ById { act: Act::Run | Act::Lease { .. }, .. }
            | Verb::ByKey { act: KeyAct::Run, .. }
            | Verb::Settle(_)
    )
}
