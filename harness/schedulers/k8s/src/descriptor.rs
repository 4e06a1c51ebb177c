//! The facts about Kubernetes that need no connection: names, keys, options.

use crate::{
    api::{IPU, NAME},
    client::Contexts,
    manifest, plan,
    scheduler::Kubernetes,
};
use muster_core::job::descriptor::{Descriptor, Files, Form, Setting, SharedKey};
use muster_text::{
    Value,
    decode::{Documents, Key, Limit, Mapping, Spanned},
};
use std::{ptr, sync::Arc, time::Duration};

const IN_MANIFEST: SharedKey = SharedKey::Refuses("set it in the manifest, or in `k8s_patch`");

/// The facts about the scheduler that need no connection.
pub static SCHEDULER: Descriptor = Descriptor {
    names: &[NAME, IPU],
    descr: "Pods, Jobs and custom resources of a Kubernetes cluster; as `ipu` with Graphcore's `IPUJob` as the usual resource",
    forms: &[Form::Own(plan::CONFIG), Form::Image],
    own_keys: &[
        Key::of::<Documents>(plan::CONFIG, "The Kubernetes objects: a path relative to this file, or an object in place."),
        Key::of::<Mapping>(
            plan::PATCH,
            "Merged into the manifest: mappings merge, lists of named mappings merge by `name`, other lists replace, null deletes.",
        ),
        Key::of::<String>(
            "namespace",
            "Kubernetes namespace. Default: the partition's, else the manifest's, else the context's.",
        ),
        Key::of::<String>("context", "Context of the kubeconfig. Default: the partition's, else the current one."),
        Key::of::<Spanned<String>>("k8s_resource", "The resource of the workload, if its kind does not determine it: `ipujob`."),
    ],
    found,
    documents: &[plan::CONFIG],
    is_text: manifest::is_text,
    own_options: &["namespace", "context", "k8s_resource"],
    options: &[
        Key::of::<String>("context", "Context of the kubeconfig. Default: the current one."),
        Key::of::<String>("namespace", "Namespace. Default: the manifest's, else the context's."),
        Key::of::<String>("k8s_resource", "The resource of the workload, if its kind does not determine it: `ipujob`."),
        Key::of::<String>("node", "The only node that the pods may run on."),
        Key::of::<Mapping>("labels", "Labels of the workload's own metadata: texts by name, null takes one of the site back."),
        Key::of::<Mapping>("annotations", "Annotations of the workload's own metadata, like `labels`."),
        Key::of::<Vec<Mapping>>("k8s_workloads", "Rules of kinds that Muster does not know, each with a `match`."),
        Key::of::<Mapping>("policy", "What checks may create here. Only in the site file."),
        Key::of::<Mapping>("pod_patch", "`metadata` and `spec` merged into every pod. Only in the site file."),
        Key::of::<String>(
            "log_rotation",
            "What to do if a log was rotated before it was read: `invalid` or `warn`. Default: invalid.",
        ),
        Key::of::<String>(
            "container_log_max_size",
            "`containerLogMaxSize` of the nodes' kubelets, if it is not their default of 10Mi: `2Mi`.",
        ),
        Key::of::<Mapping>("resources", "`resources` of the container that is made from `image`."),
        Key::of::<Vec<String>>("primary_containers", "The containers that decide how a pod ended, where its kind does not say."),
        Key::of::<Limit<Duration>>(
            "max_lifetime",
            "How long the cluster lets a workload without a time limit live. Default: 24h; null: no limit.",
        ),
        Key::of::<Limit<Duration>>(
            "hopeless_after",
            "How long a pod waits for what cannot change by itself. Default: 15m; null: as long as `max_pending_time`.",
        ),
    ],
    site_options: &[
        ("policy", "write it in the partition's `sched_options`"),
        ("pod_patch", "write it in the partition's `sched_options`; a check changes its own manifest with `k8s_patch`"),
    ],
    joined_options: &["k8s_workloads"],
    wrong_options: plan::wrong_options,
    // All but what the objects are made of.
    never_masked: &[
        "place",
        "objects.*.resource",
        "objects.*.name",
        "objects.*.uid",
        "objects.*.manifest.apiVersion",
        "objects.*.manifest.kind",
        "objects.*.manifest.metadata.name",
        "objects.*.manifest.metadata.namespace",
        "objects.*.manifest.metadata.labels",
        "workload",
        "expected_pods",
        "rules",
        "keep_seconds",
        "deadline",
        "own_containers",
        "hopeless_after",
        "log_rotation",
        "log_file",
    ],
    shared_keys: &[
        ("num_nodes", IN_MANIFEST),
        ("num_tasks_per_node", IN_MANIFEST),
        ("num_tasks_per_socket", IN_MANIFEST),
        ("num_tasks_per_core", IN_MANIFEST),
        ("num_cpus_per_task", SharedKey::Refuses("set it in the manifest: `resources` of the container")),
        ("num_gpus_per_node", SharedKey::Refuses("set it in the manifest: `resources` of the container")),
        ("exclusive_access", SharedKey::Refuses("set it in the manifest, with a node selector or the size of its requests")),
        ("use_multithreading", IN_MANIFEST),
        ("extra_resources", SharedKey::Refuses("write `k8s_patch` or `sched_options`")),
        ("launcher", SharedKey::Refuses("the manifest says what starts the tasks")),
        ("launcher_options", SharedKey::Refuses("write them into the manifest, after what starts the tasks")),
        ("launcher_modifier", SharedKey::Refuses("write it into the manifest, before what starts the tasks")),
        ("access", SharedKey::Refuses("write `sched_options`, or `pod_patch` in them")),
        ("resources", SharedKey::Refuses("write `resources` or `pod_patch` in `sched_options`")),
    ],
    starters: &[(NAME, include_str!("plan/starters/k8s.yaml")), (IPU, include_str!("plan/starters/ipu.yaml"))],
    files: Files::SentWithImage(
        "put the files into the image, into a ConfigMap or volume that the manifest mounts, or fetch them in `prerun_cmds`",
    ),
    in_containers: true,
    is_cluster: true,
    // Kubernetes does not say of a node that nothing runs on it.
    node_states: &["all", "avail"],
    settings,
    connect: |harness| {
        let contexts = Contexts::load()?;
        if contexts.is_empty() {
            // The error names the places where a kubeconfig was looked for.
            contexts.place(None, None).map_err(|error| format!("no cluster is configured: {error}"))?;
        }
        Ok(Arc::new(Kubernetes::within(contexts, harness)))
    },
    look: Some(|harness| Ok(Arc::new(Kubernetes::within(Contexts::load()?, harness)))),
    planner: Some(|_| Ok(Arc::new(Kubernetes::new(Contexts::to_plan_with()?)))),
    ..Descriptor::NONE
};

