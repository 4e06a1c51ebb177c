//! The facts about clusters that a plan needs: the contexts of the kubeconfig, and whether Muster runs in a pod.
//!
//! Only [`Contexts::load`] and [`kubeconfig`] read files. Nothing secret is kept.

use super::files;
use crate::{api::ClusterPlace, client::ContextError};
use kube::config::{Kubeconfig, KubeconfigError};
use muster_text::diagnostic::nearest;
use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

/// Where a pod finds the namespace it runs in.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const DEFAULT_NAMESPACE: &str = "default";

/// The contexts that there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contexts {
    /// The kubeconfig's contexts, each with its namespace.
    pub named: BTreeMap<String, Option<String>>,
    /// The kubeconfig's current one.
    pub current: Option<String>,
    /// The namespace of the pod that we run in.
    pub in_cluster: Option<String>,
    /// Nothing is known, and everything goes: for looking at a plan without any cluster.
    pub unknown: bool,
}

impl Contexts {
    /// The contexts to plan with. Without any cluster every context is accepted: nothing is launched.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn to_plan_with() -> Result<Self, ContextError> {
        let contexts = Self::load()?;
        Ok(if contexts.is_empty() { Self::unknown() } else { contexts })
    }

    /// Reads the kubeconfig's files and the pod's ServiceAccount.
    ///
    /// # Errors
    /// A kubeconfig that cannot be read. A missing one is an error only when something has to run.
    pub fn load() -> Result<Self, ContextError> {
        let is_pod = env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        Ok(Self::of(kubeconfig()?.unwrap_or_default(), in_cluster(Path::new(SERVICE_ACCOUNT)).filter(|_| is_pod)))
    }

    /// From a kubeconfig, and the namespace of the pod that we run in.
    pub(in crate::client) fn of(config: Kubeconfig, in_cluster: Option<String>) -> Self {
        let context = |named: kube::config::NamedContext| (named.name, named.context.and_then(|context| context.namespace));
        Self {
            named: config.contexts.into_iter().map(context).collect(),
            current: config.current_context.filter(|current| !current.is_empty()),
            in_cluster,
            unknown: false,
        }
    }

    /// Contexts that allow any plan, for looking at plans without any cluster.
    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// Returns whether there is no cluster to talk to.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.in_cluster.is_none()
    }

    /// Returns the place of a job that asks for this context and this namespace, or leaves one or both open.
    ///
    /// The namespace is the one asked for, else the context's, else the pod's own, else `default`.
    ///
    /// # Errors
    /// When there is no such place.
    pub fn place(&self, context: Option<&str>, namespace: Option<&str>) -> Result<ClusterPlace, ContextError> {
        let context = context.map(str::to_owned);
        let context = if self.unknown { context } else { self.context(context)? };
        let of_context = context.as_ref().and_then(|context| self.named.get(context)?.as_deref());
        let of_pod = self.in_cluster.as_deref().filter(|_| context.is_none());
        let namespace = namespace.or(of_context.filter(|name| !name.is_empty())).or(of_pod).unwrap_or(DEFAULT_NAMESPACE);
        Ok(ClusterPlace { context, namespace: namespace.to_owned() })
    }

    fn context(&self, asked: Option<String>) -> Result<Option<String>, ContextError> {
        match asked.or_else(|| self.current.clone()) {
            Some(_) if self.is_empty() => Err(self.no_context()),
            Some(name) => self.known_context(&name).map(|()| Some(name)),
            None if self.in_cluster.is_some() => Ok(None),
            None => Err(self.no_context()),
        }
    }

    /// An error unless there is a context of this name.
    pub(in crate::client) fn known_context(&self, name: &str) -> Result<(), ContextError> {
        let unknown = || ContextError::Unknown { known: self.known(name), name: name.to_owned() };
        if self.named.contains_key(name) { Ok(()) } else { Err(unknown()) }
    }

    fn no_context(&self) -> ContextError {
        if self.named.is_empty() { ContextError::NoCluster(looked_at()) } else { ContextError::NoCurrent(self.known("")) }
    }

    /// Returns whether there is a context of this name, as far as is known.
    pub fn has(&self, name: &str) -> bool {
        self.unknown || self.named.contains_key(name)
    }

    /// All contexts, the one that was probably meant first.
    fn known(&self, name: &str) -> String {
        let near = nearest(name, self.named.keys().map(String::as_str));
        let others = self.named.keys().map(String::as_str).filter(|known| Some(*known) != near);
        let all: Vec<&str> = near.into_iter().chain(others).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }
}

/// The merged kubeconfig, by kubectl's rules: the files of `KUBECONFIG`, those that are missing left out, else
/// `~/.kube/config`. `None` if there is no such file.
///
/// # Errors
/// A file that is not a kubeconfig.
pub(crate) fn kubeconfig() -> Result<Option<Kubeconfig>, ContextError> {
    merged(&paths())
}

fn merged(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, ContextError> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        let failed = |error: KubeconfigError| ContextError::Kubeconfig { path: path.clone(), why: why(&error) };
        let own = path.clone();
        let read = files::within(move || Kubeconfig::read_from(own));
        let read = read.unwrap_or_else(|error| Err(KubeconfigError::ReadConfig(error, path.clone())));
        let config = match read {
            Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == io::ErrorKind::NotFound => continue,
            config => config.map_err(failed)?,
        };
        merged = Some(merged.unwrap_or_default().merge(config).map_err(failed)?);
    }
    Ok(merged)
}

