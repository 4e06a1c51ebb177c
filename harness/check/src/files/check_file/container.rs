//! `container_platform`: a container on `local`, in ReFrame's words.

use crate::site::platform::Platform;
use muster_text::{
    Value,
    decode::{Context, Decode, OneOrMany, or_placeholder},
    keys,
    yaml::{Kind, Node},
};
use serde_json::json;

keys! {
    /// `container_platform` as written.
    pub struct ContainerEntry ("a container platform") {
        /// docker, podman, singularity, apptainer, sarus or shifter. Default: the partition's.
        platform: Platform as "type",
        /// The image. Without it nothing runs in a container.
        image: String,
        /// The command in the container, as a shell line. Default: that of the image.
        command: String,
        /// More options of the platform's command line, joined by blanks. One, or a list.
        options: OneOrMany<String>,
        /// Folders to mount, `[on the host, in the container]` each. The stage folder is always mounted.
        mount_points: Vec<MountPoint>,
        /// Where the stage folder is mounted; null: nowhere. Default: `/rfm_workdir`.
        mount_stagedir: String,
        /// Where the command runs in the container; null: where the image says. Default: `/rfm_workdir`.
        workdir: String,
        /// Whether the image is pulled first, by docker, podman, sarus and shifter. Default: true.
        pull_image: bool,
        /// Whether the container sees NVIDIA's GPUs, with singularity and apptainer (`--nv`). Default: false.
        with_cuda: bool,
        /// Whether the container uses the host's MPI, with sarus and shifter (`--mpi`). Default: false.
        with_mpi: bool,
    }
    instead {
        "name" => "write `type`",
        "commands" | "executable" => "write `command`",
    }
}

/// One of `mount_points`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint {
    pub host: String,
    pub container: String,
}

impl Decode for MountPoint {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match context.kind(node)? {
            Kind::Seq(items) if items.len() == 2 => {
                Some(Self { host: String::decode(&items[0], context)?, container: String::decode(&items[1], context)? })
            }
            _ => context.expected(
                node,
                "`[path on the host, path in the container]`",
                Some("[/scratch/data, /data], for instance"),
            ),
        }
    }

    fn schema() -> Value {
        or_placeholder(&json!({ "type": "array", "items": String::schema(), "minItems": 2, "maxItems": 2 }))
    }
}
