//! One request and its answer: counted, bounded in time, tried again while the trouble passes by itself.
//!
//! ```text
//! send --once--> answer
//!        |-- 401 -------------> connect anew (kubeconfig, credential plugin), once
//!        |-- transient, silent -> pause (backoff with jitter, at least Retry-After), until RETRY_LIMIT is over
//!        '-- anything else ---> ApiError
//! ```

use super::{
    Cluster,
    connect::{self, root_cause},
    count::RequestKind,
    error::{ApiError, Asked, Refused, Why},
    slim,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use muster_core::Value;
use std::{
    hash::{BuildHasher, RandomState},
    sync::PoisonError,
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// An answer that takes longer will not come.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// One call tries for so long; whoever calls decides what follows. Below the limit of a launch.
const RETRY_LIMIT: Duration = Duration::from_secs(40);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// No answer that we ask for is larger.
const LARGEST_ANSWER: usize = 64 << 20;

/// A request that can be sent again.
pub(super) struct Call {
    pub(super) kind: RequestKind,
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
}

impl Call {
    pub(super) fn no_answer(&self, why: impl Into<String>) -> ApiError {
        ApiError::NoAnswer { asked: Box::new(self.asked.clone()), why: why.into() }
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
        let mut pause = FIRST_PAUSE;
        let mut logged_in_again = false;
        loop {
            let error = match self.once(call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match error.why() {
                Why::Unauthorized if !logged_in_again => {
                    logged_in_again = true;
                    self.reconnect().await?;
                }
                Why::Transient => {
                    let wait = jittered(pause).max(error.retry_after().unwrap_or_default());
                    if Instant::now() + wait >= by {
                        return Err(error);
                    }
                    tracing::debug!(%error, pause = ?wait, "request failed, trying again");
                    sleep(wait).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                _ => return Err(error),
            }
        }
    }

    async fn once(&self, call: &Call) -> Result<Answer, ApiError> {
        let answered = async {
            let response = self.opened(call).await?;
            let warnings = warnings(response.headers());
            let body = Limited::new(response.into_body(), LARGEST_ANSWER);
            let body = body.collect().await.map_err(|error| call.no_answer(root_cause(&*error)))?;
            Ok(Answer { body: body.to_bytes().to_vec(), warnings })
        };
        timeout(ANSWER_LIMIT, answered)
            .await
            .unwrap_or_else(|_| Err(call.no_answer(format!("no answer within {ANSWER_LIMIT:?}"))))
    }

    /// A stream: the answer as soon as its head is here, refused ones read to their end. One attempt.
    pub(super) async fn open(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let opened = timeout(ANSWER_LIMIT, self.opened(call)).await;
        let opened = opened.unwrap_or_else(|_| Err(call.no_answer(format!("no answer within {ANSWER_LIMIT:?}"))));
        if let Err(error) = &opened
            && error.why() == Why::Unauthorized
        {
            // Whoever reads on opens it again, with new credentials.
            self.reconnect().await?;
        }
        opened
    }

    async fn opened(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        self.counters.count(call.kind);
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        let response = client.send(call.request()?).await.map_err(|error| call.no_answer(root_cause(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (code, retry_after) = (response.status(), retry_after(response.headers()));
        let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(Refused::new(call.asked.clone(), code.as_u16(), &body, retry_after).into())
    }

    async fn reconnect(&self) -> Result<(), ApiError> {
        let client = connect::client(&self.place).await?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(())
    }
}

/// Between three and five quarters, so that cases that failed together do not come back together.
pub fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8) % 512;
    pause * 3 / 4 + pause * u32::try_from(random).unwrap_or(0) / 1024
}

/// In seconds; a date, which API servers do not send, is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
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
    pub(super) fn json(&self, call: &Call) -> Result<Value, ApiError> {
        slim::read(&self.body).map_err(|error| {
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
    fn retry_after_is_read_in_seconds() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), None);
        headers.insert(header::RETRY_AFTER, "3".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(3)));
    }
}
