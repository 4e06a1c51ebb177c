//! One call: signed, sent, and sent again where nothing can have happened twice.

use super::{
    credentials::Credentials,
    http::Http,
    query::{encode, encode_path},
    refusals::{is_ended, pause, refusal},
};
use crate::{
    cloud::CloudError,
    config::regions,
    plan::{LONGEST_ADDRESS, Place},
};
use ::http::{Method, Request, StatusCode, request::Parts};
use bytes::Bytes;
use muster_text::time::Timestamp;
use reqsign_aws_v4::{Credential, RequestSigner};
use reqsign_core::{Env, SignRequest};
use sha2::{Digest, Sha256};
use std::{
    ffi::OsString,
    fmt::Write,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// From the first try to the end of the last.
const ALL_TRIES: Duration = Duration::from_mins(1);

/// One try, of a call that carries little.
const ONE_TRY: Duration = Duration::from_secs(10);

/// Bytes a second of a connection that is slow and not broken.
const SLOWEST: u64 = 200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Ec2,
    S3,
    Ssm,
    Sts,
}

impl Service {
    /// For people.
    fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::S3 => "S3",
            Self::Ssm => "SSM",
            Self::Sts => "STS",
        }
    }

    /// In addresses and signatures.
    fn key(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::S3 => "s3",
            Self::Ssm => "ssm",
            Self::Sts => "sts",
        }
    }
}

/// A request before it is signed.
pub(super) struct Ask {
    pub service: Service,
    pub action: &'static str,
    pub method: Method,
    pub address: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
    /// The request may be sent again if it is not known to have failed.
    pub is_repeated: bool,
}

pub(super) struct Answer {
    pub status: StatusCode,
    /// The version of an object or of a piece of one; empty elsewhere.
    pub etag: String,
    /// The time when an object was written, in the words of HTTP; empty elsewhere.
    pub modified: String,
    pub body: Bytes,
}

/// The connections to one region.
pub(super) struct Wire {
    place: Place,
    pub(super) http: Http,
    pub(super) credentials: Credentials,
    /// Something has answered: the region is there.
    has_answered: AtomicBool,
}

