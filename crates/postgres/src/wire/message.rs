//! Messages of the server: framing with a bound, and the fields of errors and notices.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorFields, Header, Message};

use super::error::{DbError, Notice};

/// The longest message in bytes. The server makes none that is longer: its memory for one message ends at 1 GiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// The longest message in bytes before the server has let the client in. libpq takes at most 30,000 for an error.
pub(crate) const STARTUP_BYTES_MAX: usize = 64 << 10;

/// Takes the first message out of the bytes; `None`: it is not complete.
///
/// # Errors
/// A text that says what is wrong with the bytes.
pub(crate) fn take(bytes: &mut BytesMut, bytes_max: usize) -> Result<Option<Message>, String> {
    let Some(header) = Header::parse(bytes).map_err(|error| error.to_string())? else { return Ok(None) };
    let length = usize::try_from(header.len()).map_err(|_| "a message has a negative length".to_owned())? + 1;
    if length > bytes_max {
        return Err(format!("a message has {length} bytes; the limit is {bytes_max}"));
    }
    // The parser reserves the length of a message that is not complete. A length of 1 GiB is only a claim, so the
    // parser sees complete messages only.
    if bytes.len() < length {
        return Ok(None);
    }
    Message::parse(bytes).map_err(|error| error.to_string())
}

/// Reads the fields of an error.
pub(crate) fn db_error(mut fields: ErrorFields<'_>) -> Result<DbError, String> {
    let mut error = DbError::default();
    let mut localized = None;
    while let Some(field) = fields.next().map_err(|error| error.to_string())? {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'V' => error.severity = value,
            b'S' => localized = Some(value),
            b'C' => error.code = value,
            b'M' => error.message = value,
            b'D' => error.detail = Some(value),
            b'H' => error.hint = Some(value),
            b'n' => error.constraint = Some(value),
            b't' => error.table = Some(value),
            // Positions in the source of the server and the like.
            _ => {}
        }
    }
    if error.severity.is_empty() {
        error.severity = localized.unwrap_or_default();
    }
    Ok(error)
}

/// Reads the fields of a notice.
pub(crate) fn notice(fields: ErrorFields<'_>) -> Result<Notice, String> {
    let DbError { severity, code, message, .. } = db_error(fields)?;
    Ok(Notice { severity, code, message })
}

/// Names a message, for errors.
pub(crate) fn name(message: &Message) -> &'static str {
    match message {
        Message::AuthenticationOk => "AuthenticationOk",
        Message::AuthenticationSasl(_) => "AuthenticationSASL",
        Message::AuthenticationSaslContinue(_) => "AuthenticationSASLContinue",
        Message::AuthenticationSaslFinal(_) => "AuthenticationSASLFinal",
        Message::BackendKeyData(_) => "BackendKeyData",
        Message::BindComplete => "BindComplete",
        Message::CommandComplete(_) => "CommandComplete",
        Message::CopyInResponse(_) | Message::CopyOutResponse(_) => "the start of a COPY",
        Message::DataRow(_) => "DataRow",
        Message::EmptyQueryResponse => "EmptyQueryResponse",
        Message::ErrorResponse(_) => "ErrorResponse",
        Message::NoData => "NoData",
        Message::ParameterDescription(_) => "ParameterDescription",
        Message::ParseComplete => "ParseComplete",
        Message::ReadyForQuery(_) => "ReadyForQuery",
        Message::RowDescription(_) => "RowDescription",
        _ => "another message",
    }
}
