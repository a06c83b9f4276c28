//! [`Workload`]: what is measured, by name, and for whom.

use super::ring::Shape;
use super::scale::Scale;
use super::subject::{Service, Stamping};
use super::{flat, idle, lateness, ring};
use crate::sample::Sample;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Workload {
    /// W7: producers keep rings of pending timers; each is cancelled soon.
    Contention,
    /// The same with rings so large that timers are filed before they are cancelled.
    Filed,
    /// The same with each timer cancelled at once.
    Immediate,
    /// How late timers fire, 100,000 in a second.
    Lateness,
    /// Processor time and wake-ups with a million timers far away.
    Idle,
    /// Memory before and after ten million pairs.
    Flat,
}

impl Workload {
    /// As it is written in tables and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Contention => "contention",
            Self::Filed => "filed",
            Self::Immediate => "immediate",
            Self::Lateness => "lateness",
            Self::Idle => "idle",
            Self::Flat => "flat",
        }
    }

    /// What its figures are filed under: timers pending at once, due in a second, or cancelled in all.
    pub(crate) fn n(self, scale: &Scale) -> u64 {
        let producers = u64::from(scale.producers);
        match self {
            Self::Contention => producers * scale.ring,
            Self::Filed => producers * scale.ring_filed,
            Self::Immediate => producers,
            Self::Lateness => scale.per_second,
            Self::Idle => scale.pending,
            Self::Flat => scale.pairs_flat,
        }
    }

    /// If it is one of rings, which.
    pub(crate) fn shape(self, scale: &Scale) -> Option<Shape> {
        let (ring, least_us) = match self {
            Self::Contention => (scale.ring, 1_000_000),
            // Slow ones take seconds to come round.
            Self::Filed => (scale.ring_filed, 10_000_000),
            Self::Immediate => (0, 1_000_000),
            Self::Lateness | Self::Idle | Self::Flat => return None,
        };
        Some(Shape { ring, delays_us: least_us..30_000_000 })
    }

    /// All of it, by a timer that does all.
    pub(crate) fn sample<S>(self, scale: &Scale) -> anyhow::Result<Option<Sample>>
    where
        S: Service,
        for<'a> S::Producer<'a>: Stamping,
    {
        match self {
            Self::Lateness => Ok(Some(lateness::sample::<S>(scale))),
            Self::Idle => idle::sample::<S>(scale).map(Some),
            Self::Flat => flat::sample::<S>(scale).map(Some),
            Self::Contention | Self::Filed | Self::Immediate => self.sample_ring::<S>(scale),
        }
    }

    /// The rings only.
    pub(crate) fn sample_ring<S: Service>(self, scale: &Scale) -> anyhow::Result<Option<Sample>> {
        self.shape(scale).map(|shape| ring::sample::<S>(&shape, scale)).transpose()
    }

    /// What differs where the same timer is used in another way.
    pub(crate) fn sample_lateness<S>(self, scale: &Scale) -> anyhow::Result<Option<Sample>>
    where
        S: Service,
        for<'a> S::Producer<'a>: Stamping,
    {
        Ok((self == Self::Lateness).then(|| lateness::sample::<S>(scale)))
    }
}
