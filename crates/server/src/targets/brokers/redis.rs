//! Targets at streams and lists of Redis.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{BadRequest, ListEnd, TargetBody};
use tickwheel_push::Sink;
use tickwheel_push::broker::{Link, LinkState};
use tickwheel_push::redis::{self, RedisConnection, RedisPlan, RedisSink, Structure};

use super::broker::{Broker, Opened, form, headers, refused};

/// A connection to Redis.
pub(super) struct RedisBroker(Arc<Link<RedisConnection>>);

impl RedisBroker {
    pub(super) fn open(opened: &Opened<'_>) -> Result<Self, String> {
        let plan = opened.plan;
        let connection = RedisConnection {
            endpoints: opened.endpoints()?,
            tls: opened.tls()?,
            user: plan.user.clone(),
            password: plan.password.as_ref().map(|secret| secret.0.clone()),
            database: plan.database.unwrap_or(0),
        };
        Ok(Self(Arc::new(Link::new(connection))))
    }
}

impl Broker for RedisBroker {
    fn sink(&self, target: &TargetBody, timeout: Duration) -> Result<Arc<dyn Sink>, BadRequest> {
        let structure = match (&target.stream, &target.list) {
            (Some(key), _) => Structure::Stream { key: key.clone(), maxlen: target.maxlen },
            (None, list) => {
                let end = match target.push {
                    None | Some(ListEnd::Right) => redis::ListEnd::Right,
                    Some(ListEnd::Left) => redis::ListEnd::Left,
                };
                Structure::List { key: list.clone().unwrap_or_default(), end }
            }
        };
        let wait = target.wait.unwrap_or(0);
        let wait = u32::try_from(wait).unwrap_or(u32::MAX);
        let plan =
            RedisPlan::new(structure, form(target)?, &headers(target), wait, timeout).map_err(refused)?;
        Ok(Arc::new(RedisSink::new(Arc::clone(&self.0), plan)))
    }

    fn state(&self) -> LinkState {
        self.0.state()
    }
}
