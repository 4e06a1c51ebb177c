//! Against moto, as a process of the test. Without it, what was not tested is said.

use super::{
    super::{http::Http, wire::now},
    KEYS, client,
};
use crate::cloud::{
    Cloud, Images, Method, Object,
    contract::{self, World, filter, request},
};
use bytes::Bytes;
use muster_text::Value;
use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

struct Moto {
    /// It ends when its input does, at the latest with this process.
    process: Child,
    address: String,
    volume: String,
    /// Of who may read images and write below `ci/`.
    reader: (String, String),
    world: World,
}

impl Moto {
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
        eprintln!("SKIPPED: {what}: MUSTER_EC2_PYTHON does not name a Python with moto (the gate makes one)");
        return None;
    };
    let mut process = Command::new(python)
        .args(["-c", include_str!("moto.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
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
    let reader = (text("key"), text("secret"));
    Some(Moto { process, address: text("address"), volume: text("volume"), reader, world })
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
    cloud.terminate(&ids).await.unwrap();

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
    assert_eq!(cloud.get("bench", "ci/a b+c", 5).await.unwrap().as_deref(), Some(&b"the instance"[..]));

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
    let (key, secret) = (("AWS_ACCESS_KEY_ID", &*moto.reader.0), ("AWS_SECRET_ACCESS_KEY", &*moto.reader.1));
    let reader = client(&moto.address, &[key, secret]);
    assert_eq!(reader.images(&image).await.unwrap().len(), 1);
    reader.put("bench", "ci/a b+c/é", b"x".to_vec()).await.unwrap();
    said.push(reader.put("bench", "other", Vec::new()).await.unwrap_err());
    said.push(reader.subnets(&[]).await.unwrap_err());
    let forger = client(&moto.address, &[key, ("AWS_SECRET_ACCESS_KEY", "not-a-secret")]);
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
    // Their numbers are random.
    let said: Vec<&str> = said.iter().map(|one| one.split(" (request ").next().unwrap()).collect();
    insta::assert_snapshot!(said.join("\n"));
}
