//! A descriptor as a check.

use super::{
    data::{data, sources},
    descriptor::{Descriptor, Said},
    metrics,
};
use crate::{Level, value::Value};

/// What runs the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// A pod from the descriptor's image.
    Pods,
    Ec2,
}

type Entries = Vec<(String, Value)>;

const EC2: &str = "aws.ec2";

/// The folder with the user's scripts, as Anubis spells it.
const SCRIPTS: [&str; 3] = ["$(BAI_SCRIPTS_PATH)", "${BAI_SCRIPTS_PATH}", "$BAI_SCRIPTS_PATH"];

/// The keys of the check, in the order in which a person would write them.
pub(super) fn entries(descriptor: &mut Descriptor<'_>) -> Entries {
    // It says which keys there may be; these are of the only version that there is.
    descriptor.take("spec_version");
    schedule(descriptor);
    let engine = engine(descriptor);
    let instances = descriptor.number("hardware.distributed.num_instances").map_or(1, |said| said.value);
    let mut entries: Entries = vec![("name".to_owned(), Value::Str(name(descriptor)))];
    entries.extend(descr(descriptor).map(|descr| ("descr".to_owned(), Value::Str(descr))));
    entries.push(("valid_systems".to_owned(), texts(["*"])));
    entries.push(("valid_prog_environs".to_owned(), texts(["*"])));
    if engine == Engine::Ec2 {
        entries.push(("num_tasks".to_owned(), Value::Int(instances)));
        let why = "an instance ends itself by the time limit, and Anubis has none".to_owned();
        descriptor.say(1, Level::Note, why, Some("write `time_limit`: without it nothing is launched"));
    }
    let place = match engine {
        Engine::Ec2 => ec2(descriptor),
        Engine::Pods => pods(descriptor),
    };
    entries.extend(place);
    entries.extend(program(descriptor, engine, instances));
    entries.extend(variables(descriptor));
    // Anubis judges by the exit status alone.
    entries.push(("sanity".to_owned(), Value::List(vec![])));
    entries.extend(metrics::variables(descriptor).map(|variables| ("perf_variables".to_owned(), variables)));
    entries
}

/// Only what is started again and again is listed.
fn schedule(descriptor: &mut Descriptor<'_>) {
    let Some(Said { value, line }) = descriptor.text("info.scheduling").filter(|said| said.value != "single_run") else { return };
    let why = format!("Muster does not start by itself at `{value}`");
    descriptor.say(line, Level::Dropped, why, Some("start it from cron, a systemd timer or a CronJob: docs/first-night.md"));
}

fn engine(descriptor: &mut Descriptor<'_>) -> Engine {
    let Some(Said { value, line }) = descriptor.text("info.execution_engine") else { return Engine::Pods };
    match value.as_str() {
        EC2 => return Engine::Ec2,
        "default" | "kubernetes" => {}
        _ => descriptor.say(
            line,
            Level::Refused,
            format!("Muster has no engine `{value}`, so this becomes a check for pods"),
            Some("set `execution_engine` to \"aws.ec2\" for one on instances, and convert it again"),
        ),
    }
    Engine::Pods
}

fn name(descriptor: &mut Descriptor<'_>) -> String {
    let of_label = descriptor.text("info.labels.task_name");
    let of_info = descriptor.text("info.task_name");
    let Some(Said { value, line }) = of_label.or(of_info) else { return spelled(&descriptor.stem()) };
    let name = spelled(&value);
    if name != value {
        descriptor.say(line, Level::Note, format!("the check is called `{name}`: other letters cannot be in a name"), None);
    }
    name
}

/// With the letters that the name of a check may have, a letter or digit first.
fn spelled(name: &str) -> String {
    let words = name.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c))).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    let name = name.trim_start_matches(|c: char| !c.is_alphanumeric());
    if name.is_empty() { "benchmark".to_owned() } else { name.to_owned() }
}