/// Why a kubeconfig cannot be read, without anything of its content.
fn why(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::Parse(error) => {
            let text = error.to_string();
            let mut words = text.split_whitespace().skip_while(|word| *word != "line").skip(1);
            let line = words.next().and_then(|word| word.parse::<usize>().ok());
            line.map_or_else(|| "it is not a kubeconfig".to_owned(), |line| format!("line {line} is not valid in a kubeconfig"))
        }
        _ => "its files contradict each other, or it is not a kubeconfig".to_owned(),
    }
}

fn paths() -> Vec<PathBuf> {
    let asked = env::var_os("KUBECONFIG").unwrap_or_default();
    let asked: Vec<PathBuf> = env::split_paths(&asked).filter(|path| !path.as_os_str().is_empty()).collect();
    if asked.is_empty() { env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect() } else { asked }
}

fn looked_at() -> String {
    let paths: Vec<String> = paths().iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() { "~/.kube/config".to_owned() } else { paths.join(", ") }
}

/// The namespace of the pod whose ServiceAccount is in `folder`.
fn in_cluster(folder: &Path) -> Option<String> {
    folder.join("token").exists().then_some(())?;
    let namespace = fs::read_to_string(folder.join("namespace")).unwrap_or_default();
    let namespace = namespace.trim();
    Some(if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts() -> Contexts {
        let named = [("eidf-general", Some("eidf095ns")), ("eidf-graphcore", None), ("laptop", Some(""))];
        Contexts {
            named: named.map(|(name, namespace)| (name.to_owned(), namespace.map(str::to_owned))).into(),
            current: Some("eidf-general".to_owned()),
            ..Contexts::default()
        }
    }

    #[test]
    fn context_and_namespace_are_the_ones_asked_for_else_the_kubeconfigs() {
        let pod = Contexts { in_cluster: Some("bench".to_owned()), ..Contexts::default() };
        let both = Contexts { in_cluster: Some("bench".to_owned()), ..contexts() };
        let rows = [
            (contexts(), None, None, Some("eidf-general"), "eidf095ns"),
            (contexts(), None, Some("mine"), Some("eidf-general"), "mine"),
            (contexts(), Some("eidf-graphcore"), None, Some("eidf-graphcore"), "default"),
            (contexts(), Some("laptop"), None, Some("laptop"), "default"),
            (pod.clone(), None, None, None, "bench"),
            (pod, None, Some("mine"), None, "mine"),
            (both, Some("laptop"), None, Some("laptop"), "default"),
            (Contexts::unknown(), None, None, None, "default"),
            (Contexts::unknown(), Some("x"), Some("mine"), Some("x"), "mine"),
        ];
        for (contexts, context, namespace, expected, in_namespace) in rows {
            let place = contexts.place(context, namespace).expect("a place");
            assert_eq!(
                (place.context.as_deref(), place.namespace.as_str()),
                (expected, in_namespace),
                "{context:?} {namespace:?}"
            );
        }
    }

    #[test]
    fn a_place_that_is_not_there_is_reported_in_one_sentence() {
        let no_current = Contexts { current: None, ..contexts() };
        let pod = Contexts { in_cluster: Some("bench".to_owned()), ..Contexts::default() };
        let errors = [
            contexts().place(Some("eidf-graphcor"), None).map(|_| ()),
            contexts().place(Some("nowhere"), None).map(|_| ()),
            no_current.place(None, None).map(|_| ()),
            pod.place(Some("laptop"), None).map(|_| ()),
        ];
        let errors: Vec<String> = errors.into_iter().map(|errors| errors.expect_err("no place").to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"));
        let error = Contexts::default().place(None, None).expect_err("no cluster");
        assert!(matches!(error, ContextError::NoCluster { .. }), "{error}");
    }

    #[test]
    fn section_0_row_11_several_kubeconfigs_are_merged_and_a_context_may_have_no_namespace() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("a file");
            path
        };
        let one = write("one", "contexts: [{ name: a, context: { cluster: c, user: u, namespace: first } }]");
        let two = write(
            "two",
            "current-context: b\ncontexts: [{ name: a, context: { cluster: c, namespace: second } }, { name: b, context: { cluster: c } }]",
        );
        let missing = folder.path().join("missing");
        let config = merged(&[one, missing.clone(), two]).expect("kubeconfigs").expect("two files");
        let contexts = Contexts::of(config, None);
        let place = |context| contexts.place(context, None).expect("a place").namespace;
        assert_eq!((place(Some("a")), place(None)), ("first".to_owned(), "default".to_owned()));
        assert_eq!(contexts.current.as_deref(), Some("b"));
        assert!(merged(&[missing]).expect("no error").is_none());
        let broken = merged(&[write("broken", "contexts: 3")]).expect_err("no kubeconfig");
        let expected = "/broken cannot be read: line 1 is not valid in a kubeconfig";
        assert!(broken.to_string().ends_with(expected), "{broken}");
    }

    #[test]
    fn a_pods_own_namespace_is_in_its_service_account() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(in_cluster(folder.path()), None, "no token");
        fs::write(folder.path().join("token"), "t").expect("a file");
        assert_eq!(in_cluster(folder.path()).as_deref(), Some("default"));
        fs::write(folder.path().join("namespace"), "bench\n").expect("a file");
        assert_eq!(in_cluster(folder.path()).as_deref(), Some("bench"));
    }
}
