//! Answers about queues: their numbers of tasks and their settings.

use crate::declare::{
    body, choice, count, flag, flat, has, instant, list, may, object, or_null, shown, text, unless,
};
use crate::queues::settings::SettingsBody;

body! {
    /// One page of the queues inside the token's scope.
    ///
    /// The answer to `GET /v1/queues`.
    pub struct QueuesBody: answer "Queues" {
        /// The queues in the order of their names.
        queues: Vec<QueueCounts> = has(list(object(), ""));
        /// The `cursor` of the next page; `null` on the last page.
        next_cursor: Option<String> = shown(None, or_null(text(512, "")));
    }
}

body! {
    /// A queue and its number of tasks by state.
    pub struct QueueCounts: answer "QueueCounts" {
        /// The name of the queue.
        queue: String = has(text(200, ""));
        /// Number of tasks that are not due yet.
        scheduled: u64 = has(count());
        /// Number of tasks that are due and not leased.
        ready: u64 = has(count());
        /// Number of tasks that workers have leased.
        leased: u64 = has(count());
        /// Number of dead tasks.
        dead: u64 = has(count());
        /// Whether the queue is paused, so that nothing is leased.
        paused: bool = has(flag());
        /// Whether the queue is draining, so that no task is added.
        draining: bool = unless(false, flag());
    }
}

body! {
    /// A queue: its number of tasks by state, and its settings.
    ///
    /// The answer to `GET` and `PUT /v1/queues/{q}` and to `pause`, `resume` and `drain`. A setting that is absent has its default.
    pub struct QueueBody: answer "Queue" {
        /// The number of tasks by state.
        counts: QueueCounts = flat();
        /// `false`: the queue does not exist. It has no task, no schedule, no settings and no waiting lease, and had none within the last hour. The name may be misspelt.
        exists: bool = unless(true, flag());
        /// When the pause ends by itself.
        paused_until_ms as "paused_until": Option<i64> = may(instant());
        /// The settings of the queue.
        settings: SettingsBody = flat();
    }
}

body! {
    /// The queue is deleted.
    ///
    /// The answer to `DELETE /v1/queues/{q}`: `{"result": "deleted"}`. For a queue that still has tasks or schedules the answer is a problem, 409.
    #[derive(Copy)]
    pub struct DeleteQueueAnswer: answer "QueueDeleted" {
        /// The settings are removed.
        result: QueueGone = has(choice());
    }
}

choice! {
    /// The result of the deletion of a queue.
    pub enum QueueGone {
        /// The settings are removed. The queue is not listed until it is used again.
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

    #[test]
    fn a_queue_exists_unless_the_answer_denies_it() {
        let counts = r#"{"queue":"close","scheduled":0,"ready":0,"leased":0,"dead":0,"paused":false"#;
        for (end, exists) in [("}", true), (r#","exists":false}"#, false)] {
            let text = format!("{counts}{end}");
            let body: QueueBody = serde_json::from_str(&text).expect("a queue");
            assert_eq!(body.exists, exists);
            assert_eq!(serde_json::to_string(&body).expect("JSON"), text);
        }
    }
}
