//! Decides which addresses a request may connect to, and which login it may carry.
//!
//! URLs in the user's own files may point anywhere, and get the user's logins. URLs that only an upstream has, and
//! redirects to other hosts, may point only to public addresses, unless the configuration has `allow-private`.
//! Otherwise the publisher of a base could make a runner send requests to services that trust their neighbours.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::sync::{Mutex, OnceLock};

use url::{Host, Url};

use crate::git::{self, Peer, RemoteGit};
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::os::parallel::locked;
use crate::reference::RepoSpec;

/// Whether an address is public, so that anybody can connect to it: not of this machine, its link, or a private
/// network.
pub(super) fn is_public(address: IpAddr) -> bool {
    // An IPv6 address that embeds an IPv4 address is judged by that.
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            // Several ranges embed an IPv4 address, which may be private: in segments 2 and 3, or in the last two.
            let [a, b, c, .., g, h] = address.segments();
            match a {
                // NAT64, 6to4, and the IPv4-compatible addresses of old.
                0x64 if b == 0xff9b => is_public_embedded(g, h),
                0x2002 => is_public_embedded(b, c),
                0 if address.segments()[..6] == [0; 6] => is_public_embedded(g, h),
                // Private, link-local, site-local, multicast.
                _ => !matches!(a, 0xfc00..=0xfdff | 0xfe80..=0xffff),
            }
        }
    }
}

/// Whether the IPv4 address in two segments of an IPv6 address is public.
fn is_public_embedded(high: u16, low: u16) -> bool {
    let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
    is_public_v4(Ipv4Addr::new(a, b, c, d))
}

/// Whether an IPv4 address is public: not reserved, private, loopback, link-local, shared by a provider, or multicast.
fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..] | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..]
    )
}

/// The addresses of a host, which are checked before anything connects to it. Empty if its name cannot be resolved on
/// this machine: then only a proxy can connect to it.
fn addresses(host: &Host<String>) -> Vec<IpAddr> {
    match host {
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        Host::Domain(name) => match (name.as_str(), 0).to_socket_addrs() {
            Ok(addresses) => addresses.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        },
    }
}

/// The rights of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    /// Whether it may connect to addresses that are not public.
    pub anywhere: bool,
    /// Whether it may carry the user's logins, because the user's files name the host.
    pub named: bool,
}

/// Decides about requests by the URLs in the user's files. All threads of a run share it.
#[derive(Debug, Default)]
pub(super) struct NetworkPolicy {
    remote_git: RemoteGit,
    allow_private: bool,
    named: Mutex<HashSet<String>>,
    /// Whether git shows a client certificate to every host. Set when it is first needed.
    has_certificate: OnceLock<bool>,
    /// Whether git has credential helpers for single URLs. Set when it is first needed.
    has_helpers: OnceLock<bool>,
}

impl NetworkPolicy {
    pub(super) fn new(remote_git: RemoteGit, allow_private: bool) -> Self {
        NetworkPolicy { remote_git, allow_private, ..NetworkPolicy::default() }
    }

    /// Records that the user's files name a URL.
    pub(super) fn add_user_url(&self, url: &str) {
        if let Some(authority) = authority(url) {
            let mut named = locked(&self.named);
            named.insert(authority);
        }
    }

    /// The rights of a request for a URL.
    pub(super) fn access(&self, url: &str) -> Access {
        let named = locked(&self.named);
        // A local path that only an upstream names was refused before. Any other URL has an authority, or nobody names
        // it.
        let is_path = url.starts_with('/') || url.starts_with("file://");
        let named = authority(url).map_or(is_path, |authority| named.contains(&authority));
        Access { anywhere: named || self.allow_private, named }
    }

    /// Whether a request for a URL, which is sent to `rewritten`, gets a login before the server demands one, because
    /// the user's git has a credential helper for that host or repository.
    pub(super) fn sends_login(&self, url: &str, rewritten: impl FnOnce() -> String) -> bool {
        self.access(url).named
            && *self.has_helpers.get_or_init(|| self.remote_git.has_helpers())
            && self.remote_git.has_helper_for(&redact::url(&rewritten()))
    }

