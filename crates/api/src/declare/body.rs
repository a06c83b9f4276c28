//! The declaration of a body: its members, its reader, its writer and its schema in one place.
//!
//! ```text
//! body! {
//!     /// The number of tasks, and the length of their leases.
//!     ///
//!     /// The first paragraph of a doc comment is also the description in `/openapi.json`; this one is not.
//!     pub struct LeaseBody: request "Lease" {
//!         /// Maximum number of tasks. Default: 1.
//!         max: usize = or(1, number(1, LEASE_TASKS_MAX));
//!         /// Length of the leases, 1 s to 12 h.
//!         lease_ms as "lease": Option<u64> = may(duration().within(LEASE_MS_MIN, LEASE_MS_MAX));
//!     }
//!     elsewhere: &[("queue", "it stands in the path")];
//! }
//! ```
//!
//! A line declares a member. It has the field, the name on the wire if that differs, the type, and how the member is read and written. The
//! last one is a [field codec](crate::declare::field_codec) with a [value codec](crate::declare::value_codec). A field may also be several members that belong together, such as those
//! that say a time.
//!
//! The roles. A `request` has `parse` and `to_json`, and refuses unknown members. An `answer` is read and written by serde, and skips
//! members that a later server adds. `both` is a request that is also part of answers, `inner` is a part of requests and answers. A `line`
//! is a request on one line of NDJSON, an `export` is one in an export, a `row` is a line of an answer. A `group` is a part of other
//! bodies.

use crate::declare::field_codec::{Field, FieldCodec};
use crate::declare::form::{Form, Reader, Source};
use crate::declare::json::{self, Known};
use crate::declare::schema::{Member, Schema};
use crate::declare::value;
use crate::text::bad_request::BadRequest;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// Maximum number of members of a body.
pub(crate) const MEMBERS_MAX: usize = 48;

/// The raw members of a request: the text of each value, in the order of the declarations. `None`: the request has no such member.
pub(crate) type RawMembers<'s, 'a> = &'s [Option<&'a RawValue>];

/// The body of an answer, for clients that read strict JSON or for clients that read any.
///
/// A payload of the type `application/json` that [`check_payload`](crate::check_payload) refuses is written in base64, beside
/// `payload_invalid: true`. With `lax` it is written as JSON if it follows the grammar of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<B> {
    /// The body.
    pub body: B,
    /// Whether the clients read any JSON.
    pub lax: bool,
}

impl<B: Body> Serialize for Answer<B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reader = if self.lax { Reader::LaxClient } else { Reader::Client };
        Written(&self.body, Form { reader, ..B::FORM }).serialize(serializer)
    }
}

/// An object on the wire, or a group of members in one. The macro [`body!`] implements it.
pub(crate) trait Body: Sized {
    /// The name of the schema.
    const NAME: &'static str;
    /// An example for the hint of a refusal.
    const EXAMPLE: &'static str;
    /// The names of the members, and hints for other names.
    const KNOWN: Known;
    /// The form of the JSON.
    const FORM: Form;

    /// Number of members.
    fn count() -> usize;

    /// The index of the member `name`.
    fn find(name: &str) -> Option<usize>;

    /// Reads the members.
    fn read(raw: RawMembers<'_, '_>, source: Source) -> Result<Self, BadRequest>;

    /// Reads the members of a patch; members that it leaves out keep their values.
    fn patch(self, raw: RawMembers<'_, '_>) -> Result<Self, BadRequest>;

    /// Writes the members.
    fn write<M: SerializeMap>(&self, map: &mut M, form: Form) -> Result<(), M::Error>;

    /// Describes the members, in the order of the declaration.
    fn members() -> Vec<Member>;

    /// Describes the object.
    fn schema() -> Schema;

