//! Field codecs of a body: a required member, an optional member, or several members that belong together.

use crate::declare::body::{Body, RawMembers};
use crate::declare::form::{Form, Source};
use crate::declare::schema::Member;
use crate::declare::value_codec::{OrNull, ValueCodec, WrittenValue, or_null};
use crate::text::bad_request::BadRequest;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;
use std::marker::PhantomData;

/// One member, or several that together are one value. `own` is the name of the member, for codecs of one member.
pub(crate) trait FieldCodec {
    /// The value of the members.
    type Value;

    /// Number of members.
    fn count(&self) -> usize {
        1
    }

    /// The index, among the members of the field, of the member with this name.
    fn find(&self, own: &'static str, name: &str) -> Option<usize> {
        (own == name).then_some(0)
    }

    /// Reads the members. A field of several optional members may have none.
    fn read(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        source: Source,
    ) -> Result<Self::Value, BadRequest>;

    /// Reads the members of a patch. `_before` is the value so far.
    fn patch(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        _before: Option<Self::Value>,
    ) -> Result<Self::Value, BadRequest> {
        self.read(own, raw, Source::Request)
    }

    /// Writes the members.
    fn write<M: SerializeMap>(
        &self,
        own: &'static str,
        value: &Self::Value,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error>;

    /// Adds the schemas of the members to `all`. `what` is the doc comment of the field.
    fn describe(&self, own: &'static str, what: String, required: bool, all: &mut Vec<Member>);
}

/// One field of a body: its codec, and the meaning of missing members.
pub(crate) struct Field<P, U> {
    pub(crate) part: P,
    /// Makes the value of missing members; `None`: they are required.
    usual: Option<U>,
    /// Whether the value of missing members is written.
    is_written: bool,
    /// Whether the schema calls the member required.
    pub(crate) is_required: bool,
}

/// A field whose value for missing members is made by a plain function.
type Plain<P> = Field<P, fn() -> <P as FieldCodec>::Value>;

/// Members without a default value for all of them: a required member, or a field of several members that decides by itself which of them it needs.
pub(crate) fn has<P: FieldCodec>(part: P) -> Plain<P> {
    Field { part, usual: None, is_written: true, is_required: true }
}

/// Optional members.
pub(crate) fn may<P: FieldCodec>(part: P) -> Plain<Maybe<P>> {
    unless_made(|| None, Maybe(part))
}

/// An optional member that may also be `null`, with the same meaning.
pub(crate) fn nullable<K: ValueCodec>(kind: K) -> Plain<OrNull<K>> {
    unless_made(|| None, or_null(kind))
}

/// As [`nullable`], but the schema does not say that `null` is accepted.
pub(crate) fn quiet<K: ValueCodec>(kind: K) -> Plain<OrNull<K>> {
    unless_made(|| None, or_null(kind).quietly())
}

/// Optional members with a default value, which is always written.
pub(crate) fn or<P: FieldCodec>(usual: P::Value, part: P) -> Field<P, impl Fn() -> P::Value>
where
    P::Value: Clone,
{
    Field { is_written: true, ..unless(usual, part) }
}

/// As [`or`], with a default value that is made where it is needed.
pub(crate) fn or_made<P: FieldCodec>(usual: fn() -> P::Value, part: P) -> Plain<P> {
    Field { is_written: true, ..unless_made(usual, part) }
}

/// Optional members with a default value. They are not written if they have this value.
pub(crate) fn unless<P: FieldCodec>(usual: P::Value, part: P) -> Field<P, impl Fn() -> P::Value>
where
    P::Value: Clone,
{
    Field { part, usual: Some(move || usual.clone()), is_written: false, is_required: false }
}

/// As [`unless`], with a default value that is made where it is needed.
pub(crate) fn unless_made<P: FieldCodec>(usual: fn() -> P::Value, part: P) -> Plain<P> {
    Field { part, usual: Some(usual), is_written: false, is_required: false }
}

/// A member that is always present in answers, except in answers of older servers. There it has the value `usual`.
pub(crate) fn shown<P: FieldCodec>(usual: P::Value, part: P) -> Field<P, impl Fn() -> P::Value>
where
    P::Value: Clone,
{
    Field { is_required: true, ..or(usual, part) }
}

/// The members of another body, written among those of this body.
pub(crate) fn flat<B: Body>() -> Plain<MembersOf<B>> {
    has(members_of())
}

impl<P: FieldCodec, U: Fn() -> P::Value> Field<P, U>
where
    P::Value: PartialEq,
{
    /// Reads the field from its members. In an answer `null` counts as a missing member.
    pub(crate) fn read(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        source: Source,
    ) -> Result<P::Value, BadRequest> {
        let is_given = |raw: &&RawValue| source.is_checked() || raw.get() != "null";
        match &self.usual {
            Some(usual) if !raw.iter().flatten().any(is_given) => Ok(usual()),
            _ => self.part.read(own, raw, source),
        }
    }

    /// Reads the field from a patch: members that the patch leaves out keep their values.
    pub(crate) fn patch(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        before: P::Value,
    ) -> Result<P::Value, BadRequest> {
        if raw.iter().all(Option::is_none) {
            return Ok(before);
        }
        self.part.patch(own, raw, Some(before))
    }

    /// Writes the members of the field.
    pub(crate) fn write<M: SerializeMap>(
        &self,
        own: &'static str,
        value: &P::Value,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error> {
        if self.is_written || self.usual.as_ref().is_none_or(|usual| *value != usual()) {
            self.part.write(own, value, map, form)?;
        }
        Ok(())
    }
}

impl<K: ValueCodec> FieldCodec for K {
    type Value = K::Value;

    fn read(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        source: Source,
    ) -> Result<K::Value, BadRequest> {
        let raw = raw[0].ok_or_else(|| self.missing(own))?;
        ValueCodec::read(self, own, raw, source)
    }

    fn patch(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        before: Option<K::Value>,
    ) -> Result<K::Value, BadRequest> {
        let raw = raw[0].ok_or_else(|| self.missing(own))?;
        ValueCodec::patch(self, own, raw, before)
    }

    fn write<M: SerializeMap>(
        &self,
        own: &'static str,
        value: &K::Value,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error> {
        map.serialize_entry(own, &WrittenValue { kind: self, value, form })
    }

    fn describe(&self, own: &'static str, what: String, required: bool, all: &mut Vec<Member>) {
        all.push(Member { name: own, required, schema: self.schema(), what });
    }
}

/// Members that an answer has together or not at all. Unlike with [`may`], `null` is a value.
pub(crate) fn or_left_out<P: FieldCodec>(part: P) -> OrLeftOut<P> {
    OrLeftOut(part)
}

/// See [`or_left_out`].
pub(crate) struct OrLeftOut<P>(P);

impl<P: FieldCodec> FieldCodec for OrLeftOut<P> {
    type Value = Option<P::Value>;

    fn count(&self) -> usize {
        self.0.count()
    }

    fn find(&self, own: &'static str, name: &str) -> Option<usize> {
        self.0.find(own, name)
    }

    fn read(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        source: Source,
    ) -> Result<Self::Value, BadRequest> {
        let is_there = raw.iter().any(Option::is_some);
        is_there.then(|| self.0.read(own, raw, source)).transpose()
    }

    fn write<M: SerializeMap>(
        &self,
        own: &'static str,
        value: &Self::Value,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |value| self.0.write(own, value, map, form))
    }

    fn describe(&self, own: &'static str, what: String, required: bool, all: &mut Vec<Member>) {
        self.0.describe(own, what, required, all);
    }
}

/// See [`may`].
pub(crate) struct Maybe<P>(P);

impl<P: FieldCodec> FieldCodec for Maybe<P> {
    type Value = Option<P::Value>;

    fn count(&self) -> usize {
        self.0.count()
    }

    fn find(&self, own: &'static str, name: &str) -> Option<usize> {
        self.0.find(own, name)
    }

    fn read(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        source: Source,
    ) -> Result<Option<P::Value>, BadRequest> {
        self.0.read(own, raw, source).map(Some)
    }

    fn patch(
        &self,
        own: &'static str,
        raw: RawMembers<'_, '_>,
        before: Option<Option<P::Value>>,
    ) -> Result<Option<P::Value>, BadRequest> {
        self.0.patch(own, raw, before.flatten()).map(Some)
    }

    fn write<M: SerializeMap>(
        &self,
        own: &'static str,
        value: &Option<P::Value>,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |value| self.0.write(own, value, map, form))
    }

    fn describe(&self, own: &'static str, what: String, _: bool, all: &mut Vec<Member>) {
        self.0.describe(own, what, false, all);
    }
}

/// The members of a body as one value.
pub(crate) fn members_of<B: Body>() -> MembersOf<B> {
    MembersOf(PhantomData)
}

/// See [`members_of`].
pub(crate) struct MembersOf<B>(PhantomData<B>);

impl<B: Body> FieldCodec for MembersOf<B> {
    type Value = B;

    fn count(&self) -> usize {
        B::count()
    }

    fn find(&self, _: &'static str, name: &str) -> Option<usize> {
        B::find(name)
    }

    fn read(&self, _: &'static str, raw: RawMembers<'_, '_>, source: Source) -> Result<B, BadRequest> {
        B::read(raw, source)
    }

    fn patch(&self, own: &'static str, raw: RawMembers<'_, '_>, before: Option<B>) -> Result<B, BadRequest> {
        before.map_or_else(|| self.read(own, raw, Source::Request), |before| before.patch(raw))
    }

    fn write<M: SerializeMap>(
        &self,
        _: &'static str,
        value: &B,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error> {
        value.write(map, form)
    }

    fn describe(&self, _: &'static str, _: String, required: bool, all: &mut Vec<Member>) {
        let members = B::members().into_iter();
        all.extend(members.map(|member| Member { required: member.required && required, ..member }));
    }
}
