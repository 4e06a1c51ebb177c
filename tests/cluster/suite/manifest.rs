//! Check files and manifests as texts: what differs between two tests is what they say.

/// A Pod of busybox that runs a line of shell.
pub(crate) fn pod(line: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{ name: hello }}\nspec:\n  restartPolicy: Never\n  terminationGracePeriodSeconds: 1\n  \
         containers:\n    - {}\n",
        container(line)
    )
}

/// A Job of busybox, with whatever its `spec` says beside the template.
pub(crate) fn job(spec: &str, line: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{ name: crew }}\nspec:\n  {spec}\n  template:\n    spec:\n      \
         restartPolicy: Never\n      terminationGracePeriodSeconds: 1\n      containers:\n        - {}\n",
        container(line)
    )
}

/// A JobSet of so many Jobs, each of one pod of busybox.
pub(crate) fn jobset(replicas: u32, line: &str) -> String {
    format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{ name: set }}\nspec:\n  replicatedJobs:\n    - name: workers\n      \
         replicas: {replicas}\n      template:\n        spec:\n          completions: 1\n          backoffLimit: 0\n          template:\n            \
         spec:\n              restartPolicy: Never\n              containers: [{}]\n",
        container(line)
    )
}

/// A container of busybox, on one line.
pub(crate) fn container(line: &str) -> String {
    format!("{{ name: main, image: 'rfm.test/busybox:1', command: [sh, -c, {}] }}", quoted(line))
}

/// A check of a manifest that wants to read `hello`; `more` are further lines of it.
pub(crate) fn check(manifest: &str, more: &str) -> String {
    let indented = format!("  {}\n", manifest.trim_end().replace('\n', "\n  "));
    let (limits, sanity) = (default(more, "time_limit", "1m"), default(more, "sanity", "[{ found: hello }]"));
    let pending = default(more, "max_pending_time", "1m");
    format!("name: case\nvalid_systems: ['*']\n{limits}{pending}{sanity}{more}\nk8s_config:\n{indented}")
}

fn default(more: &str, key: &str, value: &str) -> String {
    let is_given = more.lines().any(|line| line.starts_with(&format!("{key}:")));
    if is_given { String::new() } else { format!("{key}: {value}\n") }
}

/// A text in YAML's single quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
