//! Command lines that run a container on a machine: docker, podman, singularity, apptainer, sarus, shifter.
//!
//! The lines are ReFrame's to the letter; podman, which it does not know, takes docker's. Texts are for the shell: `$`
//! in a mount point or a command is live.
//!
//! Not done here: saying that a platform is not installed; the script does.

use crate::{files::check_file::ContainerEntry, site::platform::Platform};
use muster_text::yaml::Node;

/// Where the stage folder is mounted by default.
const WORKDIR: &str = "/rfm_workdir";

/// A container to run.
#[derive(Debug, Clone)]
pub struct Container<'a> {
    /// The program that runs it.
    pub platform: Platform,
    pub image: &'a str,
    pub entry: &'a ContainerEntry,
    /// The path where the stage folder is mounted; `None`: it is not.
    pub mount_stagedir: Option<&'a str>,
    /// The folder in which the command runs; `None`: the one that the image sets.
    pub workdir: Option<&'a str>,
}

impl<'a> Container<'a> {
    /// The container that a check asks for. `None` without an image. The tree distinguishes null from a missing key.
    pub fn of(entry: &'a ContainerEntry, tree: &Node, platform: Platform) -> Option<Self> {
        let or_default = |key: &str, own: &'a Option<String>| {
            let is_null = tree.get(key).is_some_and(Node::is_null);
            own.as_deref().or_else(|| (!is_null).then_some(WORKDIR))
        };
        Some(Self {
            platform,
            image: entry.image.as_deref()?,
            entry,
            mount_stagedir: or_default("mount_stagedir", &entry.mount_stagedir),
            workdir: or_default("workdir", &entry.workdir),
        })
    }

    /// The line that fetches the image, where that is a step of its own.
    pub fn pull(&self) -> Option<String> {
        let wanted = self.entry.pull_image.unwrap_or(true);
        let pulls = match self.platform {
            Platform::Docker | Platform::Podman => true,
            // What was loaded from an archive is on no server.
            Platform::Sarus | Platform::Shifter => !self.image.starts_with("load/"),
            Platform::Singularity | Platform::Apptainer => false,
        };
        (wanted && pulls).then(|| format!("{} pull {}", self.platform, self.image))
    }

    /// The line that runs the command in the container. The stage folder is text for the shell, within double quotes.
    pub fn run(&self, stage: &str) -> String {
        let with_command = self.entry.command.is_some();
        let verb = match self.platform {
            Platform::Docker | Platform::Podman => "run --rm",
            Platform::Singularity | Platform::Apptainer if with_command => "exec",
            _ => "run",
        };
        let mut words = vec![format!("{} {verb}", self.platform)];
        let own = self.entry.mount_points.iter().flatten().map(|mount| (mount.host.clone(), mount.container.as_str()));
        let stage = self.mount_stagedir.map(|inside| (stage.to_owned(), inside));
        words.extend(own.chain(stage).map(|(host, inside)| self.mount(&host, inside)));
        match self.platform {
            Platform::Singularity | Platform::Apptainer if self.entry.with_cuda == Some(true) => words.push("--nv".to_owned()),
            Platform::Sarus | Platform::Shifter if self.entry.with_mpi == Some(true) => words.push("--mpi".to_owned()),
            _ => {}
        }
        words.extend(self.workdir.and_then(|folder| match self.platform {
            Platform::Docker | Platform::Podman | Platform::Sarus => Some(format!("-w {folder}")),
            Platform::Singularity | Platform::Apptainer => Some(format!("--pwd {folder}")),
            Platform::Shifter => None,
        }));
        words.extend(self.entry.options.iter().flat_map(|options| options.iter()).cloned());
        words.push(self.image.to_owned());
        words.extend(self.entry.command.clone());
        words.join(" ")
    }

    fn mount(&self, host: &str, inside: &str) -> String {
        match self.platform {
            Platform::Docker | Platform::Podman => format!("-v \"{host}\":\"{inside}\""),
            Platform::Singularity | Platform::Apptainer => format!("-B\"{host}:{inside}\""),
            Platform::Sarus | Platform::Shifter => format!("--mount=type=bind,source=\"{host}\",destination=\"{inside}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_text::{
        decode::{Context, Decode, Placeholders},
        diagnostic::FileId,
        shell,
        yaml::parse,
    };

    /// The lines of every platform for a check that says this.
    fn lines(text: &str) -> String {
        let parsed = parse(FileId::default(), text);
        let tree = &parsed.documents[0];
        let mut context = Context::new(Placeholders::Refuse);
        let entry = ContainerEntry::decode(tree, &mut context).expect("an entry");
        assert_eq!(context.diagnostics.len(), 0, "{:?}", context.diagnostics);
        let lines = Platform::WORDS.iter().flat_map(|(_, platform)| {
            let container = Container::of(&entry, tree, *platform).expect("an image");
            [container.pull(), Some(container.run(&shell::in_double_quotes("/stage/a $b")))]
        });
        lines.flatten().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_lines_are_reframes() {
        let all = "image: busybox\ncommand: ls /data\noptions: [--net=host, -q]\nmount_points: [[$HOME/data, /data]]\nwith_cuda: true\nwith_mpi: true";
        insta::assert_snapshot!(lines(all), @r#"
        docker pull busybox
        docker run --rm -v "$HOME/data":"/data" -v "/stage/a \$b":"/rfm_workdir" -w /rfm_workdir --net=host -q busybox ls /data
        podman pull busybox
        podman run --rm -v "$HOME/data":"/data" -v "/stage/a \$b":"/rfm_workdir" -w /rfm_workdir --net=host -q busybox ls /data
        singularity exec -B"$HOME/data:/data" -B"/stage/a \$b:/rfm_workdir" --nv --pwd /rfm_workdir --net=host -q busybox ls /data
        apptainer exec -B"$HOME/data:/data" -B"/stage/a \$b:/rfm_workdir" --nv --pwd /rfm_workdir --net=host -q busybox ls /data
        sarus pull busybox
        sarus run --mount=type=bind,source="$HOME/data",destination="/data" --mount=type=bind,source="/stage/a \$b",destination="/rfm_workdir" --mpi -w /rfm_workdir --net=host -q busybox ls /data
        shifter pull busybox
        shifter run --mount=type=bind,source="$HOME/data",destination="/data" --mount=type=bind,source="/stage/a \$b",destination="/rfm_workdir" --mpi --net=host -q busybox ls /data
        "#);
        insta::assert_snapshot!(lines("image: load/busybox\npull_image: false\nmount_stagedir: null\nworkdir: null"), @r"
        docker run --rm load/busybox
        podman run --rm load/busybox
        singularity run load/busybox
        apptainer run load/busybox
        sarus run load/busybox
        shifter run load/busybox
        ");
    }

    #[test]
    fn a_platform_is_known_by_both_spellings() {
        for (text, platform) in [("Singularity", Some(Platform::Singularity)), ("podman", Some(Platform::Podman)), ("lxc", None)]
        {
            let parsed = parse(FileId::default(), text);
            let mut context = Context::new(Placeholders::Refuse);
            assert_eq!(Platform::decode(&parsed.documents[0], &mut context), platform);
            assert_eq!(context.diagnostics.is_empty(), platform.is_some());
        }
    }
}
