//! Targets at tubes of beanstalkd.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{BadRequest, TargetBody};
use tickwheel_push::Sink;
use tickwheel_push::beanstalk::{BeanstalkConnection, BeanstalkPlan, BeanstalkSink};
use tickwheel_push::broker::{Link, LinkState};

use super::broker::{Broker, Opened, form, refused};

/// The default priority of jobs.
const PRIORITY: u32 = 1_024;
/// The default time for which a job is reserved (s).
const TTR_S: u32 = 60;

/// A connection to beanstalkd.
pub(super) struct BeanstalkBroker(Arc<Link<BeanstalkConnection>>);

impl BeanstalkBroker {
    pub(super) fn open(opened: &Opened<'_>) -> Result<Self, String> {
        // A connection has one address: see `ConnectionPlan::faults`.
        let endpoint = opened.endpoints()?.swap_remove(0);
        Ok(Self(Arc::new(Link::new(BeanstalkConnection { endpoint, tls: opened.tls()? }))))
    }
}

impl Broker for BeanstalkBroker {
    fn sink(&self, target: &TargetBody, timeout: Duration) -> Result<Arc<dyn Sink>, BadRequest> {
        let ttr_s = target.ttr_ms.map_or(TTR_S, |ms| u32::try_from(ms.div_ceil(1_000)).unwrap_or(u32::MAX));
        let tube = target.tube.as_deref().unwrap_or_default();
        let plan = BeanstalkPlan::new(tube, target.pri.unwrap_or(PRIORITY), ttr_s, form(target)?, timeout);
        Ok(Arc::new(BeanstalkSink::new(Arc::clone(&self.0), plan.map_err(refused)?)))
    }

    fn state(&self) -> LinkState {
        self.0.state()
    }
}
