"""Which addresses a webhook may reach. Pure: asked when one is saved, and before every connection.

The tables hold what is special in RFC 6890 and its successors. The standard library alone will not do: its
idea of "global" changes between releases, and private addresses inside NAT64 or 6to4 are public to it.
"""

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

IPAddress = IPv4Address | IPv6Address

SPECIAL_V4: Final = tuple(
    (IPv4Network(network), rule)
    for network, rule in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by carriers"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud platform"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignment"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)

SPECIAL_V6: Final = tuple(
    (IPv6Network(network), rule)
    for network, rule in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("fc00::/7", "unique local"),
        ("ff00::/8", "multicast"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "protocol assignment"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
    )
)

GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
NAT64: Final = IPv6Network("64:ff9b::/96")
COMPATIBLE: Final = IPv6Network("::/96")

_NUMBER: Final = r"(?:0x[0-9a-f]*|[0-9]+)"
_NUMERIC_HOST: Final = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,3}}", re.IGNORECASE)


def literal_address(host: str) -> IPAddress | None:
    """Read a host that is an address in any spelling that a resolver takes (`127.1`, `0x7f.1`, `2130706433`).

    None for a name, which has to be looked up.
    """
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not _NUMERIC_HOST.fullmatch(host):
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def refusal(address: str) -> str | None:
    """Name the rule that forbids an address as a resolver gives it; None when it is globally routable."""
    if "%" in address:
        return "scoped"
    try:
        return _verdict(ip_address(address))
    except ValueError:
        return "not an address"


def _verdict(address: IPAddress) -> str | None:
    if isinstance(address, IPv4Address):
        return _verdict_v4(address)
    wrapped = _wrapped(address)
    if wrapped is not None:
        rule = _verdict_v4(wrapped)
        return None if rule is None else f"{rule}, as {wrapped}"
    for network, rule in SPECIAL_V6:
        if address in network:
            return rule
    return None if address in GLOBAL_UNICAST and address.is_global else "not global"


def _verdict_v4(address: IPv4Address) -> str | None:
    for network, rule in SPECIAL_V4:
        if address in network:
            return rule
    return None if address.is_global else "not global"


def _wrapped(address: IPv6Address) -> IPv4Address | None:
    """Find the IPv4 address that packets to `address` end at: mapped, compatible, NAT64 or 6to4."""
    if address in NAT64 or (address in COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
