//! The surroundings that a test needs: files, builds, fixtures; and what has no place in a check.

use super::{Cel, DROPPED, Declared, Level, Making, Piece, REFUSED, Reading, Root, SHAPE, Value, build, executable, plain};
use crate::value::cel::Kind;

impl Making {
    /// What has no place in a check, line by line.
    pub(super) fn left_out(&mut self, reading: &mut Reading) {
        if self.has("k8s_config") {
            for name in SHAPE.into_iter().filter(|name| self.has(name)).collect::<Vec<_>>() {
                self.leave(&[name]);
                reading.tell_of(name, Level::Dropped, format!("`{name}` is the scheduler's"), Some("set it in the manifest"));
            }
        }
        for (name, instead) in DROPPED {
            let is_said = |value: &Value| {
                !matches!(value, Value::None | Value::Bool(false) | Value::Absent) && *value != Value::Dict(vec![])
            };
            if reading.attr(name).is_some_and(is_said) {
                reading.tell_of(name, Level::Dropped, format!("`{name}` is the scheduler's"), Some(instead));
            }
        }
        for (name, instead) in REFUSED {
            let is_said = |value: &Value| {
                !matches!(value, Value::None | Value::Absent) && *value != Value::List(vec![]) && *value != Value::Dict(vec![])
            };
            let inner = reading
                .interp
                .state
                .attrs
                .iter()
                .any(|(known, value)| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')) && is_said(value));
            if inner || reading.attr(name).is_some_and(is_said) {
                reading.tell_of(name, Level::Refused, format!("`{name}` is not carried over"), Some(instead));
            }
        }
        self.sources(reading);
    }

    /// `container_platform` and its attributes, as the one mapping that they are here.
    pub(super) fn gather_container(reading: &mut Reading) {
        const PARTS: [&str; 9] =
            ["image", "command", "options", "mount_points", "mount_stagedir", "workdir", "pull_image", "with_cuda", "with_mpi"];
        let kind = match reading.attr("container_platform") {
            Some(Value::Str(name)) => Some(Value::Str(name.to_lowercase())),
            Some(Value::None | Value::Absent | Value::Thing(_)) | None => None,
            Some(other) => Some(other.clone()),
        };
        let mut parts: Vec<(Value, Value)> = kind.map(|kind| (Value::text("type"), kind)).into_iter().collect();
        for part in PARTS {
            parts.extend(reading.attr(&format!("container_platform.{part}")).map(|value| (Value::text(part), value.clone())));
        }
        if !parts.is_empty() {
            crate::interp::set(&mut reading.interp.state.attrs, "container_platform", Value::Dict(parts));
        }
    }

    /// ReFrame passes over the executable of a test that runs in a container; here it would be a second program.
    pub(super) fn container(&mut self, reading: &mut Reading) {
        const PASSED_OVER: [&str; 2] = ["executable", "executable_opts"];
        let has_image =
            |value: &Value| matches!(value, Value::Dict(parts) if parts.iter().any(|(key, _)| key.as_str() == Some("image")));
        if self.entries.iter().any(|(key, value)| key == "container_platform" && has_image(value)) {
            for key in PASSED_OVER.into_iter().filter(|key| self.has(key)).collect::<Vec<_>>() {
                self.leave(&[key]);
                let why = format!("`{key}` is passed over: the test runs the command of its container");
                reading.tell_of(key, Level::Dropped, why, None);
            }
            return;
        }
        let in_container =
            self.settings.iter().filter(|setting| setting.key == "container_platform" && has_image(&setting.value));
        let conds: Vec<_> = in_container.map(|setting| setting.cond.clone()).collect();
        for cond in conds {
            for key in PASSED_OVER.into_iter().filter(|key| self.has(key)).collect::<Vec<_>>() {
                self.settings.push(crate::settle::Setting { cond: cond.clone(), key: key.to_owned(), value: Value::None });
            }
        }
    }

    /// Removes keys.
    pub(super) fn leave(&mut self, keys: &[&str]) {
        self.entries.retain(|(key, _)| !keys.contains(&key.as_str()));
        self.settings.retain(|setting| !keys.contains(&setting.key.trim_end_matches('+')));
    }

    /// ReFrame copies a folder of sources into every stage folder, `src` by default.
    pub(super) fn sources(&mut self, reading: &mut Reading) {
        let has_src = reading.has_src();
        let folder = match reading.attr("sourcesdir") {
            // What runs in pods does not see it, and Muster's own default says so by not being there.
            None if has_src && !self.has("k8s_config") => Value::text("src"),
            Some(Value::Str(folder)) if folder == "src" && !has_src => return,
            Some(Value::None) if !has_src => return,
            None | Some(Value::Unknown | Value::Absent) => return,
            Some(folder) => folder.clone(),
        };
        let is_remote =
            folder.as_str().is_some_and(|folder| ["https://", "ssh://", "git@"].iter().any(|scheme| folder.starts_with(scheme)));
        if let (true, Some(url)) = (is_remote, folder.as_str()) {
            let clone = Value::text(format!("git clone --depth 1 {url} ."));
            self.before(vec![clone]);
        } else if let Ok(folder) = plain(&folder, false) {
            self.put("sourcesdir", folder);
        } else {
            let why = "which folder is staged is known only when it runs";
            reading.tell_of("sourcesdir", Level::Refused, why, Some("copy what the check needs in `prerun_cmds`"));
        }
    }

    /// Paths beside the check, seen from where its file goes.
    pub(super) fn paths(&mut self, way: &str) {
        let settings = self.settings.iter_mut().map(|setting| (&setting.key, &mut setting.value));
        for (key, path) in self.entries.iter_mut().map(|(key, value)| (&*key, value)).chain(settings) {
            let is_path = matches!(path, Value::Str(_) | Value::Text(_) | Value::Cel(_));
            if way.is_empty() || !is_path || !matches!(&**key, "sourcesdir" | "k8s_config") {
                continue;
            }
            let pieces = path.pieces().unwrap_or_default();
            let head = Piece::Text(format!("{way}/"));
            match pieces.first() {
                Some(Piece::Text(first)) if first.starts_with('/') => {}
                // Whether it is absolute is known only when its first part is.
                Some(Piece::Cel(first)) => {
                    let is_absolute = first.as_text().method("startsWith", &[Cel::literal("/")], Kind::Bool);
                    let head = Cel::ternary(&is_absolute, &Cel::literal(""), &Cel::literal(&format!("{way}/")));
                    *path = Value::joined([vec![Piece::Cel(head)], pieces].concat());
                }
                _ => *path = Value::joined([vec![head], pieces].concat()),
            }
        }
    }

    /// Files that are searched are kept.
    pub(super) fn searched_files(&mut self) {
        let mut searched = Vec::new();
        for (_, value) in self.entries.iter().filter(|(key, _)| matches!(&**key, "sanity" | "perf_variables")) {
            files(value, &mut searched);
        }
        for setting in self.settings.iter().filter(|setting| matches!(&*setting.key, "sanity" | "perf_variables")) {
            files(&setting.value, &mut searched);
        }
        if searched.is_empty() {
            return;
        }
        let mut kept = match self.entries.iter().find(|(key, _)| key == "keep_files") {
            Some((_, Value::List(kept))) => kept.clone(),
            Some((_, one)) => vec![one.clone()],
            None => vec![],
        };
        let globs: Vec<&str> = kept.iter().filter_map(Value::as_str).collect();
        if let Ok(globs) = muster_text::glob::Globs::compile(&globs) {
            searched.retain(|file| !file.as_str().is_some_and(|path| globs.cover(path)));
        }
        for file in searched {
            if !kept.contains(&file) {
                kept.push(file);
            }
        }
        self.put("keep_files", Value::List(kept));
    }

    /// Puts lines before all others of the script.
    pub(super) fn before(&mut self, mut lines: Vec<Value>) {
        if let Some((_, Value::List(known))) = self.entries.iter().find(|(key, _)| key == "prerun_cmds") {
            lines.extend(known.clone());
        }
        self.put("prerun_cmds", Value::List(lines));
    }

    pub(super) fn fixtures(&mut self, reading: &mut Reading) {
        let mut fixtures = Vec::new();
        for (name, declared) in reading.fixtures.clone() {
            let Declared::Fixture { class, scope, variables, joins } = declared else { continue };
            let mut entry = vec![(Value::text("check"), Value::text(&*class.1)), (Value::text("scope"), Value::Str(scope))];
            if joins {
                entry.push((Value::text("action"), Value::text("join")));
            }
            if !variables.is_empty() {
                entry.push((Value::text("with"), Value::Dict(variables)));
            }
            fixtures.push((Value::Str(name), Value::Dict(entry)));
        }
        if !fixtures.is_empty() {
            self.put("fixtures", Value::Dict(fixtures));
        }
    }

    /// A test that builds: its build comes before what it runs, in the same folder. A compile-only test is its build.
    pub(super) fn build(&mut self, reading: &mut Reading) {
        if self.is_base && reading.attr("build_system").is_none() && reading.attr("sourcepath").is_none() {
            return;
        }
        let made = match build(reading) {
            None => return,
            Some(made) => made.and_then(|script| plain(&script, true).map_err(str::to_owned)),
        };
        let script = match made {
            Ok(script) => script,
            Err(why) => {
                let instead = "write the commands that build it into `prerun_cmds`";
                return reading.tell_of(
                    "build_system",
                    Level::Refused,
                    format!("the build is not carried over: {why}"),
                    Some(instead),
                );
            }
        };
        if reading.root == Root::CompileOnly {
            self.leave(&["executable_opts", "postrun_cmds", "prerun_cmds"]);
            return self.put("executable", script);
        }
        // A folder of its own for `cd`, and no run without a build: ReFrame builds in a script of its own.
        let around = |text: &str| vec![Piece::Text(text.to_owned())];
        let pieces = [around("("), script.pieces().unwrap_or_default(), around(") || exit 1")];
        self.before(vec![Value::joined(pieces.concat())]);
        if !self.has("executable") && !self.is_base {
            self.put("executable", executable(reading));
        }
    }
}

/// The files that items and figures search.
fn files(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| files(item, found)),
        Value::Dict(entries) => {
            for (key, value) in entries {
                // A figure may be called so as well.
                match value {
                    Value::Str(_) | Value::Text(_) if key.as_str() == Some("file") => found.push(value.clone()),
                    _ => files(value, found),
                }
            }
        }
        _ => {}
    }
}
