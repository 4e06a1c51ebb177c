//! The images and instance types that a session asks for once: `preflight` and every launch share them.

use crate::{
    cloud::{Cloud, CloudError, Image, Images, InstanceType},
    config,
};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::Mutex;

/// One for all jobs at a place. It asks once, also where many ask at the same time, and remembers what is there for as long as it lives:
/// an image that is newer, or another value of a parameter, is for the next session. What is missing is asked for again.
pub(crate) struct Resolver {
    cloud: Arc<dyn Cloud>,
    /// By what the check says.
    images: Mutex<BTreeMap<config::Image, Image>>,
    types: Mutex<BTreeMap<String, InstanceType>>,
}

/// What a launch has to know of an image and the type of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub image: Image,
    pub instance_type: InstanceType,
}

/// Why there is no image or no type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    /// EC2 has none: it can never work.
    #[error("{0}")]
    Missing(String),
    #[error(transparent)]
    Cloud(#[from] CloudError),
}

impl Resolver {
    pub(crate) fn new(cloud: Arc<dyn Cloud>) -> Self {
        Self { cloud, images: Mutex::default(), types: Mutex::default() }
    }

    /// For a launch: the image that a check names, with its root device and the size of it, and the type.
    ///
    /// # Errors
    /// One of them does not exist, or the cloud does not answer.
    pub(crate) async fn resolved(&self, image: &config::Image, instance_type: &str) -> Result<Resolved, Unresolved> {
        let image = self.image(image).await?;
        let found = self.types(&[instance_type.to_owned()]).await?.pop();
        let missing = || Unresolved::Missing(format!("{} has no instance type {instance_type}", self.region()));
        let instance_type = found.ok_or_else(missing)?;
        Ok(Resolved { image, instance_type })
    }

    /// The image that a check names. An image of EBS that is available is not promised: `preflight` says what is wrong with it.
    ///
    /// # Errors
    /// It does not exist, or the cloud does not answer.
    pub(crate) async fn image(&self, named: &config::Image) -> Result<Image, Unresolved> {
        let mut known = self.images.lock().await;
        if let Some(image) = known.get(named) {
            return Ok(image.clone());
        }
        let image = self.find(named).await?;
        known.insert(named.clone(), image.clone());
        Ok(image)
    }

    async fn find(&self, named: &config::Image) -> Result<Image, Unresolved> {
        let (which, parameter) = match named {
            config::Image::Id(id) => (Images::Id(id.clone()), None),
            config::Image::Newest { owner, name } => (Images::Named { owner: owner.clone(), name: name.clone() }, None),
            config::Image::Parameter(name) => (Images::Id(self.parameter(name).await?), Some(name)),
        };
        let found = self.cloud.images(&which).await?;
        // Of one name, images that are still being made do not count while there is another.
        let newest = found.into_iter().max_by(|a, b| order(a).cmp(&order(b)));
        newest.ok_or_else(|| {
            let region = self.region();
            Unresolved::Missing(match (which, parameter) {
                (Images::Id(id), None) => format!("image {id} does not exist in {region}, or is not shared with this account"),
                (Images::Id(id), Some(name)) => {
                    format!("image {id}, the value of the parameter {name}, does not exist in {region}, or is not shared with this account")
                }
                (Images::Named { owner, name }, _) => format!("no image of {owner} in {region} has the name `{name}`"),
            })
        })
    }

    async fn parameter(&self, name: &str) -> Result<String, Unresolved> {
        match self.cloud.parameter(name).await {
            Ok(value) if value.starts_with("ami-") => Ok(value),
            Ok(_) => Err(Unresolved::Missing(format!("the parameter {name} in {} holds no image", self.region()))),
            Err(error) if matches!(error.code(), Some("ParameterNotFound" | "ParameterVersionNotFound")) => {
                Err(Unresolved::Missing(format!("there is no parameter {name} in {}", self.region())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// These types, in the order of their names, without those that do not exist in the region. One request for all that are new.
    ///
    /// # Errors
    /// The cloud does not answer.
    pub(crate) async fn types(&self, names: &[String]) -> Result<Vec<InstanceType>, CloudError> {
        let mut known = self.types.lock().await;
        let new: Vec<String> = names.iter().filter(|name| !known.contains_key(*name)).cloned().collect();
        if !new.is_empty() {
            let found = self.cloud.instance_types(&new).await?;
            known.extend(found.into_iter().map(|one| (one.name.clone(), one)));
        }
        Ok(known.values().filter(|one| names.contains(&one.name)).cloned().collect())
    }

    fn region(&self) -> &str {
        &self.cloud.place().region
    }
}

fn order(image: &Image) -> (bool, &str) {
    (image.state == "available", &image.created)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::fake::Fake;

    fn named(name: &str) -> config::Image {
        config::Image::Newest { owner: "self".to_owned(), name: name.to_owned() }
    }

    #[tokio::test]
    async fn the_newest_image_that_is_available_is_taken_and_asked_for_once() {
        let fake = Arc::new(Fake::default());
        let first = fake.state().images[0].clone();
        for (id, created, state) in [
            ("ami-1", "2026-11-20T12:00:00.000Z", "available"),
            ("ami-2", "2026-11-24T12:00:00.000Z", "pending"),
            ("ami-3", "2026-11-10T12:00:00.000Z", "available"),
        ] {
            let image = Image { id: id.to_owned(), created: created.to_owned(), state: state.to_owned(), ..first.clone() };
            fake.state().images.push(image);
        }
        let resolver = Resolver::new(fake.clone());
        let asked = [named("bench-*"), named("bench-*")];
        let (a, b) =
            futures_util::future::join(resolver.resolved(&asked[0], "c7i.8xlarge"), resolver.resolved(&asked[1], "c7i.8xlarge"))
                .await;
        assert_eq!(a.as_ref().unwrap().image.id, "ami-1");
        assert_eq!(a.as_ref().unwrap().instance_type.vcpus, 32);
        assert_eq!(a, b);
        assert_eq!(fake.state().calls, ["DescribeImages", "DescribeInstanceTypes"]);
    }

    #[tokio::test]
    async fn what_is_missing_is_said_and_asked_for_again() {
        let fake = Arc::new(Fake::default());
        let parameters = [("/none", None), ("/text", Some("hello")), ("/gone", Some("ami-0123456789abcdef0"))];
        fake.state().parameters.extend(parameters.into_iter().filter_map(|(name, value)| Some((name.into(), value?.into()))));
        let resolver = Resolver::new(fake.clone());
        let mut said = Vec::new();
        for image in [
            config::Image::Id("ami-0123456789abcdef0".to_owned()),
            config::Image::Parameter("/none".to_owned()),
            config::Image::Parameter("/text".to_owned()),
            config::Image::Parameter("/gone".to_owned()),
            named("other-*"),
        ] {
            said.push(resolver.resolved(&image, "c7i.8xlarge").await.unwrap_err().to_string());
        }
        let image = config::Image::Id("ami-0abc1234def567890".to_owned());
        said.push(resolver.resolved(&image, "c7i.8xlrge").await.unwrap_err().to_string());
        insta::assert_snapshot!(said.join("\n"));

        fake.state().parameters.insert("/none".to_owned(), "ami-0abc1234def567890".to_owned());
        let found = resolver.image(&config::Image::Parameter("/none".to_owned())).await.unwrap();
        assert_eq!(found.id, "ami-0abc1234def567890");
    }
}
