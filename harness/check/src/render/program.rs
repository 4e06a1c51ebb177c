//! Renders the program of a case: the first of its scheduler's forms that the check has.

use crate::{
    cases::test_case::TestCase,
    files::check_file::CheckFile,
    render::{
        container::Container,
        launcher::launched,
        script::{Preparation, Script},
    },
    site::{
        ContainerPlatform, Partition,
        modules::{self, ModulesSystem},
        platform::Platform,
    },
};
use muster_core::job::{
    descriptor::{Files, Form},
    workload::Program,
};
use muster_text::{
    Value,
    decode::OneOrMany,
    diagnostic::{Diagnostic, Severity},
    expr::Scope,
    shell, template,
    yaml::{self, IsText, Node},
};
use serde_json::Map;
use std::path::Path;

/// The program of a case. `None` after a mistake.
pub fn program(
    case: &TestCase,
    tree: &Node,
    file: &CheckFile,
    (scope, launcher): (&Scope, &str),
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let building = Building { case, tree, file, scope, launcher };
    building.refuse_containers_in_containers(diagnostics)?;
    let scheduler = case.place.partition.scheduler;
    for key in scheduler.required {
        building.needs(has(tree, key), &with_article(key), diagnostics)?;
    }
    let form = form(case, tree, file);
    building.needs(form.is_some(), &listed(scheduler.forms), diagnostics)?;
    Some(match form? {
        Form::Own(key) => {
            building.refuse_modules(key, diagnostics)?;
            Program::Own { env_vars: building.env_vars() }
        }
        Form::Image => {
            building.needs(building.has_payload(), "an `executable` or a `command` to run in `image`", diagnostics)?;
            Program::Container {
                image: file.image.clone()?,
                // A command between others is one of a script, and needs a shell like them.
                command: file.command.as_deref().filter(|_| building.is_bare()).map(<[String]>::to_vec),
                script: building.script(diagnostics)?,
                env_vars: building.env_vars(),
            }
        }
        Form::Script => Program::Script { text: building.script(diagnostics)?, pass_env: pass_env(&case.place.partition) },
        Form::Anything => Program::Own { env_vars: Vec::new() },
    })
}

/// The first form of its scheduler that a check has.
fn form(case: &TestCase, tree: &Node, file: &CheckFile) -> Option<Form> {
    let has_form = |form: &&Form| match form {
        Form::Own(key) => has(tree, key),
        Form::Image => file.image.is_some(),
        Form::Script => has_payload(file),
        Form::Anything => true,
    };
    case.place.partition.scheduler.forms.iter().find(has_form).copied()
}

fn has(tree: &Node, key: &str) -> bool {
    tree.get(key).is_some_and(|node| !node.is_null())
}

fn has_payload(file: &CheckFile) -> bool {
    file.executable.is_some() || file.command.is_some() || image(file).is_some()
}

/// The image of `container_platform`.
fn image(file: &CheckFile) -> Option<&str> {
    file.container_platform.as_ref()?.image.as_deref()
}

/// ``a `k8s_config`, or an `image` ``
fn listed(forms: &[Form]) -> String {
    let form = |form: &Form| match form {
        Form::Own(key) => with_article(key),
        Form::Image => with_article("image"),
        Form::Script => "an `executable` or a `command`".to_owned(),
        Form::Anything => String::new(),
    };
    forms.iter().map(form).collect::<Vec<_>>().join(", or ")
}

