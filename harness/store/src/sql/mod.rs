//! SQL for both databases. Statements are written once: their values are `$1`, `$2`, and their words are those that SQLite and
//! PostgreSQL share. [`dialect`] has all that differs.
//!
//! ```text
//! query("SELECT ... $1").bind(value) -> Statement -execute, fetch_all, fetch_one, for_each-> Row -try_get-> value
//! ```

pub(crate) mod dialect;
mod row;
mod value;

pub(crate) use dialect::Dialect;
pub(crate) use row::{FromColumn, Row};
pub(crate) use value::{ToValue, Value};

use futures_util::{FutureExt, Stream, StreamExt, TryStreamExt};
use sqlx::{
    AssertSqlSafe, Connection as _, Error, Executor, PgConnection, SqliteConnection,
    postgres::PgArguments,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};
use sqlx::{SqlSafeStr, SqlStr};
use std::{
    fmt::{Display, Write as _},
    time::Duration,
};

/// Writers wait for a server for 30 seconds before they keep results on their own disk.
const REWRITE_LIMITS: &str = "SET lock_timeout = '3s'; SET statement_timeout = '20s'";

/// How many rows of SQLite may wait to be taken. Its thread reads about one in a microsecond, and stops when there are so many.
pub(crate) const GATHERED: usize = 1024;
/// So many rows of an answer are taken one by one, so that a short one costs no time.
const ONE_BY_ONE: usize = GATHERED;
/// The pause while later rows gather. tokio rounds it up to at most twice that.
const A_BATCH: Duration = Duration::from_millis(1);

/// A connection to either database.
#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Connection {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Begins a transaction that writes. Transactions are plain statements: sqlx counts them by itself, and miscounts when SQLite
    /// rolls back on its own, as it does on a full disk.
    /// PostgreSQL gives it a number, by which one can ask later whether it was committed.
    pub(crate) async fn begin(&mut self) -> Result<Option<i64>, Error> {
        let text = self.dialect().begin();
        match self {
            Self::Sqlite(connection) => connection.execute(sqlx::query(text)).await.map(|_| None),
            Self::Postgres(connection) => Row::Postgres(sqlx::raw_sql(text).fetch_one(connection).await?).try_get(0).map(Some),
        }
    }

    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        self.control("COMMIT").await
    }

    pub(crate) async fn rollback(&mut self) -> Result<(), Error> {
        self.control("ROLLBACK").await
    }

    /// Begins a part of a transaction that may fail because of a row. SQLite undoes a statement that does, and nothing else of the
    /// transaction.
    pub(crate) async fn begin_part(&mut self) -> Result<(), Error> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(connection) => connection.execute("SAVEPOINT part").await.map(drop),
        }
    }

    /// Undoes a part that has failed.
    pub(crate) async fn undo_part(&mut self) -> Result<(), Error> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(connection) => connection.execute("ROLLBACK TO SAVEPOINT part").await.map(drop),
        }
    }

    /// SQLite keeps the statement prepared. PostgreSQL needs fewer messages without.
    async fn control(&mut self, text: &'static str) -> Result<(), Error> {
        match self {
            Self::Sqlite(connection) => connection.execute(sqlx::query(text)).await.map(drop),
            Self::Postgres(connection) => connection.execute(text).await.map(drop),
        }
    }

    /// Executes statements without values, one after the other.
    pub(crate) async fn script(&mut self, text: impl SqlSafeStr) -> Result<(), Error> {
        let text = sqlx::raw_sql(text);
        match self {
            Self::Sqlite(connection) => text.execute(connection).await.map(drop),
            Self::Postgres(connection) => text.execute(connection).await.map(drop),
        }
    }

    /// Whether rows are looked for that refer to what is deleted: who deletes all of them first needs no search for each.
    pub(crate) async fn check_references(&mut self, wanted: bool) -> Result<(), Error> {
        match self {
            Self::Sqlite(connection) => {
                let pragma = if wanted { "PRAGMA foreign_keys = ON" } else { "PRAGMA foreign_keys = OFF" };
                connection.execute(pragma).await.map(drop)
            }
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Gives back the space of rows that were deleted. PostgreSQL keeps it for other rows of the table: see [`Self::rewrite`].
    pub(crate) async fn vacuum(&mut self) -> Result<(), Error> {
        match self {
            Self::Sqlite(connection) => {
                connection.execute("VACUUM").await?;
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").await.map(drop)
            }
            Self::Postgres(connection) => connection.execute("VACUUM").await.map(drop),
        }
    }

    /// Writes a table of PostgreSQL again, without the space of rows that were deleted. Nobody else reads or writes it meanwhile, and
    /// those who come later wait: so the lock has to be free soon, and the rest must not take long. False: the server has left it as it
    /// is, and said so in a notice alone, because the table is another user's.
    pub(crate) async fn rewrite(&mut self, table: &str) -> Result<bool, Error> {
        let file = format!("SELECT CAST(pg_relation_filenode('{table}') AS BIGINT)");
        let before = query(AssertSqlSafe(file.clone())).fetch_scalar::<i64>(self).await?;
        self.vacuum_full(table).await?;
        Ok(query(AssertSqlSafe(file)).fetch_scalar::<i64>(self).await? != before)
    }

    async fn vacuum_full(&mut self, table: &str) -> Result<(), Error> {
        let Self::Postgres(connection) = self else { return Ok(()) };
        connection.execute(REWRITE_LIMITS).await?;
        let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(format!("VACUUM FULL {table}")))).await;
        let reset = connection.execute("RESET lock_timeout; RESET statement_timeout").await;
        // Where both fail, the first says why.
        done.and(reset).map(drop)
    }

    /// SQLite folds its journal into the file first.
    pub(crate) async fn close(self) -> Result<(), Error> {
        match self {
            Self::Sqlite(mut connection) => {
                // Fails harmlessly while others read, and waits for nobody.
                let _ = sqlx::query("PRAGMA busy_timeout = 0").execute(&mut connection).await;
                let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_all(&mut connection).await;
                connection.close().await
            }
            Self::Postgres(connection) => connection.close().await,
        }
    }
}

