//! Ways to write the same thing in YAML, and ways to write something that two readers see differently.

use crate::whole::judge::variant::Variant;

/// The reference to hide.
const URL: &str = "https://h.example/x.yaml";

/// Documents in which `URL` stands for a URL in some way. All but those with a note reach it.
const DOCUMENTS: [&str; 105] = [
    "resources:\n- URL\n",
    "resources: [URL]\n",
    "resources: ['URL']\n",
    "resources: [\"URL\"]\n",
    "resources:\n- \"\\x68ttps://h.example/x.yaml\"\n",
    "resources:\n- \"\\u0068ttps:\\U0000002f/h.example/x.yaml\"\n",
    "resources:\n- \"https:\\/\\/h.example/x.yaml\"\n",
    "resources:\n- \"https://h.exam\\\n    ple/x.yaml\"\n",
    "resources:\n- 'https://h.example/x.yaml\n\n  '\n",
    "resources:\n- >-\n  URL\n",
    "resources:\n- |-\n  URL\n",
    "resources:\n- |\n  URL\n",
    "resources:\n- >2-\n   URL\n",
    "resources:\n- |1-\n URL\n",
    "resources:\n-\n  URL\n",
    "resources:\n- # comment\n  URL # comment\n",
    "resources:\n  -   URL   \n",
    "resources:\n-\tURL\n",
    "resources :\n- URL\n",
    "\"resources\":\n- URL\n",
    "'resources':\n- URL\n",
    "\"reso\\u0075rces\":\n- URL\n",
    "? resources\n: - URL\n",
    "? \"resources\"\n:\n  - URL\n",
    "? |-\n  resources\n: [URL]\n",
    "? >-\n  resources\n: [URL]\n",
    "{resources: [URL]}\n",
    "{\"resources\":[\"URL\"]}\n",
    "{? resources : [URL]}\n",
    "{resources: [URL,],}\n",
    "{\n\"resources\"\n:\n[\n\"URL\"\n]\n}\n",
    "!!map {resources: !!seq [!!str URL]}\n",
    "!!str resources:\n- URL\n",
    "resources: !!seq\n- !!str URL\n",
    "resources:\n- ! URL\n",
    "resources:\n- !local URL\n",
    "resources:\n- !<tag:yaml.org,2002:str> URL\n",
    "resources:\n- !!binary aHR0cHM6Ly9oLmV4YW1wbGUveC55YW1s\n",
    "!!binary cmVzb3VyY2Vz:\n- URL\n",
    "openapi: {!!binary cGF0aA==: URL}\n",
    "!local\nresources: [URL]\n",
    "resources: !local [URL]\n",
    "resources: !!set {URL}\n",
    "resources: !!omap [URL]\n",
    "resources:\n- &a URL\n- *a\n",
    "commonAnnotations: {u: &a URL}\nresources: [*a]\n",
    "commonAnnotations: {u: &a URL}\nresources:\n- *a\n",
    "commonAnnotations: {&a resources: x}\n*a : [URL]\n",
    "resources: &r [URL]\n",
    "resources: &r\n- URL\ncrds: *r\n",
    "crds: &r []\nresources: &r [URL]\ncomponents: *r\n",
    "commonAnnotations: {u: &a x, v: &a URL}\nresources: [*a]\n",
    "&top\nresources: [URL]\n",
    "<<: {resources: [URL]}\n",
    "<<: {resources: [URL]}\nresources: [cm.yaml]\n",
    "resources: [cm.yaml]\n<<: {resources: [URL]}\n",
    "<<: [{resources: [URL]}, {resources: [cm.yaml]}]\n",
    "<<: [{resources: [cm.yaml]}, {resources: [URL]}]\n",
    "<<: {<<: {resources: [URL]}}\n",
    "<<: {resources: [cm.yaml]}\n<<: {resources: [URL]}\n",
    "\"<<\": {resources: [URL]}\n",
    "!!merge <<: {resources: [URL]}\n",
    "!!str <<: {resources: [URL]}\n",
    "? <<\n: {resources: [URL]}\n",
    "patches:\n- <<: {path: URL}\n  target: {kind: ConfigMap}\nresources: [cm.yaml]\n",
    "patches:\n- &p {path: URL}\n- <<: *p\n",
    "patches:\n- target: &p {kind: ConfigMap}\n  <<: &q {path: URL}\n",
    "configMapGenerator:\n- &a {name: a, files: [URL]}\n- {<<: *a, name: b}\n",
    "resources: [cm.yaml]\nresources: [URL]\n",
    "resources: [URL]\nresources: [cm.yaml]\n",
    "resources: [URL]\nresources: []\n",
    "resources: []\nresources: [URL]\n",
    "resources: [URL]\nresources:\n",
    "resources:\nresources: [URL]\n",
    "resources: ~\nresources: [URL]\n",
    "resources: [URL]\nresources: ~\n",
    "resources: [cm.yaml]\nResources: [URL]\n",
    "Resources: [URL]\nresources: [cm.yaml]\n",
    "resources: [cm.yaml]\nRESOURCES: [URL]\n",
    "RESOURCES: [URL]\nresources: [cm.yaml]\n",
    "Resources: [URL]\nresources: []\n",
    "resources: ~\nResources: [URL]\n",
    "Resources: [URL]\nresources: ~\n",
    "openapi: {path: URL}\nopenapi: {version: v1}\n",
    "Openapi: {path: URL}\nopenapi: {}\n",
    "patches: [{path: URL, Path: cm.yaml}]\n",
    "patches: [{path: cm.yaml, Path: URL}]\n",
    "---\nresources: [URL]\n",
    "--- # x\nresources: [URL]\n",
    "---\n---\nresources: [URL]\n",
    "...\n---\nresources: [URL]\n",
    "resources: [cm.yaml]\n---\nresources: [URL]\n",
    "resources: [URL]\n---\nresources: [cm.yaml]\n",
    "resources: [URL]\n...\nx: [\n",
    "# only a comment\n---\nresources: [URL]\n",
    "%YAML 1.1\n---\nresources: [URL]\n",
    "%YAML 1.2\n---\nresources: [URL]\n",
    "%TAG !y! tag:yaml.org,2002:\n---\nresources: [!y!str URL]\n",
    "resources:\n- cm.yaml # \r- URL\n",
    "# comment\rresources: [URL]\n",
    "# comment\u{85}resources: [URL]\n",
    "# comment\u{2028}resources: [URL]\n",
    "# comment\u{2029}resources:\u{2029}- URL\n",
    "resources:\u{85}- URL\u{85}",
    "resources:\n- https://h.example/x\n  .yaml\n",
];

