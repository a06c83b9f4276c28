//! Connections and targets of beanstalkd, made from their settings.

use std::sync::Arc;

use tickwheel_api::BadRequest;

use super::connection::BeanstalkConnection;
use super::plan::BeanstalkPlan;
use super::sender::BeanstalkSink;
use crate::broker::{Connect, Link, Opened, Settings};
use crate::sink::Sink;

/// The default priority of jobs.
const PRIORITY: u32 = 1_024;
/// The default time for which a job is reserved (s).
const TTR_S: u32 = 60;

impl Connect for BeanstalkConnection {
    fn of(opened: &Opened<'_>) -> Result<Self, String> {
        // A connection has one address: see `faults` of the kind.
        Ok(Self { endpoint: opened.endpoints()?.swap_remove(0), tls: opened.tls()? })
    }

    fn sink(link: Arc<Link<Self>>, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest> {
        let target = settings.target;
        let ttr_s = target.ttr_ms.map_or(TTR_S, |ms| u32::try_from(ms.div_ceil(1_000)).unwrap_or(u32::MAX));
        let (tube, priority) = (target.tube.as_deref().unwrap_or_default(), target.pri.unwrap_or(PRIORITY));
        let plan = BeanstalkPlan::new(tube, priority, ttr_s, settings.form()?, settings.timeout);
        Ok(Arc::new(BeanstalkSink::new(link, plan.map_err(Settings::refused)?)))
    }
}
