//! Connects to a place: by kubeconfig or ServiceAccount. kube handles tokens and their rotation.

pub(crate) mod contexts;
mod files;
pub(super) mod login;
mod plugin;
mod proxy;
mod transport;

use super::error::{ConnectError, root_cause};
use crate::api::ClusterPlace;
use contexts::Contexts;
use kube::{
    Client, Config,
    client::AuthError,
    config::{KubeConfigOptions, Kubeconfig},
};
use muster_text::time::Timestamp;
use proxy::proxy;
use std::env;
use tokio::task::spawn_blocking;

const IN_CLUSTER: &str = "in-cluster";

/// The context, or `in-cluster`.
pub(in crate::client) fn name(place: &ClusterPlace) -> &str {
    place.context.as_deref().unwrap_or(IN_CLUSTER)
}

/// A new connection: the kubeconfig is read again, a credential plugin is run again. `Some`: its credentials end then.
pub(in crate::client) async fn client(place: &ClusterPlace) -> Result<(Client, Option<Timestamp>), ConnectError> {
    let mut config = config(place).await?;
    let expires = plugin::log_in(name(place), &mut config.auth_info).await?;
    // An old kind of provider (`auth-provider`) runs a program within this call.
    let connected =
        spawn_blocking(move || transport::client(&config).map_err(|error| (error_passes(&error), root_cause(&error)))).await;
    let context = name(place).to_owned();
    match connected.map_err(|lost| (true, lost.to_string())).flatten() {
        Ok(client) => Ok((client, expires)),
        Err((true, why)) => Err(ConnectError::Credentials { context, why }),
        Err((false, why)) => Err(ConnectError::Unusable { context, why }),
    }
}

/// What the kubeconfig, or the pod that Muster runs in, says of the place.
pub(in crate::client) async fn config(place: &ClusterPlace) -> Result<Config, ConnectError> {
    let (mut config, proxy_url) = match &place.context {
        Some(context) => from_kubeconfig(context).await?,
        None => (Config::incluster().map_err(|error| ConnectError::NotInCluster(error.to_string()))?, None),
    };
    let unusable = |why| ConnectError::Unusable { context: name(place).to_owned(), why };
    // The client panics at it.
    if config.cluster_url.scheme().is_none() {
        let why =
            format!("the address of its server, `{}`, has no scheme: write https://.. in the kubeconfig", config.cluster_url);
        return Err(unusable(why));
    }
    config.proxy_url = proxy(&config.cluster_url, proxy_url.as_deref(), |name| env::var(name).ok()).map_err(unusable)?;
    Ok(config)
}

/// How a place is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// `https://k.example.org:6443`
    pub(crate) server: String,
    /// The proxy on the way, without its password.
    pub(crate) proxy: Option<String>,
    /// The program that gives the credentials.
    pub(crate) plugin: Option<String>,
}

/// How a place is reached, as the kubeconfig and the environment say.
pub(crate) async fn route(place: &ClusterPlace) -> Result<Route, ConnectError> {
    let config = config(place).await?;
    let shown = |uri: &http::Uri| {
        let port = uri.port_u16().map_or_else(String::new, |port| format!(":{port}"));
        format!("{}://{}{port}", uri.scheme_str().unwrap_or("https"), uri.host().unwrap_or_default())
    };
    let plugin = config.auth_info.exec.and_then(|exec| exec.command);
    Ok(Route { server: shown(&config.cluster_url), proxy: config.proxy_url.as_ref().map(shown), plugin })
}

/// A program that failed may succeed the next time.
fn error_passes(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Auth(AuthError::AuthExecRun { .. } | AuthError::AuthExec(_)))
}

/// The connection of a context, and the `proxy-url` of its cluster.
async fn from_kubeconfig(context: &str) -> Result<(Config, Option<String>), ConnectError> {
    let mut kubeconfig = contexts::kubeconfig()?.unwrap_or_default();
    Contexts::of(kubeconfig.clone(), None).known_context(context)?;
    let proxy_url = take_proxy_url(&mut kubeconfig, context);
    files::answer(context, files::named(&kubeconfig, context)).await?;
    let options = KubeConfigOptions { context: Some(context.to_owned()), cluster: None, user: None };
    let unusable =
        |error: kube::config::KubeconfigError| ConnectError::Unusable { context: context.to_owned(), why: error.to_string() };
    Ok((Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(unusable)?, proxy_url))
}

/// Taken, for kube would compare `NO_PROXY` with the proxy instead of the server.
fn take_proxy_url(kubeconfig: &mut Kubeconfig, context: &str) -> Option<String> {
    let of_context = kubeconfig.contexts.iter().find(|named| named.name == context)?;
    let cluster = of_context.context.as_ref()?.cluster.clone();
    let named = kubeconfig.clusters.iter_mut().find(|named| named.name == cluster)?;
    named.cluster.as_mut()?.proxy_url.take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::process::ExitStatusExt, process::Output};

    #[test]
    fn what_a_credential_plugin_printed_is_not_repeated() {
        let out =
            Output { status: ExitStatusExt::from_raw(256), stdout: b"token: secret".to_vec(), stderr: b"also secret".to_vec() };
        let error = AuthError::AuthExecRun { cmd: "\"aws\" \"--token\" \"secret\"".into(), out: Box::new(out) };
        insta::assert_snapshot!(root_cause(&error), @"the credential plugin `aws` failed: exit status: 1");
    }
}
