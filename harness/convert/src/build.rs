//! Build systems: the commands that ReFrame would write, as lines of a script.
//!
//! Compilers and flags of the environment are variables here (`CC`, `CFLAGS`), which the converted site file sets.

use crate::{
    reading::Reading,
    value::{Piece, Value},
    world::Root,
};

/// The build of a test as one line, each command after the success of the one before; `None` if it builds nothing.
pub(crate) fn build(reading: &Reading) -> Option<Result<Value, String>> {
    if matches!(reading.root, Root::RunOnly | Root::None) {
        return None;
    }
    let attr = |name: &str| reading.attr(name).filter(|value| !matches!(value, Value::None | Value::Absent));
    let source = attr("sourcepath").filter(|source| source.truth() != Some(false));
    let system = match attr("build_system") {
        Some(Value::Str(name)) => name.clone(),
        Some(_) => return Some(Err("the build system is known only when it runs".to_owned())),
        None if source.is_some() => "SingleSource".to_owned(),
        None => "Make".to_owned(),
    };
    let script = Script { reading };
    let lines = match system.as_str() {
        "SingleSource" => script.single_source(source),
        "Make" => script.make().map(|command| vec![command]),
        "CMake" => script.configured(true),
        "Autotools" => script.configured(false),
        "CustomBuild" => script.list("commands"),
        other => Err(format!("the build system `{other}` has no counterpart")),
    };
    let whole = || {
        let all = [script.own_list("prebuild_cmds")?, lines?, script.own_list("postbuild_cmds")?].concat();
        if all.is_empty() { Err("it has no command".to_owned()) } else { line_of(&all, " && ") }
    };
    Some(whole())
}

struct Script<'a, 'w> {
    reading: &'a Reading<'w>,
}

impl Script<'_, '_> {
    fn setting(&self, name: &str) -> Option<Value> {
        let value = self.reading.attr(&format!("build_system.{name}")).cloned();
        value.filter(|value| !matches!(value, Value::None | Value::Absent))
    }

    fn list(&self, name: &str) -> Result<Vec<Value>, String> {
        items(self.setting(name).as_ref(), name)
    }

    fn own_list(&self, name: &str) -> Result<Vec<Value>, String> {
        items(self.reading.attr(name), name)
    }

    /// A flag's items, or the environment's.
    fn flags(&self, name: &str, variable: &str) -> Result<Vec<Value>, String> {
        let own = self.list(name)?;
        Ok(if own.is_empty() { vec![shell(&format!("${variable}"))] } else { own })
    }

    fn compiler(&self, name: &str, variable: &str, default: &str) -> Value {
        self.setting(name).unwrap_or_else(|| shell(&format!("${{{variable}:-{default}}}")))
    }

    fn single_source(&self, source: Option<&Value>) -> Result<Vec<Value>, String> {
        let source = self.setting("srcfile").or_else(|| source.cloned()).ok_or("the build has no source file")?;
        let suffix = source.as_str().and_then(|path| path.rsplit_once('.')).map(|(_, suffix)| suffix).unwrap_or_default();
        let lang = self.setting("lang").and_then(|lang| lang.as_str().map(str::to_owned));
        let (compiler, flags) = match (lang.as_deref(), suffix) {
            (Some("C"), _) | (None, "c" | "upc") => (self.compiler("cc", "CC", "cc"), self.flags("cflags", "CFLAGS")?),
            (Some("CUDA"), _) | (None, "cu") => (self.compiler("nvcc", "NVCC", "nvcc"), self.flags("cxxflags", "CXXFLAGS")?),
            (Some("C++"), _) | (None, "cc" | "cp" | "cxx" | "cpp" | "CPP" | "c++" | "C") => {
                (self.compiler("cxx", "CXX", "c++"), self.flags("cxxflags", "CXXFLAGS")?)
            }
            (Some("Fortran"), _)
            | (None, "f" | "F" | "for" | "ftn" | "f90" | "F90" | "f95" | "F95" | "f03" | "F03" | "f08" | "F08") => {
                (self.compiler("ftn", "FC", "gfortran"), self.flags("fflags", "FFLAGS")?)
            }
            _ => return Err("the language of the source file is not known here".to_owned()),
        };
        let mut words = vec![compiler];
        words.extend(self.flags("cppflags", "CPPFLAGS")?);
        for folder in self.list("include_path")? {
            words.push(Value::text("-I"));
            words.push(folder);
        }
        words.extend(flags);
        words.extend([source, Value::text("-o"), executable(self.reading)]);
        words.extend(self.flags("ldflags", "LDFLAGS")?);
        line(&words).map(|line| vec![line])
    }