/// Returns whether a partition with this scheduler runs on Kubernetes: for commands about clusters alone.
pub fn is_kubernetes(descriptor: &Descriptor) -> bool {
    ptr::eq(descriptor, &raw const SCHEDULER)
}

/// The current context of the kubeconfig, or the pod that Muster runs in.
fn found() -> Option<Vec<(&'static str, String)>> {
    let contexts = Contexts::load().ok().filter(|contexts| !contexts.is_empty())?;
    // No context: a file without one works within the cluster, too.
    Some(vec![("namespace", contexts.place(None, None).ok()?.namespace)])
}

/// The context and the namespace of checks that name none.
fn settings(options: &Value) -> Vec<Setting> {
    let option = |key: &str| options.get(key).and_then(Value::as_str);
    let (context, namespace) = (option("context"), option("namespace"));
    let contexts = Contexts::to_plan_with();
    let place = contexts.as_ref().map_err(ToString::to_string).and_then(|contexts| {
        let place = contexts.place(context, namespace).map_err(|error| error.to_string())?;
        Ok((contexts, place))
    });
    let (contexts, place) = match place {
        Ok(place) => place,
        Err(why) => {
            return vec![Setting { name: "context", value: context.unwrap_or("-").to_owned(), source: Some(why) }];
        }
    };
    let of_context = place.context.as_ref().and_then(|context| contexts.named.get(context)).is_some_and(Option::is_some);
    let context_source = match (&place.context, context) {
        (_, Some(_)) => None,
        (Some(_), None) => Some("the kubeconfig's current context"),
        (None, None) if contexts.unknown => Some("no kubeconfig"),
        (None, None) => Some("the pod's service account"),
    };
    let namespace_source = match namespace {
        Some(_) => None,
        None if of_context => Some("the context's"),
        None if place.context.is_none() && contexts.in_cluster.is_some() => Some("the pod's service account"),
        None => Some("default"),
    };
    let name = place.context.as_deref().unwrap_or(if contexts.unknown { "-" } else { "in-cluster" });
    let setting =
        |name, value: &str, source: Option<&str>| Setting { name, value: value.to_owned(), source: source.map(str::to_owned) };
    vec![setting("context", name, context_source), setting("namespace", &place.namespace, namespace_source)]
}
