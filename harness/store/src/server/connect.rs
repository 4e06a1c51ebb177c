//! Connecting to a PostgreSQL server.

use crate::{
    Location, Server, StoreError,
    error::SqlError,
    schema,
    server::Options,
    sql::{Connection, query},
};
use sqlx::ConnectOptions;
use std::{io, time::Duration};
use tokio::time::timeout;

/// How long to wait for a server that does not answer.
const ANSWER: Duration = Duration::from_secs(10);

/// A transaction of a process that is stopped, or cut off, does not hold its rows for longer: others may wait for them. Statements are
/// not compiled, and rows are found by their indexes: questions are about few rows of large tables, which are in memory.
const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = warning;
    SET jit = off; SET random_page_cost = 1.1";

const READ_ONLY: &str = "SET default_transaction_read_only = on";

/// Opens for writing, and brings the tables up to date. Also returns what the user should know: nothing.
pub(crate) async fn for_writing(server: &Server) -> Result<(Connection, Vec<String>), StoreError> {
    let database = Location::Server(server.clone());
    let mut connection = connect(server).await?;
    let encoding = query("SELECT current_setting('server_encoding')").fetch_scalar(&mut connection).await;
    let encoding: String = encoding.map_err(|cause| StoreError::Open { database: database.clone(), cause: cause.into() })?;
    if encoding != "UTF8" {
        let why = format!("its encoding is {encoding}, and names and logs need UTF8: `CREATE DATABASE ... ENCODING 'UTF8'`");
        return Err(StoreError::Open { database, cause: sqlx::Error::Configuration(why.into()).into() });
    }
    schema::to_newest(&mut connection, &database).await?;
    Ok((connection, Vec::new()))
}

/// Opens for reading only.
pub(crate) async fn for_reading(server: &Server) -> Result<Connection, StoreError> {
    let mut connection = connect(server).await?;
    read_only(&mut connection, server).await?;
    schema::is_newest(&mut connection, &Location::Server(server.clone())).await?;
    Ok(connection)
}

/// Opens for a process that reads what it is about to write to.
pub(crate) async fn for_reading_of_writer(server: &Server) -> Result<Connection, StoreError> {
    let (mut connection, _) = for_writing(server).await?;
    read_only(&mut connection, server).await?;
    Ok(connection)
}

async fn read_only(connection: &mut Connection, server: &Server) -> Result<(), StoreError> {
    let set = connection.script(READ_ONLY).await;
    set.map_err(|cause| StoreError::Open { database: Location::Server(server.clone()), cause: cause.into() })
}

pub(super) async fn connect(server: &Server) -> Result<Connection, StoreError> {
    let failed =
        |cause: sqlx::Error| StoreError::Open { database: Location::Server(server.clone()), cause: SqlError::from(cause) };
    let options = Options::of(server.url()).map_err(|why| failed(sqlx::Error::Configuration(why.into())))?;
    let connected = async {
        let mut connection = Connection::Postgres(options.connect.connect().await?);
        connection.script(SETTINGS).await?;
        Ok(connection)
    };
    let no_answer = |_| failed(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "the server does not answer")));
    timeout(ANSWER, connected).await.map_err(no_answer)?.map_err(failed)
}
