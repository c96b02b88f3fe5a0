//! Container images: builds everything with the content of the lock, and searches the outputs for containers.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::Deserialize;
use serde_yaml::{Deserializer, Value};

use crate::build::builds::Builds;
use crate::build::choice::{Choice, Choices};
use crate::commands::localize::KustomizeArgs;
use crate::fetch::Progress;
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result};
use crate::os::parallel::processors;
use crate::targets::Target;
use crate::targets::elsewhere::{deploying, object_line};
use crate::workspace::{Workspace, from_lock};

/// The roots and targets that run each image.
pub(super) type RunBy = BTreeMap<String, BTreeSet<String>>;

/// The images that the builds of a commit run.
#[derive(Default)]
pub(super) struct Images {
    pub(super) run_by: RunBy,
    /// The builds that failed, so that their images are unknown.
    pub(super) not_built: Vec<Failure>,
    /// The deployments that are elsewhere, so that their images are unknown.
    pub(super) elsewhere: BTreeSet<String>,
}

/// The images that run in the builds of a commit: of each starting point, and of each target that is deployed from it.
/// A build that fails, or a file that cannot be read, may run others: it does not end the search, and is reported.
pub(super) fn images_of(
    repo: &Rc<LocalRepo>,
    rev: &str,
    with: &KustomizeArgs,
    quiet: bool,
) -> Result<Images, Failures> {
    let workspace = Workspace::of_rev(repo.clone(), Some(rev))?.into_checkout();
    let mut choices = Choices::of_workspace(repo, &workspace, &[])?;
    let elsewhere = choices.take_elsewhere();
    let Choices { builds: chosen, unread, targets, .. } = choices;
    let names: Vec<String> = chosen.iter().map(Choice::name).collect();
    let subjects: Vec<_> = chosen.iter().map(|choice| choice.subject(&workspace)).collect();
    // Images are known only from builds, so content of the lock that is not cached is fetched.
    let offline = false;
    let mut fetcher = from_lock(workspace.repo(), &workspace, offline, quiet)?;
    let builds = Builds::of_workspace(&workspace, workspace.lock.as_deref(), &subjects, &mut fetcher, with.programs())?;
    let built = Progress::new("building", quiet).each(processors(), &names, String::clone, |number, _| {
        let output = builds.build(number)?.stdout;
        Ok::<_, Failures>((images(&output)?, deploying(&output)))
    });
    let unread = unread.iter().map(|file| Failure::new(format!("{}: {}", file.location_text(), file.message)));
    let elsewhere = elsewhere.iter().filter_map(Target::elsewhere_line).collect();
    let mut all = Images { run_by: RunBy::new(), not_built: unread.collect(), elsewhere };
    for (name, built) in names.iter().zip(built) {
        match built {
            Ok((images, objects)) => {
                images.into_iter().for_each(|image| _ = all.run_by.entry(image).or_default().insert(name.clone()));
                all.elsewhere.extend(objects.iter().filter_map(|object| object_line(object, name, &targets)));
            }
            Err(failures) => all.not_built.extend(failures.context(name).0),
        }
    }
    Ok(all)
}

/// The images of containers, in objects of any kind.
fn images(output: &[u8]) -> Result<BTreeSet<String>> {
    let mut images = BTreeSet::new();
    for document in Deserializer::from_slice(output) {
        let object = Value::deserialize(document);
        let object = object.map_err(|error| Failure::new(format!("cannot read the build output: {error}")))?;
        add_images(&object, &mut images);
    }
    Ok(images)
}

/// Adds the images of the containers in a value, at any depth: a template of pods may be anywhere in a custom resource.
fn add_images(value: &Value, images: &mut BTreeSet<String>) {
    match value {
        Value::Sequence(items) => items.iter().for_each(|item| add_images(item, images)),
        Value::Mapping(fields) => {
            for name in ["containers", "initContainers", "ephemeralContainers"] {
                let containers = fields.get(name).and_then(Value::as_sequence).into_iter().flatten();
                let named = containers.filter_map(|container| container.get("image")?.as_str());
                images.extend(named.map(str::trim).filter(|image| !image.is_empty()).map(str::to_owned));
            }
            fields.values().for_each(|field| add_images(field, images));
        }
        Value::Tagged(tagged) => add_images(&tagged.value, images),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_those_of_containers_at_any_depth() {
        let output = b"kind: CronJob
spec: {jobTemplate: {spec: {template: {spec: {initContainers: [{image: a:1}], containers: [{image: b}, {name: none}, {image: ''}, {image: ' '}]}}}}}
---
kind: List
items:
- {kind: Sensor, spec: {template: {containers: [{image: 'c@sha256:0'}], container: {image: not-one}}}}
- {kind: CustomResourceDefinition, spec: {properties: {containers: {image: not-one}}}}
---
kind: ConfigMap
data: {text: 'containers: [{image: not-one}]'}
";
        assert_eq!(images(output).unwrap().into_iter().collect::<Vec<_>>(), ["a:1", "b", "c@sha256:0"]);
        images(b"a: [").unwrap_err();
    }
}
