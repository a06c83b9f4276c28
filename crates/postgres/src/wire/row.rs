//! [`Row`]: one row of a result, in the binary format, with getters that check the type.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use fallible_iterator::FallibleIterator;
use postgres_protocol::Oid;
use postgres_protocol::message::backend::{DataRowBody, RowDescriptionBody};
use postgres_protocol::types::array_from_sql;

use super::param::oid;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The number of its type.
    pub(crate) oid: Oid,
}

/// Reads the columns of a result.
pub(crate) fn columns(body: &RowDescriptionBody) -> Result<Arc<[Column]>, String> {
    let mut fields = body.fields();
    let mut columns = Vec::new();
    while let Some(field) = fields.next().map_err(|error| error.to_string())? {
        columns.push(Column { name: field.name().to_owned(), oid: field.type_oid() });
    }
    Ok(columns.into())
}

/// One row of a result. It shares the bytes that came from the server.
#[derive(Clone)]
pub(crate) struct Row {
    columns: Arc<[Column]>,
    cells: Box<[Option<Bytes>]>,
}

impl Row {
    pub(crate) fn new(columns: &Arc<[Column]>, body: &DataRowBody) -> Result<Self, String> {
        let mut cells = Vec::with_capacity(columns.len());
        let mut ranges = body.ranges();
        while let Some(range) = ranges.next().map_err(|error| error.to_string())? {
            cells.push(range.map(|range| body.buffer_bytes().slice(range)));
        }
        if cells.len() != columns.len() {
            return Err(format!("a row has {} values, its result {} columns", cells.len(), columns.len()));
        }
        Ok(Self { columns: Arc::clone(columns), cells: cells.into() })
    }

    /// The number of values.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    #[cfg(test)]
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the value of a column, counted from 0.
    ///
    /// # Errors
    /// [`RowError`]: no such column, another type, a null where the type has none, or bytes that are no such value.
    pub(crate) fn get<'r, T: Value<'r>>(&'r self, index: usize) -> Result<T, RowError> {
        let (Some(column), Some(cell)) = (self.columns.get(index), self.cells.get(index)) else {
            return Err(RowError(format!("there is no column {index}; the row has {}", self.cells.len())));
        };
        let failed = |why: &dyn fmt::Display| RowError(format!("column {index} ({}): {why}", column.name));
        if !T::OIDS.contains(&column.oid) {
            let wanted = T::OIDS.first().copied().unwrap_or_default();
            return Err(failed(&format_args!("its type is {}, and {wanted} is wanted", column.oid)));
        }
        T::read(cell.as_deref()).map_err(|why| failed(&why))
    }
}

impl fmt::Debug for Row {
    /// Shows no values: they are the users'.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// Why a value cannot be read from a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RowError(String);

/// A type that a column can be read as.
pub(crate) trait Value<'r>: Sized {
    /// The types of columns that fit.
    const OIDS: &'static [Oid];

    /// Reads the bytes of a value; `None`: a null.
    fn read(bytes: Option<&'r [u8]>) -> Result<Self, &'static str>;
}

const NULL: &str = "it is null";
const LENGTH: &str = "it has a wrong number of bytes";

macro_rules! fixed {
    ($($type:ty, [$($oid:expr),*];)*) => {$(
        impl<'r> Value<'r> for $type {
            const OIDS: &'static [Oid] = &[$($oid),*];

            fn read(bytes: Option<&'r [u8]>) -> Result<Self, &'static str> {
                Ok(<$type>::from_be_bytes(bytes.ok_or(NULL)?.try_into().map_err(|_| LENGTH)?))
            }
        }
    )*};
}

fixed! {
    i16, [oid::INT2];
    i32, [oid::INT4];
    i64, [oid::INT8];
}

impl<'r> Value<'r> for bool {
    const OIDS: &'static [Oid] = &[oid::BOOL];

    fn read(bytes: Option<&'r [u8]>) -> Result<Self, &'static str> {
        match bytes.ok_or(NULL)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err("it is no bool"),
        }
    }
}

impl<'r> Value<'r> for &'r str {
    const OIDS: &'static [Oid] = &[oid::TEXT, oid::VARCHAR, oid::NAME, oid::BPCHAR, oid::UNKNOWN];

    fn read(bytes: Option<&'r [u8]>) -> Result<Self, &'static str> {
        std::str::from_utf8(bytes.ok_or(NULL)?).map_err(|_| "it is not UTF-8")
    }
}

impl<'r> Value<'r> for &'r [u8] {
    const OIDS: &'static [Oid] = &[oid::BYTEA];

    fn read(bytes: Option<&'r [u8]>) -> Result<Self, &'static str> {
        bytes.ok_or(NULL)
    }
}

impl<'r, T: Value<'r>> Value<'r> for Option<T> {
    const OIDS: &'static [Oid] = T::OIDS;

    fn read(bytes: Option<&'r [u8]>) -> Result<Self, &'static str> {
        bytes.map(|bytes| T::read(Some(bytes))).transpose()
    }
}

/// A type that the elements of an array can be read as.
pub(crate) trait Element<'r>: Value<'r> {
    /// The types of arrays that fit.
    const ARRAYS: &'static [Oid];
}

macro_rules! element {
    ($($type:ty, [$($oid:expr),*];)*) => {$(
        impl<'r> Element<'r> for $type {
            const ARRAYS: &'static [Oid] = &[$($oid),*];
        }
    )*};
}

element! {
    bool, [oid::BOOL_ARRAY];
    i16, [oid::INT2_ARRAY];
    i32, [oid::INT4_ARRAY];
    i64, [oid::INT8_ARRAY];
    &'r str, [oid::TEXT_ARRAY, oid::VARCHAR_ARRAY, oid::NAME_ARRAY];
    &'r [u8], [oid::BYTEA_ARRAY];
}

impl<'r, T: Element<'r>> Element<'r> for Option<T> {
    const ARRAYS: &'static [Oid] = T::ARRAYS;
}

impl<'r, T: Element<'r>> Value<'r> for Vec<T> {
    const OIDS: &'static [Oid] = T::ARRAYS;

    fn read(bytes: Option<&'r [u8]>) -> Result<Self, &'static str> {
        const BROKEN: &str = "it is no array";
        let array = array_from_sql(bytes.ok_or(NULL)?).map_err(|_| BROKEN)?;
        if array.dimensions().count().map_err(|_| BROKEN)? > 1 {
            return Err("it has several dimensions");
        }
        if !T::OIDS.contains(&array.element_type()) {
            return Err("its elements have another type");
        }
        // The number of elements is only a claim, so it reserves nothing.
        let mut elements = Vec::new();
        let mut values = array.values();
        while let Some(value) = values.next().map_err(|_| BROKEN)? {
            elements.push(T::read(value)?);
        }
        Ok(elements)
    }
}
