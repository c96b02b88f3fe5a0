//! Which licence a text is, by the digest of its words.

use crate::record::sha256_hex;

/// The digests of the words of licences, with their SPDX identifiers. What people change in them is no part of it.
const KNOWN: [(&str, &str); 22] = [
    ("045649cdaf85384ba827242062f2f3b36409835c98d297e25177cb1faf7c2847", "Apache-2.0"),
    // Without the appendix.
    ("5a9d26471d8ac52b3c110d44a8d685c5e8e76898a406626150922ac715ef349c", "Apache-2.0"),
    ("108490d21e2d3edc9128233e48fabc169818d0c7c5f0bbdd58231a367d2d6c87", "Apache-2.0"),
    ("6ed232a1aaf66db92997c53c056b853f2a64b9f74585489f71cbae1bb4d6d166", "Apache-2.0"),
    // With the titles that it goes by, and without one.
    ("35a446201226de6b27cfb7106d0f6c697f63bfeac2913dcf89024911e66ef164", "MIT"),
    ("6c833965e9ca4cf8095655005226f24fe8bf7b1605dbe513204837a7371fa127", "MIT"),
    ("6ad3654379e72bbdf8478d5c90fb1e2525aba033fbe675e0ef2248aac67c0f6f", "MIT"),
    ("0cf21bdfd1964a97a8615e128534845826afbc887edc95aa5c925cbf64386b5c", "MIT"),
    // By Google, and by anybody.
    ("526279aa5ce65fb23ffd45ae5430abc95af7bd6118ff94cc2842185ce6aa2c02", "BSD-3-Clause"),
    ("cb1ce31a60c2422f9056e5e23bf9a1050675efd17869be56cd2d7c07685d30d7", "BSD-3-Clause"),
    ("cc65957a28f15bbcef5b0c23770aae3bd8462cb25904250f77a812ab3b2efe15", "BSD-3-Clause"),
    ("447686a56472ea2e9713ca89034ee666e6646bd1a33eba38690cb875708663e2", "BSD-2-Clause"),
    ("7be8178e4e9d0dea6ff4b04bd52bd086d7ea8386a5a6e09760df916bae5d42d2", "BSD-2-Clause"),
    ("f172f90a892d869d5d840d5f4363218a9b21bdb1bd3925ba9c752d1660134fee", "ISC"),
    ("f82071285728ca3ec7685ee9bc4acdae0b8267142a4d20b8f1805eabedb4a98a", "MPL-2.0"),
    ("95f6a0d094cf3da6a140310541c7b576789031b600469b70877b34f97918e4c9", "MPL-2.0"),
    ("a8cd54d6683aa630f0b8d05d56184ad91dc486756da2df61c94d3e4e8d5ecb68", "GPL-3.0-only"),
    ("2be25c18693d6daacfac8823856fbe224c73a67730efedcd1ae92f066fa270ab", "GPL-3.0-only"),
    ("efe73660e5476cf0368fc0fc143f624ff9d1b73c4484b14a9969dd20c5786821", "GPL-2.0-only"),
    ("4d55922bdeafabde164d75448bbfb0b474bf952bbb541325364010900acd9891", "LGPL-2.1-only"),
    ("aae2b222477171fb64e298e7965e768a9a6f85320646b266c94399ac029d42be", "LGPL-3.0-only"),
    ("96bdc7f63190fb4bd1ae584b890300ed7517d858b34c945642a3b9b2f1612a5f", "CC0-1.0"),
];

/// Returns the SPDX identifier of a text that is one licence and nothing else.
pub(super) fn identify(text: &str) -> Option<&'static str> {
    let digest = sha256_hex(words(text).as_bytes());
    KNOWN.iter().find(|(known, _)| *known == digest).map(|(_, id)| *id)
}

/// Returns the words of a text in lower case, without the lines that say whose it is.
fn words(text: &str) -> String {
    let text = text.to_lowercase();
    let lines = text.lines().map(str::trim).filter(|line| !is_notice(line));
    let words = lines.flat_map(|line| line.split(|c: char| !matches!(c, 'a'..='z' | '0'..='9')));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn is_notice(line: &str) -> bool {
    let holder = line.strip_prefix("copyright").map(str::trim_start);
    let is_holder = |rest: &str| rest.starts_with("the ") || rest.starts_with(['(', '©', '[', '{', '<']);
    line.starts_with("all rights reserved")
        || line.starts_with(['©'])
        || line.starts_with("(c)")
        || holder.is_some_and(|rest| is_holder(rest) || rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIT: &str = include_str!("../../../LICENSE-MIT");

    #[test]
    fn licences_are_known_by_their_words() {
        assert_eq!(identify(include_str!("../../../LICENSE-APACHE")), Some("Apache-2.0"));
        assert_eq!(identify(MIT), Some("MIT"));
        let wrapped = MIT.split_whitespace().collect::<Vec<_>>();
        let (holder, rest) = wrapped.split_at(wrapped.iter().position(|word| *word == "Permission").unwrap());
        let other = format!("# The MIT License (MIT)\r\n\r\n{}\r\n\r\n{}", holder.join(" "), rest.join("\r\n"));
        assert_eq!(identify(&other), Some("MIT"));
    }

    #[test]
    fn what_says_more_or_less_is_another_licence() {
        assert_eq!(identify(&format!("{MIT}\nYou may not sell it.")), None);
        assert_eq!(identify(&MIT.replace("without restriction", "with restriction")), None);
        assert_eq!(identify(""), None);
    }
}
