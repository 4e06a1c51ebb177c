//! Facts of system, partition, environment and job.

use crate::interp::{Interp, Made, Stop};
use crate::value::{
    Piece, Thing, Value,
    cel::{Cel, Kind, Prec},
    cond::Subject,
};

impl Interp<'_> {
    /// What `self` knows by default; `None` if there is nothing of that name.
    pub(crate) fn own_fact(&self, name: &str, line: u32) -> Made<Option<Value>> {
        Ok(Some(match name {
            "current_partition" | "current_environ" if self.is_early => {
                return Err(Stop::new(line, format!("`self.{name}` is `None` until a partition is chosen"))
                    .level(crate::report::Level::Defect)
                    .instead("use it in a hook after `setup`"));
            }
            "current_system" => Value::Thing(Thing::Fact("system".to_owned())),
            "current_partition" => Value::Thing(Thing::Fact("partition".to_owned())),
            "current_environ" => Value::Thing(Thing::Fact("environ".to_owned())),
            "stdout" | "stderr" => Value::Thing(Thing::Output),
            "job" => Value::Thing(Thing::Job("job".to_owned())),
            "build_system" | "container_platform" => Value::Thing(Thing::Platform(name.to_owned())),
            "stagedir" => Value::known("stagedir", Kind::Text),
            "logger" => Value::Thing(Thing::Nothing),
            "name" | "unique_name" | "short_name" | "display_name" | "hashcode" if self.test.params.is_empty() => {
                Value::text(self.test.class.as_ref().map(|id| id.1.clone()).unwrap_or_default())
            }
            "name" | "unique_name" | "short_name" | "display_name" | "hashcode" | "variant_num" => {
                return Err(Stop::new(line, format!("`self.{name}` is ReFrame's own name of the case"))
                    .instead("put together what you need from the parameters"));
            }
            "prefix" | "outputdir" => {
                return Err(Stop::new(line, format!("`self.{name}` is a folder of ReFrame's"))
                    .instead("name files relative to the check, or by a variable"));
            }
            _ => return Ok(None),
        }))
    }

    /// An attribute of a fact.
    pub(crate) fn fact(&self, path: &str, name: &str, line: u32) -> Made {
        let subject = |text: &str, subject| Value::Cel(Cel::subject(text, Kind::Text, subject));
        let number = |text: &str| Value::known(text, Kind::Int);
        let below = || Value::Thing(Thing::Fact(format!("{path}.{name}")));
        Ok(match (path, name) {
            ("system", "name") => subject("system.name", Subject::System),
            ("partition", "name") => subject("partition.name", Subject::Partition),
            ("environ", "name") => subject("environ.name", Subject::Environ),
            ("partition", "fullname") => Value::Text(vec![
                Piece::Cel(Cel::subject("system.name", Kind::Text, Subject::System)),
                Piece::Text(":".to_owned()),
                Piece::Cel(Cel::subject("partition.name", Kind::Text, Subject::Partition)),
            ]),
            ("partition.scheduler", "registered_name") => Value::Cel(Cel::subject("scheduler", Kind::Text, Subject::Scheduler)),
            ("partition" | "environ", "features") => Value::known(&format!("{path}.features"), Kind::List),
            ("system" | "partition" | "environ", "extras") => Value::known(&format!("{path}.extras"), Kind::Map),
            ("partition", "scheduler" | "processor" | "devices") => below(),
            ("partition.processor", "num_cores_per_socket") => {
                Value::Cel(Cel::new("partition.processor.num_cores / partition.processor.num_sockets", Prec::Mul, Kind::Int))
            }
            ("partition.processor", "num_cpus" | "num_cores" | "num_sockets" | "num_cpus_per_core" | "num_cpus_per_socket") => {
                number(&format!("partition.processor.{name}"))
            }
            ("partition.processor", "arch" | "model" | "platform") => {
                let text = format!("partition.processor.{name}");
                Value::Cel(Cel::subject(text.clone(), Kind::Text, Subject::Fact(text)))
            }
            ("environ", "cc" | "cxx" | "ftn" | "nvcc") => Value::Text(vec![Piece::Shell(format!("${}", variable_of(name)))]),
            (path, "num_devices") if path.starts_with("partition.devices.") => number(&format!("{path}.num_devices")),
            (path, "arch" | "model") if path.starts_with("partition.devices.") => {
                let text = format!("{path}.{name}");
                Value::Cel(Cel::subject(text.clone(), Kind::Text, Subject::Fact(text)))
            }
            ("partition.processor", _) => {
                return Err(Stop::new(line, format!("`{name}` of the processor is not among Muster's facts"))
                    .instead(format!("write it into `extras` of the partition and read `partition.extras.{name}`")));
            }
            _ => {
                return Err(Stop::new(line, format!("`{name}` of the {path} is not among Muster's facts"))
                    .instead("write what the check needs into `extras` of the site file"));
            }
        })
    }

    /// An item of a fact: `devices[0]`.
    pub(crate) fn fact_item(&self, path: &str, index: &Value, default: Option<&Value>, line: u32) -> Made {
        let _ = default;
        if path.starts_with("partition.devices.") && *index == Value::Int(0) {
            return Ok(Value::Thing(Thing::Fact(path.to_owned())));
        }
        if path == "partition.devices" {
            return Err(Stop::new(line, "devices have no order here")
                .instead("say which: `self.current_partition.select_devices('gpu')`, which becomes `partition.devices.gpu`"));
        }
        Err(Stop::new(line, format!("an item of {path} is not among Muster's facts")))
    }

    /// A method of a fact.
    pub(crate) fn fact_method(&self, path: &str, name: &str, args: &[Value], line: u32) -> Made {
        match (path, name, args) {
            ("partition", "select_devices", [Value::Str(kind)]) => {
                Ok(Value::Thing(Thing::Fact(format!("partition.devices.{kind}"))))
            }
            _ => Err(Stop::new(line, format!("`{name}()` of the {path} is not among Muster's facts"))
                .instead("write what the check needs into `extras` of the site file")),
        }
    }
}

/// The environment variable that stands for a compiler of the environment.
pub(crate) fn variable_of(compiler: &str) -> &'static str {
    match compiler {
        "cc" => "CC",
        "cxx" => "CXX",
        "ftn" => "FC",
        _ => "NVCC",
    }
}