    /// Refuses a URL that only an upstream names if any address of its host is not public, and returns the addresses.
    /// For a URL that may point anywhere, none are looked up, and the list is empty.
    pub(super) fn check_addresses(&self, url: &str) -> Result<Vec<IpAddr>> {
        if self.access(url).anywhere {
            return Ok(Vec::new());
        }
        let Some(host) = host(url) else {
            return Err(refused(url, "its host is invalid"));
        };
        let addresses = addresses(&host);
        match addresses.iter().find(|address| !is_public(**address)) {
            Some(address) => Err(refused(url, &format!("{address} is not a public address"))),
            None => Ok(addresses),
        }
    }

    /// Refuses a URL that only an upstream names if git would show its server the client certificate of the user, which
    /// identifies them.
    fn refuse_certificate(&self, url: &str) -> Result<()> {
        let host = Url::parse(url).ok().filter(|url| url.scheme() == "https");
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
        // Only a TLS connection shows a certificate.
        let Some(host) = host else { return Ok(()) };
        if !*self.has_certificate.get_or_init(|| self.remote_git.has_certificate()) {
            return Ok(());
        }
        // git has no option that withholds the certificate, so the URL is refused.
        Err(Failure::new(format!(
            "{} is refused: only an upstream names {host}, and git would show it the client certificate of `http.sslCert`",
            redact::url(url)
        ))
        .hint("set it only for its hosts: git config --global http.https://HOST/.sslCert FILE"))
    }

    /// git with the rights of a request for a URL: without logins unless the user's files name the host, and connecting
    /// only to the addresses that were checked.
    pub(super) fn git_for(&self, url: &str) -> Result<RemoteGit> {
        let access = self.access(url);
        let mut git = self.remote_git.clone();
        if !access.named {
            refuse_default_login(url)?;
            self.refuse_certificate(url)?;
            git = git.anonymous();
        }
        // A URL that the user's `insteadOf` rewrites goes where the user says.
        if access.anywhere || git.rewritten(url) != url {
            return Ok(git);
        }
        // The name may resolve to other addresses when git asks, so git gets these.
        let addresses = self.check_addresses(url)?;
        match host(url).filter(|_| git::is_http(url)) {
            // Even without addresses: a proxy may know a name that cannot be resolved on this machine.
            Some(Host::Domain(host)) => {
                let port = Url::parse(url).ok().and_then(|url| url.port_or_known_default()).unwrap_or(443);
                Ok(git.with_peer(Peer { host, port, addresses }))
            }
            // An address in the URL itself was checked, and cannot change.
            Some(_) => Ok(git),
            // ssh resolves the name itself, so the check would prove nothing.
            None => Err(refused(url, "it is not an http URL")),
        }
    }
}

/// The failure of a URL that points to a forbidden address.
fn refused(url: &str, why: &str) -> Failure {
    let url = redact::url(url);
    Failure::new(format!("{url} is refused: only an upstream or a redirect names it, and {why}")).hint(
        "if this is intended, name the host in a file of your own, or write `allow-private: true` into .kustomize-localize",
    )
}

/// Refuses a URL that only an upstream names if git would send its server the `default` login of `~/.netrc`, which curl
/// uses for every host without an entry of its own.
fn refuse_default_login(url: &str) -> Result<()> {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let netrc = std::env::home_dir().and_then(|home| std::fs::read(home.join(".netrc")).ok());
    let netrc = String::from_utf8_lossy(netrc.as_deref().unwrap_or_default());
    let words: Vec<&str> = netrc.split_whitespace().collect();
    // The user chose the login of an entry for this host.
    if host.is_empty() || !words.contains(&"default") || words.windows(2).any(|two| two == ["machine", &host]) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} is refused: only an upstream names {host}, and git would send it the `default` login of ~/.netrc",
        redact::url(url)
    ))
    .hint(format!("if this is intended, add `machine {host}` with a login to ~/.netrc")))
}

/// The host of a URL or of a scp-like address (`user@host:path`). `None` for a path.
fn host(url: &str) -> Option<Host<String>> {
    if url.contains("://") {
        // For other schemes than http, the URL parser keeps an address as text.
        return Host::parse(&Url::parse(url).ok()?.host()?.to_string()).ok();
    }
    let (before, _) = url.split_once(':')?;
    if before.contains('/') {
        return None;
    }
    let name = before.rsplit_once('@').map_or(before, |(_, name)| name);
    Host::parse(name).ok()
}

