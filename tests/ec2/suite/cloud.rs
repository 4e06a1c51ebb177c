//! A cloud of one test: its address, and what the test may do to it (`fixture/control.py`).

use serde_json::{Value, json};
use std::{
    cell::RefCell,
    env,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::Command,
    time::Duration,
};

use crate::common::eventually;

/// The longest that something of a cloud may take.
const SOON: Duration = Duration::from_mins(1);

/// One EC2 and S3, with three subnets, an image and a bucket. It ends with this value.
pub(crate) struct Cloud {
    connection: RefCell<BufReader<UnixStream>>,
    pub(crate) endpoint: String,
    pub(crate) region: String,
    pub(crate) bucket: String,
    pub(crate) subnets: Vec<String>,
    /// An image, and the parameter of SSM that names it.
    pub(crate) image: String,
    pub(crate) parameter: String,
}

impl Cloud {
    pub(crate) fn start() -> Self {
        let socket = PathBuf::from(env::var_os("MUSTER_EC2").expect("the tests run within tests/ec2/run"));
        let mut connection = BufReader::new(UnixStream::connect(socket).expect("the fixture"));
        let said = read(&mut connection);
        let text = |key: &str| said[key].as_str().unwrap_or_else(|| panic!("no {key}: {said}")).to_owned();
        let subnets = said["subnets"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Self {
            endpoint: text("endpoint"),
            region: text("region"),
            bucket: text("bucket"),
            subnets: subnets.collect(),
            image: text("image"),
            parameter: text("parameter"),
            connection: RefCell::new(connection),
        }
    }

    /// Does something to the cloud, or asks it something: a name of `fixture/control.py` and its arguments.
    #[allow(clippy::needless_pass_by_value, reason = "a call has `json!` as its argument")]
    pub(crate) fn ask(&self, what: &str, arguments: Value) -> Value {
        let mut question = arguments;
        question["do"] = what.into();
        let mut connection = self.connection.borrow_mut();
        writeln!(connection.get_mut(), "{question}").expect("the fixture");
        let answer = read(&mut connection);
        assert!(answer["error"].is_null(), "{question}: {}", answer["error"]);
        answer
    }

    /// Switches: `{ "boot": 5, "minute": 0.1, "executes": false }`.
    pub(crate) fn set(&self, switches: Value) {
        self.ask("set", switches);
    }

    /// An error instead of the next answers to an action.
    pub(crate) fn fault(&self, fault: Value) {
        self.ask("fault", fault);
    }

    /// The instances, in the order of their launches: id, rank, state, reason, tags, shutdowns, console.
    pub(crate) fn instances(&self) -> Vec<Value> {
        self.ask("instances", json!({}))["instances"].as_array().cloned().unwrap_or_default()
    }

    /// The ids of the instances in a state, when there are so many; waits for it.
    pub(crate) fn await_state(&self, state: &str, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        eventually(&format!("{count} instances that are {state}"), SOON, || {
            let instances = self.instances();
            let of = instances.iter().filter(|one| one["state"] == state);
            found = of.filter_map(|one| one["id"].as_str()).map(str::to_owned).collect();
            found.len() == count
        });
        found
    }

    /// How often each action was called.
    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.ask("calls", json!({}))["calls"][action].as_u64().unwrap_or(0)
    }

    /// The parameters of all calls of an action, in order.
    pub(crate) fn requests(&self, action: &str) -> Vec<Value> {
        let answer = self.ask("requests", json!({ "action": action }));
        answer["requests"].as_array().into_iter().flatten().map(|each| each["parameters"].clone()).collect()
    }

    /// What is still there: instances, volumes, security groups, keys, placement groups, objects.
    pub(crate) fn left(&self) -> Value {
        self.ask("left", json!({}))
    }

    /// Credentials that the cloud takes, and nothing of the machine.
    pub(crate) fn environment(command: &mut Command) {
        for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"] {
            command.env_remove(name);
        }
        command
            .env("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_CONFIG_FILE", "/dev/null")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    }
}

fn read(connection: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    connection.read_line(&mut line).expect("the fixture answers");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("the fixture said {line:?}: {error}"))
}
