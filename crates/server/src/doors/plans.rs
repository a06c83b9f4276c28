//! The list of all doors.

use crate::config::Config;
use crate::doors::beanstalk;
use crate::doors::http::console::Console;
use crate::doors::http::plan::Http;
use crate::doors::plan::Plan;

/// The plans of all doors. The first one is that of the server's URL.
pub(crate) fn plans(config: &Config) -> Vec<Box<dyn Plan>> {
    let Config { listen, allow_hosts, tls, access_log, beanstalk: jobs, limits, .. } = config;
    let console = Console::new(config.console, config.console_dir.clone());
    vec![
        Box::new(Http::new(listen, allow_hosts, tls.is_some(), *access_log, console)),
        Box::new(beanstalk::Plan::new(jobs.as_ref(), limits)),
    ]
}
