//! Ours against the others, inside one round.

use super::catalog::Role;

/// A figure of a round: whose, and what it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure<'a> {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) metric: &'a str,
    pub(crate) value: f64,
}

/// For every metric of ours: its ratio to the best peer, and to each limit that has the same metric. Less is better.
pub(crate) fn ratios(round: &[Figure<'_>]) -> Vec<(String, f64)> {
    let mut ratios = Vec::new();
    for ours in round.iter().filter(|figure| figure.role == Role::Ours) {
        let same = || round.iter().filter(|figure| figure.metric == ours.metric);
        let peers = same().filter(|figure| figure.role == Role::Peer);
        if let Some(best) = peers.map(|figure| figure.value).min_by(f64::total_cmp) {
            ratios.push((format!("{}/best-peer", ours.metric), ours.value / best));
        }
        for limit in same().filter(|figure| figure.role == Role::Limit) {
            ratios.push((format!("{}/{}", ours.metric, limit.name), ours.value / limit.value));
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_divided_by_the_best_peer_and_by_the_limit() {
        let figure = |name, role, metric, value| Figure { name, role, metric, value };
        let round = [
            figure("wheel", Role::Ours, "a_ns", 6.0),
            figure("wheel", Role::Ours, "b_ns", 1.0),
            figure("slow", Role::Peer, "a_ns", 24.0),
            figure("fast", Role::Peer, "a_ns", 12.0),
            figure("slab", Role::Limit, "a_ns", 3.0),
        ];
        let expected = [("a_ns/best-peer".to_owned(), 0.5), ("a_ns/slab".to_owned(), 2.0)];
        assert_eq!(ratios(&round), expected);
        assert_eq!(ratios(&round[2..]), []);
    }
}