    /// Reads the text of a request. An empty text counts as an object without members.
    fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let mut raw = [None; MEMBERS_MAX];
        json::read_members(bytes, &Self::KNOWN, &mut raw)?;
        Self::read(&raw, Source::Request)
    }

    /// Reads a member whose value is this object. The caller adds the path with [`inside`](crate::text::bad_request::inside).
    fn from_value(value: &RawValue, source: Source) -> Result<Self, BadRequest> {
        let mut members = [None; MEMBERS_MAX];
        Self::check_object(value)?;
        json::read_object(value.get().as_bytes(), &Self::KNOWN, &mut members, source)?;
        Self::read(&members, source)
    }

    /// Reads a patch of this object.
    fn patch_value(self, value: &RawValue) -> Result<Self, BadRequest> {
        let mut members = [None; MEMBERS_MAX];
        Self::check_object(value)?;
        json::read_object(value.get().as_bytes(), &Self::KNOWN, &mut members, Source::Request)?;
        self.patch(&members)
    }

    /// Refuses anything but an object.
    fn check_object(raw: &RawValue) -> Result<(), BadRequest> {
        if raw.get().starts_with('{') {
            return Ok(());
        }
        let hint = match Self::EXAMPLE {
            "" => "write an object".to_owned(),
            example => format!("write an object, for example `{example}`"),
        };
        Err(BadRequest::body(format!("expected an object, got {}", value::kind(raw)), hint))
    }
}

/// The names of the members that a request has, in the order of the request.
pub(crate) fn named<B: Body>(raw: RawMembers<'_, '_>) -> Vec<&'static str> {
    let mut named: Vec<_> = (B::KNOWN.names)()
        .into_iter()
        .zip(raw)
        .filter_map(|(name, slot)| slot.map(|raw| (raw.get().as_ptr(), name)))
        .collect();
    named.sort_unstable();
    named.into_iter().map(|(_, name)| name).collect()
}

/// The first two members that a request has, if it has more than one.
pub(crate) fn two_of<B: Body>(raw: RawMembers<'_, '_>) -> Option<(&'static str, &'static str)> {
    if raw.iter().flatten().count() < 2 {
        return None;
    }
    match named::<B>(raw)[..] {
        [first, second, ..] => Some((first, second)),
        _ => None,
    }
}

/// A value whose members on the wire differ from its fields.
pub(crate) trait Mapped: Sized {
    /// The members.
    type Members: Body;

    /// The value of these members. `before` is the value that a patch changes.
    fn from_members(
        members: Self::Members,
        before: Option<Self>,
        raw: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest>;

    /// The members of this value.
    fn to_members(&self) -> Self::Members;
}

impl<T: Mapped> Body for T {
    const NAME: &'static str = T::Members::NAME;
    const EXAMPLE: &'static str = T::Members::EXAMPLE;
    const KNOWN: Known = T::Members::KNOWN;
    const FORM: Form = T::Members::FORM;

    fn count() -> usize {
        T::Members::count()
    }

    fn find(name: &str) -> Option<usize> {
        T::Members::find(name)
    }

    fn read(raw: RawMembers<'_, '_>, source: Source) -> Result<T, BadRequest> {
        T::from_members(T::Members::read(raw, source)?, None, raw)
    }

    fn patch(self, raw: RawMembers<'_, '_>) -> Result<T, BadRequest> {
        let members = T::Members::read(raw, Source::Request)?;
        T::from_members(members, Some(self), raw)
    }

    fn write<M: SerializeMap>(&self, map: &mut M, form: Form) -> Result<(), M::Error> {
        self.to_members().write(map, form)
    }

    fn members() -> Vec<Member> {
        T::Members::members()
    }

    fn schema() -> Schema {
        T::Members::schema()
    }
}

/// Adapter by which serde writes a body in a form.
pub(crate) struct Written<'b, B>(pub(crate) &'b B, pub(crate) Form);

impl<B: Body> Serialize for Written<'_, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.write(&mut map, self.1)?;
        map.end()
    }
}

