//! Finds the credentials of requests: the places where Amazon's own tools look for them, in their order.

use super::http::{Http, is_near};
use crate::cloud::CloudError;
use bytes::Bytes;
use muster_text::time::Timestamp;
use reqsign_aws_v4::{
    AssumeRoleWithWebIdentityCredentialProvider, Credential, ECSCredentialProvider, EnvCredentialProvider,
    IMDSv2CredentialProvider, ProcessCredentialProvider, ProfileCredentialProvider, SSOCredentialProvider,
};
use reqsign_core::{
    CommandExecute, CommandOutput, Context, Env, Error, FileRead, HttpSend, ProvideCredential, ProvideCredentialDyn, Result,
    SigningCredential,
};
use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use tokio::{sync::Mutex, time::timeout};

/// The longest that looking for credentials may take: a program may ask for them over the network.
const LIMIT: Duration = Duration::from_secs(30);

/// The provider whose credentials never change while this process runs.
const ENVIRONMENT: &str = "the environment";

/// How often they are looked for while those that were found are valid, and too short for somebody.
const AGAIN: Duration = Duration::from_secs(20);

/// A service that gives credentials. That of instances is one hop away: who is not on EC2 does not wait for it.
const OUTSIDE_LIMIT: Duration = Duration::from_secs(10);
const NEAR_LIMIT: Duration = Duration::from_secs(2);

type Provider = Box<dyn ProvideCredentialDyn<Credential = Credential>>;

/// The credentials of this process. They are looked for when they are needed first, and again shortly before they end.
pub(super) struct Credentials {
    context: Context,
    providers: Vec<(&'static str, Provider)>,
    found: Mutex<Found>,
    /// Amazon has taken some.
    have_worked: AtomicBool,
}

/// What was found last, and when it was looked for.
#[derive(Default)]
struct Found {
    credential: Option<Credential>,
    /// They are of the environment.
    is_final: bool,
    looked: Option<Instant>,
}

impl Credentials {
    pub(super) fn new(http: Http, environment: impl Env) -> Self {
        let environment = WithoutEmpty(environment);
        let profile = environment.var("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let context = Context::new()
            .with_file_read(Files)
            .with_http_send(Metadata(http))
            .with_command_execute(Commands)
            .with_env(environment);
        let providers: Vec<(&str, Provider)> = vec![
            (ENVIRONMENT, Box::new(Environment(EnvCredentialProvider::new()))),
            ("the profile", Box::new(ProfileCredentialProvider::new())),
            ("single sign-on", Box::new(SSOCredentialProvider::default())),
            ("credential_process", Box::new(ProcessCredentialProvider::new())),
            ("the profile, by the AWS CLI", Box::new(ByCommandLine { profile })),
            ("the token file", Box::new(AssumeRoleWithWebIdentityCredentialProvider::default())),
            ("the container", Box::new(ECSCredentialProvider::default())),
            ("the instance", Box::new(IMDSv2CredentialProvider::default())),
        ];
        Self { context, providers, found: Mutex::default(), have_worked: AtomicBool::new(false) }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) async fn get(&self) -> std::result::Result<Credential, CloudError> {
        self.lasting(Timestamp::of_seconds(0)).await.map(|(credential, _)| credential)
    }

    /// Those that last until then, if there are such now, and whether no others can come. A program that gives them may take its time,
    /// and all cases of a session ask.
    pub(super) async fn lasting(&self, until: Timestamp) -> std::result::Result<(Credential, bool), CloudError> {
        let mut found = self.found.lock().await;
        let is_young = found.looked.is_some_and(|at| at.elapsed() < AGAIN);
        let lasts = |credential: &&Credential| is_young || end(credential).is_none_or(|end| end >= until);
        if let Some(credential) = found.credential.as_ref().filter(|credential| credential.is_valid()).filter(lasts) {
            return Ok((credential.clone(), found.is_final));
        }
        let credential = timeout(LIMIT, self.look())
            .await
            .unwrap_or_else(|_| Err(format!("looking for AWS credentials took longer than {} s", LIMIT.as_secs())));
        // Who has waited for this look does not look again.
        found.looked = Some(Instant::now());
        match (credential, found.credential.take_if(|known| known.is_valid())) {
            (Ok((place, credential)), _) => {
                (found.credential, found.is_final) = (Some(credential.clone()), place == ENVIRONMENT);
                Ok((credential, found.is_final))
            }
            (Err(_), Some(credential)) => {
                found.credential = Some(credential.clone());
                Ok((credential, found.is_final))
            }
            (Err(why), None) => Err(self.none(why)),
        }
    }

    /// Amazon has taken those that were found.
    pub(super) fn work(&self) {
        self.have_worked.store(true, Ordering::Relaxed);
    }

    /// Why there are none now.
    pub(super) fn none(&self, why: String) -> CloudError {
        if self.have_worked.load(Ordering::Relaxed) { CloudError::CredentialsLost(why) } else { CloudError::NoCredentials(why) }
    }

    /// What Amazon refuses is not used again.
    pub(super) async fn forget(&self, refused: &Credential) {
        let mut found = self.found.lock().await;
        if found.credential.as_ref().is_some_and(|credential| credential.access_key_id == refused.access_key_id) {
            found.credential = None;
        }
    }

    /// As if they had been looked for long ago.
    #[cfg(test)]
    pub(super) fn forget_the_time(&mut self) {
        self.found.get_mut().looked = None;
    }

    async fn look(&self) -> std::result::Result<(&'static str, Credential), String> {
        let mut why = Vec::new();
        for (place, provider) in &self.providers {
            match provider.provide_credential_dyn(&self.context).await {
                Ok(Some(credential)) => return Ok((place, credential)),
                Ok(None) => {}
                Err(error) if is_absent(&error) => {}
                Err(error) => why.push(format!("{place}: {error}")),
            }
        }
        let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
        Err(format!("no AWS credentials found in the environment, the profile or the instance role{why}"))
    }
}

/// Providers of profiles fail where there is no file, no profile, or nothing of theirs in it; that of the instance where there is none.
fn is_absent(error: &Error) -> bool {
    let text = error.to_string();
    ["not found in", "failed to read config file", "connect to IMDS", "home directory"].iter().any(|part| text.contains(part))
}

/// When they end.
pub(super) fn end(credential: &Credential) -> Option<Timestamp> {
    credential.expires_in.map(|end| Timestamp::of_seconds(end.as_second()))
}

/// Variables, of which an empty one is not there: a secret that a CI does not have is one.
#[derive(Debug)]
struct WithoutEmpty<E>(E);

impl<E: Env> Env for WithoutEmpty<E> {
    fn var(&self, key: &str) -> Option<String> {
        self.0.var(key).filter(|value| !value.is_empty())
    }

