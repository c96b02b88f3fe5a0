//! The variables that Flux fills in after a build (fluxcd/pkg, `kustomize/kustomize_varsub.go`, drone/envsubst), as far as
//! it is sure what comes of them: `${NAME}`, and with a default. The rest stays as it is written.

use std::collections::BTreeMap;

/// How far a variable is looked at, in bytes.
const LONGEST: usize = 1000;

/// What an object says of which Flux fills in nothing.
const DISABLED: &str = "kustomize.toolkit.fluxcd.io/substitute: disabled";

/// Returns the output of a build with these variables filled in.
pub(crate) fn filled_in(output: &[u8], variables: &BTreeMap<String, String>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(output) else { return output.to_vec() };
    let objects = text.split("\n---\n").map(|object| match object.contains(DISABLED) {
        true => object.to_owned(),
        false => object_filled_in(object, variables),
    });
    objects.collect::<Vec<_>>().join("\n---\n").into_bytes()
}

fn object_filled_in(object: &str, variables: &BTreeMap<String, String>) -> String {
    let (mut filled, mut rest) = (String::with_capacity(object.len()), object);
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        filled.push_str(before);
        // `$${` is `${` in the end.
        let end = if before.ends_with('$') { 2 } else { end(from) };
        let inner = from[2..end].strip_suffix('}');
        filled.push_str(inner.and_then(|inner| value(inner, variables)).unwrap_or(&from[..end]));
        rest = &from[end..];
    }
    filled + rest
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

/// Returns what stands in the place of `NAME`, or of `NAME:=DEFAULT`; none where that is not sure.
fn value<'a>(inner: &'a str, variables: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let is_of_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let end = inner.find(|one| !is_of_name(one)).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let value = variables.get(name)?.as_str();
    let default = [":=", ":-", "="].iter().find_map(|operator| rest.strip_prefix(operator));
    match default {
        _ if rest.is_empty() => Some(value),
        Some(default) if value.is_empty() => Some(default).filter(|default| !default.contains(['$', '"', '\'', '\\'])),
        default => default.map(|_| value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sure_is_filled_in() {
        let variables = [("APP", "web"), ("EMPTY", ""), ("N", "3")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
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
            assert_eq!(String::from_utf8(filled_in(text.as_bytes(), &variables)).unwrap(), expected);
        }
        assert_eq!(filled_in(b"\xff${APP}", &variables), b"\xff${APP}");
    }
}
