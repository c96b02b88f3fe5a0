//! The variables that Flux fills in after a build (fluxcd/pkg, `kustomize/kustomize_varsub.go`, drone/envsubst), as far as
//! it is sure what comes of them: `${NAME}`, and with a default. The rest stays as it is written.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// How far a variable is looked at, in bytes.
const LONGEST: usize = 1000;

/// What an object says of which Flux fills in nothing.
const DISABLED: &str = "kustomize.toolkit.fluxcd.io/substitute: disabled";

/// The variables of an object of Flux.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Variables {
    /// What the object itself says; that comes before what others say.
    own: BTreeMap<String, String>,
    /// Whether nothing else says more.
    are_all: bool,
}

impl Variables {
    /// Reads `postBuild`.
    pub(super) fn of(said: &Json) -> Variables {
        let own = said["substitute"].as_object().into_iter().flatten();
        let own = own.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.replace('\n', ""))));
        let more = said["substituteFrom"].as_array();
        Variables { own: own.collect(), are_all: more.is_none_or(Vec::is_empty) }
    }

    /// Returns whether nothing is sure to be filled in. Flux looks for no variable where it knows none.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Returns the output of a build with the variables filled in.
    pub(crate) fn fill_in(&self, output: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(output) else { return output.to_vec() };
        let object = |object: &str| if object.contains(DISABLED) { object.to_owned() } else { self.in_object(object) };
        text.split("\n---\n").map(object).collect::<Vec<_>>().join("\n---\n").into_bytes()
    }

    fn in_object(&self, object: &str) -> String {
        let (mut filled, mut rest) = (String::with_capacity(object.len()), object);
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            filled.push_str(before);
            // `$${` is `${` in the end.
            let end = if before.ends_with('$') { 2 } else { end(from) };
            let inner = from[2..end].strip_suffix('}');
            filled.push_str(inner.and_then(|inner| self.value(inner)).unwrap_or(&from[..end]));
            rest = &from[end..];
        }
        filled + rest
    }

    /// Returns what stands in the place of `NAME`, or of `NAME:=DEFAULT`; none where that is not sure.
    fn value<'a>(&'a self, inner: &'a str) -> Option<&'a str> {
        let is_of_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
        let (name, rest) = inner.split_at(inner.find(|one| !is_of_name(one)).unwrap_or(inner.len()));
        let own = self.own.get(name).map(String::as_str);
        let default = [":=", ":-", "="].iter().find_map(|operator| rest.strip_prefix(operator));
        match (own, default) {
            (Some(own), _) if rest.is_empty() => Some(own),
            (Some(own), Some(_)) if !own.is_empty() => Some(own),
            (None, _) if !self.are_all || name.is_empty() => None,
            (_, default) => default.filter(|default| !default.contains(['$', '"', '\'', '\\'])),
        }
    }
}

/// Returns where a variable that begins with `${` ends, with those inside it.
fn end(text: &str) -> usize {
    let mut open = 0;
    for (at, byte) in text.bytes().take(LONGEST).enumerate() {
        match byte {
            b'{' if text[..at].ends_with('$') => open += 1,
            b'}' if open == 1 => return at + 1,
            b'}' => open -= 1,
            _ => {}
        }
    }
    2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sure_is_filled_in() {
        let own = serde_json::json!({"APP": "we\nb", "EMPTY": "", "N": "3", "odd": 1});
        let all = Variables::of(&serde_json::json!({"substitute": own}));
        let variables = Variables::of(&serde_json::json!({"substitute": own, "substituteFrom": [{"name": "x"}]}));
        for (text, expected) in [
            ("name: ${APP}-x\n", "name: web-x\n"),
            ("a: ${APP}${N}", "a: web3"),
            ("a: ${APP:=other}", "a: web"),
            ("a: ${APP:-other}", "a: web"),
            ("a: ${EMPTY}", "a: "),
            ("a: ${EMPTY:=1Gi}", "a: 1Gi"),
            // Not sure, or written to stay.
            ("a: ${OTHER}", "a: ${OTHER}"),
            ("a: ${OTHER:=x}", "a: ${OTHER:=x}"),
            ("a: $${APP}", "a: $${APP}"),
            ("a: $APP", "a: $APP"),
            ("a: ${APP^^}", "a: ${APP^^}"),
            ("a: ${#APP}", "a: ${#APP}"),
            ("a: ${EMPTY:=${APP}} ${N}", "a: ${EMPTY:=${APP}} 3"),
            ("a: ${OTHER:=${APP}}}", "a: ${OTHER:=${APP}}}"),
            ("a: ${APP:=${N}}", "a: web"),
            ("a: ${}", "a: ${}"),
            ("a: ${APP", "a: ${APP"),
            ("é: ${APP} ${", "é: web ${"),
            (
                "a: ${APP}\n---\nmetadata:\n  labels:\n    kustomize.toolkit.fluxcd.io/substitute: disabled\na: ${APP}\n",
                "a: web\n---\nmetadata:\n  labels:\n    kustomize.toolkit.fluxcd.io/substitute: disabled\na: ${APP}\n",
            ),
        ] {
            assert_eq!(String::from_utf8(variables.fill_in(text.as_bytes())).unwrap(), expected);
        }
        assert_eq!(variables.fill_in(b"\xff${APP}"), b"\xff${APP}");
        // A default is sure where nobody else says more.
        for (text, expected) in [
            ("a: ${OTHER:=x} ${OTHER:-y} ${EMPTY:=z}", "a: x y z"),
            (
                "a: ${OTHER} ${OTHER:=\"x\"} ${OTHER^:=x} ${:=x} ${APP}",
                "a: ${OTHER} ${OTHER:=\"x\"} ${OTHER^:=x} ${:=x} web",
            ),
        ] {
            assert_eq!(String::from_utf8(all.fill_in(text.as_bytes())).unwrap(), expected);
        }
        for said in [serde_json::json!(null), serde_json::json!({"substitute": [], "substituteFrom": 1})] {
            assert!(Variables::of(&said).is_empty());
        }
    }
}
