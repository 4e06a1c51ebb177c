//! A scripted Kubernetes API server, for what a real one cannot be made to show on demand.
//!
//! ```text
//! test -script, fault, deny, down, cut, compact--> World <-verbs- serve <-HTTP on loopback- the client under test
//!                                                    |  store   all objects and their history
//!                                                    |  pods    scheduler and kubelet, by script       jobs  the Job controller
//!                                                    '- quota   the server's arithmetic and words      logs  what containers wrote
//! ```
//! It keeps what it is given and knows the kinds of `kinds`; it validates almost nothing, knows no Table, no apply patch, no
//! admission but quotas, and forgets everything when it is dropped. What it does say, it says in the real server's words.

mod fault;
mod proxy;
mod request;
mod server;
mod world;

pub use fault::Fault;
pub use proxy::Proxy;

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};
use world::{Deletion, World, jobs, kinds::Kind, logs, script, store::Key};

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct FakeApi {
    world: Arc<World>,
    port: u16,
    folder: TempDir,
    context: String,
    server: Mutex<Option<JoinHandle<()>>>,
    jobs: JoinHandle<()>,
}

/// A request that the server has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query as it was sent.
    pub query: String,
    /// The name of the program that asked.
    pub agent: String,
}

impl Request {
    /// Does the request contain this, in path or query?
    pub fn has(&self, part: &str) -> bool {
        self.path.contains(part) || self.query.contains(part)
    }
}

impl FakeApi {
    /// Starts a server on a port of its own, with the namespace `default` and a kubeconfig whose context is `fake`.
    ///
    /// # Errors
    /// The machine has no port or no space for a file.
    pub async fn start() -> io::Result<Self> {
        Self::named("fake").await
    }

    /// Starts a server whose context has this name.
    ///
    /// # Errors
    /// As `start`.
    pub async fn named(context: &str) -> io::Result<Self> {
        let (sender, named) = mpsc::unbounded_channel();
        let world = World::new(sender);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let api = Self {
            port: listener.local_addr()?.port(),
            folder: tempfile::tempdir()?,
            context: context.to_owned(),
            server: Mutex::new(Some(tokio::spawn(listen(Arc::clone(&world), listener)))),
            jobs: tokio::spawn(jobs::control(Arc::downgrade(&world), named)),
            world,
        };
        api.namespace("default");
        api.write_kubeconfig("first")?;
        Ok(api)
    }

    /// Returns the address at which it answers.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The file that leads here.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The kubeconfig's parts, for a file that leads to several servers.
    pub fn kubeconfig_parts(&self, token: &str) -> Value {
        let (context, user) = (&self.context, json!({"token": token}));
        json!({"apiVersion": "v1", "kind": "Config", "current-context": context,
            "clusters": [{"name": context, "cluster": {"server": self.url()}}],
            "users": [{"name": context, "user": user}],
            "contexts": [{"name": context, "context": {"cluster": context, "user": context, "namespace": "default"}}]})
    }

    fn write_kubeconfig(&self, token: &str) -> io::Result<()> {
        fs::write(self.kubeconfig(), self.kubeconfig_parts(token).to_string())
    }

    /// Makes this the only valid token from now on. The kubeconfig has it.
    ///
    /// # Errors
    /// The kubeconfig cannot be written.
    pub fn rotate_token(&self, token: &str) -> io::Result<()> {
        self.write_kubeconfig(token)?;
        self.world.state().token = Some(token.to_owned());
        Ok(())
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.world.state().requests.clone()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.world.state().requests.clear();
    }

    /// Scripts the pods whose name contains `part`, unless their annotation `fake-api/script` has a script: see `script`.
    ///
    /// # Errors
    /// The step that makes no sense.
    pub fn script(&self, part: &str, script: &str) -> Result<(), String> {
        let steps = script::parse(script)?;
        self.world.state().scripts.push((part.to_owned(), steps));
        Ok(())
    }

    /// Something goes wrong from now on.
    pub fn fault(&self, fault: Fault) {
        self.world.state().faults.push(fault);
    }

    /// The right to do this (`create`, `pods/log`) is missing.
    pub fn deny(&self, verb: &str, resource: &str) {
        self.world.state().denied.insert((verb.to_owned(), resource.to_owned()));
    }

    /// All rights are there again.
    pub fn allow_all(&self) {
        self.world.state().denied.clear();
    }

    /// Breaks every open stream whose path and query contain this.
    pub fn cut(&self, part: &str) {
        // Nobody listens: nothing is open.
        let _ = self.world.cuts.send(part.to_owned());
    }

