//! The contents of a store, as plain text.

use std::fmt::Write as _;
use std::sync::Arc;

use tickwheel_engine::{
    DueKey, LeaseNo, Outcome, QueueRecord, Reply, Request, Rule, RuleName, Task, Timestamp,
};
use tickwheel_store::conformance::ask;

use super::Store;

/// All live tasks in the order of their places.
pub(super) fn tasks(store: &mut Store) -> Vec<Arc<Task>> {
    let mut tasks = Vec::new();
    let mut after = DueKey::START;
    loop {
        let reply = ask(store, 1, Request::ScanDue { after, until: Timestamp::MAX, max: 10 });
        let Reply::Page(page) = reply else { panic!("ScanDue was answered {reply:?}") };
        tasks.extend(page.tasks);
        match page.next {
            Some(next) => after = next,
            None => return tasks,
        }
    }
}

/// A paragraph for each task that is live, and for each that ended.
pub(super) fn of(store: &mut Store) -> String {
    let mut text = String::new();
    for task in tasks(store) {
        put_task(&mut text, &task);
    }
    for ended in store.ended() {
        let outcome = match ended.outcome {
            Outcome::Done(LeaseNo::NONE) => "done".to_owned(),
            Outcome::Done(lease) => format!("done {}", lease.0),
            Outcome::Cancelled => "cancelled".to_owned(),
            Outcome::Revoked(lease) => format!("revoked {}", lease.0),
            Outcome::Forgotten => "forgotten".to_owned(),
        };
        line(&mut text, "ended", ended.id);
        line(&mut text, "  queue", ended.queue.as_str());
        line(&mut text, "  key", ended.key.as_str());
        line(&mut text, "  seq", ended.seq.0);
        line(&mut text, "  at", ended.at.as_ms());
        line(&mut text, "  outcome", outcome);
    }
    for (name, rule) in store.rules() {
        match (name, &**rule) {
            (
                RuleName::Queue(queue),
                Rule::Queue(QueueRecord { settings, paused_until, draining, target }),
            ) => {
                line(&mut text, "rule", queue.as_str());
                line(&mut text, "  settings", format!("{settings:?}"));
                line(&mut text, "  paused_until", format!("{:?}", paused_until.map(Timestamp::as_ms)));
                line(&mut text, "  draining", draining);
                if let Some(target) = target {
                    line(&mut text, "  target", target.value.escape_ascii());
                    line(&mut text, "  its retry", format!("{:?}", target.retry));
                }
            }
            (RuleName::Schedule(queue, name), Rule::Schedule(record)) => {
                line(&mut text, "schedule", format!("{queue} {name}"));
                line(&mut text, "  record", format!("{record:?}"));
            }
            (RuleName::Job(id), Rule::Job(value)) => {
                line(&mut text, "job", id);
                line(&mut text, "  value", value.escape_ascii());
            }
            other => panic!("a rule under another's name: {other:?}"),
        }
    }
    line(&mut text, "ids_reserved", store.state().parts().0);
    line(&mut text, "last_wall", store.last_wall().as_ms());
    text
}

fn put_task(text: &mut String, task: &Task) {
    line(text, "task", task.id);
    line(text, "  queue", task.queue.as_str());
    line(text, "  key", task.key.as_str());
    line(text, "  seq", task.seq.0);
    line(text, "  put_seq", task.put_seq.0);
    line(text, "  version", task.version.0);
    line(text, "  due_at", task.due_at.as_ms());
    line(text, "  put_at", task.put_at.as_ms());
    line(text, "  priority", task.priority);
    line(text, "  attempts", task.attempts);
    line(text, "  lease_fence", task.lease_fence.0);
    if let Some(lease) = task.revoked {
        line(text, "  revoked", lease.0);
    }
    if let Some(lease) = task.lease {
        line(
            text,
            "  lease",
            format!("{} until {} of {}", lease.no.0, lease.until.as_ms(), lease.written_in.0),
        );
        if lease.left_ms < u64::MAX {
            line(text, "  left_ms", lease.left_ms);
        }
    }
    if let Some(extra) = &task.extra {
        line(text, "  origin", extra.origin);
        extra.ttr_ms.iter().for_each(|ttr_ms| line(text, "  ttr_ms", ttr_ms));
        extra.expire_at.iter().for_each(|at| line(text, "  expire_at", at.as_ms()));
        extra.group.iter().for_each(|group| line(text, "  group", group));
        extra.retry.iter().for_each(|retry| line(text, "  retry", format!("{retry:?}")));
        extra.failures.iter().for_each(|failure| line(text, "  failure", format!("{failure:?}")));
        extra.dead.iter().for_each(|dead| line(text, "  dead", format!("{dead:?}")));
        line(text, "  step", extra.step);
        extra.acked.iter().for_each(|lease| line(text, "  acked", lease.0));
        extra.trace.iter().for_each(|trace| line(text, "  trace", trace));
    }
    line(text, "  content_type", &task.body.content_type);
    task.body.timeline.iter().for_each(|moment| line(text, "  moment", format!("{moment:?}")));
    task.body.tags.iter().for_each(|tag| line(text, "  body_tag", tag));
    line(text, "  payload", task.body.payload.escape_ascii());
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    writeln!(text, "{name} {value}").expect("a text takes all");
}