/// The description of a schema: the first paragraph of a doc comment.
pub(crate) fn description(doc: &[&'static str]) -> String {
    let lines: Vec<&str> = doc.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Ties a field codec to the type of its field.
pub(crate) fn typed<V, P: FieldCodec<Value = V>, U>(field: Field<P, U>) -> Field<P, U> {
    field
}

/// Takes as many raw members as `part` has from the front of `raw`, and returns them.
pub(crate) fn cut<'s, 'a>(raw: &mut RawMembers<'s, 'a>, part: &impl FieldCodec) -> RawMembers<'s, 'a> {
    let (mine, others) = raw.split_at(part.count());
    *raw = others;
    mine
}

/// The text of a doc attribute; an empty text for other attributes.
macro_rules! doc_text {
    (doc = $text:literal) => {
        $text
    };
    ($($other:tt)*) => {
        ""
    };
}
pub(crate) use doc_text;

/// The given list, or an empty one.
macro_rules! list {
    () => {
        &[]
    };
    ($list:expr) => {
        $list
    };
}
pub(crate) use list;

/// The name of a member on the wire: the given one, or else the name of the field.
macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}
pub(crate) use wire_name;

/// Decides by the role of a body which traits and functions it has.
macro_rules! role {
    (closed request) => { true };
    (closed members) => { true };
    (closed line_members) => { true };
    (closed inner) => { true };
    (closed both) => { true };
    (closed $open:ident) => { false };
    (one_line line_members) => { true };
    (one_line export) => { true };
    (one_line row) => { true };
    (one_line $other:ident) => { false };
    (reader request) => { $crate::declare::Reader::Server };
    (reader members) => { $crate::declare::Reader::Server };
    (reader line_members) => { $crate::declare::Reader::Server };
    (reader both) => { $crate::declare::Reader::Server };
    (reader $other:ident) => { $crate::declare::Reader::Client };
    (functions group $Name:ident) => {};
    (functions members $Name:ident) => {};
    (functions line_members $Name:ident) => {};
    (functions export $Name:ident) => { $crate::declare::body::role!(write $Name); };
    (functions both $Name:ident) => {
        $crate::declare::body::role!(functions request $Name);
        $crate::declare::body::role!(read $Name);
    };
    (functions row $Name:ident) => {
        $crate::declare::body::role!(functions answer $Name);

        impl $Name {
            /// The line, with its line end.
            pub fn to_line(&self) -> Vec<u8> {
                let mut line = $crate::declare::json::write(self);
                line.push(b'\n');
                line
            }
        }
    };
    (functions inner $Name:ident) => { $crate::declare::body::role!(functions answer $Name); };
    (functions answer $Name:ident) => {
        $crate::declare::body::role!(write $Name);
        $crate::declare::body::role!(read $Name);
    };
    (read $Name:ident) => {

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
                $crate::declare::body::Body::from_value(&raw, $crate::declare::Source::Answer).map_err(serde::de::Error::custom)
            }
        }
    };
    (functions $request:ident $Name:ident) => {
        $crate::declare::body::role!(write $Name);

        impl $Name {
            /// Reads the text of a request. An empty text counts as an object without members.
            ///
            /// # Errors
            ///
            /// Text that is not a JSON object, or nests deeper than 64 levels; members that are unknown, given twice, missing, or of the
            /// wrong kind; values outside their limits; members that are not allowed together.
            pub fn parse(bytes: &[u8]) -> Result<Self, $crate::BadRequest> {
                <Self as $crate::declare::body::Body>::parse(bytes)
            }

            /// The text as [`parse`](Self::parse) reads it.
            pub fn to_json(&self) -> Vec<u8> {
                $crate::declare::json::write(self)
            }
        }
    };
    (write $Name:ident) => {
        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::declare::body::Written(self, <Self as $crate::declare::body::Body>::FORM).serialize(serializer)
            }
        }
    };
}
pub(crate) use role;

