//! Files for other programs: JSON, JUnit, CSV and the formats of CI systems.

pub mod annotations;
pub mod gitlab;
pub mod json;
pub mod junit;
pub mod perflog;
pub mod run_report;
