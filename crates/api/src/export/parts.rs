//! Parts that several lines of an export share.

use crate::kind::{Kind, OrNull, or_null};
use crate::part::{One, Usual, unless};

/// A member that may be left out. `null` is accepted, too, but the schema does not say so.
pub(super) fn quiet<K: Kind>(kind: K) -> One<OrNull<K>, Usual<Option<K::Value>>> {
    unless(None, or_null(kind).quietly())
}
