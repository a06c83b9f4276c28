//! [`Brokers`]: the connections of the configuration by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_api::TargetKind;
use tickwheel_push::broker::{Broker, BrokerKind, Opened};

/// The connections of the configuration.
#[derive(Default)]
pub(super) struct Brokers {
    named: BTreeMap<String, Named>,
}

/// A named connection.
pub(super) struct Named {
    pub(super) kind: TargetKind,
    /// `None`: the program was built without this kind.
    pub(super) broker: Option<Arc<dyn Broker>>,
}

impl Brokers {
    /// Adds a connection. Nothing is opened yet.
    ///
    /// # Errors
    /// The reason that the connection cannot be used, for an operator.
    pub(super) fn add(&mut self, opened: &Opened<'_>) -> Result<(), String> {
        let kind = opened.plan.kind;
        let open = BrokerKind::of(kind).and_then(|known| known.open);
        let broker = open.map(|open| open(opened)).transpose()?;
        self.named.insert(opened.name.to_owned(), Named { kind, broker });
        Ok(())
    }

    /// Returns the connection of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Named> {
        self.named.get(name)
    }

    /// Whether the configuration has no connection.
    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Returns all connections, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Named)> {
        self.named.iter()
    }
}
