//! The transport to an API server: TCP that notices a lost peer, a proxy if there is one, TLS, credentials.
//!
//! ```text
//! TCP (no acknowledgement for a minute: broken) -[CONNECT | SOCKS5]-> TLS -> credentials -> requests
//! ```
//! kube's own connections have no socket options. A proxy acknowledges data for a silent server: requests without an
//! answer and watches without events have time limits of their own, in `send` and `watch`.

use crate::client::error::root_cause;
use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::{
    client::{
        legacy::{
            self, Client,
            connect::{
                Connection, HttpConnector,
                proxy::{SocksV5, Tunnel},
            },
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt},
};
use std::{error::Error, io, time::Duration};
use tower::{BoxError, Service, ServiceBuilder};

/// Nothing that was sent, a probe included, was acknowledged for so long: the connection is broken.
const UNACKNOWLEDGED: Duration = Duration::from_mins(1);
/// What has been idle for so long is probed, and then in these intervals.
const PROBE: Duration = Duration::from_secs(15);

/// A client over connections of its own.
pub(in crate::client) fn client(config: &Config) -> kube::Result<kube::Client> {
    // The matcher takes user and password out of the address.
    let on_the_way = config
        .proxy_url
        .as_ref()
        .and_then(|proxy| Matcher::builder().all(proxy.to_string()).build().intercept(&config.cluster_url));
    let Some(proxy) = on_the_way else { return over(config, tcp(), None) };
    let named = Some(proxy.uri().to_string());
    match proxy.uri().scheme_str() {
        Some("https") => over(config, tunnel(&proxy, config.rustls_https_connector_with_connector(tcp())?), named),
        // Either way the proxy looks the name up.
        Some("socks5" | "socks5h") => over(config, socks(&proxy), named),
        _ => over(config, tunnel(&proxy, tcp()), named),
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_keepalive(Some(PROBE));
    tcp.set_keepalive_interval(Some(PROBE));
    tcp.set_keepalive_retries(Some(3));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

fn socks(proxy: &Intercept) -> SocksV5<HttpConnector> {
    let socks = SocksV5::new(proxy.uri().clone(), tcp());
    match proxy.raw_auth() {
        Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
        None => socks,
    }
}

/// The same stack as kube's, but for its retries and its traces.
fn over<C>(config: &Config, connector: C, proxy: Option<String>) -> kube::Result<kube::Client>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Error + Send + Sync + 'static,
{
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let http: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(move |error| named(error, proxy.as_deref()))
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

/// Names the proxy in the error of a failed connection.
fn named(error: legacy::Error, proxy: Option<&str>) -> BoxError {
    match proxy.filter(|_| error.is_connect()) {
        Some(proxy) => io::Error::other(format!("through the proxy {proxy}: {}", root_cause(&error))).into(),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_connection_is_given_up_after_a_minute_without_an_acknowledgement() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let connection = tcp().call(address.parse().unwrap()).await.unwrap();
        let socket = socket2::SockRef::from(connection.inner());
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED));
        assert!(socket.keepalive().unwrap());
        // The probe that is not acknowledged comes early enough to be seen within that minute.
        let first = socket.tcp_keepalive_time().unwrap() + socket.tcp_keepalive_interval().unwrap();
        assert!(first < UNACKNOWLEDGED, "{first:?}");
    }
}
