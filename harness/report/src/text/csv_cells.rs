//! CSV as RFC 4180 has it, and safe to open in a spreadsheet.

use crate::{RenderError, text::style::one_line};

const WRITE: &str = "write the CSV table";

/// Rows with CRLF, quoted where they must be.
pub(crate) fn record<R: AsRef<[String]>>(rows: impl IntoIterator<Item = R>) -> Result<String, RenderError> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row.as_ref()).map_err(RenderError::of(WRITE))?;
    }
    let bytes = writer.into_inner().map_err(|error| RenderError::of(WRITE)(error.into_error()))?;
    String::from_utf8(bytes).map_err(RenderError::of(WRITE))
}

/// A spreadsheet takes text that begins with one of these for a formula; the apostrophe tells it otherwise.
pub(crate) fn text_cell(text: &str) -> String {
    let text = one_line(text);
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.into_owned() }
}
