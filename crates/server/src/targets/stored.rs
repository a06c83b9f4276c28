//! [`Stored`]: a target as the store has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tickwheel_api::{INTEGER_MAX, Problem, TargetBody, TargetOrder};
use tickwheel_queue::{Backoff, QueueName, QueueSettings, Retry, TargetRecord};

use super::secret_keys::Sealed;
use crate::translate;

/// The retry policy of tasks that have none, if their queue and the target have none: 16 attempts within about two days.
const RETRY_DEFAULT: Retry = Retry {
    max_attempts: Some(16),
    backoff: Some(Backoff { doubles: true, base_ms: 30_000, max_ms: 12 * 3_600_000, jitter_percent: 30 }),
};

/// A target as the store has it: its settings without secrets, the encrypted secrets, and why nothing is sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// The settings. Instead of a secret they say that there is one.
    pub(crate) target: TargetBody,
    /// The encrypted secrets by their slots.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) secrets: BTreeMap<String, Sealed>,
    /// Why nothing is sent; `None`: messages are sent, unless the settings say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pause: Option<StoredPause>,
}

/// Why nothing is sent to a target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredPause {
    /// An operator paused the target.
    Paused,
    /// An answer of the other side disabled it, for this reason.
    Disabled(String),
}

impl Stored {
    /// Reads a target of the store.
    ///
    /// # Errors
    /// The text is of a later release, or was written by another program.
    pub(crate) fn read(record: &TargetRecord) -> serde_json::Result<Self> {
        serde_json::from_slice(&record.value)
    }

    /// Returns the target for the store.
    pub(crate) fn record(&self) -> TargetRecord {
        let value = serde_json::to_vec(self).expect("our own types have string keys, and memory takes all");
        let retry = self.target.retry.map_or(RETRY_DEFAULT, translate::retry);
        TargetRecord { value: value.into(), retry: Some(retry) }
    }
}

/// Checks settings of a queue against the target that it has.
///
/// # Errors
/// 409: the target has the order `group`, and the settings let more than one task of a group be in flight.
pub(crate) fn check_settings(
    queue: &QueueName,
    target: Option<&TargetRecord>,
    settings: &QueueSettings,
) -> Result<(), Box<Problem>> {
    // A target that cannot be read sends nothing.
    let order = target.and_then(|record| Stored::read(record).ok()).and_then(|stored| stored.target.order);
    match order {
        Some(TargetOrder::Group) if settings.max_in_flight_per_group != Some(1) => {
            Err(Problem::order_needs_one(queue.as_str()).into())
        }
        _ => Ok(()),
    }
}

/// Returns the version of a target: a hash of its text in the store.
pub(crate) fn version(record: &TargetRecord) -> u64 {
    let hash = Sha256::digest(&record.value);
    let first = hash.first_chunk::<8>().expect("a hash has 32 bytes");
    u64::from_be_bytes(*first) % INTEGER_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_stored() {
        let text =
            br#"{"kind":"webhook","url":"https://a.example/","signing":[{"secret":{"set":true,"id":"aa"}}]}"#;
        let target = TargetBody::parse(text).expect("a target");
        for pause in [None, Some(StoredPause::Paused), Some(StoredPause::Disabled("http 410".to_owned()))] {
            let stored = Stored { target: target.clone(), secrets: BTreeMap::new(), pause };
            let record = stored.record();
            assert_eq!(Stored::read(&record).expect("a target"), stored);
            assert_eq!(record.retry, Some(RETRY_DEFAULT));
        }
        let [one, other] = [None, Some(StoredPause::Paused)].map(|pause| {
            version(&Stored { target: target.clone(), secrets: BTreeMap::new(), pause }.record())
        });
        assert!(one != other && one <= INTEGER_MAX);
    }
}
