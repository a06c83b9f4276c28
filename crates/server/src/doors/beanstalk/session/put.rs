//! Puts of jobs.

use tickwheel_api::beanstalk::{Command, Event, Fault, JobTerms, Reply};
use tickwheel_queue::{Body, Key, Pending, Put, PutError, Stored, Terms};

use super::{Session, TOGETHER_MAX, due_of};
use crate::doors::beanstalk::command_error::{CommandError, End, refused};
use crate::doors::beanstalk::counters::Counted;
use crate::doors::beanstalk::wire::Wire;

/// The largest jobs that are put together, in total (bytes); one job alone may be larger.
const PUT_BYTES_MAX: usize = 64 << 10;

/// An answer, or one that is pending.
enum Said {
    Now(Reply<'static>),
    Put(Pending<Stored, PutError>, bool),
}

impl Session<'_> {
    /// Puts this job, and the jobs that directly follow it, so that one commit covers them.
    pub(super) async fn puts(&mut self, first: Event, wire: &mut Wire<'_>) -> Result<(), End> {
        self.producer.get_or_insert_with(|| Counted::new(&self.door.counters.producers));
        let mut bytes = 0;
        let mut said = Vec::new();
        let mut next = Some(first);
        while let Some(event) = next {
            // A put that was refused while it was read counts, too.
            self.door.counters.count(if let Ok(put) = &event { put.verb() } else { "put" });
            said.push(match event {
                Err(fault) => Said::Now(Reply::Fault(fault)),
                Ok(Command::Put { terms, body }) => {
                    bytes += body.len();
                    self.put(terms, body)
                }
                Ok(_) => unreachable!("only puts are asked for"),
            });
            // Other tasks have their turn here. The answers of these puts still leave together.
            self.steps.did(0).await;
            next =
                if said.len() < TOGETHER_MAX && bytes < PUT_BYTES_MAX { wire.next_if(is_put) } else { None };
        }
        for said in said {
            let reply = match said {
                Said::Now(reply) => reply,
                Said::Put(stored, keyed) => match stored.await {
                    Ok(Stored { created, task }) if created || !keyed => Reply::Inserted(task.id),
                    Ok(Stored { task, .. }) => Reply::Replaced(task.id),
                    Err(error) => CommandError::from(error).answer()?,
                },
            };
            wire.say(&reply).await?;
        }
        Ok(())
    }

    fn put(&self, terms: JobTerms, body: Vec<u8>) -> Said {
        let JobTerms { key, priority, when, ttr_s } = terms;
        let keyed = key.is_some();
        let Some(due) = due_of(when) else { return Said::Now(Reply::Fault(Fault::BadFormat)) };
        let key = match key.map(|key| Key::new(&key)).transpose() {
            Ok(key) => key,
            Err(_) => return Said::Now(Reply::Fault(Fault::BadFormat)),
        };
        let put = Put {
            key,
            due,
            body: Body::bytes(body),
            terms: Terms { priority, ..Terms::default() },
            ttr_ms: Some(u64::from(ttr_s) * 1_000),
            ..Put::without_key(&self.used.queue)
        };
        match self.door.caller.put(put) {
            Ok(stored) => Said::Put(stored, keyed),
            Err(refusal) => Said::Now(refused(&refusal)),
        }
    }
}

fn is_put(event: &Event) -> bool {
    match event {
        Err(fault) => matches!(fault, Fault::JobTooBig | Fault::ExpectedCrlf),
        Ok(command) => matches!(command, Command::Put { .. }),
    }
}
