//! Clients, and the network between them and the server.

use std::collections::BTreeSet;

use tickwheel_engine::{CallId as ProductCall, Command, Input};

use super::{Step, World};
use crate::oracle::{Call, CallId, Verb};
use crate::words;

/// The largest number of times that a client repeats a call that got no answer.
const TRIES_MAX: u64 = 2;

/// One client, with one call at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// The call that the client waits for.
    pub(super) waits: Option<CallId>,
    /// The call that the client will repeat, because it got no answer.
    again: Option<Call>,
    /// The number of times that the client has repeated this call.
    pub(super) tries: u64,
}

impl World {
    /// Makes a call of the client, unless the client waits for an answer.
    pub(super) fn send(&mut self, client: usize) -> Step {
        if self.clients[client].waits.is_some() {
            return Ok(());
        }
        let wall_ms = self.clocks.now().wall.as_ms();
        let again = self.clients[client].again.take();
        self.coverage.retries += u64::from(again.is_some());
        let call = again.unwrap_or_else(|| self.workload.call(wall_ms));
        if matches!(call.verb, Verb::Cancel { .. }) {
            self.coverage.cancels += 1;
            let near = self.workload.distance_of(&call, wall_ms).is_some_and(|ms| ms <= 5);
            self.coverage.cancels_near_due += u64::from(near);
        }
        let id = self.open_call(call);
        self.clients[client].waits = Some(id);
        if self.rng.chance(self.options.net_percent) {
            return self.mishap(client, id);
        }
        let input = self.input_of(id);
        self.inputs.push(input);
        Ok(())
    }

    /// Lets the network lose, repeat or delay a call on its way to the server.
    fn mishap(&mut self, client: usize, id: CallId) -> Step {
        self.coverage.mishaps += 1;
        // A put that leaves the key to the server must not arrive twice, because it would make two tasks.
        let twice = self.open[&id].key.is_some();
        match self.rng.below(3) {
            0 => {
                self.trace.event(format_args!("{id:?} does not arrive"));
                let call = self.open.remove(&id).expect("it was just made");
                self.clients[client].waits = None;
                self.retry(client, &call);
                self.oracle.lost(id)?;
                return self.oracle.settled(id);
            }
            1 if twice => {
                let input = self.input_of(id);
                self.inputs.push(input);
                let call = self.open[&id].clone();
                let other = self.open_call(call);
                self.trace.event(format_args!("{id:?} arrives again as {other:?}"));
                let input = self.input_of(other);
                let late = self.rng.chance(50);
                if late { self.delay(input) } else { self.inputs.push(input) }
            }
            _ => {
                let input = self.input_of(id);
                self.delay(input);
            }
        }
        Ok(())
    }

    fn delay(&mut self, input: Input) {
        let arrives = self.trace.steps() + self.rng.between(1, 30);
        self.wire.push((arrives, input));
    }

    /// Gives the server the calls that have arrived by this step.
    pub(super) fn receive(&mut self) {
        let now = self.trace.steps();
        let (here, there) = std::mem::take(&mut self.wire).into_iter().partition(|(at, _)| *at <= now);
        self.wire = there;
        self.inputs.extend(Vec::into_iter(here).map(|(_, input): (u64, Input)| input));
    }

    fn input_of(&mut self, id: CallId) -> Input {
        let mut command = words::command(&self.open[&id]);
        if let Command::Lease(lease) = &mut command
            && self.rng.chance(30)
        {
            // For the oracle, a lease call that waits in the server is a call that is open for a longer time.
            lease.wait = true;
            self.waiting.insert(id);
        }
        Input::Call { call: ProductCall(id.0), command }
    }

    /// Ends the wait of each waiting lease call with this probability (percent).
    pub(super) fn end_waits(&mut self, percent: u64) {
        for id in self.arrived_waits() {
            if self.rng.chance(percent) {
                self.waiting.remove(&id);
                self.trace.event(format_args!("the wait of {id:?} ends"));
                self.inputs.push(Input::EndWait { call: ProductCall(id.0) });
            }
        }
    }

    /// The lease calls that wait in the server. Calls that are still on their way are left out.
    pub(super) fn arrived_waits(&self) -> BTreeSet<CallId> {
        let on_wire = |id: CallId| self.wire.iter().any(|(_, input)| call_of(input) == Some(id.0));
        self.waiting.iter().copied().filter(|id| !on_wire(*id)).collect()
    }

    pub(super) fn open_call(&mut self, call: Call) -> CallId {
        self.next_call += 1;
        self.coverage.calls += 1;
        self.coverage.gates += u64::from(call.verb.is_gate());
        let id = CallId(self.next_call);
        self.trace.event(format_args!("{id:?} {call:?}"));
        self.oracle.called(id, call.clone());
        self.open.insert(id, call);
        id
    }

    /// A call got no answer: the client that waited for it may repeat it.
    pub(super) fn ask_again(&mut self, id: CallId, call: &Call) {
        if let Some(client) = self.clients.iter().position(|client| client.waits == Some(id)) {
            self.clients[client].waits = None;
            self.retry(client, call);
        }
    }

    fn retry(&mut self, client: usize, call: &Call) {
        // A client does not repeat a put that leaves the key to the server, because two tasks would have the same
        // payload.
        let knows = call.key.is_some() || !matches!(call.verb, Verb::Put { .. });
        let wants = self.rng.chance(self.options.retry_percent);
        let client = &mut self.clients[client];
        if knows && wants && client.tries < TRIES_MAX {
            client.tries += 1;
            client.again = Some(call.clone());
        } else {
            client.tries = 0;
        }
    }

    /// Tells the server that the deliveries of an answer reached no worker.
    pub(super) fn return_undelivered(&mut self, queue: &str, tokens: Vec<String>) {
        self.coverage.undelivered += 1;
        self.inputs.push(words::undelivered(&tokens));
        let count = tokens.len();
        let id = self.open_call(Call { queue: queue.to_owned(), key: None, verb: Verb::Return { tokens } });
        self.returning.push((id, count));
    }

    /// The server process has ended: all connections and everything on its way are gone.
    pub(super) fn forget_clients(&mut self) {
        for (id, call) in std::mem::take(&mut self.open) {
            self.ask_again(id, &call);
        }
        self.waiting.clear();
        self.planner.forget();
        self.keeper.forget();
        self.pusher.forget();
        self.wire.clear();
        self.returning.clear();
        self.inputs.clear();
        self.answers.clear();
        self.doomed = None;
        self.stopping = false;
    }
}

fn call_of(input: &Input) -> Option<u64> {
    match input {
        Input::Call { call, .. } => Some(call.0),
        Input::EndWait { .. }
        | Input::Undelivered { .. }
        | Input::Use { .. }
        | Input::Leave { .. }
        | Input::Store { .. }
        | Input::Instant { .. }
        | Input::ZonesChanged { .. }
        | Input::StoreFailed { .. }
        | Input::Wake
        | Input::LookForRoom
        | Input::NoteTime
        | Input::Stop => None,
    }
}