/// The same with all lines ended in other ways, and in other encodings.
const ENCODED: [&str; 4] =
    ["resources:\n- URL\n", "# comment\nresources: [URL]\n", "transformers:\n- URL\n", "patches:\n- path: URL\n"];

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for text in DOCUMENTS {
        let document = text.replace("URL", URL);
        all.push(Variant::new("yaml", text, &document));
        let plugin = document
            .replace("resources", "transformers")
            .replace("RESOURCES", "TRANSFORMERS")
            .replace("Resources", "Transformers")
            .replace("cm.yaml", "t.yaml");
        if plugin.contains("ransformers") {
            let plugin = Variant::new("yaml", text.replace("esources", "esources (transformers)"), plugin);
            all.push(
                plugin
                    .with("t.yaml", "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: a-\n"),
            );
        }
    }
    for text in ENCODED {
        let document = text.replace("URL", URL);
        for (way, bytes) in encodings(&document) {
            all.push(Variant::new("yaml", format!("{text} {way}"), bytes));
        }
    }
    all
}

fn encodings(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let utf_16 = |to: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(to).collect() };
    let utf_32: Vec<u8> = text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect();
    let marked = |mark: &[u8], bytes: Vec<u8>| [mark, &bytes].concat();
    let crlf = text.replace('\n', "\r\n");
    let cr = text.replace('\n', "\r");
    vec![
        ("crlf", crlf.into_bytes()),
        ("cr", cr.into_bytes()),
        ("bom", format!("\u{feff}{text}").into_bytes()),
        ("two boms", format!("\u{feff}\u{feff}{text}").into_bytes()),
        ("nul", format!("{text}\0").into_bytes()),
        ("utf-16le", marked(b"\xff\xfe", utf_16(u16::to_le_bytes))),
        ("utf-16be", marked(b"\xfe\xff", utf_16(u16::to_be_bytes))),
        ("utf-16le without mark", utf_16(u16::to_le_bytes)),
        ("utf-32le", marked(b"\xff\xfe\0\0", utf_32)),
        ("latin-1", [text.as_bytes(), b"# \xe4\n"].concat()),
        ("latin-1 before", [b"# \xe4\n", text.as_bytes()].concat()),
        ("no end", text.trim_end().as_bytes().to_vec()),
    ]
}
