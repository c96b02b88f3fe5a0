//! The values of Secrets: in objects, and in the files of which kustomize makes Secrets.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize as _;
use serde_yaml::{Mapping, Value};

use super::inputs::TREES;
use crate::message::redact::HIDDEN;
use crate::record::sha256_hex;

/// Calls `call` for each Secret in a value, at any depth.
pub(super) fn each_secret(value: &mut Value, call: &mut dyn FnMut(&mut Mapping)) {
    match value {
        Value::Sequence(items) => items.iter_mut().for_each(|item| each_secret(item, call)),
        Value::Tagged(tagged) => each_secret(&mut tagged.value, call),
        Value::Mapping(object) if is_secret(object) => call(object),
        Value::Mapping(object) => {
            // The items of a `SecretList` need not say their kind.
            let are_secrets = is_secret_list(object);
            for (key, value) in object.iter_mut() {
                match value {
                    Value::Sequence(items) if are_secrets && key == "items" => {
                        items.iter_mut().filter_map(Value::as_mapping_mut).for_each(&mut *call);
                    }
                    value => each_secret(value, call),
                }
            }
        }
        _ => {}
    }
}

/// Calls `call` for each value of each Secret, to replace or collect it. Returns whether there is a Secret.
pub(super) fn each_value(value: &mut Value, call: &mut dyn FnMut(&mut Value)) -> bool {
    let mut has_secret = false;
    each_secret(value, &mut |secret| {
        has_secret = true;
        each_value_of(secret, call);
    });
    has_secret
}

/// Calls `call` for each value of a Secret: for everything except its identity.
fn each_value_of(secret: &mut Mapping, call: &mut dyn FnMut(&mut Value)) {
    for (key, value) in secret.iter_mut() {
        match key.as_str() {
            Some("apiVersion" | "kind" | "type" | "immutable") => {}
            // Tools put values into annotations, too.
            Some("metadata") => value.get_mut("annotations").into_iter().for_each(|all| annotations(all, call)),
            _ => {
                scalars(value, call);
                invalid_keys(value, call);
            }
        }
    }
}

/// Calls `call` for the annotations of a Secret that are not of Kubernetes itself: those only say whose Secret it is.
fn annotations(value: &mut Value, call: &mut dyn FnMut(&mut Value)) {
    let annotations = value.as_mapping_mut().into_iter().flatten();
    annotations.filter(|(key, _)| !is_of_kubernetes(key)).for_each(|(_, value)| scalars(value, call));
}

/// Whether an annotation is one of Kubernetes itself.
fn is_of_kubernetes(key: &Value) -> bool {
    key.as_str().is_some_and(|key| key.starts_with("kubernetes.io/"))
}

/// Calls `call` for the keys of values, if one of them is not the name of a value: the keys are then lines of a file
/// that a generator read as pairs, such as a private key.
fn invalid_keys(values: &mut Value, call: &mut dyn FnMut(&mut Value)) {
    let Value::Mapping(values) = values else { return };
    if !values.keys().all(|key: &Value| {
        key.as_str().is_some_and(|key| {
            !key.is_empty() && key.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c))
        })
    }) {
        for (mut key, value) in std::mem::take(values) {
            call(&mut key);
            values.insert(key, value);
        }
    }
}

/// Calls `call` for each scalar in a value, at any depth.
fn scalars(value: &mut Value, call: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Null => {}
        Value::Sequence(items) => items.iter_mut().for_each(|item| scalars(item, call)),
        Value::Mapping(values) => values.values_mut().for_each(|value| scalars(value, call)),
        Value::Tagged(tagged) => scalars(&mut tagged.value, call),
        Value::String(_) | Value::Bool(_) | Value::Number(_) => call(value),
    }
}

/// A scalar as text; `None` for null, a list or a mapping.
pub(super) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The size of a value and the beginning of its digest: enough to see that it changes.
pub(super) fn fingerprint(text: &str) -> String {
    format!("…({} bytes, sha256 {}…)", text.len(), &sha256_hex(text.as_bytes())[..4])
}

/// The [`fingerprint`] of a value of a Secret, also if the [memory](super::memory) has replaced the value: by its
/// fingerprint and a hash.
pub(super) fn shown_fingerprint(text: &str) -> String {
    // The number of digits of the hash, which nobody needs to see.
    const HASH: usize = 64;
    let remembered = || {
        let (shown, hash) = text.split_at_checked(text.len().checked_sub(HASH)?)?;
        let (bytes, digits) = shown.strip_prefix("…(")?.strip_suffix("…)")?.split_once(" bytes, sha256 ")?;
        (is_hex(hash) && is_hex(digits) && digits.len() == 4 && bytes.parse::<u64>().is_ok()).then(|| shown.to_owned())
    };
    remembered().unwrap_or_else(|| fingerprint(text))
}

