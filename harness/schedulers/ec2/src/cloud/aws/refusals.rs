//! Reads the refusals of the services, each of which has a form of its own.

use crate::cloud::{CLOCK, CloudError, Kind};
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use muster_core::decisions::backoff::Backoff;
use muster_text::time::Timestamp;
use quick_xml::de::from_reader;
use serde::Deserialize;
use std::time::Duration;

/// The same error in all forms: EC2 has a list of them, STS one, S3 only its members, and SSM has them as JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    #[serde(rename = "Errors")]
    errors: Option<Errors>,
    #[serde(rename = "Error")]
    error: Option<One>,
    #[serde(rename = "Code")]
    code: Option<String>,
    #[serde(rename = "Message")]
    message: Option<String>,
    /// Of JSON, sometimes beside the other.
    #[serde(rename = "message")]
    json_message: Option<String>,
    #[serde(rename = "__type")]
    kind: Option<String>,
    #[serde(rename = "RequestId")]
    request_id: Option<String>,
    /// Of EC2.
    #[serde(rename = "RequestID")]
    ec2_request_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Errors {
    #[serde(rename = "Error")]
    error: One,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct One {
    #[serde(rename = "Code")]
    code: Option<String>,
    #[serde(rename = "Message")]
    message: Option<String>,
}

/// An answer that is none. `at`: where it was asked for. `now`: when it came.
pub(super) fn refusal(
    (service, action): (&'static str, &'static str),
    at: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &Bytes,
    now: Timestamp,
) -> CloudError {
    let is_json = body.first() == Some(&b'{');
    let document: Document =
        if is_json { serde_json::from_slice(body).ok() } else { from_reader(body.as_ref()).ok() }.unwrap_or_default();
    let one = document.errors.map(|errors| errors.error).or(document.error).unwrap_or_default();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let kind = document.kind.map(|kind| kind.rsplit('#').next().unwrap_or_default().to_owned());
    let code = one.code.or(document.code).or(kind).unwrap_or_else(|| format!("HTTP {}", status.as_u16()));
    let mut message = one.message.or(document.message).or(document.json_message).unwrap_or_else(|| {
        let said = status.canonical_reason().unwrap_or("an error");
        format!("{said}, without an explanation")
    });
    if let Some(difference) = is_about_time(&code, &message).then(|| header("date")).flatten().and_then(|date| skew(&date, now)) {
        message = format!("{message}: {difference}");
    }
    let ids = ["x-amzn-requestid", "x-amz-request-id"];
    let request_id = document.request_id.or(document.ec2_request_id).or_else(|| ids.iter().find_map(|name| header(name)));
    let request = request_id.map_or_else(String::new, |id| format!(", request {id}"));
    let (action, status, origin) = (action.to_owned(), status.as_u16(), format!("at {at}{request}"));
    CloudError::Refused { service, action, code, message, status, origin }
}

fn is_about_time(code: &str, message: &str) -> bool {
    matches!(code, "RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture")
        || (matches!(code, "SignatureDoesNotMatch" | "InvalidSignatureException" | "AuthFailure")
            && (message.contains("Signature expired") || message.contains("not yet current")))
}

/// By how much this machine is wrong. Amazon takes five minutes, and most services more.
fn skew(date: &str, now: Timestamp) -> Option<String> {
    const ALLOWED: Duration = Duration::from_mins(4);
    let there = Timestamp(jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_microsecond());
    let (by, how) = if there > now { (there.since(now), "behind") } else { (now.since(there), "ahead of") };
    let minutes = by.as_secs().div_ceil(60);
    (by > ALLOWED).then(|| format!("the clock of this machine is {minutes} min {how} Amazon's: set it, for example with NTP"))
}

/// Whether the credentials are no longer taken. EC2 says the same of a request that is too old.
pub(super) fn is_ended(error: &CloudError) -> bool {
    let CloudError::Refused { code, message, .. } = error else { return false };
    match code.as_str() {
        "ExpiredToken" | "ExpiredTokenException" => true,
        "RequestExpired" => !message.contains(CLOCK),
        _ => false,
    }
}

/// How long to wait at most before the same request is sent again, after so many tries; `None`: it is not worth it.
pub(super) fn pause(error: &CloudError, tries: u32) -> Option<Duration> {
    const MOST_TRIES: u32 = 6;
    let first = match error {
        CloudError::Unreached { .. } => Duration::from_millis(200),
        CloudError::Refused { .. } if error.kind() == Kind::Throttled => Duration::from_secs(1),
        CloudError::Refused { status, .. } if *status >= 500 || *status == 429 => Duration::from_millis(200),
        CloudError::Refused { .. }
        | CloudError::Unread { .. }
        | CloudError::NoCredentials(_)
        | CloudError::CredentialsLost(_)
        | CloudError::NoRegion(_) => {
            return None;
        }
    };
    (tries < MOST_TRIES).then(|| Backoff { first, longest: Duration::from_secs(8) }.after(tries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[(&'static str, &str)], body: &str, now: i64) -> CloudError {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let body = Bytes::from(body.to_owned());
        refusal(("EC2", "X"), "ec2.test", StatusCode::from_u16(status).unwrap(), &headers, &body, Timestamp::of_seconds(now))
    }

    #[test]
    fn each_service_says_why_in_its_own_form() {
        let at = ("date", "Wed, 25 Nov 2026 12:00:00 GMT");
        let noon = 1_795_608_000;
        let skewed = "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large</Message></Error>";
        let expired = "<Response><Errors><Error><Code>RequestExpired</Code><Message>Request has expired.</Message></Error></Errors></Response>";
        let rows = [
            (
                400,
                vec![],
                "<?xml version=\"1.0\"?><Response><Errors><Error><Code>InvalidAMIID.NotFound</Code><Message>no image</Message></Error></Errors><RequestID>r-1</RequestID></Response>",
                noon,
            ),
            (
                403,
                vec![],
                "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>InvalidClientTokenId</Code><Message>invalid</Message></Error><RequestId>r-2</RequestId></ErrorResponse>",
                noon,
            ),
            (
                404,
                vec![("x-amz-request-id", "r-3")],
                "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><BucketName>b</BucketName></Error>",
                noon,
            ),
            (
                400,
                vec![("x-amzn-requestid", "r-4")],
                "{\"__type\":\"com.amazonaws.ssm#ParameterNotFound\",\"message\":\"no\"}",
                noon,
            ),
            (503, vec![], "", noon),
            (502, vec![], "<html><body>Bad gateway</body></html>", noon),
            (403, vec![at], skewed, noon - 20 * 60),
            (403, vec![at], skewed, noon + 16 * 60 - 1),
            (400, vec![at], expired, noon + 1),
            (400, vec![at], expired, noon - 3600),
        ];
        let said = rows.map(|(status, headers, body, now)| {
            let error = read(status, &headers, body, now);
            let ended = if is_ended(&error) { " [ended]" } else { "" };
            format!("{status} {error}{ended}")
        });
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn only_what_passes_is_sent_again_and_not_for_ever() {
        let of = |status, code: &str| read(status, &[], &format!("<Error><Code>{code}</Code></Error>"), 0);
        let unreached = CloudError::Unreached { service: "EC2", action: "X".to_owned(), why: String::new() };
        let pauses = |error: &CloudError| (1..=6).map_while(|tries| pause(error, tries)).collect::<Vec<_>>();
        let rows: Vec<(CloudError, Vec<u128>)> = vec![
            (unreached, vec![200, 400, 800, 1600, 3200]),
            (of(503, "RequestLimitExceeded"), vec![1000, 2000, 4000, 8000, 8000]),
            (of(400, "ThrottlingException"), vec![1000, 2000, 4000, 8000, 8000]),
            (of(500, "InternalError"), vec![200, 400, 800, 1600, 3200]),
            (of(400, "InvalidParameterValue"), vec![]),
            (of(403, "UnauthorizedOperation"), vec![]),
            (CloudError::NoCredentials(String::new()), vec![]),
        ];
        for (error, expected) in rows {
            let millis: Vec<u128> = pauses(&error).iter().map(Duration::as_millis).collect();
            assert_eq!(millis, expected, "{error}");
        }
    }
}
