//! The statements that write the row of one session. Each column is named once, beside its value.

use crate::{
    Held,
    sql::{Builder, Dialect, ToValue, Value},
    write::message::{Handover, SessionEntry, Text},
};
use muster_host::owner::Owner;
use muster_text::time::Timestamp;
use std::fmt::Display;

type Columns = Vec<(&'static str, Value)>;

/// Inserts a session and returns its number.
pub(crate) fn insert(entry: &SessionEntry) -> Builder {
    let columns = columns(entry);
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut insert = Builder::new(format!("INSERT INTO session ({}) VALUES (", names.join(", ")));
    list(&mut insert, ", ", columns, |_| "");
    insert.push(") RETURNING number");
    insert
}

/// Changes the owner of a session and returns its number. No row: the session has another owner by now, has shown since that it
/// lives, or has ended. A session that a signal ended is open again.
pub(crate) fn take_over(dialect: Dialect, session: &Text, from: &Held, to: &Owner) -> Builder {
    let mut update = Builder::new("UPDATE session SET ");
    list(&mut update, ", ", owner(to), equals);
    update.push(format_args!(", {}, ended = NULL, interrupted = 0 WHERE ", dialect.beat()));
    let mut held = owner(&from.owner);
    held.push(("id", text(session)));
    held.push(("heartbeat", from.heartbeat.to_value()));
    list(&mut update, " AND ", held, equals);
    update.push(" AND (ended IS NULL OR interrupted = 1) RETURNING number");
    update
}

/// Changes the owner of a session, and nothing else of it. No row: the session has another owner by now, or has shown since that it
/// lives.
pub(crate) fn hand_over(dialect: Dialect, session: &Text, Handover { from, heartbeat, to }: &Handover) -> Builder {
    let mut update = Builder::new("UPDATE session SET ");
    list(&mut update, ", ", owner(to), equals);
    update.push(format_args!(", {} WHERE ", dialect.beat()));
    let mut held = owner(from);
    held.push(("id", text(session)));
    held.extend(heartbeat.map(|heartbeat| ("heartbeat", heartbeat.to_value())));
    list(&mut update, " AND ", held, equals);
    update.push(" RETURNING number");
    update
}

/// Writes down the end of a session. No row: it has another owner.
pub(crate) fn end(session: &Text, held_by: &Owner, ended: Timestamp, interrupted: bool) -> Builder {
    let mut update = Builder::new("UPDATE session SET ");
    let end = vec![("ended", ended.0.to_value()), ("interrupted", interrupted.to_value())];
    list(&mut update, ", ", end, equals);
    update.push(" WHERE ");
    let mut held = owner(held_by);
    held.push(("id", text(session)));
    list(&mut update, " AND ", held, equals);
    update.push(" RETURNING number");
    update
}

/// Counts the heartbeat up. No row: the session has another owner, or has ended.
pub(crate) fn beat(dialect: Dialect, session: &Text, held_by: &Owner) -> Builder {
    let mut update = Builder::new(format!("UPDATE session SET {} WHERE ", dialect.beat()));
    let mut held = owner(held_by);
    held.push(("id", text(session)));
    list(&mut update, " AND ", held, equals);
    update.push(" AND ended IS NULL RETURNING number");
    update
}

fn columns(SessionEntry { session, command, extras, facts, owner: owned_by }: &SessionEntry) -> Columns {
    let mut columns = vec![
        ("id", text(&session.id)),
        ("started", session.started.0.to_value()),
        ("ended", session.ended.map(|at| at.0).to_value()),
        ("command", text(command)),
        ("system", text(&session.system)),
        ("user_name", text(&session.user)),
        ("host", text(&session.host)),
        ("workdir", text(session.workdir.display())),
        ("version", text(&session.version)),
        ("num_cases", session.num_cases.to_value()),
        ("interrupted", session.interrupted.to_value()),
        ("counting", text(session.counting.as_str())),
        ("fail_on_skip", session.fail_on_skip.to_value()),
        ("extras", text(extras)),
        ("selection", text(&session.selection)),
        ("night", session.night.to_value()),
        ("source", session.source.as_ref().map(|source| source.kind.clone()).to_value()),
        ("definition", session.source.as_ref().map(|source| source.definition.to_string()).to_value()),
        ("facts", text(facts)),
    ];
    columns.extend(owner(owned_by));
    columns
}

fn owner(owner: &Owner) -> Columns {
    vec![
        ("owner_host", text(&owner.host)),
        ("owner_pid", owner.pid.to_value()),
        ("owner_start_time", i64::try_from(owner.start_time).unwrap_or(i64::MAX).to_value()),
        ("owner_boot_id", text(&owner.boot_id)),
        ("owner_pid_namespace", text(&owner.pid_namespace)),
    ]
}

fn text(value: impl Display) -> Value {
    value.to_string().to_value()
}

fn equals(name: &str) -> String {
    format!("{name} = ")
}

/// Appends a placeholder for each value, after what `before` makes of its column's name.
fn list<T: Display>(statement: &mut Builder, separator: &str, columns: Columns, before: impl Fn(&'static str) -> T) {
    for (position, (name, value)) in columns.into_iter().enumerate() {
        statement.push(if position == 0 { "" } else { separator }).push(before(name));
        statement.push_bind(value);
    }
}