impl Wire {
    pub(super) fn new(place: &Place, environment: impl Env) -> Result<Self, String> {
        let http = Http::new()?;
        Ok(Self {
            place: place.clone(),
            credentials: Credentials::new(http.clone(), environment),
            http,
            has_answered: AtomicBool::new(false),
        })
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Where a service is, with a slash at the end.
    pub(super) fn service(&self, service: Service) -> String {
        let region = &self.place.region;
        match &self.place.endpoint_url {
            Some(address) => format!("{}/", address.trim_end_matches('/')),
            None => format!("https://{}.{region}.{}/", service.key(), regions::partition(region).domain),
        }
    }

    /// Where a bucket or an object of it is. The certificate of Amazon has no names with dots.
    pub(super) fn object(&self, bucket: &str, key: &str) -> String {
        let (region, key) = (&self.place.region, encode_path(key));
        if self.place.endpoint_url.is_some() || bucket.contains('.') {
            format!("{}{bucket}/{key}", self.service(Service::S3))
        } else {
            format!("https://{bucket}.s3.{region}.{}/{key}", regions::partition(region).domain)
        }
    }

    /// The host of an address, for people, with the region unless its name has it.
    pub(super) fn host_of(&self, address: &str) -> String {
        let (host, region) = (host(address), &self.place.region);
        if host.contains(region.as_str()) { host.to_owned() } else { format!("{host}, region {region}") }
    }

    /// The answer of a status that `is_fine`.
    pub(super) async fn call(&self, ask: Ask, is_fine: fn(StatusCode) -> bool) -> Result<Answer, CloudError> {
        let (started, mut tries, mut is_renewed) = (Instant::now(), 0, false);
        loop {
            tries += 1;
            let credential = self.credentials.get().await?;
            let error = match self.once(&ask, &credential, is_fine).await {
                Ok(answer) => {
                    self.credentials.work();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if is_ended(&error) {
                // Nothing has happened: what was refused was who asks.
                self.credentials.forget(&credential).await;
                if is_renewed {
                    return Err(self.credentials.none(ended(&error)));
                }
                is_renewed = true;
                continue;
            }
            let Some(most) = pause(&error, tries).filter(|_| ask.is_repeated) else { return Err(error) };
            let pause = some_of(most);
            if started.elapsed() + pause + ask.limit() > ALL_TRIES.max(ask.limit() * 2) {
                return Err(error);
            }
            tracing::debug!(%error, ?pause, tries, "a call to Amazon is tried again");
            sleep(pause).await;
        }
    }

    async fn once(&self, ask: &Ask, credential: &Credential, is_fine: fn(StatusCode) -> bool) -> Result<Answer, CloudError> {
        let (service, action) = (ask.service.name(), ask.action);
        let host = host(&ask.address);
        let is_open = !self.has_answered.load(Ordering::Relaxed) && !has_proxy(&|name| std::env::var_os(name));
        let unreached = |why: String| unreached(&self.place, is_open, (service, action), format!("{host}: {why}"));
        let mut request = Request::builder().method(ask.method.clone()).uri(&ask.address);
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        request = request.header("x-amz-content-sha256", sha256(&ask.body));
        let request = request.body(ask.body.clone()).map_err(|error| unreached(error.to_string()))?;
        let (mut parts, body) = request.into_parts();
        self.sign(ask.service, &mut parts, credential, None).await?;
        let asked = Instant::now();
        let answer = self.http.send(Request::from_parts(parts, body), ask.limit()).await.map_err(unreached)?;
        self.has_answered.store(true, Ordering::Relaxed);
        let status = answer.status();
        tracing::debug!(service, action, status = status.as_u16(), took = ?asked.elapsed(), "a call to Amazon");
        if is_fine(status) {
            let header = |name| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
            let (etag, modified) = (header("etag"), header("last-modified"));
            return Ok(Answer { status, etag, modified, body: answer.into_body() });
        }
        Err(refusal((service, action), &self.host_of(&ask.address), status, answer.headers(), answer.body(), now()))
    }

    async fn sign(
        &self,
        service: Service,
        parts: &mut Parts,
        credential: &Credential,
        lasts: Option<Duration>,
    ) -> Result<(), CloudError> {
        let signer = RequestSigner::new(service.key(), &self.place.region);
        signer.sign_request(self.credentials.context(), parts, Some(credential), lasts).await.map_err(|error| {
            // It fails for credentials that end within seconds; anything else is a mistake of ours.
            CloudError::NoCredentials(format!("the request cannot be signed: {error}"))
        })
    }

    /// An address for who has no credentials, until a point in time, or until the credentials or S3 end it before.
    pub(super) async fn presigned(&self, method: Method, address: String, until: Timestamp) -> Result<String, CloudError> {
        let credential = self.credentials.get().await?;
        let until = super::credentials::end(&credential).map_or(until, |end| end.min(until));
        let lasts = until.since(now()).min(LONGEST_ADDRESS);
        let whole = Duration::from_secs(lasts.as_secs());
        let request = Request::builder().method(method).uri(address).body(());
        let mut parts =
            request.map_err(|error| CloudError::NoCredentials(format!("the address cannot be signed: {error}")))?.into_parts().0;
        self.sign(Service::S3, &mut parts, &credential, Some(whole)).await?;
        Ok(parts.uri.to_string())
    }
}

impl Ask {
    /// Bodies of objects take their time, and so do an object of many pieces and the end of many objects.
    fn limit(&self) -> Duration {
        match self.service {
            Service::S3 => ALL_TRIES / 2 + Duration::from_secs(self.body.len() as u64 / SLOWEST),
            Service::Ec2 | Service::Ssm | Service::Sts => ONE_TRY,
        }
    }
}

fn ended(refusal: &CloudError) -> String {
    format!(
        "the AWS credentials have ended: renew them, for example with `aws sso login` or new variables in the environment ({refusal})"
    )
}

/// With one, it may be the proxy that has no address.
fn has_proxy(env: &dyn Fn(&str) -> Option<OsString>) -> bool {
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].iter().any(|name| env(name).is_some_and(|proxy| !proxy.is_empty()))
}

/// The error of a call without an answer. `NoRegion`: the region is not on the list, its endpoint has no address, and whether it exists
/// `is_open`.
fn unreached(place: &Place, is_open: bool, (service, action): (&'static str, &'static str), why: String) -> CloudError {
    if is_open && place.endpoint_url.is_none() && has_no_address(&why) && !regions::is_known(&place.region) {
        return CloudError::NoRegion(place.region.clone());
    }
    CloudError::Unreached { service, action: action.to_owned(), why }
}

/// What the libraries of C say of a name that does not exist; where no server of names answers, they say something else.
fn has_no_address(why: &str) -> bool {
    const SAID: &[&str] = &[
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "nodename nor servname provided, or not known",
    ];
    SAID.iter().any(|said| why.contains(said))
}

/// `name=value` pairs of an address.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        let first = if query.is_empty() { '?' } else { '&' };
        let _ = write!(query, "{first}{}={}", encode(name), encode(value));
    }
    query
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

pub(super) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_microsecond())
}

