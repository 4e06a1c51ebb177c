//! The one real [`Cloud`]: the wire protocols of EC2, S3, SSM and STS. Amazon's own client takes minutes and gigabytes to build, for the
//! two dozen calls that are made here; signatures and credentials are those of `reqsign`.
//!
//! ```text
//! mod          the calls                     query     parameters as a form        answers   XML of EC2
//! wire         signed, sent, sent again      refusals  errors, and what helps      s3        objects
//! credentials  where they are found          http      connections and proxies      copy      large files
//! options      what a request can do without
//! ```

mod answers;
mod copy;
mod credentials;
mod http;
mod options;
mod query;
mod refusals;
mod s3;
#[cfg(test)]
mod tests;
mod wire;

use super::{
    Call, Cloud, CloudError, CredentialsEnd, Downloaded, Filter, Image, Images, Instance, InstanceType, Method, Object, Piece,
    Reservation, Subnet, Tags, Thing, action,
};
use crate::plan::Place;
use answers::{Console, Created, Done, Page};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use muster_text::{Value, time::Timestamp};
use reqsign_core::{Env, OsEnv};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::time::sleep;
use wire::{Answer, Ask, Service, Wire};

const EC2: &str = "2016-11-15";
const STS: &str = "2011-06-15";

/// The most instances that are ended in one call: EC2 takes more, but one that is wrong fails all.
const MOST_IDS: usize = 500;

/// Until a new group may be known everywhere.
const NOT_YET_KNOWN: Duration = Duration::from_secs(1);

/// A region. No I/O: credentials are looked for with the first call.
///
/// # Errors
/// TLS cannot be set up.
pub(crate) fn connect(place: &Place) -> Result<Arc<dyn Cloud>, CloudError> {
    Ok(Arc::new(Aws::new(place, OsEnv)?))
}

struct Aws {
    wire: Wire,
    /// What was refused of what requests can do without.
    refused: options::Refused,
}

impl Aws {
    fn new(place: &Place, environment: impl Env) -> Result<Self, CloudError> {
        let unreached = |why| CloudError::Unreached { service: "AWS", action: "connections".to_owned(), why };
        Ok(Self { wire: Wire::new(place, environment).map_err(unreached)?, refused: options::Refused::default() })
    }

    /// A call of the query protocol.
    fn form(&self, (service, version): (Service, &str), action: &'static str, parameters: &Value) -> Ask {
        let name = if action == action::TRY_RUN_INSTANCES { action::RUN_INSTANCES } else { action };
        Ask {
            service,
            action,
            method: ::http::Method::POST,
            address: self.wire.service(service),
            headers: vec![("content-type", "application/x-www-form-urlencoded; charset=utf-8".to_owned())],
            body: query::form(name, version, parameters).into(),
            is_repeated: action != action::RUN_INSTANCES,
        }
    }

    async fn ec2<T: DeserializeOwned>(&self, action: &'static str, parameters: Value) -> Result<T, CloudError> {
        let instance_type = parameters.get("InstanceType").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.ec2_of_type(&instance_type, action, parameters).await
    }