/// The host and port of a URL or of a repository as kustomize spells it, which identify its server. Equal servers give
/// equal texts. `None` for a path.
pub(super) fn authority(url: &str) -> Option<String> {
    let host = host(url).or_else(|| host(RepoSpec::parse(url).ok()?.clone_spec().exposed()))?;
    let port = Url::parse(url).ok().and_then(|url| url.port());
    let host = host.to_string().to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    Some(match port {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_public_as_the_standards_say() {
        let is_public = |text: &str| is_public(text.parse().unwrap());
        for text in [
            "127.0.0.1",
            "127.255.0.9",
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "64:ff9b::a9fe:a9fe",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "fd00:ec2::254",
            "fc00::1",
            "fec0::1",
            "::ffff:10.1.2.3",
            "2002:a00:1::",
        ] {
            assert!(!is_public(text), "{text}");
        }
        for text in [
            "1.1.1.1",
            "172.32.0.1",
            "172.15.0.1",
            "100.128.0.1",
            "192.169.0.1",
            "2606:4700::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(text), "{text}");
        }
    }

    #[test]
    fn hosts_are_read_from_urls_and_from_what_git_takes() {
        for (url, expected) in [
            ("https://example.com/a", Some("example.com")),
            ("https://Example.com:8443/a", Some("example.com:8443")),
            ("ssh://git@example.com/a", Some("example.com")),
            ("ssh://git@127.0.0.1:2222/a", Some("127.0.0.1:2222")),
            ("git@example.com:acme/base", Some("example.com")),
            ("example.com:acme/base", Some("example.com")),
            ("github.com/acme/base?ref=v1", Some("github.com")),
            ("/srv/git/base", None),
            ("file:///srv/git/base", None),
            ("http://2130706433/", Some("127.0.0.1")),
            ("http://0x7f.1/", Some("127.0.0.1")),
            ("http://[::1]:80/", Some("[::1]")),
        ] {
            assert_eq!(authority(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn what_an_upstream_names_leads_to_public_addresses() {
        let reach = NetworkPolicy::default();
        for (url, allowed) in [
            ("http://127.0.0.1/a", false),
            ("http://localhost/a", false),
            ("git@169.254.169.254:a/b", false),
            ("ssh://git@10.0.0.1/a", false),
            ("https://1.1.1.1/a", true),
            ("https://no.such.invalid/a", true),
            // ssh connects wherever it finds a name, with the user's keys.
            ("ssh://git@1.1.1.1/a", false),
            ("ssh://git@no.such.invalid/a", false),
            // Git reads these, and we do not.
            ("http://[::1%25lo]:8080/a/b.git", false),
            ("http://[::ffff:169.254.169.254%25x]/a/b", false),
            ("git@[10.0.0.1]:a/b", false),
            ("ssh://git@[10.0.0.1]/a", false),
        ] {
            assert_eq!(reach.git_for(url).is_ok(), allowed, "{url}");
        }
    }

    #[test]
    fn a_client_certificate_is_for_hosts_that_the_user_names() {
        let url = "https://1.1.1.1/a";
        for (key, refused) in [("http.sslCert", true), ("http.https://1.1.1.1/.sslCert", false), ("http.sslKey", false)]
        {
            let settings = vec![(key.to_owned(), "/no/such.pem".to_owned())];
            let reach = NetworkPolicy::new(RemoteGit::new(settings), false);
            assert_eq!(reach.git_for(url).is_err(), refused, "{key}");
            assert!(reach.git_for("http://1.1.1.1/a").is_ok());
            reach.add_user_url(url);
            assert!(reach.git_for(url).is_ok());
        }
    }

    #[test]
    fn hosts_that_the_user_names_are_free() {
        let reach = NetworkPolicy::default();
        reach.add_user_url("http://127.0.0.1:8080/a.yaml");
        assert_eq!(reach.access("http://127.0.0.1:8080/b"), Access { anywhere: true, named: true });
        assert_eq!(reach.access("http://127.0.0.1:9090/b"), Access { anywhere: false, named: false });
        let allowing = NetworkPolicy::new(RemoteGit::default(), true);
        assert_eq!(allowing.access("http://127.0.0.1/"), Access { anywhere: true, named: false });
    }
}
