//! The door and its plan.

use std::fmt;
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickwheel_api::Problem;
use tickwheel_api::openapi::Needs;
use tickwheel_queue::{Ack, Body, Key, Lease, Put, QueueName, Token, TokenAnswer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::base::pieces::Pieces;
use crate::doors::plan::Plan;
use crate::listen::door::{Connection, Door, Idle, Serving};
use crate::listen::socket::ListenAt;
use crate::listen::stream::Stream;
use crate::listen::tls::{Tls, TlsError};
use crate::service::app::App;
use crate::service::caller::{Caller, Leasing};
use crate::start_error::StartError;
use crate::telemetry::metrics::Figures;
use crate::telemetry::metrics::page::{Page, metrics};
use crate::translate;

/// The plan of the door: where it listens, and its counter.
pub(super) struct Resp {
    listen: ListenAt,
    commands: Arc<Commands>,
}

/// The number of commands of all clients.
#[derive(Default)]
struct Commands(AtomicU64);

metrics! {
    const METRICS: Commands;

    /// Commands of the third door
    Counter tickwheel_resp_commands: |commands, out| out.is(commands.0.load(Ordering::Relaxed));
}

impl Figures for Commands {
    fn write(&self, page: &mut Page<Pieces>) -> fmt::Result {
        page.write(METRICS, self)
    }
}

impl Resp {
    pub(super) fn at(listen: ListenAt) -> Self {
        Self { listen, commands: Arc::default() }
    }
}

impl Plan for Resp {
    fn listen(&self) -> Option<&ListenAt> {
        Some(&self.listen)
    }

    fn tls(&self, server: Option<&Tls>) -> Result<Option<Tls>, TlsError> {
        Ok(server.cloned())
    }

    fn refused(&self, source: io::Error) -> StartError {
        StartError::Listen { listen: self.listen.clone(), source }
    }

    fn figures(&self) -> Option<Arc<dyn Figures>> {
        Some(Arc::clone(&self.commands) as Arc<dyn Figures>)
    }

    fn open(self: Box<Self>, app: Arc<App>, _: &ListenAt) -> Arc<dyn Door> {
        Arc::new(RespDoor { app, commands: self.commands })
    }
}

struct RespDoor {
    app: Arc<App>,
    commands: Arc<Commands>,
}

impl Door for RespDoor {
    fn name(&self) -> &'static str {
        "resp"
    }

    fn idle(&self) -> Idle {
        Idle::Stays
    }

    fn serve(self: Arc<Self>, connection: Connection) -> Serving {
        Box::pin(async move {
            // A client that leaves ends its connection, and nothing else.
            let _left = self.talk(connection).await;
        })
    }

    fn turn_away(self: Arc<Self>, why: Problem, stream: Option<Stream>) -> Option<Serving> {
        let mut stream = stream?;
        Some(Box::pin(async move {
            let _told = stream.write_all(format!("-ERR {}\r\n", why.detail).as_bytes()).await;
        }))
    }
}

impl RespDoor {
    async fn talk(&self, connection: Connection) -> io::Result<()> {
        let (from, stopping) = (connection.standing.from(), self.app.background.stopping().clone());
        let mut stream = BufReader::new(connection.stream);
        let (mut token, mut line) = (None, String::new());
        loop {
            line.clear();
            tokio::select! {
                read = stream.read_line(&mut line) => if read? == 0 { return Ok(()) },
                () = stopping.wait() => return Ok(()),
            }
            self.commands.0.fetch_add(1, Ordering::Relaxed);
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let reply = match (words.as_slice(), &token) {
                (["AUTH", given], _) => {
                    token = Some((*given).to_owned());
                    Ok("+OK\r\n".to_owned())
                }
                (words, token) => self.carry_out(words, token.as_deref(), from).await,
            };
            let reply = reply.unwrap_or_else(|refusal| {
                self.app
                    .observed
                    .refusals()
                    .count(refusal.problem().kind().expect("each refusal here has a kind"));
                format!("-ERR {}\r\n", refusal.problem().detail)
            });
            stream.write_all(reply.as_bytes()).await?;
        }
    }

    async fn carry_out(
        &self,
        words: &[&str],
        token: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<String, Refusal> {
        let queue =
            |name: &str| QueueName::new(name).map_err(|error| Refusal::from(translate::name_refused(&error)));
        let caller = |right: Right, name: &str| {
            let token = token.map(str::as_bytes);
            Caller::begin(&self.app, token, Needs::In(right), Some(&queue(name)?), true, from)
        };
        match *words {
            ["PING"] => Ok("+PONG\r\n".to_owned()),
            ["ADDJOB", name, key, body, delay_ms] => {
                let caller = caller(Right::Produce, name)?;
                let key = Key::new(key).map_err(|error| translate::name_refused(&error))?;
                let delay = Duration::from_millis(delay_ms.parse().unwrap_or(0));
                let body = Body::bytes(body.as_bytes().to_vec());
                let put = Put { body, ..Put::new(&queue(name)?, key) }.after(delay);
                caller.count().await?;
                let stored = caller.put(put)?.await.map_err(|why| Problem::internal(why.to_string()))?;
                Ok(bulk(&stored.task.id.to_string()))
            }
            ["GETJOB", name, wait_ms] => {
                let wait = Duration::from_millis(wait_ms.parse().unwrap_or(0));
                let lease = Lease::new(&queue(name)?);
                let end = pending::<Result<(), ()>>();
                let leased = caller(Right::Consume, name)?.lease(lease, wait, None, end).await?;
                let Leasing { leased, held: _held, .. } =
                    leased.map_err(|why| Problem::internal(why.to_string()))?;
                Ok(leased.first().map_or("*-1\r\n".to_owned(), |task| {
                    let body = String::from_utf8_lossy(task.body.payload_at(task.step).0);
                    let parts = [task.key.as_str(), &task.token.to_string(), &*body].map(bulk);
                    format!("*3\r\n{}", parts.concat())
                }))
            }
            ["ACKJOB", name, token_text] => {
                let token = Token::parse(token_text).map_err(|_| Problem::no_endpoint(token_text))?;
                let ack = Ack::new(&queue(name)?, [token]);
                let acked = caller(Right::Consume, name)?.ack(ack)?.await;
                let acked = acked.map_err(|why| Problem::internal(why.to_string()))?;
                Ok(format!(":{}\r\n", u8::from(acked == [TokenAnswer::Acked])))
            }
            _ => Err(Problem::no_endpoint(words.first().unwrap_or(&"")).into()),
        }
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
