//! [`Param`]: a parameter of a statement, in the binary format.

use std::borrow::Cow;
use std::error::Error;

use bytes::{BufMut, BytesMut};
use postgres_protocol::types::{ArrayDimension, array_to_sql};
use postgres_protocol::{IsNull, Oid};

/// The types that parameters and columns may have here, by their numbers in `pg_type`.
pub(crate) mod oid {
    use postgres_protocol::Oid;

    pub(crate) const BOOL: Oid = 16;
    pub(crate) const BYTEA: Oid = 17;
    pub(crate) const NAME: Oid = 19;
    pub(crate) const INT8: Oid = 20;
    pub(crate) const INT2: Oid = 21;
    pub(crate) const INT4: Oid = 23;
    pub(crate) const TEXT: Oid = 25;
    pub(crate) const UNKNOWN: Oid = 705;
    pub(crate) const BOOL_ARRAY: Oid = 1000;
    pub(crate) const BYTEA_ARRAY: Oid = 1001;
    pub(crate) const NAME_ARRAY: Oid = 1003;
    pub(crate) const INT2_ARRAY: Oid = 1005;
    pub(crate) const INT4_ARRAY: Oid = 1007;
    pub(crate) const TEXT_ARRAY: Oid = 1009;
    pub(crate) const VARCHAR_ARRAY: Oid = 1015;
    pub(crate) const INT8_ARRAY: Oid = 1016;
    pub(crate) const BPCHAR: Oid = 1042;
    pub(crate) const VARCHAR: Oid = 1043;
}

