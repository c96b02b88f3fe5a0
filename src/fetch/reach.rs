//! How far inwards a request that upstream chose may lead.
//!
//! What the user's files name is fetched wherever it is. What an upstream names, and every redirect, may lead no
//! further inwards than where it came from: from a public address to public ones, from an in-house server to private
//! ones, and to this machine only from this machine. Otherwise the publisher of a base could make a runner send
//! requests to services that trust their neighbours.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};

use url::{Host, Url};

use crate::git::{self, Pinned, RemoteGit};
use crate::graph::NamedBy;
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::reference::RepoSpec;

/// Where an address lies, from the outside inwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Zone {
    /// Anywhere else.
    Public,
    /// In a private network: RFC 1918, RFC 4193, shared address space.
    Private,
    /// On this machine or its link: loopback, link-local, unspecified, multicast.
    Machine,
}

impl Zone {
    /// Returns where an address lies. One that holds an IPv4 address lies where that does.
    pub(crate) fn of(address: IpAddr) -> Zone {
        match address.to_canonical() {
            IpAddr::V4(address) => Zone::of_v4(address),
            IpAddr::V6(address) => {
                let [a, b, c, .., g, h] = address.segments();
                let embedded = |high: u16, low: u16| {
                    let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
                    Zone::of_v4(Ipv4Addr::new(a, b, c, d))
                };
                match a {
                    // NAT64, 6to4, and the IPv4-compatible addresses of old.
                    0x64 if b == 0xff9b => embedded(g, h),
                    0x2002 => embedded(b, c),
                    0xfe80..=0xfebf | 0xff00..=0xffff => Zone::Machine,
                    0xfc00..=0xfdff | 0xfec0..=0xfeff => Zone::Private,
                    0 if address.segments()[..6] == [0; 6] => match address.segments()[6..] {
                        [0, 0 | 1] => Zone::Machine,
                        _ => embedded(g, h),
                    },
                    _ => Zone::Public,
                }
            }
        }
    }

    fn of_v4(address: Ipv4Addr) -> Zone {
        match address.octets() {
            [0 | 127 | 224..=255, ..] | [169, 254, ..] => Zone::Machine,
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Zone::Private,
            _ => Zone::Public,
        }
    }

    /// Returns what lies in it.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Zone::Public => "a public address",
            Zone::Private => "a private address",
            Zone::Machine => "a loopback or link-local address",
        }
    }
}

/// Returns the addresses of a host; none where its name cannot be resolved here.
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

/// Returns where a host lies: of several addresses, where the innermost one does. None where its name cannot be
/// resolved here, as behind a proxy: then nothing here connects to it, either.
pub(super) fn innermost(host: &Host<String>) -> Option<Zone> {
    addresses(host).into_iter().map(Zone::of).max()
}

/// The same for where a request came from: of several addresses, the outermost one counts, and an unknown one is
/// public.
pub(super) fn outermost(host: &Host<String>) -> Zone {
    let zones = addresses(host).into_iter().map(Zone::of);
    zones.min().unwrap_or(Zone::Public)
}

/// Which hosts may be contacted, and with which login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// The innermost zone to connect to; none: anywhere.
    pub most: Option<Zone>,
    /// Whether the user's files name the host, so that it may get the user's logins.
    pub named: bool,
}

impl Access {
    /// The access of what the user's files name.
    pub(crate) const FREE: Access = Access { most: None, named: true };
}

/// Decides about requests, from what the user's files name. Shared by all threads of a run.
#[derive(Debug, Default)]
pub(super) struct Reach {
    remote_git: RemoteGit,
    allow_private: bool,
    named: Mutex<HashSet<String>>,
    origins: Mutex<HashMap<String, Zone>>,
}

impl Reach {
    pub(super) fn new(remote_git: RemoteGit, allow_private: bool) -> Self {
        Reach { remote_git, allow_private, ..Reach::default() }
    }

    /// Records that the user's files name a URL.
    pub(super) fn name(&self, url: &str) {
        if let Some(place) = place(url) {
            let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
            named.insert(place);
        }
    }

    /// Returns whether the user's files name the host of a URL.
    pub(super) fn is_named(&self, url: &str) -> bool {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        place(url).is_none_or(|place| named.contains(&place))
    }

    /// Returns what a request for `url` may do that `by` asks for.
    pub(super) fn access(&self, by: &NamedBy, url: &str) -> Access {
        let upstreams = match by {
            NamedBy::User => return Access::FREE,
            NamedBy::Upstream(upstreams) => upstreams,
        };
        if self.is_named(url) {
            return Access::FREE;
        }
        Access { most: (!self.allow_private).then(|| self.origin(upstreams)), named: false }
    }

    /// Returns what a redirect may do that `from` answered with, at the address `at`.
    pub(super) fn redirected(&self, from: &Url, at: Option<IpAddr>, to: &Url) -> Access {
        let named = self.is_named(to.as_str());
        // The peer at `at` may be a proxy.
        let from = from.host().map(|host| outermost(&host.to_owned()));
        let zone = from.into_iter().chain(at.map(Zone::of)).min();
        Access { most: (!named && !self.allow_private).then_some(zone.unwrap_or(Zone::Public)), named }
    }

    /// Returns the innermost zone that one of these upstreams lies in.
    fn origin(&self, upstreams: &BTreeSet<String>) -> Zone {
        let zone = |url: &String| {
            let known = || self.origins.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(zone) = known().get(url) {
                return *zone;
            }
            let zone = match host(&self.remote_git.rewritten(url)) {
                Some(host) => outermost(&host),
                // A path of this machine.
                None => Zone::Machine,
            };
            known().insert(url.clone(), zone);
            zone
        };
        upstreams.iter().map(zone).max().unwrap_or(Zone::Public)
    }

