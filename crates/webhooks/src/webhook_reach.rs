//! Which addresses a webhook can call. A caller chooses the address, so it must not lead to what only the operator
//! can reach: the operator's own machines, or a cloud's metadata service. The resolved addresses are checked again at
//! the call.

use quittance_engine::targets::HostPattern;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address inside the operator's network that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    Host(HostPattern),
    Network { address: IpAddr, bits: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is neither a host pattern nor a network: write `hooks.example.org`, `10.1.2.3` or `10.1.0.0/16`", .0.escape_debug())]
pub struct BadAllowed(String);

impl Allowed {
    pub fn parse(text: &str) -> Result<Self, BadAllowed> {
        let bad = || BadAllowed(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| bad())?)),
            None => (text, None),
        };
        if let Ok(address) = address.parse::<IpAddr>() {
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(most);
            return if bits <= most { Ok(Self::Network { address, bits }) } else { Err(bad()) };
        }
        // A star would open everything, and no operator means that.
        match HostPattern::parse(text) {
            Ok(pattern) if bits.is_none() && text != "*" => Ok(Self::Host(pattern)),
            _ => Err(bad()),
        }
    }

    fn covers_host(&self, host: &str) -> bool {
        matches!(self, Self::Host(pattern) if pattern.covers(host))
    }

    fn covers_address(&self, found: IpAddr) -> bool {
        let Self::Network { address, bits } = self else { return false };
        match (address, found) {
            (IpAddr::V4(net), IpAddr::V4(found)) => {
                let shift = 32 - u32::from(*bits);
                net.to_bits().checked_shr(shift).unwrap_or(0)
                    == found.to_bits().checked_shr(shift).unwrap_or(0)
            }
            (IpAddr::V6(net), IpAddr::V6(found)) => {
                let shift = 128 - u32::from(*bits);
                net.to_bits().checked_shr(shift).unwrap_or(0)
                    == found.to_bits().checked_shr(shift).unwrap_or(0)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(pattern) => pattern.fmt(f),
            Self::Network { address, bits } => write!(f, "{address}/{bits}"),
        }
    }
}

/// Whether this address can be called under this name.
pub(crate) fn may_call(allowed: &[Allowed], host: &str, address: IpAddr) -> bool {
    let address = plain(address);
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    !is_inside(address)
        || allowed.iter().any(|allowed| allowed.covers_host(&host) || allowed.covers_address(address))
}

/// The IPv4 address that an IPv6 address holds, or the address itself.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let bits = v6.to_bits();
    let low = |shift: u32| {
        let [.., a, b, c, d] = (bits >> shift).to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => low(0),
        [0, 0, 0, 0, 0, 0, high, low_half] if high != 0 || low_half > 1 => low(0),
        [0x2002, ..] => low(80),
        _ => address,
    }
}

/// Whether an address is not on the public internet, as far as the number shows.
fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_inside_v4(v4),
        IpAddr::V6(v6) => is_inside_v6(v6),
    }
}

fn is_inside_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

fn is_inside_v6(v6: Ipv6Addr) -> bool {
    // Only 2000::/3 is given out to the public, and parts of that are not either.
    let [first, second, ..] = v6.segments();
    first >> 13 != 1 || (first == 0x2001 && (second < 0x0200 || second == 0x0db8)) || first == 0x3fff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_inside_is_called_however_it_is_written() {
        for inside in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.8",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::7f00:1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "fe80::1",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "5f00::1",
        ] {
            let address = inside.parse().unwrap();
            assert!(!may_call(&[], "any.example.org", address), "{inside}");
        }
        for outside in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "2002:808:808::",
        ] {
            assert!(may_call(&[], "any.example.org", outside.parse().unwrap()), "{outside}");
        }
    }

    #[test]
    fn what_the_operator_allows_is_called_and_nothing_beside_it() {
        let allowed: Vec<_> = ["10.1.0.0/16", "127.0.0.1", "hooks.internal", "*.lan", "fd00::/8"]
            .map(|text| Allowed::parse(text).unwrap())
            .into();
        let may = |host: &str, address: &str| may_call(&allowed, host, address.parse().unwrap());
        assert!(
            may("x", "10.1.255.1")
                && may("x", "127.0.0.1")
                && may("x", "::ffff:10.1.2.3")
                && may("x", "fd99::1")
        );
        assert!(may("hooks.internal", "192.168.0.9") && may("a.LAN.", "192.168.0.9"));
        assert!(!may("x", "10.2.0.1") && !may("x", "127.0.0.2") && !may("xhooks.internal", "192.168.0.9"));
        assert!(!may("x", "fe80::1"));
        for bad in ["*", "", "10.0.0.0/33", "a b", "10.0.0.0/-1", "host/8"] {
            assert!(Allowed::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_network_of_no_bits_is_everything() {
        let all = [Allowed::parse("0.0.0.0/0").unwrap()];
        assert!(may_call(&all, "x", "10.0.0.1".parse().unwrap()));
        assert!(!may_call(&all, "x", "::1".parse().unwrap()), "of its own family only");
    }
}
