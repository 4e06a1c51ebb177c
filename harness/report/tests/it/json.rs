//! The JSON run report.
