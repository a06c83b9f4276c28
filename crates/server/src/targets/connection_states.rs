//! [`ConnectionStates`]: the states of the connections when they were last looked at.

use std::collections::BTreeMap;

use tickwheel_api::{ConnectionRow, ConnectionState};

/// The states of the connections when they were last looked at.
#[derive(Default)]
pub(super) struct ConnectionStates {
    by_name: BTreeMap<String, ConnectionState>,
}

impl ConnectionStates {
    /// Returns the connections whose state has changed. A connection that no message has needed yet has not changed.
    pub(super) fn changed(&mut self, connections: Vec<ConnectionRow>) -> Vec<ConnectionRow> {
        let has_changed = |connection: &ConnectionRow| {
            let before = self.by_name.insert(connection.name.clone(), connection.state);
            before.unwrap_or(ConnectionState::Unused) != connection.state
        };
        connections.into_iter().filter(has_changed).collect()
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_api::TargetKind;

    use super::*;

    #[test]
    fn a_change_is_told_once() {
        let mut states = ConnectionStates::default();
        let row = |name: &str, state| ConnectionRow {
            name: name.to_owned(),
            kind: TargetKind::Redis,
            state,
            since_ms: None,
            reason: None,
        };
        let mut changed = |main, spare| -> Vec<_> {
            let rows = states.changed(vec![row("main", main), row("spare", spare)]);
            rows.into_iter().map(|row| (row.name, row.state)).collect()
        };
        use ConnectionState::{Down, Unused, Up};
        assert_eq!(changed(Unused, Unused), []);
        assert_eq!(changed(Up, Unused), [("main".to_owned(), Up)]);
        assert_eq!(changed(Up, Down), [("spare".to_owned(), Down)]);
        assert_eq!(changed(Down, Down), [("main".to_owned(), Down)]);
        assert_eq!(changed(Up, Down), [("main".to_owned(), Up)]);
    }
}
