//! The channel of the wheel: one for all subscribers, and none without a subscriber.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use tickwheel_api::{WheelEvent, WheelLevel};
use tickwheel_queue::{Ring, WheelView};
use tokio::sync::watch;
use tokio::time::sleep;

use super::moment::json;
use crate::events;
use crate::service::app::App;

/// The time between two looks. A look takes some microseconds of the queue, whatever is in the wheel.
const PERIOD: Duration = Duration::from_millis(250);

/// The wheel at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// From 1; 0 before the first look.
    pub(super) number: u64,
    /// The data of the event.
    pub(super) data: Bytes,
}

/// The channel, if it is open. Its task owns the sender: when the task ends, in any way, so do the subscriptions.
#[derive(Debug, Default)]
pub(super) struct WheelChannel(Mutex<Weak<watch::Sender<Turn>>>);

impl WheelChannel {
    /// Subscribes to the wheel. The first subscriber opens the channel.
    pub(super) fn subscribe(app: &Arc<App>) -> watch::Receiver<Turn> {
        let this = &app.background.subscriptions().wheel;
        let mut channel = this.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = channel.upgrade() {
            let mut turns = open.subscribe();
            // A turn that is there is news to this subscriber.
            if turns.borrow().number > 0 {
                turns.mark_changed();
            }
            return turns;
        }
        let (sender, turns) = watch::channel(Turn::default());
        let sender = Arc::new(sender);
        *channel = Arc::downgrade(&sender);
        let (supervisor, app) = (app.background.supervisor().clone(), Arc::clone(app));
        tokio::spawn(async move { supervisor.once("wheel", look_on(app, sender)).await });
        turns
    }

    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).strong_count() == 0
    }

    /// Closes the channel if the last subscriber has left. The next subscriber opens another one.
    fn is_left(&self, sender: &watch::Sender<Turn>) -> bool {
        let mut channel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_left = sender.receiver_count() == 0;
        if is_left {
            *channel = Weak::new();
        }
        is_left
    }
}

/// Looks again and again, until the last subscriber has left or the queue cannot be read.
async fn look_on(app: Arc<App>, sender: Arc<watch::Sender<Turn>>) {
    while !app.background.subscriptions().wheel.is_left(&sender) {
        let wheel = match app.queue.wheel().await {
            Ok(wheel) => wheel,
            Err(why) => {
                let why = why.to_string();
                tracing::debug!(event = events::CALL_FAILED, why, "the subscriptions to the wheel end");
                return;
            }
        };
        let number = sender.borrow().number + 1;
        sender.send_replace(Turn { number, data: json(&event(&wheel)) });
        tokio::select! {
            () = app.background.stopping().wait() => return,
            () = sleep(PERIOD) => {}
        }
    }
}

fn event(wheel: &WheelView) -> WheelEvent {
    WheelEvent {
        now_ms: wheel.now.as_ms(),
        tasks: wheel.tasks,
        levels: wheel.rings.iter().map(level).collect(),
    }
}

fn level(ring: &Ring) -> WheelLevel {
    let bytes = ring.occupied.iter().flat_map(|word| word.to_le_bytes());
    WheelLevel {
        slot_ms: ring.slot_ticks,
        slots: Ring::SLOTS as u64,
        hand: ring.hand.into(),
        occupied: bytes.map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_of_the_first_byte_is_slot_0() {
        let ring = Ring { slot_ticks: 256, hand: 3, occupied: [1 << 9 | 1, 0, 0, 1 << 63] };
        let WheelLevel { slot_ms, slots, hand, occupied } = level(&ring);
        assert_eq!((slot_ms, slots, hand), (256, 256, 3));
        assert_eq!(occupied, format!("0102{:0<58}80", ""));
    }
}
