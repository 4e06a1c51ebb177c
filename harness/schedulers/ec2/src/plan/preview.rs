//! The text of `--dry-run`: the request that is sent first, what is tried after it, and the script.

use super::{
    Handle, Offer, orders,
    request::{Found, run_instances},
};
use crate::agent::render_user_data;
use muster_text::{time::format_duration, yaml};
use std::{fmt::Write, time::Duration};

/// All that would be created. What only EC2 knows is described in its place.
pub(crate) fn preview(handle: &Handle) -> String {
    let Some(first) = handle.offers.first() else { return String::new() };
    let seconds = |seconds: u64| format_duration(Duration::from_secs(seconds));
    let lifetime = handle.longest();
    let mut text = format!(
        "# {} instance(s) in {}, objects in s3://{}/{}\n",
        handle.instances, handle.place.region, handle.bucket.name, handle.prefix
    );
    let _ = writeln!(
        text,
        "# each ends itself {} after its start at the latest; what fails is kept for {}",
        seconds(lifetime.timer_minutes() * 60),
        seconds(lifetime.keep),
    );
    for offer in handle.offers.iter().skip(1) {
        let _ = writeln!(text, "# then {} in {}, {}", offer.instance_type, offer.subnet, offer.bought.word());
    }
    if handle.needs_group() {
        let _ = writeln!(text, "# the security group {}, whose members reach each other", handle.name);
    }
    if handle.in_cluster() {
        let _ = writeln!(text, "# the placement group {} (cluster)", handle.name);
    }
    if handle.has_efa() {
        text += "# one interface is shown; each network card of the instance type gets one\n";
    }
    if handle.volume.size_gib.is_none() {
        let data = if handle.data.is_empty() { "" } else { ", without the data sets" };
        let _ = writeln!(text, "# the size of the volume is that for an image of 8 GiB{data}");
    }
    if let Some(folder) = &handle.instance_store {
        let _ = writeln!(text, "# mounts the disks of each instance at {folder}");
    }
    for set in &handle.data {
        let _ = writeln!(text, "# fetches {} as {}", set.source, set.dest);
    }
    if let Some(staging) = &handle.staging {
        let _ = writeln!(text, "# sends the files of {}", staging.folder.display());
    }
    let request = run_instances(handle, first, &unknown(handle, first), 0);
    let _ = write!(text, "--- # ec2:RunInstances\n{}--- # run by the agent\n{}", yaml::to_text(&request), handle.script);
    text
}

/// What a launch finds out.
fn unknown(handle: &Handle, first: &Offer) -> Found {
    Found {
        image_id: handle.image.to_string(),
        root_device: "(the root device of the image)".to_owned(),
        root_gib: 8,
        data_gib: 0,
        network_cards: 1,
        own_group: handle.needs_group().then(|| "(the group of this job)".to_owned()),
        expires: format!("({} s after the launch)", handle.lifetime.expires_after()),
        user_data: agent(handle, first),
    }
}

/// How large user data is. It has an address that is known after the launch has begun.
fn agent(handle: &Handle, first: &Offer) -> String {
    let id = handle.tags.get("rfm").map_or("", String::as_str);
    match render_user_data(&orders(handle, first, id, "")) {
        Ok(data) => format!("(the agent, {} KiB)", data.len().div_ceil(1024)),
        Err(error) => format!("({error})"),
    }
}
