//! The location of a results database: a file, or a PostgreSQL server. A password in a URL is never shown.

use muster_host::user_folders::Kept;
use muster_text::{secret::is_secret_name, shell};
use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};
use url::form_urlencoded;

/// Keywords of libpq: a text that begins with one is no name of a file.
const KEYWORDS: [&str; 10] =
    ["host", "hostaddr", "port", "dbname", "user", "password", "passfile", "service", "sslmode", "connect_timeout"];

/// Those whose values may have slashes.
const WITH_SLASHES: [&str; 3] = ["host", "password", "passfile"];

/// What stands for a password.
const MASK: &str = muster_core::secret::MASK;

/// The location of a results database.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    File(PathBuf),
    Server(Server),
}

/// The URL of a database on a PostgreSQL server, as it was written. It is only taken apart where a connection is made: what is wrong
/// with it is said there, without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    url: String,
}

impl Location {
    /// The file of a user who names none: `$XDG_STATE_HOME/muster/results.db`.
    pub fn of_user() -> Self {
        Self::File(state_folder().join("results.db"))
    }

    /// Returns the location for people: without a password.
    pub fn display(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(server) => f.write_str(&masked(&server.url)),
        })
    }

    pub fn as_file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// Returns whether it contains a password, which other users of a machine can read on a command line.
    pub fn has_password(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Server(server) => passwords(&server.url).next().is_some(),
        }
    }

    /// The location as it holds in every current folder.
    #[must_use]
    pub fn absolute(self) -> Self {
        match self {
            Self::File(path) => Self::File(std::path::absolute(&path).unwrap_or(path)),
            Self::Server(_) => self,
        }
    }

    /// ` --db` with this place, to be pasted after a command. Nothing if that has a password: it stays in `MUSTER_DB`.
    pub fn flag(&self) -> String {
        if self.has_password() { String::new() } else { format!(" --db {}", shell::quote(&self.as_argument().to_string_lossy())) }
    }

    /// Returns a command of Muster, to be pasted in whatever folder: it names this database unless that is the default, or has a password:
    /// then it is in `MUSTER_DB`.
    pub fn command(&self, command: &str) -> String {
        let here = self.clone().absolute();
        let is_default = here == Self::of_user().absolute();
        format!("muster {command}{}", if is_default { String::new() } else { here.flag() })
    }

    /// Returns the value of `--db`, with its password.
    pub fn as_argument(&self) -> OsString {
        match self {
            Self::File(path) => path.clone().into(),
            Self::Server(server) => server.url.clone().into(),
        }
    }
}

impl Server {
    /// With its password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.display().to_string())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", masked(&self.url))
    }
}

impl From<OsString> for Location {
    fn from(text: OsString) -> Self {
        match text.to_str().map(str::trim) {
            // One that is not of PostgreSQL, or no URL at all, is refused where a connection is made, and its password is not shown either.
            Some(url) if is_url(url) || scheme(url).is_some() || is_keywords(url) => Self::Server(Server { url: url.to_owned() }),
            // To SQLite these are databases in memory, and URLs of its own.
            Some(name) if name.starts_with(':') || name.starts_with("file:") => Self::File(Path::new(".").join(name)),
            _ => Self::File(text.into()),
        }
    }
}

/// Whether it begins with a scheme, as RFC 3986 spells that, and `://`.
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

/// The scheme of a server, whatever follows its colon.
fn scheme(text: &str) -> Option<&str> {
    let scheme = text.split_once(':')?.0;
    ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(scheme)
}

/// Whether it is what libpq calls a connection string, `host=db user=ada`, and not a path such as `user=ada/results.db`.
pub(crate) fn is_keywords(text: &str) -> bool {
    let Some((keyword, value)) = text.split_once('=') else { return false };
    let is_path =
        value.contains('/') && !value.contains("://") && !text.contains(char::is_whitespace) && !WITH_SLASHES.contains(&keyword);
    KEYWORDS.contains(&keyword.trim()) && !is_path
}

macro_rules! from {
    ($($type:ty),*) => {
        $(impl From<$type> for Location {
            fn from(text: $type) -> Self {
                let text: &OsStr = text.as_ref();
                text.to_owned().into()
            }
        })*
    };
}

from!(&str, String, &Path, PathBuf, &PathBuf);

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

/// `$XDG_STATE_HOME/muster`, which is in `~/.local/state` if nobody says otherwise.
pub fn state_folder() -> PathBuf {
    Kept::State.folder().unwrap_or_else(|| PathBuf::from(".")).join("muster")
}

/// A URL, of a database or not, without passwords.
pub fn masked(url: &str) -> String {
    let (mut text, mut done) = (String::with_capacity(url.len()), 0);
    for (start, end) in passwords(url) {
        text.push_str(&url[done..start]);
        text.push_str(MASK);
        done = end;
    }
    text + &url[done..]
}

