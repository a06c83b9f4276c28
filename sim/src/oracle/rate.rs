//! The deliveries of a queue that has a rate. The number is never more than the rate allows, in any order in which the
//! calls may have taken effect.

use super::call::{Limits, Rate};
use super::clock::Clock;
use super::register::Register;
use super::world::Op;

/// The number of past grants that are compared.
const GRANTS_MAX: usize = 64;

/// The deliveries of a queue since its limits were set, or since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Handed {
    grants: Vec<Grant>,
    /// The last time at which the bucket was made, or a token may have been taken out of it.
    taken_ms: u64,
}

#[derive(Clone, Debug)]
struct Grant {
    called: u64,
    /// The grant began at this time or later.
    from_ms: u64,
    tokens: Vec<String>,
}

impl Handed {
    /// Notes that the bucket may be empty at this time.
    pub(super) fn may_be_empty(&mut self, mono_ms: u64) {
        self.taken_ms = mono_ms;
    }

    /// Limits were set, or the server crashed, so earlier deliveries prove nothing any more.
    pub(super) fn begin(&mut self, mono_ms: u64) {
        self.grants.clear();
        self.may_be_empty(mono_ms);
    }

    /// A lease was answered with these tokens. It stays unknown how many more deliveries the bucket allowed.
    pub(super) fn granted(&mut self, op: &Op, tokens: Vec<String>, clock: &Clock) {
        if self.grants.len() == GRANTS_MAX {
            self.grants.remove(0);
        }
        self.grants.push(Grant { called: op.called, from_ms: clock.mono(op.from), tokens });
    }

    /// Deliveries that reached no worker do not count.
    pub(super) fn returned(&mut self, tokens: &[String]) {
        for grant in &mut self.grants {
            grant.tokens.retain(|token| !tokens.contains(token));
        }
    }

    /// Checks the deliveries until the answer of `op`. A span is checked if it begins with a remembered grant, ends
    /// with this answer, and had only one rate setting.
    ///
    /// # Errors
    /// The text of the violation, if there were more deliveries than the rate allows.
    pub(super) fn within_rate(
        &self,
        op: &Op,
        limits: &Register<Limits>,
        clock: &Clock,
    ) -> Result<(), String> {
        let to_ms = clock.mono(op.to);
        for first in &self.grants {
            let mut rates = limits.since(first.called).map(|limits| limits.rate);
            let Some(Some(rate)) = rates.next() else { continue };
            if rates.any(|other| other != Some(rate)) {
                continue;
            }
            let within = self.grants.iter().filter(|grant| grant.called >= first.called);
            let handed: usize = within.map(|grant| grant.tokens.len()).sum();
            // One millisecond is added, because both instants were rounded down.
            let most = rate.burst.saturating_add(rate.come_back(to_ms - first.from_ms + 1));
            if handed as u64 > most {
                let since = format!("between {} ms and {to_ms} ms", first.from_ms);
                return Err(format!("{handed} handed out {since}, {most} allowed by {rate:?}"));
            }
        }
        Ok(())
    }

    /// The number of tasks that the rate certainly allows for a lease at this time.
    pub(super) fn at_least(&self, rate: Rate, mono_ms: u64) -> u64 {
        // One millisecond is taken off, because both instants were rounded down.
        let ms = mono_ms.saturating_sub(self.taken_ms).saturating_sub(1);
        rate.come_back(ms).min(rate.burst)
    }
}