macro_rules! body {
    (
        $(#[$($attribute:tt)*])*
        $visible:vis struct $Name:ident: $role:ident $($schema:literal)? {
            $($(#[$($about:tt)*])* $field:ident $(as $wire:literal)?: $type:ty = $part:expr;)*
        }
        $(example: $example:literal;)?
        $(later: $later:expr;)?
        $(elsewhere: $elsewhere:expr;)?
        $(rules: $rules:expr;)?
        $(first: $first:expr;)?
        $(check: $check:expr;)?
    ) => {
        $(#[$($attribute)*])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $visible struct $Name {
            $($(#[$($about)*])* pub $field: $type,)*
        }

        impl $crate::declare::body::Body for $Name {
            const NAME: &'static str = concat!($($schema)?);
            const EXAMPLE: &'static str = concat!($($example)?);
            const FORM: $crate::declare::Form = $crate::declare::Form {
                one_line: $crate::declare::body::role!(one_line $role),
                reader: $crate::declare::body::role!(reader $role),
            };
            const KNOWN: $crate::declare::json::Known = $crate::declare::json::Known {
                find: Self::find,
                names: || Self::members().iter().map(|member| member.name).collect(),
                later: $crate::declare::body::list!($($later)?),
                elsewhere: $crate::declare::body::list!($($elsewhere)?),
            };

            fn count() -> usize {
                0 $(+ $crate::declare::field_codec::FieldCodec::count(&$crate::declare::body::typed::<$type, _, _>($part).part))*
            }

            fn find(name: &str) -> Option<usize> {
                let _before = 0;
                $(
                    let part = $crate::declare::body::typed::<$type, _, _>($part).part;
                    let found = $crate::declare::field_codec::FieldCodec::find(&part, $crate::declare::body::wire_name!($field $($wire)?), name);
                    if let Some(at) = found {
                        return Some(_before + at);
                    }
                    let _before = _before + $crate::declare::field_codec::FieldCodec::count(&part);
                )*
                None
            }

            fn read(
                raw: $crate::declare::body::RawMembers<'_, '_>,
                source: $crate::declare::Source,
            ) -> Result<Self, $crate::text::bad_request::BadRequest> {
                let _is_request = source.is_checked();
                $(if _is_request { ($first)(raw)?; })?
                let mut _rest = raw;
                let body = Self {
                    $($field: {
                        let field = $crate::declare::body::typed::<$type, _, _>($part);
                        let name = $crate::declare::body::wire_name!($field $($wire)?);
                        field.read(name, $crate::declare::body::cut(&mut _rest, &field.part), source)?
                    },)*
                };
                $(if _is_request { ($check)(&body, raw)?; })?
                Ok(body)
            }

            fn patch(self, raw: $crate::declare::body::RawMembers<'_, '_>) -> Result<Self, $crate::text::bad_request::BadRequest> {
                $(($first)(raw)?;)?
                let mut _rest = raw;
                let body = Self {
                    $($field: {
                        let field = $crate::declare::body::typed::<$type, _, _>($part);
                        let name = $crate::declare::body::wire_name!($field $($wire)?);
                        field.patch(name, $crate::declare::body::cut(&mut _rest, &field.part), self.$field)?
                    },)*
                };
                $(($check)(&body, raw)?;)?
                Ok(body)
            }

            fn write<M: serde::ser::SerializeMap>(&self, _map: &mut M, _form: $crate::declare::Form) -> Result<(), M::Error> {
                $(
                    let name = $crate::declare::body::wire_name!($field $($wire)?);
                    $crate::declare::body::typed::<$type, _, _>($part).write(name, &self.$field, _map, _form)?;
                )*
                Ok(())
            }

            fn members() -> Vec<$crate::declare::schema::Member> {
                let mut _all = Vec::new();
                $(
                    let what = $crate::declare::body::description(&[$($crate::declare::body::doc_text!($($about)*)),*]);
                    let field = $crate::declare::body::typed::<$type, _, _>($part);
                    let name = $crate::declare::body::wire_name!($field $($wire)?);
                    $crate::declare::field_codec::FieldCodec::describe(&field.part, name, what, field.is_required, &mut _all);
                )*
                _all
            }

            fn schema() -> $crate::declare::schema::Schema {
                $crate::declare::schema::Schema {
                    name: Self::NAME,
                    what: $crate::declare::body::description(&[$($crate::declare::body::doc_text!($($attribute)*)),*]),
                    closed: $crate::declare::body::role!(closed $role),
                    members: Self::members(),
                    rules: $crate::declare::body::list!($($rules)?),
                }
            }
        }

        $crate::declare::body::role!(functions $role $Name);
    };
}
pub(crate) use body;
