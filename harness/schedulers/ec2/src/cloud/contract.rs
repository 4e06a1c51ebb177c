//! The contract of a region, in memory and on the wire: the same tests for both.

use super::{Cloud, CloudError, Filter, Images, Instance, Method, Tags};
use muster_text::{Value, time::Timestamp};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// What is there before the tests.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub image: String,
    pub instance_type: String,
    pub subnet: String,
    pub vpc: String,
    pub bucket: String,
    /// A parameter, and its value.
    pub parameter: (String, String),
}

pub(crate) fn request(world: &World, token: &str, count: u32) -> Value {
    let tags = json!([{ "Key": "rfm-session", "Value": token }, { "Key": "rfm-managed", "Value": "true" }]);
    json!({
        "ClientToken": token,
        "ImageId": world.image,
        "InstanceType": world.instance_type,
        "MinCount": count,
        "MaxCount": count,
        "SubnetId": world.subnet,
        "TagSpecifications": [{ "ResourceType": "instance", "Tags": tags }],
    })
}

pub(crate) fn filter(name: &str, value: &str) -> Filter {
    Filter { name: name.to_owned(), values: vec![value.to_owned()] }
}

pub(crate) async fn what_exists_is_found_and_nothing_else(cloud: &dyn Cloud, world: &World) {
    let image = cloud.images(&Images::Id(world.image.clone())).await.unwrap().remove(0);
    assert_eq!((&image.id, &*image.state, image.is_on_ebs), (&world.image, "available", true));
    assert!(!image.root_device.is_empty() && image.root_gib > 0, "{image:?}");
    let by_name = Images::Named { owner: "self".to_owned(), name: image.name.replace(&image.name[1..], "*") };
    assert!(cloud.images(&by_name).await.unwrap().contains(&image));
    assert_eq!(cloud.images(&Images::Id("ami-0fedcba9876543210".to_owned())).await.unwrap(), []);

    let wanted = [world.instance_type.clone(), "c7i.8xlrge".to_owned()];
    let types = cloud.instance_types(&wanted).await.unwrap();
    assert_eq!(types.iter().map(|one| &one.name).collect::<Vec<_>>(), [&world.instance_type]);
    assert!(types[0].architectures.contains(&image.architecture) && types[0].vcpus >= types[0].cores, "{types:?}");
    let offered = cloud.offerings(&wanted[..1]).await.unwrap();
    assert!(!offered.is_empty() && offered.iter().all(|(name, _)| *name == world.instance_type), "{offered:?}");

    let subnets = cloud.subnets(&[world.subnet.clone(), "subnet-0123abcd".to_owned()]).await.unwrap();
    assert_eq!(subnets.iter().map(|one| (&one.id, &one.vpc)).collect::<Vec<_>>(), [(&world.subnet, &world.vpc)]);
    assert!(
        subnets[0].free_addresses > 0
            && subnets[0].addresses >= subnets[0].free_addresses
            && offered.iter().any(|(_, zone)| *zone == subnets[0].zone),
        "{subnets:?}"
    );

    assert_eq!(cloud.parameter(&world.parameter.0).await.unwrap(), world.parameter.1);
    assert_eq!(cloud.parameter("/none").await.unwrap_err().code(), Some("ParameterNotFound"));
    assert_eq!(cloud.account().await.unwrap().len(), 12);
}

