//! Against moto, as a process of the test. Without it, what was not tested is said.

use super::{
    super::{http::Http, wire::now},
    Aws, KEYS, client,
};
use crate::{
    cloud::{
        Cloud, CloudError, Images, Method, Object, Tags,
        aws::answers::Done,
        contract::{self, World, filter, request},
    },
    plan::{self, Handle, testing::workload},
    preflight,
    resolve::Resolver,
    rights::{Plan, policy},
};
use bytes::Bytes;
use muster_core::job::scheduler::Finding;
use muster_text::Value;
use serde_json::json;
use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

struct Moto {
    /// It ends when its input does, at the latest with this process.
    process: Child,
    said: BufReader<ChildStdout>,
    address: String,
    volume: String,
    /// The keys of who may read images and write below `ci/`, and of who has the policy that was set.
    reader: (String, String),
    harness: (String, String),
    world: World,
}

impl Moto {
    /// What the user `harness` may do.
    fn allow(&mut self, policy: &Value) {
        writeln!(self.process.stdin.as_ref().unwrap(), "{policy}").unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line, "set\n");
    }

    fn client_of(&self, (key, secret): &(String, String)) -> Aws {
        client(&self.address, &[("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret)])
    }

    /// From now on moto checks signatures and rights.
    async fn check_rights(&self) {
        let reset = ::http::Request::post(format!("{}/moto-api/reset-auth", self.address)).header("content-type", "text/plain");
        let reset = reset.body(Bytes::from_static(b"0")).unwrap();
        let answer = Http::new().unwrap().send(reset, Duration::from_secs(10)).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The one that tests share which set nothing for all.
fn shared(what: &str) -> Option<&'static Moto> {
    static MOTO: LazyLock<Option<Moto>> = LazyLock::new(|| start("what the tests share"));
    let moto = MOTO.as_ref();
    if moto.is_none() {
        eprintln!("SKIPPED: {what}");
    }
    moto
}

/// `None`: it is not here, and that was said.
fn start(what: &str) -> Option<Moto> {
    let Some(python) = env::var_os("MUSTER_EC2_PYTHON") else {
        eprintln!("SKIPPED: {what}: run it with `tests/ec2/run cargo test -p muster-ec2`");
        return None;
    };
    let mut process = Command::new(python)
        .args(["-c", include_str!("moto.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut line, mut out) = (String::new(), BufReader::new(process.stdout.take().unwrap()));
    out.read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let text = |key: &str| said[key].as_str().unwrap().to_owned();
    let world = World {
        image: text("image"),
        instance_type: "c7i.8xlarge".to_owned(),
        subnet: text("subnet"),
        vpc: text("vpc"),
        bucket: "bench".to_owned(),
        parameter: ("/images/bench".to_owned(), text("image")),
    };
    let key = |at: usize| said["harness"][at].as_str().unwrap().to_owned();
    let (reader, harness) = ((text("key"), text("secret")), (key(0), key(1)));
    Some(Moto { process, said: out, address: text("address"), volume: text("volume"), reader, harness, world })
}

#[tokio::test]
async fn the_client_does_what_every_region_does() {
    let Some(moto) = shared("the client of EC2 and S3") else { return };
    let (cloud, world) = (client(&moto.address, &KEYS), &moto.world);
    contract::what_exists_is_found_and_nothing_else(&cloud, world).await;
    contract::instances_are_launched_found_by_their_tags_and_ended(&cloud, world).await;
    contract::a_group_is_created_once_found_by_its_tags_and_deleted(&cloud, world).await;
    contract::objects_are_kept_read_from_an_offset_listed_and_deleted(&cloud, world).await;

    let mine = [filter("tag:rfm", "volume")];
    assert_eq!(cloud.free_volumes(&mine).await.unwrap()[0].id, moto.volume);
    cloud.delete_volume(&moto.volume).await.unwrap();
    cloud.delete_volume(&moto.volume).await.unwrap();
    assert_eq!(cloud.free_volumes(&mine).await.unwrap(), []);
    let launched = cloud.run_instances(&request(world, "rfm-console-0", 1)).await.unwrap();
    assert!(cloud.console(&launched[0].id, true).await.unwrap().contains("Linux version"));
}

#[tokio::test]
async fn every_page_is_read() {
    let Some(moto) = shared("the pages of EC2 and S3") else { return };
    let (cloud, world) = (client(&moto.address, &KEYS), &moto.world);
    // Moto makes a page of at most as many reservations as EC2 does of instances.
    for batch in 0..5 {
        cloud.run_instances(&request(world, &format!("rfm-pages-{batch}"), 50)).await.unwrap();
    }
    let all = cloud.instances(&[filter("tag:rfm-managed", "true")]).await.unwrap();
    let all: Vec<_> = all.into_iter().filter(|one| one.token.starts_with("rfm-pages-")).collect();
    assert_eq!(all.len(), 250);
    let ids: Vec<String> = all.into_iter().map(|one| one.id).collect();
    cloud.terminate(&world.instance_type, &ids).await.unwrap();

    // A page of S3 has 50 there.
    let some = futures_util::stream::iter(0..120);
    let put = async |at: u32| cloud.put("bench", &format!("many/{at:03}"), vec![b'x']).await.unwrap();
    futures_util::StreamExt::for_each_concurrent(some, 16, put).await;
    let objects = cloud.objects("bench", "many/").await.unwrap();
    assert_eq!(objects.len(), 120);
    assert!(objects.iter().map(|one| &one.key).is_sorted());
    let keys: Vec<String> = objects.into_iter().map(|Object { key, .. }| key).collect();
    cloud.delete("bench", &keys).await.unwrap();
    assert_eq!(cloud.objects("bench", "many/").await.unwrap(), []);
}

#[tokio::test]
async fn who_has_an_address_reads_and_writes_with_it_until_it_ends() {
    let Some(moto) = shared("presigned addresses") else { return };
    let cloud = client(&moto.address, &KEYS);
    let until = now().plus(Duration::from_hours(1));
    let wanted = [(Method::Put, "ci/a b+c".to_owned()), (Method::Get, "ci/a b+c".to_owned())];
    let addresses = cloud.presign("bench", &wanted, until).await.unwrap();
    let http = Http::new().unwrap();
    let send = async |method: &str, address: &str, body: &'static [u8]| {
        let request = ::http::Request::builder().method(method).uri(address).body(Bytes::from_static(body)).unwrap();
        http.send(request, Duration::from_secs(10)).await.unwrap()
    };
    assert_eq!(send("PUT", &addresses[0], b"from the instance").await.status(), 200);
    assert_eq!(send("GET", &addresses[1], b"").await.body().as_ref(), b"from the instance");
    assert_eq!(cloud.get("bench", "ci/a b+c", 5).await.unwrap().unwrap().bytes, b"the instance");

    let expires = |address: &str| {
        let rest = address.split_once("X-Amz-Expires=").unwrap().1;
        rest.split('&').next().unwrap().parse::<u32>().unwrap()
    };
    assert!((3590..=3600).contains(&expires(&addresses[0])), "{}", expires(&addresses[0]));
    let far = cloud.presign("bench", &wanted, until.plus(Duration::from_hours(24 * 30))).await.unwrap();
    assert_eq!(expires(&far[0]), 604_800, "S3 takes seven days");
    // An address is of no use after the credentials that signed it.
    let ends = jiff::Timestamp::now().checked_add(Duration::from_mins(10)).unwrap().to_string();
    let ending = [KEYS[0], KEYS[1], ("AWS_CREDENTIAL_EXPIRATION", &*ends), ("AWS_SESSION_TOKEN", "token")];
    let ending = client(&moto.address, &ending).presign("bench", &wanted, until).await.unwrap();
    assert!((590..=600).contains(&expires(&ending[0])) && ending[0].contains("X-Amz-Security-Token=token"), "{}", ending[0]);
}

#[tokio::test]
async fn a_file_of_many_pieces_arrives_whole_and_comes_back() {
    let Some(moto) = shared("large files in S3") else { return };
    let cloud = client(&moto.address, &KEYS);
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let bytes: Vec<u8> = (0..(40 << 20) + 3).map(|at: u32| (at % 251).to_le_bytes()[0]).collect();
    std::fs::write(&from, &bytes).unwrap();
    cloud.upload(&moto.world.bucket, "ci/large", &from).await.unwrap();
    let listed = cloud.objects(&moto.world.bucket, "ci/large").await.unwrap();
    assert_eq!(listed.iter().map(|object| object.size).collect::<Vec<_>>(), [bytes.len() as u64]);
    let until = now().plus(Duration::from_mins(10));
    let wanted = [(Method::Get, "ci/large".to_owned()), (Method::Get, "ci/nothing".to_owned())];
    let addresses = cloud.presign(&moto.world.bucket, &wanted, until).await.unwrap();
    let downloaded = cloud.download(&addresses[0], "ci/large", &to).await.unwrap();
    assert_eq!(downloaded.sha256, super::super::wire::sha256(&bytes));
    assert_eq!(std::fs::read(&to).unwrap(), bytes);
    let missing = cloud.download(&addresses[1], "what is not there", &to).await.unwrap_err();
    assert_eq!(missing.to_string(), "HTTP refuses what is not there: 404: Not Found");
}

#[tokio::test]
async fn a_refusal_names_the_call_and_its_reason_and_no_secret() {
    let Some(moto) = start("refusals") else { return };
    let (cloud, world) = (client(&moto.address, &KEYS), &moto.world);
    let mut no_subnet = request(world, "rfm-refused-0", 1);
    no_subnet["SubnetId"] = "subnet-0123abcd".into();
    let mut said = vec![
        cloud.run_instances(&no_subnet).await.unwrap_err(),
        cloud.put("no-such-bucket", "a", Vec::new()).await.unwrap_err(),
        cloud.get("no-such-bucket", "a", 0).await.unwrap_err(),
        cloud.parameter("/none").await.unwrap_err(),
    ];
    moto.check_rights().await;
    let image = Images::Id(world.image.clone());
    let reader = moto.client_of(&moto.reader);
    assert_eq!(reader.images(&image).await.unwrap().len(), 1);
    reader.put("bench", "ci/a b+c/é", b"x".to_vec()).await.unwrap();
    said.push(reader.put("bench", "other", Vec::new()).await.unwrap_err());
    said.push(reader.subnets(&[]).await.unwrap_err());
    let forger = moto.client_of(&(moto.reader.0.clone(), "not-a-secret".to_owned()));
    said.push(forger.images(&image).await.unwrap_err());
    said.push(forger.put("bench", "ci/a", Vec::new()).await.unwrap_err());
    said.push(cloud.images(&image).await.unwrap_err());
    said.push(cloud.account().await.unwrap_err());
    let started = Instant::now();
    let nobody = client("http://127.0.0.1:1", &[]);
    said.push(nobody.account().await.unwrap_err());
    assert!(started.elapsed() < Duration::from_secs(5));
    let said: Vec<String> = said.iter().map(ToString::to_string).collect();
    assert!(!said.join("\n").contains("not-a-secret"), "{said:?}");
    let host = moto.address.trim_start_matches("http://");
    assert!(
        said.iter().filter(|one| one.contains(&format!(" (at {host}, region eu-west-1"))).count() == said.len() - 1,
        "{said:?}"
    );
    // Their numbers are random.
    let said: Vec<&str> = said.iter().map(|one| one.split(" (at ").next().unwrap()).collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// A case with two instances in this world.
fn planned(world: &World) -> Handle {
    let image = format!("resolve:ssm:{}", world.parameter.0);
    let config = json!({ "ami": image, "instance_type": world.instance_type });
    let options = json!({ "region": "eu-west-1", "bucket": "s3://bench/ci", "subnets": [world.subnet] });
    let mut workload = workload(config, options);
    workload.num_tasks = 2;
    plan::handle(&workload).unwrap()
}

async fn found(cloud: Aws, handle: &Handle) -> Vec<Finding> {
    let cloud: Arc<dyn Cloud> = Arc::new(cloud);
    let written = crate::poll::Written::default();
    let writes = preflight::Writes::AnObject(&written);
    preflight::findings(&*cloud, &Resolver::new(cloud.clone()), &[(0, handle)], now(), writes).await.findings
}

/// All that is called from the launch of a case to its end, but for placement groups, which moto does not have.
async fn whole_run(cloud: &Aws, world: &World, handle: &Handle) -> Result<(), CloudError> {
    let (bucket, key) = (handle.bucket.name.as_str(), format!("{}boot", handle.prefix));
    let tags = Tags::from([("rfm".to_owned(), "a".to_owned()), ("rfm-managed".to_owned(), "true".to_owned())]);
    cloud.account().await?;
    cloud.put(bucket, &key, b"x".to_vec()).await?;
    let group = cloud.create_security_group(&handle.name, &world.vpc, &tags).await?;
    let mut request = request(world, &handle.token, 2);
    request["SecurityGroupIds"] = json!([group]);
    let launched = cloud.run_instances(&request).await?;
    let ids: Vec<String> = launched.into_iter().map(|one| one.id).collect();
    cloud.instances(&[filter("tag:rfm-session", &handle.token)]).await?;
    cloud.objects(bucket, &handle.prefix).await?;
    cloud.get(bucket, &key, 0).await?;
    cloud.console(&ids[0], true).await?;
    cloud.tag(&ids, ("rfm-expires", "1")).await?;
    cloud.terminate(&world.instance_type, &ids).await?;
    cloud.security_groups(&[filter("tag:rfm", "a")]).await?;
    cloud.delete_security_group(&group).await?;
    for volume in cloud.free_volumes(&[filter("tag:rfm", "volume")]).await? {
        cloud.delete_volume(&volume.id).await?;
    }
    cloud.delete(bucket, &[key]).await
}

/// Moto compares the resource of objects alone, and those that are deleted together with their bucket's; every other resource is `*` to
/// it. It evaluates no conditions: these can be read only.
fn as_moto_reads_it(mut policy: Value) -> Value {
    let statements = policy["Statement"].as_array_mut().unwrap();
    statements.retain(|statement| statement["Effect"] == "Allow");
    for statement in statements {
        statement.as_object_mut().unwrap().remove("Condition");
        if statement["Sid"] == "Objects" {
            statement["Resource"].as_array_mut().unwrap().push("arn:aws:s3:::bench".into());
        } else if statement["Sid"] != "List" {
            statement["Resource"] = "*".into();
        }
    }
    policy
}

#[tokio::test]
async fn the_printed_policy_allows_a_whole_run_and_no_more() {
    let Some(mut moto) = start("the policy of `muster ec2 policy`") else { return };
    let handle = planned(&moto.world);
    moto.allow(&as_moto_reads_it(policy(&[Plan(handle.clone())], "123456789012")));
    moto.check_rights().await;
    assert_eq!(found(moto.client_of(&moto.harness), &handle).await, []);
    let harness = moto.client_of(&moto.harness);
    whole_run(&harness, &moto.world, &handle).await.unwrap();

    let refused = [
        harness.ec2::<Done>("CreateVpc", json!({ "CidrBlock": "10.1.0.0/16" })).await.map(drop),
        harness.put("bench", "other/a", Vec::new()).await,
        harness.get("other", "a", 0).await.map(drop),
    ];
    let codes = refused.map(|answer| answer.unwrap_err().code().map(str::to_owned).unwrap_or_default());
    assert_eq!(codes, ["AccessDenied"; 3]);

    // Who may do less is told all of it at once.
    let findings = found(moto.client_of(&moto.reader), &handle).await;
    let said: Vec<&str> = findings.iter().map(|finding| finding.what.as_str()).collect();
    insta::assert_snapshot!(said.join("\n"));
}
