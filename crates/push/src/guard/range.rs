//! The ranges of addresses that are denied unless an operator opens a place in them, and the metadata services of clouds, which only their own
//! address opens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses, with its use.
struct Range<A> {
    net: A,
    prefix: u32,
    what: &'static str,
}

/// The special ranges of IPv4 by the registry of IANA (RFC 6890 and later ones), but those of [`METADATA_V4`].
const V4: [Range<Ipv4Addr>; 15] = [
    v4([0, 0, 0, 0], 8, "this network"),
    v4([10, 0, 0, 0], 8, "a private network"),
    v4([100, 64, 0, 0], 10, "a network of a carrier"),
    v4([127, 0, 0, 0], 8, "this machine"),
    v4([172, 16, 0, 0], 12, "a private network"),
    v4([192, 0, 0, 0], 24, "protocol assignments"),
    v4([192, 0, 2, 0], 24, "documentation"),
    v4([192, 88, 99, 0], 24, "relays of 6to4"),
    v4([192, 168, 0, 0], 16, "a private network"),
    v4([198, 18, 0, 0], 15, "benchmarks"),
    v4([198, 51, 100, 0], 24, "documentation"),
    v4([203, 0, 113, 0], 24, "documentation"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([240, 0, 0, 0], 4, "reserved"),
    v4([255, 255, 255, 255], 32, "broadcast"),
];

/// The special ranges of IPv6, but those of [`METADATA_V6`]. Addresses with an IPv4 address in them are judged by that address, before this list.
const V6: [Range<Ipv6Addr>; 9] = [
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "this machine, or an old form of an IPv4 address"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discarded"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "a private network"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "a private network"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
];

/// All public addresses of IPv6 are in this range of 3 bits, by the registry of IANA.
const PUBLIC_V6: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);

const fn v4(net: [u8; 4], prefix: u32, what: &'static str) -> Range<Ipv4Addr> {
    let [a, b, c, d] = net;
    Range { net: Ipv4Addr::new(a, b, c, d), prefix, what }
}

const fn v6(net: [u16; 8], prefix: u32, what: &'static str) -> Range<Ipv6Addr> {
    let [a, b, c, d, e, f, g, h] = net;
    Range { net: Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix, what }
}

/// The metadata services of clouds: they give the keys of a machine to each program that asks from it. Each line is from the pages of its cloud.
const METADATA_V4: [Range<Ipv4Addr>; 5] = [
    // RFC 3927. 169.254.169.254 is that of most clouds, 169.254.170.2 and 169.254.170.23 those of containers at AWS, 169.254.0.23 that of Tencent.
    v4([169, 254, 0, 0], 16, "the local link, with the metadata of clouds"),
    // Alibaba Cloud, "Instance metadata".
    v4([100, 100, 100, 200], 32, "the metadata of Alibaba Cloud"),
    // Azure, "What is IP address 168.63.129.16?": the host of the machine, at a public address.
    v4([168, 63, 129, 16], 32, "the host of a machine of Azure"),
    // Oracle Cloud Infrastructure Classic, "Retrieving instance metadata".
    v4([192, 0, 0, 192], 32, "the metadata of Oracle Cloud Classic"),
    // Volcengine, "Instance metadata".
    v4([100, 96, 0, 96], 32, "the metadata of Volcengine"),
];

/// The same for IPv6.
const METADATA_V6: [Range<Ipv6Addr>; 9] = [
    // RFC 4291.
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "the local link"),
    // AWS: "Instance metadata", and "EKS Pod Identity" for the second one.
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, "the metadata of AWS"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, "the metadata of AWS"),
    // Google Cloud, "About VM metadata".
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, "the metadata of Google Cloud"),
    // Scaleway, "Instance metadata".
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, "the metadata of Scaleway"),
    // Oracle Cloud and Akamai, by the sources of cloud-init.
    v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128, "the metadata of Oracle Cloud"),
    v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1], 128, "the metadata of Akamai"),
    // Alibaba Cloud, "Instance metadata".
    v6([0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200], 128, "the metadata of Alibaba Cloud"),
    // RFC 8215. The IPv4 address may stand at one of several places in it.
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "a local translation to IPv4"),
];

/// Returns the use of the special range that has `address`; `None`: the address is a public one.
pub(crate) fn special(address: IpAddr) -> Option<&'static str> {
    let (range, is_public) = match address {
        IpAddr::V4(address) => (of_v4(&V4, address), true),
        IpAddr::V6(address) => match inner_v4(address) {
            Some(inner) => (of_v4(&V4, inner), true),
            None => (of_v6(&V6, address), is_in(address, PUBLIC_V6, 3)),
        },
    };
    range.or_else(|| metadata(address)).or((!is_public).then_some("no public network"))
}

