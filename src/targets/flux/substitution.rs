//! The substitution of variables in an object, as Flux does it after a build (drone/envsubst, `parse/parse.go`): names
//! and defaults. Its other operators (`^`, `,`, `/`, `#`, `%`, parts of a value) are recognized, but not evaluated.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::variables::Variables;
use crate::message::failure::shown;

/// How deep defaults may contain variables.
const DEEPEST: usize = 8;
/// The most characters of an expression that a message shows.
const SHOWN: usize = 60;
/// The operators that give the text behind them if the variable is empty or not set.
const DEFAULTS: [&str; 5] = [":=", ":-", ":?", ":+", "="];

/// Why Flux, or a build here, cannot fill in all variables of an output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problems {
    /// The variables that nothing sets, and that have no default: Flux 2.9 fails.
    pub unset: BTreeSet<String>,
    /// The errors that every Flux reports.
    pub invalid: BTreeSet<String>,
    /// The expressions that Flux evaluates, and this program does not.
    pub unevaluated: BTreeSet<String>,
}

impl Problems {
    /// Why Flux fails; `None` if it does not.
    pub(crate) fn refusal(&self) -> Option<String> {
        let invalid = self.invalid.iter().cloned();
        let unset = quoted(&self.unset).map(|names| format!("Flux 2.9 fails if a variable is not set: {names}"));
        let all: Vec<String> = invalid.chain(unset).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Why the output is unknown; `None` if it is not.
    pub(crate) fn unknown(&self) -> Option<String> {
        quoted(&self.unevaluated).map(|all| format!("this program cannot evaluate {all}, but Flux does"))
    }
}

/// A list of expressions for a message; `None` if there are none.
fn quoted(all: &BTreeSet<String>) -> Option<String> {
    let all: Vec<String> = all.iter().map(|text| format!("`{text}`")).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Fills in the variables of a text.
pub(super) fn fill_in(variables: &Variables, text: &str, problems: &mut Problems) -> String {
    Substitution { variables, problems, depth: 0 }.fill(text)
}

struct Substitution<'a> {
    variables: &'a Variables,
    problems: &'a mut Problems,
    /// How many defaults the text is in.
    depth: usize,
}

impl Substitution<'_> {
    /// A text with each expression replaced that can be, as Flux reads it from left to right.
    fn fill(&mut self, text: &str) -> String {
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            // `$${` is a literal `${`, but `$$${` is a literal `$$` with an expression.
            let is_escaped = (before.len() - before.trim_end_matches('$').len()) % 2 == 1;
            if is_escaped {
                filled.push_str(&before[..start - 1]);
                filled.push_str("${");
                rest = &from["${".len()..];
                continue;
            }
            filled.push_str(before);
            let Some(end) = expression_end(from) else {
                let line = from.lines().next().unwrap_or_default();
                self.problems.invalid.insert(format!("Flux finds no `}}` for `{}`", cut(line)));
                return filled + from;
            };
            let (expression, after) = from.split_at(end);
            filled.push_str(self.evaluate(expression).as_deref().unwrap_or(expression));
            rest = after;
        }
        filled + rest
    }

    /// The text that replaces an expression; `None` if it stays, since only the cluster knows the value, or because of
    /// a problem, which is noted.
    fn evaluate(&mut self, text: &str) -> Option<String> {
        let Some(Expression { name, operator }) = Expression::parse(text) else {
            self.problems.invalid.insert(format!("Flux cannot parse `{}`", cut(text)));
            return None;
        };
        let default = match operator {
            // Flux evaluates a default even if it does not use it.
            Operator::Default(text) => self.fill_default(text),
            Operator::None | Operator::Other => None,
        };
        // An object of the cluster may set the variable.
        if !self.variables.is_certain(name) {
            return None;
        }
        let value = self.variables.value(name).map(str::to_owned);
        // Without a default, a variable that is not set is empty for older versions of Flux, and an error for newer
        // ones.
        let has_default = matches!(operator, Operator::Default(_));
        if value.is_none() && !has_default && !self.variables.unset_is_empty() {
            self.problems.unset.insert(format!("${{{name}}}"));
            return None;
        }
        let evaluated = match operator {
            Operator::None => Some(value.unwrap_or_default()),
            Operator::Default(_) => value.filter(|value| !value.is_empty()).or(default),
            Operator::Other => None,
        };
        if evaluated.is_none() {
            self.problems.unevaluated.insert(cut(text));
        }
        evaluated
    }

    /// The text of a default; `None` if it is not evaluated here, because it is too deep, or has quotes or escapes.
    fn fill_default(&mut self, text: &str) -> Option<String> {
        if self.depth == DEEPEST || text.contains(['"', '\'', '\\']) {
            return None;
        }
        self.depth += 1;
        let filled = self.fill(text);
        self.depth -= 1;
        Some(filled)
    }
}

/// An expression `${…}`.
struct Expression<'a> {
    name: &'a str,
    operator: Operator<'a>,
}

#[derive(Clone, Copy)]
enum Operator<'a> {
    None,
    /// The text that is used if the variable is empty or not set.
    Default(&'a str),
    Other,
}

impl<'a> Expression<'a> {
    /// Splits an expression into the name of the variable and the operator; `None` if Flux cannot parse it.
    fn parse(text: &'a str) -> Option<Expression<'a>> {
        let inner = text.strip_prefix("${")?.strip_suffix('}')?;
        // `${#NAME}` is the length of the value.
        let (is_length, named) = inner.strip_prefix('#').map_or((false, inner), |named| (true, named));
        let end = named.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(named.len());
        let (name, operator) = named.split_at(end);
        if name.is_empty() {
            return None;
        }
        let operator =
            if is_length { operator.is_empty().then_some(Operator::Other) } else { Operator::parse(operator) };
        Some(Expression { name, operator: operator? })
    }
}

impl<'a> Operator<'a> {
    /// Reads what follows the name of a variable; `None` if Flux cannot parse it.
    fn parse(text: &'a str) -> Option<Operator<'a>> {
        if text.is_empty() {
            return Some(Operator::None);
        }
        if let Some(default) = DEFAULTS.iter().find_map(|default| text.strip_prefix(default)) {
            return Some(Operator::Default(default));
        }
        text.starts_with([':', '^', ',', '/', '#', '%']).then_some(Operator::Other)
    }
}

/// The end of an expression that begins with `${`, which may contain others; `None` if its `}` is missing.
fn expression_end(text: &str) -> Option<usize> {
    let mut open = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' if text[..at].ends_with('$') => open += 1,
            b'}' if open == 1 => return Some(at + 1),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// A text for a message, shortened.
fn cut(text: &str) -> String {
    shown(&text.chars().take(SHOWN).collect::<String>()).to_string()
}