/// A parameter, with the type that is declared for it.
#[derive(Clone, Debug)]
pub(crate) enum Param<'a> {
    /// A null of the type with this number: see [`oid`].
    Null(Oid),
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Text(Cow<'a, str>),
    Bytea(Cow<'a, [u8]>),
    Bools(Cow<'a, [bool]>),
    Int2s(Cow<'a, [i16]>),
    Int4s(Cow<'a, [i32]>),
    Int8s(Cow<'a, [i64]>),
    OptionalInt4s(Cow<'a, [Option<i32>]>),
    OptionalInt8s(Cow<'a, [Option<i64>]>),
    Texts(Cow<'a, [&'a str]>),
    OptionalTexts(Cow<'a, [Option<&'a str>]>),
    Byteas(Cow<'a, [&'a [u8]]>),
    OptionalByteas(Cow<'a, [Option<&'a [u8]>]>),
}

type Encoded = Result<IsNull, Box<dyn Error + Sync + Send>>;

impl Param<'_> {
    /// The number of the type, for `Parse`.
    pub(crate) fn oid(&self) -> Oid {
        match self {
            Self::Null(oid) => *oid,
            Self::Bool(_) => oid::BOOL,
            Self::Int2(_) => oid::INT2,
            Self::Int4(_) => oid::INT4,
            Self::Int8(_) => oid::INT8,
            Self::Text(_) => oid::TEXT,
            Self::Bytea(_) => oid::BYTEA,
            Self::Bools(_) => oid::BOOL_ARRAY,
            Self::Int2s(_) => oid::INT2_ARRAY,
            Self::Int4s(_) | Self::OptionalInt4s(_) => oid::INT4_ARRAY,
            Self::Int8s(_) | Self::OptionalInt8s(_) => oid::INT8_ARRAY,
            Self::Texts(_) | Self::OptionalTexts(_) => oid::TEXT_ARRAY,
            Self::Byteas(_) | Self::OptionalByteas(_) => oid::BYTEA_ARRAY,
        }
    }

    /// Writes the value.
    pub(crate) fn encode(&self, to: &mut BytesMut) -> Encoded {
        match self {
            Self::Null(_) => return Ok(IsNull::Yes),
            Self::Bool(value) => to.put_u8((*value).into()),
            Self::Int2(value) => to.put_i16(*value),
            Self::Int4(value) => to.put_i32(*value),
            Self::Int8(value) => to.put_i64(*value),
            Self::Text(value) => to.put_slice(value.as_bytes()),
            Self::Bytea(value) => to.put_slice(value),
            Self::Bools(values) => {
                return array(oid::BOOL, values, to, |value, to| {
                    to.put_u8((*value).into());
                    IsNull::No
                });
            }
            Self::Int2s(values) => {
                return array(oid::INT2, values, to, |value, to| {
                    to.put_i16(*value);
                    IsNull::No
                });
            }
            Self::Int4s(values) => {
                return array(oid::INT4, values, to, |value, to| {
                    to.put_i32(*value);
                    IsNull::No
                });
            }
            Self::Int8s(values) => {
                return array(oid::INT8, values, to, |value, to| {
                    to.put_i64(*value);
                    IsNull::No
                });
            }
            Self::OptionalInt4s(values) => {
                return array(oid::INT4, values, to, |value, to| {
                    nullable(*value, to, |value, to| to.put_i32(value))
                });
            }
            Self::OptionalInt8s(values) => {
                return array(oid::INT8, values, to, |value, to| {
                    nullable(*value, to, |value, to| to.put_i64(value))
                });
            }
            Self::Texts(values) => {
                return array(oid::TEXT, values, to, |value, to| {
                    to.put_slice(value.as_bytes());
                    IsNull::No
                });
            }
            Self::OptionalTexts(values) => {
                return array(oid::TEXT, values, to, |value, to| {
                    nullable(*value, to, |value, to| to.put_slice(value.as_bytes()))
                });
            }
            Self::Byteas(values) => {
                return array(oid::BYTEA, values, to, |value, to| {
                    to.put_slice(value);
                    IsNull::No
                });
            }
            Self::OptionalByteas(values) => {
                return array(oid::BYTEA, values, to, |value, to| {
                    nullable(*value, to, |value, to| to.put_slice(value))
                });
            }
        }
        Ok(IsNull::No)
    }
}

fn nullable<T>(value: Option<T>, to: &mut BytesMut, write: impl FnOnce(T, &mut BytesMut)) -> IsNull {
    match value {
        None => IsNull::Yes,
        Some(value) => {
            write(value, to);
            IsNull::No
        }
    }
}

fn array<T>(
    element: Oid,
    values: &[T],
    to: &mut BytesMut,
    mut write: impl FnMut(&T, &mut BytesMut) -> IsNull,
) -> Encoded {
    let dimension = ArrayDimension { len: i32::try_from(values.len())?, lower_bound: 1 };
    array_to_sql([dimension], element, values, |value, to| Ok(write(value, to)), to)?;
    Ok(IsNull::No)
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytea(Cow::Borrowed(value))
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident;)*) => {$(
        impl<'a> From<$type> for Param<'a> {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from! {
    bool => Bool;
    i16 => Int2;
    i32 => Int4;
    i64 => Int8;
    String => Text;
    Vec<u8> => Bytea;
    &'a [bool] => Bools;
    &'a [i16] => Int2s;
    &'a [i32] => Int4s;
    &'a [i64] => Int8s;
    &'a [Option<i32>] => OptionalInt4s;
    &'a [Option<i64>] => OptionalInt8s;
    &'a [&'a str] => Texts;
    &'a [Option<&'a str>] => OptionalTexts;
    &'a [&'a [u8]] => Byteas;
    &'a [Option<&'a [u8]>] => OptionalByteas;
    Vec<bool> => Bools;
    Vec<i16> => Int2s;
    Vec<i32> => Int4s;
    Vec<i64> => Int8s;
    Vec<Option<i32>> => OptionalInt4s;
    Vec<Option<i64>> => OptionalInt8s;
    Vec<&'a str> => Texts;
    Vec<Option<&'a str>> => OptionalTexts;
    Vec<&'a [u8]> => Byteas;
    Vec<Option<&'a [u8]>> => OptionalByteas;
}
