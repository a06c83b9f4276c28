//! [`BeanstalkPlan`]: the tube that gets the messages, and the terms of the jobs.

use std::time::Duration;

use tickwheel_api::beanstalk::{TUBE_BYTES_MAX, Tube};

use super::pipeline::Job;
use crate::broker::{Address, AddressError, Alphabet, Content, ContentForm};
use crate::message::Message;
use crate::outcome::Outcome;

const TUBE: Alphabet = Alphabet {
    noun: "tube",
    allows: |c| c.is_ascii_alphanumeric() || "-+/;.$_()".contains(c),
    words: "letters, digits and -+/;.$_(), and does not begin with '-'",
    bytes_max: TUBE_BYTES_MAX,
};

/// The settings of a target in beanstalkd.
#[derive(Clone, Debug)]
pub struct BeanstalkPlan {
    tube: Address,
    priority: u32,
    ttr_s: u32,
    content: Content,
    pub(super) timeout: Duration,
}

/// Why a target in beanstalkd cannot have these settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BeanstalkPlanError {
    /// The tube is wrong.
    #[error(transparent)]
    Tube(#[from] AddressError),
    /// The tube begins with `-`.
    #[error("the tube begins with '-'")]
    Dash,
    /// A worker would have no time.
    #[error("`ttr` is 1 s or more")]
    Ttr,
}

impl BeanstalkPlan {
    /// Returns the settings of a target. `tube`: a template. `priority`: the smallest number goes first. `ttr_s`: the time that a worker has
    /// for a job (seconds). `form`: by default the envelope, because a job has no headers. `timeout`: the time in which the server must answer.
    ///
    /// # Errors
    /// [`BeanstalkPlanError`].
    pub fn new(
        tube: &str,
        priority: u32,
        ttr_s: u32,
        form: Option<ContentForm>,
        timeout: Duration,
    ) -> Result<Self, BeanstalkPlanError> {
        if tube.starts_with('-') {
            return Err(BeanstalkPlanError::Dash);
        }
        if ttr_s == 0 {
            return Err(BeanstalkPlanError::Ttr);
        }
        let content = Content::new(form.unwrap_or(ContentForm::Envelope), &[]);
        let content = content.expect("there is no header that could be wrong");
        Ok(Self { tube: Address::parse(tube, TUBE)?, priority, ttr_s, content, timeout })
    }

    /// Returns the job of a message.
    pub(super) fn job(&self, message: &Message) -> Result<Job, Outcome> {
        let name = self.tube.of(message)?;
        let tube = Tube::new(name.as_bytes()).ok_or_else(|| {
            Outcome::unfillable(format!("template: the tube would be `{name}`, but may not begin with '-'"))
        })?;
        let (body, _) = self.content.body(message);
        Ok(Job { tube, priority: self.priority, ttr_s: self.ttr_s, body })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::Undeliverable;

    use super::*;
    use crate::message::tests::message;

    fn plan(tube: &str, ttr_s: u32) -> Result<BeanstalkPlan, BeanstalkPlanError> {
        BeanstalkPlan::new(tube, 1_024, ttr_s, None, Duration::from_secs(10))
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        assert_eq!(plan("-a", 60).err(), Some(BeanstalkPlanError::Dash));
        assert_eq!(plan("a", 0).err(), Some(BeanstalkPlanError::Ttr));
        for tube in ["", "a b", "ä", "{nothing}"] {
            assert!(matches!(plan(tube, 60), Err(BeanstalkPlanError::Tube(_))), "{tube}");
        }
    }

    #[test]
    fn a_job_has_the_terms_and_the_envelope() {
        let job = plan("due.{queue}", 60).expect("a plan").job(&message()).expect("a job");
        assert_eq!((job.tube.as_str(), job.priority, job.ttr_s), ("due.close", 1_024, 60));
        assert!(String::from_utf8_lossy(&job.body).contains(r#""queue":"close""#));
        let outcome = plan("{key}", 60).expect("a plan").job(&message()).expect_err("a colon in the key");
        assert!(matches!(outcome, Outcome::Undeliverable { why: Undeliverable::Template, .. }));
    }
}
