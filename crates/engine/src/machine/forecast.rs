//! Forecasts: how many tasks fall due when. The store counts them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Engine;
use crate::answer::{Answer, ForecastView, Unavailable};
use crate::command::{FORECAST_BUCKETS_MAX, Forecast};
use crate::input::{CallId, Effect};
use crate::seam::{Census, Request, RequestId};
use crate::time::{Now, Seq, Timestamp};

/// Forecasts under way.
#[derive(Debug, Default)]
pub(super) struct Forecasts {
    /// Wait until the store has all that had been applied when they came.
    waiting: VecDeque<(Seq, CallId, Forecast)>,
    /// And where each begins.
    asked: BTreeMap<RequestId, (CallId, Timestamp)>,
}

impl Forecasts {
    pub(super) fn ask(&mut self, applied: Seq, call: CallId, forecast: Forecast) {
        self.waiting.push_back((applied, call, forecast));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty()
    }

    pub(super) fn has_asked(&self, request: RequestId) -> bool {
        self.asked.contains_key(&request)
    }

    pub(super) fn oldest(&self) -> Option<RequestId> {
        self.asked.first_key_value().map(|(&id, _)| id)
    }
}

impl Engine {
    /// Asks the store for the forecasts that it can answer by now.
    pub(super) fn ask_forecasts(&mut self, now: Now, out: &mut Vec<Effect>) {
        let (durable, failed) = (self.durable, self.failed.is_some());
        while let Some((_, call, forecast)) =
            self.forecasts.waiting.pop_front_if(|(seq, ..)| *seq <= durable || failed)
        {
            let Forecast { queue, width_ms, buckets } = forecast;
            let width_ms = width_ms.max(1);
            let into = now.wall.as_tick() % width_ms;
            let from = Timestamp::from_ms(now.wall.as_ms().saturating_sub_unsigned(into)).unwrap_or_default();
            let buckets = buckets.min(FORECAST_BUCKETS_MAX);
            let census = Census { queue, after: now.wall, from, width_ms, buckets };
            let id = self.request(Request::Count(census), out);
            self.forecasts.asked.insert(id, (call, from));
        }
    }

    pub(super) fn counted(&mut self, now: Now, request: RequestId, counts: Vec<u64>) {
        let (call, from) =
            self.forecasts.asked.remove(&request).expect("the counts answer a forecast under way");
        let view = ForecastView { from, counts, as_of: self.applied };
        self.answer(call, Answer::Forecast(Ok(view)));
        self.retire(now);
    }

    /// The store failed to answer this forecast.
    pub(super) fn count_failed(&mut self, now: Now, request: RequestId, why: &Arc<str>) {
        let (call, _) =
            self.forecasts.asked.remove(&request).expect("the failure answers a forecast under way");
        self.answer(call, Answer::Forecast(Err(Unavailable::ReadOnly { why: Arc::clone(why) })));
        self.retire(now);
    }
}
