//! Random worlds, changed at random: the roots that are named are those of which something that is read is different.

use super::*;

/// Choices that are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const DIRECTORIES: [&str; 9] = ["a", "b", "c", "a/x", "b/y", "c/z", "a/charts/web", "l", "gone"];
const FILES: [&str; 7] =
    ["one.yaml", "two.yaml", "kustomization.yaml", "kustomization.yml", "run.sh", "values.yaml", "x"];
const ENTRIES: [&str; 12] = [
    "resources: [one.yaml, ../a]",
    "resources: [x, two.yaml]",
    "resources: [../b, ../c/z]",
    "resources: [../l]",
    "resources: [../../b, one.yaml]",
    "components: [../c]",
    "patches: [{path: two.yaml}]",
    "configMapGenerator: [{name: a, files: [k=one.yaml], envs: [x]}]",
    "helmCharts: [{name: web, valuesFile: values.yaml}]",
    "generators: [one.yaml]",
    "transformers: [../b/y]",
    "crds: [../one.yaml]",
];
const TEXTS: [&str; 6] = [
    MAP,
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
    "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: two.yaml\n",
    "apiVersion: x/v1\nkind: F\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n",
    "apiVersion: x/v1\nkind: F\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: i}\n",
    "resources: [",
];

fn text(random: &mut Random, name: &str) -> String {
    if !name.starts_with("kustomization.") {
        return random.one(&TEXTS).to_owned();
    }
    let mut fields = BTreeMap::new();
    for _ in 0..=random.below(3) {
        let entry = random.one(&ENTRIES);
        fields.insert(entry.split(':').next().unwrap(), entry);
    }
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    let kind = if random.below(4) == 0 { component } else { "" };
    let fields: Vec<&str> = fields.into_values().collect();
    format!("{kind}{}\n", fields.join("\n"))
}

fn write(random: &mut Random, world: &mut World) {
    let directory = random.one(&DIRECTORIES);
    let name = match random.below(2) {
        0 => "kustomization.yaml",
        _ => random.one(&FILES),
    };
    let place = path::join(directory, name);
    let entry = match random.below(12) {
        0 => (random.one(&["one.yaml", "../b/one.yaml", "../c", "x"]).to_owned(), None),
        1 => (text(random, name), Some(true)),
        _ => (text(random, name), Some(false)),
    };
    world.insert(place, entry);
}

/// Takes away what a tree cannot hold: something below a file or a link.
fn tidy(world: &mut World) {
    let places: BTreeSet<String> = world.keys().cloned().collect();
    world.retain(|place, _| !path::and_above(path::parent(place)).any(|above| places.contains(above)));
}

fn change(random: &mut Random, world: &mut World) {
    let places: Vec<String> = world.keys().cloned().collect();
    let place = places[random.below(places.len())].clone();
    match random.below(8) {
        0 => {
            world.remove(&place);
        }
        1 => world.retain(|other, _| path::parent(other) != path::parent(&place)),
        2 => {
            let entry = world.remove(&place).unwrap();
            world.insert(path::join(random.one(&DIRECTORIES), path::name(&place)), entry);
        }
        3 => {
            // A directory becomes a link to another one.
            world.retain(|other, _| !path::is_in(other, "l"));
            let to = random.one(&["a", "b", "c/z"]).to_owned();
            world.insert("l".to_owned(), (to, None));
        }
        4 => {
            let entry = world.get_mut(&place).unwrap();
            entry.1 = entry.1.map(|executable| !executable);
        }
        _ => write(random, world),
    }
}

/// Returns all that is known of what the build of a root reads, by walking it alone.
fn fingerprint(tree: &Rc<dyn Tree>, directory: &str) -> Vec<String> {
    let explored = explore(tree.clone(), &[directory.to_owned()]);
    let graph = &explored.graph;
    let mut all = Vec::new();
    let mut read = |place: &str| {
        if let tree::Resolved::File { path, executable } = tree::resolve(&**tree, place).unwrap() {
            let text = String::from_utf8(tree.read(&path).unwrap()).unwrap();
            all.push(format!("{place} -> {path} {executable} {text}"));
        }
    };
    for file in graph.files.iter() {
        if let Origin::Tree { path, .. } = &file.origin {
            read(path);
        }
    }
    let places = graph.charts.iter().filter_map(|chart| match &chart.lookup {
        crate::graph::ChartLookup::There(path) => Some(path.clone()),
        _ => None,
    });
    let mut whole: Vec<String> = places.collect();
    while let Some(directory) = whole.pop() {
        read(&directory);
        for place in tree.below(&directory).unwrap() {
            read(&place);
        }
    }
    for root in graph.roots.iter() {
        for edge in &root.edges {
            all.push(format!("{} {:?} {:?}", root.directory, edge.reference.text, edge.resolution));
        }
    }
    all.extend(explored.troubles.iter().map(|trouble| format!("{:?}", trouble.kind)));
    all.sort();
    all
}

#[test]
fn random_worlds_are_compared_exactly() {
    let (mut same, mut different, mut too_many) = (0, 0, 0);
    for seed in 0..100 {
        let mut random = Random(seed);
        let mut old = World::new();
        for _ in 0..12 + random.below(20) {
            write(&mut random, &mut old);
        }
        tidy(&mut old);
        let mut new = old.clone();
        for _ in 0..=random.below(3) {
            change(&mut random, &mut new);
            if new.is_empty() {
                break;
            }
        }
        tidy(&mut new);
        let trees = Sides { old: tree(&old), new: tree(&new) };
        let Sides { old: old_tree, new: new_tree } = trees.clone();
        let changes = Changes::among(trees, old.keys().chain(new.keys()).cloned()).unwrap();
        let explored = explore_all(new_tree.clone()).unwrap();
        let incomplete = super::super::incomplete_roots(&explored, &crate::targets::Targets::default());
        let causes = Causes::of(&explored.graph, &changes, &incomplete).unwrap();
        let of = |tree: &Rc<dyn Tree>| -> BTreeSet<String> {
            let places = tree.kustomizations().unwrap();
            places.iter().map(|place| path::parent(place).to_owned()).collect()
        };
        let (was, is) = (of(&old_tree), of(&new_tree));
        for directory in was.union(&is) {
            let [before, after] = [&old_tree, &new_tree].map(|tree| fingerprint(tree, directory));
            let is_named = causes.of_directory(directory).unwrap().is_some();
            if before == after {
                same += 1;
                too_many += usize::from(is_named);
            } else {
                different += 1;
                assert!(is_named, "seed {seed}: `{directory}` is missed\n{old:#?}\n{new:#?}\n{before:#?}\n{after:#?}");
            }
        }
        for AffectedRoot { directory, status, .. } in compared(&old, &new).roots {
            let expected = match (was.contains(&directory), is.contains(&directory)) {
                (true, true) => DiffStatus::Changed,
                (true, false) => DiffStatus::Removed,
                _ => DiffStatus::Added,
            };
            assert_eq!(status, expected, "seed {seed}: {directory}");
        }
    }
    assert!(different > 80 && same > 80, "{different} {same}");
    assert!(too_many * 20 < same, "{too_many} of {same} are named for nothing");
}