    fn make(&self) -> Result<Value, String> {
        let mut words = vec![Value::text("make")];
        for (name, option) in [("makefile", "-f"), ("srcdir", "-C")] {
            if let Some(value) = self.setting(name) {
                words.extend([Value::text(option), value]);
            }
        }
        words.extend(self.jobs());
        // What the environment says goes over what the makefile says, as ReFrame has it.
        for (name, variable) in [("cc", "CC"), ("cxx", "CXX"), ("ftn", "FC"), ("nvcc", "NVCC")] {
            words.push(match self.setting(name) {
                Some(value) => line_of(&[Value::text(format!("{variable}=\"")), value, Value::text("\"")], "")?,
                None => shell(&format!("${{{variable}:+{variable}=\"${variable}\"}}")),
            });
        }
        for (name, variable) in [
            ("cppflags", "CPPFLAGS"),
            ("cflags", "CFLAGS"),
            ("cxxflags", "CXXFLAGS"),
            ("fflags", "FCFLAGS"),
            ("ldflags", "LDFLAGS"),
        ] {
            let flags = self.list(name)?;
            if !flags.is_empty() {
                words.push(line_of(&[Value::text(format!("{variable}=\"")), line(&flags)?, Value::text("\"")], "")?);
            }
        }
        words.extend(self.list("options")?);
        line(&words)
    }

    fn jobs(&self) -> Vec<Value> {
        let jobs = self.reading.attr("build_system.max_concurrency");
        match jobs {
            None => vec![Value::text("-j"), Value::text("1")],
            Some(Value::None) => vec![Value::text("-j")],
            Some(jobs) => vec![Value::text("-j"), jobs.clone()],
        }
    }

    /// `CMake`, or configure and make.
    fn configured(&self, is_cmake: bool) -> Result<Vec<Value>, String> {
        let mut lines = Vec::new();
        if let Some(folder) = self.setting("srcdir") {
            lines.push(line(&[Value::text("cd"), folder])?);
        }
        let folder = self.setting("builddir").unwrap_or_else(|| Value::text("."));
        let configure = self.setting("configuredir").unwrap_or_else(|| Value::text("."));
        let (Some(folder), Some(".")) = (folder.as_str(), configure.as_str()) else {
            return Err("where it is configured is known only when it runs".to_owned());
        };
        let depth = folder.split('/').filter(|part| !matches!(*part, "" | ".")).count();
        if depth > 0 {
            lines.push(Value::text(format!("mkdir -p {folder}")));
            lines.push(Value::text(format!("cd {folder}")));
        }
        let up = if depth == 0 { ".".to_owned() } else { vec![".."; depth].join("/") };
        let mut words = vec![Value::text(if is_cmake { "cmake".to_owned() } else { format!("{up}/configure") })];
        words.extend(self.list("config_opts")?);
        for name in ["cc", "cxx", "ftn", "cflags", "cxxflags", "fflags", "ldflags", "cppflags"] {
            if self.setting(name).is_some_and(|value| value.truth() != Some(false)) {
                return Err(format!(
                    "`build_system.{name}` has no counterpart for this build system: write it in `env_vars` of the environment"
                ));
            }
        }
        if is_cmake {
            words.push(Value::Str(up));
        }
        lines.push(line(&words)?);
        let mut make = vec![Value::text("make")];
        make.extend(self.jobs());
        make.extend(self.list("build_opts")?);
        lines.push(line(&make)?);
        Ok(lines)
    }
}

/// What a test that builds runs.
pub(crate) fn executable(reading: &Reading) -> Value {
    let own = reading.attr("executable").filter(|value| !matches!(value, Value::None | Value::Absent)).cloned();
    own.unwrap_or_else(|| Value::text(format!("./{}", reading.id.1)))
}

fn shell(text: &str) -> Value {
    Value::Text(vec![Piece::Shell(text.to_owned())])
}

fn items(value: Option<&Value>, name: &str) -> Result<Vec<Value>, String> {
    match value {
        None | Some(Value::None | Value::Absent) => Ok(vec![]),
        Some(list) => list.items().map(<[Value]>::to_vec).ok_or_else(|| format!("`{name}` depends on a branch")),
    }
}

fn line(words: &[Value]) -> Result<Value, String> {
    line_of(words, " ")
}

fn line_of(words: &[Value], between: &str) -> Result<Value, String> {
    let mut pieces = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            pieces.push(Piece::Text(between.to_owned()));
        }
        pieces.extend(word.pieces().ok_or("a word of the build is known only when it runs")?);
    }
    Ok(Value::joined(pieces))
}
