//! [`Forecasts`]: calls that ask how many tasks fall due in each bucket of time. The store counts the tasks, in parts.

use std::collections::{BTreeMap, VecDeque};

use super::Reads;
use crate::calls::{Answer, FORECAST_BUCKETS_MAX, Forecast, ForecastView, Unavailable};
use crate::input::{CallId, Effect};
use crate::ledger::Ledger;
use crate::seam::{DueHistogram, Grid, Request, RequestId};
use crate::time::{Now, Seq, Timestamp};

/// The forecasts that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Forecasts {
    /// Forecasts that the store was not asked for yet. Each waits until the change with its `Seq` is durable or the store has failed. This
    /// change was the last one applied when the call came.
    waiting: VecDeque<(Seq, CallId, Forecast)>,
    asked: BTreeMap<RequestId, Counting>,
}

/// A forecast that the store is counting, in one or more parts.
#[derive(Debug)]
struct Counting {
    call: CallId,
    /// The tasks that are still to be counted.
    left: DueHistogram,
    counts: Vec<u64>,
    as_of: Seq,
}

impl Forecasts {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty()
    }
}

impl Reads {
    /// Lets a forecast wait until all changes that have been applied by now are durable, or the store has failed.
    pub(crate) fn forecast(&mut self, ledger: &Ledger, call: CallId, forecast: Forecast) {
        self.forecasts.waiting.push_back((ledger.applied(), call, forecast));
    }

    /// Takes out the forecast that `request` asked for, because the store failed to count it. Returns the call; `None`: the request did not
    /// ask for a forecast.
    pub(crate) fn take_forecast(&mut self, request: RequestId) -> Option<CallId> {
        self.forecasts.asked.remove(&request).map(|counting| counting.call)
    }

    /// Asks the store for each waiting forecast whose `Seq` is durable. Once the store has failed, asks for all waiting forecasts.
    pub(crate) fn ask_forecasts(&mut self, ledger: &mut Ledger, now: Now, out: &mut Vec<Effect>) {
        let (durable, failed) = (ledger.durable(), ledger.has_failed());
        while let Some((_, call, forecast)) =
            self.forecasts.waiting.pop_front_if(|(seq, ..)| *seq <= durable || failed)
        {
            let Forecast { queue, from, grid } = forecast;
            let from = from.unwrap_or(now.wall);
            let (from, grid) = match grid {
                Grid::Even { width_ms, buckets } => {
                    let width_ms = width_ms.max(1);
                    let begin = from.as_ms().saturating_sub_unsigned(from.as_tick() % width_ms);
                    let buckets = buckets.min(FORECAST_BUCKETS_MAX);
                    (Timestamp::from_ms(begin).unwrap_or_default(), Grid::Even { width_ms, buckets })
                }
                Grid::Ends(ends) if ends.len() > FORECAST_BUCKETS_MAX => {
                    (from, Grid::Ends(ends[..FORECAST_BUCKETS_MAX].into()))
                }
                grid @ Grid::Ends(_) => (from, grid),
            };
            let counts = vec![0; grid.buckets()];
            let left = DueHistogram { queue, after: now.wall, from, grid };
            let counting = Counting { call, left, counts, as_of: durable };
            self.count_on(ledger, counting, out);
        }
    }

    fn count_on(&mut self, ledger: &mut Ledger, counting: Counting, out: &mut Vec<Effect>) {
        let id = ledger.request(Request::Count(counting.left.clone()), out);
        self.forecasts.asked.insert(id, counting);
    }

    /// Adds the counts of one part to the sums. Then asks for the next part, or answers the call. `counted`: the instant up to which tasks
    /// are counted; `None`: all tasks of the forecast are counted.
    pub(crate) fn counted(
        &mut self,
        ledger: &mut Ledger,
        request: RequestId,
        part: Vec<u64>,
        counted: Option<Timestamp>,
        out: &mut Vec<Effect>,
    ) {
        let mut counting =
            self.forecasts.asked.remove(&request).expect("the counts answer a forecast under way");
        counting.counts.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
        match counted {
            Some(counted) if !ledger.is_stopping() => {
                counting.left.after = counted;
                self.count_on(ledger, counting, out);
            }
            // The engine is stopping. A long forecast must not delay the stop, so the store counts no further part.
            Some(_) => ledger.answer(counting.call, Answer::Forecast(Err(Unavailable::Closed))),
            None => {
                let Counting { call, left, counts, as_of } = counting;
                ledger.answer(call, Answer::Forecast(Ok(ForecastView { from: left.from, counts, as_of })));
            }
        }
    }
}
