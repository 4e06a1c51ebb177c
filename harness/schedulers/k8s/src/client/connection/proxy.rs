//! Chooses the proxy for an API server, as kubectl does. Pure: the environment is a function.
//!
//! ```text
//! proxy-url of the kubeconfig's cluster                                   always
//! HTTPS_PROXY, https_proxy (HTTP_PROXY, http_proxy for http:// servers)   unless NO_PROXY, no_proxy names the server,
//!                                                                         or the server is this machine
//! ```
//! `NO_PROXY` is read as Go reads it: `*`, or names (`example.org` with what is below it, `.example.org` only what is below), addresses
//! and networks, each with a port or without.

use http::Uri;
use ipnet::IpNet;
use std::net::IpAddr;

const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// The proxy on the way to `server`; `None`: there is none.
///
/// # Errors
/// One sentence about what cannot be used.
pub(in crate::client) fn proxy(
    server: &Uri,
    proxy_url: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, String> {
    if let Some(url) = proxy_url.filter(|url| !url.is_empty()) {
        return parse("proxy-url", url).map(Some);
    }
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| Some((name, environment(name).filter(|value| !value.is_empty())?)))
    };
    let names = if server.scheme_str() == Some("http") { ["HTTP_PROXY", "http_proxy"] } else { ["HTTPS_PROXY", "https_proxy"] };
    let Some((name, url)) = first(names) else { return Ok(None) };
    let spared = first(["NO_PROXY", "no_proxy"]).map(|(_, list)| list).unwrap_or_default();
    if is_this_machine(host(server)) || is_spared(server, &spared) { Ok(None) } else { parse(name, &url).map(Some) }
}

/// Without a scheme it is an HTTP proxy. Passwords are not repeated.
fn parse(name: &str, url: &str) -> Result<Uri, String> {
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let uri: Uri = full.parse().map_err(|error| format!("invalid address in {name}: {error}"))?;
    match uri.scheme_str() {
        Some(scheme) if SCHEMES.contains(&scheme) && uri.host().is_some() => Ok(uri),
        scheme => Err(format!("{name} is an address of `{}`: use http, https or socks5", scheme.unwrap_or_default())),
    }
}

/// An IPv6 address is in brackets.
fn host(server: &Uri) -> &str {
    server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_spared(server: &Uri, list: &str) -> bool {
    let host = host(server).trim_end_matches('.').to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let mut entries = list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).filter(|entry| !entry.is_empty());
    entries.any(|entry| entry == "*" || names(&entry, &host, port))
}

/// Whether one entry of `NO_PROXY` means a host.
fn names(entry: &str, host: &str, port: u16) -> bool {
    if let (Ok(address), Some((network, bits))) = (host.parse::<IpAddr>(), entry.split_once('/')) {
        // As Go reads it: `/024` is a length, `192.0.2.002` is not an address.
        let network = network.parse().ok().zip(bits.parse().ok()).and_then(|(network, bits)| IpNet::new(network, bits).ok());
        return network.is_some_and(|network| network.contains(&address));
    }
    let (name, wanted) = name_and_port(entry);
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if let (Ok(named), Ok(address)) = (name.parse::<IpAddr>(), host.parse::<IpAddr>()) {
        return named == address;
    }
    match name.strip_prefix("*.").or_else(|| name.strip_prefix('.')) {
        Some(domain) => host.strip_suffix(domain).is_some_and(|below| below.ends_with('.')),
        None => host == name || host.strip_suffix(name).is_some_and(|below| below.ends_with('.')),
    }
}

