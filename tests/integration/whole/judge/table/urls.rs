//! Spellings of URLs, in every field that takes a path.

use serde_json::json;

use super::listed;
use crate::whole::generated::reference_fields;
use crate::whole::judge::variant::Variant;
use crate::whole::yaml::{extend, nested, plugin};

/// Everything that could be a URL to one reader and a path to another.
const SPELLINGS: [&str; 76] = [
    "https://h.example/o/r?ref=v1",
    "https://h.example/x.yaml",
    "http://h.example/x.yaml",
    "HTTPS://h.example/x.yaml",
    "hTTp://h.example/o/r",
    "https://H.EXAMPLE/x.yaml",
    "https://h.example",
    "https://h.example/",
    "https://h.example//",
    "https://h.example:443/x.yaml",
    "https://h.example:/x.yaml",
    "https://u:p@h.example/x.yaml",
    "https://u@h.example/o/r.git",
    "https://h.example/x.yaml#fragment",
    "https://h.example/x%2eyaml",
    "https://h%2eexample/x.yaml",
    "https://h.example/a/../b.yaml",
    "https://h.example/x y.yaml",
    "https://h.example/x.yaml ",
    " https://h.example/x.yaml",
    "\thttps://h.example/x.yaml",
    "https://h.example/x.yaml\n",
    "\nhttps://h.example/x.yaml",
    "ht\ttps://h.example/x.yaml",
    "https:/h.example/x.yaml",
    "https:h.example/x.yaml",
    "https:///h.example/x.yaml",
    "https:\\\\h.example\\x.yaml",
    "https://h.example\\x.yaml",
    "//h.example/x.yaml",
    "./https://h.example/x.yaml",
    "https://[2001:db8::1]/x.yaml",
    "https://192.0.2.1/x.yaml",
    "https://3221225985/x.yaml",
    "http://{loopback}/x.yaml",
    "http://{loopback}/o/r?ref=v1",
    "https://größe.example/x.yaml",
    "https://xn--gre-8ia2j.example/o/r",
    "https://h.example\u{3002}com/x.yaml",
    "https://h.example/?ref=v1",
    "https://h.example?ref=v1",
    "https://h.example/o/r?ref=v1;x",
    "https://h.example/o/r?ref=%zz",
    "https://h.example/o/r?version=v1&timeout=1&submodules=false",
    "https://h.example/o/r?ref=-x",
    "https://h.example/o/r.git",
    "https://h.example/o/r.git//p?ref=v1",
    "https://h.example/o/r//p?ref=v1",
    "https://h.example/o/p/_git/r",
    "https://h.example/.github/x.yaml",
    "git::https://h.example/o/r",
    "GIT::https://h.example/o/r",
    "git::git@h.example:o/r",
    "git::h.example/o/r",
    "ssh://git@h.example/o/r",
    "SSH://h.example:22/o/r",
    "ssh://-oProxyCommand=x/o/r",
    "git@h.example:o/r",
    "git@h.example/o/r",
    "git@h.example:22/o/r",
    "GIT@h.example:o/r",
    "a@b/c/d",
    "github.com/o/r",
    "github.com:o/r",
    "GitHub.com/o/r//p?ref=v1",
    "git@github.com:o/r.git",
    "user-1@github.com/o/r",
    "file:///tmp/judge/r",
    "FILE:///tmp/judge/r//p",
    "file://h.example/r",
    "file:/tmp/judge/r",
    "oci://h.example/o/r",
    "s3::https://h.example/b/k",
    "ftp://h.example/x.yaml",
    "git://h.example/o/r",
    "gh:o/r",
];

/// These are tried in every field.
const COMMON: [&str; 6] = [
    "https://h.example/o/r?ref=v1",
    "http://{loopback}/x.yaml",
    "git::HTTPS://h.example/o/r",
    "git@h.example:o/r",
    "github.com/o/r//p",
    "file:///tmp/judge/r",
];

/// All spellings are tried in these: each stands for one way to read a path.
const THOROUGH: [&str; 4] = ["resources[]", "components[]", "patches[].path", "configMapGenerator[].files[]"];

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for field in reference_fields() {
        let thorough = THOROUGH.contains(&field);
        let texts: &[&str] = if thorough { &SPELLINGS } else { &COMMON };
        for text in texts {
            all.extend(in_field(field, text));
        }
    }
    for text in COMMON {
        for (name, value) in
            [("files[]", format!("k={text}")), ("files[]", format!("{text}=k")), ("envs[]", format!("./{text}"))]
        {
            all.extend(in_field(&format!("configMapGenerator[].{name}"), &value));
        }
    }
    all
}

/// Returns roots in which a field has this value; a plugin configuration stands inline, in a file and in a directory.
fn in_field(field: &str, text: &str) -> Vec<Variant> {
    let name = format!("{field}: {text:?}");
    let (first, _) = field.split_once('.').unwrap_or((field, ""));
    let is_plugin = first.starts_with(|letter: char| letter.is_ascii_uppercase());
    let fields = nested(field, text, "cm", "a");
    if !is_plugin {
        let mut document = json!({"resources": ["cm.yaml"]});
        extend(&mut document, fields);
        let document = serde_json::to_string_pretty(&document).unwrap();
        return vec![Variant::new("urls", name, document).chart("charts/web")];
    }
    let configuration = plugin(first, "a", fields).to_string();
    let list = if first.ends_with("Generator") { "generators" } else { "transformers" };
    let places = ["literal", "file", "directory"];
    let of = |place| listed("urls", &name, list, place, &configuration).chart("charts/web");
    places.map(of).to_vec()
}