fn descr(descriptor: &mut Descriptor<'_>) -> Option<String> {
    let said = descriptor.text("info.description")?;
    Some(said.value.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn ec2(descriptor: &mut Descriptor<'_>) -> Entries {
    let mut config: Vec<(Value, Value)> = Vec::new();
    let image = descriptor.text("aws.ec2.image").or_else(|| descriptor.text("env.image"));
    match image {
        Some(Said { value, .. }) if is_image(&value) => {
            config.push((Value::Str("ami".to_owned()), Value::Str(value)));
        }
        Some(Said { line, .. }) => {
            let why = "an instance needs the id of an AMI".to_owned();
            descriptor.say(line, Level::Refused, why, Some("write `ami: ami-..` or `ami: resolve:ssm:..` in `ec2_config`"));
        }
        None => {
            let why = "the descriptor names no AMI".to_owned();
            descriptor.say(1, Level::Refused, why, Some("write `ami: ami-..` or `ami: resolve:ssm:..` in `ec2_config`"));
        }
    }
    if let Some(Said { value, line }) = descriptor.text("hardware.instance_type") {
        if is_instance_type(&value) {
            config.push((Value::Str("instance_type".to_owned()), Value::Str(value)));
        } else {
            let why = format!("`{value}` is not an instance type");
            descriptor.say(line, Level::Refused, why, Some("write `instance_type: c7i.8xlarge` or another one in `ec2_config`"));
        }
    }
    let data = data(descriptor);
    if !data.is_empty() {
        config.push((Value::Str("data".to_owned()), Value::List(data)));
    }
    if let Some(said) = descriptor.text("env.docker_image") {
        let why = "an instance runs the program itself, without a container".to_owned();
        descriptor.say(said.line, Level::Dropped, why, Some("put what the image holds into the AMI, `data` or `sourcesdir`"));
    }
    // The script is root on an instance of its own, and has its shared memory.
    descriptor.flag("env.privileged");
    descriptor.flag("env.extended_shm");
    vec![("ec2_config".to_owned(), Value::Dict(config))]
}

/// Whether a check may name its image so.
fn is_image(text: &str) -> bool {
    if let Some(name) = text.strip_prefix("resolve:ssm:") {
        return name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-:".contains(c));
    }
    let digits = text.strip_prefix("ami-").unwrap_or_default();
    matches!(digits.len(), 8 | 17) && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a check may name a type so: a family and a size.
fn is_instance_type(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    text.split_once('.').is_some_and(|(family, size)| is_part(family) && is_part(size))
}

fn pods(descriptor: &mut Descriptor<'_>) -> Entries {
    let mut entries = Entries::new();
    let image = descriptor.text("env.docker_image").or_else(|| descriptor.text("env.image"));
    match image {
        Some(said) => entries.push(("image".to_owned(), Value::Str(said.value))),
        None => descriptor.say(1, Level::Defect, "the descriptor has no `env.docker_image`".to_owned(), Some("write `image`")),
    }
    let text = |text: &str| Value::Str(text.to_owned());
    let mut spec: Vec<(Value, Value)> = Vec::new();
    if let Some(said) = descriptor.text("hardware.instance_type") {
        let selector = Value::Dict(vec![(text("node.kubernetes.io/instance-type"), Value::Str(said.value))]);
        spec.push((text("nodeSelector"), selector));
    }
    let mut container = vec![(text("name"), text("main"))];
    if descriptor.flag("env.privileged").is_some_and(|said| said.value) {
        container.push((text("securityContext"), Value::Dict(vec![(text("privileged"), Value::Bool(true))])));
    }
    // Anubis mounts it unless a descriptor says no.
    if descriptor.flag("env.extended_shm").is_none_or(|said| said.value) {
        let mount = Value::Dict(vec![(text("name"), text("shm")), (text("mountPath"), text("/dev/shm"))]);
        container.push((text("volumeMounts"), Value::List(vec![mount])));
        let memory = Value::Dict(vec![(text("medium"), text("Memory"))]);
        let volume = Value::Dict(vec![(text("name"), text("shm")), (text("emptyDir"), memory)]);
        spec.push((text("volumes"), Value::List(vec![volume])));
    }
    if container.len() > 1 {
        spec.push((text("containers"), Value::List(vec![Value::Dict(container)])));
    }
    if !spec.is_empty() {
        entries.push(("k8s_patch".to_owned(), Value::Dict(vec![(text("spec"), Value::Dict(spec))])));
    }
    if descriptor.has("data.sources.") {
        let line = descriptor.line_of("data.sources.");
        let sources = sources(descriptor).len();
        let why = format!("{sources} data source(s) are not fetched for pods");
        descriptor.say(line, Level::Refused, why, Some("mount a volume with `k8s_patch`, or fetch them in `prerun_cmds`"));
    }
    entries
}

/// The command, by the strategy.
fn program(descriptor: &mut Descriptor<'_>, engine: Engine, instances: i64) -> Entries {
    let code = descriptor.text("ml.benchmark_code");
    let options = descriptor.text("ml.args").map(|said| said.value).unwrap_or_default();
    let line = code.as_ref().map_or(1, |said| said.line);
    let mut code = code.map(|said| said.value).unwrap_or_default();
    if SCRIPTS.iter().any(|scripts| code.contains(scripts) || options.contains(scripts)) {
        for scripts in SCRIPTS {
            code = code.replace(scripts, ".");
        }
        let why = "the scripts of the benchmark are in `sourcesdir`".to_owned();
        descriptor.say(
            line,
            Level::Note,
            why,
            Some("put what the client sent with `--script` into the folder src beside the check"),
        );
    }
    let options = SCRIPTS.iter().fold(options, |options, scripts| options.replace(scripts, "."));
    let launcher = strategy(descriptor, engine, instances);
    if code.is_empty() {
        let why = "the program is the image's own, which Muster does not start".to_owned();
        descriptor.say(line, Level::Refused, why, Some("write the entry point of the image into `executable`"));
        return Entries::new();
    }
    let mut entries: Entries = vec![("executable".to_owned(), Value::Str(format!("{launcher}{code}")))];
    if !options.trim().is_empty() {
        entries.push(("executable_opts".to_owned(), words(&options)));
    }
    entries
}

/// Words, where blanks alone separate them: then `-S` can change one of them. Else the text as it stands.
fn words(options: &str) -> Value {
    let is_plain = !options.contains(['"', '\'', '\\', '$', '`']);
    if is_plain { texts(options.split_whitespace()) } else { texts([options.trim()]) }
}

/// What stands before the command: a launcher, where the strategy has one.
fn strategy(descriptor: &mut Descriptor<'_>, engine: Engine, instances: i64) -> String {
    let processes = processes(descriptor);
    let Some(Said { value, line }) = descriptor.text("hardware.strategy") else { return String::new() };
    match (value.to_ascii_lowercase().as_str(), engine) {
        ("single_node", _) if instances > 1 => {
            let why = format!("the strategy is `single_node`, and {instances} instances are asked for");
            descriptor.say(line, Level::Defect, why, None);
        }
        ("single_node", _) => {}
        ("horovod", Engine::Ec2) => {
            let why = "the first instance starts the program on all of them with mpirun, which the AMI needs".to_owned();
            descriptor.say(line, Level::Note, why, None);
            let processes = processes.unwrap_or(1) * instances;
            return format!("mpirun --allow-run-as-root -np {processes} --hostfile \"$RFM_HOSTFILE\" ");
        }
        ("horovod", Engine::Pods) => {
            let why = format!("the strategy `horovod` needs an MPIJob of {instances} workers");
            descriptor.say(line, Level::Refused, why, Some("write the MPIJob as `k8s_config`, in place of `image`"));
        }
        (other, _) => {
            let why = format!("the strategy `{other}` has no counterpart");
            descriptor.say(line, Level::Refused, why, Some("write the pods of it as `k8s_config`"));
        }
    }
    String::new()
}

/// The processes an instance, if the descriptor says a number.
fn processes(descriptor: &mut Descriptor<'_>) -> Option<i64> {
    let path = "hardware.distributed.processes_per_instance";
    let Said { value, line } = descriptor.take(path)?;
    match &value {
        Value::Int(number) if *number > 0 => return Some(*number),
        Value::Str(text) if text.trim().parse::<i64>().is_ok_and(|number| number > 0) => return text.trim().parse().ok(),
        Value::Str(text) if text == "gpus" => {
            let why = "a process for each GPU: how many that is, only EC2 knows".to_owned();
            descriptor.say(line, Level::Refused, why, Some("write the number after `-np`, times the number of instances"));
        }
        _ => descriptor.say(line, Level::Defect, format!("`{path}` is a whole number above 0, or \"gpus\""), None),
    }
    None
}

fn variables(descriptor: &mut Descriptor<'_>) -> Option<(String, Value)> {
    let variables: Vec<(Value, Value)> =
        descriptor.below("env.vars").into_iter().map(|(name, said)| (Value::Str(name), said.value)).collect();
    (!variables.is_empty()).then(|| ("env_vars".to_owned(), Value::Dict(variables)))
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value {
    Value::List(texts.into_iter().map(|text| Value::Str(text.to_owned())).collect())
}
