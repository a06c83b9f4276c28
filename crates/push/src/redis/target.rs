//! Connections and targets of Redis, made from their settings.

use std::sync::Arc;

use tickwheel_api::BadRequest;

use super::connection::RedisConnection;
use super::plan::{ListEnd, RedisPlan, Structure};
use super::sender::RedisSink;
use crate::broker::{Connect, Link, Opened, Settings};
use crate::sink::Sink;

impl Connect for RedisConnection {
    fn of(opened: &Opened<'_>) -> Result<Self, String> {
        let plan = opened.plan;
        let database = plan.member("database").unwrap_or("0");
        let bad = || format!("`database` is `{database}` and not a number; write for example 0");
        Ok(Self {
            endpoints: opened.endpoints()?,
            tls: opened.tls()?,
            user: plan.user.clone(),
            password: plan.password.as_ref().map(|secret| secret.0.clone()),
            database: database.parse().map_err(|_| bad())?,
        })
    }

    fn sink(link: Arc<Link<Self>>, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest> {
        let target = settings.target;
        let structure = match (&target.stream, &target.list) {
            (Some(key), _) => Structure::Stream { key: key.clone(), maxlen: target.maxlen },
            (None, list) => Structure::List {
                key: list.clone().unwrap_or_default(),
                end: target.push.unwrap_or(ListEnd::Right),
            },
        };
        let wait = u32::try_from(target.wait.unwrap_or(0)).unwrap_or(u32::MAX);
        let plan = RedisPlan::new(structure, settings.form()?, &settings.headers(), wait, settings.timeout);
        Ok(Arc::new(RedisSink::new(link, plan.map_err(Settings::refused)?)))
    }
}