fn of_v4(ranges: &[Range<Ipv4Addr>], address: Ipv4Addr) -> Option<&'static str> {
    let is_in = |range: &&Range<Ipv4Addr>| in_prefix(address.to_bits(), range.net.to_bits(), range.prefix);
    ranges.iter().find(is_in).map(|range| range.what)
}

fn of_v6(ranges: &[Range<Ipv6Addr>], address: Ipv6Addr) -> Option<&'static str> {
    ranges.iter().find(|range| is_in(address, range.net, range.prefix)).map(|range| range.what)
}

/// Returns the IPv4 address that an IPv6 address stands for: a mapped one (`::ffff:0:0/96`), one of 6to4 (`2002::/16`), or one of the
/// translation `64:ff9b::/96`.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

/// Returns the metadata service of a cloud that `address` reaches, in whatever form; `None`: it reaches none. Only its own address opens it,
/// never a range or a name.
pub(crate) fn metadata(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => of_v4(&METADATA_V4, address),
        IpAddr::V6(address) => of_v6(&METADATA_V6, address)
            .or_else(|| hidden_v4(address).and_then(|inner| of_v4(&METADATA_V4, inner))),
    }
}

/// Returns the IPv4 address that an IPv6 address has in it: one of [`inner_v4`], of the old compatible form (RFC 4291), of the translated form
/// (RFC 2765), or of the client in Teredo (RFC 4380), whose bits are turned round.
fn hidden_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(joined(high, low)),
        [0x2001, 0, .., high, low] => Some(joined(!high, !low)),
        _ => inner_v4(address),
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

/// Whether `address` is in the range of `net` with this prefix.
pub(crate) fn is_in(address: Ipv6Addr, net: Ipv6Addr, prefix: u32) -> bool {
    let shift = 128_u32.saturating_sub(prefix);
    shift == 128 || (address.to_bits() ^ net.to_bits()) >> shift == 0
}

/// Whether `address` is in the range of `net` with this prefix (bits).
pub(crate) fn in_prefix(address: u32, net: u32, prefix: u32) -> bool {
    let shift = 32_u32.saturating_sub(prefix);
    shift == 32 || (address ^ net) >> shift == 0
}

/// Returns the address in its shortest form: a mapped IPv4 address as IPv4.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_address_of_each_range_are_special_and_their_neighbours_are_not() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
        ] {
            let [first, last]: [Ipv4Addr; 2] = [first, last].map(|text| text.parse().expect(text));
            assert!(special(first.into()).is_some() && special(last.into()).is_some(), "{first} to {last}");
            if let Some(before) = first.to_bits().checked_sub(1) {
                assert_eq!(special(Ipv4Addr::from_bits(before).into()), None, "before {first}");
            }
            if let Some(after) = last.to_bits().checked_add(1) {
                assert_eq!(special(Ipv4Addr::from_bits(after).into()), None, "after {last}");
            }
        }
    }

    #[test]
    fn special_addresses_of_ipv6_and_those_with_ipv4_in_them() {
        for text in [
            "::",
            "::1",
            "::7f00:1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "100::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "3fff:fff::1",
            "5f00::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "fd00:ec2::254",
            "::ffff:0:808:808",
            "1fff::1",
            "4000::1",
        ] {
            assert!(special(text.parse().expect(text)).is_some(), "{text}");
        }
        for text in [
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:200::1",
        ] {
            assert_eq!(special(text.parse().expect(text)), None, "{text}");
        }
    }

    #[test]
    fn the_metadata_of_clouds_is_known_in_each_form() {
        for text in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.0.0",
            "169.254.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "100.96.0.96",
            "::ffff:169.254.169.254",
            "::ffff:168.63.129.16",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::6464:64c8",
            "64:ff9b:1:a9fe:a9:fe00::",
            "::ffff:0:a9fe:a9fe",
            "fd00:c1::a9fe:a9fe",
            "fd00:a9fe:a9fe::1",
            "fd00:100::100:200",
            "2002:a83f:8110::1",
            // Teredo: 100.100.100.200 with its bits turned round.
            "2001:0:4136:e378:8000:63bf:9b9b:9b37",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:42::42",
        ] {
            let address = text.parse().expect(text);
            assert!(metadata(address).is_some() && special(address).is_some(), "{text}");
        }
        for text in
            ["169.253.255.255", "169.255.0.0", "168.63.129.17", "100.100.100.201", "fd00:ec2::255", "fec0::1"]
        {
            assert_eq!(metadata(text.parse().expect(text)), None, "{text}");
        }
    }
}
