//! The times of calls by route and result, and the waits of leases.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickwheel::{Clock, Monotonic, SystemClock};
use tickwheel_api::openapi::OPERATIONS;

/// Upper bounds of the times of calls (µs). One more count follows the last bound.
pub(crate) const REQUEST_BOUNDS_US: [u64; 7] =
    [1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];
/// Upper bounds of the waits of leases (µs). One more count follows the last bound.
pub(crate) const WAIT_BOUNDS_US: [u64; 6] = [10_000, 100_000, 1_000_000, 5_000_000, 20_000_000, 60_000_000];

/// Classes of status codes.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The classes that each used route always shows.
const ALWAYS: [&str; 3] = ["2xx", "4xx", "5xx"];

/// The route of a call that matches no route.
pub(crate) const UNMATCHED: &str = "unmatched";

/// All routes by the names that metrics and logs use.
pub(crate) fn routes() -> impl Iterator<Item = &'static str> {
    OPERATIONS.iter().map(|operation| operation.path).chain([UNMATCHED])
}

/// The time that a lease call waited for tasks. The value is in the extensions of the call's answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Waited(pub(crate) Duration);

/// The times of all answered calls, from the head of the request to the head of the answer, without the time that a
/// lease [waited](Waited).
#[derive(Debug)]
pub(crate) struct Requests {
    clock: SystemClock,
    /// The patterns of the routes, sorted.
    routes: Vec<&'static str>,
    /// The times of each route, by class.
    times: Vec<[Times<{ REQUEST_BOUNDS_US.len() + 1 }>; CLASSES.len()]>,
    waits: Times<{ WAIT_BOUNDS_US.len() + 1 }>,
}

/// A histogram of times.
#[derive(Debug)]
struct Times<const N: usize> {
    counts: [AtomicU64; N],
    sum_us: AtomicU64,
}

/// The contents of a histogram at one moment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen<const N: usize> {
    pub(crate) counts: [u64; N],
    pub(crate) sum_us: u64,
}

/// The times of the calls of one route and one class.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct OfRoute {
    pub(crate) route: &'static str,
    pub(crate) class: &'static str,
    pub(crate) times: Seen<{ REQUEST_BOUNDS_US.len() + 1 }>,
}

impl<const N: usize> Times<N> {
    fn new() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; N], sum_us: AtomicU64::new(0) }
    }

    fn count(&self, bounds_us: &[u64], took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counts[bounds_us.partition_point(|&bound| bound < us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    fn seen(&self) -> Seen<N> {
        let counts = std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed));
        Seen { counts, sum_us: self.sum_us.load(Ordering::Relaxed) }
    }
}

impl Requests {
    /// Empty histograms for these routes.
    pub(crate) fn of(routes: impl IntoIterator<Item = &'static str>) -> Self {
        let mut routes: Vec<_> = routes.into_iter().collect();
        routes.sort_unstable();
        routes.dedup();
        let times = routes.iter().map(|_| std::array::from_fn(|_| Times::new())).collect();
        Self { clock: SystemClock::new(), routes, times, waits: Times::new() }
    }

    /// The beginning of a wait, for [`waited`](Self::waited).
    pub(crate) fn wait_begins(&self) -> Monotonic {
        self.clock.now()
    }

    /// Counts a wait that began at `begun` and ends now.
    pub(crate) fn waited(&self, begun: Monotonic) -> Waited {
        let waited = self.clock.now().saturating_since(begun);
        self.waits.count(&WAIT_BOUNDS_US, waited);
        Waited(waited)
    }

    /// Counts an answered call of this route.
    pub(crate) fn count(&self, route: &str, status: u16, took: Duration) {
        let class = usize::from(status / 100).wrapping_sub(1);
        let of_route = self.routes.binary_search(&route).ok().and_then(|at| self.times.get(at));
        if let Some(times) = of_route.and_then(|classes| classes.get(class)) {
            times.count(&REQUEST_BOUNDS_US, took);
        }
    }

    /// The times of each route that had a call, by class. After the first call of a route, the classes of
    /// [`ALWAYS`] exist with the value 0. A rate ignores the first value of a series, and the first failures of a
    /// route must be visible.
    pub(crate) fn seen(&self) -> Vec<OfRoute> {
        let is_used = |seen: &OfRoute| seen.times.counts.iter().any(|&count| count > 0);
        let of = |(route, times): (&&'static str, &[Times<_>; CLASSES.len()])| {
            let route = *route;
            let of_class = |at: usize| OfRoute { route, class: CLASSES[at], times: times[at].seen() };
            let mut seen: Vec<_> = (0..CLASSES.len()).map(of_class).collect();
            let has_calls = seen.iter().any(is_used);
            seen.retain(|of| is_used(of) || has_calls && ALWAYS.contains(&of.class));
            seen
        };
        self.routes.iter().zip(&self.times).flat_map(of).collect()
    }

    /// The waits of leases.
    pub(crate) fn waits(&self) -> Seen<{ WAIT_BOUNDS_US.len() + 1 }> {
        self.waits.seen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_under_its_route_and_class() {
        let requests = Requests::of(["/v1/b", "/v1/a", "/v1/b"]);
        assert_eq!(requests.seen(), []);
        for (route, status, us) in [
            ("/v1/a", 200, 1_000),
            ("/v1/a", 201, 1_001),
            ("/v1/b", 503, 99_000_000),
            ("/v1/c", 200, 1),
            ("/v1/a", 42, 1),
        ] {
            requests.count(route, status, Duration::from_micros(us));
        }
        let seen = |route, class, counts, sum_us| OfRoute { route, class, times: Seen { counts, sum_us } };
        let none = [0; 8];
        let expected = [
            seen("/v1/a", "2xx", [1, 1, 0, 0, 0, 0, 0, 0], 2_001),
            seen("/v1/a", "4xx", none, 0),
            seen("/v1/a", "5xx", none, 0),
            seen("/v1/b", "2xx", none, 0),
            seen("/v1/b", "4xx", none, 0),
            seen("/v1/b", "5xx", [0, 0, 0, 0, 0, 0, 0, 1], 99_000_000),
        ];
        assert_eq!(requests.seen(), expected);
        assert_eq!(requests.waits().counts, [0; 7]);
    }
}
