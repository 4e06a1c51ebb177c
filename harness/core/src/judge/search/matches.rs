//! Searches for a pattern: whether, how often and where it is found.

use super::Stretch;
use crate::job::stdout::Stdout;
use muster_text::pattern::Pattern;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge) enum Question {
    Whether,
    HowOften,
    /// Where is the first match?
    Where,
}

#[derive(Debug)]
pub(in crate::judge) struct Matches {
    question: Question,
    pub count: u64,
    pub first: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge) struct Place {
    pub section: usize,
    pub offset: usize,
}

/// How many bytes before a place are shown with it: a progress bar is one line of megabytes.
const CONTEXT: usize = 100;

impl Matches {
    pub(in crate::judge) fn new(question: Question) -> Self {
        Self { question, count: 0, first: None }
    }

    pub(in crate::judge) fn is_done(&self) -> bool {
        self.count > 0 && self.question != Question::HowOften
    }

    pub(in crate::judge) fn feed(&mut self, pattern: &Pattern, stretch: Stretch<'_>) {
        match self.question {
            Question::HowOften => self.count += pattern.find_iter(stretch.text).count() as u64,
            Question::Whether => self.count = u64::from(pattern.is_match(stretch.text)),
            Question::Where => {
                if let Some(found) = pattern.find_at(stretch.text, 0) {
                    self.count = 1;
                    self.first = Some(Place { section: stretch.section, offset: stretch.offset + found.start() });
                }
            }
        }
    }
}

impl Place {
    /// Its line in its section, from 1, and that line's text; of a very long line, what surrounds the place.
    pub(in crate::judge) fn line(self, stdout: &Stdout) -> (usize, &[u8]) {
        let text = stdout.searched().section(self.section);
        let (number, start, end) = text.line_of(self.offset);
        (number, &text.bytes[start.max(self.offset.saturating_sub(CONTEXT)).min(end)..end])
    }
}