    fn vars(&self) -> HashMap<String, String> {
        self.0.vars().into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        self.0.home_dir()
    }
}

/// The variables, with the one that `aws configure export-credentials` writes, too: when they end.
#[derive(Debug)]
struct Environment(EnvCredentialProvider);

impl ProvideCredential for Environment {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let found = self.0.provide_credential(context).await?;
        let end = context.env_var("AWS_CREDENTIAL_EXPIRATION").and_then(|end| end.parse().ok());
        Ok(found.map(|credential| Credential { expires_in: end, ..credential }))
    }
}

/// A profile with a role or a login, which may need another profile, a second factor, or a token that is renewed: Amazon's command line
/// knows how.
#[derive(Debug)]
struct ByCommandLine {
    profile: String,
}

impl ProvideCredential for ByCommandLine {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let file = context.env_var("AWS_CONFIG_FILE").unwrap_or_else(|| "~/.aws/config".to_owned());
        let Some(file) = context.expand_home_dir(&file) else { return Ok(None) };
        let text = context.file_read_as_string(&file).await.unwrap_or_default();
        if !needs_command_line(&text, &self.profile) {
            return Ok(None);
        }
        let command = format!("aws configure export-credentials --format process --profile {}", self.profile);
        ProcessCredentialProvider::new().with_command(command).provide_credential(context).await
    }
}

fn needs_command_line(config: &str, profile: &str) -> bool {
    const KEYS: &[&str] = &["role_arn", "sso_session", "sso_start_url", "login_session"];
    let mut is_here = false;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_here = section.trim().strip_prefix("profile").map_or(section.trim(), str::trim) == profile;
        } else if is_here && line.split_once('=').is_some_and(|(key, _)| KEYS.contains(&key.trim())) {
            return true;
        }
    }
    false
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        tokio::fs::read(path).await.map_err(|error| Error::config_invalid(format!("{path} cannot be read")).with_source(error))
    }
}

#[derive(Debug)]
struct Commands;

impl CommandExecute for Commands {
    async fn command_execute<'a>(&'a self, program: &'a str, args: &'a [&'a str]) -> Result<CommandOutput> {
        let output = tokio::process::Command::new(program).args(args).kill_on_drop(true).output().await;
        let output = output.map_err(|error| Error::config_invalid(format!("{program}: {error}")))?;
        Ok(CommandOutput { status: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr: output.stderr })
    }
}

/// For the services that give credentials.
struct Metadata(Http);

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metadata")
    }
}

impl HttpSend for Metadata {
    async fn http_send(&self, request: ::http::Request<Bytes>) -> Result<::http::Response<Bytes>> {
        let limit = if request.uri().host().is_some_and(is_near) { NEAR_LIMIT } else { OUTSIDE_LIMIT };
        self.0.send(request, limit).await.map_err(|why| Error::unexpected(why).set_retryable(true))
    }
}

/// An environment of tests.
#[cfg(test)]
pub(super) fn environment(variables: &[(&str, &str)]) -> reqsign_core::StaticEnv {
    let envs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let home_dir = variables.iter().find(|(name, _)| *name == "HOME").map(|(_, home)| home.into());
    reqsign_core::StaticEnv { home_dir, envs }
}

#[cfg(test)]
mod tests {
    use super::needs_command_line;

    #[test]
    fn profiles_with_a_role_or_a_login_are_left_to_the_command_line() {
        let config = "[default]\nregion = eu-west-1\n[profile bench]\nrole_arn = arn:aws:iam::1:role/b\nsource_profile = default\n\
                      [profile sso]\nsso_session=corp\n[sso-session corp]\nsso_start_url = https://corp\n";
        let rows = [("default", false), ("bench", true), ("sso", true), ("none", false)];
        for (profile, expected) in rows {
            assert_eq!(needs_command_line(config, profile), expected, "{profile}");
        }
    }
}
