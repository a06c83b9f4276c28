//! [`Link`]: a named connection to a broker, which all targets with that name share.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::live::Live;
use crate::outcome::Outcome;

/// The time in which a connection must be open and ready.
pub(super) const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after the first attempt that failed. It doubles with each that follows.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A connection that is being opened.
pub type Dialing<'a, L> = Pin<Box<dyn Future<Output = Result<L, String>> + Send + 'a>>;

/// Opens connections to one broker.
pub trait Dial: Send + Sync + 'static {
    /// An open connection.
    type Live: Send + Sync + 'static;

    /// Opens a connection. The error is a reason for operators, without a secret.
    fn dial(&self) -> Dialing<'_, Self::Live>;

    /// Whether a connection still works, as far as is known without asking the broker.
    fn is_alive(live: &Self::Live) -> bool;
}

/// A named connection to a broker. It is opened when it is first needed, and again after it was lost: at once, then after 100 ms, and after
/// twice the time of before up to 30 s, each up to a quarter shorter by chance.
pub struct Link<D: Dial> {
    dial: D,
    live: Mutex<State<Live<D::Live>>>,
    shown: StdMutex<Shown<Live<D::Live>>>,
}

struct State<L> {
    live: Option<Arc<L>>,
    /// The pause after the next attempt that fails.
    pause: Duration,
    /// There is no attempt before this instant.
    not_before: Option<Instant>,
    /// The reason of the last failure.
    reason: Arc<str>,
}

struct Shown<L> {
    live: Option<Arc<L>>,
    /// When the connection was opened, or since when it cannot be opened.
    since: Instant,
    reason: Option<Arc<str>>,
}

/// The state of a link as others see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// No message has needed it yet, or none has needed it since it was lost.
    Unused,
    /// The connection is open since this time.
    Up(Duration),
    /// The connection was lost or could not be opened. The time since the first failure, and the reason of the last one.
    Down(Duration, Arc<str>),
}

impl<D: Dial> Link<D> {
    /// Returns a link. Opens no connection yet.
    #[must_use]
    pub fn new(dial: D) -> Self {
        let state = State { live: None, pause: PAUSE_MIN, not_before: None, reason: "".into() };
        let shown = Shown { live: None, since: Instant::now(), reason: None };
        Self { dial, live: Mutex::new(state), shown: StdMutex::new(shown) }
    }

    /// Returns the broker to which this link leads.
    pub fn dial(&self) -> &D {
        &self.dial
    }

    /// Returns the open connection, and opens one first if there is none.
    ///
    /// # Errors
    /// The outcome of a message that cannot be sent now. It is a failure of the target, so that no attempt counts, and the breaker opens until
    /// the next attempt to connect.
    pub async fn live(&self) -> Result<Arc<Live<D::Live>>, Outcome> {
        let mut state = self.live.lock().await;
        if let Some(live) = state.live.as_ref().filter(|live| is_alive::<D>(live)) {
            return Ok(Arc::clone(live));
        }
        if let Some(old) = state.live.take() {
            let how = if old.is_left() { "left after a failure" } else { "lost" };
            self.show_down(format!("the connection was {how}").into());
        }
        let now = Instant::now();
        if let Some(wait) =
            state.not_before.and_then(|at| at.checked_duration_since(now)).filter(|wait| !wait.is_zero())
        {
            return Err(down(&state.reason, wait));
        }
        let dialed = match timeout(DIAL_TIMEOUT, self.dial.dial()).await {
            Ok(dialed) => dialed,
            Err(_) => Err(format!("there was no connection within {} s", DIAL_TIMEOUT.as_secs())),
        };
        match dialed {
            Ok(live) => {
                let live = Arc::new(Live::new(live));
                *state = State {
                    live: Some(Arc::clone(&live)),
                    pause: PAUSE_MIN,
                    not_before: None,
                    reason: "".into(),
                };
                let shown = Shown { live: Some(Arc::clone(&live)), since: Instant::now(), reason: None };
                *self.shown() = shown;
                Ok(live)
            }
            Err(reason) => {
                let pause = shortened(state.pause);
                state.pause = (state.pause * 2).min(PAUSE_MAX);
                state.not_before = Some(Instant::now() + pause);
                state.reason = reason.into();
                self.show_down(Arc::clone(&state.reason));
                Err(down(&state.reason, pause))
            }
        }
    }

    /// Returns the state as others see it. Never waits.
    pub fn state(&self) -> LinkState {
        let shown = self.shown();
        let age = shown.since.elapsed();
        match (&shown.live, &shown.reason) {
            (Some(live), _) if is_alive::<D>(live) => LinkState::Up(age),
            // The next message shows if the broker can be reached.
            (Some(_), _) => LinkState::Unused,
            (None, Some(reason)) => LinkState::Down(age, Arc::clone(reason)),
            (None, None) => LinkState::Unused,
        }
    }

