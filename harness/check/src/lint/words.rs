//! Values with another meaning than they seem to have.

use super::{Report, Subject};
use crate::files::load;
use muster_text::yaml::Node;

/// What a shell would make something of. Alone in a list of arguments it is a file name to a program.
const OPERATORS: [&str; 9] = ["|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"];

pub(super) fn no_sanity(subject: &Subject<'_>, report: &mut Report) {
    let is_claim = |item: &Node| ["found", "not_found", "assert"].iter().any(|key| item.get(key).is_some());
    let is_any = |item: &Node| item.get("exit").and_then(Node::text) == Some("any");
    let looks = subject.all("sanity").any(|sanity| sanity.items().iter().any(is_claim) || sanity.has_placeholder());
    let measures = subject.all("perf_variables").any(|figures| !figures.entries().is_empty());
    let Some(sanity) = subject.tree().get("sanity").filter(|_| !looks && !measures) else { return };
    let message = if sanity.items().iter().any(is_any) {
        "this check passes whatever its job does"
    } else {
        "this check looks at the exit status alone"
    };
    report.found("no-sanity", sanity.span.head(), message, "write what the output must contain: `- found: a line of a good run`");
}

pub(super) fn shell_word(subject: &Subject<'_>, report: &mut Report) {
    for item in subject.all("command").flat_map(Node::items) {
        if let Some(word) = item.text().filter(|word| OPERATORS.contains(word)) {
            let message = format!("`{word}` is an argument like any other here: `command` runs without a shell");
            report.found("shell-word", item.span, message, "write `executable`, or command: [sh, -c, \"..\"]");
        }
    }
}

pub(super) fn moving_image(subject: &Subject<'_>, report: &mut Report) {
    let own = subject.all("image");
    let inline = ["k8s_config", "k8s_patch"].into_iter().flat_map(|key| subject.all(key).collect::<Vec<_>>());
    let paths = load::manifest_paths(subject.tree());
    let files = paths.iter().filter_map(|(path, span)| subject.manifests.get(span.file, path)).flatten();
    let mut images: Vec<&Node> = own.collect();
    inline.chain(files).for_each(|node| within(node, &mut images));
    for image in images.into_iter().filter(|image| !image.has_placeholder() && !image.is_null()) {
        if let Some(moves) = image.text().and_then(moves) {
            let hint = "name a version, or a digest: image:1.2 or image@sha256:..";
            report.found("moving-image", image.span, moves, hint);
        }
    }
}

/// The images of containers, wherever they are in a manifest.
fn within<'a>(node: &'a Node, images: &mut Vec<&'a Node>) {
    for (key, value) in node.entries() {
        if key.text() == Some("image") && value.text().is_some() {
            images.push(value);
        }
        within(value, images);
    }
    node.items().iter().for_each(|item| within(item, images));
}

/// Why an image is not the same every time.
fn moves(image: &str) -> Option<&'static str> {
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        _ if last.contains('@') => None,
        None => Some("an image without a tag is `latest`, which changes over time"),
        Some((_, "latest")) => Some("`latest` changes over time"),
        Some(_) => None,
    }
}
