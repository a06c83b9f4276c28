//! The file descriptors of the process, divided between the store, the connections of clients, and the connections of webhooks.

use rustix::process::{Resource, getrlimit};
use tickwheel_queue::descriptors_kept;

use crate::events;

/// Descriptors for what is neither a served connection nor a webhook: the runtime, the standard streams, refused connections, brokers, the
/// connections to a database.
const OTHERS: usize = 96;
/// Descriptors of each shard: a store in need closes all files but about this many.
const PER_SHARD: usize = 16;
/// Webhooks have at least one of this many parts of what is left.
const WEBHOOK_PART: usize = 4;

/// How many connections there may be.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Descriptors {
    /// Connections of clients, without those that are kept for calls of operators.
    pub(crate) clients: usize,
    /// Connections of webhooks.
    pub(crate) webhooks: usize,
}

impl Descriptors {
    /// Divides the descriptors that this process may have. `wanted`: the connections of clients; `kept`: those for operators. The log warns if
    /// there are fewer than wanted.
    pub(crate) fn of_process(wanted: usize, kept: usize, shards: usize) -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let found = Self::divided(usize::try_from(limit).unwrap_or(usize::MAX), wanted, kept, shards);
        if found.clients < wanted {
            tracing::warn!(
                event = events::DOUBTFUL,
                wanted,
                allowed = found.clients,
                "fewer connections than configured, because the limit of open files is low: raise it (`ulimit -n`, `LimitNOFILE=` of systemd) or write a smaller `max_connections`"
            );
        }
        found
    }

    fn divided(limit: usize, wanted: usize, kept: usize, shards: usize) -> Self {
        let own = OTHERS + descriptors_kept(limit as u64) + PER_SHARD.saturating_mul(shards);
        let left = limit.saturating_sub(own.saturating_add(kept));
        let clients = wanted.min(left - left / WEBHOOK_PART).max(1);
        Self { clients, webhooks: left.saturating_sub(clients) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_webhooks_leave_the_store_its_share() {
        for (limit, shards) in [(256, 1), (1_024, 1), (1_024, 16), (65_536, 4), (1 << 20, 64)] {
            let Descriptors { clients, webhooks } = Descriptors::divided(limit, 10_000, 16, shards);
            let own = OTHERS + descriptors_kept(limit as u64) + PER_SHARD * shards;
            assert!(clients + webhooks + 16 + own <= limit, "{clients} and {webhooks} of {limit}");
            assert!(webhooks * 4 >= clients.min(limit / 8), "{webhooks} of {limit}");
        }
        let large = Descriptors::divided(65_536, 10_000, 16, 1);
        assert_eq!(large.clients, 10_000, "what was wanted");
        assert!(large.webhooks > 50_000, "the rest");
    }

    #[test]
    fn a_limit_that_is_too_low_for_anything_leaves_one_client() {
        assert_eq!(Descriptors::divided(64, 10_000, 16, 1), Descriptors { clients: 1, webhooks: 0 });
    }
}