/// Whether a text has hexadecimal digits only.
fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a mapping is a Secret, and not a reference to one.
fn is_secret(object: &Mapping) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    text("kind") == Some("Secret")
        && (text("apiVersion") == Some("v1")
            || ["data", "stringData", "metadata"].iter().any(|key| object.contains_key(*key)))
}

/// Whether a mapping is a list of Secrets.
fn is_secret_list(object: &Mapping) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("SecretList")
}

/// Whether YAML may have the kind of a Secret.
pub(super) fn may_hold(text: &[u8]) -> bool {
    // The kind may be written with escapes.
    ["Secret", "\\u", "\\U", "\\x"].iter().any(|part| memchr::memmem::find(text, part.as_bytes()).is_some())
}

/// The deepest nesting of YAML as a text in YAML, such as a patch.
const DEEPEST: usize = 10;

/// The texts that must not be quoted from a program that fails: values of Secrets in the files that it reads, and texts
/// that were perhaps meant as such.
#[derive(Debug, Default)]
pub(super) struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Reads all files below a directory.
    pub(super) fn below(directory: &Path) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.read_all(directory, &|_| true);
        secrets
    }

    /// Reads all files below the inputs of builds but those of the [roots](TREES).
    pub(super) fn shared(input: &Path) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.read_all(input, &|path| path != input.join(TREES));
        secrets
    }

    /// A text without these and others.
    pub(super) fn hide(&self, others: &Secrets, text: &str) -> String {
        let mut values: Vec<&String> = self.0.union(&others.0).collect();
        // One may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.into_iter().fold(text.to_owned(), |text, value| without(&text, value))
    }

    /// Reads the files below a directory, except in directories that `is_read` excludes. Errors are ignored: a program
    /// that cannot read a file does not quote it.
    fn read_all(&mut self, directory: &Path, is_read: &dyn Fn(&Path) -> bool) {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if is_read(&entry.path()) {
                    self.read_all(&entry.path(), is_read);
                }
            } else if kind.is_file()
                && let Ok(bytes) = fs::read(entry.path())
                // A file without these words has no Secret, no generator of Secrets, and no patch.
                && [&b"ecret"[..], b"atch"].iter().any(|part| memchr::memmem::find(&bytes, part).is_some())
            {
                self.read(&String::from_utf8_lossy(&bytes), directory, 0);
            }
        }
    }

    /// Reads YAML. Its relative paths begin in `directory`; `depth` counts the YAML texts around it.
    fn read(&mut self, text: &str, directory: &Path, depth: usize) {
        if depth > DEEPEST {
            // A text that is nested too deep is not parsed, so any line of it may be a value.
            return self.add_lines(text);
        }
        for document in serde_yaml::Deserializer::from_str(text) {
            match Value::deserialize(document) {
                // A document that is one string would be read as itself without end.
                Ok(Value::String(_)) => {}
                Ok(mut value) => self.add_values_of(&mut value, directory, depth),
                // A program may quote any part of it.
                Err(_) => return self.add_lines(text),
            }
        }
    }

    /// Adds the values of Secrets in a value: of objects, generators and patches, at any depth.
    fn add_values_of(&mut self, value: &mut Value, directory: &Path, depth: usize) {
        each_value(value, &mut |value| self.add_scalar(value));
        match value {
            Value::Sequence(items) => items.iter_mut().for_each(|item| self.add_values_of(item, directory, depth)),
            Value::Tagged(tagged) => self.add_values_of(&mut tagged.value, directory, depth),
            Value::Mapping(object) => {
                if object.get("kind").and_then(Value::as_str) == Some("SecretGenerator") {
                    self.add_generator(object, directory);
                }
                let generators = object.get("secretGenerator").and_then(Value::as_sequence).into_iter().flatten();
                generators.filter_map(Value::as_mapping).for_each(|generator| self.add_generator(generator, directory));
                self.add_patch(object, directory);
                object.values_mut().for_each(|value| self.add_values_of(value, directory, depth));
            }
            // A patch, as a text.
            Value::String(text) if text.contains("Secret") && text.contains(':') => {
                self.read(text, directory, depth + 1)
            }
            _ => {}
        }
    }

    /// Adds the values of which a generator makes a Secret.
    fn add_generator(&mut self, generator: &Mapping, directory: &Path) {
        let texts = |key: &str| {
            let value = generator.get(key);
            let all =
                value.and_then(Value::as_sequence).into_iter().flatten().chain(value.filter(|value| value.is_string()));
            all.filter_map(scalar_text).collect::<Vec<String>>()
        };
        texts("literals").iter().for_each(|literal| self.add_pair(literal));
        let files: Vec<String> = ["envs", "env", "files"].into_iter().flat_map(texts).collect();
        for file in files {
            // `files` may give a file another name: `NAME=PATH`.
            let path = file.split_once('=').map_or(&*file, |(_, path)| path);
            if let Ok(bytes) = fs::read(directory.join(path)) {
                self.add_lines(&String::from_utf8_lossy(&bytes));
            }
        }
    }

    /// Adds the values that a patch writes, unless it selects objects of another kind.
    fn add_patch(&mut self, patch: &Mapping, directory: &Path) {
        // Any other mapping is no entry of a list of patches. A patch without a target names the kind of its object, so
        // it is read as a Secret.
        if !patch.get("target").is_some_and(may_select_secrets) {
            return;
        }
        let text = |key: &str| patch.get(key).and_then(Value::as_str);
        let file = text("path").and_then(|path| fs::read_to_string(directory.join(path)).ok());
        for text in [file.as_deref(), text("patch"), text("jsonOp")].into_iter().flatten() {
            self.add_patch_text(text);
        }
    }

    /// Adds the values in the text of a patch.
    fn add_patch_text(&mut self, text: &str) {
        let mut patch = match serde_yaml::from_str(text) {
            Ok(Value::Sequence(operations)) => operations,
            Ok(object @ Value::Mapping(_)) => vec![object],
            // A patch that cannot be parsed may quote values all the same.
            _ => return self.add_lines(text),
        };
        // A JSON patch has values below `value`, a strategic one those of the object.
        let values = patch.iter_mut().filter_map(Value::as_mapping_mut).flat_map(Mapping::iter_mut);
        let values = values.filter(|(key, _)| ["value", "data", "stringData"].iter().any(|name| *key == name));
        values.for_each(|(_, value)| scalars(value, &mut |value| self.add_scalar(value)));
    }

    /// Adds a value of a Secret in each form in which a program may quote it.
    fn add_scalar(&mut self, value: &Value) {
        let Some(text) = scalar_text(value) else { return };
        // A program may quote the value as it is written, or decoded, or one line of it.
        let decoded = BASE64_STANDARD.decode(text.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        for text in decoded.iter().chain([&text]) {
            self.add(text);
            text.lines().for_each(|line| self.add(line));
        }
    }

    /// Adds the lines of a text; of a line that is a pair only the value.
    fn add_lines(&mut self, text: &str) {
        let is_key = text.contains("-----BEGIN ");
        for line in text.lines() {
            match line.split_once(": ") {
                Some((_, value)) => self.add(value.trim_matches([' ', '\'', '"'])),
                // A private key ends with `=` as padding, which does not follow a name.
                None if is_key => line.split('=').for_each(|part| self.add(part)),
                None => self.add_pair(line),
            }
        }
    }

    /// Adds the value of `key=value`; both parts if the key is not a name, and the whole text if there is no `=`.
    fn add_pair(&mut self, pair: &str) {
        // A line that is commented out may have a value, too.
        let pair = pair.trim_start_matches(['#', ' ']);
        match pair.split_once('=') {
            Some((key, value)) if is_name(key) => self.add(value.trim_matches([' ', '\'', '"'])),
            Some((key, value)) => [key, value].into_iter().for_each(|part| self.add(part)),
            None => self.add(pair),
        }
    }

    /// Adds a text, unless it has only signs: these are in any message.
    fn add(&mut self, text: &str) {
        let text = text.trim();
        if text.chars().any(char::is_alphanumeric) {
            self.0.insert(text.to_owned());
            // As programs quote it.
            self.0.insert(text.escape_debug().to_string());
        }
    }
}

