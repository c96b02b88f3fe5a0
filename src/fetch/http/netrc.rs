//! The netrc file: logins by host, as curl and git read them.

use std::path::{Path, PathBuf};

/// A larger file is not a netrc file.
const MAX_BYTES: u64 = 1 << 20;

/// The logins of a netrc file, in their order. Has no `Debug`: it holds passwords.
#[derive(Default)]
pub(super) struct Netrc {
    entries: Vec<Entry>,
}

#[derive(Default)]
struct Entry {
    /// `None` for the `default` entry.
    machine: Option<String>,
    login: Option<String>,
    password: Option<String>,
}

/// What the next token is.
#[derive(Clone, Copy)]
enum Expect {
    Keyword,
    Machine,
    Login,
    Password,
    /// A value that is of no use here.
    Ignored,
    /// The name of a macro, whose lines follow.
    Macro,
}

impl Netrc {
    /// Returns the file to read: `$NETRC`, else `~/.netrc`, else `~/_netrc`.
    pub(super) fn locate() -> Option<PathBuf> {
        if let Some(path) = std::env::var_os("NETRC").filter(|path| !path.is_empty()) {
            return Some(path.into());
        }
        let home = std::env::home_dir().filter(|home| home.is_absolute())?;
        [".netrc", "_netrc"]
            .into_iter()
            .map(|name| home.join(name))
            .find(|path| path.is_file())
    }

    /// Reads a netrc file. One that cannot be read holds no logins: what needs one will be answered
    /// 401, which is reported.
    pub(super) fn read(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_BYTES => {}
            _ => return Netrc::default(),
        }
        match std::fs::read(path) {
            Ok(bytes) => Netrc::parse(&String::from_utf8_lossy(&bytes)),
            Err(_) => Netrc::default(),
        }
    }

    /// Reads the tokens of a netrc file. Never fails: what is not understood is passed over.
    ///
    /// Tokens stand between blanks or in double quotes, in which a backslash escapes (`\n`, `\r`,
    /// `\t`, else the character itself). A `#` where a keyword may stand starts a comment; in the
    /// place of a value it belongs to the value. A `macdef` ends at the next empty line.
    pub(super) fn parse(text: &str) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let mut expect = Expect::Keyword;
        let mut in_macro = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            if in_macro {
                in_macro = !line.trim().is_empty();
                continue;
            }
            let mut rest = line;
            loop {
                let is_comment = |rest: &str| rest.trim_start().starts_with('#');
                if matches!(expect, Expect::Keyword) && is_comment(rest) {
                    break;
                }
                let Some((token, after)) = next_token(rest) else {
                    break;
                };
                rest = after;
                match expect {
                    Expect::Keyword => {
                        expect = match token.as_str() {
                            "machine" => Expect::Machine,
                            "login" | "user" => Expect::Login,
                            "password" | "passwd" => Expect::Password,
                            "account" => Expect::Ignored,
                            "macdef" => Expect::Macro,
                            "default" => {
                                entries.push(Entry::default());
                                Expect::Keyword
                            }
                            _ => Expect::Keyword,
                        };
                        continue;
                    }
                    Expect::Machine => entries.push(Entry {
                        machine: Some(token),
                        ..Entry::default()
                    }),
                    Expect::Login => {
                        if let Some(entry) = entries.last_mut() {
                            entry.login = Some(token);
                        }
                    }
                    Expect::Password => {
                        if let Some(entry) = entries.last_mut() {
                            entry.password = Some(token);
                        }
                    }
                    Expect::Ignored => {}
                    Expect::Macro => {
                        in_macro = true;
                        expect = Expect::Keyword;
                        break;
                    }
                }
                expect = Expect::Keyword;
            }
        }
        Netrc { entries }
    }

    /// Returns the login and password for `host` (without a port; an IPv6 address with or without
    /// brackets), for the given login if there is one.
    ///
    /// The first `machine` that fits, else `default` if that `may_default`. An entry without a password fits nothing,
    /// one without a login fits every login.
    pub(super) fn find(
        &self,
        host: &str,
        login: Option<&str>,
        may_default: bool,
    ) -> Option<(String, String)> {
        let usable = |entry: &&Entry| {
            entry.password.is_some()
                && (login.is_none() || entry.login.is_none() || entry.login.as_deref() == login)
        };
        let is_host = |entry: &&Entry| {
            entry
                .machine
                .as_deref()
                .is_some_and(|machine| unbracketed(machine).eq_ignore_ascii_case(unbracketed(host)))
        };
        let entry = self
            .entries
            .iter()
            .filter(is_host)
            .find(usable)
            .or_else(|| {
                self.entries
                    .iter()
                    .filter(|entry| may_default && entry.machine.is_none())
                    .find(usable)
            })?;
        let user = entry.login.as_deref().or(login).unwrap_or_default();
        Some((user.to_owned(), entry.password.clone()?))
    }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

