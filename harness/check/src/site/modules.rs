//! Environment modules: how a job script gets the command `module`, and the lines that load.
//!
//! A load that fails must end the job, for a program that runs without its libraries measures something else. Tmod 4 and
//! later and Lmod say so by their exit status, also in a POSIX sh; Tmod 3 does not, and is asked what is loaded. The
//! lines are ReFrame's (`module use`, `load`, `unuse`, `restore`, `spack load`), with a function in front that looks at
//! the status.
//!
//! Not done here: unloading what is in the way. Lmod swaps by itself; Tmod refuses, and the case ends with that.

use muster_text::{
    Value,
    decode::{Context, Decode, OneOrMany},
    diagnostic::Span,
    keys, words,
    yaml::{Kind, Node},
};
use serde_json::json;
use std::fmt::Write;

words! {
    /// The program that loads modules on a system: ReFrame's words, those of its earlier versions too.
    pub enum ModulesSystem {
        Lmod = "lmod",
        /// Environment Modules of any version, also those whose exit status is always 0.
        Tmod = "tmod" | "tmod31" | "tmod32",
        /// Environment Modules, version 4 and later.
        Envmod = "tmod4" | "envmod",
        Spack = "spack",
        /// None: what modules would bring is there without them.
        Nomod = "nomod",
    }
}

impl ModulesSystem {
    /// The variables that local jobs inherit to find it, and the modules that the user sees.
    pub fn pass_env(self) -> &'static [&'static str] {
        match self {
            Self::Lmod | Self::Envmod | Self::Tmod => &["MODULESHOME", "MODULEPATH", "LMOD_PKG"],
            Self::Spack => &["SPACK_ROOT"],
            Self::Nomod => &[],
        }
    }

    /// The lines that define its command, from the first of the files that is there.
    pub(crate) fn init(self) -> String {
        let (command, files) = match self {
            Self::Nomod => return String::new(),
            Self::Lmod => ("module", LMOD_FILES),
            Self::Envmod | Self::Tmod => ("module", TMOD_FILES),
            // Where the program is found, its files are beside it.
            Self::Spack => return SPACK_INIT.to_owned(),
        };
        format!(
            "for rfm_init in {files}; do\nif [ -r \"$rfm_init\" ]; then . \"$rfm_init\"; fi\nif command -v {command} > /dev/null; then break; fi\ndone\n"
        )
    }

    /// `rfm_load`, in front of every line that loads.
    pub(crate) fn loader(self) -> String {
        let (before, after) = match self {
            Self::Nomod => return String::new(),
            Self::Lmod | Self::Envmod | Self::Spack => ("", ""),
            Self::Tmod => (TMOD_BEFORE, TMOD_AFTER),
        };
        format!("rfm_load() {{\n{PRESENT}{before}{RUN}{after}}}\n")
    }

    /// The lines that load a module.
    pub(crate) fn load(self, module: &Module) -> String {
        let Module { name, collection, path, .. } = module;
        let mut lines = String::new();
        match self {
            Self::Nomod => {}
            Self::Spack => {
                let _ = writeln!(lines, "rfm_load spack load {name}");
            }
            // What a collection restores has paths of its own.
            _ if *collection => {
                let _ = writeln!(lines, "rfm_load module restore {name}");
            }
            _ => {
                if let Some(path) = path {
                    let _ = writeln!(lines, "module use {path}");
                }
                let _ = writeln!(lines, "rfm_load module load {name}");
                // Lmod unloads what was loaded from a path that is removed.
                if let (Some(path), Self::Envmod | Self::Tmod) = (path, self) {
                    let _ = writeln!(lines, "module unuse {path}");
                }
            }
        }
        lines
    }
}

const LMOD_FILES: &str = "\"${LMOD_PKG:+$LMOD_PKG/init/sh}\" \"${MODULESHOME:+$MODULESHOME/init/sh}\" \
                          /etc/profile.d/lmod.sh /etc/profile.d/z00_lmod.sh /usr/share/lmod/lmod/init/sh";
const TMOD_FILES: &str = "\"${MODULESHOME:+$MODULESHOME/init/sh}\" /etc/profile.d/modules.sh \
                          /usr/share/Modules/init/sh /usr/share/modules/init/sh /opt/modules/default/init/sh";
