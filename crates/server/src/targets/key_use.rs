//! [`KeyUse`]: which keys the secrets of stored targets need.

use std::collections::BTreeMap;
use std::path::Path;

use tickwheel_queue::{QueueName, TargetRecord};

use super::secret_keys::{SecretKeyError, SecretKeys};
use super::stored::Stored;

/// A key that encrypts secrets of targets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyUse {
    /// The id of the key: a part of its hash.
    pub id: String,
    /// The queues whose targets have secrets under this key, in the order of their names.
    pub queues: Vec<QueueName>,
    /// Whether the file has the key; `None`: no file was given.
    pub is_in_file: Option<bool>,
}

impl KeyUse {
    /// Returns the keys that these targets need, in the order of their ids. A target that cannot be read needs none. `file`: the keys that
    /// there are, as `--secret-key-file` takes them.
    ///
    /// # Errors
    /// The file gives no keys.
    pub fn of<'t>(
        targets: impl IntoIterator<Item = (&'t QueueName, &'t TargetRecord)>,
        file: Option<&Path>,
    ) -> Result<Vec<Self>, SecretKeyError> {
        let keys = file.map(SecretKeys::read).transpose()?;
        let mut used = BTreeMap::<String, Vec<QueueName>>::new();
        for (queue, record) in targets {
            let Ok(Stored { secrets, .. }) = Stored::read(record) else { continue };
            for sealed in secrets.into_values() {
                let queues = used.entry(sealed.key).or_default();
                if queues.last() != Some(queue) {
                    queues.push(queue.clone());
                }
            }
        }
        let one = |(id, queues): (String, _)| {
            let is_in_file = keys.as_ref().map(|keys| keys.has(&id));
            Self { id, queues, is_in_file }
        };
        Ok(used.into_iter().map(one).collect())
    }
}
