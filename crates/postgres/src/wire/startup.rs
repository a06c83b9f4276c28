//! The start of a session: the startup packet, authentication, and the settings that the server reports.

use std::collections::BTreeMap;
use std::time::Instant;

use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::error::DbError;
use super::message::{self, STARTUP_BYTES_MAX};
use super::tls;
use super::transport::{Transport, TransportError};

/// The login of a session.
#[derive(Copy, Clone)]
pub(crate) struct Login<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: Option<&'a str>,
    pub(crate) database: &'a str,
    pub(crate) application_name: &'a str,
    /// Settings for the session.
    pub(crate) settings: &'a [(&'a str, &'a str)],
    /// Whether the bytes cannot be read on their way: TLS, a Unix socket, this machine.
    pub(crate) is_private: bool,
}

/// A session that is ready.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) backend_pid: i32,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum StartError {
    /// The database says no.
    Database(Box<DbError>),
    /// The configuration is wrong.
    Refused(String),
    Transport(TransportError),
}

impl From<TransportError> for StartError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

/// Opens a session: sends the login and reads until the server is ready.
pub(crate) fn start(
    transport: &mut Transport,
    login: &Login<'_>,
    deadline: Instant,
) -> Result<Session, StartError> {
    let parameters = [
        ("user", login.user),
        ("database", login.database),
        ("application_name", login.application_name),
        ("client_encoding", "UTF8"),
    ];
    let parameters = parameters.into_iter().chain(login.settings.iter().copied());
    frontend::startup_message(parameters, transport.outgoing()).map_err(in_login)?;
    let mut stage = Stage::Begun;
    let mut session = Session { parameters: BTreeMap::new(), backend_pid: 0 };
    loop {
        let bytes_max = STARTUP_BYTES_MAX;
        match (transport.message(bytes_max, Some(deadline))?, &mut stage) {
            (Message::ErrorResponse(body), _) => {
                return Err(match message::db_error(body.fields()) {
                    Ok(error) => StartError::Database(Box::new(error)),
                    Err(why) => violation(why),
                });
            }
            // A notice at this point is for people who log in, such as a warning about the collation.
            (Message::NoticeResponse(_), _) => {}
            (Message::AuthenticationCleartextPassword, Stage::Begun) => {
                if !login.is_private {
                    return Err(StartError::Refused(
                        "the server asks for the password in clear text, and the connection has no TLS"
                            .to_owned(),
                    ));
                }
                frontend::password_message(password(login)?.as_bytes(), transport.outgoing())
                    .map_err(in_login)?;
                stage = Stage::Answered;
            }
            (Message::AuthenticationMd5Password(body), Stage::Begun) => {
                let hash = md5_hash(login.user.as_bytes(), password(login)?.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), transport.outgoing()).map_err(in_login)?;
                stage = Stage::Answered;
            }
            (Message::AuthenticationSasl(body), Stage::Begun) => {
                let mut offered = body.mechanisms();
                let (mut has_plain, mut has_plus) = (false, false);
                while let Some(mechanism) = offered.next().map_err(|error| violation(error.to_string()))? {
                    has_plain |= mechanism == SCRAM_SHA_256;
                    has_plus |= mechanism == SCRAM_SHA_256_PLUS;
                }
                let end_point = transport.certificate().and_then(tls::end_point);
                let (mechanism, binding) = match end_point {
                    Some(end_point) if has_plus => {
                        (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(end_point))
                    }
                    // This client can bind, and the server says that it cannot: the server checks this claim, so a
                    // man in the middle cannot take the offer away.
                    Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
                    None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
                };
                if mechanism == SCRAM_SHA_256 && !has_plain {
                    return Err(StartError::Refused(
                        "the server offers no SASL mechanism that is known".to_owned(),
                    ));
                }
                let scram = ScramSha256::new(password(login)?.as_bytes(), binding);
                frontend::sasl_initial_response(mechanism, scram.message(), transport.outgoing())
                    .map_err(in_login)?;
                stage = Stage::Scram(Box::new(scram));
            }
            (Message::AuthenticationSaslContinue(body), Stage::Scram(scram)) => {
                scram.update(body.data()).map_err(|error| violation(error.to_string()))?;
                frontend::sasl_response(scram.message(), transport.outgoing()).map_err(in_login)?;
            }
            (Message::AuthenticationSaslFinal(body), Stage::Scram(scram)) => {
                let proven = scram.finish(body.data());
                proven.map_err(|error| {
                    StartError::Refused(format!(
                        "the server does not prove that it knows the password: {error}"
                    ))
                })?;
                stage = Stage::Answered;
            }
            // After the start of SCRAM the server has to prove itself first, so this arm leaves that stage out.
            (Message::AuthenticationOk, Stage::Begun | Stage::Answered) => stage = Stage::In,
            (
                Message::AuthenticationGss
                | Message::AuthenticationKerberosV5
                | Message::AuthenticationScmCredential
                | Message::AuthenticationSspi,
                _,
            ) => {
                return Err(StartError::Refused(
                    "the server wants a kind of authentication that this client does not have; known are trust, peer, \
                     cert, password, md5 and scram-sha-256"
                        .to_owned(),
                ));
            }
            (Message::ParameterStatus(body), Stage::In) => {
                if let (Ok(name), Ok(value)) = (body.name(), body.value()) {
                    session.parameters.insert(name.to_owned(), value.to_owned());
                }
            }
            (Message::BackendKeyData(body), Stage::In) => session.backend_pid = body.process_id(),
            (Message::ReadyForQuery(_), Stage::In) => return Ok(session),
            (other, _) => {
                return Err(violation(format!("{} has no place at the start", message::name(&other))));
            }
        }
    }
}

/// How far the authentication is.
enum Stage {
    /// The server has to say what it wants.
    Begun,
    /// SCRAM is under way.
    Scram(Box<ScramSha256>),
    /// The server has to say whether the password is right.
    Answered,
    /// The server has let the client in.
    In,
}

fn password<'a>(login: &Login<'a>) -> Result<&'a str, StartError> {
    login.password.ok_or_else(|| {
        StartError::Refused(
            "the server asks for a password, and there is none in the URL, in PGPASSWORD or in the file of passwords"
                .to_owned(),
        )
    })
}

fn in_login(error: std::io::Error) -> StartError {
    StartError::Refused(format!("the login cannot be sent: {error}"))
}

fn violation(why: String) -> StartError {
    StartError::Transport(TransportError::Violation(why))
}
