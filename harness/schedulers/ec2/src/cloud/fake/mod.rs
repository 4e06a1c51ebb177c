//! A region in memory, for tests of what decides. What it does is pinned by `contract`, which the real client has to pass, too.

mod state;

use super::{
    Call, Cloud, CloudError, CredentialsEnd, Downloaded, Filter, Image, Images, Instance, InstanceType, Method, Object, Piece,
    Reservation, Subnet, Tags, Thing, action, piece_of,
};
use crate::plan::Place;
use futures_util::future::{pending, ready};
use muster_text::{Value, time::Timestamp};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use state::{State, all_match, matches_pattern, named};
use std::path::Path;

pub(crate) struct Fake {
    place: Place,
    state: Mutex<State>,
}

/// A refusal of EC2.
pub(crate) fn refused(action: &str, code: &str, message: &str, status: u16) -> CloudError {
    CloudError::Refused {
        service: "EC2",
        action: action.to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        status,
        origin: String::new(),
    }
}

fn etag(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

impl Default for Fake {
    /// A region with an image, an instance type, and two subnets in two zones, as `plan::testing` plans for.
    fn default() -> Self {
        let zones = [("subnet-0a1b2c3d", "eu-west-1a"), ("subnet-1b2c3d4e", "eu-west-1b")];
        let subnet = |(id, zone): (&str, &str)| Subnet {
            id: id.to_owned(),
            zone: zone.to_owned(),
            vpc: "vpc-0a1b2c3d".to_owned(),
            free_addresses: 250,
            addresses: 251,
        };
        let state = State {
            account: "123456789012".to_owned(),
            now: Some(Timestamp::of_seconds(1_796_000_000)),
            images: vec![Image {
                id: "ami-0abc1234def567890".to_owned(),
                name: "bench-2026-11-01".to_owned(),
                state: "available".to_owned(),
                architecture: "x86_64".to_owned(),
                is_on_ebs: true,
                root_device: "/dev/xvda".to_owned(),
                root_gib: 8,
                created: "2026-11-01T12:00:00.000Z".to_owned(),
            }],
            types: vec![InstanceType {
                name: "c7i.8xlarge".to_owned(),
                architectures: vec!["x86_64".to_owned()],
                vcpus: 32,
                cores: 16,
                gpus: 0,
                network_cards: 1,
                has_efa: false,
                has_nvme_store: false,
                is_nitro: true,
            }],
            offerings: zones.map(|(_, zone)| ("c7i.8xlarge".to_owned(), zone.to_owned())).to_vec(),
            subnets: zones.map(subnet).to_vec(),
            ..State::default()
        };
        Self { place: Place { region: "eu-west-1".to_owned(), endpoint_url: None }, state: Mutex::new(state) }
    }
}

impl Fake {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The next call of this action gets an error.
    pub(crate) fn refuse(&self, error: CloudError) {
        let (CloudError::Refused { action, .. } | CloudError::Unreached { action, .. } | CloudError::Unread { action, .. }) =
            &error
        else {
            panic!("no call in {error}")
        };
        let action = action::ALL.iter().find(|known| *known == action).unwrap_or_else(|| panic!("no action {action}"));
        self.state().refusals.push((action, error));
    }

    /// No call is answered: there is no such region.
    pub(crate) fn is_nowhere(&self) {
        self.state().no_region = true;
    }

    /// Sets the state of an instance, and why.
    pub(crate) fn set(&self, id: &str, state: &str, reason: Option<(&str, &str)>) {
        let mut all = self.state();
        let instance = all.instances.iter_mut().find(|instance| instance.id == id).unwrap();
        state.clone_into(&mut instance.state);
        instance.reason = reason.map(|(code, message)| (code.to_owned(), message.to_owned()));
    }

    pub(crate) fn object(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        self.state().objects.get(&(bucket.to_owned(), key.to_owned())).cloned()
    }

    pub(crate) fn put_now(&self, bucket: &str, key: &str, bytes: &[u8]) {
        self.state().objects.insert((bucket.to_owned(), key.to_owned()), bytes.to_vec());
    }

    fn call<'a, T: Send + 'a>(
        &self,
        action: &'static str,
        answer: impl FnOnce(&mut State) -> Result<T, CloudError>,
    ) -> Call<'a, T> {
        let mut state = self.state.lock();
        state.calls.push(action);
        let passes = state.passes.get_mut(action).filter(|passes| **passes > 0);
        let is_passed = passes.map(|passes| *passes -= 1).is_some();
        let refusal = state.refusals.iter().position(|(of, _)| *of == action && !is_passed);
        let answer = match refusal {
            None if state.no_region => Err(CloudError::NoRegion(self.place.region.clone())),
            Some(at) => Err(state.refusals.remove(at).1),
            None => answer(&mut state),
        };
        match &mut state.stops_after {
            Some(0) => Box::pin(pending()),
            Some(left) => {
                *left -= 1;
                Box::pin(ready(answer))
            }
            None => Box::pin(ready(answer)),
        }
    }
}

