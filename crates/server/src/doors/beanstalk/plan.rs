//! The configured door for clients of beanstalkd, before it opens.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::config::Beanstalk;
use super::counters::Counters;
use super::door::BeanstalkDoor;
use crate::base::pieces::Pieces;
use crate::doors::plan;
use crate::listen::door::Door;
use crate::listen::socket::ListenAt;
use crate::listen::tls::{Tls, TlsError};
use crate::service::app::App;
use crate::service::permits::limits::Limits;
use crate::start_error::StartError;
use crate::telemetry::metrics::Figures;
use crate::telemetry::metrics::page::{Page, metrics};

pub(crate) struct Plan {
    config: Option<Beanstalk>,
    watched_bytes_max: usize,
    counters: Arc<Counters>,
}

impl Plan {
    /// The plan of a door; `config` is `None` if the door stays closed.
    pub(crate) fn new(config: Option<&Beanstalk>, limits: &Limits) -> Self {
        let watched_bytes_max = limits.watched_bytes;
        Self { config: config.cloned(), watched_bytes_max, counters: Arc::default() }
    }
}

impl plan::Plan for Plan {
    fn listen(&self) -> Option<&ListenAt> {
        self.config.as_ref().map(|config| &config.listen)
    }

    fn tls(&self, server: Option<&Tls>) -> Result<Option<Tls>, TlsError> {
        let signers = self.config.as_ref().and_then(|config| config.client_ca.as_ref());
        let (Some(server), Some(signers)) = (server, signers) else { return Ok(None) };
        server.for_clients_of(signers).map(Some)
    }

    fn refused(&self, source: io::Error) -> StartError {
        let listen = self.config.clone().unwrap_or_default().listen;
        StartError::ListenBeanstalk { listen, source }
    }

    fn figures(&self) -> Option<Arc<dyn Figures>> {
        Some(Arc::clone(&self.counters) as Arc<dyn Figures>)
    }

    fn open(self: Box<Self>, app: Arc<App>, _: &ListenAt) -> Arc<dyn Door> {
        let config = self.config.unwrap_or_default();
        Arc::new(BeanstalkDoor::new(app, self.counters, config, self.watched_bytes_max))
    }
}

impl Figures for Counters {
    fn write(&self, page: &mut Page<Pieces>) -> fmt::Result {
        page.write(METRICS, self)
    }
}

metrics! {
    const METRICS: Counters;

    /// Connections of clients of beanstalkd
    Gauge tickwheel_beanstalk_connections: |counters, out| out.is(counters.connections());
    /// Commands of clients of beanstalkd, by verb
    ///
    /// The verbs are those of beanstalkd's `stats`, and `other`
    Counter tickwheel_beanstalk_commands {verb}:
        |counters, out| counters.all_verbs().try_for_each(|(verb, count)| out.put(&[verb], count));
    /// Refused commands of clients of beanstalkd, by answer; refused connections count as `closed`
    ///
    /// An example of an answer is `OUT_OF_MEMORY`
    Counter tickwheel_beanstalk_refused {answer}:
        |counters, out| counters.refusals().try_for_each(|(answer, count)| out.put(&[answer], count));
}