    /// A call about instances of a type, without the options that are refused for it.
    async fn ec2_of_type<T: DeserializeOwned>(
        &self,
        instance_type: &str,
        action: &'static str,
        mut parameters: Value,
    ) -> Result<T, CloudError> {
        self.refused.leave_out(instance_type, &mut parameters);
        loop {
            let ask = self.form((Service::Ec2, EC2), action, &parameters);
            match self.wire.call(ask, |status| status.is_success()).await {
                Ok(Answer { body, .. }) => return xml("EC2", action, &body),
                Err(error) if self.refused.learn(action, instance_type, &mut parameters, &error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The same where one of these refusals means that it is so already.
    async fn ec2_unless(&self, already: &[&str], action: &'static str, parameters: Value) -> Result<(), CloudError> {
        match self.ec2::<Done>(action, parameters).await {
            Err(error) if error.code().is_some_and(|code| already.contains(&code)) => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// All pages.
    async fn ec2_list<P: Page>(&self, action: &'static str, mut parameters: Value) -> Result<Vec<P::Item>, CloudError> {
        let mut all = Vec::new();
        loop {
            let (mut items, next) = self.ec2::<P>(action, parameters.clone()).await?.take();
            all.append(&mut items);
            let Some(next) = next else { return Ok(all) };
            parameters["NextToken"] = next.into();
        }
    }

    async fn security_group(&self, name: &str, vpc: &str, tags: &Tags) -> Result<String, CloudError> {
        let parameters = json!({
            "GroupName": name,
            "GroupDescription": "instances of a Muster job, among themselves",
            "VpcId": vpc,
            "TagSpecifications": [specification("security-group", tags)],
        });
        let id = match self.ec2::<Created>(action::CREATE_SECURITY_GROUP, parameters).await {
            Ok(created) => created.group_id,
            Err(error) if error.code() == Some("InvalidGroup.Duplicate") => {
                let mine = |(name, value): (&str, &str)| Filter { name: name.to_owned(), values: vec![value.to_owned()] };
                let filters = [("group-name", name), ("vpc-id", vpc)].map(mine);
                let found = self.security_groups(&filters).await?.into_iter().find(|group| {
                    let is_ours = |(key, value): (&String, &String)| group.tags.get(key) == Some(value);
                    // The time was another when another process created it.
                    tags.iter().filter(|(key, _)| *key != "rfm-expires").all(is_ours)
                });
                found.ok_or(error)?.id
            }
            Err(error) => return Err(error),
        };
        // Both ways, for the fabric. The rule that lets everything out stays: the agent needs S3.
        let to_itself = json!([{ "IpProtocol": "-1", "UserIdGroupPairs": [{ "GroupId": id }] }]);
        for action in [action::AUTHORIZE_INGRESS, action::AUTHORIZE_EGRESS] {
            self.authorize(action, &json!({ "GroupId": id, "IpPermissions": to_itself })).await?;
        }
        Ok(id)
    }

    /// A group that was just created is not known everywhere at once.
    async fn authorize(&self, action: &'static str, parameters: &Value) -> Result<(), CloudError> {
        const TRIES: u32 = 5;
        for tries in 1.. {
            match self.ec2_unless(&["InvalidPermission.Duplicate"], action, parameters.clone()).await {
                Err(error) if error.code() == Some("InvalidGroup.NotFound") && tries < TRIES => sleep(NOT_YET_KNOWN).await,
                answer => return answer,
            }
        }
        Ok(())
    }

    async fn terminated(&self, instance_type: &str, mut ids: Vec<String>) -> Result<(), CloudError> {
        loop {
            let parameters = json!({ "InstanceIds": ids, "Force": true, "SkipOsShutdown": true });
            let error = match self.ec2_of_type::<Done>(instance_type, action::TERMINATE_INSTANCES, parameters).await {
                Ok(Done {}) => return Ok(()),
                Err(error) => error,
            };
            // One that is gone fails all, and is named.
            let CloudError::Refused { code, message, .. } = &error else { return Err(error) };
            let before = ids.len();
            ids.retain(|id| !message.contains(id.as_str()));
            if !code.starts_with("InvalidInstanceID") || ids.len() == before {
                return Err(error);
            }
            if ids.is_empty() {
                return Ok(());
            }
        }
    }

    async fn parameter_of(&self, name: &str) -> Result<String, CloudError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Parameter {
            value: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Got {
            parameter: Parameter,
        }
        let ask = Ask {
            service: Service::Ssm,
            action: action::GET_PARAMETER,
            method: ::http::Method::POST,
            address: self.wire.service(Service::Ssm),
            headers: vec![
                ("content-type", "application/x-amz-json-1.1".to_owned()),
                ("x-amz-target", "AmazonSSM.GetParameter".to_owned()),
            ],
            body: json!({ "Name": name, "WithDecryption": false }).to_string().into(),
            is_repeated: true,
        };
        let Answer { body, .. } = self.wire.call(ask, |status| status.is_success()).await?;
        let got: Got = serde_json::from_slice(&body).map_err(|error| unread("SSM", action::GET_PARAMETER, &error))?;
        Ok(got.parameter.value)
    }

    async fn account_of(&self) -> Result<String, CloudError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Caller {
            account: String,
        }
        #[derive(Deserialize)]
        struct Identity {
            #[serde(rename = "GetCallerIdentityResult")]
            caller: Caller,
        }
        let ask = self.form((Service::Sts, STS), action::GET_CALLER_IDENTITY, &json!({}));
        let Answer { body, .. } = self.wire.call(ask, |status| status.is_success()).await?;
        xml::<Identity>("STS", action::GET_CALLER_IDENTITY, &body).map(|identity| identity.caller.account)
    }
}

impl Cloud for Aws {
    fn place(&self) -> &Place {
        self.wire.place()
    }

    fn account(&self) -> Call<'_, String> {
        Box::pin(self.account_of())
    }

    fn credentials_end(&self, wanted: Timestamp) -> Call<'_, Option<CredentialsEnd>> {
        Box::pin(async move {
            let (credential, is_final) = self.wire.credentials.lasting(wanted).await?;
            Ok(credentials::end(&credential).map(|at| CredentialsEnd { at, is_final }))
        })
    }

    fn images<'a>(&'a self, which: &'a Images) -> Call<'a, Vec<Image>> {
        let parameters = match which {
            Images::Id(id) => json!({ "ImageIds": [id] }),
            Images::Named { owner, name } => json!({ "Owners": [owner], "Filters": [{ "Name": "name", "Values": [name] }] }),
        };
        Box::pin(async move {
            match self.ec2_list::<answers::Images>(action::DESCRIBE_IMAGES, parameters).await {
                Err(error) if error.code().is_some_and(|code| code.starts_with("InvalidAMIID")) => Ok(Vec::new()),
                answer => answer,
            }
        })
    }

    fn instance_types<'a>(&'a self, names: &'a [String]) -> Call<'a, Vec<InstanceType>> {
        // A filter, as a name that does not exist fails the whole call otherwise.
        let parameters = json!({ "Filters": [{ "Name": "instance-type", "Values": names }] });
        Box::pin(self.ec2_list::<answers::InstanceTypes>(action::DESCRIBE_INSTANCE_TYPES, parameters))
    }

    fn offerings<'a>(&'a self, types: &'a [String]) -> Call<'a, Vec<(String, String)>> {
        let mut parameters = json!({ "LocationType": "availability-zone" });
        if !types.is_empty() {
            parameters["Filters"] = json!([{ "Name": "instance-type", "Values": types }]);
        }
        Box::pin(self.ec2_list::<answers::Offerings>(action::DESCRIBE_INSTANCE_TYPE_OFFERINGS, parameters))
    }

    fn subnets<'a>(&'a self, ids: &'a [String]) -> Call<'a, Vec<Subnet>> {
        let parameters = json!({ "Filters": [{ "Name": "subnet-id", "Values": ids }] });
        Box::pin(self.ec2_list::<answers::Subnets>(action::DESCRIBE_SUBNETS, parameters))
    }

    fn parameter<'a>(&'a self, name: &'a str) -> Call<'a, String> {
        Box::pin(self.parameter_of(name))
    }

    fn run_instances<'a>(&'a self, request: &'a Value) -> Call<'a, Vec<Instance>> {
        Box::pin(async { Ok(self.ec2::<answers::Launched>(action::RUN_INSTANCES, request.clone()).await?.take().0) })
    }

    fn reservation<'a>(&'a self, id: &'a str) -> Call<'a, Option<Reservation>> {
        let parameters = json!({ "CapacityReservationIds": [id] });
        Box::pin(async {
            match self.ec2_list::<answers::CapacityReservations>(action::DESCRIBE_CAPACITY_RESERVATIONS, parameters).await {
                Err(error) if error.code().is_some_and(|code| code.starts_with("InvalidCapacityReservationId")) => Ok(None),
                found => found.map(|mut found| found.pop()),
            }
        })
    }

    fn try_call<'a>(&'a self, action: &'static str, parameters: &'a Value) -> Call<'a, ()> {
        let mut parameters = parameters.clone();
        parameters["DryRun"] = true.into();
        Box::pin(async move { self.ec2_unless(&["DryRunOperation"], action, parameters).await })
    }

    fn instances<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Instance>> {
        let parameters = json!({ "Filters": query::filters(filters), "MaxResults": 1000 });
        Box::pin(async {
            let reservations = self.ec2_list::<answers::Reservations>(action::DESCRIBE_INSTANCES, parameters).await?;
            Ok(reservations.into_iter().flat_map(|reservation| reservation.0).collect())
        })
    }

    fn terminate<'a>(&'a self, instance_type: &'a str, ids: &'a [String]) -> Call<'a, ()> {
        Box::pin(async {
            for some in ids.chunks(MOST_IDS) {
                self.terminated(instance_type, some.to_vec()).await?;
            }
            Ok(())
        })
    }

    fn console<'a>(&'a self, id: &'a str, latest: bool) -> Call<'a, String> {
        let mut parameters = json!({ "InstanceId": id });
        if latest {
            parameters["Latest"] = true.into();
        }
        Box::pin(async {
            let output = self.ec2::<Console>(action::GET_CONSOLE_OUTPUT, parameters).await?.output.unwrap_or_default();
            let plain: String = output.chars().filter(|c| !c.is_whitespace()).collect();
            let bytes = BASE64_STANDARD.decode(plain).map_err(|error| unread("EC2", action::GET_CONSOLE_OUTPUT, &error))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    fn tag<'a>(&'a self, ids: &'a [String], (key, value): (&'a str, &'a str)) -> Call<'a, ()> {
        let parameters = json!({ "Resources": ids, "Tags": [{ "Key": key, "Value": value }] });
        Box::pin(self.ec2_unless(&[], action::CREATE_TAGS, parameters))
    }

    fn create_security_group<'a>(&'a self, name: &'a str, vpc: &'a str, tags: &'a Tags) -> Call<'a, String> {
        Box::pin(self.security_group(name, vpc, tags))
    }

    fn security_groups<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>> {
        let parameters = json!({ "Filters": query::filters(filters) });
        Box::pin(self.ec2_list::<answers::SecurityGroups>(action::DESCRIBE_SECURITY_GROUPS, parameters))
    }

    fn delete_security_group<'a>(&'a self, id: &'a str) -> Call<'a, ()> {
        let parameters = json!({ "GroupId": id });
        Box::pin(self.ec2_unless(&["InvalidGroup.NotFound"], action::DELETE_SECURITY_GROUP, parameters))
    }

    fn create_placement_group<'a>(&'a self, name: &'a str, tags: &'a Tags) -> Call<'a, ()> {
        let specifications = [specification("placement-group", tags)];
        let parameters = json!({ "GroupName": name, "Strategy": "cluster", "TagSpecifications": specifications });
        Box::pin(self.ec2_unless(&["InvalidPlacementGroup.Duplicate"], action::CREATE_PLACEMENT_GROUP, parameters))
    }

    fn placement_groups<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>> {
        let parameters = json!({ "Filters": query::filters(filters) });
        Box::pin(self.ec2_list::<answers::PlacementGroups>(action::DESCRIBE_PLACEMENT_GROUPS, parameters))
    }

    fn delete_placement_group<'a>(&'a self, name: &'a str) -> Call<'a, ()> {
        let parameters = json!({ "GroupName": name });
        Box::pin(self.ec2_unless(&["InvalidPlacementGroup.Unknown"], action::DELETE_PLACEMENT_GROUP, parameters))
    }

    fn free_volumes<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>> {
        let free = Filter { name: "status".to_owned(), values: vec!["available".to_owned()] };
        let all: Vec<Filter> = filters.iter().cloned().chain([free]).collect();
        let parameters = json!({ "Filters": query::filters(&all), "MaxResults": 500 });
        Box::pin(self.ec2_list::<answers::Volumes>(action::DESCRIBE_VOLUMES, parameters))
    }

    fn delete_volume<'a>(&'a self, id: &'a str) -> Call<'a, ()> {
        Box::pin(self.ec2_unless(&["InvalidVolume.NotFound"], action::DELETE_VOLUME, json!({ "VolumeId": id })))
    }

    fn put<'a>(&'a self, bucket: &'a str, key: &'a str, bytes: Vec<u8>) -> Call<'a, ()> {
        Box::pin(s3::put(&self.wire, bucket, key, bytes))
    }

    fn get<'a>(&'a self, bucket: &'a str, key: &'a str, from: u64) -> Call<'a, Option<Piece>> {
        Box::pin(s3::get(&self.wire, bucket, key, from))
    }

    fn objects<'a>(&'a self, bucket: &'a str, prefix: &'a str) -> Call<'a, Vec<Object>> {
        Box::pin(s3::objects(&self.wire, bucket, prefix))
    }

    fn delete<'a>(&'a self, bucket: &'a str, keys: &'a [String]) -> Call<'a, ()> {
        Box::pin(s3::delete(&self.wire, bucket, keys))
    }

    fn download<'a>(&'a self, address: &'a str, shown: &'a str, to: &'a Path) -> Call<'a, Downloaded> {
        Box::pin(copy::download(&self.wire.http, address, shown, to))
    }

    fn upload<'a>(&'a self, bucket: &'a str, key: &'a str, from: &'a Path) -> Call<'a, ()> {
        Box::pin(copy::upload(&self.wire, bucket, key, from))
    }

    fn presign<'a>(&'a self, bucket: &'a str, wanted: &'a [(Method, String)], until: Timestamp) -> Call<'a, Vec<String>> {
        Box::pin(s3::presign(&self.wire, bucket, wanted, until))
    }
}

fn specification(kind: &str, tags: &Tags) -> Value {
    let tags: Vec<Value> = tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect();
    json!({ "ResourceType": kind, "Tags": tags })
}

fn xml<T: DeserializeOwned>(service: &'static str, action: &str, body: &Bytes) -> Result<T, CloudError> {
    quick_xml::de::from_reader(body.as_ref()).map_err(|error| unread(service, action, &error))
}

fn unread(service: &'static str, action: &str, why: &dyn std::error::Error) -> CloudError {
    CloudError::Unread { service, action: action.to_owned(), why: why.to_string() }
}