/// Whether a selector of a patch may select a Secret: also without a kind, and by a pattern such as `.*`.
fn may_select_secrets(selector: &Value) -> bool {
    let kind = selector.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind.is_empty() || kind == "Secret" || !kind.chars().all(char::is_alphanumeric)
}

/// Whether a text can be the name of a value.
fn is_name(key: &str) -> bool {
    let mut first = key.chars().take(1);
    first.any(|c| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// A text in which a value is hidden; a short value only where it is a whole word.
fn without(text: &str, value: &str) -> String {
    // From this length on a value is not found by chance.
    const LONG: usize = 4;
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(value) {
        let (before, after) = (&rest[..at], &rest[at + value.len()..]);
        let is_word = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        shown += before;
        shown += if value.len() >= LONG || is_word { HIDDEN } else { value };
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_found_wherever_they_stand() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            (
                "kustomization.yaml",
                "secretGenerator:\n- {name: a, literals: [password=one-1, 'two-2', 'pin=77', 'quoted=\"three-3\"'], envs: [a/k.env], files: [x=key.pem]}\n\
                 configMapGenerator:\n- {name: b, literals: [plain=shown-1]}\n\
                 patches:\n- {target: {kind: Secret}, patch: '[{op: add, path: /data/x, value: four-4}]'}\n\
                 - patch: |\n    {apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {p: five-5}}\n",
            ),
            ("a/k.env", "KEY=six-6\n=seven-7\nshown-name=eight-8\n# ninth-9\n"),
            ("key.pem", "-----BEGIN PRIVATE KEY-----\nMIIE+/ten10==\n-----END PRIVATE KEY-----\n"),
            (
                "b/s.yaml",
                "kind: Secret\napiVersion: v1\ndata: {p: ZWxldmVuLTEx}\n---\nkind: ConfigMap\ndata: {p: shown-2}\n",
            ),
            ("b/list.yaml", "kind: SecretList\nitems:\n- {metadata: {name: shown-5}, stringData: {p: seventeen-17}}\n"),
            ("b/bad.yaml", "kind: Secret\ndata:\n  p: twelve-12\n x: [\n"),
            ("b/generator.yaml", "apiVersion: builtin\nkind: SecretGenerator\nliterals: [a=thirteen-13]\n"),
            (
                "c/kustomization.yaml",
                "patches:\n- {target: {name: db}, patch: '[{op: ad, path: /stringData/p, value: fourteen-14}]'}\n\
                 - {target: {kind: Secre.*}, patch: '{stringData: {p: fifteen-15}, metadata: {name: shown-3}}'}\n\
                 - {target: {kind: Deployment}, patch: '[{op: ad, path: /spec, value: shown-4}]'}\n",
            ),
            ("c/json.yaml", "kind: PatchJson6902Transformer\ntarget: {name: db}\njsonOp: '[{value: sixteen-16}]'\n"),
        ];
        for (path, text) in files {
            fs::create_dir_all(top.path().join(path).parent().unwrap()).unwrap();
            fs::write(top.path().join(path), text).unwrap();
        }
        let secrets = Secrets::below(top.path());
        let said = "one-1 two-2 three-3 four-4 five-5 six-6 seven-7 eight-8 ninth-9 MIIE+/ten10 eleven-11 twelve-12 thirteen-13 \
                    fourteen-14 fifteen-15 sixteen-16 seventeen-17 ZWxldmVuLTEx line 77: v77 password shown-name shown-1 shown-2 shown-3 shown-4 shown-5";
        let all = [HIDDEN; 18].join(" ");
        let shown = "v77 password shown-name shown-1 shown-2 shown-3 shown-4 shown-5";
        assert_eq!(secrets.hide(&Secrets::default(), said), format!("{all} line {HIDDEN}: {shown}"));
    }

    #[test]
    fn texts_in_texts_come_to_an_end() {
        let top = tempfile::tempdir().unwrap();
        let nested = |levels: usize, value: &str| {
            (0..levels).fold(format!("kind: Secret\nstringData:\n  p: {value}\n"), |text, _| {
                format!("text: |\n{}", text.lines().map(|line| format!("  {line}\n")).collect::<String>())
            })
        };
        for (name, text) in [
            ("NOTES.txt", "Put the Secret at https://example.com/x"),
            ("list.yaml", "- 'Secret a:b'\n- !x 'Secret c:d'\n- '[Secret e:f]'\n"),
            ("few.yaml", &nested(3, "one-1")),
            ("many.yaml", &nested(300, "two-2")),
        ] {
            fs::write(top.path().join(name), text).unwrap();
        }
        let secrets = Secrets::below(top.path());
        assert_eq!(secrets.hide(&Secrets::default(), "one-1 two-2 shown"), format!("{HIDDEN} {HIDDEN} shown"));
    }
}