/// `example.org:8443`, `[::1]:8443`, `::1`
fn name_and_port(entry: &str) -> (&str, Option<u16>) {
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse().ok()),
        _ => (entry, None),
    };
    (name.trim_start_matches('[').trim_end_matches(']'), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Server, proxy-url, environment, the proxy.
    type Row = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)], Option<&'static str>);

    #[test]
    fn a_proxy_is_found_as_kubectl_finds_it() {
        let rows: [Row; 15] = [
            ("https://k.example.org:6443", None, &[], None),
            ("https://k.example.org", None, &[("HTTPS_PROXY", "http://p:3128")], Some("http://p:3128/")),
            ("https://k.example.org", None, &[("https_proxy", "p:3128")], Some("http://p:3128/")),
            ("https://k.example.org", None, &[("https_proxy", "http://low"), ("HTTPS_PROXY", "http://up")], Some("http://up/")),
            ("https://k.example.org", None, &[("HTTPS_PROXY", ""), ("https_proxy", "http://low")], Some("http://low/")),
            ("https://k.example.org", None, &[("HTTP_PROXY", "http://p")], None),
            ("http://k.example.org", None, &[("http_proxy", "http://p")], Some("http://p/")),
            ("https://k.example.org", Some("socks5://s:1080"), &[("HTTPS_PROXY", "http://p")], Some("socks5://s:1080/")),
            ("https://k.example.org", Some(""), &[("HTTPS_PROXY", "http://p")], Some("http://p/")),
            ("https://k.example.org", None, &[("HTTPS_PROXY", "http://p"), ("NO_PROXY", "example.org")], None),
            ("https://k.example.org", None, &[("HTTPS_PROXY", "http://p"), ("no_proxy", ".example.org")], None),
            ("https://k.example.org", Some("https://p"), &[("NO_PROXY", "*")], Some("https://p/")),
            ("https://127.0.0.1:6443", None, &[("HTTPS_PROXY", "http://p")], None),
            ("https://[::1]:6443", None, &[("HTTPS_PROXY", "http://p")], None),
            ("https://127.0.0.1:6443", Some("http://p"), &[], Some("http://p/")),
        ];
        for (server, proxy_url, environment, expected) in rows {
            let of = |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            let found = proxy(&server.parse().unwrap(), proxy_url, of).unwrap().map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{server} {proxy_url:?} {environment:?}");
        }
    }

    #[test]
    fn a_server_is_spared_by_name_address_network_and_port() {
        let rows = [
            ("*", "https://a", true),
            ("", "https://a", false),
            ("example.org", "https://example.org", true),
            ("example.org", "https://k.Example.org", true),
            ("example.org", "https://notexample.org", false),
            (".example.org", "https://example.org", false),
            ("*.example.org", "https://k.example.org", true),
            (" a , b ", "https://b:6443", true),
            ("b:6443", "https://b:6443", true),
            ("b:6443", "https://b", false),
            ("b:443", "https://b", true),
            ("10.0.0.1", "https://10.0.0.1:6443", true),
            ("10.0.0.1", "https://10.0.0.11:6443", false),
            ("10.0.0.0/8", "https://10.200.0.1:6443", true),
            ("10.0.0.0/9", "https://10.200.0.1:6443", false),
            ("0.0.0.0/0", "https://10.200.0.1", true),
            ("fd00::/8", "https://[fd00::1]:6443", true),
            ("fd00::1", "https://[fd00::1]:6443", true),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", true),
            ("[fd00::1]:443", "https://[fd00::1]:6443", false),
            ("10.0.0.0/8", "https://k.example.org", false),
            ("192.0.2.0/024", "https://192.0.2.9", true),
            ("192.0.2.002/32", "https://192.0.2.2", false),
        ];
        for (list, server, expected) in rows {
            assert_eq!(is_spared(&server.parse().unwrap(), list), expected, "NO_PROXY={list} {server}");
        }
    }

    #[test]
    fn an_invalid_proxy_is_reported_without_its_password() {
        let refusal = |url: &str| proxy(&"https://k".parse().unwrap(), Some(url), |_| None).unwrap_err();
        insta::assert_snapshot!(refusal("ftp://user:secret@p"), @"proxy-url is an address of `ftp`: use http, https or socks5");
        assert!(!refusal("http://user:secret@p p").contains("secret"));
    }
}
