//! [`Stored`]: a target as the store has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use sha2::{Digest, Sha256};
use tickwheel_api::{INTEGER_MAX, Problem, TargetBody, TargetKind, TargetOrder};
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
    /// The scope of the token that set the target, as in the token file; `None`: all queues. Targets of one scope share their connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
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

/// Why a target of the store cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable(serde_json::Error);

impl Unreadable {
    /// The mistake, without the values of the target, which may be secret.
    fn why(&self) -> String {
        let Self(error) = self;
        let what = match error.classify() {
            Category::Data => "it has a member that this version does not know, or lacks one",
            Category::Syntax | Category::Eof | Category::Io => "it is not JSON",
        };
        format!("{what} (line {}, column {})", error.line(), error.column())
    }

    /// Returns the reason for which the target is disabled.
    pub(crate) fn reason(&self) -> String {
        format!("the target cannot be read: {}. It can be deleted, and it can be set anew", self.why())
    }

    /// Returns the answer to a call that needs the settings.
    pub(crate) fn problem(&self, queue: &QueueName) -> Problem {
        let detail = format!("the target of the queue `{}` cannot be read: {}", queue.as_str(), self.why());
        Problem::internal(detail).with_hint(
            "the call had no effect; a later version of Tickwheel may have written the target: start that version, delete the target with \
             DELETE /v1/queues/{q}/target, or set it anew with a PUT",
        )
    }
}

/// Returns the kind of the target of this record. Its other members need not be readable.
pub(crate) fn kind_of(record: &TargetRecord) -> Option<TargetKind> {
    #[derive(Deserialize)]
    struct Kinds {
        target: Kind,
    }
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let found = serde_json::from_slice::<Kinds>(&record.value).ok()?;
    TargetKind::ALL.iter().copied().find(|kind| kind.name() == found.target.kind)
}

/// Whether an operator has paused the target of this record. Its other members need not be readable.
pub(crate) fn is_paused(record: &TargetRecord) -> bool {
    #[derive(Deserialize)]
    struct Paused {
        pause: Option<serde_json::Value>,
    }
    let paused = serde_json::from_slice::<Paused>(&record.value).ok().and_then(|found| found.pause);
    paused.is_some_and(|pause| {
        serde_json::from_value(pause).is_ok_and(|pause: StoredPause| pause == StoredPause::Paused)
    })
}

impl Stored {
    /// Reads a target of the store.
    ///
    /// # Errors
    /// The text is of a later release, is damaged, or was written by another program.
    pub(crate) fn read(record: &TargetRecord) -> Result<Self, Unreadable> {
        serde_json::from_slice(&record.value).map_err(Unreadable)
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
            let stored = Stored { target: target.clone(), secrets: BTreeMap::new(), pause, scope: None };
            let record = stored.record();
            assert_eq!(Stored::read(&record).expect("a target"), stored);
            assert_eq!(record.retry, Some(RETRY_DEFAULT));
        }
        for (pause, is_paused) in [
            (None, false),
            (Some(StoredPause::Paused), true),
            (Some(StoredPause::Disabled("http 410".to_owned())), false),
        ] {
            let mut record =
                Stored { target: target.clone(), secrets: BTreeMap::new(), pause, scope: None }.record();
            assert_eq!(super::is_paused(&record), is_paused);
            let later = String::from_utf8(record.value.to_vec()).expect("JSON").replace("webhook", "pigeon");
            record.value = later.into_bytes().into();
            assert!(Stored::read(&record).is_err());
            assert_eq!(super::is_paused(&record), is_paused, "the pause can be read");
        }
        let [one, other] = [None, Some(StoredPause::Paused)].map(|pause| {
            version(&Stored { target: target.clone(), secrets: BTreeMap::new(), pause, scope: None }.record())
        });
        assert!(one != other && one <= INTEGER_MAX);
    }
}
