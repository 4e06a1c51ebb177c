//! Reports for people, rendered by Tera: `report.html`, one file that needs nothing beside it, and `summary.md` for the
//! job pages of CI systems. The templates are in reports/templates/, and embedded.
//!
//! ```text
//! Results -facts-> plain data, cleaned and masked -+-> report.html   (escaped by Tera, by its suffix)
//!                                                         '-> summary.md    (escaped by the filters md, code, fence)
//! ```
//!
//! A site may override either and add files that they include. Its own template can extend the embedded one as
//! `builtin/report.html` and fill in blocks. What templates can read is described in docs/reports.md.

mod bar;
mod facts;
mod markdown;

pub(crate) use markdown::plain;

use crate::{RenderError, counts::Results, text::time::local};
use jiff::tz::TimeZone;
use muster_core::result::Session;
use muster_text::time::Timestamp;
use tera::Tera;

pub const HTML: &str = "report.html";
pub const MARKDOWN: &str = "summary.md";

const EMBEDDED: [(&str, &str); 2] = [
    (HTML, include_str!("../../../../reports/templates/report.html")),
    (MARKDOWN, include_str!("../../../../reports/templates/summary.md")),
];

/// The facts about the reader that templates need beside the results.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The options that rerun commands need, see [`crate::text::command::rerun`].
    pub rerun_options: Vec<String>,
    /// The time zone of the reader.
    pub zone: TimeZone,
}

#[derive(Debug, Clone)]
pub struct Templates {
    tera: Tera,
}

impl Templates {
    /// The embedded templates and a site's, which are given as name and text.
    ///
    /// # Errors
    /// A mistake in a site's template, with its place. It is rendered for an empty session, so that an unknown
    /// name is found before the session runs, as far as it is outside of loops.
    pub fn new<'a>(overrides: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, RenderError> {
        let mut tera = Tera::new();
        markdown::register(&mut tera);
        // Components have one name for all templates: theirs is in the set once.
        let parts = std::iter::once(("parts.html".to_owned(), include_str!("../../../../reports/templates/parts.html")));
        let embedded = EMBEDDED.iter().flat_map(|(name, text)| [(format!("builtin/{name}"), *text), ((*name).to_owned(), *text)]);
        let site = overrides.into_iter().map(|(name, text)| (name.to_owned(), text));
        // One batch: templates may extend each other in any order, and the later of two names wins.
        tera.add_raw_templates(parts.chain(embedded).chain(site)).map_err(RenderError::of("render a template"))?;
        let templates = Self { tera };
        let session = Session { ended: Some(Timestamp(0)), ..Session::default() };
        let reader = Reader { rerun_options: Vec::new(), zone: TimeZone::UTC };
        for name in [HTML, MARKDOWN] {
            templates.render(name, &Results::new(&session, []), &reader)?;
        }
        Ok(templates)
    }

    /// The page.
    ///
    /// # Errors
    /// What a site's template asks for and is not there.
    pub fn html(&self, results: &Results<'_>, reader: &Reader) -> Result<String, RenderError> {
        self.render(HTML, results, reader)
    }

    /// The summary.
    pub fn markdown(&self, results: &Results<'_>, reader: &Reader) -> Result<String, RenderError> {
        self.render(MARKDOWN, results, reader)
    }

    fn render(&self, name: &str, results: &Results<'_>, reader: &Reader) -> Result<String, RenderError> {
        let context = facts::context(results, &reader.rerun_options, |at| local(at, &reader.zone));
        self.tera.render(name, &context).map_err(RenderError::of("render a template"))
    }
}