/// So that many who were refused together do not come again together.
fn some_of(most: Duration) -> Duration {
    let part = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() / 1000 % 1000;
    most / 4 + (most * 3 / 4) * part / 1000
}

/// The host of an address, without who logs in there.
fn host(address: &str) -> &str {
    let host = address.split('/').nth(2).unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_that_is_unknown_and_has_no_address_is_none() {
        let lookup = |said: &str| format!("failed to lookup address information: {said}");
        let (none, silent) = (lookup("Name or service not known"), lookup("Temporary failure in name resolution"));
        let rows = [
            ("eu-west-9", None, true, &none, true),
            ("eu-west-9", None, true, &silent, false),
            // It has answered before, or there is a proxy.
            ("eu-west-9", None, false, &none, false),
            // This machine has no network.
            ("eu-west-1", None, true, &none, false),
            ("eu-west-9", Some("http://ec2.test"), true, &none, false),
        ];
        for (region, endpoint_url, is_open, why, is_none) in rows {
            let place = Place { region: region.to_owned(), endpoint_url: endpoint_url.map(str::to_owned) };
            let error = unreached(&place, is_open, ("EC2", "DescribeImages"), why.clone());
            assert_eq!(error == CloudError::NoRegion(region.to_owned()), is_none, "{region} {why}: {error}");
        }
    }

    #[test]
    fn a_host_is_named_with_its_region_and_without_who_logs_in() {
        let at = |endpoint_url: Option<&str>, bucket: &str| {
            let place = Place { region: "eu-west-1".to_owned(), endpoint_url: endpoint_url.map(str::to_owned) };
            let wire = Wire::new(&place, super::super::credentials::environment(&[])).unwrap();
            [wire.service(Service::Ec2), wire.object(bucket, "a/b")].map(|address| wire.host_of(&address))
        };
        assert_eq!(at(None, "bench"), ["ec2.eu-west-1.amazonaws.com", "bench.s3.eu-west-1.amazonaws.com"]);
        assert_eq!(at(Some("http://me:secret@10.0.0.1:5000"), "bench"), ["10.0.0.1:5000, region eu-west-1"; 2]);
    }

    #[test]
    fn a_proxy_is_one_that_requests_would_take() {
        assert!(has_proxy(&|name| (name == "https_proxy").then(|| "http://proxy:3128".into())));
        assert!(!has_proxy(&|name| (name == "HTTPS_PROXY").then(OsString::new)));
    }
}
