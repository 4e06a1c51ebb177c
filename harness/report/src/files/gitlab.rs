//! `--ci-generate`: a child pipeline for GitLab, with a job for every case or for every shard of the selection.
//!
//! A job runs one `muster -r`, which also runs what its case depends on (fixtures, dependencies), as another runner
//! shares no folder with this one; `needs` keeps the order, and GitLab skips what depends on a job that failed. The
//! hidden job `.muster` holds what is common: a site adds its image, runner tags and variables by including a file of its
//! own after the generated one.

use crate::{
    RenderError,
    text::{command, secret, style::one_line},
};
use muster_core::case::CaseName;
use muster_text::shell;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// GitLab takes no longer names.
const NAME_LIMIT: usize = 255;
/// A job may need so many others, unless the administrator says otherwise.
const NEEDS_LIMIT: usize = 50;

#[derive(Debug, Clone)]
pub struct Planned<'a> {
    pub name: &'a CaseName,
    /// Its own, and those that hold what it needs.
    pub files: Vec<&'a str>,
    /// The cases it depends on, by their place in the list.
    pub needs: Vec<usize>,
}

/// A job a case. `options` find the same sites and checks, as in [`command::rerun`].
///
/// # Errors
/// A secret among the options: the file goes into a repository or an artifact.
pub fn of_cases(cases: &[Planned<'_>], options: &[String]) -> Result<String, RenderError> {
    let names = job_names(cases);
    let jobs = cases.iter().zip(&names).map(|(case, name)| {
        let needs: Vec<_> = case.needs.iter().take(NEEDS_LIMIT).filter_map(|at| names.get(*at)).collect();
        let needs = needs.into_iter().map(|job| json!({ "job": job, "artifacts": false })).collect();
        (name.clone(), command::of_case(case.name, &case.files, options), needs)
    });
    pipeline(jobs.collect())
}

/// A job a shard of the same selection, which `options` make.
pub fn of_shards(count: u32, options: &[String]) -> Result<String, RenderError> {
    let jobs = (1..=count).map(|number| {
        let mut words = vec!["muster".to_owned()];
        words.extend(options.iter().cloned());
        words.extend(["--shard".to_owned(), format!("{number}/{count}"), "-r".to_owned()]);
        let words: Vec<_> = words.iter().map(|word| shell::quote(word)).collect();
        (format!("muster {number}/{count}"), words.join(" "), Vec::new())
    });
    pipeline(jobs.collect())
}

/// Name, command, needs.
type Job = (String, String, Vec<Value>);

fn pipeline(jobs: Vec<Job>) -> Result<String, RenderError> {
    if let Some((name, ..)) = jobs.iter().find(|(_, command, _)| secret::has_secret(command)) {
        return Err(RenderError::Secret { job: name.clone() });
    }
    let mut file = Map::new();
    file.insert("stages".to_owned(), json!(["muster"]));
    let artifacts = json!({
        "when": "always",
        "expire_in": "1 week",
        "paths": ["muster-report/", "reports/out/", "output/", "stage/"],
        "reports": { "junit": "muster-report/junit.xml" },
    });
    file.insert(".muster".to_owned(), json!({ "stage": "muster", "artifacts": artifacts }));
    for (name, command, needs) in jobs {
        let script = format!("{command} --report-junit muster-report/junit.xml --report-html muster-report/report.html");
        // An empty list begins a job at once, whatever is before its stage.
        file.insert(name, json!({ "extends": ".muster", "script": [script], "needs": needs }));
    }
    let yaml = serde_yaml::to_string(&Value::Object(file)).map_err(RenderError::of("write the YAML"))?;
    Ok(format!(
        "# Written by muster --ci-generate, version {}: generate it again instead of changing it.\n{yaml}",
        env!("CARGO_PKG_VERSION")
    ))
}

/// The names of the cases, made to differ where they are cut or copies of each other.
fn job_names(cases: &[Planned<'_>]) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let name = |case: &Planned<'_>| {
        let full = one_line(&case.name.to_string()).into_owned();
        let name = if full.len() > NAME_LIMIT - 8 { format!("{} {}", cut(&full, NAME_LIMIT - 24), case.name.hash) } else { full };
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 { format!("{name} #{count}") } else { name }
    };
    cases.iter().map(name).collect()
}

/// At most so many bytes, whole characters.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
