//! Where both builds find their files.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::checkout::{Converted, Stored, attributes_of, convert, one_sided};
use super::fake_git::{Manifest, Upstream};
use super::proxy::{self, Proxy};
use super::{Job, Target};
use crate::graph::{
    CarriedId, FileId, Graph, Named, Origin, Place, RemoteFile, Root, RootId, Source, SourceId, Target as Leads,
};
use crate::kustomization::{self, Edit, NoteKind};
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::unusable;
use crate::plan::Original;
use crate::reference::RepoSpec;
use crate::tree::{Entry, Tree, path};

/// Original and result on disk, for all targets.
pub(super) struct BuildInputs {
    top: PathBuf,
    /// What builds read, and may not change.
    pub(super) input: PathBuf,
    /// Where the scope of the originals is.
    original: PathBuf,
    /// The manifest of what was fetched.
    pub(super) manifest: PathBuf,
    /// A manifest that holds nothing.
    pub(super) nothing: PathBuf,
    /// Serves the remote files of the originals, where that can be.
    pub(super) proxy: Option<Proxy>,
    /// Whether everything that the originals need is here or served, so that nothing is requested again.
    pub(super) is_complete: bool,
    /// The files that a checkout converts for the originals or for the results only.
    pub(super) converted: Vec<String>,
}

pub(super) fn not_put(error: &std::io::Error) -> Failure {
    unusable(error).context("cannot write the build inputs")
}

impl BuildInputs {
    /// Writes everything that the builds of these `targets` of a job read, below `top`.
    pub(super) fn put(job: &Job<'_>, targets: &[&Target], top: &Path) -> Result<BuildInputs> {
        let graph = &job.plan.before;
        let built = built(job, targets);
        let input = top.join("input");
        // Below directories of the same names: a path may climb out of the scope and come back.
        let scope = graph.sources.first().map_or("", |source| &source.scope);
        let original = input.join("original").join(scope);
        let place = |source: SourceId| match graph.sources[source].repository {
            None => original.clone(),
            Some(_) => input.join(format!("upstream/{source}")),
        };
        let urls = targets.iter().filter_map(|target| match &target.original {
            Original::Url(url) => Some(url.as_str()),
            Original::Directory(_) => None,
        });
        let may_run = |file: FileId| job.plan.trusted.contains(&file);
        let left_out = LeftOut::of(graph, built.as_ref());
        let urls: Vec<&str> = urls.collect();
        let stored = write_inputs(graph, &left_out, &place, &urls, &may_run)?;
        let source = &graph.sources[0];
        let before = match (job.checkout, &source.repository) {
            (Some(_), None) => convert(&stored, &|place| attributes_of(&*source.tree, place))?,
            // On disk, and of what was fetched, they are what a checkout gives.
            _ => Converted::new(),
        };
        move_absolute(graph, &original)?;
        let mut manifest = Manifest::default();
        for (number, source) in graph.sources.iter().enumerate() {
            if let Some(repository) = &source.repository {
                manifest.upstreams.push(Upstream {
                    url: repository.version.url.shown(),
                    reference: repository.version.reference.clone(),
                    submodules: repository.version.submodules,
                    commit: repository.commit.clone(),
                    directory: place(number),
                });
            }
        }
        let after = put_result(job, built.as_ref(), &input)?;
        let remote = || {
            graph.files.iter().filter_map(|file| match &file.origin {
                Origin::Remote(remote) => Some(&**remote),
                Origin::Tree { .. } | Origin::Archive { .. } => None,
            })
        };
        let proxy = if proxy::IS_TRUSTED && remote().next().is_some() {
            Some(Proxy::start(remote().map(|file| (file.url.exposed(), &*file.bytes)), top)?)
        } else {
            None
        };
        let is_here = |file: &RemoteFile| proxy.is_some() && !proxy::is_direct(file.url.exposed());
        let inputs = BuildInputs {
            manifest: top.join("fetched.json"),
            nothing: top.join("nothing.json"),
            is_complete: remote().all(is_here),
            proxy,
            top: top.to_owned(),
            input,
            original,
            converted: one_sided(&before, &after),
        };
        manifest.write(&inputs.manifest)?;
        Manifest::default().write(&inputs.nothing)?;
        Ok(inputs)
    }