    fn show_down(&self, reason: Arc<str>) {
        let mut shown = self.shown();
        // Later failures do not change since when it is down.
        let since = if shown.reason.is_some() { shown.since } else { Instant::now() };
        *shown = Shown { live: None, since, reason: Some(reason) };
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Shown<Live<D::Live>>> {
        // Each change is one step, so that a panic leaves nothing half done.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_alive<D: Dial>(live: &Live<D::Live>) -> bool {
    !live.is_left() && D::is_alive(live)
}

fn down(reason: &str, wait: Duration) -> Outcome {
    // Rounded up, so that the breaker does not end before the wait.
    let open_ms = u64::try_from(wait.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
    Outcome::TargetFailed { reason: reason.into(), open_ms: Some(open_ms), asked: false }
}

/// Returns a pause that is up to a quarter shorter, so that many servers do not come back to a broker at one instant.
fn shortened(pause: Duration) -> Duration {
    use ring::rand::SecureRandom as _;
    let mut byte = [0];
    // Without randomness the pause is whole.
    let _ = ring::rand::SystemRandom::new().fill(&mut byte);
    pause - pause * u32::from(byte[0]) / (4 * 256)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    /// A broker that is there or not.
    #[derive(Default)]
    struct Broker {
        is_up: Arc<AtomicBool>,
        /// Whether it takes connections and says nothing.
        hangs: AtomicBool,
        dialed: AtomicU32,
    }

    impl Dial for Broker {
        type Live = Arc<AtomicBool>;

        fn dial(&self) -> Dialing<'_, Self::Live> {
            self.dialed.fetch_add(1, Ordering::Relaxed);
            Box::pin(async {
                if self.hangs.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                if self.is_up.load(Ordering::Relaxed) {
                    Ok(Arc::clone(&self.is_up))
                } else {
                    Err("connection refused".to_owned())
                }
            })
        }

        fn is_alive(live: &Self::Live) -> bool {
            live.load(Ordering::Relaxed)
        }
    }

    fn open_ms(link: Result<Arc<Live<<Broker as Dial>::Live>>, Outcome>) -> u64 {
        match link {
            Err(Outcome::TargetFailed { open_ms: Some(open_ms), .. }) => open_ms,
            other => panic!("the broker is down, and the link said {other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_is_down_is_asked_less_and_less_often() {
        let link = Link::new(Broker::default());
        assert_eq!(link.state(), LinkState::Unused);
        let began = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            let wait = open_ms(link.live().await);
            assert!(open_ms(link.live().await) <= wait, "nothing is tried before the time is over");
            pauses.push(wait);
            tokio::time::advance(Duration::from_millis(wait + 1)).await;
        }
        assert_eq!(link.dial.dialed.load(Ordering::Relaxed), 12);
        assert!((75..=100).contains(&pauses[0]), "{pauses:?}");
        assert!((300..=400).contains(&pauses[2]), "{pauses:?}");
        assert!((22_500..=30_000).contains(&pauses[11]), "{pauses:?}");
        assert_eq!(link.state(), LinkState::Down(began.elapsed(), "connection refused".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_is_opened_again_at_once() {
        let link = Link::new(Broker::default());
        link.dial.is_up.store(true, Ordering::Relaxed);
        link.live().await.expect("the broker is up");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(link.state(), LinkState::Up(Duration::from_secs(5)));
        link.live().await.expect("the connection is kept");
        assert_eq!(link.dial.dialed.load(Ordering::Relaxed), 1);
        link.dial.is_up.store(false, Ordering::Relaxed);
        assert_eq!(link.state(), LinkState::Unused, "no message has tried it");
        let wait = open_ms(link.live().await);
        assert!(matches!(link.state(), LinkState::Down(..)));
        assert!(wait <= 100, "{wait}");
        tokio::time::advance(Duration::from_millis(wait)).await;
        link.dial.is_up.store(true, Ordering::Relaxed);
        link.live().await.expect("the broker is back");
        assert_eq!(link.state(), LinkState::Up(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_left_is_not_called_lost() {
        let link = Arc::new(Link::new(Broker::default()));
        link.dial.is_up.store(true, Ordering::Relaxed);
        link.live().await.expect("the broker is up").leave();
        link.dial.hangs.store(true, Ordering::Relaxed);
        let opening = tokio::spawn({
            let link = Arc::clone(&link);
            async move { link.live().await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert_eq!(
            link.state(),
            LinkState::Down(Duration::ZERO, "the connection was left after a failure".into())
        );
        opening.abort();
    }
}
