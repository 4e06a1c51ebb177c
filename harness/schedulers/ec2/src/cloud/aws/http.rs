//! Bytes to Amazon and back, without anything that Amazon means by them.

use bytes::Bytes;
use reqwest::{Client, redirect::Policy};
use rustls::crypto::ring;
use std::{error::Error, net::IpAddr, time::Duration};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a connection that nobody uses is kept: Amazon closes them after 20 s or more.
const IDLE: Duration = Duration::from_secs(15);

const REDIRECTS: usize = 10;

/// The connections of a region. Clones share them.
#[derive(Clone)]
pub(super) struct Http {
    /// As `HTTPS_PROXY` and `NO_PROXY` say.
    outside: Client,
    /// What is on this machine or beside it is never asked through a proxy: a proxy would ask its own.
    near: Client,
    /// For files of the web, which are often elsewhere than they are said to be.
    web: Client,
}

impl Http {
    /// No I/O but reading the certificates that this machine trusts.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(super) fn new() -> Result<Self, String> {
        // The first in the process wins; there is no other than ring.
        let _ = ring::default_provider().install_default();
        let builder = || {
            let named = concat!("muster/", env!("CARGO_PKG_VERSION"));
            Client::builder().user_agent(named).connect_timeout(CONNECT_LIMIT).pool_idle_timeout(IDLE)
        };
        let built = |client: reqwest::Result<Client>| client.map_err(|error| causes(&error));
        // A signature is for one host.
        let signed = || builder().redirect(Policy::none());
        Ok(Self {
            outside: built(signed().build())?,
            near: built(signed().no_proxy().build())?,
            web: built(builder().redirect(Policy::limited(REDIRECTS)).build())?,
        })
    }

    /// The answer of any server, whose body is still to be read.
    ///
    /// # Errors
    /// Why there is none, without the address.
    pub(super) async fn open(&self, address: &str) -> Result<reqwest::Response, String> {
        let host = address.parse::<http::Uri>().ok().and_then(|address| address.host().map(str::to_owned));
        let client = if host.as_deref().is_some_and(is_near) { &self.near } else { &self.web };
        client.get(address).send().await.map_err(|error| causes(&error.without_url()))
    }

    /// The answer, whatever it says. `limit`: until its last byte.
    ///
    /// # Errors
    /// Why there is none, without the address: it may be signed.
    pub(super) async fn send(&self, request: http::Request<Bytes>, limit: Duration) -> Result<http::Response<Bytes>, String> {
        let client = if request.uri().host().is_some_and(is_near) { &self.near } else { &self.outside };
        let mut request = reqwest::Request::try_from(request).map_err(|error| causes(&error.without_url()))?;
        *request.timeout_mut() = Some(limit);
        let said = |error: reqwest::Error| {
            if error.is_timeout() { format!("no answer within {} s", limit.as_secs()) } else { causes(&error.without_url()) }
        };
        let mut answer = client.execute(request).await.map_err(said)?;
        let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
        let mut response = http::Response::new(answer.bytes().await.map_err(said)?);
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        Ok(response)
    }
}

/// This machine, and addresses of its own link: there the metadata of instances and containers are.
pub(super) fn is_near(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    match address {
        Ok(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_link_local(),
        Ok(IpAddr::V6(v6)) => v6.is_loopback() || v6.is_unicast_link_local() || v6.segments()[..2] == [0xfd00, 0x0ec2],
        Err(_) => host == "localhost",
    }
}

/// The innermost cause says most: `Connection refused`.
fn causes(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let said = cause.to_string();
    let hint = if said.contains("UnknownIssuer") { " (SSL_CERT_FILE names a file of certificates to trust)" } else { "" };
    format!("{said}{hint}")
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn metadata_and_this_machine_are_never_asked_through_a_proxy() {
        for near in ["127.0.0.1", "127.0.1.3", "localhost", "[::1]", "169.254.169.254", "169.254.170.2", "[fd00:ec2::254]"] {
            assert!(is_near(near), "{near}");
        }
        for outside in ["ec2.eu-west-1.amazonaws.com", "10.0.0.1", "169.253.0.1", "[fd01::1]", "localhost.example.com"] {
            assert!(!is_near(outside), "{outside}");
        }
    }
}