    /// Returns what to build for an original.
    pub(super) fn original(&self, original: &Original) -> PathBuf {
        match original {
            Original::Directory(directory) => self.original.join(directory),
            Original::Url(url) => PathBuf::from(url),
        }
    }

    /// Returns what to build for a result.
    pub(super) fn localized(&self, directory: &str) -> PathBuf {
        self.input.join("localized").join(directory)
    }

    /// Returns where the builds of one target have their own files.
    pub(super) fn private(&self, number: usize) -> PathBuf {
        self.top.join("builds").join(number.to_string())
    }

    /// Returns what a build said without the temporary directories that it names, on one line.
    pub(super) fn plain(&self, said: &str) -> String {
        // What is deprecated is no reason, and kustomize says it before the reason.
        let is_cause = |line: &&str| {
            let is_flag = line.starts_with("Flag --") && line.contains(" has been deprecated");
            !is_flag && !line.starts_with("# Warning:")
        };
        let said = said.lines().filter(is_cause);
        let mut text = said.collect::<Vec<_>>().join("\n");
        for place in [&self.original, &self.input.join("localized")] {
            let place = place.display().to_string();
            let place = place.trim_end_matches('/');
            text = text.replace(&format!("{place}/"), "").replace(place, ".");
        }
        // The message of a command that it ran has several lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        cause(text.strip_prefix("Error: ").unwrap_or(&text))
    }
}

/// Returns what went wrong, and in which root: kustomize first lists everything else that it took the root for.
fn cause(text: &str) -> String {
    let nested = ["recursed accumulation of path '", "recursed merging from path '"];
    let innermost = nested.iter().filter_map(|words| {
        let start = text.rfind(words)? + words.len();
        let (path, cause) = text.get(start..)?.split_once("': ")?;
        Some((start, path, cause))
    });
    match innermost.max_by_key(|(start, ..)| *start) {
        None => text.to_owned(),
        // A fetched root lies in a temporary directory, whose name means nothing to the user.
        Some((_, path, cause)) if path.starts_with('/') => cause.to_owned(),
        Some((_, path, cause)) => format!("in `{path}`: {cause}"),
    }
}

/// Returns the directories of the user's tree that are built; none where all of the plan is.
fn built<'a>(job: &'a Job<'_>, targets: &[&'a Target]) -> Option<HashSet<&'a str>> {
    if job.plan.new_dir.is_some() {
        return None;
    }
    let targets = targets.iter().map(|target| target.localized.as_str());
    Some(targets.collect())
}

/// What no build reads, because only roots read it that are not built. What no root is known to read is none of it.
#[derive(Default)]
struct LeftOut {
    roots: HashSet<RootId>,
    files: HashSet<FileId>,
    carried: HashSet<CarriedId>,
}

impl LeftOut {
    /// Takes what is built; none for all.
    fn of(graph: &Graph, built: Option<&HashSet<&str>>) -> LeftOut {
        let Some(built) = built else {
            return LeftOut::default();
        };
        let is_built = |id: &RootId| {
            let root = &graph.roots[*id];
            root.source == 0 && built.contains(&*root.directory)
        };
        let all = 0..graph.roots.len();
        let built = graph.reach(all.clone().filter(is_built), |_, _, _| true);
        let (mut left_out, mut read) = (LeftOut::default(), LeftOut::default());
        for id in all {
            let one = if built.contains(&id) {
                &mut read
            } else {
                left_out.roots.insert(id);
                &mut left_out
            };
            let (files, carried) = graph.read_by(id);
            one.files.extend(files);
            one.carried.extend(carried);
        }
        left_out.files.retain(|file| !read.files.contains(file));
        left_out.carried.retain(|carried| !read.carried.contains(carried));
        left_out
    }
}

