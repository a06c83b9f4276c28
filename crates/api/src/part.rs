//! Parts of a body: a required member, an optional member, or several members that belong together.

use crate::bad_request::BadRequest;
use crate::body::{Body, Meaning, Slots, Source};
use crate::kind::{Kind, OrNull, WrittenValue, or_null};
use crate::openapi::schema::Member;
use serde::ser::SerializeMap;
use std::marker::PhantomData;

/// One field of a body, which is one or more members on the wire. `own` is the name of the member, for parts that are one member.
pub(crate) trait Part {
    /// The type of the field.
    type Value;

    /// Number of members.
    fn count(&self) -> usize {
        1
    }

    /// The slot, among those of the part, of the member with this name.
    fn find(&self, own: &'static str, name: &str) -> Option<usize> {
        (own == name).then_some(0)
    }

    /// Reads the field from its members.
    fn read(
        &self,
        own: &'static str,
        slots: Slots<'_, '_>,
        source: Source,
    ) -> Result<Self::Value, BadRequest>;

    /// Reads the field from a patch: members that the patch leaves out keep their values.
    fn over(
        &self,
        own: &'static str,
        slots: Slots<'_, '_>,
        before: Self::Value,
    ) -> Result<Self::Value, BadRequest> {
        if slots.iter().all(Option::is_none) { Ok(before) } else { self.read(own, slots, Source::Request) }
    }

    /// Writes the members of the field.
    fn write<M: SerializeMap>(
        &self,
        own: &'static str,
        value: &Self::Value,
        map: &mut M,
        one_line: bool,
    ) -> Result<(), M::Error>;

    /// Adds the schemas of the members to `all`. `what` is the doc comment of the field.
    fn describe(&self, own: &'static str, what: String, all: &mut Vec<Member>);
}

/// A part that is one member.
pub(crate) struct One<K, A> {
    kind: K,
    absence: A,
}

/// The meaning of a missing member.
pub(crate) trait Absence<V> {
    /// The type of the field.
    type Value;

    /// The value of a missing member; `None`: the member is required.
    fn absent(&self) -> Option<Self::Value>;

    /// The field for a member that is present.
    fn present(value: V) -> Self::Value;

    /// The value of the member before a patch; `None` if the field has none.
    fn before(value: Self::Value) -> Option<V>;

    /// The value to write; `None`: the member is left out.
    fn written<'v>(&self, value: &'v Self::Value) -> Option<&'v V>;

    /// Whether the schema calls the member required.
    fn is_required(&self) -> bool;
}

/// A required member.
pub(crate) fn has<K: Kind>(kind: K) -> One<K, Required> {
    One { kind, absence: Required }
}

/// An optional member.
pub(crate) fn may<K: Kind>(kind: K) -> One<K, Optional> {
    One { kind, absence: Optional }
}

/// An optional member that may also be `null`, with the same meaning.
pub(crate) fn nullable<K: Kind>(kind: K) -> One<OrNull<K>, Usual<Option<K::Value>>> {
    One { kind: or_null(kind), absence: Usual { value: None, is_written: false, is_required: false } }
}

/// An optional member with a default value. The member is always written.
pub(crate) fn or<K: Kind>(usual: K::Value, kind: K) -> One<K, Usual<K::Value>> {
    One { kind, absence: Usual { value: usual, is_written: true, is_required: false } }
}

/// An optional member with a default value. The member is not written if it has this value.
pub(crate) fn unless<K: Kind>(usual: K::Value, kind: K) -> One<K, Usual<K::Value>> {
    One { kind, absence: Usual { value: usual, is_written: false, is_required: false } }
}

/// A member that is always present in answers, except in answers of older servers. There it has the value `usual`.
pub(crate) fn shown<K: Kind>(usual: K::Value, kind: K) -> One<K, Usual<K::Value>> {
    One { kind, absence: Usual { value: usual, is_written: true, is_required: true } }
}