pub(crate) async fn instances_are_launched_found_by_their_tags_and_ended(cloud: &dyn Cloud, world: &World) {
    let request = request(world, "rfm-contract-a-0", 3);
    cloud.try_run_instances(&request).await.unwrap();
    let launched = cloud.run_instances(&request).await.unwrap();
    assert_eq!(launched.iter().map(|one| (one.index, &*one.state)).collect::<Vec<_>>(), [0, 1, 2].map(|at| (at, "pending")));
    let ids: Vec<String> = launched.iter().map(|one| one.id.clone()).collect();

    let mine = [filter("tag:rfm-session", "rfm-contract-a-0")];
    let mut listed = cloud.instances(&mine).await.unwrap();
    listed.sort_by_key(|one| one.index);
    assert_eq!(listed.iter().map(|one| &one.id).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
    let first = &listed[0];
    assert_eq!((&first.instance_type, &first.image), (&world.instance_type, &world.image));
    assert_eq!((&*first.token, first.is_spot), ("rfm-contract-a-0", false));
    assert!(first.private_ip.is_some() && first.launched.is_some() && !first.zone.is_empty(), "{first:?}");
    assert_eq!(first.tags["rfm-managed"], "true");

    cloud.tag(&ids[..1], ("rfm-expires", "1")).await.unwrap();
    let moved = cloud.instances(&[filter("tag:rfm-session", "rfm-contract-a-0"), filter("tag:rfm-expires", "1")]).await.unwrap();
    assert_eq!(moved.iter().map(|one| &one.id).collect::<Vec<_>>(), [&ids[0]]);

    // Twice, and with one that never was.
    cloud.terminate(&world.instance_type, &ids).await.unwrap();
    cloud.terminate(&world.instance_type, &[ids[0].clone(), "i-0123456789abcdef0".to_owned(), ids[1].clone()]).await.unwrap();
    let ended = cloud.instances(&mine).await.unwrap();
    assert!(ended.iter().all(|one| matches!(&*one.state, "shutting-down" | "terminated")), "{ended:?}");
    assert!(ended.iter().all(|one| one.reason.as_ref().is_some_and(|(code, _)| code == "Client.UserInitiatedShutdown")));
    let live = [mine[0].clone(), filter("instance-state-name", "running")];
    assert_eq!(cloud.instances(&live).await.unwrap(), []);
}

pub(crate) async fn a_group_is_created_once_found_by_its_tags_and_deleted(cloud: &dyn Cloud, world: &World) {
    let tags = Tags::from([("rfm".to_owned(), "contract".to_owned()), ("rfm-managed".to_owned(), "true".to_owned())]);
    let id = cloud.create_security_group("rfm-contract", &world.vpc, &tags).await.unwrap();
    assert_eq!(cloud.create_security_group("rfm-contract", &world.vpc, &tags).await.unwrap(), id);
    let mine = [filter("tag:rfm", "contract")];
    let listed = cloud.security_groups(&mine).await.unwrap();
    assert_eq!(listed.iter().map(|one| (&one.id, &one.tags)).collect::<Vec<_>>(), [(&id, &tags)]);
    cloud.delete_security_group(&id).await.unwrap();
    cloud.delete_security_group(&id).await.unwrap();
    assert_eq!(cloud.security_groups(&mine).await.unwrap(), []);

    assert_eq!(cloud.free_volumes(&mine).await.unwrap(), []);
    cloud.delete_volume("vol-0123456789abcdef0").await.unwrap();
}

pub(crate) async fn objects_are_kept_read_from_an_offset_listed_and_deleted(cloud: &dyn Cloud, world: &World) {
    let bucket = world.bucket.as_str();
    for (key, bytes) in [("ci/contract/b c+d/é", "second"), ("ci/contract/a", "first"), ("ci/other", "not ours")] {
        cloud.put(bucket, key, bytes.as_bytes().to_vec()).await.unwrap();
    }
    let listed = cloud.objects(bucket, "ci/contract/").await.unwrap();
    assert_eq!(
        listed.iter().map(|one| (&*one.key, one.size)).collect::<Vec<_>>(),
        [("ci/contract/a", 5), ("ci/contract/b c+d/é", 6)]
    );
    cloud.put(bucket, "ci/contract/a", b"first, and more".to_vec()).await.unwrap();
    let again = cloud.objects(bucket, "ci/contract/").await.unwrap();
    assert_eq!((listed[0].etag == again[0].etag, listed[1].etag == again[1].etag), (false, true));

    let whole = cloud.get(bucket, "ci/contract/a", 0).await.unwrap().unwrap();
    let written = |at: Option<Timestamp>| at.map(Timestamp::seconds);
    assert_eq!((&whole.etag, written(whole.modified)), (&again[0].etag, written(again[0].modified)), "of the same version");
    let read = async |key: &'static str, from| cloud.get(bucket, key, from).await.unwrap().map(|piece| piece.bytes);
    assert_eq!(read("ci/contract/a", 0).await.as_deref(), Some(&b"first, and more"[..]));
    assert_eq!(read("ci/contract/a", 5).await.as_deref(), Some(&b", and more"[..]));
    assert_eq!(read("ci/contract/a", 15).await.as_deref(), Some(&b""[..]), "at its end");
    assert_eq!(read("ci/contract/b c+d/é", 1).await.as_deref(), Some(&b"econd"[..]));
    assert_eq!(read("ci/contract/none", 0).await, None);
    cloud.put(bucket, "ci/contract/empty", Vec::new()).await.unwrap();
    assert_eq!(read("ci/contract/empty", 0).await.as_deref(), Some(&b""[..]));

    let keys: Vec<String> = ["a", "b c+d/é", "empty", "none"].iter().map(|name| format!("ci/contract/{name}")).collect();
    cloud.delete(bucket, &keys).await.unwrap();
    assert_eq!(cloud.objects(bucket, "ci/contract/").await.unwrap(), []);
    assert_eq!(cloud.objects(bucket, "ci/other").await.unwrap().len(), 1);

    let wanted = [(Method::Get, "ci/other".to_owned()), (Method::Put, "ci/new".to_owned())];
    let addresses = cloud.presign(bucket, &wanted, Timestamp::of_seconds(4_000_000_000)).await.unwrap();
    assert!(addresses[0].contains("ci/other") && addresses[1].contains("ci/new"));
}

// What moto alone does not do, and what plays EC2 for the whole program does.

pub(crate) async fn a_token_launches_once(cloud: &dyn Cloud, world: &World) {
    let first = cloud.run_instances(&request(world, "rfm-token-0", 2)).await.unwrap();
    let again = cloud.run_instances(&request(world, "rfm-token-0", 2)).await.unwrap();
    let ids = |launched: &[Instance]| launched.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&first));
    let other = cloud.run_instances(&request(world, "rfm-token-0", 1)).await.unwrap_err();
    assert_eq!(other.code(), Some("IdempotentParameterMismatch"));
    let listed = cloud.instances(&[filter("client-token", "rfm-token-0")]).await.unwrap();
    assert_eq!(listed.len(), 2);
    cloud.terminate(&world.instance_type, &ids(&first)).await.unwrap();
}

