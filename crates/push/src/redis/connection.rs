//! [`RedisConnection`]: a Redis server, and how to log in.

use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, RedisConnectionInfo, Value, cmd};
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ClientConfig;

use super::answer;
use super::replicas::Replicas;
use crate::broker::{Dial, Dialing, Endpoint, first_open};

/// A Redis server, and how to log in. A cluster and a sentinel are not supported.
pub struct RedisConnection {
    /// The addresses of the server and of its replicas. The first one that is no replica is used.
    pub endpoints: Vec<Endpoint>,
    /// The settings of TLS; `None`: without TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// The user; `None`: the default user.
    pub user: Option<String>,
    /// The password, if the server wants one.
    pub password: Option<String>,
    /// The number of the database.
    pub database: u32,
}

/// An open connection to a Redis server. Commands of several messages are under way on it at one time.
pub struct RedisLive {
    pub(super) commands: MultiplexedConnection,
    pub(super) replicas: Replicas,
    /// Reads and writes, until the connection is lost.
    driver: JoinHandle<()>,
}

impl RedisConnection {
    /// Returns a server without TLS and without a password.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self { endpoints, tls: None, user: None, password: None, database: 0 }
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<RedisLive, String> {
        let stream = endpoint.connect(self.tls.as_ref()).await?;
        let mut info =
            RedisConnectionInfo::default().set_db(i64::from(self.database)).set_skip_set_lib_name();
        if let Some(user) = &self.user {
            info = info.set_username(user);
        }
        if let Some(password) = &self.password {
            info = info.set_password(password);
        }
        // The sink has its own time-out.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let (commands, driver) = MultiplexedConnection::new_with_config(&info, stream, config)
            .await
            .map_err(|error| format!("{endpoint}: {}", answer::greeting(&error)))?;
        let driver = tokio::spawn(driver);
        // A server that wants a password tells only when it is asked for something. A user may have no right to ask for this.
        match cmd("PING").query_async::<Value>(&mut commands.clone()).await {
            Err(error) if error.code() != Some("NOPERM") => {
                return Err(format!("{endpoint}: {}", answer::greeting(&error)));
            }
            Ok(_) | Err(_) => {}
        }
        Ok(RedisLive { commands, replicas: Replicas::default(), driver })
    }
}

impl RedisLive {
    /// Whether the server says that it is a replica. A user may have no right to ask; then the first message shows it.
    async fn is_replica(&self) -> bool {
        let role = cmd("ROLE").query_async::<Vec<Value>>(&mut self.commands.clone()).await;
        role.is_ok_and(|role| role.first() == Some(&Value::BulkString(b"slave".to_vec())))
    }
}

impl Dial for RedisConnection {
    type Live = RedisLive;

    fn dial(&self) -> Dialing<'_, RedisLive> {
        Box::pin(first_open(&self.endpoints, async |endpoint| {
            let live = self.open(endpoint).await?;
            if self.endpoints.len() > 1 && live.is_replica().await {
                return Err(format!("{endpoint}: the server is a replica"));
            }
            Ok(live)
        }))
    }

    fn is_alive(live: &RedisLive) -> bool {
        !live.driver.is_finished()
    }
}