/// Writes the results, and returns what a checkout makes of them.
fn put_result(job: &Job<'_>, built: Option<&HashSet<&str>>, input: &Path) -> Result<Converted> {
    let localized = input.join("localized");
    match &job.plan.new_dir {
        None => {
            let graph = &job.plan.after;
            let left_out = LeftOut::of(graph, built);
            let stored = write_inputs(graph, &left_out, &|_| localized.clone(), &[], &|_| false)?;
            let attributes = |place: &str| attributes_of(&*graph.sources[0].tree, place);
            let converted = match job.checkout {
                Some(_) => convert(&stored, &attributes)?,
                None => Converted::new(),
            };
            move_absolute(graph, &localized)?;
            Ok(converted)
        }
        Some(into) => {
            let mut stored = Stored::new();
            for (place, file) in &job.plan.changes {
                let (Some(file), Some(inside)) = (file, path::below(place, into)) else { continue };
                let put = localized.join(inside);
                write(&put, &file.bytes, file.executable).map_err(|error| not_put(&error))?;
                stored.insert(place.clone(), put);
            }
            let Some(checkout) = job.checkout else {
                return Ok(Converted::new());
            };
            let attributes = |place: &str| match path::below(place, into) {
                Some(_) => Ok(job.plan.changes.get(place).and_then(|file| Some(file.as_ref()?.bytes.to_vec()))),
                None => attributes_of(checkout, place),
            };
            convert(&stored, &attributes)
        }
    }
}

fn write(place: &Path, bytes: &[u8], executable: bool) -> std::io::Result<()> {
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(place, bytes)?;
    #[cfg(unix)]
    if executable {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
    }
    let _ = executable;
    Ok(())
}

/// Writes what the graph reaches of each tree, links on the way included. What was fetched is executable only where
/// it `may_run`. Returns what was written of the first.
fn write_inputs(
    graph: &Graph,
    left_out: &LeftOut,
    place: &dyn Fn(SourceId) -> PathBuf,
    urls: &[&str],
    may_run: &dyn Fn(FileId) -> bool,
) -> Result<Stored> {
    let mut outs: Vec<Out<'_>> = Vec::new();
    for (number, source) in graph.sources.iter().enumerate() {
        let to = place(number);
        fs::create_dir_all(&to).map_err(|error| not_put(&error))?;
        outs.push(Out::new(source, to));
    }
    // A fetched file may lie in a partial tree, which only has what was requested: ask it for nothing else.
    for (id, file) in graph.files.iter().enumerate() {
        if left_out.files.contains(&id) {
            continue;
        }
        if let Origin::Tree { source, path } = &file.origin {
            let bytes = graph.sources[*source].repository.is_some();
            let bytes = bytes.then_some((&*file.bytes, file.executable && may_run(id)));
            outs[*source].put_file(path, bytes)?;
        }
    }
    let real = |file: FileId| match &graph.files[file].origin {
        Origin::Tree { path, .. } => Some(path.as_str()),
        Origin::Remote(_) | Origin::Archive { .. } => None,
    };
    let mut put = |source: SourceId, named: &str, real: Option<&str>| match real {
        // No link is on the way.
        Some(real) if real == named => Ok(()),
        _ => outs[source].put(named),
    };
    let lexical = |root: &Root, text: &str| {
        if path::is_absolute(text) {
            graph.sources[root.source].tree.absolute(text)
        } else {
            path::resolve(&root.directory, text)
        }
    };
    let directory = |text: &str| RepoSpec::parse(text).map(|spec| spec.directory()).ok();
    for directory in urls.iter().copied().filter_map(directory) {
        put(0, &directory, Some(&graph.roots[0].directory))?;
    }
    for (id, root) in graph.roots.iter().enumerate() {
        if left_out.roots.contains(&id) {
            continue;
        }
        let named = path::join(&root.directory, root.file_name);
        put(root.source, &named, real(root.file))?;
        for edge in &root.edges {
            let text = &edge.reference.text;
            let (source, named, real) = match edge.target {
                Leads::Root { id, remote } => {
                    let target = &graph.roots[id];
                    let named = if remote { directory(text) } else { lexical(root, text) };
                    (target.source, named, Some(target.directory.as_str()))
                }
                Leads::File(file) => match real(file) {
                    Some(real) => (root.source, lexical(root, text), Some(real)),
                    None => continue,
                },
                _ => continue,
            };
            if let Some(named) = named {
                put(source, &named, real)?;
            }
        }
    }
    for (id, carried) in graph.carried.iter().enumerate() {
        if left_out.carried.contains(&id) {
            continue;
        }
        for (inside, file) in &carried.files {
            let named = path::join(&carried.path, inside);
            put(carried.source, &named, real(*file))?;
        }
        if carried.files.is_empty() {
            let tree = &*graph.sources[carried.source].tree;
            for named in files_below(tree, &carried.path)? {
                put(carried.source, &named, None)?;
            }
        }
    }
    for chart in graph.named_charts() {
        let (root, source) = (chart.noted.root, graph.roots[chart.noted.root].source);
        let Source { tree, repository, .. } = &graph.sources[source];
        match &chart.place {
            // A walk without a network looks for it, and not into it.
            Place::There(directory) if repository.is_none() && !left_out.roots.contains(&root) => {
                for named in files_below(&**tree, directory)? {
                    put(source, &named, None)?;
                }
            }
            Place::Missing(directory) => put_chart(graph, &chart, directory, &place(source))?,
            _ => {}
        }
    }
    Ok(std::mem::take(&mut outs[0].stored))
}

