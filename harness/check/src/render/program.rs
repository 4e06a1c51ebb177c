//! What a case runs, in the words of the scheduler that will run it.
//!
//! k8s and ipu read `k8s_config`, or make a Pod from `image` and `executable`; ec2 reads `ec2_config` and `executable`;
//! local reads `executable` or `command`; fake follows the scenario `fake`.

use crate::{
    cases::test_case::TestCase,
    files::check_file::CheckFile,
    render::{
        container::Container,
        script::{Preparation, Script},
    },
    site::{
        ContainerPlatform, Partition,
        modules::{self, ModulesSystem},
        platform::Platform,
    },
};
use muster_core::job::{scheduler_kind::SchedulerKind, workload::Program};
use muster_text::{
    Value,
    decode::OneOrMany,
    diagnostic::{Diagnostic, Severity},
    expr::Scope,
    shell, template,
    yaml::{self, Node},
};
use std::path::Path;

/// The program of a case. `None` after a mistake.
pub fn program(
    case: &TestCase,
    tree: &Node,
    file: &CheckFile,
    scope: &Scope,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let building = Building { case, tree, file, scope };
    match case.place.partition.scheduler {
        SchedulerKind::Local => building.local(diagnostics),
        SchedulerKind::Fake => building.fake(diagnostics),
        SchedulerKind::Ec2 => building.instances(diagnostics),
        SchedulerKind::K8s | SchedulerKind::Ipu => building.objects(diagnostics),
    }
}

/// What runs when the last case that needs this one is over: its `teardown_cmds`. `None` after a mistake.
pub fn teardown(
    case: &TestCase,
    (tree, file): (&Node, &CheckFile),
    scope: &Scope,
    commands: &[String],
    stage: &Path,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let building = Building { case, tree, file, scope };
    let mut script = |commands: &[String]| building.scripted(Script { prerun_cmds: commands, ..Script::default() }, diagnostics);
    let kind = case.place.partition.scheduler;
    match kind {
        SchedulerKind::Local => {
            // It has a folder of its own, so that what it prints does not mix with what the case has printed.
            let there = format!("cd {}", shell::quote(&stage.to_string_lossy()));
            let commands: Vec<String> = std::iter::once(there).chain(commands.iter().cloned()).collect();
            Some(Program::Script { text: script(&commands)?, pass_env: pass_env(&case.place.partition) })
        }
        SchedulerKind::Fake => Some(Program::Scenario(Value::Object(serde_json::Map::new()))),
        SchedulerKind::K8s | SchedulerKind::Ipu if file.image.is_some() && file.k8s_config.is_none() => {
            let (image, env_vars) = (file.image.clone()?, building.env_vars());
            Some(Program::Container { image, command: None, script: script(commands)?, env_vars, patch: None })
        }
        SchedulerKind::K8s | SchedulerKind::Ipu | SchedulerKind::Ec2 => {
            let message = format!("`teardown_cmds` of `{}` cannot run on `{kind}`", case.check.name);
            let hint = "they run on `local`, and on `k8s` in the `image` of the check";
            diagnostics.push(Diagnostic::error(case.check.span, message).hint(hint));
            None
        }
    }
}

struct Building<'a> {
    case: &'a TestCase,
    tree: &'a Node,
    file: &'a CheckFile,
    scope: &'a Scope,
}