/// See [`has`].
pub(crate) struct Required;
/// See [`may`].
pub(crate) struct Optional;
/// See [`or`] and [`unless`].
pub(crate) struct Usual<V> {
    value: V,
    is_written: bool,
    is_required: bool,
}

impl<V> Absence<V> for Required {
    type Value = V;

    fn absent(&self) -> Option<V> {
        None
    }

    fn present(value: V) -> V {
        value
    }

    fn before(value: V) -> Option<V> {
        Some(value)
    }

    fn written<'v>(&self, value: &'v V) -> Option<&'v V> {
        Some(value)
    }

    fn is_required(&self) -> bool {
        true
    }
}

impl<V> Absence<V> for Optional {
    type Value = Option<V>;

    fn absent(&self) -> Option<Option<V>> {
        Some(None)
    }

    fn present(value: V) -> Option<V> {
        Some(value)
    }

    fn before(value: Option<V>) -> Option<V> {
        value
    }

    fn written<'v>(&self, value: &'v Option<V>) -> Option<&'v V> {
        value.as_ref()
    }

    fn is_required(&self) -> bool {
        false
    }
}

impl<V: Clone + PartialEq> Absence<V> for Usual<V> {
    type Value = V;

    fn absent(&self) -> Option<V> {
        Some(self.value.clone())
    }

    fn present(value: V) -> V {
        value
    }

    fn before(value: V) -> Option<V> {
        Some(value)
    }

    fn written<'v>(&self, value: &'v V) -> Option<&'v V> {
        (self.is_written || *value != self.value).then_some(value)
    }

    fn is_required(&self) -> bool {
        self.is_required
    }
}

impl<K: Kind, A: Absence<K::Value>> Part for One<K, A> {
    type Value = A::Value;

    fn read(&self, own: &'static str, slots: Slots<'_, '_>, source: Source) -> Result<A::Value, BadRequest> {
        // In an answer `null` counts as a missing member.
        match slots[0].filter(|raw| source == Source::Request || raw.get() != "null") {
            Some(raw) => self.kind.read(own, raw, source).map(A::present),
            None => self.absence.absent().or_else(|| self.kind.absent().map(A::present)).ok_or_else(|| {
                let hint = format!("add for example `\"{own}\": {}`", self.kind.example());
                BadRequest::member(own, "is missing", hint)
            }),
        }
    }

    fn over(
        &self,
        own: &'static str,
        slots: Slots<'_, '_>,
        before: A::Value,
    ) -> Result<A::Value, BadRequest> {
        match slots[0] {
            Some(raw) => self.kind.over(own, raw, A::before(before)).map(A::present),
            None => Ok(before),
        }
    }

    fn write<M: SerializeMap>(
        &self,
        own: &'static str,
        value: &A::Value,
        map: &mut M,
        one_line: bool,
    ) -> Result<(), M::Error> {
        match self.absence.written(value) {
            Some(value) => map.serialize_entry(own, &WrittenValue { kind: &self.kind, value, one_line }),
            None => Ok(()),
        }
    }

    fn describe(&self, own: &'static str, what: String, all: &mut Vec<Member>) {
        let (required, schema) = (self.absence.is_required(), self.kind.schema());
        all.push(Member { name: own, required, schema, what });
    }
}

/// The members of another body, written among those of this body.
pub(crate) fn flat<B: Body>() -> Flat<B> {
    Flat(PhantomData)
}

/// See [`flat`].
pub(crate) struct Flat<B>(PhantomData<B>);

impl<B: Body> Part for Flat<B> {
    type Value = B;

    fn count(&self) -> usize {
        B::count()
    }

    fn find(&self, _: &'static str, name: &str) -> Option<usize> {
        B::find(name)
    }

    fn read(&self, _: &'static str, slots: Slots<'_, '_>, source: Source) -> Result<B, BadRequest> {
        B::read(slots, source)
    }

    fn over(&self, _: &'static str, slots: Slots<'_, '_>, before: B) -> Result<B, BadRequest> {
        before.over(slots)
    }