/// Returns the files and links of a directory that the walk did not look into.
fn files_below(tree: &dyn Tree, directory: &str) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(directory) = todo.pop() {
        for name in tree.names(&directory)? {
            let place = path::join(&directory, &name);
            match tree.entry(&place)? {
                Some(Entry::Directory) => todo.push(place),
                Some(Entry::File { .. } | Entry::Link) => files.push(place),
                _ => {}
            }
        }
    }
    Ok(files)
}

/// Puts a chart that was pulled where kustomize looks for it, so that it pulls none itself. `top` is where its source
/// lies.
fn put_chart(graph: &Graph, named: &Named<'_>, directory: &str, top: &Path) -> Result<()> {
    let chart = graph.charts.iter().find(|chart| chart.note == named.note);
    let brought = chart.and_then(|chart| chart.brought.as_ref());
    let source = graph.roots[named.noted.root].source;
    let inside = path::below(directory, &graph.sources[source].scope);
    let (Some((archive, _)), Some(inside)) = (brought, inside) else {
        return Ok(());
    };
    for (name, bytes) in &archive.files {
        let to = top.join(inside).join(name);
        write(&to, bytes, false).map_err(|error| not_put(&error))?;
    }
    Ok(())
}

/// Lets absolute paths of the user's tree, which lies in `top` now, lead there.
fn move_absolute(graph: &Graph, top: &Path) -> Result<()> {
    let Some(top) = top.to_str() else {
        return Ok(());
    };
    let mut edits: BTreeMap<FileId, Vec<Edit<'_>>> = BTreeMap::new();
    for root in &graph.roots {
        for edge in &root.edges {
            let reference = &edge.reference;
            if !path::is_absolute(&reference.text) {
                continue;
            }
            let (source, real) = match edge.target {
                Leads::File(file) => match &graph.files[file].origin {
                    Origin::Tree { source, path } => (*source, path),
                    Origin::Remote(_) | Origin::Archive { .. } => continue,
                },
                Leads::Carried(id) => (graph.carried[id].source, &graph.carried[id].path),
                _ => continue,
            };
            let text = path::join(top, graph.in_scope(source, real));
            edits
                .entry(edge.from)
                .or_default()
                .push(Edit { spot: &reference.spot, value: Some(reference.with_path(&text)) });
        }
    }
    for noted in &graph.notes {
        let NoteKind::ChartHome { path: text, spot } = &noted.note.kind else {
            continue;
        };
        if path::is_absolute(text)
            && let Some(home) = graph.local_path(noted.root, text)
        {
            let source = graph.roots[noted.root].source;
            edits
                .entry(noted.file)
                .or_default()
                .push(Edit { spot, value: Some(path::join(top, graph.in_scope(source, &home))) });
        }
    }
    for (file, edits) in edits {
        let file = &graph.files[file];
        if let Origin::Tree { source, path } = &file.origin {
            let place = Path::new(top).join(graph.in_scope(*source, path));
            // A file that cannot be edited is left unchanged; the build reports what is wrong with it.
            if let Ok(bytes) = kustomization::edit(&file.bytes, &edits) {
                write(&place, &bytes, file.executable).map_err(|error| not_put(&error))?;
            }
        }
    }
    Ok(())
}

/// A tree that is written into a directory.
struct Out<'a> {
    tree: &'a dyn Tree,
    scope: &'a str,
    /// Whether it was fetched: then its files are executable only if the user trusts them.
    is_foreign: bool,
    to: PathBuf,
    done: HashSet<String>,
    /// The files that were written as the tree holds them.
    stored: Stored,
}

/// The longest chain of links that is followed, as on Linux.
const LINKS: usize = 40;

