//! JSON Schemas of what is printed for machines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

const LOCALIZING: &str = include_str!("../../../src/commands/localize/schema.json");

/// Asserts that the schema of a command allows what it printed, if it was asked for JSON.
#[track_caller]
pub(super) fn assert_valid(args: &[&str], stdout: &str) {
    let mut pairs = args.windows(2);
    let is_json = args.contains(&"--format=json") || pairs.any(|two| two == ["--format", "json"]);
    if is_json && !stdout.is_empty() {
        let schema = match args[0] {
            "affected" => include_str!("../../../src/commands/affected/schema.json"),
            "diff" => include_str!("../../../src/commands/diff/schema.json"),
            "init" => include_str!("../../../src/commands/init/schema.json"),
            // The program without arguments is `status`.
            "status" | "--format" | "--format=json" => include_str!("../../../src/commands/status/schema.json"),
            "check" => include_str!("../../../src/commands/check/schema.json"),
            "targets" => include_str!("../../../src/commands/targets/schema.json"),
            "tree" => include_str!("../../../src/commands/tree/schema.json"),
            "verify" => include_str!("../../../src/commands/verify/schema.json"),
            _ => LOCALIZING,
        };
        validate(schema, stdout);
    }
}

/// Returns a document, which a schema allows.
#[track_caller]
pub(crate) fn validate(schema: &'static str, text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (schemas, index) = &*compiled(schema);
    if let Err(error) = schemas.validate(&value, *index) {
        panic!("{error:#}\n{text}");
    }
    value
}

/// Each is compiled once: thousands of runs print JSON.
fn compiled(schema: &'static str) -> Arc<(Schemas, SchemaIndex)> {
    static ALL: Mutex<BTreeMap<&str, Arc<(Schemas, SchemaIndex)>>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap();
    let known = all.entry(schema).or_insert_with(|| {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        let schema = serde_json::from_str(schema).unwrap();
        compiler.add_resource("schema.json", schema).unwrap();
        let index = compiler.compile("schema.json", &mut schemas).unwrap();
        Arc::new((schemas, index))
    });
    Arc::clone(known)
}