impl Cloud for Fake {
    fn place(&self) -> &Place {
        &self.place
    }

    fn account(&self) -> Call<'_, String> {
        self.call(action::GET_CALLER_IDENTITY, |state| Ok(state.account.clone()))
    }

    fn credentials_end(&self, _: Timestamp) -> Call<'_, Option<CredentialsEnd>> {
        Box::pin(ready(Ok(self.state().credentials_end)))
    }

    fn images<'a>(&'a self, which: &'a Images) -> Call<'a, Vec<Image>> {
        let is_meant = |image: &Image| match which {
            Images::Id(id) => image.id == *id,
            Images::Named { name, .. } => matches_pattern(name, &image.name),
        };
        self.call(action::DESCRIBE_IMAGES, |state| Ok(state.images.iter().filter(|image| is_meant(image)).cloned().collect()))
    }

    fn instance_types<'a>(&'a self, names: &'a [String]) -> Call<'a, Vec<InstanceType>> {
        self.call(action::DESCRIBE_INSTANCE_TYPES, |state| {
            Ok(state.types.iter().filter(|one| names.contains(&one.name)).cloned().collect())
        })
    }

    fn offerings<'a>(&'a self, types: &'a [String]) -> Call<'a, Vec<(String, String)>> {
        self.call(action::DESCRIBE_INSTANCE_TYPE_OFFERINGS, |state| {
            Ok(state.offerings.iter().filter(|(name, _)| types.is_empty() || types.contains(name)).cloned().collect())
        })
    }

    fn subnets<'a>(&'a self, ids: &'a [String]) -> Call<'a, Vec<Subnet>> {
        self.call(action::DESCRIBE_SUBNETS, |state| {
            Ok(state.subnets.iter().filter(|subnet| ids.contains(&subnet.id)).cloned().collect())
        })
    }

    fn parameter<'a>(&'a self, name: &'a str) -> Call<'a, String> {
        self.call(action::GET_PARAMETER, |state| {
            let unknown = || refused(action::GET_PARAMETER, "ParameterNotFound", &format!("Parameter {name} not found."), 400);
            state.parameters.get(name).cloned().ok_or_else(unknown)
        })
    }

    fn run_instances<'a>(&'a self, request: &'a Value) -> Call<'a, Vec<Instance>> {
        self.call(action::RUN_INSTANCES, |state| state.launch(request))
    }

    fn reservation<'a>(&'a self, id: &'a str) -> Call<'a, Option<Reservation>> {
        self.call(action::DESCRIBE_CAPACITY_RESERVATIONS, |state| Ok(state.reservations.iter().find(|one| one.id == id).cloned()))
    }

    fn try_call<'a>(&'a self, action: &'static str, _: &'a Value) -> Call<'a, ()> {
        self.call(action, |_| Ok(()))
    }

    fn instances<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Instance>> {
        self.call(action::DESCRIBE_INSTANCES, |state| {
            let hidden = std::mem::take(&mut state.hidden);
            state.start();
            let mut listed = Vec::new();
            for instance in state.instances.iter().filter(|instance| !hidden.contains_key(&instance.id)) {
                let is_chosen = all_match(filters, &instance.tags, |name| match name {
                    "instance-state-name" => Some(&instance.state),
                    "client-token" => Some(&instance.token),
                    _ => None,
                })?;
                listed.extend(is_chosen.then(|| instance.clone()));
            }
            state.hidden = hidden.into_iter().filter(|(_, left)| *left > 1).map(|(id, left)| (id, left - 1)).collect();
            Ok(listed)
        })
    }

    fn terminate<'a>(&'a self, _: &'a str, ids: &'a [String]) -> Call<'a, ()> {
        self.call(action::TERMINATE_INSTANCES, |state| {
            let live = |instance: &&mut Instance| ids.contains(&instance.id) && instance.state != "terminated";
            for instance in state.instances.iter_mut().filter(live) {
                instance.state = "terminated".to_owned();
                instance.private_ip = None;
                let why = ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown");
                instance.reason = Some((why.0.to_owned(), why.1.to_owned()));
            }
            Ok(())
        })
    }

    fn console<'a>(&'a self, id: &'a str, _: bool) -> Call<'a, String> {
        self.call(action::GET_CONSOLE_OUTPUT, |state| Ok(state.console.get(id).cloned().unwrap_or_default()))
    }

    fn tag<'a>(&'a self, ids: &'a [String], (key, value): (&'a str, &'a str)) -> Call<'a, ()> {
        self.call(action::CREATE_TAGS, |state| {
            for instance in state.instances.iter_mut().filter(|instance| ids.contains(&instance.id)) {
                instance.tags.insert(key.to_owned(), value.to_owned());
            }
            Ok(())
        })
    }

    fn create_security_group<'a>(&'a self, name: &'a str, _: &'a str, tags: &'a Tags) -> Call<'a, String> {
        self.call(action::CREATE_SECURITY_GROUP, |state| {
            state.groups.entry(name.to_owned()).or_insert_with(|| tags.clone());
            Ok(format!("sg-{name}"))
        })
    }

    fn security_groups<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>> {
        self.call(action::DESCRIBE_SECURITY_GROUPS, |state| named(&state.groups, filters, |name| format!("sg-{name}")))
    }

    fn delete_security_group<'a>(&'a self, id: &'a str) -> Call<'a, ()> {
        self.call(action::DELETE_SECURITY_GROUP, |state| {
            let name = id.strip_prefix("sg-").unwrap_or(id);
            let users: Vec<&str> = state.live_of(|request| request["SecurityGroupIds"].to_string().contains(id)).collect();
            if !users.is_empty() {
                let message = format!("resource {id} has a dependent object");
                return Err(refused(action::DELETE_SECURITY_GROUP, "DependencyViolation", &message, 400));
            }
            state.groups.remove(name);
            Ok(())
        })
    }

    fn create_placement_group<'a>(&'a self, name: &'a str, tags: &'a Tags) -> Call<'a, ()> {
        self.call(action::CREATE_PLACEMENT_GROUP, |state| {
            state.placement_groups.entry(name.to_owned()).or_insert_with(|| tags.clone());
            Ok(())
        })
    }

    fn placement_groups<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>> {
        self.call(action::DESCRIBE_PLACEMENT_GROUPS, |state| named(&state.placement_groups, filters, str::to_owned))
    }

    fn delete_placement_group<'a>(&'a self, name: &'a str) -> Call<'a, ()> {
        self.call(action::DELETE_PLACEMENT_GROUP, |state| {
            if state.live_of(|request| request["Placement"]["GroupName"] == name).next().is_some() {
                let message = format!("The placement group {name} is in use and may not be deleted.");
                return Err(refused(action::DELETE_PLACEMENT_GROUP, "InvalidPlacementGroup.InUse", &message, 400));
            }
            state.placement_groups.remove(name);
            Ok(())
        })
    }

    fn free_volumes<'a>(&'a self, filters: &'a [Filter]) -> Call<'a, Vec<Thing>> {
        self.call(action::DESCRIBE_VOLUMES, |state| {
            let mut listed = Vec::new();
            for volume in &state.volumes {
                listed.extend(all_match(filters, &volume.tags, |_| None)?.then(|| volume.clone()));
            }
            Ok(listed)
        })
    }

    fn delete_volume<'a>(&'a self, id: &'a str) -> Call<'a, ()> {
        self.call(action::DELETE_VOLUME, |state| {
            state.volumes.retain(|volume| volume.id != id);
            Ok(())
        })
    }

    fn put<'a>(&'a self, bucket: &'a str, key: &'a str, bytes: Vec<u8>) -> Call<'a, ()> {
        self.call(action::PUT_OBJECT, |state| {
            let at = (bucket.to_owned(), key.to_owned());
            state.modified.remove(&at);
            state.objects.insert(at, bytes);
            Ok(())
        })
    }

    fn get<'a>(&'a self, bucket: &'a str, key: &'a str, from: u64) -> Call<'a, Option<Piece>> {
        self.call(action::GET_OBJECT, |state| {
            let at = (bucket.to_owned(), key.to_owned());
            let piece = |bytes: &Vec<u8>| Piece {
                bytes: piece_of(bytes, from).into_iter().take(state.most_bytes.unwrap_or(usize::MAX)).collect(),
                etag: etag(bytes),
                modified: state.modified.get(&at).copied(),
            };
            Ok(state.objects.get(&at).map(piece))
        })
    }

    fn objects<'a>(&'a self, bucket: &'a str, prefix: &'a str) -> Call<'a, Vec<Object>> {
        self.call(action::LIST_OBJECTS, |state| {
            let here = state.objects.iter().filter(|((of, key), _)| of == bucket && key.starts_with(prefix));
            let object = |(at, bytes): (&(String, String), &Vec<u8>)| Object {
                key: at.1.clone(),
                size: bytes.len() as u64,
                etag: etag(bytes),
                modified: state.modified.get(at).copied(),
            };
            let listed = here.map(object).collect();
            for (at, (bytes, written)) in std::mem::take(&mut state.written_after_listing) {
                state.objects.insert(at.clone(), bytes);
                state.modified.insert(at, written);
            }
            Ok(listed)
        })
    }

    fn delete<'a>(&'a self, bucket: &'a str, keys: &'a [String]) -> Call<'a, ()> {
        self.call(action::DELETE_OBJECTS, |state| {
            state.objects.retain(|(of, key), _| of != bucket || !keys.contains(key));
            Ok(())
        })
    }

    fn download<'a>(&'a self, address: &'a str, _: &'a str, to: &'a Path) -> Call<'a, Downloaded> {
        let bytes = self.state().web.get(address).cloned().unwrap_or_else(|| panic!("{address} is not in the web of this test"));
        std::fs::write(to, &bytes).unwrap();
        let sha256 = format!("{:x}", Sha256::digest(&bytes));
        Box::pin(ready(Ok(Downloaded { size: bytes.len() as u64, sha256, md5: String::new() })))
    }

    fn upload<'a>(&'a self, bucket: &'a str, key: &'a str, from: &'a Path) -> Call<'a, ()> {
        let bytes = std::fs::read(from).unwrap();
        self.put(bucket, key, bytes)
    }

    fn presign<'a>(&'a self, bucket: &'a str, wanted: &'a [(Method, String)], until: Timestamp) -> Call<'a, Vec<String>> {
        let url = |(method, key): &(Method, String)| format!("https://{bucket}.test/{key}?{method:?}&until={}", until.0);
        Box::pin(ready(Ok(wanted.iter().map(url).collect())))
    }
}
