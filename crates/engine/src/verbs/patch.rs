//! Patch: changes parts of a live task.

use std::sync::Arc;

use super::admit::{admit_expiry, admit_version};
use crate::calls::{Patch, PatchError, Payload, TaskView};
use crate::ledger::task_bytes;
use crate::name::Tag;
use crate::residence::At;
use crate::task::{Body, Ended, Moment, Task};
use crate::tasks::{Tasks, revoke};

impl Tasks<'_> {
    /// Changes the live task of a key. The caller has looked the key up: the task is in memory, or `gone` is the end of the key's last
    /// task, if the store has one.
    pub(crate) fn patch(&mut self, patch: Patch, gone: Option<&Ended>) -> Result<TaskView, PatchError> {
        self.ledger.check_changes()?;
        let Some(slot) = self.residence.live(&patch.queue, &patch.key) else {
            if self.residence.dead(&patch.queue, &patch.key).is_some() {
                return Err(PatchError::Dead);
            }
            let done = self.is_done(&patch.queue, &patch.key, gone);
            return Err(if done { PatchError::Done } else { PatchError::NotFound });
        };
        admit_version(patch.if_version, Some(self.residence.task(slot).version))?;
        let has_timeline = !self.residence.task(slot).body.timeline.is_empty();
        if has_timeline && patch.timeline.is_none() && (patch.due.is_some() || patch.payload.is_some()) {
            return Err(PatchError::Timeline);
        }
        let due_at = self.admit(patch.timeline.as_deref().unwrap_or_default(), patch.due)?;
        let revoked = self.may_change(slot, patch.on_lease, PatchError::Leased)?;
        let old = self.residence.task(slot);
        let mut new = Task::clone(old);
        let steps_back = patch.timeline.is_some();
        new.body = patched_body(old, patch.payload, patch.tags, patch.timeline);
        new.priority = patch.priority.unwrap_or(old.priority);
        let mut extra = old.extra.as_deref().cloned().unwrap_or_default();
        if steps_back {
            extra.step = 0;
        }
        extra.group = patch.group.unwrap_or(extra.group);
        extra.retry = patch.retry.unwrap_or(extra.retry);
        if let Some(after_ms) = patch.expire_after_ms {
            extra.expire_at = after_ms.map(|ms| self.now.latest().saturating_plus_ms(ms));
        }
        if due_at.is_some() || patch.expire_after_ms.is_some() {
            admit_expiry(self.now, extra.expire_at, due_at.unwrap_or(old.due_at))?;
        }
        let old = Arc::clone(old);
        new.extra = extra.boxed();
        let body_known = Arc::ptr_eq(&new.body, &old.body);
        self.ledger.take_room(task_bytes(&new, body_known))?;

        let was_ready_since = match &self.residence.get(slot).at {
            At::Ready { since } => Some(*since),
            At::Leased(lease) => Some(lease.ready_since),
            _ => None,
        };
        self.unplace(slot);
        self.unwatch_expiry(&old);
        self.renew(slot, |task, now, seq| {
            task.body = new.body;
            task.priority = new.priority;
            task.extra = new.extra;
            task.due_at = due_at.unwrap_or(task.due_at);
            task.version = seq;
            if let Some(no) = revoked {
                revoke(task, now, no);
            }
        });
        self.ledger.counters_mut().scheduled_total += 1;
        let task = Arc::clone(self.residence.task(slot));
        self.watch_expiry(&task);
        match (due_at, was_ready_since) {
            // The due time did not change, and a task that was ready or leased is ready.
            (None, Some(since)) => self.make_ready(slot, since),
            (None, None) => self.place(slot),
            (Some(_), _) => self.place_asked(slot),
        }
        Ok(self.view(slot))
    }
}

/// Returns the old body with the payload, the tags and the timeline that are given. Returns the old body itself if none is given.
fn patched_body(
    old: &Task,
    payload: Option<Payload>,
    tags: Option<Vec<Tag>>,
    timeline: Option<Vec<Moment>>,
) -> Arc<Body> {
    if payload.is_none() && tags.is_none() && timeline.is_none() {
        return Arc::clone(&old.body);
    }
    let body = Body::clone(&old.body);
    let payload = payload.unwrap_or(Payload { bytes: body.payload, content_type: body.content_type });
    Arc::new(Body {
        payload: payload.bytes,
        content_type: payload.content_type,
        tags: tags.unwrap_or(body.tags),
        timeline: timeline.unwrap_or(body.timeline),
    })
}
