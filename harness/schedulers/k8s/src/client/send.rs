//! Sends one request and reads its answer: counted, with a time limit, repeated after transient errors.
//!
//! ```text
//! send --once--> answer
//!        |-- 401 --------------------------> again with other credentials (`login`), if there are any
//!        |-- transient, silent, withdrawn -> pause (backoff with jitter, at least Retry-After), until RETRY_LIMIT is over
//!        '-- anything else ----------------> ApiError
//! ```

use super::{
    Cluster,
    error::{ApiError, Asked, Refused, Why, root_cause},
    slim,
};
use crate::api::clock;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use jiff::fmt::rfc2822;
use kube::client::Body;
use muster_core::decisions::backoff::Backoff;
use muster_text::{Value, time::Timestamp};
use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// How long one call is tried. Below the limit of a launch.
const RETRY_LIMIT: Duration = Duration::from_secs(40);
const PAUSES: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(5) };
/// No answer that we ask for is larger.
const LARGEST_ANSWER: usize = 64 << 20;

/// A request that can be sent again.
pub(super) struct Call {
    /// What it counts as: its verb, or `dry-run`, `log`, `discovery`.
    pub(super) kind: &'static str,
    pub(super) asked: Asked,
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    pub(super) body: Option<(&'static str, Vec<u8>)>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) warnings: Vec<String>,
    /// What time it was at the server.
    pub(super) date: Option<Timestamp>,
}

impl Call {
    pub(super) fn no_answer(&self, why: impl Into<String>) -> ApiError {
        ApiError::NoAnswer { asked: Box::new(self.asked.clone()), why: why.into() }
    }

    async fn within<T>(&self, limit: Duration, answer: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        timeout(limit, answer).await.unwrap_or_else(|_| Err(self.no_answer(format!("no answer within {limit:?}"))))
    }

    /// A refused creation is not repeated here: the launch does so, one case at a time.
    fn is_repeated_after(&self, why: Why) -> bool {
        why.passes() && !(why == Why::Withdrawn && self.asked.verb == "create")
    }

    fn request(&self) -> Result<Request<Body>, ApiError> {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("muster/", env!("CARGO_PKG_VERSION")));
        if let Some((media, _)) = &self.body {
            request = request.header(header::CONTENT_TYPE, *media);
        }
        let body = self.body.as_ref().map_or_else(Body::empty, |(_, bytes)| Body::from(bytes.clone()));
        request.body(body).map_err(|error| self.no_answer(error.to_string()))
    }
}

impl Cluster {
    /// An object, a list or nothing: the whole answer.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, ApiError> {
        let by = Instant::now() + RETRY_LIMIT;
        let mut pause = PAUSES.first;
        loop {
            let error = match self.logged_in(call, |client| self.once(call, client)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !call.is_repeated_after(error.why()) {
                return Err(error);
            }
            let wait = jittered(pause).max(error.retry_after().unwrap_or_default());
            if Instant::now() + wait >= by {
                return Err(error);
            }
            tracing::debug!(%error, pause = ?wait, "request failed, trying again");
            sleep(wait).await;
            pause = PAUSES.next(pause);
        }
    }

    /// The same, once.
    pub(super) async fn send_once(&self, call: &Call) -> Result<Answer, ApiError> {
        self.logged_in(call, |client| self.once(call, client)).await
    }

    /// A stream: the answer as soon as its head is here, within the limit; refused ones read to their end. One attempt.
    pub(super) async fn open(&self, call: &Call, limit: Option<Duration>) -> Result<Response<Body>, ApiError> {
        let open = |client| async move {
            match limit {
                Some(limit) => call.within(limit, self.opened(call, client)).await,
                None => self.opened(call, client).await,
            }
        };
        self.logged_in(call, open).await
    }

    /// One attempt, and another one at once when the credentials were refused and there are others.
    async fn logged_in<T, F>(&self, call: &Call, attempt: impl Fn(kube::Client) -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let live = self.login.live().await?;
        let answer = self.judge(call, attempt(live.client.clone()).await);
        match &answer {
            Err(ApiError::Refused(refused)) if refused.why() == Why::Unauthorized => {}
            _ => return answer,
        }
        match self.login.instead_of(&live).await? {
            Some(other) => self.judge(call, attempt(other.client).await),
            None => answer,
        }
    }