/// Where passwords are in a URL. A password with `/`, `@` or `#` that was not escaped is no valid URL, and is found nevertheless: all
/// from the first colon to the last `@`. Of keywords all may be one.
fn passwords(url: &str) -> impl Iterator<Item = (usize, usize)> {
    let keywords = is_keywords(url).then_some((0, url.len()));
    let after_scheme = url.find("://").map(|at| at + "://".len()).or_else(|| Some(scheme(url)?.len() + 1));
    let authority = after_scheme.unwrap_or(0);
    let query = url.rfind('?').unwrap_or(url.len());
    let at = url.rfind('@').filter(|at| *at >= authority);
    let colon = at.and_then(|at| Some(authority + url[authority..at].find(':')?));
    let before_host = colon.zip(at).map(|(colon, at)| (colon + 1, at)).filter(|(start, end)| start < end);
    let user = keywords.or(before_host).or_else(|| no_port(url, after_scheme.filter(|_| at.is_none())?));
    let after_user = user.map_or(0, |(_, end)| end);
    let keys = url.get(query.max(after_user)..).unwrap_or_default();
    let mut position = url.len() - keys.len();
    let of_key = keys.split('&').filter_map(move |pair| {
        let start = position;
        position += pair.len() + 1;
        let (key, value) = pair.trim_start_matches('?').split_once('=')?;
        // A key may be written with escapes, too.
        let key = decoded(key).to_ascii_lowercase();
        let is_secret = is_secret_name(&key) || (key == "options" && sets_a_secret(&decoded(value)));
        (is_secret && !value.is_empty()).then(|| (start + pair.len() - value.len(), start + pair.len()))
    });
    user.into_iter().chain(of_key)
}

/// What stands where a port does and is none: a password without its `@`.
fn no_port(url: &str, authority: usize) -> Option<(usize, usize)> {
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at);
    let host = url.get(authority..end)?;
    // `[::1]`
    let name = host.rfind(']').map_or(0, |at| at + 1);
    let start = authority + name + host[name..].find(':')? + 1;
    let is_port = url[start..end].bytes().all(|byte| byte.is_ascii_digit());
    (!is_port).then_some((start, url.rfind('?').filter(|query| *query > end).unwrap_or(url.len())))
}

fn decoded(text: &str) -> String {
    form_urlencoded::parse(text.replace('=', "%3D").as_bytes()).next().map(|(key, _)| key.into_owned()).unwrap_or_default()
}

/// Whether options of a server, `-c NAME=VALUE`, set what has the name of a secret.
fn sets_a_secret(options: &str) -> bool {
    options.split_whitespace().any(|word| {
        let word = word.strip_prefix("-c").unwrap_or(word).trim_start_matches('-');
        word.split_once('=').is_some_and(|(name, _)| is_secret_name(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_masked_wherever_it_is() {
        let rows = [
            ("postgres://ada:s3cret@db/muster", "postgres://ada:***@db/muster"),
            ("postgres://ada:s3c/r?e#t@x@db:5433/muster?sslmode=require", "postgres://ada:***@db:5433/muster?sslmode=require"),
            ("postgres://db/muster?user=ada&password=s3cret", "postgres://db/muster?user=ada&password=***"),
            ("postgres:///muster?password=s3cret&host=/run", "postgres:///muster?password=***&host=/run"),
            ("postgres://ada:one@db/m?PASSWORD=two&sslmode=require", "postgres://ada:***@db/m?PASSWORD=***&sslmode=require"),
            ("postgres://ada@db:5433/muster", "postgres://ada@db:5433/muster"),
            ("postgres://db:5433/muster?user=ada@site", "postgres://db:***@site"),
            ("postgres:///muster", "postgres:///muster"),
            ("Postgres://ada:s3cret@db/muster", "Postgres://ada:***@db/muster"),
            (" postgres://ada:s3cret@db/muster", "postgres://ada:***@db/muster"),
            ("postgresql+asyncpg://ada:s3cret@db/muster", "postgresql+asyncpg://ada:***@db/muster"),
            ("postgres://ada@db/m?pass%77ord=s3cret", "postgres://ada@db/m?pass%77ord=***"),
            ("postgres:/ada:s3cret@db/muster", "postgres:/ada:***@db/muster"),
            ("postgresql:ada:s3cret@db/muster", "postgresql:ada:***@db/muster"),
            ("postgres://ada:s3cret", "postgres://ada:***"),
            ("postgres://ada:s3c/ret?sslmode=require", "postgres://ada:***?sslmode=require"),
            ("postgres://[::1]:5433/muster", "postgres://[::1]:5433/muster"),
            ("postgres://db/m?passwd=s3cret", "postgres://db/m?passwd=***"),
            ("postgres://db/m?options=-c%20password=s3cret&user=ada", "postgres://db/m?options=***&user=ada"),
            ("postgres://db/m?options=-csearch_path%3Dteam", "postgres://db/m?options=-csearch_path%3Dteam"),
            ("host=127.0.0.1 dbname=m user=ada password=s3cret", "***"),
            ("host = db", "***"),
        ];
        for (url, expected) in rows {
            assert_eq!(masked(url.trim()), expected);
            let location = Location::from(url);
            assert_eq!(location.display().to_string(), expected);
            assert!(!format!("{location:?}").contains("s3c"), "{location:?}");
            assert_eq!(location.has_password(), expected.contains("***"), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_is_a_file() {
        for path in
            ["results.db", "/var/lib/muster/results.db", "postgres", "a:b@c", "host", "./host=x", "a=b", "user=ada/results.db"]
        {
            assert_eq!(Location::from(path), Location::File(path.into()));
            assert!(!Location::from(path).has_password());
        }
        for keywords in ["user=ada dbname=a/b", "host=/run/postgres", "password=s3/cret", "dbname=postgres://ada:s3cret@h/m"] {
            assert!(matches!(Location::from(keywords), Location::Server(_)), "{keywords}");
        }
    }

    #[test]
    fn a_name_that_sqlite_would_not_take_for_a_file_is_one() {
        for (name, path) in [(":memory:", "./:memory:"), ("file:results.db?mode=memory", "./file:results.db?mode=memory")] {
            assert_eq!(Location::from(name), Location::File(path.into()));
        }
    }
}
