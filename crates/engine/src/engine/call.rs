//! The match that sends each command to the code that runs the command.

use super::Engine;
use crate::calls::{
    Answer, Command, IMPORT_TASKS_MAX, ImportTasks, Imported, Nack, QueueChange, TokenAnswer, Unavailable,
};
use crate::input::CallId;
use crate::name::QueueName;
use crate::reads::{Identified, Keyed, Listing, Purpose, TokenCall, Verb};
use crate::time::Now;
use crate::token::Token;

impl Engine {
    pub(super) fn call(&mut self, now: Now, call: CallId, command: Command) {
        let refusal = match self.ledger.refuses_changes() {
            _ if self.ledger.is_stopping() => Some(Unavailable::Closed),
            Some(why) if command.needs_store() => Some(Unavailable::ReadOnly { why }),
            _ => None,
        };
        if let Some(why) = refusal {
            return self.ledger.answer(call, command.unavailable(why));
        }
        let answer = match command {
            Command::Put(put) => return self.put(now, call, put),
            Command::Get(get) => return self.keyed(now, call, Keyed::Get(get)),
            Command::Patch(patch) => return self.keyed(now, call, Keyed::Patch(patch)),
            Command::Cancel(cancel) => return self.keyed(now, call, Keyed::Cancel(cancel)),
            Command::Redrive(redrive) => {
                return self.identified(now, call, Identified::Redrive(redrive), false);
            }
            Command::ById(by_id) => return self.identified(now, call, Identified::ById(by_id), false),
            Command::ByKey(by_key) => return self.keyed(now, call, Keyed::ByKey(by_key)),
            Command::TakeRow(take) => return self.keyed(now, call, Keyed::TakeRow(take)),
            Command::Lease(lease) => return self.tasks(now).delivery().lease(call, lease),
            Command::Ack(ack) => return self.tokens_called(now, call, ack.queue, &ack.tokens, Verb::Ack),
            Command::Nack(nack) => return self.nack(now, call, nack),
            Command::Extend(extend) => {
                let verb = Verb::Extend { lease_ms: extend.lease_ms };
                return self.tokens_called(now, call, extend.queue, &extend.tokens, verb);
            }
            Command::List(list) => return self.reads.list(&self.ledger, call, Listing::Queue(list)),
            Command::AllTasks(list) => return self.reads.list(&self.ledger, call, Listing::All(list)),
            Command::Leases(list) => {
                Answer::Leases(self.dispatch.page_of_leases(&self.residence, &self.ledger, &list))
            }
            Command::Import(import) => return self.import(call, import),
            Command::ImportSchedule(import) => match import.running.clone() {
                // `key` names the task that has to end before the schedule makes the next one. So this task is looked up first.
                Some(key) => return self.keyed(now, call, Keyed::ImportSchedule { import, key }),
                None => Answer::ImportSchedule(self.tasks(now).import_schedule(&import)),
            },
            Command::Forecast(forecast) => return self.reads.forecast(&self.ledger, call, forecast),
            Command::ChangeQueue(change) => {
                let is_deleted = change.change == QueueChange::Delete;
                let schedules = if is_deleted { self.recurrence.of_queue(&change.queue) } else { 0 };
                Answer::ChangeQueue(self.dispatch.change_queue(&mut self.ledger, now, change, schedules))
            }
            Command::PutSchedule(put) => {
                return self.recurrence.put_schedule(&mut self.ledger, now, call, put);
            }
            Command::DeleteSchedule(delete) => {
                Answer::DeleteSchedule(self.recurrence.delete_schedule(&mut self.ledger, delete))
            }
            Command::GetSchedule(get) => Answer::GetSchedule(self.recurrence.get_schedule(&self.ledger, get)),
            Command::Schedules(list) => {
                Answer::Schedules(self.recurrence.list_schedules(&self.ledger, &list))
            }
            Command::AllSchedules(list) => {
                Answer::AllSchedules(self.recurrence.list_all_schedules(&self.ledger, &list))
            }
            Command::ChangeJob(change) => Answer::ChangeJob(self.jobs.change(&mut self.ledger, now, change)),
            Command::Targets(_) => Answer::Targets(self.dispatch.list_targets(&self.ledger)),
            Command::Jobs(_) => Answer::Jobs(self.jobs.list(&self.ledger)),
            Command::Wheel(_) => Answer::Wheel(Ok(Box::new(self.residence.view_of_wheel(now)))),
            Command::Queues(_) | Command::Queue(_) | Command::Stats(_) => {
                return self.reads.count(call, command);
            }
        };
        self.ledger.answer(call, answer);
    }

    fn nack(&mut self, now: Now, call: CallId, nack: Nack) {
        match self.tasks(now).nack(&nack) {
            Ok(verb) => self.tokens_called(now, call, nack.queue, &nack.tokens, verb),
            Err(why) => self.ledger.answer(call, Answer::Nack(Err(why))),
        }
    }

    /// Decides each token of a call: at once if its task is whole in memory or the token is not genuine, else after a look-up.
    fn tokens_called(&mut self, now: Now, call: CallId, queue: QueueName, tokens: &[Token], verb: Verb) {
        let answers = vec![TokenAnswer::Expired; tokens.len()];
        let mut pending = TokenCall { verb, queue, answers, looked_up: Vec::new() };
        for (index, token) in tokens.iter().enumerate() {
            let Some((id, no)) = self.dispatch.verify(token) else { continue };
            match self.residence.by_id(id) {
                Some(slot) => pending.answers[index] = self.tasks(now).decide_token(slot, no, &pending),
                None => pending.looked_up.push((index, id, no)),
            }
        }
        if pending.looked_up.is_empty() {
            self.tasks(now).answer_tokens(call, pending);
        } else {
            self.reads.want(Purpose::Tokens(call, pending));
        }
    }

    fn import(&mut self, call: CallId, mut import: ImportTasks) {
        import.tasks.truncate(IMPORT_TASKS_MAX);
        let keeps_ids = import.ids_below.is_some_and(|below| self.ledger.keeps_ids(below));
        if import.tasks.is_empty() {
            let nothing = Imported { outcomes: Vec::new(), refused: None };
            return self.ledger.answer(call, Answer::Import(Ok(nothing)));
        }
        self.reads.want(Purpose::Import { call, import, keeps_ids });
    }
}
