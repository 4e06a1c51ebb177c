//! Writes annotations of nights, and takes them back.

use super::{Upkeep, ended};
use crate::{
    Reader, StoreError,
    read::decode,
    sql::{Connection, Row, query},
    write::history,
};
use muster_core::{case::check_of, query::remarks::RemarkKind};
use muster_text::time::{Date, Timestamp};
use sqlx::Error;

/// An annotation of some nights. A scope that is `None` is all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub kind: RemarkKind,
    pub system: Option<String>,
    pub partition: Option<String>,
    pub environ: Option<String>,
    /// A check, or a case as it is displayed.
    pub name: Option<String>,
    pub variable: Option<String>,
    pub node: Option<String>,
    pub session: Option<String>,
    /// The first night.
    pub from: Date,
    /// The last night; `None`: no end.
    pub until: Option<Date>,
    pub author: String,
    pub reason: String,
    pub link: Option<String>,
    pub created: Timestamp,
}

/// Variables, and the rows of their tables as they are displayed: `latency[8]`.
const VARIABLES: &str = "SELECT variable FROM metric UNION SELECT variable || '[' || key || ']' FROM metric WHERE key <> ''";

const ANNOTATIONS: &str = "SELECT * FROM annotation ORDER BY from_night, id";

impl Reader {
    /// Returns the annotations, each with its number, the oldest nights first.
    pub async fn annotations(&self) -> Result<Vec<(i64, Annotation)>, StoreError> {
        self.all("annotations", || query(ANNOTATIONS), annotation).await
    }
}

impl Upkeep {
    /// Stores what people say. Returns its number.
    ///
    /// # Errors
    /// [`StoreError::NoName`] if nothing that is stored has a name of its scope.
    pub async fn annotate(&mut self, annotation: &Annotation) -> Result<i64, StoreError> {
        let scopes = [
            ("system", &annotation.system, "SELECT DISTINCT system FROM session"),
            ("partition", &annotation.partition, "SELECT DISTINCT partition FROM subject"),
            ("environment", &annotation.environ, "SELECT DISTINCT environ FROM subject"),
            ("variable", &annotation.variable, VARIABLES),
            ("node", &annotation.node, "SELECT DISTINCT name FROM node"),
            ("session", &annotation.session, "SELECT id FROM session"),
        ];
        for (what, name, known) in scopes {
            if let Some(name) = name {
                let known = self.names(known).await?;
                self.is_known(what, name, &known)?;
            }
        }
        if let Some(name) = &annotation.name {
            let subjects = self.names("SELECT DISTINCT name FROM subject").await?;
            let checks = subjects.iter().map(|name| check_of(name).to_owned()).collect::<Vec<_>>();
            self.is_known("check or case", name, &[subjects, checks].concat())?;
        }
        let a = annotation.clone();
        let insert = query(
            "INSERT INTO annotation (kind, system, partition, environ, name, variable, node, session, from_night, until, author, \
             reason, link, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id",
        );
        let insert = insert.bind(a.kind.as_str()).bind(a.system).bind(a.partition).bind(a.environ).bind(a.name);
        let insert = insert.bind(a.variable).bind(a.node).bind(a.session).bind(a.from).bind(a.until);
        let insert = insert.bind(a.author).bind(a.reason).bind(a.link).bind(a.created.0);
        let systems = self.judged_by(annotation).await?;
        self.changed(systems, annotation.from, async |connection| insert.fetch_scalar(connection).await).await
    }

    /// Takes back what was said under a number: verdicts are as if nobody had said it. Returns what it was.
    ///
    /// # Errors
    /// [`StoreError::NoAnnotation`] if nothing has this number.
    pub async fn unannotate(&mut self, number: i64) -> Result<Annotation, StoreError> {
        let found = query("SELECT * FROM annotation WHERE id = $1").bind(number).fetch_all(&mut self.connection).await;
        let found = found.and_then(|rows| rows.first().map(annotation).transpose());
        let (_, said) = found.map_err(|cause| self.unread("annotations", cause))?.ok_or(StoreError::NoAnnotation { number })?;
        let systems = self.judged_by(&said).await?;
        let delete = async |connection: &mut Connection| {
            query("DELETE FROM annotation WHERE id = $1").bind(number).execute(connection).await
        };
        self.changed(systems, said.from, delete).await?;
        Ok(said)
    }

    /// The systems whose verdicts depend on an annotation.
    async fn judged_by(&mut self, annotation: &Annotation) -> Result<Vec<String>, StoreError> {
        match (annotation.kind, &annotation.system) {
            (RemarkKind::Note | RemarkKind::Known, _) => Ok(Vec::new()),
            (RemarkKind::Maintenance | RemarkKind::Accept | RemarkKind::Dismiss, Some(system)) => Ok(vec![system.clone()]),
            (RemarkKind::Maintenance | RemarkKind::Accept | RemarkKind::Dismiss, None) => {
                self.names("SELECT DISTINCT system FROM night").await
            }
        }
    }

    /// Changes something; verdicts of these systems from a night on are reached again.
    async fn changed<T>(
        &mut self,
        systems: Vec<String>,
        from: Date,
        change: impl AsyncFnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        let done = async {
            self.connection.begin().await?;
            let done = async {
                let changed = change(&mut self.connection).await?;
                for system in systems {
                    history::forget(&mut self.connection, &system, from).await?;
                }
                Ok(changed)
            };
            let done = done.await;
            ended(&mut self.connection, done).await
        };
        done.await.map_err(|cause| self.unwritten(cause))
    }
}

fn annotation(row: &Row) -> Result<(i64, Annotation), Error> {
    let annotation = Annotation {
        kind: decode::word(row, "kind")?,
        system: row.try_get("system")?,
        partition: row.try_get("partition")?,
        environ: row.try_get("environ")?,
        name: row.try_get("name")?,
        variable: row.try_get("variable")?,
        node: row.try_get("node")?,
        session: row.try_get("session")?,
        from: row.try_get("from_night")?,
        until: row.try_get("until")?,
        author: row.try_get("author")?,
        reason: row.try_get("reason")?,
        link: row.try_get("link")?,
        created: Timestamp(row.try_get("created")?),
    };
    Ok((row.try_get("id")?, annotation))
}