    /// What is refused may pass.
    fn judge<T>(&self, call: &Call, answer: Result<T, ApiError>) -> Result<T, ApiError> {
        let mut grants = self.grants.lock();
        grants.judge(&call.asked, answer, Instant::now())
    }

    async fn once(&self, call: &Call, client: kube::Client) -> Result<Answer, ApiError> {
        let answered = async {
            let response = self.opened(call, client).await?;
            let (warnings, date) = (warnings(response.headers()), date(response.headers()));
            if let Some(date) = date {
                self.clock.dated(date);
            }
            let body = Limited::new(response.into_body(), LARGEST_ANSWER);
            let body = body.collect().await.map_err(|error| call.no_answer(root_cause(&*error)))?;
            Ok(Answer { body: body.to_bytes().to_vec(), warnings, date })
        };
        let _turn = self.budget.request().await;
        call.within(self.timeouts.answer, answered).await
    }

    async fn opened(&self, call: &Call, client: kube::Client) -> Result<Response<Body>, ApiError> {
        self.counters.count(call.kind);
        let response = client.send(call.request()?).await.map_err(|error| call.no_answer(root_cause(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (code, retry_after) = (response.status(), retry_after(response.headers()));
        let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(Refused::new(call.asked.clone(), code.as_u16(), &body, retry_after).into())
    }
}

/// Between three and five quarters, so that cases that failed together do not come back together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8) % 512;
    pause * 3 / 4 + pause * u32::try_from(random).unwrap_or(0) / 1024
}

/// In seconds; a date, which API servers do not send, is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// As HTTP writes it: `Thu, 01 Jan 2026 00:00:00 GMT`.
pub(super) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(header::DATE)?.to_str().ok()?;
    rfc2822::DateTimeParser::new().parse_timestamp(date).ok().map(clock::of)
}

/// `299 - "would violate PodSecurity \"restricted:latest\""`, the text alone.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let text = |value: &str| {
        let quoted = value.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')).map(|(quoted, _)| quoted);
        quoted.unwrap_or(value).replace("\\\"", "\"").replace("\\\\", "\\")
    };
    headers.get_all(header::WARNING).iter().filter_map(|value| value.to_str().ok()).map(text).collect()
}

impl Answer {
    /// Without what the server keeps in an object for itself.
    pub(super) fn json(&self, call: &Call) -> Result<Value, ApiError> {
        Self::read(call, slim::read(&self.body))
    }

    /// With all of it.
    pub(super) fn whole(&self, call: &Call) -> Result<Value, ApiError> {
        Self::read(call, serde_json::from_slice(&self.body))
    }

    fn read(call: &Call, value: serde_json::Result<Value>) -> Result<Value, ApiError> {
        value.map_err(|error| {
            let code = StatusCode::BAD_GATEWAY.as_u16();
            let message = format!("the answer is not JSON: {error}");
            Refused { message, ..Refused::new(call.asked.clone(), code, b"", None) }.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_taken_out_of_their_quotes() {
        let mut headers = HeaderMap::new();
        for value in [r#"299 - "would violate PodSecurity \"restricted:latest\"""#, "299 - plain"] {
            headers.append(header::WARNING, value.parse().unwrap());
        }
        assert_eq!(warnings(&headers), [r#"would violate PodSecurity "restricted:latest""#, "299 - plain"]);
    }

    #[test]
    fn a_pause_is_spread_around_its_length() {
        let second = Duration::from_secs(1);
        let pauses: Vec<Duration> = (0..100).map(|_| jittered(second)).collect();
        assert!(pauses.iter().all(|pause| (second * 3 / 4..second * 5 / 4).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]));
    }

    #[test]
    fn a_date_is_read_as_http_writes_it() {
        let mut headers = HeaderMap::new();
        assert_eq!(date(&headers), None);
        headers.insert(header::DATE, "Thu, 01 Jan 1970 00:00:09 GMT".parse().unwrap());
        assert_eq!(date(&headers), Some(Timestamp(9_000_000)));
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), None);
        headers.insert(header::RETRY_AFTER, "3".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(3)));
    }
}
