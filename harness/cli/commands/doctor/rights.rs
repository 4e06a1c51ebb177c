//! Decides whether the user of a database server may do there what a session does. Pure.

use muster_core::{
    error::chain,
    probe::{Level, Probed},
};
use muster_store::{Rights, StoreError};

/// `found`: what is so without the rights. `is_newest`: the tables are those of this version.
pub fn granted(found: Probed, is_newest: bool, rights: Result<Rights, StoreError>) -> Probed {
    let wrong = match rights {
        Ok(rights) => missing(&rights, is_newest),
        Err(error) => return Probed::warning("database", chain(&error), None),
    };
    match wrong {
        Some((what, hint)) => {
            Probed { level: Level::Error, what: format!("{}, but {what}", found.what), hint: Some(hint), ..found }
        }
        None => found,
    }
}

/// What a session needs and has not, and what to do. Tables are made only if they are not there as this version needs them.
fn missing(Rights { schema, creates, is_copy, closed_tables }: &Rights, is_newest: bool) -> Option<(String, String)> {
    if *is_copy {
        let hint = "name the server that it is a copy of, or choose another database with --db";
        return Some(("it is a copy of another server, which takes no results".to_owned(), hint.to_owned()));
    }
    let Some(schema) = schema else {
        let hint = "GRANT USAGE, CREATE ON SCHEMA .., or name another in the URL: `?options=-csearch_path%3DSCHEMA`";
        return Some(("there is no schema that its user may use".to_owned(), hint.to_owned()));
    };
    if !is_newest && !creates {
        let hint = format!("GRANT USAGE, CREATE ON SCHEMA {schema} TO its user");
        return Some((format!("its user may not make tables in schema {schema}"), hint));
    }
    let named = closed_tables.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let more = closed_tables.len().saturating_sub(3);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let hint = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO its user");
    (!closed_tables.is_empty()).then(|| (format!("its user may not write to tables: {named}{more}"), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_judged_by_what_its_user_may_do() {
        let tables = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let all = Rights { schema: Some("muster".into()), creates: true, ..Rights::default() };
        let said = |is_newest, rights| {
            let Probed { level, what, hint, .. } =
                granted(Probed::fine("database", "postgres://ada@db/muster answers"), is_newest, Ok(rights));
            format!("{level}: {what}{}", hint.map_or_else(String::new, |hint| format!(" ({hint})")))
        };
        let rows = [
            said(true, all.clone()),
            said(true, Rights { creates: false, ..all.clone() }),
            said(false, Rights { creates: false, ..all.clone() }),
            said(false, all.clone()),
            said(true, Rights { closed_tables: tables(&["attempt", "case", "node", "session"]), ..all.clone() }),
            said(true, Rights { is_copy: true, ..all }),
            said(false, Rights::default()),
        ];
        insta::assert_snapshot!(rows.join("\n"), @"
        ok: postgres://ada@db/muster answers
        ok: postgres://ada@db/muster answers
        error: postgres://ada@db/muster answers, but its user may not make tables in schema muster (GRANT USAGE, CREATE ON SCHEMA muster TO its user)
        ok: postgres://ada@db/muster answers
        error: postgres://ada@db/muster answers, but its user may not write to tables: attempt, case, node and 1 more (GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA muster TO its user)
        error: postgres://ada@db/muster answers, but it is a copy of another server, which takes no results (name the server that it is a copy of, or choose another database with --db)
        error: postgres://ada@db/muster answers, but there is no schema that its user may use (GRANT USAGE, CREATE ON SCHEMA .., or name another in the URL: `?options=-csearch_path%3DSCHEMA`)
        ");
    }
}
