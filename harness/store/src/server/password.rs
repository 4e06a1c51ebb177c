//! The password file that a URL names, in libpq's format: `host:port:database:user:password`, one a line. sqlx reads those that
//! `PGPASSFILE` names, and `~/.pgpass`.

use sqlx::postgres::PgConnectOptions;
use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// The password of the first line that fits.
///
/// # Errors
/// Why there is none.
pub(crate) fn of_file(path: &Path, options: &PgConnectOptions) -> Result<String, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if found.mode() & 0o077 != 0 {
        return Err("others may read or write it: `chmod 600` it".to_owned());
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let port = options.get_port().to_string();
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    // A socket is `localhost`, as for libpq, or its folder.
    let socket = options.get_socket().map(|socket| socket.to_string_lossy());
    let hosts = socket.as_ref().map_or_else(|| vec![options.get_host()], |socket| vec!["localhost", socket]);
    let fits = |field: &str, values: &[&str]| field == "*" || values.contains(&field);
    let password = text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields: [String; 5] = fields(line).try_into().ok()?;
        let [host, of_port, of_database, of_user, password] = fields;
        let is_it = fits(&host, &hosts) && fits(&of_port, &[&port]) && fits(&of_database, &[database]) && fits(&of_user, &[user]);
        is_it.then_some(password)
    });
    password.ok_or_else(|| format!("no line is for user {user} of database {database} on {}, port {port}", hosts[0]))
}

/// Divided by `:`, unless a backslash is before it. The password may have any more of them.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let is_last = fields.len() == 5;
        let Some(field) = fields.last_mut() else { break };
        match letter {
            '\\' => field.extend(letters.next()),
            ':' if !is_last => fields.push(String::new()),
            other => field.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        let text = "# a comment\nother:5432:muster:ada:wrong\ndb:5432:muster:ada:a\\:b:c\n*:*:*:*:last\n";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let options =
            |host: &str| PgConnectOptions::new_without_pgpass().host(host).port(5432).username("ada").database("muster");
        assert_eq!(of_file(&path, &options("db")).unwrap(), "a:b:c");
        assert_eq!(of_file(&path, &options("third")).unwrap(), "last");
        fs::write(&path, "other:*:*:*:x\n").unwrap();
        assert_eq!(of_file(&path, &options("db")).unwrap_err(), "no line is for user ada of database muster on db, port 5432");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(of_file(&path, &options("db")).unwrap_err(), "others may read or write it: `chmod 600` it");
    }
}
