//! ReFrame's questions about stored results: `--performance-compare`, `--list-stored-testcases`, and `--performance-report=SPEC` at the
//! end of a session.

use crate::{
    args::{Cli, TableFormat},
    terminal::Terminal,
    wiring::database,
};
use anyhow::{Context, anyhow};
use muster_answers::{Asked, LATEST, Unanswered};
use muster_check::cases::test_case::TestCase;
use muster_core::{
    case::{CaseName, matcher::Matcher},
    query::spec::{Comparison, Filter, Filters, Selection},
    result::{CaseResult, Counting, Failure, Outcome, Session},
};
use muster_report::{
    grouped::{self, Figure, Groups, Question, Sets},
    performance::Format,
};
use muster_session::runtime;
use muster_store::StoreError;
use std::collections::{BTreeMap, BTreeSet};

/// `--performance-compare`
pub fn compare(cli: &Cli, comparison: &Comparison, terminal: Terminal) -> anyhow::Result<u8> {
    let question = Question::new(&comparison.aggregation, &comparison.columns);
    let filters = filters(cli)?;
    let (lhs, rhs) = runtime::of_question()?.block_on(async {
        let database = database::Question::open(cli, terminal).await?;
        let asked = database.asked();
        let lhs = match &comparison.lhs {
            Some(lhs) => stored(&asked, lhs, &filters, &question, None).await?,
            None => Groups::default(),
        };
        anyhow::Ok((lhs, stored(&asked, &comparison.rhs, &filters, &question, None).await?))
    })?;
    for (groups, selection) in [(&lhs, comparison.lhs.as_ref()), (&rhs, Some(&comparison.rhs))] {
        if let Some(selection) = selection.filter(|_| groups.is_empty()) {
            return Err(no_figure(selection));
        }
    }
    terminal.print(&table(cli, &question, &lhs, Some(&rhs), terminal)?);
    Ok(0)
}

/// `--list-stored-testcases`
pub fn list_cases(cli: &Cli, comparison: &Comparison, terminal: Terminal) -> anyhow::Result<u8> {
    let question = Question::new(&comparison.aggregation, &comparison.columns);
    let filters = filters(cli)?;
    let groups = runtime::of_question()?.block_on(async {
        let database = database::Question::open(cli, terminal).await?;
        stored(&database.asked(), &comparison.rhs, &filters, &question, None).await
    })?;
    if groups.is_empty() {
        return Err(no_figure(&comparison.rhs));
    }
    terminal.print(&table(cli, &question, &groups, None, terminal)?);
    Ok(0)
}

fn no_figure(selection: &Selection) -> anyhow::Error {
    anyhow!("no case in `{selection}` has a figure")
}

/// Checks the columns of `--performance-report=SPEC` before anything runs. Some may be columns of stored sessions alone.
pub fn check(
    cli: &Cli,
    comparison: &Comparison,
    session: &Session,
    cases: &[TestCase],
    terminal: Terminal,
) -> anyhow::Result<()> {
    let question = Question::new(&comparison.aggregation, &comparison.columns);
    let filters = filters(cli)?;
    let parameters = cases.iter().flat_map(|case| &case.check.parameters).map(|parameter| parameter.name.to_string());
    let mut own: BTreeSet<String> = session.extras.iter().map(|(name, _)| name.clone()).chain(parameters).collect();
    if question.is_known(&own).is_err() {
        match runtime::build()?.block_on(async { before(cli, comparison, &filters, &question, session, terminal).await }) {
            Ok(rhs) => own.extend(rhs.own_columns().iter().cloned()),
            Err(why) if is_unanswered(&why) => return Err(why.context("the columns of stored sessions cannot be read")),
            // There is nothing to compare with.
            Err(_) => {}
        }
    }
    Ok(question.is_known(&own)?)
}

/// Whether the database has said nothing of what it has.
fn is_unanswered(why: &anyhow::Error) -> bool {
    use StoreError::{ManySessions, Missing, NoSession};
    let error = why.downcast_ref().or_else(|| match why.downcast_ref()? {
        Unanswered::Store(error) => Some(error),
        Unanswered::Unknown(_) => None,
    });
    error.is_some_and(|error| !matches!(error, Missing { .. } | NoSession { .. } | ManySessions { .. }))
}

/// `--performance-report=SPEC`: the session that has just ended, beside stored ones.
pub fn report(
    cli: &Cli,
    comparison: &Comparison,
    session: &Session,
    cases: &[&CaseResult],
    terminal: Terminal,
) -> anyhow::Result<String> {
    let question = Question::new(&comparison.aggregation, &comparison.columns);
    let filters = filters(cli)?;
    let mut lhs = Groups::default();
    add(&mut lhs, &question, session, cases.iter().copied(), &Filters::default());
    // The first session of a database has nothing to be compared with, and shows its own figures all the same.
    let rhs = match runtime::build()?.block_on(before(cli, comparison, &filters, &question, session, terminal)) {
        Ok(rhs) => rhs,
        Err(why) => {
            terminal.note(&format!("note: nothing to compare with: {why:#}"));
            Groups::default()
        }
    };
    table(cli, &question, &lhs, Some(&rhs), terminal)
}

