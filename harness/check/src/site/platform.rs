//! The programs that run containers on a machine.

use muster_text::{
    Value,
    decode::{Context, Decode, words_schema},
    yaml::Node,
};
use std::fmt;

/// A program that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Docker,
    /// Podman, with docker's command line.
    Podman,
    Singularity,
    /// Apptainer, with singularity's command line.
    Apptainer,
    Sarus,
    /// Shifter, with nearly Sarus' command line.
    Shifter,
}

impl Platform {
    /// The words of the files. They are also the names of the programs.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("docker", Self::Docker),
        ("podman", Self::Podman),
        ("singularity", Self::Singularity),
        ("apptainer", Self::Apptainer),
        ("sarus", Self::Sarus),
        ("shifter", Self::Shifter),
    ];

    pub fn program(self) -> &'static str {
        Self::WORDS.iter().find(|(_, platform)| *platform == self).map_or("", |(word, _)| word)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// ReFrame's names begin with a capital letter, and are the same platforms.
impl Decode for Platform {
    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let text = node.text().map(str::to_lowercase);
        let known = Self::WORDS.iter().find(|(word, _)| Some(*word) == text.as_deref());
        match (context.kind(node)?, known) {
            (_, Some((_, platform))) => Some(*platform),
            (_, None) => muster_text::decode::word(node, context, &Self::WORDS),
        }
    }

    fn schema() -> Value {
        let words = Self::WORDS.map(|(word, platform)| [word.to_owned(), capital(word)].map(|word| (word, platform))).concat();
        let words: Vec<(&str, Platform)> = words.iter().map(|(word, platform)| (word.as_str(), *platform)).collect();
        words_schema(&words)
    }
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}
