//! Which addresses on the network a tool may reach without being asked (design §9).
//!
//! Owns the difference between the public internet and everything near the user: their own machine, their network, the cloud's metadata
//! service. Names are resolved here, once, and the connection is made to the very addresses that were looked at, so that a name which
//! changes its answer in between (DNS rebinding) gains nothing. Must not send anything but the question for a name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// What an address is told that is refused for where it leads.
pub(super) const NEAR: &str = "is not on the public internet";

/// Asks for the addresses of a name.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// The addresses.
    ///
    /// # Errors
    /// When the name has none or nobody can be asked.
    async fn lookup(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
}

struct System;

#[async_trait]
impl Lookup for System {
    async fn lookup(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|at| at.ip()).collect())
    }
}

/// Lets connections to public addresses through, and to no other.
#[derive(Clone)]
pub struct AddressGuard {
    lookup: Arc<dyn Lookup>,
    /// Names that are not the page's but the proxy's, which the user configured.
    trusted_names: Vec<String>,
    also: Vec<SocketAddr>,
}

impl std::fmt::Debug for AddressGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressGuard")
            .field("also", &self.also)
            .finish_non_exhaustive()
    }
}

impl Default for AddressGuard {
    fn default() -> Self {
        Self {
            lookup: Arc::new(System),
            trusted_names: Vec::new(),
            also: Vec::new(),
        }
    }
}

impl AddressGuard {
    /// A guard that also lets these addresses through and asks `lookup` for names: for tests that bring their own server.
    pub fn with(lookup: Arc<dyn Lookup>, also: Vec<SocketAddr>) -> Self {
        Self {
            lookup,
            trusted_names: Vec::new(),
            also,
        }
    }

    /// The same, which also resolves these names whatever they lead to.
    pub(super) fn trusting(mut self, names: Vec<String>) -> Self {
        self.trusted_names = names;
        self
    }

    /// Why this address may not be fetched; a name is looked at when it is connected to.
    pub(super) fn refuses(&self, url: &Url) -> Option<String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Some(format!(
                "`{}` addresses are not fetched, only http and https",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Some("the address holds a user name or password".to_owned());
        }
        let Some(host) = url.host_str() else {
            return Some("the address has no host".to_owned());
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            let port = url.port_or_known_default().unwrap_or_default();
            let allowed = is_public(ip) || self.also.contains(&SocketAddr::new(ip, port));
            return (!allowed).then(|| private(host));
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let near = name == "localhost"
            || [".localhost", ".local", ".internal", ".home.arpa", ".lan"]
                .iter()
                .any(|end| name.ends_with(end));
        near.then(|| private(host))
    }

    fn lets_through(&self, ip: IpAddr) -> bool {
        is_public(ip) || self.also.iter().any(|at| at.ip() == ip)
    }
}

fn private(host: &str) -> String {
    format!("{host} {NEAR}: pages of this machine and its network are not fetched")
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found = guard.lookup.lookup(host).await?;
            let trusted = guard.trusted_names.iter().any(|name| name.eq_ignore_ascii_case(host));
            // One private address among public ones is reason enough: who mixes them is not to be trusted.
            if !trusted && let Some(near) = found.iter().find(|ip| !guard.lets_through(**ip)) {
                return Err(private(&format!("{host} ({near})")).into());
            }
            let addresses: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one of the public internet.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match ip.segments() {
        // Three forms carry an IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            embedded(high, low)
        }
        // Teredo, benchmarking and the like; documentation.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x3fff, ..] => false,
        // Of everything else only this is in use.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for near in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "100::1",
        ] {
            assert!(!is_public(near.parse().unwrap()), "{near}");
        }
    }

    #[test]
    fn addresses_that_are_refused_without_asking_the_network() {
        let guard = AddressGuard::default();
        for bad in [
            "ftp://example.org/x",
            "file:///etc/passwd",
            "http://user:pw@example.org/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://printer.local/",
            "http://metadata.google.internal/",
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/",
            "http://127.1:8080/",
            "data:text/plain,x",
        ] {
            assert!(guard.refuses(&Url::parse(bad).unwrap()).is_some(), "{bad}");
        }
        for good in [
            "https://example.org/a?b=c",
            "http://8.8.8.8/",
            "http://example.org:8080/",
        ] {
            assert_eq!(guard.refuses(&Url::parse(good).unwrap()), None, "{good}");
        }
        let also = AddressGuard::with(Arc::new(System), vec!["127.0.0.1:99".parse().unwrap()]);
        assert_eq!(also.refuses(&Url::parse("http://127.0.0.1:99/").unwrap()), None);
        assert!(also.refuses(&Url::parse("http://127.0.0.1:98/").unwrap()).is_some());
    }
}
