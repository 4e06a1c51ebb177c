//! Two schedulers that check and site files may name: one with manifests, one with scripts.

use muster_core::job::descriptor::{Descriptor, Files, Form, Schedulers};
use muster_text::decode::{Documents, Key, Mapping};

static K8S: Descriptor = Descriptor {
    names: &["k8s"],
    forms: &[Form::Own("k8s_config"), Form::Image],
    own_keys: &[Key::of::<Documents>("k8s_config", "A manifest."), Key::of::<Mapping>("k8s_patch", "A patch.")],
    documents: &["k8s_config"],
    options: &[Key::of::<String>("namespace", "A namespace."), Key::of::<Mapping>("labels", "Labels.")],
    files: Files::Elsewhere("fetch them"),
    in_containers: true,
    ..Descriptor::NONE
};

static LOCAL: Descriptor =
    Descriptor { names: &["local"], forms: &[Form::Script], files: Files::Shared, ..Descriptor::NONE };

static ALL: &[&Descriptor] = &[&K8S, &LOCAL];

pub fn schedulers() -> Schedulers {
    Schedulers::new(ALL)
}
