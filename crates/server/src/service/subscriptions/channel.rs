//! The channels: one for each scope with subscribers.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::{EventTopic, JobsEvent, Problem};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::look::Look;
use super::moment::{Event, Jobs, Moment, Rows, Seen, Table, json};
use super::wheel::{Turn, WheelChannel};
use crate::access::producer::Producer;
use crate::access::refusal::Refusal;
use crate::access::tokens::Grant;
use crate::base::aside::aside;
use crate::events;
use crate::service::app::App;
use crate::service::permits::shares::Permit;

/// The time between two looks. Rows are made at every second look.
const PERIOD: Duration = Duration::from_secs(1);
const ROWS_EVERY: u64 = 2;
/// Looks take at most one part in this of the time of a channel: with very many queues they are rarer.
const SHARE: u32 = 50;
/// The longest pause. A look also waits for the disk, which is no work of the processor.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// All open subscriptions of a server.
#[derive(Default)]
pub(crate) struct Subscriptions {
    channels: Arc<Mutex<BTreeMap<Scope, Arc<Channel>>>>,
    pub(super) wheel: WheelChannel,
}

/// The queues of a subscriber, as its token has them; none: all queues.
type Scope = Vec<String>;

struct Channel {
    /// When the channel is dropped, so is this, and its subscriptions end.
    newest: watch::Sender<Arc<Moment>>,
    wanted: Arc<Wanted>,
}

/// The wishes of the subscribers of a channel.
#[derive(Default)]
struct Wanted {
    /// The rows, and how many subscribers want them.
    rows: Mutex<BTreeMap<Rows, usize>>,
    /// A subscriber came whose rows are not made yet.
    hurry: Notify,
}

/// A subscription. Dropping it ends it.
pub(crate) struct Subscription {
    /// `None`: the subscriber wants the wheel only.
    state: Option<StateSubscription>,
    /// `None`: the subscriber does not want the wheel.
    wheel: Option<watch::Receiver<Turn>>,
    _permit: Permit,
}

/// A subscription to the topics of one scope.
struct StateSubscription {
    newest: watch::Receiver<Arc<Moment>>,
    topics: Vec<EventTopic>,
    rows: WantedRows,
    seen: Seen,
}

/// Rows that are made as long as this lives.
struct WantedRows {
    wanted: Arc<Wanted>,
    rows: Rows,
}

impl Subscriptions {
    /// Subscribes a caller with this grant to some topics.
    ///
    /// # Errors
    /// - 403: the wheel has tasks of all queues, and the grant has a scope.
    /// - 429: too many subscriptions are open.
    pub(crate) fn subscribe(
        app: &Arc<App>,
        grant: &Grant,
        topics: Vec<EventTopic>,
        rows: Rows,
    ) -> Result<Subscription, Refusal> {
        let (wheel, state): (Vec<_>, Vec<_>) =
            topics.into_iter().partition(|topic| *topic == EventTopic::Wheel);
        if !wheel.is_empty() && !grant.is_unscoped() {
            return Err(Problem::forbidden_to_scoped().into());
        }
        let producer = grant.token().map_or(Producer::Local, Producer::Token);
        let permit = app.admission.slots().subscriptions.enter_now(producer)?;
        Ok(Subscription {
            state: (!state.is_empty()).then(|| StateSubscription::new(app, grant, state, rows)),
            wheel: (!wheel.is_empty()).then(|| WheelChannel::subscribe(app)),
            _permit: permit,
        })
    }
}

impl Subscription {
    /// Waits for events that the subscriber has not got. They may be none. `None`: the subscription has ended.
    pub(crate) async fn changed(&mut self) -> Option<Vec<Event>> {
        let Self { state, wheel, .. } = self;
        tokio::select! {
            events = StateSubscription::changed(state) => events,
            events = turned(wheel) => events,
        }
    }
}

/// Waits for the next turn; without a subscription to the wheel for ever.
async fn turned(wheel: &mut Option<watch::Receiver<Turn>>) -> Option<Vec<Event>> {
    let Some(wheel) = wheel else { return pending().await };
    wheel.changed().await.ok()?;
    let Turn { number, data } = wheel.borrow_and_update().clone();
    Some(vec![Event { topic: EventTopic::Wheel, number, data }])
}

impl StateSubscription {
    /// Subscribes to the channel of the grant's scope. The first subscriber opens it.
    fn new(app: &Arc<App>, grant: &Grant, topics: Vec<EventTopic>, rows: Rows) -> Self {
        let scope: Scope = grant.scopes().map(str::to_owned).collect();
        let mut channels = lock(&app.background.subscriptions().channels);
        let (wanted, mut newest) = match channels.get(&scope) {
            Some(channel) => (Arc::clone(&channel.wanted), channel.newest.subscribe()),
            None => {
                let (sender, newest) = watch::channel(Arc::<Moment>::default());
                let wanted = Arc::<Wanted>::default();
                let channel = Arc::new(Channel { newest: sender, wanted: Arc::clone(&wanted) });
                channels.insert(scope.clone(), Arc::clone(&channel));
                let task = Looking { app: Arc::clone(app), grant: grant.clone(), scope, channel };
                let supervisor = app.background.supervisor().clone();
                tokio::spawn(async move { supervisor.once("events", task.run()).await });
                (wanted, newest)
            }
        };
        drop(channels);
        // A moment that is there is news to this subscriber.
        if newest.borrow().number > 0 {
            newest.mark_changed();
        }
        Self { newest, topics, rows: WantedRows::new(wanted, rows), seen: Seen::default() }
    }