    /// Forgets what happened: a watch from an older version gets 410.
    pub fn compact(&self) {
        self.world.state().store.compact();
    }

    /// Sets its clock so many seconds ahead of the right time, from now on.
    pub fn clock_ahead(&self, seconds: i64) {
        self.world.state().clock_ahead = seconds;
    }

    /// Goes away. Every connection breaks.
    pub async fn down(&self) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(server) = server {
            server.abort();
            let _ = server.await;
        }
    }

    /// Comes back on the same port, with all it knew.
    ///
    /// # Errors
    /// Somebody else has the port.
    pub async fn up(&self) -> io::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        let server = tokio::spawn(listen(Arc::clone(&self.world), listener));
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }

    /// A namespace more.
    pub fn namespace(&self, name: &str) {
        let key = Key { group: String::new(), plural: "namespaces".into(), namespace: String::new(), name: name.to_owned() };
        self.world.insert(&key, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }

    /// A kind more, with a namespace.
    pub fn register(&self, group: &str, version: &str, kind: &str, plural: &str) {
        let own = str::to_owned;
        let kind = Kind { group: own(group), version: own(version), name: own(kind), plural: own(plural), namespaced: true };
        self.world.state().kinds.add(kind);
    }

    /// Creates an object as a client would: with admission, controllers and all.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn create(&self, namespace: &str, object: Value) -> Result<Value, String> {
        let key = self.key_of(namespace, &object)?;
        self.world.create(&key, object, false).map_err(|no| no.message)
    }

    /// Stores an object as it is: no admission, no controller, no script. Thousands of pods in no time.
    ///
    /// # Errors
    /// Its kind is not known.
    pub fn insert(&self, namespace: &str, object: Value) -> Result<(), String> {
        let key = self.key_of(namespace, &object)?;
        self.world.insert(&key, object);
        Ok(())
    }

    /// An object as it is now. `resource`: `pods`, `jobs.batch`.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.world.state().store.get(&key(resource, namespace, name)).map(|object| (**object).clone())
    }

    /// All objects of a kind.
    pub fn list(&self, resource: &str, namespace: &str) -> Vec<Value> {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let state = self.world.state();
        state.store.list(group, plural, Some(namespace)).map(|(_, object)| (**object).clone()).collect()
    }

    /// Changes an object as somebody else would; `false`: it is not there.
    pub fn update(&self, resource: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let changed = self.world.change(&key(resource, namespace, name), |object| {
            change(object);
            Ok(())
        });
        changed.is_some()
    }

    /// Deletes an object as somebody else would; `at_once`: without grace. `false`: it is not there.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str, at_once: bool) -> bool {
        let how = Deletion { propagation: Some("Background".into()), uid: None, grace: at_once.then_some(0) };
        self.world.delete(&key(resource, namespace, name), &how).is_ok()
    }

    /// A container writes this; `false`: it does not run.
    pub fn write_log(&self, namespace: &str, pod: &str, container: &str, bytes: &[u8]) -> bool {
        let log = self.log_of(namespace, pod, container);
        log.map(|log| log.write(bytes)).is_some()
    }

    /// The node rotates a container's log: what it has is not served any more.
    pub fn rotate_log(&self, namespace: &str, pod: &str, container: &str) -> bool {
        self.log_of(namespace, pod, container).map(|log| log.rotate()).is_some()
    }

    fn log_of(&self, namespace: &str, pod: &str, container: &str) -> Option<Arc<logs::Log>> {
        let state = self.world.state();
        let uid = world::uid(state.store.get(&key("pods", namespace, pod))?).to_owned();
        state.logs.get(&uid, container, false)
    }

    fn key_of(&self, namespace: &str, object: &Value) -> Result<Key, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let state = self.world.state();
        let known = state.kinds.named(&api_version, &kind).ok_or_else(|| format!("{kind} ({api_version}) is not known"))?;
        let name = text(&object["metadata"]["name"]);
        Ok(Key { group: known.group.clone(), plural: known.plural.clone(), namespace: namespace.to_owned(), name })
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        self.jobs.abort();
        if let Some(server) = self.server.lock().unwrap_or_else(PoisonError::into_inner).take() {
            server.abort();
        }
    }
}

fn key(resource: &str, namespace: &str, name: &str) -> Key {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    Key { group: group.to_owned(), plural: plural.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Takes connections until it is aborted, and all of them with it.
async fn listen(world: Arc<World>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let _ = stream.set_nodelay(true);
                let world = Arc::clone(&world);
                let service = service_fn(move |request| server::serve::answer(Arc::clone(&world), request));
                connections.spawn(async move {
                    // A connection that breaks is what half of the tests want.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

#[cfg(test)]
mod tests;
