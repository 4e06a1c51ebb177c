//! The flags of reports that are files: for a session that runs, and for one of the past (`muster results show`).

use clap::Args;
use std::path::PathBuf;

/// Reports.
#[derive(Debug, Clone, Default, Args)]
pub struct Reports {
    /// Write an HTML report here: one file that needs nothing beside it; `{sessionid}` stands for the session and `-` is standard output, as in all of these
    #[arg(long, value_name = "FILE", help_heading = "Reports", global = true)]
    pub report_html: Option<PathBuf>,
    /// Write a JUnit report here, for CI systems
    #[arg(long, value_name = "FILE", help_heading = "Reports", global = true)]
    pub report_junit: Option<PathBuf>,
    /// Write a Markdown summary here; where `GITHUB_STEP_SUMMARY` is set, it goes to the job's page without being asked for
    #[arg(long, value_name = "FILE", help_heading = "Reports", global = true)]
    pub report_markdown: Option<PathBuf>,
    /// A folder with a site's own report.html or summary.md, in place of the built-in ones
    #[arg(long, value_name = "DIR", help_heading = "Reports", global = true)]
    pub report_templates: Option<PathBuf>,
    /// Append every figure to DIR/SYSTEM/PARTITION/CHECK.csv
    #[arg(long, value_name = "DIR", help_heading = "Reports", global = true)]
    pub perflogdir: Option<PathBuf>,
    /// Print how failures are spread over phases, nodes and causes at the end
    #[arg(long, help_heading = "Reports", global = true)]
    pub failure_stats: bool,
}

impl Reports {
    /// Those that are one file: what each is, its flag, and where it is wanted.
    pub fn files(&self) -> [(&'static str, &'static str, &Option<PathBuf>); 3] {
        [
            ("the HTML report", "--report-html", &self.report_html),
            ("the JUnit report", "--report-junit", &self.report_junit),
            ("the Markdown summary", "--report-markdown", &self.report_markdown),
        ]
    }

    /// Takes over what `over` asks for: the report of a session that is gone on with may be wanted elsewhere.
    pub fn lay_under(&mut self, over: &Self) {
        let Self { report_html, report_junit, report_markdown, report_templates, perflogdir, failure_stats } = over;
        let pairs = [
            (&mut self.report_html, report_html),
            (&mut self.report_junit, report_junit),
            (&mut self.report_markdown, report_markdown),
            (&mut self.report_templates, report_templates),
            (&mut self.perflogdir, perflogdir),
        ];
        for (under, over) in pairs {
            if over.is_some() {
                under.clone_from(over);
            }
        }
        self.failure_stats |= failure_stats;
    }
}
