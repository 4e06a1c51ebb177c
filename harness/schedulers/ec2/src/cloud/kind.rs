//! The meaning of Amazon's error codes, wherever they come from.

use super::CloudError;

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Too many requests: the same one passes later.
    Throttled,
    /// The credentials do not allow the call.
    Forbidden,
    /// The credentials are none.
    UnknownCaller,
    Other,
}

impl Kind {
    pub(crate) fn of(code: &str) -> Self {
        match code {
            "RequestLimitExceeded"
            | "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "TooManyRequestsException"
            | "EC2ThrottledException"
            | "PriorRequestNotComplete"
            | "SlowDown" => Self::Throttled,
            "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" => Self::Forbidden,
            "AuthFailure"
            | "InvalidClientTokenId"
            | "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "UnrecognizedClientException"
            | "InvalidSignatureException"
            | "InvalidToken" => Self::UnknownCaller,
            _ => Self::Other,
        }
    }
}

impl CloudError {
    /// What a refusal is about. Others are about nothing that has a code.
    pub(crate) fn kind(&self) -> Kind {
        self.code().map_or(Kind::Other, Kind::of)
    }
}