    /// Waits for events; without a subscription for ever.
    async fn changed(this: &mut Option<Self>) -> Option<Vec<Event>> {
        let Some(Self { newest, topics, rows, seen }) = this else { return pending().await };
        newest.changed().await.ok()?;
        let newest = Arc::clone(&newest.borrow_and_update());
        Some(newest.news(topics, &rows.rows, seen))
    }
}

impl WantedRows {
    fn new(wanted: Arc<Wanted>, rows: Rows) -> Self {
        let is_new = {
            let mut all = lock(&wanted.rows);
            let count = all.entry(rows.clone()).or_default();
            *count += 1;
            *count == 1
        };
        if is_new {
            wanted.hurry.notify_one();
        }
        Self { wanted, rows }
    }
}

impl Drop for WantedRows {
    fn drop(&mut self) {
        let mut all = lock(&self.wanted.rows);
        let left = all.get(&self.rows).map_or(0, |count| count - 1);
        match left {
            0 => all.remove(&self.rows),
            left => all.insert(self.rows.clone(), left),
        };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task of a channel. If it ends, in any way, so do its subscriptions.
struct Looking {
    app: Arc<App>,
    grant: Grant,
    scope: Scope,
    channel: Arc<Channel>,
}

impl Looking {
    /// Looks again and again, until the last subscriber has left or the queue cannot be read.
    async fn run(self) {
        while let Some(pause) = self.look_once().await {
            tokio::select! {
                () = self.app.background.stopping().wait() => return,
                // A pause that is cut short for a new subscriber is for all of them.
                _hurried = timeout(pause, self.hurried()) => {}
            }
        }
    }

    /// Makes the next moment, and returns the pause before the one after it.
    async fn look_once(&self) -> Option<Duration> {
        if self.is_left() {
            return None;
        }
        let begun = Instant::now();
        let look = match Look::at(&self.app, &self.grant).await {
            Ok(look) => look,
            Err(why) => {
                tracing::debug!(event = events::CALL_FAILED, why, "the subscriptions to events end");
                return None;
            }
        };
        let before = Arc::clone(&self.channel.newest.borrow());
        let wanted: Vec<Rows> = lock(&self.channel.wanted.rows).keys().cloned().collect();
        // A thousand rows are sorted and written, so another thread does it.
        let next = aside(move || next(look, &before, &wanted)).await.ok()?;
        self.channel.newest.send_replace(Arc::new(next));
        Some((begun.elapsed() * SHARE).clamp(PERIOD, PAUSE_MAX))
    }

    /// Waits for a subscriber whose rows the newest moment does not have.
    async fn hurried(&self) {
        let lacks_rows = || {
            let newest = Arc::clone(&self.channel.newest.borrow());
            lock(&self.channel.wanted.rows).keys().any(|rows| !newest.rows.contains_key(rows))
        };
        while !lacks_rows() {
            self.channel.wanted.hurry.notified().await;
        }
    }

    /// Whether the last subscriber has left. The channel is taken out of the table then, so that the next subscriber
    /// opens another one.
    fn is_left(&self) -> bool {
        let mut channels = lock(&self.app.background.subscriptions().channels);
        let is_left = self.channel.newest.receiver_count() == 0;
        if is_left {
            channels.remove(&self.scope);
        }
        is_left
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        let mut channels = lock(&self.app.background.subscriptions().channels);
        if channels.get(&self.scope).is_some_and(|channel| Arc::ptr_eq(channel, &self.channel)) {
            channels.remove(&self.scope);
        }
    }
}

/// The moment after `before`.
fn next(look: Look, before: &Moment, wanted: &[Rows]) -> Moment {
    let number = before.number + 1;
    let Look { now, queues, stats, jobs } = look;
    let rows = wanted.iter().map(|rows| {
        let last = before.rows.get(rows);
        let table = match last {
            Some(table) if !number.is_multiple_of(ROWS_EVERY) => Arc::clone(table),
            _ => Arc::new(Table::new(number, now, &queues, rows, last.map(Arc::as_ref))),
        };
        (rows.clone(), table)
    });
    let data = json(&JobsEvent { jobs });
    let jobs = match data == before.jobs.data {
        true => before.jobs.clone(),
        false => Jobs { number, data },
    };
    Moment { number, stats: json(&stats), jobs, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::QueueName;
    use tokio::time::sleep;

    use super::*;

    fn all() -> Rows {
        Rows::Beginning(String::new())
    }

    fn subscribe(app: &Arc<App>, topics: &[EventTopic]) -> Subscription {
        Subscriptions::subscribe(app, &Grant::everything(), topics.to_vec(), all()).expect("a permit")
    }

    /// Lets time pass until the check is true. The thread of the queue is not on the clock of the test.
    async fn until(what: &str, is_so: impl Fn() -> bool) {
        let begun = std::time::Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never came true that {what}");
            sleep(PERIOD).await;
        }
    }

    async fn topics(subscription: &mut Subscription) -> Vec<&'static str> {
        let news = subscription.changed().await.expect("it goes on");
        news.iter().map(|event| event.topic.name()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn subscribers_of_a_scope_share_a_channel_that_ends_with_the_last() {
        let app = Arc::new(App::in_memory());
        let (mut first, mut second) =
            (subscribe(&app, EventTopic::DEFAULT), subscribe(&app, &[EventTopic::Stats]));
        assert_eq!(topics(&mut first).await, ["stats", "queues", "jobs"]);
        assert_eq!(topics(&mut second).await, ["stats"]);
        assert_eq!(lock(&app.background.subscriptions().channels).len(), 1);
        drop(first);
        assert_eq!(topics(&mut second).await, ["stats"], "it goes on for the other");
        drop(second);
        until("the channel is gone", || lock(&app.background.subscriptions().channels).is_empty()).await;
        let mut third = subscribe(&app, &[EventTopic::Jobs]);
        assert_eq!(topics(&mut third).await, ["jobs"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscriber_that_comes_later_is_told_at_once() {
        let app = Arc::new(App::in_memory());
        let mut first = subscribe(&app, &[EventTopic::Stats]);
        topics(&mut first).await;
        let queue = QueueName::new("q").expect("a name");
        let begun = Instant::now();
        let mut of_one =
            Subscriptions::subscribe(&app, &Grant::everything(), vec![EventTopic::Queues], Rows::Of(queue))
                .expect("a permit");
        let mut news = of_one.changed().await.expect("it goes on");
        while news.is_empty() {
            // A moment that was there before has no rows for this one.
            news = of_one.changed().await.expect("it goes on");
        }
        assert!(begun.elapsed() < PERIOD, "{:?}", begun.elapsed());
        assert_eq!(news.iter().map(|event| event.topic).collect::<Vec<_>>(), [EventTopic::Queues]);
        // The rows of this one are made already, so it does not wait for the next look.
        let begun = Instant::now();
        let mut like_the_first = subscribe(&app, &[EventTopic::Stats]);
        assert_eq!(topics(&mut like_the_first).await, ["stats"]);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_subscriber_gets_the_newest_state_only() {
        let app = Arc::new(App::in_memory());
        let mut subscription = subscribe(&app, &[EventTopic::Stats]);
        let moments = || {
            lock(&app.background.subscriptions().channels)
                .values()
                .map(|one| one.newest.borrow().number)
                .sum::<u64>()
        };
        until("there were ten moments", || moments() >= 10).await;
        let news = subscription.changed().await.expect("it goes on");
        assert!(news.len() == 1 && news[0].number >= 10, "{news:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wheel_is_looked_at_four_times_a_second_and_only_while_somebody_wants_it() {
        let app = Arc::new(App::in_memory());
        let (mut first, mut second) =
            (subscribe(&app, &[EventTopic::Wheel]), subscribe(&app, &EventTopic::ALL));
        assert_eq!(topics(&mut first).await, ["wheel"]);
        let begun = Instant::now();
        for _ in 0..8 {
            assert_eq!(topics(&mut first).await, ["wheel"]);
        }
        // The thread of the queue is not on the clock of the test, so it may have been more.
        assert!(begun.elapsed() >= 8 * Duration::from_millis(250), "{:?}", begun.elapsed());
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 4 {
            seen.extend(topics(&mut second).await);
        }
        assert_eq!(
            lock(&app.background.subscriptions().channels).len(),
            1,
            "the first has no subscription to the state"
        );
        drop((first, second));
        until("the channel of the wheel is gone", || app.background.subscriptions().wheel.is_closed()).await;
        assert_eq!(topics(&mut subscribe(&app, &[EventTopic::Wheel])).await, ["wheel"]);
    }

    #[tokio::test]
    async fn a_token_with_a_scope_does_not_see_the_wheel() {
        let app = Arc::new(App::in_memory());
        let grant = crate::access::tokens::Tokens::parse("scoped scope=shop").expect("tokens");
        let grant = grant.grant(b"scoped").expect("it is known");
        let subscribed = Subscriptions::subscribe(&app, &grant, vec![EventTopic::Wheel], all());
        let refused = subscribed.err().expect("a refusal");
        assert_eq!(refused.problem().status, 403);
        assert!(app.background.subscriptions().wheel.is_closed());
    }
}