/// What a session is compared with. `latest` is the one before it.
///
/// # Errors
/// Nothing, in one sentence.
async fn before(
    cli: &Cli,
    comparison: &Comparison,
    filters: &Filters,
    question: &Question,
    session: &Session,
    terminal: Terminal,
) -> anyhow::Result<Groups> {
    let database = database::Question::open(cli, terminal).await?;
    let asked = database.asked();
    let mut selection = comparison.rhs.clone();
    if selection.sessions.iter().any(|id| id == LATEST) {
        let newest = asked.select(&Selection::default(), 2).await?.sessions;
        let newest = newest.into_iter().map(|one| one.session.id.0).find(|id| *id != session.id.0);
        let newest = newest.context("no session is stored before this one")?;
        selection.sessions.iter_mut().filter(|id| *id == LATEST).for_each(|id| id.clone_from(&newest));
    }
    let groups = stored(&asked, &selection, filters, question, Some(session)).await?;
    if groups.is_empty() {
        asked.are_known(&on_one_system(&selection, filters).filters).await?;
        return Err(no_figure(&selection));
    }
    Ok(groups)
}

/// A selection with the filters of the run. The system that it names takes the place of that of the run.
fn on_one_system(selection: &Selection, filters: &Filters) -> Selection {
    let names_one = !selection.filters.systems.is_empty();
    let filters = filters.clone();
    let filters = if names_one { Filters { systems: Vec::new(), partitions: Vec::new(), ..filters } } else { filters };
    selection.clone().and(&filters)
}

/// The figures of stored sessions, but for this one.
async fn stored(
    asked: &Asked<'_>,
    selection: &Selection,
    filters: &Filters,
    question: &Question,
    but: Option<&Session>,
) -> anyhow::Result<Groups> {
    let selection = on_one_system(selection, filters);
    let mut groups = Groups::default();
    let mut sessions = asked.sessions(&selection).await?;
    sessions.reverse();
    for one in sessions.iter().filter(|one| but.is_none_or(|but| but.id != one.session.id)) {
        let cases = asked.reader.results(&one.session.id).await?;
        add(&mut groups, question, &one.session, cases.iter(), &selection.filters);
    }
    Ok(groups)
}

/// Adds the figures of a session: of each case those of its first measured attempt, of a session with `--reruns` those of each.
fn add<'a>(
    groups: &mut Groups,
    question: &Question,
    session: &Session,
    cases: impl Iterator<Item = &'a CaseResult>,
    filters: &Filters,
) {
    let mut first: BTreeMap<&CaseName, u32> = BTreeMap::new();
    for case in cases.filter(|case| is_measured(case) && filters.admit(&case.name, &case.about.tags)) {
        let counts = *first.entry(&case.name).or_insert(case.attempt) == case.attempt || session.counting == Counting::Every;
        for measurement in case.measurements.iter().filter(|_| counts) {
            groups.add(question, Figure { session, case, measurement });
        }
    }
}

fn is_measured(case: &CaseResult) -> bool {
    let is_judged = matches!(case.outcome, Outcome::Pass | Outcome::Xfail | Outcome::Xpass | Outcome::Fail(Failure::Performance));
    is_judged && case.restored_from.is_none()
}

fn table(cli: &Cli, question: &Question, lhs: &Groups, rhs: Option<&Groups>, terminal: Terminal) -> anyhow::Result<String> {
    let format = match cli.output.table_format.unwrap_or(TableFormat::Pretty) {
        TableFormat::Pretty => Format::Pretty,
        TableFormat::Plain => Format::Plain,
        TableFormat::Csv => Format::Csv,
    };
    let terms = [cli.output.term_lhs.as_str(), cli.output.term_rhs.as_str()];
    Ok(grouped::table(question, Sets { lhs, rhs, terms }, format, &terminal.screen())?)
}

/// The filters of a run, on what is stored.
fn filters(cli: &Cli) -> anyhow::Result<Filters> {
    let checks = cli.filter.name.iter().map(|text| Matcher::parse(text, true).map_err(anyhow::Error::msg));
    let tags = cli.filter.tag.iter().map(|tag| Filter::parse(&format!("~{tag}")));
    let mut filters =
        Filters { checks: checks.collect::<Result<_, _>>()?, tags: tags.collect::<Result<_, _>>()?, ..Filters::default() };
    if let Some(system) = &cli.files.system {
        let (system, partition) =
            system.split_once(':').map_or((system.as_str(), None), |(system, partition)| (system, Some(partition)));
        filters.systems.push(Filter::parse(system)?);
        filters.partitions.extend(partition.map(Filter::parse).transpose()?);
    }
    Ok(filters)
}
