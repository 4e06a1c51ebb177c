use super::{
    Cloud,
    contract::{self, World, request},
    fake::{Fake, refused},
};
use serde_json::json;

fn world() -> World {
    World {
        image: "ami-0abc1234def567890".to_owned(),
        instance_type: "c7i.8xlarge".to_owned(),
        subnet: "subnet-0a1b2c3d".to_owned(),
        vpc: "vpc-0a1b2c3d".to_owned(),
        bucket: "bench".to_owned(),
        parameter: ("/images/bench".to_owned(), "ami-0abc1234def567890".to_owned()),
    }
}

#[tokio::test]
async fn a_region_in_memory_does_what_every_region_does() {
    let (fake, world) = (Fake::default(), world());
    fake.state().parameters.extend([world.parameter.clone()]);
    contract::what_exists_is_found_and_nothing_else(&fake, &world).await;
    contract::instances_are_launched_found_by_their_tags_and_ended(&fake, &world).await;
    contract::a_group_is_created_once_found_by_its_tags_and_deleted(&fake, &world).await;
    contract::objects_are_kept_read_from_an_offset_listed_and_deleted(&fake, &world).await;
    contract::a_token_launches_once(&fake, &world).await;
    contract::a_group_is_deleted_when_nothing_live_uses_it(&fake, &world).await;
    fake.state().capacity.insert((world.instance_type.clone(), world.subnet.clone()), 2);
    contract::capacity_ends_with_all_or_none(&fake, &world).await;
}

#[tokio::test]
async fn refusals_come_in_their_order_and_instances_are_listed_late() {
    let (fake, world) = (Fake::default(), world());
    fake.refuse(refused("RunInstances", "RequestLimitExceeded", "Request limit exceeded.", 503));
    fake.refuse(refused("RunInstances", "InternalError", "", 500));
    fake.state().listed_after = 2;
    let codes = [fake.run_instances(&json!({})).await, fake.run_instances(&json!({})).await].map(|answer| answer.unwrap_err());
    assert_eq!(codes.iter().map(|error| error.code().unwrap()).collect::<Vec<_>>(), ["RequestLimitExceeded", "InternalError"]);
    fake.run_instances(&request(&world, "a", 1)).await.unwrap();
    for listed in [0, 0, 1] {
        assert_eq!(fake.instances(&[]).await.unwrap().len(), listed);
    }
}

#[test]
fn a_code_means_the_same_wherever_it_comes_from() {
    use crate::{
        cloud::{Kind, fake::refused},
        decide::offer::{Refusal, Refused},
        failure,
    };
    use muster_core::error::Class;
    for (code, kind, refusal, class) in [
        ("RequestLimitExceeded", Kind::Throttled, Refusal::Busy, Class::Outage),
        ("SlowDown", Kind::Throttled, Refusal::Busy, Class::Outage),
        ("TooManyRequestsException", Kind::Throttled, Refusal::Busy, Class::Outage),
        ("EC2ThrottledException", Kind::Throttled, Refusal::Busy, Class::Outage),
        ("AccessDeniedException", Kind::Forbidden, Refusal::Forbidden, Class::Config),
        ("UnauthorizedOperation", Kind::Forbidden, Refusal::Forbidden, Class::Config),
        ("InvalidClientTokenId", Kind::UnknownCaller, Refusal::Forbidden, Class::Config),
        ("InvalidParameterValue", Kind::Other, Refusal::Wrong, Class::Config),
    ] {
        let error = refused("RunInstances", code, "", 400);
        let one = Refused { offer: 0, code: code.to_owned(), message: String::new(), status: 400 };
        assert_eq!((error.kind(), one.kind()), (kind, refusal), "{code}");
        assert_eq!(failure::of_launch(error, "x").class, class, "{code}");
    }
}