/// A statement and its values.
#[derive(Debug)]
pub(crate) struct Statement {
    text: SqlStr,
    values: Vec<Value>,
}

/// A statement whose values are bound next.
pub(crate) fn query(text: impl SqlSafeStr) -> Statement {
    Statement { text: text.into_sql_str(), values: Vec::new() }
}

impl Statement {
    #[must_use]
    pub(crate) fn bind(mut self, value: impl ToValue) -> Self {
        self.values.push(value.to_value());
        self
    }

    /// Returns how many rows it has changed.
    pub(crate) async fn execute(self, connection: &mut Connection) -> Result<u64, Error> {
        match connection {
            Connection::Sqlite(connection) => Ok(self.for_sqlite()?.execute(connection).await?.rows_affected()),
            Connection::Postgres(connection) => Ok(self.for_postgres()?.execute(connection).await?.rows_affected()),
        }
    }

    pub(crate) async fn fetch_all(self, connection: &mut Connection) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        match connection {
            Connection::Sqlite(connection) => {
                let found = self.for_sqlite()?.fetch(connection);
                in_batches(found, |row| {
                    rows.push(Row::Sqlite(row));
                    Ok(())
                })
                .await?;
            }
            Connection::Postgres(connection) => {
                let mut found = self.for_postgres()?.fetch(connection);
                while let Some(row) = found.try_next().await? {
                    rows.push(Row::Postgres(row));
                }
            }
        }
        Ok(rows)
    }

    /// Hands out each row as it comes, and keeps none: for answers of a million rows.
    pub(crate) async fn for_each(
        self,
        connection: &mut Connection,
        mut each: impl FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match connection {
            Connection::Sqlite(connection) => {
                in_batches(self.for_sqlite()?.fetch(connection), |row| each(&Row::Sqlite(row))).await?;
            }
            Connection::Postgres(connection) => {
                let mut rows = self.for_postgres()?.fetch(connection).map(|row| row.map(Row::Postgres));
                while let Some(row) = rows.try_next().await? {
                    each(&row)?;
                }
            }
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::RowNotFound`] if there is none.
    pub(crate) async fn fetch_one(self, connection: &mut Connection) -> Result<Row, Error> {
        match connection {
            Connection::Sqlite(connection) => self.for_sqlite()?.fetch_one(connection).await.map(Row::Sqlite),
            Connection::Postgres(connection) => self.for_postgres()?.fetch_one(connection).await.map(Row::Postgres),
        }
    }

    /// The first column of the only row.
    pub(crate) async fn fetch_scalar<T: for<'r> FromColumn<'r>>(self, connection: &mut Connection) -> Result<T, Error> {
        self.fetch_one(connection).await?.try_get(0)
    }

    fn for_sqlite(self) -> Result<Query<'static, sqlx::Sqlite, SqliteArguments>, Error> {
        let mut arguments = SqliteArguments::default();
        value::add_sqlite(&mut arguments, self.values).map_err(Error::Encode)?;
        Ok(sqlx::query_with(self.text, arguments))
    }

    fn for_postgres(self) -> Result<Query<'static, sqlx::Postgres, PgArguments>, Error> {
        let mut arguments = PgArguments::default();
        value::add_postgres(&mut arguments, self.values).map_err(Error::Encode)?;
        Ok(sqlx::query_with(self.text, arguments))
    }
}

/// Hands out the rows of SQLite, which reads on a thread of its own. To be woken for a row costs several times what the row does, so
/// the rows of a long answer are taken as they have gathered.
async fn in_batches(
    mut rows: impl Stream<Item = Result<SqliteRow, Error>> + Unpin,
    mut each: impl FnMut(SqliteRow) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut count = 0;
    loop {
        let row = if count < ONE_BY_ONE {
            rows.try_next().await?
        } else if let Some(row) = rows.try_next().now_or_never() {
            row?
        } else {
            tokio::time::sleep(A_BATCH).await;
            continue;
        };
        let Some(row) = row else { return Ok(()) };
        each(row)?;
        count += 1;
    }
}

/// A statement that is put together.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    text: String,
    values: Vec<Value>,
}

impl Builder {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), values: Vec::new() }
    }

    pub(crate) fn push(&mut self, text: impl Display) -> &mut Self {
        // A string can always be written to.
        let _ = write!(self.text, "{text}");
        self
    }

    /// Appends a placeholder for the value.
    pub(crate) fn push_bind(&mut self, value: Value) -> &mut Self {
        self.values.push(value);
        let number = self.values.len();
        self.push(format_args!("${number}"))
    }

    pub(crate) fn build(self) -> Statement {
        Statement { text: AssertSqlSafe(self.text).into_sql_str(), values: self.values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};

    /// The numbers from 1 to `$1`, and an error at `$2`: the lowest number has no absolute value.
    const NUMBERS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 WHERE $1 > 0 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
        SELECT i, CASE WHEN i = $2 THEN abs(-9223372036854775807 - 1) END FROM n";

    async fn in_memory() -> Connection {
        Connection::Sqlite(SqliteConnectOptions::new().row_buffer_size(GATHERED).connect().await.unwrap())
    }

    #[tokio::test]
    async fn every_row_comes_once_and_in_order_however_many_there_are() {
        let mut connection = in_memory().await;
        for count in [0, 1, 1023, 1024, 1025, 5000] {
            let mut found = Vec::new();
            let each = |row: &Row| {
                found.push(row.try_get::<i64>(0)?);
                Ok(())
            };
            query(NUMBERS).bind(count).bind(0_i64).for_each(&mut connection, each).await.unwrap();
            assert_eq!(found, (1..=count).collect::<Vec<i64>>());
            let all = query(NUMBERS).bind(count).bind(0_i64).fetch_all(&mut connection).await.unwrap();
            assert_eq!(i64::try_from(all.len()).unwrap(), count);
        }
    }

    #[tokio::test]
    async fn an_error_on_either_side_ends_an_answer_and_not_the_connection() {
        let mut connection = in_memory().await;
        for at in [10, 3000] {
            let mut taken = 0;
            let each = |_: &Row| {
                taken += 1;
                Ok(())
            };
            let answer = query(NUMBERS).bind(5000_i64).bind(at).for_each(&mut connection, each).await;
            assert!(answer.unwrap_err().to_string().contains("integer overflow"));
            assert_eq!(taken, at - 1);
            let refuse = |row: &Row| if row.try_get::<i64>(0)? == at { Err(Error::RowNotFound) } else { Ok(()) };
            let answer = query(NUMBERS).bind(9000_i64).bind(0_i64).for_each(&mut connection, refuse).await;
            assert!(matches!(answer, Err(Error::RowNotFound)));
            assert_eq!(query("SELECT 7").fetch_scalar::<i64>(&mut connection).await.unwrap(), 7);
        }
    }
}
