//! The queues and how many tasks each has.

use crate::settings::SettingsBody;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The answer to `GET /v1/queues`, in the order of the names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuesBody {
    /// One for each queue.
    pub queues: Vec<QueueCounts>,
    /// Where the next page begins; `None` at the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// One queue and its tasks by state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCounts {
    /// The queue.
    pub queue: String,
    /// Tasks that are not due yet.
    pub scheduled: u64,
    /// Tasks that are due and in nobody's hands.
    pub ready: u64,
    /// Tasks in workers' hands.
    pub leased: u64,
    /// Tasks given up.
    pub dead: u64,
    /// Whether its tasks are withheld from workers.
    pub paused: bool,
    /// Whether it takes no new task; absent if it does.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub draining: bool,
}

/// One queue, the answer to `GET` and `PUT /v1/queues/{q}` and to `pause`, `resume` and `drain`: its tasks by state, and beside them its
/// settings as [`SettingsBody`] has them. A setting that is absent has its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueBody {
    /// Its tasks by state.
    #[serde(flatten)]
    pub counts: QueueCounts,
    /// When a pause ends by itself, in ms since 1970.
    #[serde(
        rename = "paused_until",
        skip_serializing_if = "Option::is_none",
        with = "crate::time::rfc3339_option"
    )]
    pub paused_until_ms: Option<i64>,
    /// How it hands its tasks out.
    #[serde(flatten)]
    pub settings: SettingsBody,
}

/// The answer to `DELETE /v1/queues/{q}`: `{"result": "deleted"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteQueueAnswer {
    /// That it is gone. A queue that still has something is a problem, 409.
    pub result: QueueGone,
}

/// What became of a queue that was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueGone {
    /// It has no settings any more and is not listed, until its next use.
    Deleted,
}

impl<'de> Deserialize<'de> for QueueBody {
    /// Its parts are read one by one: a part that keeps text as it is cannot be read from a flattened struct.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Until {
            #[serde(rename = "paused_until", default, with = "crate::time::rfc3339_option")]
            paused_until_ms: Option<i64>,
        }
        fn part<T: DeserializeOwned, E: serde::de::Error>(raw: &RawValue) -> Result<T, E> {
            serde_json::from_str(raw.get()).map_err(E::custom)
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let Until { paused_until_ms } = part(&raw)?;
        Ok(Self { counts: part(&raw)?, paused_until_ms, settings: part(&raw)? })
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