/// Splits the first token off. A quote that is not closed ends with the line.
fn next_token(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (token, rest) = text.split_at(end);
        return (!token.is_empty()).then(|| (token.to_owned(), rest));
    };
    let mut token = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => match characters.next() {
                Some('n') => token.push('\n'),
                Some('r') => token.push('\r'),
                Some('t') => token.push('\t'),
                Some(other) => token.push(other),
                None => break,
            },
            other => token.push(other),
        }
    }
    Some((token, characters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(user: &str, password: &str) -> Option<(String, String)> {
        Some((user.to_owned(), password.to_owned()))
    }

    #[test]
    fn logins_are_found_by_their_host() {
        let two = "machine A.example login a password 1 machine b.example login b password 2";
        let logins = "machine h login a password 1\nmachine h login b password 2\n";
        let default = "default login d password 3\nmachine h login a password 1";
        let quoted = r#"machine h login "a b" password "q\"\\\t#x" machine i login i password i"#;
        let macros = "# machine h login no password no\n\
                      machine h # the host\n login u password #hash\n\
                      macdef init\n machine h2 login x password y\n cd /\n\n\
                      machine h3 login z password w # end\n";
        let open = "machine h login u password \"open\nmachine i login v password w";
        for (text, host, login, expected) in [
            // One line and many lines are the same.
            ("machine h login u password p", "h", None, pair("u", "p")),
            (
                "machine h\n\tlogin u\n\tpassword p\n",
                "h",
                None,
                pair("u", "p"),
            ),
            (
                "machine\nh\r\nlogin\r\nu password\n\n p",
                "h",
                None,
                pair("u", "p"),
            ),
            (
                "\u{feff}machine h password p login u account x",
                "h",
                None,
                pair("u", "p"),
            ),
            // The host decides, without case.
            (two, "a.EXAMPLE", None, pair("a", "1")),
            (two, "b.example", None, pair("b", "2")),
            (two, "example", None, None),
            (two, "x.a.example", None, None),
            (
                "machine ::1 login a password 1",
                "[::1]",
                None,
                pair("a", "1"),
            ),
            (logins, "h", None, pair("a", "1")),
            (logins, "h", Some("b"), pair("b", "2")),
            (logins, "h", Some("c"), None),
            (default, "h", None, pair("a", "1")),
            (default, "other", None, pair("d", "3")),
            (default, "other", Some("x"), None),
            // One without a password borrows none.
            (
                "machine h login a\nmachine other login b password 2",
                "h",
                None,
                None,
            ),
            ("machine h password p", "h", Some("me"), pair("me", "p")),
            ("machine h password p", "h", None, pair("", "p")),
            (quoted, "h", None, pair("a b", "q\"\\\t#x")),
            (quoted, "i", None, pair("i", "i")),
            (open, "i", None, pair("v", "w")),
            ("machine h login u password \"\"", "h", None, pair("u", "")),
            (macros, "h", None, pair("u", "#hash")),
            (macros, "h2", None, None),
            (macros, "h3", None, pair("z", "w")),
            ("", "h", None, None),
            ("machine", "h", None, None),
            ("login u password p", "h", None, None),
            ("\"", "h", None, None),
            ("machine h login", "h", None, None),
            ("\\", "h", None, None),
            ("macdef", "h", None, None),
        ] {
            let found = Netrc::parse(text).find(host, login, true);
            assert_eq!(found, expected, "{text:?} {host}");
        }
    }

    #[test]
    fn a_path_that_is_not_a_file_holds_no_login() {
        let directory = tempfile::tempdir().unwrap();
        assert!(
            Netrc::read(directory.path())
                .find("h", None, true)
                .is_none()
        );
        assert!(
            Netrc::read(&directory.path().join("absent"))
                .find("h", None, true)
                .is_none()
        );
        let file = directory.path().join("netrc");
        std::fs::write(
            &file,
            b"machine \xff login a password b machine h login u password p",
        )
        .unwrap();
        assert_eq!(Netrc::read(&file).find("h", None, true), pair("u", "p"));
    }
}
