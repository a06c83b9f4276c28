//! Owners of the shard: a node loses it to the other one, answers nothing any more, and takes it back later.

use tickwheel_engine::{Answer, Input, ShardId, Validity};
use tickwheel_queue::Shard;

use super::life::{Loaded, names_a_file, refused};
use super::{Server, Step, World};
use crate::oracle::{Call, CallId, Due, Mode, Verb, Violation};
use crate::rng::Rng;
use crate::seat::Seat;
use crate::words;

/// The state of a run that concerns owners, beside the server.
#[derive(Debug)]
pub(super) struct Owners {
    /// Draws for owners, so that the rest of a run is the same without them.
    rng: Rng,
    /// The node that owned the shard before. It may not know yet that it lost it.
    former: Option<Server>,
    /// Steps until the ownership of the server is renewed. Until then it answers nothing.
    doubt: Option<u64>,
}

impl Owners {
    pub(super) fn new(rng: Rng) -> Self {
        Self { rng, former: None, doubt: None }
    }

    /// The machine died: no node is left.
    pub(super) fn forget(&mut self) {
        (self.former, self.doubt) = (None, None);
    }
}

impl World {
    /// One step of the owners: the shard changes hands, or its ownership is in doubt for a while, or the former owner does something.
    pub(super) fn step_owners(&mut self) -> Step {
        if self.options.owners_permille == 0 || self.stopping || self.doomed.is_some() {
            return Ok(());
        }
        self.renew_in_time();
        match self.owners.rng.below(1_000) {
            drawn if drawn < self.options.owners_permille => return self.change_owner(),
            drawn if drawn < 2 * self.options.owners_permille => self.doubt_ownership(),
            _ => {}
        }
        if self.owners.rng.chance(30) { self.ask_former() } else { Ok(()) }
    }

    /// From now on the server does not know whether it still owns the shard. It finds out some steps later.
    fn doubt_ownership(&mut self) {
        let Some(server) = &self.server else { return };
        if self.owners.doubt.is_none() {
            self.trace.event(format_args!("the ownership is in doubt"));
            self.coverage.doubts += 1;
            server.store().set_validity(Validity::InDoubt);
            self.owners.doubt = Some(self.owners.rng.between(1, 10));
        }
    }

    fn renew_in_time(&mut self) {
        match self.owners.doubt {
            Some(0) => self.renew_ownership(),
            Some(left) => self.owners.doubt = Some(left - 1),
            None => {}
        }
    }

    /// The server learns that it owns the shard still, and has owned it all the time.
    pub(super) fn renew_ownership(&mut self) {
        if self.owners.doubt.take().is_some()
            && let Some(server) = &self.server
        {
            self.trace.event(format_args!("the ownership is renewed"));
            server.store().set_validity(Validity::Valid);
        }
    }

    /// The other node takes the shard, and the server does not know it. To the clients it is as if the server had died.
    fn change_owner(&mut self) -> Step {
        let Some(server) = self.server.take() else { return Ok(()) };
        self.trace.event(format_args!("the shard gets another owner, {} calls open", self.open.len()));
        self.coverage.takeovers += 1;
        self.owners.doubt = None;
        server.store().set_validity(Validity::InDoubt);
        self.forget_clients();
        self.oracle.crashed()?;
        self.clocks.restart();
        self.tell_time();
        let next = match self.owners.former.take() {
            Some(mut former) => {
                // By now it knows that it lost the shard.
                former.store().set_validity(Validity::Lost);
                let answers = self.turn_former(&mut former, Vec::new())?;
                self.judge_former(None, answers)?;
                former.store().set_validity(Validity::Valid);
                former.acquire(self.clocks.now());
                former
            }
            None => self.node(server.store().other()),
        };
        self.owners.former = Some(server);
        self.oracle.recovered();
        match self.load(next)? {
            Loaded::Up => {
                // A node that owned the shard before still has the rules of then.
                self.look_at_zone();
                Ok(())
            }
            Loaded::Died => self.crashed("died when the shard got another owner"),
            Loaded::Refused(why) => {
                let options = &self.options;
                let has_faults = self.starved || options.read_error_percent > 0 || options.error_percent > 0;
                if !has_faults || !names_a_file(&self.disk, &why) {
                    return Err(refused(&why));
                }
                self.crashed("killed, for its store failed when the shard got another owner")
            }
        }
    }

    /// The former owner takes a call or learns what became of its shard. It must not answer.
    fn ask_former(&mut self) -> Step {
        let Some(mut former) = self.owners.former.take() else { return Ok(()) };
        if self.owners.rng.chance(5) {
            former.store().set_validity(Validity::Lost);
        }
        let call = if former.is_serving() { Some(self.former_call()) } else { None };
        let input = call.as_ref().map(|(id, call)| {
            let command = words::command(call);
            Input::Call { call: tickwheel_engine::CallId(id.0), command }
        });
        let answers = self.turn_former(&mut former, input.into_iter().collect())?;
        self.owners.former = Some(former);
        if self.disk.is_crashed() {
            return self.crashed("died at a disk call of the former owner");
        }
        self.judge_former(call, answers)
    }

    /// Judges the answers of a former owner. The oracle says whether a task is still as a get shows it. Anything else it must not say at
    /// all: its caller was told that the outcome is unknown, and a delivery may be another worker's by now.
    fn judge_former(&mut self, call: Option<(CallId, Call)>, answers: Vec<(CallId, Answer)>) -> Step {
        for (answered, answer) in answers {
            self.trace.event(format_args!("the former owner answers {answered:?}: {answer:?}"));
            match &call {
                Some((id, call)) if *id == answered && matches!(call.verb, Verb::Get) => {
                    self.oracle.called(answered, call.clone());
                    self.oracle.answered(answered, words::answer(call, answer))?;
                }
                _ => {
                    let what = format!("a former owner of the shard answered {answer:?}");
                    return Err(Violation { promise: "ownership", what, story: Vec::new() });
                }
            }
        }
        Ok(())
    }

    /// A get or a lease, which need no commit, so nothing but the end of the ownership holds their answers back; or a put.
    fn former_call(&mut self) -> (CallId, Call) {
        let (queues, keys) = (self.workload.queues(), self.workload.keys());
        let queue = queues[self.owners.rng.index(queues.len())].clone();
        let key = Some(keys[self.owners.rng.index(keys.len())].clone());
        self.next_call += 1;
        let call = match self.owners.rng.below(10) {
            0..7 => Call { queue, key, verb: Verb::Get },
            7..9 => Call { queue, key: None, verb: Verb::Lease { max: 3, lease_ms: 1_000 } },
            _ => {
                let (due, mode) = (Some(Due::In(0)), Mode::Upsert);
                Call { queue, key, verb: Verb::Put { due, payload: 7, mode, if_match: None, revoke: false } }
            }
        };
        (CallId(self.next_call), call)
    }

    /// Runs a turn of the former owner. Returns the answers that it gave.
    fn turn_former(
        &mut self,
        former: &mut Server,
        mut inputs: Vec<Input>,
    ) -> Result<Vec<(CallId, Answer)>, Violation> {
        let mut answers = Vec::new();
        self.turn_of(former, &mut inputs, &mut answers)?;
        Ok(answers.into_iter().map(|(call, answer)| (CallId(call.0), answer)).collect())
    }

    pub(super) fn node(&mut self, seat: Seat) -> Server {
        let config = self.engine_config();
        let offsets = self.planner.offsets();
        Shard::new(ShardId::ONLY, seat, config, self.clocks.now()).with_offsets(offsets)
    }
}