const SPACK_INIT: &str = "rfm_spack=$(command -v spack)\n\
rfm_init=\"${SPACK_ROOT:-${rfm_spack%/bin/spack}}/share/spack/setup-env.sh\"\n\
if [ -r \"$rfm_init\" ]; then . \"$rfm_init\"; fi\n";

const PRESENT: &str = "command -v \"$1\" > /dev/null || rfm_fault \"\\`$*\\` failed: there is no \\`$1\\` on $(uname -n); prepare_cmds may source what defines it\"\n";
const RUN: &str = "\"$@\" || rfm_fault \"\\`$*\\` failed on $(uname -n)\"\n";

/// The exit status of version 3 is always 0. If the list of loaded modules has changed, something was loaded, perhaps by another name.
const TMOD_BEFORE: &str = "rfm_before=${LOADEDMODULES:-}\n";
const TMOD_AFTER: &str = "if [ \"$2\" != load ] || [ \"$rfm_before\" != \"${LOADEDMODULES:-}\" ]; then return; fi
shift 2
for rfm_name; do
case \":${LOADEDMODULES:-}:\" in
*\":$rfm_name:\"* | *\":$rfm_name/\"*) ;;
*) rfm_fault \"\\`module load $rfm_name\\` failed on $(uname -n)\" ;;
esac
done
";

/// One module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// `gcc/12.2.0`, or what `spack load` takes. The shell expands it.
    pub name: String,
    /// It names a collection, which is restored.
    pub collection: bool,
    /// Searched for it, beside where modules are searched anyway.
    pub path: Option<String>,
    /// Its place in the file.
    pub span: Span,
}

keys! {
    /// The mapping form of a module.
    pub struct LongModule ("a module") {
        /// Its name, as in `module load NAME`.
        @required name: String,
        /// Whether it is a collection: `module restore`. Default: false.
        collection: bool,
        /// A folder of modulefiles to add: `module use`.
        path: String,
    }
    instead {
        "version" => "write it after the name: `gcc/12.2.0`",
    }
}

impl Decode for Module {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let long = match context.kind(node)? {
            Kind::Map(_) => LongModule::decode(node, context)?,
            _ => LongModule { name: Some(String::decode(node, context)?), ..LongModule::default() },
        };
        let name = long.name?.trim().to_owned();
        if name.is_empty() || name.contains('\n') {
            return context.wrong(node, "a module needs a name of one line", Some("write it as for `module load`: gcc/12.2.0"));
        }
        Some(Self { name, collection: long.collection.unwrap_or(false), path: long.path, span: node.place() })
    }

    fn schema() -> Value {
        json!({ "anyOf": [String::schema(), LongModule::schema()] })
    }
}

/// The modules of a key that may be missing.
pub(crate) fn list(modules: Option<&OneOrMany<Module>>) -> Vec<Module> {
    modules.map(|modules| modules.0.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str) -> Module {
        Module { name: name.to_owned(), collection: false, path: None, span: Span::default() }
    }

    #[test]
    fn the_lines_are_those_of_each_system() {
        let modules = [
            module("gcc/12"),
            Module { path: Some("$HOME/mods".to_owned()), ..module("own") },
            Module { collection: true, ..module("mine") },
        ];
        let lines = |system: ModulesSystem| modules.iter().map(|module| system.load(module)).collect::<String>();
        insta::assert_snapshot!(lines(ModulesSystem::Lmod), @"
        rfm_load module load gcc/12
        module use $HOME/mods
        rfm_load module load own
        rfm_load module restore mine
        ");
        insta::assert_snapshot!(lines(ModulesSystem::Envmod), @"
        rfm_load module load gcc/12
        module use $HOME/mods
        rfm_load module load own
        module unuse $HOME/mods
        rfm_load module restore mine
        ");
        insta::assert_snapshot!(lines(ModulesSystem::Spack), @"
        rfm_load spack load gcc/12
        rfm_load spack load own
        rfm_load spack load mine
        ");
        assert_eq!(lines(ModulesSystem::Nomod), "");
    }
}
