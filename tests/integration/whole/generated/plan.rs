//! What a random tree is made of. Nothing here knows paths or YAML: that is for `write`.

use proptest::collection::vec;
use proptest::prelude::*;

/// A kustomization root and everything that it names.
#[derive(Debug, Clone)]
pub(super) struct RootPlan {
    /// Which name its kustomization has, and how its YAML is written.
    pub(super) style: u64,
    pub(super) name: usize,
    pub(super) fields: Vec<FieldPlan>,
}

#[derive(Debug, Clone)]
pub(super) enum FieldPlan {
    File(FileField, FilePlace),
    Root(RootField, RootPlace, RootPlan),
    Plugins(PluginList, Holder, Vec<(usize, FilePlace)>),
}

/// A field that takes a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileField {
    Resources,
    Bases,
    Crds,
    Configurations,
    Openapi,
    Patches,
    PatchesStrategicMerge,
    PatchesJson6902,
    Replacements,
    /// In a generator of secrets or of config maps.
    Generator(bool, Source),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    Files,
    FilesWithKey,
    Envs,
    Env,
}

/// A field that takes a directory.
#[derive(Debug, Clone, Copy)]
pub(super) enum RootField {
    Resources,
    Bases,
    Components,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PluginList {
    Generators,
    Transformers,
    Validators,
}

/// Where the configurations of plugins stand.
#[derive(Debug, Clone)]
pub(super) enum Holder {
    Inline,
    File(FilePlace),
    Directory(RootPlace),
}

#[derive(Debug, Clone)]
pub(super) enum FilePlace {
    Local {
        directory: usize,
        name: usize,
        spelling: usize,
    },
    /// A link to a file of another name.
    Linked { name: usize },
    /// Like [`FilePlace::Local`] where there is no absolute path: in a remote root.
    Absolute { name: usize },
    Http {
        host: usize,
        name: usize,
        query: usize,
    },
}

#[derive(Debug, Clone)]
pub(super) enum RootPlace {
    /// This many directories up, then down again.
    Local {
        up: usize,
        spelling: usize,
    },
    Linked,
    Git {
        repository: usize,
        form: usize,
        version: usize,
    },
}

/// How deep roots are nested below the target.
const DEPTH: u32 = 3;

pub(super) fn tree() -> BoxedStrategy<RootPlan> {
    root(DEPTH)
}

fn root(depth: u32) -> BoxedStrategy<RootPlan> {
    (any::<u64>(), 0..64_usize, vec(field(depth), 1..5))
        .prop_map(|(style, name, fields)| RootPlan {
            style,
            name,
            fields,
        })
        .boxed()
}

fn field(depth: u32) -> BoxedStrategy<FieldPlan> {
    let file =
        (file_field(), file_place()).prop_map(|(field, place)| FieldPlan::File(field, place));
    let plugins = (
        plugin_list(),
        holder(),
        vec((0..8_usize, file_place()), 1..3),
    )
        .prop_map(|(list, holder, plugins)| FieldPlan::Plugins(list, holder, plugins));
    match depth {
        0 => prop_oneof![4 => file, 1 => plugins].boxed(),
        _ => {
            let nested = (root_field(), root_place(), root(depth - 1))
                .prop_map(|(field, place, root)| FieldPlan::Root(field, place, root));
            prop_oneof![5 => file, 2 => plugins, 3 => nested].boxed()
        }
    }
}

fn file_field() -> impl Strategy<Value = FileField> {
    let source = prop_oneof![
        Just(Source::Files),
        Just(Source::FilesWithKey),
        Just(Source::Envs),
        Just(Source::Env),
    ];
    prop_oneof![
        1 => Just(FileField::Resources),
        1 => Just(FileField::Bases),
        1 => Just(FileField::Crds),
        1 => Just(FileField::Configurations),
        1 => Just(FileField::Openapi),
        1 => Just(FileField::Patches),
        1 => Just(FileField::PatchesStrategicMerge),
        1 => Just(FileField::PatchesJson6902),
        1 => Just(FileField::Replacements),
        4 => (any::<bool>(), source).prop_map(|(secret, source)| FileField::Generator(secret, source)),
    ]
}

fn root_field() -> impl Strategy<Value = RootField> {
    prop_oneof![
        2 => Just(RootField::Resources),
        1 => Just(RootField::Bases),
        2 => Just(RootField::Components),
    ]
}

fn plugin_list() -> impl Strategy<Value = PluginList> {
    prop_oneof![
        2 => Just(PluginList::Generators),
        2 => Just(PluginList::Transformers),
        1 => Just(PluginList::Validators),
    ]
}

fn holder() -> impl Strategy<Value = Holder> {
    prop_oneof![
        Just(Holder::Inline),
        file_place().prop_map(Holder::File),
        root_place().prop_map(Holder::Directory),
    ]
}

fn file_place() -> impl Strategy<Value = FilePlace> {
    prop_oneof![
        4 => (0..8_usize, 0..64_usize, 0..8_usize).prop_map(|(directory, name, spelling)| {
            FilePlace::Local { directory, name, spelling }
        }),
        1 => (0..64_usize).prop_map(|name| FilePlace::Linked { name }),
        1 => (0..64_usize).prop_map(|name| FilePlace::Absolute { name }),
        4 => (0..8_usize, 0..64_usize, 0..8_usize)
            .prop_map(|(host, name, query)| FilePlace::Http { host, name, query }),
    ]
}

fn root_place() -> impl Strategy<Value = RootPlace> {
    prop_oneof![
        3 => (0..4_usize, 0..8_usize).prop_map(|(up, spelling)| RootPlace::Local { up, spelling }),
        1 => Just(RootPlace::Linked),
        3 => (0..8_usize, 0..16_usize, 0..8_usize).prop_map(|(repository, form, version)| {
            RootPlace::Git { repository, form, version }
        }),
    ]
}
