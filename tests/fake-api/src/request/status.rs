//! The refusals of the API: `Status` objects with the server's own sentences.

use http::StatusCode;
use serde_json::{Value, json};

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct No {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub retry_after: Option<u64>,
}

impl No {
    pub(crate) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), retry_after: None }
    }

    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{what} \"{name}\" not found"))
    }

    pub(crate) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    pub(crate) fn code(&self) -> StatusCode {
        StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn body(&self) -> Value {
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code});
        if let Some(seconds) = self.retry_after {
            body["details"] = json!({"retryAfterSeconds": seconds});
        }
        body
    }
}
