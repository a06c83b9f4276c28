//! Members that several lines of an export have.

use crate::kind::{Kind, OrNull, or_null};
use crate::part::{One, Usual, unless};

/// A member that may be left out. `null` is taken, too, and nothing says so.
pub(super) fn quiet<K: Kind>(kind: K) -> One<OrNull<K>, Usual<Option<K::Value>>> {
    unless(None, or_null(kind).quietly())
}
