//! The whole plan of a repository in memory, as a copy and in place.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::graph::testing::{Upstreams, tree};
use crate::graph::{Remotes, Start};
use crate::message::failure::Failures;
use crate::plan::{Plan, PlanOptions, copy, in_place};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::Tree;
use crate::tree::overlay::OverlayTree;
use crate::workspace::Workspace;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";
const APP: &str = "# ours\nresources:\n- https://h/o/base//apps/db?ref=v1\n- https://h/map.yaml\n- own.yaml\n";

/// One repository and one file; what else is requested is not there.
pub(super) fn upstream() -> Upstreams {
    Upstreams::default().file("https://h/map.yaml", MAP).repository(
        "https://h/o/base",
        &[
            ("apps/db/kustomization.yaml", "namePrefix: db-\nresources: [../shared, map.yaml]\n"),
            ("apps/db/map.yaml", MAP),
            ("apps/shared/kustomization.yaml", "resources: []\n"),
        ],
    )
}

pub(super) fn repository(app: &str) -> OverlayTree {
    tree(&[("app/kustomization.yaml", app), ("app/own.yaml", MAP)])
}

fn planned_in_place(tree: OverlayTree, options: &PlanOptions, remotes: &mut dyn Remotes) -> Result<Plan, Failures> {
    let workspace = Workspace::of_tree(Rc::new(tree))?;
    in_place::plan(&workspace, in_place::InPlaceRequest::default(), options, remotes)
}

pub(super) fn copied(tree: OverlayTree, options: &PlanOptions, remotes: &mut dyn Remotes) -> Result<Plan, Failures> {
    let workspace = Workspace::of_tree(Rc::new(tree))?;
    let target = copy::CopySource {
        start: Start {
            source: crate::graph::ScopedTree { scope: "app".to_owned(), ..workspace.source() },
            directory: "app".to_owned(),
        },
        name: "app".to_owned(),
        scope: None,
    };
    let into = "localized-app".to_owned();
    copy::plan(&workspace, target, into, options, remotes)
}

/// Returns the tree that a plan makes of another one, and the paths that it writes.
fn applied(mut tree: OverlayTree, plan: &Plan) -> (OverlayTree, BTreeMap<String, String>) {
    let mut written = BTreeMap::new();
    for (place, file) in &plan.changes {
        let file = file.as_ref().unwrap();
        tree.add_file_with_mode(place, &file.bytes, file.executable);
        written.insert(place.clone(), String::from_utf8(file.bytes.to_vec()).unwrap());
    }
    (tree, written)
}

#[test]
fn in_place_only_the_references_change() {
    let plan = planned_in_place(repository(APP), &PlanOptions::default(), &mut upstream()).unwrap();
    let (tree, written) = applied(repository(APP), &plan);
    assert_eq!(
        written["app/kustomization.yaml"],
        "# ours\nresources:\n- localized-files/h/o/base/v1/apps/db\n- localized-files/h/map.yaml\n- own.yaml\n"
    );
    assert!(!written.contains_key("app/own.yaml"));
    assert_eq!(plan.lock.remotes.len(), 2);
    // The commit that a user makes of it has no trailers.
    assert!(!plan.lock.trailers);
    let names: Vec<&str> = plan.affected.iter().map(|root| root.name.as_str()).collect();
    assert_eq!(names, ["app"]);
    // All of it is there now.
    let again = planned_in_place(tree, &PlanOptions::default(), &mut Upstreams::default()).unwrap();
    assert_eq!(applied(OverlayTree::default(), &again).1, BTreeMap::new());
}

