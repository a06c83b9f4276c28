//! What every handler shares.

use std::sync::Arc;

use tickwheel_queue::Queue;

use crate::stopping::Stopping;

/// The queue, and the signal that ends every wait. Handlers hold no other state.
pub(crate) struct App {
    pub(crate) queue: Queue,
    pub(crate) stopping: Stopping,
}

/// As the handlers get it.
pub(crate) type Shared = axum::extract::State<Arc<App>>;
