//! The rights of a server's user on the tables of results, asked without using them.

use crate::{
    Location, Server, StoreError,
    server::connect::connect,
    sql::{Row, query},
};

/// The rights that a session needs there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// The schema in which tables are made and looked for. `None`: there is none that the user may use.
    pub schema: Option<String>,
    /// The user may make tables in it.
    pub creates: bool,
    /// Nothing can be written: it is a copy of another server.
    pub is_copy: bool,
    /// The tables that the user may not read, change and remove rows of.
    pub closed_tables: Vec<String>,
}

const SCHEMA: &str = "SELECT coalesce(current_schema()::text, '') AS name, \
                      CASE WHEN has_schema_privilege(current_schema(), 'CREATE') THEN 1::bigint ELSE 0::bigint END AS creates, \
                      CASE WHEN pg_is_in_recovery() THEN 1::bigint ELSE 0::bigint END AS is_copy";

const CLOSED_TABLES: &str = "SELECT name FROM \
    (SELECT tablename::text AS name, (quote_ident(schemaname) || '.' || quote_ident(tablename))::regclass AS id \
     FROM pg_tables WHERE schemaname = current_schema()) AS t \
    WHERE NOT (has_table_privilege(id, 'SELECT') AND has_table_privilege(id, 'INSERT') \
               AND has_table_privilege(id, 'UPDATE') AND has_table_privilege(id, 'DELETE')) ORDER BY name";

/// Asks the server. Needs no right but to connect.
///
/// # Errors
/// The server does not answer, or has another answer.
pub async fn rights(server: &Server) -> Result<Rights, StoreError> {
    let failed = |cause: sqlx::Error| StoreError::Read {
        database: Location::Server(server.clone()),
        what: "the rights of its user",
        cause: cause.into(),
    };
    let mut connection = connect(server).await?;
    let row = query(SCHEMA).fetch_one(&mut connection).await.map_err(failed)?;
    let closed = query(CLOSED_TABLES).fetch_all(&mut connection).await.map_err(failed)?;
    let read = |row: &Row, closed: &[Row]| {
        let name: &str = row.try_get("name")?;
        Ok(Rights {
            schema: Some(name.to_owned()).filter(|name| !name.is_empty()),
            creates: row.try_get::<i64>("creates")? == 1,
            is_copy: row.try_get::<i64>("is_copy")? == 1,
            closed_tables: closed.iter().map(|row| row.try_get::<&str>("name").map(str::to_owned)).collect::<Result<_, _>>()?,
        })
    };
    read(&row, &closed).map_err(failed)
}
