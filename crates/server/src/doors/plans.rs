//! All doors, a line each.

use crate::config::Config;
use crate::doors::beanstalk;
use crate::doors::http::plan::Http;
use crate::doors::plan::Plan;

/// All doors. The first one is where the server is found.
pub(crate) fn plans(config: &Config) -> Vec<Box<dyn Plan>> {
    let Config { listen, allow_hosts, tls, access_log, beanstalk: jobs, limits, .. } = config;
    vec![
        Box::new(Http::new(listen, allow_hosts, tls.is_some(), *access_log)),
        Box::new(beanstalk::Plan::new(jobs.as_ref(), limits)),
    ]
}