    fn write<M: SerializeMap>(
        &self,
        _: &'static str,
        value: &B,
        map: &mut M,
        one_line: bool,
    ) -> Result<(), M::Error> {
        value.write(map, one_line)
    }

    fn describe(&self, _: &'static str, _: String, all: &mut Vec<Member>) {
        all.extend(B::members());
    }
}

/// Several members that together are one value.
pub(crate) trait Group {
    /// The value of the members.
    type Value;

    /// Number of members.
    fn count(&self) -> usize;

    /// The slot of the member with this name.
    fn find(&self, name: &str) -> Option<usize>;

    /// Reads the members; `None`: none of them is present.
    fn read(&self, slots: Slots<'_, '_>, source: Source) -> Result<Option<Self::Value>, BadRequest>;

    /// Writes the members.
    fn write<M: SerializeMap>(
        &self,
        value: &Self::Value,
        map: &mut M,
        one_line: bool,
    ) -> Result<(), M::Error>;

    /// The schemas of the members.
    fn members(&self) -> Vec<Member>;
}

/// A part that is a group of members.
pub(crate) struct Several<G, A> {
    group: G,
    absence: A,
}

/// A group of which at least one member is required.
pub(crate) fn some<G: Group>(group: G) -> Several<G, Required> {
    Several { group, absence: Required }
}

/// A group that may be left out.
pub(crate) fn may_some<G: Group>(group: G) -> Several<G, Optional> {
    Several { group, absence: Optional }
}

/// A group that may be left out, which has the meaning `absence`.
pub(crate) fn some_or<G: Group, A: Absence<G::Value>>(absence: A, group: G) -> Several<G, A> {
    Several { group, absence }
}

/// The default value of a group. A group with this value is not written.
pub(crate) fn usual<V>(value: V) -> Usual<V> {
    Usual { value, is_written: false, is_required: false }
}

impl<G: Group, A: Absence<G::Value>> Part for Several<G, A> {
    type Value = A::Value;

    fn count(&self) -> usize {
        self.group.count()
    }

    fn find(&self, _: &'static str, name: &str) -> Option<usize> {
        self.group.find(name)
    }

    fn read(&self, own: &'static str, slots: Slots<'_, '_>, source: Source) -> Result<A::Value, BadRequest> {
        let value = self.group.read(slots, source)?.map(A::present);
        value
            .or_else(|| self.absence.absent())
            .ok_or_else(|| BadRequest::member(own, "is missing", format!("add `{own}`")))
    }

    fn write<M: SerializeMap>(
        &self,
        _: &'static str,
        value: &A::Value,
        map: &mut M,
        one_line: bool,
    ) -> Result<(), M::Error> {
        self.absence.written(value).map_or(Ok(()), |value| self.group.write(value, map, one_line))
    }

    fn describe(&self, _: &'static str, _: String, all: &mut Vec<Member>) {
        all.extend(self.group.members());
    }
}

/// The group of the members of a [`Meaning`].
pub(crate) fn members_of<T: Meaning>() -> MembersOf<T> {
    MembersOf(PhantomData)
}

/// See [`members_of`].
pub(crate) struct MembersOf<T>(PhantomData<T>);

impl<T: Meaning> Group for MembersOf<T> {
    type Value = T;

    fn count(&self) -> usize {
        T::Members::count()
    }

    fn find(&self, name: &str) -> Option<usize> {
        T::Members::find(name)
    }

    fn read(&self, slots: Slots<'_, '_>, source: Source) -> Result<Option<T>, BadRequest> {
        T::of_members(T::Members::read(slots, source)?, None, slots)
    }

    fn write<M: SerializeMap>(&self, value: &T, map: &mut M, one_line: bool) -> Result<(), M::Error> {
        value.to_members().write(map, one_line)
    }

    fn members(&self) -> Vec<Member> {
        T::Members::members()
    }
}