impl Building<'_> {
    fn local(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
        self.needs(self.has_payload(), "an `executable` or a `command`", diagnostics)?;
        Some(Program::Script { text: self.script(diagnostics)?, pass_env: pass_env(&self.case.place.partition) })
    }

    fn fake(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
        Some(Program::Scenario(match self.tree.get("fake") {
            Some(scenario) => value(scenario, diagnostics)?,
            None => Value::Object(serde_json::Map::new()),
        }))
    }

    fn instances(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
        let config = self.tree.get("ec2_config");
        self.needs(config.is_some(), "an `ec2_config`", diagnostics)?;
        self.needs(self.has_payload(), "an `executable` or a `command`", diagnostics)?;
        Some(Program::Instances { config: value(config?, diagnostics)?, script: self.script(diagnostics)? })
    }

    fn objects(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
        self.refuse_what_needs_a_script(diagnostics)?;
        let env_vars = self.env_vars();
        let patch = self.tree.get("k8s_patch").filter(|patch| !patch.is_null());
        let patch = patch.map(|patch| value(patch, diagnostics)).map_or(Some(None), |patch| patch.map(Some));
        if let Some(config) = self.tree.get("k8s_config").filter(|config| !config.is_null()) {
            let manifest = self.manifest(config, diagnostics)?;
            return Some(Program::Objects { manifest, patch: patch?, env_vars });
        }
        self.needs(self.file.image.is_some(), "a `k8s_config`, or an `image`", diagnostics)?;
        self.needs(self.has_payload(), "an `executable` or a `command` to run in `image`", diagnostics)?;
        Some(Program::Container {
            image: self.file.image.clone()?,
            // A command between others is one of a script, and needs a shell like them.
            command: self.file.command.clone().filter(|_| self.is_bare()),
            script: self.script(diagnostics)?,
            env_vars,
            patch: patch?,
        })
    }

    /// What a manifest has no place for, and what a container cannot do within another.
    fn refuse_what_needs_a_script(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<()> {
        let (check, kind) = (&self.case.check, self.case.place.partition.scheduler);
        let mut refuse = |key: &str, message: String, hint: &str| {
            let span = self.tree.get(key).map_or(check.span, Node::place);
            diagnostics.push(Diagnostic::error(span, message).hint(hint));
            None
        };
        if self.image().is_some() {
            let message =
                format!("`container_platform` of `{}` cannot run on `{kind}`, where all jobs are containers", check.name);
            return refuse("container_platform", message, "write `image` or `k8s_config` for this partition, under `when`");
        }
        if self.file.k8s_config.is_some() && self.file.modules.as_ref().is_some_and(|modules| !modules.is_empty()) {
            let message = format!("`modules` of `{}` cannot be loaded: its manifest defines what runs", check.name);
            return refuse("modules", message, "load them in the container's own command, or write `image` and `executable`");
        }
        Some(())
    }

    /// Whether nothing runs before or after the command.
    fn is_bare(&self) -> bool {
        let own = [&self.file.prerun_cmds, &self.file.postrun_cmds];
        let place = &self.case.place;
        own.iter().all(|list| list.as_ref().is_none_or(|list| list.0.is_empty()))
            && self.file.modules.as_ref().is_none_or(|modules| modules.0.is_empty())
            && [&place.partition.prepare_cmds, &place.environ.prepare_cmds].iter().all(|commands| commands.is_empty())
            && [&place.partition.modules, &place.environ.modules].iter().all(|modules| modules.is_empty())
    }

    /// The manifest's documents with their placeholders filled in. An inline one was filled in with the check.
    fn manifest(&self, config: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<Value>> {
        let Some(path) = config.text() else { return Some(vec![value(config, diagnostics)?]) };
        // The place of an inherited path tells which file it is relative to.
        let Some(documents) = self.case.check.manifests.get(config.span.file, path) else {
            diagnostics.push(
                Diagnostic::error(config.span, format!("the manifest {path} was not read"))
                    .hint("a path with a placeholder cannot be read ahead: write the paths under `when`"),
            );
            return None;
        };
        let render = |document: &Node| {
            let rendered = template::render(document, self.scope, &self.case.check.cache, diagnostics)?;
            value(&rendered, diagnostics)
        };
        documents.iter().map(render).collect()
    }

    fn has_payload(&self) -> bool {
        self.file.executable.is_some() || self.file.command.is_some() || self.image().is_some()
    }

    /// The image of `container_platform`.
    fn image(&self) -> Option<&str> {
        self.file.container_platform.as_ref()?.image.as_deref()
    }

    /// A selected check without what its scheduler needs is a mistake of the file.
    fn needs(&self, has: bool, what: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<()> {
        if has {
            return Some(());
        }
        // It may be missing only because its expression failed, which is reported.
        if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return None;
        }
        let (check, place, kind) = (&self.case.check, self.case.name.system_partition(), self.case.place.partition.scheduler);
        let message = format!("`{}` has no {}, which `{kind}` needs to run it on {place}", check.name, bare(what));
        diagnostics.push(
            Diagnostic::error(check.span, message).hint(format!("give it {what}, or leave {place} out of `valid_systems`")),
        );
        None
    }

    fn env_vars(&self) -> Vec<(String, String)> {
        let place = &self.case.place;
        place.partition.env_vars.iter().chain(&place.environ.env_vars).cloned().chain(self.own_env_vars()).collect()
    }

    fn own_env_vars(&self) -> Vec<(String, String)> {
        let own = self.file.env_vars.iter().flat_map(|vars| vars.iter());
        own.map(|(name, value)| (name.value.clone(), value.clone())).collect()
    }

    fn script(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
        let list = |list: &Option<OneOrMany<String>>| list.as_ref().map(|list| list.0.clone()).unwrap_or_default();
        let (mut prerun_cmds, options) = (list(&self.file.prerun_cmds), list(&self.file.executable_opts));
        let postrun_cmds = list(&self.file.postrun_cmds);
        let Some(container) = self.container() else {
            let script = Script {
                prerun_cmds: &prerun_cmds,
                executable: self.file.executable.as_deref(),
                executable_opts: &options,
                command: self.file.command.as_deref(),
                postrun_cmds: &postrun_cmds,
                ..Script::default()
            };
            return self.scripted(script, diagnostics);
        };
        self.refuse_two_programs(diagnostics)?;
        prerun_cmds.extend(container.pull());
        let stage = match self.case.place.partition.scheduler {
            SchedulerKind::Ec2 => "$PWD".to_owned(),
            _ => shell::in_double_quotes(self.scope.get("stagedir").and_then(Value::as_str).unwrap_or(".")),
        };
        let script = Script {
            requires: Some(container.platform.program()),
            prerun_cmds: &prerun_cmds,
            executable: Some(&container.run(&stage)),
            postrun_cmds: &postrun_cmds,
            ..Script::default()
        };
        self.scripted(script, diagnostics)
    }

    /// ReFrame passes over the executable of a check that runs in a container; Muster refuses it, since the user would not notice.
    fn refuse_two_programs(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<()> {
        let ignored = ["executable", "executable_opts", "command"];
        let found = ignored.iter().find_map(|key| Some((key, self.tree.get(key).filter(|node| !node.is_null())?)));
        let Some((key, node)) = found else { return Some(()) };
        let message = format!("`{key}` does not run: `{}` runs in a container", self.case.check.name);
        diagnostics
            .push(Diagnostic::error(node.place(), message).hint("write what runs there as `command` of `container_platform`"));
        None
    }

    /// The container that runs on a machine.
    fn container(&self) -> Option<Container<'_>> {
        let platform = platform(self.file, &self.case.place.partition)?;
        Container::of(self.file.container_platform.as_ref()?, self.tree.get("container_platform")?, platform)
    }

    /// The text of a script, with all that every script of this case has around it.
    fn scripted(&self, script: Script<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
        let (partition, environ) = (&self.case.place.partition, &self.case.place.environ);
        let (modules, env_vars) = (modules::list(self.file.modules.as_ref()), self.own_env_vars());
        let platform =
            script.requires.and_then(|_| self.container()).and_then(|container| platform_settings(partition, container.platform));
        let platform = platform.map(|site| Preparation { prepare_cmds: &[], modules: &site.modules, exports: &site.env_vars });
        let preparations = [
            Preparation { prepare_cmds: &partition.prepare_cmds, modules: &partition.modules, exports: &partition.env_vars },
            Preparation { prepare_cmds: &environ.prepare_cmds, modules: &environ.modules, exports: &environ.env_vars },
            platform.unwrap_or_default(),
            Preparation { prepare_cmds: &[], modules: &modules, exports: &env_vars },
        ];
        let in_container = partition.scheduler.is_kubernetes();
        let script = Script { modules_system: partition.modules_system, preparations: &preparations, in_container, ..script };
        script.render().map_err(|why| diagnostics.push(Diagnostic::error(self.case.check.span, why))).ok()
    }
}

/// The variables that a local job inherits: those of the site file, and those that find its modules.
fn pass_env(partition: &Partition) -> Vec<String> {
    let of_modules = partition.modules_system.map(ModulesSystem::pass_env).unwrap_or_default();
    partition.pass_env.iter().cloned().chain(of_modules.iter().map(|&name| name.to_owned())).collect()
}

/// What runs the container of a check here.
fn platform(file: &CheckFile, partition: &Partition) -> Option<Platform> {
    file.container_platform.as_ref()?.platform.or_else(|| partition.default_platform())
}

/// The settings of a partition for a platform.
fn platform_settings(partition: &Partition, platform: Platform) -> Option<&ContainerPlatform> {
    partition.container_platforms.iter().find(|one| one.platform == platform)
}

/// Why a valid check cannot run here: a setting that is missing in the site file.
pub(crate) fn missing_site_setting(case: &TestCase, file: &CheckFile) -> Option<String> {
    let place = &case.place;
    let has_script = !matches!(place.partition.scheduler, SchedulerKind::Fake) && file.k8s_config.is_none();
    if has_script && place.partition.modules_system.is_none() && file.modules.as_ref().is_some_and(|modules| !modules.is_empty())
    {
        return Some(format!("the check loads modules, and {} does not set `modules_system`", place.system.name));
    }
    let wants_container = file.container_platform.as_ref().is_some_and(|entry| entry.image.is_some());
    let has_machine = matches!(place.partition.scheduler, SchedulerKind::Local | SchedulerKind::Ec2);
    if has_machine && wants_container && platform(file, &place.partition).is_none() {
        let name = case.name.system_partition();
        return Some(format!("the check runs in a container of no type, and {name} has no container_platforms"));
    }
    None
}

fn value(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<Value> {
    yaml::to_value(node).map_err(|mut mistakes| diagnostics.append(&mut mistakes)).ok()
}

/// `an executable or a command` is `executable and no command` in a sentence with "no".
fn bare(what: &str) -> String {
    what.trim_start_matches("an ").trim_start_matches("a ").replace(" or an ", " and no ").replace(" or a ", " and no ")
}

/// The partition's options, the check's over them: maps merge, and rules of kinds are added to the site's.
pub fn sched_options(
    case: &TestCase,
    file: &CheckFile,
    tree: &Node,
    program: Option<&Program>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Value {
    let partition = &case.place.partition;
    let mut options = match &partition.sched_options {
        Value::Object(options) => options.clone(),
        _ => serde_json::Map::new(),
    };
    if let Some(own) = tree.get("sched_options").filter(|own| !own.is_null()) {
        refuse_site_options(own, diagnostics);
        match yaml::to_value(own) {
            Ok(Value::Object(own)) => merge_options(&mut options, own),
            Ok(_) => {}
            Err(mut mistakes) => diagnostics.append(&mut mistakes),
        }
    }
    let resource = file.k8s_resource.as_ref().map(|resource| resource.value.clone());
    let named = [("namespace", file.namespace.clone()), ("context", file.context.clone()), ("k8s_resource", resource)];
    options.extend(named.into_iter().filter_map(|(key, value)| value.map(|value| (key.to_owned(), value.into()))));
    if partition.scheduler == SchedulerKind::Ipu && has_ipu_job(program) {
        options.entry("k8s_resource").or_insert_with(|| "ipujob".into());
    }
    options.extend(case.node.iter().map(|node| ("node".to_owned(), Value::from(&**node))));
    Value::Object(options)
}

/// What a site forbids its checks, or asks of all their pods, is not for them to change.
fn refuse_site_options(own: &Node, diagnostics: &mut Vec<Diagnostic>) {
    let hints = [
        ("policy", "write it in the partition's `sched_options`"),
        ("pod_patch", "write it in the partition's `sched_options`; a check changes its own manifest with `k8s_patch`"),
    ];
    for (key, hint) in hints {
        if let Some(option) = own.get(key) {
            let message = format!("`{key}` belongs to the site file: a check cannot set it");
            diagnostics.push(Diagnostic::error(option.span, message).hint(hint));
        }
    }
}

fn merge_options(options: &mut serde_json::Map<String, Value>, own: serde_json::Map<String, Value>) {
    for (key, value) in own {
        match (options.get_mut(&key), value) {
            (Some(Value::Object(options)), Value::Object(own)) => merge_options(options, own),
            (Some(Value::Array(rules)), Value::Array(own)) if key == "k8s_workloads" => rules.extend(own),
            (_, value) => drop(options.insert(key, value)),
        }
    }
}

/// On an ipu partition the workload is the `IPUJob`, whatever else is in the manifest.
fn has_ipu_job(program: Option<&Program>) -> bool {
    let Some(Program::Objects { manifest, .. }) = program else { return false };
    manifest.iter().any(|document| document.get("kind").and_then(Value::as_str) == Some("IPUJob"))
}