    /// Refuses a repository that lies further inwards than `access` allows, at any of its addresses. Returns these: the
    /// name may stand for others as soon as git asks. What the user's `insteadOf` sends elsewhere goes where the user
    /// says.
    pub(super) fn judge_repository(&self, url: &str, access: Access) -> Result<Option<Pinned>> {
        if access.most.is_none() || self.remote_git.rewritten(url) != url {
            return Ok(None);
        }
        let addresses = self.refuse(url, access)?;
        let is_http = git::is_http(url);
        match host(url) {
            None if url.starts_with('/') || url.starts_with("file://") => Ok(None),
            // A proxy may know a name that nobody knows here; ssh has none.
            Some(Host::Domain(host)) if is_http || !addresses.is_empty() => {
                let port = Url::parse(url).ok().and_then(|url| url.port_or_known_default());
                let port = port.unwrap_or(22);
                Ok(Some(Pinned { host, port, addresses }))
            }
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => Ok(None),
            _ => Err(Failure::new(format!(
                "{} is refused: an upstream names it, and its address is unknown",
                redact::url(url)
            ))
            .hint(ALLOW)),
        }
    }

    /// Refuses a URL that lies further inwards than `access` allows, at any of its addresses, and returns these.
    pub(super) fn refuse(&self, url: &str, access: Access) -> Result<Vec<IpAddr>> {
        let Some(most) = access.most else {
            return Ok(Vec::new());
        };
        let addresses = host(url).as_ref().map(addresses).unwrap_or_default();
        let zone = addresses.iter().map(|address| Zone::of(*address)).max();
        match zone.filter(|zone| *zone > most) {
            Some(zone) => Err(inwards(&redact::url(url), zone)),
            None => Ok(addresses),
        }
    }
}

/// Returns the failure for an upstream that leads further inwards.
pub(super) fn inwards(shown: &str, zone: Zone) -> Failure {
    Failure::new(format!("{shown} is refused: an upstream names it, and it has {}", zone.what())).hint(ALLOW)
}

/// What to do about a request that is refused.
pub(super) const ALLOW: &str =
    "if that is meant: name the host in a file of your own, or write `allow-private: true` into .kustomize-localize";

/// Returns the host of a URL, or of what git takes for one; none for a path.
fn host(url: &str) -> Option<Host<String>> {
    if url.contains("://") {
        // Other schemes than http keep an address as text.
        return Host::parse(&Url::parse(url).ok()?.host()?.to_string()).ok();
    }
    let (before, _) = url.split_once(':')?;
    if before.contains('/') {
        return None;
    }
    let name = before.rsplit_once('@').map_or(before, |(_, name)| name);
    Host::parse(name).ok()
}

/// Returns host and port of a URL, as they tell one server from another.
pub(super) fn place(url: &str) -> Option<String> {
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

    fn zone(text: &str) -> Zone {
        Zone::of(text.parse().unwrap())
    }

    #[test]
    fn addresses_lie_where_the_standards_say() {
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
        ] {
            assert_eq!(zone(text), Zone::Machine, "{text}");
        }
        for text in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "fd00:ec2::254",
            "fc00::1",
            "::ffff:10.1.2.3",
            "2002:a00:1::",
        ] {
            assert_eq!(zone(text), Zone::Private, "{text}");
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
            assert_eq!(zone(text), Zone::Public, "{text}");
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
            assert_eq!(place(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn references_of_an_upstream_lead_no_further_inwards() {
        let by = |urls: &[&str]| NamedBy::Upstream(urls.iter().map(|url| (*url).to_owned()).collect());
        let reach = Reach::default();
        let most = |by: &NamedBy| reach.access(by, "http://198.51.100.1/").most;
        assert_eq!(most(&NamedBy::User), None);
        assert_eq!(most(&by(&["http://1.1.1.1/"])), Some(Zone::Public));
        assert_eq!(most(&by(&["http://no.such.invalid/"])), Some(Zone::Public));
        assert_eq!(most(&by(&["ssh://git@10.0.0.1/a"])), Some(Zone::Private));
        assert_eq!(most(&by(&["http://127.0.0.1/"])), Some(Zone::Machine));
        assert_eq!(most(&by(&["file:///srv/a"])), Some(Zone::Machine));
        assert_eq!(most(&by(&["http://1.1.1.1/", "http://10.0.0.1/"])), Some(Zone::Private));
        for (target, most, allowed) in [
            ("http://127.0.0.1/a", Zone::Public, false),
            ("http://localhost/a", Zone::Private, false),
            ("git@169.254.169.254:a/b", Zone::Private, false),
            ("ssh://git@10.0.0.1/a", Zone::Public, false),
            ("ssh://git@10.0.0.1/a", Zone::Private, true),
            ("http://127.0.0.1/a", Zone::Machine, true),
            ("https://1.1.1.1/a", Zone::Public, true),
            ("https://no.such.invalid/a", Zone::Public, true),
        ] {
            let access = Access { most: Some(most), named: false };
            let refused = reach.judge_repository(target, access);
            assert_eq!(refused.is_ok(), allowed, "{target} from {most:?}");
        }
    }

    #[test]
    fn hosts_that_the_user_names_are_free() {
        let reach = Reach::default();
        reach.name("http://127.0.0.1:8080/a.yaml");
        let by = NamedBy::Upstream(["https://1.1.1.1/".to_owned()].into());
        assert_eq!(reach.access(&by, "http://127.0.0.1:8080/b"), Access::FREE);
        assert_ne!(reach.access(&by, "http://127.0.0.1:9090/b"), Access::FREE);
        let allowing = Reach::new(RemoteGit::default(), true);
        let access = allowing.access(&by, "http://127.0.0.1/");
        assert_eq!((access.most, access.named), (None, false));
    }
}
