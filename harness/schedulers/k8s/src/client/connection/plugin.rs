//! Runs the credential plugin of a kubeconfig (`users[].user.exec`) once and reads its answer.
//!
//! kube would run it twice for each connection, and on a thread of the runtime.

use crate::api::clock;
use crate::client::ConnectError;
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use muster_host::file_limit;
use muster_text::{
    Value,
    time::{Timestamp, format_duration},
};
use serde::Deserialize;
use serde_json::json;
use std::{
    io::ErrorKind,
    process::{Output, Stdio},
    time::Duration,
};
use tokio::{process::Command, time::timeout};

/// The plugin may wait for a login in a browser.
const LIMIT: Duration = Duration::from_mins(3);

/// An `ExecCredential`, as far as it is read.
#[derive(Deserialize)]
struct Answer {
    status: Option<Credentials>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Credentials {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

/// Runs the plugin and puts its answer in its place; `Some`: it is good until then.
///
/// # Errors
/// Why there are no credentials, with the program's name. What it has printed may be secret and is left out.
pub(in crate::client) async fn log_in(context: &str, user: &mut AuthInfo) -> Result<Option<Timestamp>, ConnectError> {
    // Other credentials come first, as they do in kube.
    let has_password = user.username.is_some() && user.password.is_some();
    let is_used = !(has_password || user.token.is_some() || user.token_file.is_some() || user.auth_provider.is_some());
    let Some(exec) = user.exec.take_if(|_| is_used) else { return Ok(None) };
    let program = exec.command.clone().unwrap_or_default();
    let failed = |why: String| ConnectError::Credentials {
        context: context.to_owned(),
        why: format!("the credential plugin `{program}` {why}"),
    };
    let output = match run(&exec) {
        Ok(running) => {
            timeout(LIMIT, running).await.map_err(|_| failed(format!("has no answer after {}", format_duration(LIMIT))))?
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            let hint = exec.install_hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let why = format!("the credential plugin `{program}` cannot be started: {error}{hint}");
            return Err(ConnectError::Unusable { context: context.to_owned(), why });
        }
        Err(error) => return Err(failed(format!("cannot be started: {error}"))),
    };
    let output = output.map_err(|error| failed(format!("was lost: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("failed: {}", output.status)));
    }
    let answer: Option<Answer> = serde_yaml::from_slice(&output.stdout).ok();
    let credentials = answer.ok_or_else(|| failed("printed no ExecCredential".into()))?.status.unwrap_or_default();
    let expires = credentials.expiration_timestamp.as_deref().and_then(clock::parse);
    match (credentials.client_certificate_data, credentials.client_key_data) {
        (Some(certificate), Some(key)) => {
            user.client_certificate_data = Some(base64(certificate));
            user.client_key_data = Some(base64(key).into());
        }
        _ if credentials.token.is_none() => return Err(failed("gave neither a token nor a certificate".into())),
        _ => {}
    }
    user.token = credentials.token.map(Into::into);
    Ok(expires)
}

fn run(exec: &ExecConfig) -> std::io::Result<impl Future<Output = std::io::Result<Output>> + use<>> {
    let mut command = Command::new(exec.command.as_deref().unwrap_or_default());
    command.args(exec.args.iter().flatten()).env("KUBERNETES_EXEC_INFO", info(exec).to_string());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let (input, errors) =
        if is_interactive(exec) { (Stdio::inherit(), Stdio::inherit()) } else { (Stdio::null(), Stdio::null()) };
    command.stdin(input).stderr(errors).stdout(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn()?;
    file_limit::give_back(child.id());
    Ok(child.wait_with_output())
}

fn info(exec: &ExecConfig) -> Value {
    let mut spec = json!({ "interactive": is_interactive(exec) });
    if exec.provide_cluster_info {
        spec["cluster"] = json!(exec.cluster);
    }
    json!({ "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec })
}

fn is_interactive(exec: &ExecConfig) -> bool {
    exec.interactive_mode != Some(ExecInteractiveMode::Never)
}

/// As a kubeconfig holds what kube reads.
fn base64(text: String) -> String {
    json!(ByteString(text.into_bytes())).as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ApiError, Why};

    fn user(line: &str) -> AuthInfo {
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", line, "secret"],
            "env": [{"name": "ANSWER", "value": "t"}], "interactiveMode": "Never", "installHint": "install it"});
        serde_json::from_value(json!({ "exec": exec })).unwrap()
    }

    #[tokio::test]
    async fn a_plugin_that_fails_is_named_and_nothing_that_it_printed() {
        let mut said = String::new();
        for line in ["echo secret; echo secret >&2; exit 7", "kill -9 $$", "echo '['", "echo '{status: {}}'", "echo '{}'"] {
            let error = log_in("eidf", &mut user(line)).await.unwrap_err();
            said.extend([&error.to_string(), "\n"]);
            assert_eq!(ApiError::from(error).why(), Why::Transient, "{line}");
        }
        let mut missing = user("");
        missing.exec.as_mut().unwrap().command = Some("no-such-program".into());
        let error = log_in("eidf", &mut missing).await.unwrap_err();
        said += &error.to_string();
        assert_eq!(ApiError::from(error).why(), Why::Other);
        insta::assert_snapshot!(said, @r"
        context eidf: the credential plugin `sh` failed: exit status: 7
        context eidf: the credential plugin `sh` failed: signal: 9 (SIGKILL)
        context eidf: the credential plugin `sh` printed no ExecCredential
        context eidf: the credential plugin `sh` gave neither a token nor a certificate
        context eidf: the credential plugin `sh` gave neither a token nor a certificate
        context eidf cannot be used: the credential plugin `no-such-program` cannot be started: No such file or directory (os error 2); install it
        ");
    }

    #[tokio::test]
    async fn what_a_plugin_gives_takes_its_place() {
        let line = r#"printf '{"status": {"token": "%s", "expirationTimestamp": "2026-01-01T00:00:00Z"}}' "$ANSWER""#;
        let mut by_token = user(line);
        let expires = log_in("c", &mut by_token).await.unwrap();
        assert_eq!(expires, clock::parse("2026-01-01T00:00:00Z"));
        assert!(by_token.exec.is_none() && by_token.token.is_some());
        let mut by_certificate = user("echo '{status: {clientCertificateData: cert, clientKeyData: key}}'");
        assert_eq!(log_in("c", &mut by_certificate).await.unwrap(), None);
        assert_eq!(by_certificate.client_certificate_data.as_deref(), Some("Y2VydA=="));
        let mut other = user("exit 1");
        other.token_file = Some("token".into());
        assert_eq!(log_in("c", &mut other).await.unwrap(), None);
        assert!(other.exec.is_some(), "another credential comes first");
    }
}
