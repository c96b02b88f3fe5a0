use super::{Edit, edit};
use crate::kustomization::{Problem, Reference, read, read_plugin};
use crate::message::position::Position;

mod hostile;

/// Edits fields by name and returns the new text.
fn change(text: &str, wanted: &[(&str, &str)]) -> Result<String, Problem> {
    let references = read(text.as_bytes()).unwrap().references;
    change_in(text, &references, wanted)
}

fn change_in(text: &str, references: &[Reference], wanted: &[(&str, &str)]) -> Result<String, Problem> {
    let edits: Vec<Edit<'_>> = wanted
        .iter()
        .map(|(field, value)| Edit {
            spot: &references
                .iter()
                .find(|reference| reference.field == *field)
                .unwrap_or_else(|| panic!("no {field} in {references:#?}"))
                .spot,
            value: (*value).to_owned(),
        })
        .collect();
    edit(text.as_bytes(), &edits).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn style_and_everything_around_stay() {
    let before = "\u{feff}# top\r\nresources:   # why\r\n-   https://h/a   # one\r\n- 'https://h/b'\r\n-     \"https://h/c\"\r\n\
        crds: [ https://h/d , 'e']\r\npatches: [{path: &p https://h/f, target: {kind: X}}]";
    let after = change(
        before,
        &[
            ("resources[0]", "localized-files/a"),
            ("resources[1]", "it's"),
            ("resources[2]", "c"),
            ("crds[0]", "a, b"),
            ("patches[0].path", "f"),
        ],
    );
    let wanted = "\u{feff}# top\r\nresources:   # why\r\n-   localized-files/a   # one\r\n- 'it''s'\r\n-     \"c\"\r\n\
        crds: [ 'a, b' , 'e']\r\npatches: [{path: &p f, target: {kind: X}}]";
    assert_eq!(after.unwrap(), wanted);
}

#[test]
fn block_scalars_are_not_edited() {
    let plugin = "{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x},\n  path: FILE}";
    for (text, field, place) in [
        ("resources:\n- a\n- |-\n  b\n", "resources[1]", (4, 3)),
        ("resources: [a]\ncrds:\n- >-\n   b\n", "crds[0]", (4, 4)),
        (&format!("transformers:\n- >-\n  {plugin}\n"), "transformers[0]#PatchTransformer.path", (3, 3)),
    ] {
        let error = change(text, &[(field, "c")]).unwrap_err();
        assert!(error.message.contains("are not edited"), "{text}{error:?}");
        assert_eq!(error.position, Position::new(place.0, place.1), "{text}");
    }
}

#[test]
fn words_that_would_be_something_else_are_quoted() {
    for (value, wanted) in [
        ("yes", "'yes'"),
        ("1", "'1'"),
        ("1.2.3", "'1.2.3'"),
        ("1.2.3/x", "1.2.3/x"),
        ("null", "'null'"),
        ("a: b", "'a: b'"),
        ("#x", "'#x'"),
        ("a\tb", "\"a\\U00000009b\""),
        ("---", "'---'"),
        ("*a", "'*a'"),
        ("a\u{2028}b", "\"a\\U00002028b\""),
    ] {
        let after = change("resources:\n- x\n", &[("resources[0]", value)]).unwrap();
        assert_eq!(after, format!("resources:\n- {wanted}\n"));
    }
}

#[test]
fn an_anchor_carries_its_value_only_where_it_is_wanted() {
    let before = "resources: [&a x, *a]\ncrds: [*a]\nnamePrefix: *a\n";
    // One alias only.
    assert_eq!(
        change(before, &[("resources[1]", "new")]).unwrap(),
        "resources: [&a x, 'new']\ncrds: [*a]\nnamePrefix: *a\n"
    );
    // What no reference shows is not edited.
    let same = [("resources[0]", "new"), ("resources[1]", "new"), ("crds[0]", "new")];
    let shared = change(before, &same).unwrap_err();
    assert!(shared.message.contains("an anchor may share it"), "{shared:?}");
    let before = before.replace("namePrefix: *a", "namePrefix: x");
    assert_eq!(change(&before, &same).unwrap(), "resources: [&a new, *a]\ncrds: [*a]\nnamePrefix: x\n");
    // Each its own.
    let each = [("resources[0]", "1"), ("resources[1]", "2"), ("crds[0]", "3")];
    assert_eq!(change(&before, &each).unwrap(), "resources: [&a '1', '2']\ncrds: ['3']\nnamePrefix: x\n");
}

#[test]
fn an_alias_in_a_literal_block_stays_one() {
    let block = |paths: &str| {
        format!(
            "transformers:\n- |-\n  apiVersion: builtin\n  kind: PatchStrategicMergeTransformer\n  metadata: {{name: x}}\n  paths: {paths}\n"
        )
    };
    let fields = [0, 1].map(|index| format!("transformers[0]#PatchStrategicMergeTransformer.paths[{index}]"));
    let edited = |values: [&str; 2]| {
        change(&block("[ &a 'https://h/a?b' , *a ]"), &[(&fields[0], values[0]), (&fields[1], values[1])]).unwrap()
    };
    assert_eq!(edited(["new", "new"]), block("[ &a 'new' , *a ]"));
    assert_eq!(edited(["new", "other"]), block("[ &a 'new' , 'other' ]"));
}

#[test]
fn a_shared_list_changes_for_all_or_not_at_all() {
    let before = "resources: &l [a, b]\ncrds: *l\n";
    let both = [("resources[0]", "c"), ("crds[0]", "c")];
    assert_eq!(change(before, &both).unwrap(), "resources: &l [c, b]\ncrds: *l\n");
    let one = change(before, &both[..1]).unwrap_err();
    assert!(one.message.contains("an anchor may share it"), "{one:?}");
    let differ = change(before, &[("resources[0]", "c"), ("crds[0]", "d")]).unwrap_err();
    assert!(differ.message.contains("need different values"), "{differ:?}");
}

const INLINE: &str = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: x}\nfiles: # here\n  - k=https://h/a # this\nenvs: [ \"b\" ]\n---\napiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata:\n  name: y\nvaluesFile: 'https://h/p'\ntarget: {}\n";

