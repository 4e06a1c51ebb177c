//! Keeps the beginning of a log that is longer than its limit: whole lines, for a part of a number is another number.

use super::{Extent, Source, Spool, Spooled};
use crate::log::text::end_of_last_line;
use muster_core::rules::{LogAction, LogLimit};
use std::{
    fs::{self, File, OpenOptions},
    io,
};

impl Spool {
    /// How many of so many bytes are kept.
    pub(super) fn room(&mut self, index: usize, wanted: u64) -> u64 {
        let Some(limit) = self.limit else { return wanted };
        let room = if self.is_over { 0 } else { wanted.min(limit.bytes.saturating_sub(self.kept)) };
        self.kept += room;
        if room < wanted {
            self.is_over = true;
            self.sections[index].extent = Extent::Cut;
        }
        room
    }

    /// Nothing more is kept, of no section: where one may end within a line, that line is left out.
    pub(super) fn cut_off(&mut self, limit: LogLimit) {
        for index in 0..self.sections.len() {
            let section = &mut self.sections[index];
            if section.extent == Extent::Whole {
                continue;
            }
            section.over(limit);
            if let Err(error) = self.cut_to_lines(index) {
                self.sections[index].gap(format!("it could not be cut off after a line: {error}"));
            }
        }
    }

    fn cut_to_lines(&mut self, index: usize) -> io::Result<()> {
        let own = self.path(index);
        let section = &mut self.sections[index];
        match &mut section.source {
            Source::Part { path, start, len } => {
                let file = File::open(path)?;
                let end = (*start + *len).min(file.metadata()?.len());
                *len = end_of_last_line(&file, *start, end)?.saturating_sub(*start);
            }
            Source::Spool { len: 0, .. } => {}
            Source::Spool { start, len } => {
                let file = OpenOptions::new().read(true).write(true).open(&own)?;
                let end = end_of_last_line(&file, *start, *start + *len)?;
                if end > *start {
                    file.set_len(end)?;
                    *len = end - *start;
                } else {
                    fs::remove_file(&own)?;
                    section.source = Source::default();
                }
                section.ends_with_newline = true;
            }
        }
        Ok(())
    }
}

impl Spooled {
    /// Something of it is beyond the limit.
    fn over(&mut self, limit: LogLimit) {
        match limit.action {
            LogAction::Invalid => self.gap(limit.reached()),
            LogAction::Warn => self.warning(limit.reached()),
        }
    }
}
