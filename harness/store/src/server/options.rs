//! The options in the URL of a server: libpq's parameters, and two of our own.

use crate::{location, server::password};
use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgSslMode},
};
use std::path::PathBuf;
use url::Url;

/// libpq's parameters that are understood.
const KNOWN: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// The size of a spool if nobody gives another, in MiB.
const SPOOL_LIMIT: u64 = 256;

/// How to connect, and what happens while that cannot be done.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) connect: PgConnectOptions,
    /// The folder of the spool.
    pub(crate) spool: PathBuf,
    /// The most that a spool may have, in bytes.
    pub(crate) spool_limit: u64,
    /// Names the database and its schema, without a password: what is in a spool belongs to it.
    pub(crate) name: String,
}

impl Options {
    /// # Errors
    /// A sentence about what is wrong with the URL, without its password.
    pub(crate) fn of(url: &str) -> Result<Self, String> {
        if location::is_keywords(url) {
            return Err("it is a list of keywords of libpq: write a URL, `postgres://USER@HOST/NAME`".to_owned());
        }
        if !url.contains("://") {
            return Err("its URL lacks the `//` before the host: write `postgres://USER@HOST/NAME`".to_owned());
        }
        // libpq takes a user without a host.
        let mut url = Url::parse(&url.replacen("@/", "@localhost/", 1)).map_err(|error| {
            format!("its URL is not valid: {error} (in a password, `/`, `@`, `:`, `#` and `%` are written as %2F, %40, %3A, %23 and %25)")
        })?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(format!(
                "its URL begins with `{}://`: a server is `postgres://...`, a file is given by its path",
                url.scheme()
            ));
        }
        let (mut passfile, mut spool, mut spool_limit) = (None, None, SPOOL_LIMIT);
        let mut rest = Vec::new();
        for (key, value) in url.query_pairs() {
            match &*key {
                "passfile" => passfile = Some(PathBuf::from(&*value)),
                "spool" => spool = Some(PathBuf::from(&*value)),
                "spool_limit" => {
                    let limit = value.parse().ok().filter(|limit| *limit > 0);
                    spool_limit = limit.ok_or("spool_limit is the size of the spool in MiB, a number from 1")?;
                }
                key if KNOWN.contains(&key) => rest.push((key.to_owned(), value.into_owned())),
                other => {
                    return Err(format!(
                        "its URL has the unknown parameter `{other}`; known are {}, passfile, spool and spool_limit",
                        KNOWN.join(", ")
                    ));
                }
            }
        }
        url.set_query(None);
        if !rest.is_empty() {
            url.query_pairs_mut().extend_pairs(&rest);
        }
        let mut connect =
            PgConnectOptions::from_url(&url).map_err(|error| format!("its URL is not valid: {}", configuration(error)))?;
        if let Some(file) = passfile {
            let password =
                password::of_file(&file, &connect).map_err(|why| format!("the password file {}: {why}", file.display()))?;
            connect = connect.password(&password);
        }
        let has = |wanted: &str| rest.iter().any(|(key, _)| key == wanted);
        if has("sslrootcert") && matches!(connect.get_ssl_mode(), PgSslMode::Require) {
            // As libpq does: who names a certificate wants it to be checked.
            connect = connect.ssl_mode(PgSslMode::VerifyCa);
        }
        if !has("application_name") {
            connect = connect.application_name("muster");
        }
        let name = format!(
            "{}@{}:{}/{}{}",
            connect.get_username(),
            connect.get_socket().map_or_else(|| connect.get_host().into(), |socket| socket.to_string_lossy()),
            connect.get_port(),
            connect.get_database().unwrap_or_default(),
            connect.get_options().map(|options| format!("?{options}")).unwrap_or_default()
        );
        Ok(Self {
            // Statements for 1, 2, ... 32 rows of each table stay prepared.
            connect: connect.statement_cache_capacity(500).disable_statement_logging(),
            spool: spool.unwrap_or_else(|| location::state_folder().join("spool")),
            spool_limit: spool_limit.saturating_mul(1 << 20),
            name,
        })
    }
}

/// sqlx packs one into the other.
fn configuration(error: sqlx::Error) -> String {
    match error {
        sqlx::Error::Configuration(inner) => match inner.downcast() {
            Ok(error) => configuration(*error),
            Err(inner) => inner.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_a_mistake_is_explained_without_its_password() {
        let of = |url: &str| Options::of(url).map_or_else(|error| error, |options| options.name);
        let urls = [
            "postgres://ada:s3cret@db:5433/muster?sslmode=verify-full",
            "postgres://ada:s3cret@db:5433/muster?options=-csearch_path%3Dteam",
            "postgres://ada:s3c/ret@db/muster",
            "postgres://ada:s3cret@db/muster?sslmod=require",
            "postgres://ada:s3cret@db/muster?sslmode=always",
            "postgres://ada:s3cret@db/muster?spool_limit=none",
            "postgres://ada@db/muster?passfile=/nowhere/pgpass",
            "Postgres://ada:s3cret@db:5433/muster",
            "postgresql+asyncpg://ada:s3cret@db/muster",
            "host=db user=ada password=s3cret",
            "postgres:/ada:s3cret@db/muster",
        ];
        let texts: String = urls.iter().map(|url| of(url) + "\n").collect();
        assert!(!texts.contains("s3c"), "{texts}");
        insta::assert_snapshot!(texts, @"
        ada@db:5433/muster
        ada@db:5433/muster?-csearch_path=team
        its URL is not valid: invalid port number (in a password, `/`, `@`, `:`, `#` and `%` are written as %2F, %40, %3A, %23 and %25)
        its URL has the unknown parameter `sslmod`; known are sslmode, sslrootcert, sslcert, sslkey, host, hostaddr, port, dbname, user, password, application_name, options, passfile, spool and spool_limit
        its URL is not valid: unknown value \"always\" for `ssl_mode`
        spool_limit is the size of the spool in MiB, a number from 1
        the password file /nowhere/pgpass: No such file or directory (os error 2)
        ada@db:5433/muster
        its URL begins with `postgresql+asyncpg://`: a server is `postgres://...`, a file is given by its path
        it is a list of keywords of libpq: write a URL, `postgres://USER@HOST/NAME`
        its URL lacks the `//` before the host: write `postgres://USER@HOST/NAME`
        ");
    }

    #[test]
    fn a_root_certificate_is_checked_whatever_the_mode_is_called() {
        let mode = |url: &str| Options::of(url).unwrap().connect.get_ssl_mode();
        assert!(matches!(mode("postgres://db/m?sslmode=require&sslrootcert=/ca.pem"), PgSslMode::VerifyCa));
        assert!(matches!(mode("postgres://db/m?sslmode=require"), PgSslMode::Require));
        assert!(matches!(mode("postgres://db/m?sslmode=verify-full&sslrootcert=/ca.pem"), PgSslMode::VerifyFull));
    }
}