const INLINE_EDITS: [(&str, &str); 3] = [
    ("generators[0]#ConfigMapGenerator[0].files[0]", "k=a"),
    ("generators[0]#ConfigMapGenerator[0].envs[0]", "e"),
    ("generators[0]#HelmChartInflationGenerator[1].valuesFile", "p"),
];

fn inline_after() -> String {
    INLINE.replace("k=https://h/a", "k=a").replace("\"b\"", "\"e\"").replace("'https://h/p'", "'p'")
}

#[test]
fn a_literal_block_is_edited_inside() {
    for (indent, end) in [("  ", "\n"), ("        ", "\n"), ("  ", "\r\n")] {
        let block = |yaml: &str| {
            let lines: Vec<String> = yaml.lines().map(|l| format!("{indent}{l}{end}")).collect();
            format!("generators:{end}- |-{end}{}# after{end}", lines.concat())
        };
        let after = change(&block(INLINE), &INLINE_EDITS).unwrap();
        assert_eq!(after, block(&inline_after()));
    }
}

#[test]
fn yaml_in_other_scalars_is_read_but_not_edited() {
    let plugin = "{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, path: FILE}";
    for quoted in [format!("{plugin:?}"), format!("'{plugin}'"), format!(">-\n  {plugin}")] {
        let text = format!("transformers:\n- {quoted}\n");
        let error = change(&text, &[("transformers[0]#PatchTransformer.path", "p")]).unwrap_err();
        assert!(error.message.contains("are not edited"), "{text}{error:?}");
    }
}

#[test]
fn all_documents_of_a_plugin_file_can_be_edited() {
    let references = read_plugin(INLINE.as_bytes()).unwrap().references;
    let edits: Vec<(&str, &str)> =
        INLINE_EDITS.iter().map(|(field, value)| (field.trim_start_matches("generators[0]#"), *value)).collect();
    let after = change_in(INLINE, &references, &edits).unwrap();
    assert_eq!(after, inline_after());
}

#[test]
fn another_file_is_refused() {
    let references = read(b"resources: [a, b]\n").unwrap().references;
    for text in ["resources: a\n", "", "[", "resources: [~]\n"] {
        assert!(change_in(text, &references, &[("resources[0]", "c")]).is_err());
    }
    assert!(change_in("resources: [a]\n", &references, &[("resources[0]", "c")]).is_ok());
}

#[test]
fn two_edits_of_one_value_must_agree() {
    let text = "resources: [a]\n";
    let same = [("resources[0]", "b"), ("resources[0]", "b")];
    assert_eq!(change(text, &same).unwrap(), "resources: [b]\n");
    assert!(change(text, &[("resources[0]", "b"), ("resources[0]", "c")]).is_err());
}

#[test]
fn no_edits_change_nothing() {
    assert_eq!(edit(b"a: b", &[]).unwrap(), b"a: b");
}

#[test]
fn values_at_the_start_of_a_line_are_no_markers() {
    for value in ["---", "--- a", "...", "%a", "# a"] {
        let text = "resources: [\nold,\n'old' ]\n";
        let after = change(text, &[("resources[0]", value), ("resources[1]", value)]);
        let wanted = format!("resources: [\n'{value}',\n'{value}' ]\n");
        assert_eq!(after.unwrap(), wanted);
    }
}