#[test]
fn only_a_url_that_is_new_counts_as_rewritten() {
    let plan = planned_in_place(repository(APP), &PlanOptions::default(), &mut upstream()).unwrap();
    let (mut tree, written) = applied(repository(APP), &plan);
    let text = format!("{}- https://h/new.yaml\n", written["app/kustomization.yaml"]);
    tree.add_file("app/kustomization.yaml", text.as_bytes());
    // An update restores all URLs, and writes most of them as they were.
    let workspace = Workspace::of_tree(Rc::new(tree)).unwrap();
    let updated = in_place::restored(&workspace, workspace.lock.as_deref().unwrap()).unwrap();
    let request = in_place::InPlaceRequest { updated: Some(updated), ..in_place::InPlaceRequest::default() };
    let mut upstream = upstream().file("https://h/new.yaml", MAP);
    let plan = in_place::plan(&workspace, request, &PlanOptions::default(), &mut upstream).unwrap();
    let rewritten: Vec<&str> = plan.rewritten.iter().map(|rewritten| rewritten.to.as_str()).collect();
    assert_eq!(rewritten, ["localized-files/h/new.yaml"]);
}

#[test]
fn a_file_is_edited_as_a_generator_and_not_as_a_patch() {
    let generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: ['https://h/f.txt']\n";
    let repository = tree(&[
        ("kustomization.yaml", "generators: ['https://h/g.yaml', gen]\n"),
        ("gen/kustomization.yaml", "resources: [own.yaml]\npatches: [{path: 'https://h/g.yaml', target: {name: g}}]\n"),
        ("gen/own.yaml", "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: a-\n"),
    ]);
    let mut upstream = Upstreams::default().file("https://h/g.yaml", generator).file("https://h/f.txt", "text\n");
    let plan = planned_in_place(repository, &PlanOptions::default(), &mut upstream).unwrap();
    let written = applied(OverlayTree::default(), &plan).1;
    let edited = generator.replace("https://h/f.txt", "localized-files/h/f.txt");
    assert_eq!(written["localized-files/h/g.yaml"], edited);
    assert_eq!(written["gen/localized-files/h/g.yaml"], generator);
}

#[test]
fn a_copy_holds_everything_and_leaves_the_source_alone() {
    let plan = copied(repository(APP), &PlanOptions::default(), &mut upstream()).unwrap();
    let (tree, written) = applied(repository(APP), &plan);
    assert!(written.keys().all(|path| path.starts_with("localized-app/")));
    assert_eq!(written["localized-app/own.yaml"], MAP);
    assert_eq!(plan.lock.target.as_deref(), Some("app"));
    assert_eq!(plan.affected[0].original, "");
    let lock = &written[&format!("localized-app/{LOCK_NAME}")];
    assert_eq!(Lock::parse(lock.as_bytes(), LOCK_NAME).unwrap(), plan.lock);
    // Nothing in it is remote any more.
    let tree: Rc<dyn Tree> = Rc::new(tree);
    let start = crate::graph::ScopedTree { tree, scope: "localized-app".to_owned(), repository: None };
    let start = Start { source: start, directory: "localized-app".to_owned() };
    crate::graph::walk(start, None, &crate::graph::WalkPolicy::default()).unwrap();
}

#[test]
fn the_locked_versions_give_the_same_result() {
    let first = copied(repository(APP), &PlanOptions::default(), &mut upstream()).unwrap();
    let again = PlanOptions { overwrite: false, trailers: first.lock.trailers };
    let second = copied(repository(APP), &again, &mut upstream()).unwrap();
    let written = |plan: &Plan| applied(OverlayTree::default(), plan).1;
    assert_eq!(written(&first), written(&second));
}

#[test]
fn nothing_is_planned_where_a_reference_cannot_be_resolved() {
    for more in ["https://h/o/gone?ref=v1", "https://h/gone.yaml"] {
        let app = format!("{APP}- {more}\n");
        for plan in [planned_in_place, copied] {
            let Err(failures) = plan(repository(&app), &PlanOptions::default(), &mut upstream()) else {
                panic!("planned with {more}");
            };
            let failure = &failures.0[0];
            assert_eq!(failures.0.len(), 1, "{failures:?}");
            let place = failure.location.as_ref().unwrap().to_string();
            assert_eq!(place, "app/kustomization.yaml:6:3", "{failure:?}");
        }
    }
}