impl<'a> Out<'a> {
    fn new(source: &'a Source, to: PathBuf) -> Self {
        Out {
            tree: &*source.tree,
            scope: &source.scope,
            is_foreign: source.repository.is_some(),
            to,
            done: HashSet::new(),
            stored: Stored::new(),
        }
    }

    /// Writes a file at its real path, with its contents if they are known.
    fn put_file(&mut self, path: &str, known: Option<(&[u8], bool)>) -> Result<()> {
        let Some((bytes, executable)) = known else {
            return self.put(path);
        };
        if let Some(inside) = path::below(path, self.scope) {
            write(&self.to.join(inside), bytes, executable).map_err(|error| not_put(&error))?;
        }
        Ok(())
    }

    /// Writes the entry at `path`, and every directory and link on the way there. A missing one stays missing.
    fn put(&mut self, path: &str) -> Result<()> {
        if !self.done.insert(path.to_owned()) {
            return Ok(());
        }
        let mut real = String::new();
        let mut rest: Vec<String> = path::components(path).rev().map(str::to_owned).collect();
        let mut links = 0;
        while let Some(component) = rest.pop() {
            if component == ".." {
                real = path::parent(&real).to_owned();
                continue;
            }
            let next = path::join(&real, &component);
            let place = path::below(&next, self.scope).map(|inside| self.to.join(inside));
            match self.tree.entry(&next)? {
                None | Some(Entry::Submodule) => return Ok(()),
                Some(Entry::Directory) => {
                    if let Some(place) = place {
                        fs::create_dir_all(place).map_err(|error| not_put(&error))?;
                    }
                    real = next;
                }
                Some(Entry::File { executable }) => {
                    let Some(place) = place else { return Ok(()) };
                    if place.symlink_metadata().is_err() {
                        let executable = executable && !self.is_foreign;
                        write(&place, &self.tree.read(&next)?, executable).map_err(|error| not_put(&error))?;
                        self.stored.insert(next, place);
                    }
                    return Ok(());
                }
                Some(Entry::Link) => {
                    links += 1;
                    let Ok(target) = String::from_utf8(self.tree.read(&next)?) else {
                        return Ok(());
                    };
                    if links > LINKS {
                        return Ok(());
                    }
                    let Some((shown, inside)) = self.link(&real, &target) else {
                        return Ok(());
                    };
                    if let Some(place) = place {
                        link(&shown, &place).map_err(|error| not_put(&error))?;
                    }
                    if path::is_absolute(&target) {
                        real.clear();
                    }
                    rest.extend(
                        path::components(&inside).rev().filter(|component| *component != ".").map(str::to_owned),
                    );
                }
            }
        }
        Ok(())
    }

    /// Returns what a link in the directory `real` says where it is written, and the path that it leads to:
    /// from the top for an absolute one, else from `real`.
    fn link(&self, real: &str, target: &str) -> Option<(String, String)> {
        if path::is_absolute(target) {
            let inside = self.tree.absolute(target)?;
            return Some((path::relative(real, &inside), inside));
        }
        let scoped = path::below(real, self.scope)?;
        let shown = match path::resolve(scoped, target) {
            Some(_) => target.to_owned(),
            None => path::relative(real, &path::resolve(real, target)?),
        };
        Some((shown, target.to_owned()))
    }
}

#[cfg(unix)]
fn link(target: &str, place: &Path) -> std::io::Result<()> {
    match place.symlink_metadata() {
        Ok(_) => Ok(()),
        Err(_) => std::os::unix::fs::symlink(target, place),
    }
}

#[cfg(not(unix))]
fn link(_target: &str, _place: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn the_cause_is_extracted_from_kustomize_output() {
        for (said, expected) in [
            ("no such file", "no such file"),
            (
                "accumulating resources: accumulation err='accumulating resources from '../../base': 'base' must resolve to a file': recursed merging from path 'base': may not add resource",
                "in `base`: may not add resource",
            ),
            (
                "accumulating resources: accumulation err='x': recursed accumulation of path '/tmp/a/kustomize-1/gen': accumulation err='y': recursed accumulation of path '/tmp/a/kustomize-2': external plugins disabled",
                "external plugins disabled",
            ),
        ] {
            assert_eq!(cause(said), expected);
        }
    }
}