/// There is room for two.
pub(crate) async fn capacity_ends_with_all_or_none(cloud: &dyn Cloud, world: &World) {
    let refused = cloud.run_instances(&request(world, "rfm-room-0", 3)).await.unwrap_err();
    let CloudError::Refused { code, status, .. } = &refused else { panic!("{refused}") };
    assert_eq!((&**code, *status), ("InsufficientInstanceCapacity", 500));
    assert_eq!(cloud.instances(&[filter("tag:rfm-session", "rfm-room-0")]).await.unwrap(), []);
    let launched = cloud.run_instances(&request(world, "rfm-room-1", 2)).await.unwrap();
    assert_eq!(launched.len(), 2);
    let ids: Vec<String> = launched.into_iter().map(|one| one.id).collect();
    cloud.terminate(&world.instance_type, &ids).await.unwrap();
}

pub(crate) async fn a_group_is_deleted_when_nothing_live_uses_it(cloud: &dyn Cloud, world: &World) {
    let tags = Tags::from([("rfm".to_owned(), "used".to_owned())]);
    let id = cloud.create_security_group("rfm-used", &world.vpc, &tags).await.unwrap();
    cloud.create_placement_group("rfm-used", &tags).await.unwrap();
    cloud.create_placement_group("rfm-used", &tags).await.unwrap();
    let mut request = request(world, "rfm-used-0", 1);
    request["SecurityGroupIds"] = json!([id]);
    request["Placement"] = json!({ "GroupName": "rfm-used" });
    let launched = cloud.run_instances(&request).await.unwrap();
    let mine = [filter("tag:rfm", "used")];
    let groups = cloud.placement_groups(&mine).await.unwrap();
    assert_eq!(groups.iter().map(|one| (&*one.id, &one.tags)).collect::<Vec<_>>(), [("rfm-used", &tags)]);
    assert_eq!(cloud.delete_security_group(&id).await.unwrap_err().code(), Some("DependencyViolation"));
    assert_eq!(cloud.delete_placement_group("rfm-used").await.unwrap_err().code(), Some("InvalidPlacementGroup.InUse"));
    let ids = [launched[0].id.clone()];
    cloud.terminate(&world.instance_type, &ids).await.unwrap();
    while cloud.instances(&[filter("tag:rfm-session", "rfm-used-0")]).await.unwrap().iter().any(|one| one.state != "terminated") {
        sleep(Duration::from_millis(100)).await;
    }
    cloud.delete_security_group(&id).await.unwrap();
    cloud.delete_placement_group("rfm-used").await.unwrap();
    cloud.delete_placement_group("rfm-used").await.unwrap();
    assert_eq!((cloud.security_groups(&mine).await.unwrap(), cloud.placement_groups(&mine).await.unwrap()), (vec![], vec![]));
}