fn with_article(key: &str) -> String {
    format!("{} `{key}`", if key.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" })
}

/// The values of the scheduler's own keys. `None` after a mistake.
pub fn own_values(case: &TestCase, tree: &Node, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<Map<String, Value>> {
    let scheduler = case.place.partition.scheduler;
    let mut values = Map::new();
    for key in scheduler.own_keys.iter().filter(|key| !scheduler.own_options.contains(&key.name)) {
        let Some(node) = tree.get(key.name).filter(|node| !node.is_null()) else { continue };
        let value = if scheduler.documents.contains(&key.name) {
            documents(case, node, scope, diagnostics)?.into()
        } else {
            value(node, scheduler.is_text, diagnostics)?
        };
        values.insert(key.name.to_owned(), value);
    }
    Some(values)
}

/// The documents that a key names, with their placeholders filled in. One in the check was filled in with the check.
fn documents(case: &TestCase, config: &Node, scope: &Scope, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<Value>> {
    let is_text = case.place.partition.scheduler.is_text;
    let Some(path) = config.text() else { return Some(vec![value(config, is_text, diagnostics)?]) };
    // The place of an inherited path tells which file it is relative to.
    let Some(documents) = case.check.manifests.get(config.span.file, path) else {
        diagnostics.push(
            Diagnostic::error(config.span, format!("the manifest {path} was not read"))
                .hint("a path with a placeholder cannot be read ahead: write the paths under `when`"),
        );
        return None;
    };
    let render = |document: &Node| {
        let rendered = template::render(document, scope, &case.check.cache, diagnostics)?;
        value(&rendered, is_text, diagnostics)
    };
    documents.iter().map(render).collect()
}

/// Renders `teardown_cmds`, which run when the last case that needs this one is over. `None` after a mistake.
pub fn teardown(
    case: &TestCase,
    (tree, file): (&Node, &CheckFile),
    scope: &Scope,
    commands: &[String],
    stage: &Path,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let building = Building { case, tree, file, scope, launcher: "" };
    let mut script = |commands: &[String]| building.scripted(Script { prerun_cmds: commands, ..Script::default() }, diagnostics);
    let scheduler = case.place.partition.scheduler;
    match form(case, tree, file) {
        Some(Form::Script) if scheduler.files == Files::Shared => {
            // It has a folder of its own, so that what it prints does not mix with what the case has printed.
            let there = format!("cd {}", shell::quote(&stage.to_string_lossy()));
            let commands: Vec<String> = std::iter::once(there).chain(commands.iter().cloned()).collect();
            Some(Program::Script { text: script(&commands)?, pass_env: pass_env(&case.place.partition) })
        }
        Some(Form::Anything) => Some(Program::Own { env_vars: Vec::new() }),
        Some(Form::Image) => {
            let (image, env_vars) = (file.image.clone()?, building.env_vars());
            Some(Program::Container { image, command: None, script: script(commands)?, env_vars })
        }
        _ => {
            let message = format!("`teardown_cmds` of `{}` cannot run on `{scheduler}`", case.check.name);
            let hint = "they run where the job is a script that sees the harness' files, or a container of an `image`";
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
    /// What starts the tasks; empty if nothing does.
    launcher: &'a str,
}

impl Building<'_> {
    fn refuse(&self, key: &str, message: String, hint: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<()> {
        let span = self.tree.get(key).map_or(self.case.check.span, Node::place);
        diagnostics.push(Diagnostic::error(span, message).hint(hint));
        None
    }

    /// What a container cannot do within another.
    fn refuse_containers_in_containers(&self, diagnostics: &mut Vec<Diagnostic>) -> Option<()> {
        let (check, scheduler) = (&self.case.check, self.case.place.partition.scheduler);
        if !scheduler.in_containers || image(self.file).is_none() {
            return Some(());
        }
        let message =
            format!("`container_platform` of `{}` cannot run on `{scheduler}`, where all jobs are containers", check.name);
        let instead = scheduler.forms.iter().filter_map(|form| match form {
            Form::Own(key) => Some(format!("`{key}`")),
            Form::Image => Some("`image`".to_owned()),
            Form::Script | Form::Anything => None,
        });
        let mut instead: Vec<String> = instead.collect();
        instead.sort_by_key(|key| key != "`image`");
        let hint = format!("write {} for this partition, under `when`", instead.join(" or "));
        self.refuse("container_platform", message, &hint, diagnostics)
    }

    /// What a scheduler's own block has no place for.
    fn refuse_modules(&self, own: &'static str, diagnostics: &mut Vec<Diagnostic>) -> Option<()> {
        if self.file.modules.as_ref().is_none_or(|modules| modules.is_empty()) {
            return Some(());
        }
        let message = format!("`modules` of `{}` cannot be loaded: `{own}` defines what runs", self.case.check.name);
        let forms: Vec<Form> =
            self.case.place.partition.scheduler.forms.iter().copied().filter(|form| *form != Form::Own(own)).collect();
        let instead = if forms.is_empty() { String::new() } else { format!(", or write {} instead", listed(&forms)) };
        self.refuse("modules", message, &format!("load them in the command that it runs{instead}"), diagnostics)
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

    fn has_payload(&self) -> bool {
        has_payload(self.file)
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
        let (check, place) = (&self.case.check, self.case.name.system_partition());
        let scheduler = self.case.place.partition.scheduler;
        let message = format!("`{}` has no {}, which `{scheduler}` needs to run it on {place}", check.name, bare(what));
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
            let executable = self.file.executable.as_ref().map(|program| launched(self.launcher, program));
            let script = Script {
                prerun_cmds: &prerun_cmds,
                executable: executable.as_deref(),
                executable_opts: &options,
                command: self.file.command.as_deref(),
                launcher: self.launcher,
                postrun_cmds: &postrun_cmds,
                ..Script::default()
            };
            return self.scripted(script, diagnostics);
        };
        self.refuse_two_programs(diagnostics)?;
        prerun_cmds.extend(container.pull());
        let stage = match self.case.place.partition.scheduler.files {
            Files::Elsewhere(_) | Files::Sent | Files::SentWithImage(_) => "$PWD".to_owned(),
            Files::Shared | Files::Unused => {
                shell::in_double_quotes(self.scope.get("stagedir").and_then(Value::as_str).unwrap_or("."))
            }
        };
        let script = Script {
            requires: Some(container.platform.program()),
            prerun_cmds: &prerun_cmds,
            executable: Some(&launched(self.launcher, &container.run(&stage))),
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
        let in_container = partition.scheduler.in_containers;
        let keep_status = Some(partition.scheduler.keep_status);
        let modules_system = partition.modules_system;
        let script = Script { modules_system, preparations: &preparations, keep_status, in_container, ..script };
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
pub(crate) fn missing_site_setting(case: &TestCase, tree: &Node, file: &CheckFile) -> Option<String> {
    let (place, form) = (&case.place, form(case, tree, file));
    let has_script = !matches!(form, Some(Form::Own(_) | Form::Anything));
    if has_script && place.partition.modules_system.is_none() && file.modules.as_ref().is_some_and(|modules| !modules.is_empty())
    {
        return Some(format!("the check loads modules, and {} does not set `modules_system`", place.system.name));
    }
    if form == Some(Form::Script) && image(file).is_some() && platform(file, &place.partition).is_none() {
        let name = case.name.system_partition();
        return Some(format!("the check runs in a container of no type, and {name} has no container_platforms"));
    }
    None
}

fn value(node: &Node, is_text: IsText, diagnostics: &mut Vec<Diagnostic>) -> Option<Value> {
    yaml::to_value_with_texts(node, is_text).map_err(|mut mistakes| diagnostics.append(&mut mistakes)).ok()
}

/// `an executable or a command` is `executable and no command` in a sentence with "no".
fn bare(what: &str) -> String {
    what.trim_start_matches("an ").trim_start_matches("a ").replace(" or an ", " and no ").replace(" or a ", " and no ")
}
