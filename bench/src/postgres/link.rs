//! [`Link`]: a bare connection to PostgreSQL.

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

/// A parameter of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// A bare connection, by the crate tokio-postgres. The thread that calls does all its work.
pub(super) struct Link {
    runtime: Runtime,
    client: Client,
}

impl Link {
    /// Opens a connection.
    pub(super) fn open(url: &str) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("start a runtime")?;
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            // An error of the connection is that of the next call too.
            tokio::spawn(async { connection.await.unwrap_or_default() });
            anyhow::Ok(client)
        });
        Ok(Self { client: client.with_context(|| format!("connect to {url}"))?, runtime })
    }

    /// Runs statements without parameters.
    pub(super) fn script(&mut self, sql: &str) -> anyhow::Result<()> {
        self.runtime.block_on(self.client.batch_execute(sql)).with_context(|| short(sql))
    }

    /// Returns the one value of a statement, a text.
    pub(super) fn text(&mut self, sql: &str) -> anyhow::Result<String> {
        let row = self.runtime.block_on(self.client.query_one(sql, &[])).with_context(|| short(sql))?;
        row.try_get(0).with_context(|| short(sql))
    }

    pub(super) fn prepare(&mut self, sql: &str) -> anyhow::Result<Statement> {
        self.runtime.block_on(self.client.prepare(sql)).with_context(|| short(sql))
    }

    /// Runs a statement. Returns the number of rows that it changed.
    pub(super) fn execute(&mut self, statement: &Statement, values: &[Value<'_>]) -> anyhow::Result<u64> {
        Ok(self.runtime.block_on(self.client.execute(statement, values))?)
    }

    /// Runs a statement. Returns its rows.
    pub(super) fn query(&mut self, statement: &Statement, values: &[Value<'_>]) -> anyhow::Result<Vec<Row>> {
        Ok(self.runtime.block_on(self.client.query(statement, values))?)
    }
}

fn short(sql: &str) -> String {
    format!("run {:.100}", sql.replace('\n', " "))
}
