//! The checks of a call before the queue: who calls, whether there is room, and whether tasks are taken.

use std::sync::Arc;

use tickwheel_api::Levels;
use tokio::sync::Mutex;

use crate::access::authorizer::Authorizer;
use crate::service::drain::Drain;
use crate::service::part::part;
use crate::service::permits::limits::Limits;
use crate::service::permits::slots::Slots;

part! {
    /// The checks and the permits of calls.
    Admission {
        pub(crate) authorizer: Arc<Authorizer>,
        pub(crate) slots: Slots,
        /// Whether the server refuses new tasks.
        pub(crate) drain: Drain,
        /// The delay of each delay level.
        pub(crate) levels: Levels,
        /// Whether payloads are taken that some JSON readers reject.
        pub(crate) lax_json: bool,
        /// The lock is held while the settings of a queue change.
        pub(crate) settings: Mutex<()>,
        /// The lock is held while a forecast is made.
        pub(super) forecasts: Arc<Mutex<()>>,
        /// The lock is held while dead tasks are grouped.
        pub(super) dead_groups: Mutex<()>,
    }
}

impl Admission {
    pub(crate) fn new(authorizer: Authorizer, levels: Levels, lax_json: bool, limits: &Limits) -> Self {
        let (drain, settings, forecasts, dead_groups) = Default::default();
        let (authorizer, slots) = (Arc::new(authorizer), Slots::new(limits));
        Self { authorizer, slots, drain, levels, lax_json, settings, forecasts, dead_groups }
    }

    /// Reads a body and checks its payloads with `check`, unless the server takes any JSON.
    pub(crate) fn portable<T, E>(
        &self,
        read: impl FnOnce(&[u8]) -> Result<T, E> + Send + 'static,
        check: impl FnOnce(&T) -> Result<(), E> + Send + 'static,
    ) -> impl FnOnce(&[u8]) -> Result<T, E> + Send + 'static {
        let lax = self.lax_json;
        move |bytes: &[u8]| {
            let found = read(bytes)?;
            if !lax {
                check(&found)?;
            }
            Ok(found)
        }
    }
}
