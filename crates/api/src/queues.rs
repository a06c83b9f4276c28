//! The queues and how many tasks each has.

use crate::body::body;
use crate::choice::choice;
use crate::kind::{choice, count, flag, instant, list, object, or_null, text};
use crate::part::{flat, has, may, unless};
use crate::settings::SettingsBody;

body! {
    /// The queues that the token may know of.
    ///
    /// The answer to `GET /v1/queues`.
    pub struct QueuesBody: answer "Queues" {
        /// By name.
        queues: Vec<QueueCounts> = has(list(object(), ""));
        /// What to send as `cursor` for the next page; `null` on the last.
        next_cursor: Option<String> = has(or_null(text(512, "")));
    }
}

body! {
    /// A queue and its tasks by state.
    pub struct QueueCounts: answer "QueueCounts" {
        /// Its name.
        queue: String = has(text(200, ""));
        /// Tasks that are not due yet.
        scheduled: u64 = has(count());
        /// Tasks that are due and in nobody's hands.
        ready: u64 = has(count());
        /// Tasks in workers' hands.
        leased: u64 = has(count());
        /// Tasks that were given up.
        dead: u64 = has(count());
        /// Whether nothing is leased.
        paused: bool = has(flag());
        /// Whether no task is added.
        draining: bool = unless(false, flag());
    }
}

body! {
    /// A queue: its tasks by state, and its settings.
    ///
    /// The answer to `GET` and `PUT /v1/queues/{q}` and to `pause`, `resume` and `drain`. A setting that is absent has its default.
    pub struct QueueBody: answer "Queue" {
        /// Its tasks by state.
        counts: QueueCounts = flat();
        /// When its pause ends by itself.
        paused_until_ms as "paused_until": Option<i64> = may(instant());
        /// How it hands its tasks out.
        settings: SettingsBody = flat();
    }
}

body! {
    /// The queue is gone.
    ///
    /// The answer to `DELETE /v1/queues/{q}`: `{"result": "deleted"}`. A queue that still has something is a problem, 409.
    #[derive(Copy)]
    pub struct DeleteQueueAnswer: answer "QueueDeleted" {
        /// It has no settings any more.
        result: QueueGone = has(choice());
    }
}

choice! {
    /// What became of a queue that was deleted.
    pub enum QueueGone {
        /// It has no settings any more and is not listed, until its next use.
        Deleted = "deleted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_settings_stand_side_by_side() {
        let text = concat!(
            r#"{"queue":"close","scheduled":1,"ready":2,"leased":3,"dead":4,"paused":true,"draining":true,"#,
            r#""paused_until":"2017-10-02T11:26:33.000Z","max_in_flight":3,"#,
            r#""retry":{"backoff":"fixed","base":"1s","max":"10m","jitter":0.0}}"#,
        );
        let body: QueueBody = serde_json::from_str(text).expect("a queue");
        assert_eq!((body.counts.leased, body.settings.max_in_flight), (3, Some(3)));
        assert_eq!(serde_json::to_string(&body).expect("JSON"), text);
    }
}
