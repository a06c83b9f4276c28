//! The permit of a connection, and the calls that it may make: all, or only those that reserved permits are for.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tickwheel_api::Problem;

use crate::listen::addresses::{Addresses, Share};
use crate::listen::door::Idle;
use crate::listen::permits::{ConnectionPermit, Permits, Seat};

/// The permit of a connection, and its share of the connections of its address.
#[derive(Debug)]
pub(crate) struct Standing {
    permit: ConnectionPermit,
    from: Option<IpAddr>,
    addresses: Addresses,
    /// The share; `None` while the connection has a reserved permit because its address already has its largest
    /// number.
    share: Mutex<Option<Share>>,
    max: usize,
}

impl Standing {
    /// Finds a permit for a connection from this address; `None`: it came by a path of the file system.
    ///
    /// # Errors
    /// There is no permit; the problem names the limit.
    pub(crate) fn find(
        permits: &Permits,
        addresses: &Addresses,
        from: Option<IpAddr>,
        idle: Idle,
    ) -> Result<Self, Box<Problem>> {
        let share = addresses.enter(from);
        // The share is found before the permit, so that no idle connection is closed for one that is refused.
        let permit = match (&share, idle) {
            (Some(_), _) => permits.enter(idle),
            (None, Idle::MakesWay) => permits.enter_reserved(),
            (None, Idle::Stays) => None,
        };
        let none = || if share.is_some() { all_taken(permits.max()) } else { of_address(addresses.max()) };
        let Some(permit) = permit else { return Err(Box::new(none())) };
        Ok(Self { permit, from, addresses: addresses.clone(), share: Mutex::new(share), max: permits.max() })
    }

    pub(crate) fn seat(&self) -> Arc<Seat> {
        self.permit.seat()
    }

    /// The number of the connection.
    pub(crate) fn id(&self) -> u64 {
        self.permit.id()
    }

    /// The address of the client; `None`: it came by a path of the file system.
    pub(crate) fn from(&self) -> Option<IpAddr> {
        self.from
    }

    /// Whether the connection may make a call for which reserved permits are not meant. If a permit became free
    /// meanwhile, takes it.
    ///
    /// # Errors
    /// There is still no permit.
    pub(crate) fn admit(&self) -> Result<(), Box<Problem>> {
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        if share.is_none() {
            *share = self.addresses.enter(self.from);
        }
        if share.is_none() {
            return Err(Box::new(of_address(self.addresses.max())));
        }
        if self.permit.move_up() { Ok(()) } else { Err(Box::new(all_taken(self.max))) }
    }
}

fn all_taken(max: usize) -> Problem {
    Problem::busy(format!("the server has {max} connections, which is its limit (--max-connections), and none of them is idle"), 1)
        .with_hint("try again later; health, figures and callers with `admin` are still answered")
}

fn of_address(max: usize) -> Problem {
    Problem::busy(
        format!("your address has {max} connections, which is its limit (--max-connections-per-address)"),
        1,
    )
    .with_hint("use the connections that are open, or close some")
}
