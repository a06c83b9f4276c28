//! The language in which bodies and queries are declared: their members, and how each is read, written and described.

pub(crate) mod body;
pub(crate) mod choice;
pub(crate) mod field_codec;
pub(crate) mod form;
pub(crate) mod json;
pub(crate) mod query;
pub(crate) mod schema;
pub(crate) mod value;
pub(crate) mod value_codec;

pub(crate) use body::{Body, MEMBERS_MAX, Mapped, RawMembers, body, named, role, two_of};
pub(crate) use choice::{Choice, choice};
pub(crate) use field_codec::{
    FieldCodec, flat, has, may, members_of, nullable, or, or_left_out, or_made, quiet, shown, unless,
    unless_made,
};
pub(crate) use form::{Form, Reader, Source};
pub(crate) use schema::{Member, Rule, Schema};
pub(crate) use value_codec::{
    ValueCodec, choice, count, duration, flag, instant, key, list, number, object, one_of, or_null, text,
    word,
};
