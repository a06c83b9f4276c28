//! [`BeanstalkConnection`]: a beanstalkd.

use std::sync::Arc;

use tokio_rustls::rustls::ClientConfig;

use super::pipeline::Pipeline;
use crate::broker::{Dial, Dialing, Endpoint};

/// A beanstalkd, or another server with its protocol. The protocol has no users and no passwords.
#[derive(Clone, Debug)]
pub struct BeanstalkConnection {
    /// The address.
    pub endpoint: Endpoint,
    /// The settings of TLS, for a server behind a proxy that speaks it; `None`: without TLS.
    pub tls: Option<Arc<ClientConfig>>,
}

/// An open connection to a beanstalkd. Several puts are under way on it at one time.
pub struct BeanstalkLive {
    pub(super) pipeline: Pipeline,
}

impl Dial for BeanstalkConnection {
    type Live = BeanstalkLive;

    fn dial(&self) -> Dialing<'_, BeanstalkLive> {
        Box::pin(async {
            let stream = self.endpoint.connect(self.tls.as_ref()).await?;
            Ok(BeanstalkLive { pipeline: Pipeline::new(stream) })
        })
    }

    fn is_alive(live: &BeanstalkLive) -> bool {
        live.pipeline.is_open()
    }
}
