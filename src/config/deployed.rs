//! What the configuration says about what is deployed: where no object in the tree says it.

use super::read::{choice, unknown};
use crate::failure::{Failure, Result, shown};
use crate::tree::path;
use crate::yaml::Reader;

/// The keys of an entry of `repository`.
pub(super) const REPOSITORY_KEYS: [&str; 2] = ["url", "path"];

/// The keys of an entry of `targets`.
pub(super) const TARGET_KEYS: [&str; 2] = ["path", "engine"];

/// Who builds what is deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// Flux's kustomize-controller.
    Flux,
    /// Argo CD's repo-server.
    ArgoCd,
    /// Rancher Fleet.
    Fleet,
    /// `kustomize build`, by hand or in a pipeline.
    Kustomize,
}

impl Engine {
    /// Every engine.
    pub const ALL: &[Engine] = &[
        Engine::Flux,
        Engine::ArgoCd,
        Engine::Fleet,
        Engine::Kustomize,
    ];

    /// Returns its name, as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Engine::Flux => "Flux",
            Engine::ArgoCd => "Argo CD",
            Engine::Fleet => "Fleet",
            Engine::Kustomize => "kustomize",
        }
    }

    /// Returns its name for machines, as in the configuration.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Engine::Flux => "flux",
            Engine::ArgoCd => "argo-cd",
            Engine::Fleet => "fleet",
            Engine::Kustomize => "kustomize",
        }
    }
}

/// An entry of `repository`: a URL under which this repository is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The URL; `oci://` for what is pushed as an artifact.
    pub url: String,
    /// The directory that is its top there, from the top of the repository; empty for the top.
    pub path: String,
}

/// An entry of `targets`: a directory that is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The directory, from the top of the repository; empty for the top.
    pub path: String,
    /// Who builds it.
    pub engine: Engine,
    /// The line on which it begins.
    pub line: usize,
    /// The column at which it begins.
    pub column: usize,
}

/// Reads an entry of `repository`; `None` when something of it is wrong, which is in `failures` then.
pub(super) fn repository(
    reader: &mut Reader<'_>,
    failures: &mut Vec<Failure>,
) -> Result<Option<Repository>> {
    let (mut url, mut path) = (None, Some(String::new()));
    let mut has_url = false;
    let start = reader.mapping(|reader, key, mark| {
        reader.recover(failures, |reader| match key {
            "url" => {
                has_url = true;
                let text = reader.text()?;
                if text.text.trim().is_empty() {
                    return Err(reader.failure(text.mark, "the URL is empty"));
                }
                url = Some(text.text.into_owned());
                Ok(())
            }
            "path" => {
                path = None;
                path = Some(directory(reader)?);
                Ok(())
            }
            _ => unknown(reader, key, mark, &REPOSITORY_KEYS),
        })
    })?;
    if !has_url {
        failures.push(reader.failure(start, "an entry has a `url`"));
    }
    Ok(match (url, path, failures.is_empty()) {
        (Some(url), Some(path), true) => Some(Repository { url, path }),
        _ => None,
    })
}

/// Reads an entry of `targets`; `None` when something of it is wrong, which is in `failures` then.
pub(super) fn target(
    reader: &mut Reader<'_>,
    failures: &mut Vec<Failure>,
) -> Result<Option<Declared>> {
    let (mut path, mut engine) = (None, None);
    let (mut has_path, mut has_engine) = (false, false);
    let engines: Vec<(&str, Engine)> = Engine::ALL
        .iter()
        .map(|engine| (engine.id(), *engine))
        .collect();
    let start = reader.mapping(|reader, key, mark| {
        reader.recover(failures, |reader| match key {
            "path" => {
                has_path = true;
                path = Some(directory(reader)?);
                Ok(())
            }
            "engine" => {
                has_engine = true;
                engine = Some(choice(reader, &engines)?);
                Ok(())
            }
            _ => unknown(reader, key, mark, &TARGET_KEYS),
        })
    })?;
    if !has_path {
        failures.push(reader.failure(start, "an entry has a `path`"));
    }
    if !has_engine {
        failures.push(reader.failure(start, "an entry has an `engine`"));
    }
    Ok(match (path, engine, failures.is_empty()) {
        (Some(path), Some(engine), true) => Some(Declared {
            path,
            engine,
            line: start.line,
            column: start.column,
        }),
        _ => None,
    })
}

/// Reads a directory of the repository.
fn directory(reader: &mut Reader<'_>) -> Result<String> {
    let text = reader.text()?;
    let written = &*text.text;
    let resolved = path::resolve("", written).filter(|_| !path::is_absolute(written));
    match resolved {
        Some(path) if path == written || (path.is_empty() && written == ".") => Ok(path),
        _ => Err(reader
            .failure(
                text.mark,
                format!("`{}` is not a directory of the repository", shown(written)),
            )
            .hint("write directories from the top of the repository, as `clusters/edge`; `.` for the top")),
    }
}
