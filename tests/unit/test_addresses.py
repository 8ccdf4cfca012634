"""Which addresses and URLs a webhook may reach, by text alone."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.targets import parse_target, redirect_target
from shared.errors import FatalError
from shared.rules.addresses import literal_address, refusal

REFUSED = [
    ("0.0.0.0", "unspecified"),
    ("10.1.2.3", "private"),
    ("100.64.0.1", "shared"),
    ("100.100.100.200", "shared"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("168.63.129.16", "cloud"),
    ("169.254.169.254", "link-local"),
    ("172.31.255.255", "private"),
    ("192.0.0.8", "protocol"),
    ("192.168.0.1", "private"),
    ("198.19.0.1", "benchmarking"),
    ("203.0.113.7", "documentation"),
    ("224.0.0.1", "multicast"),
    ("255.255.255.255", "reserved"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::7f00:1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:169.254.169.254", "link-local"),
    ("::ffff:0:7f00:1", "not global"),
    ("64:ff9b::a9fe:a9fe", "link-local"),
    ("64:ff9b::7f00:1", "loopback"),
    ("64:ff9b:1::7f00:1", "not global"),
    ("2002:a9fe:a9fe::", "link-local"),
    ("2002:7f00:1::", "loopback"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
    ("2001:db8::1", "documentation"),
    ("3fff::1", "documentation"),
    ("100::1", "not global"),
    ("5f00::1", "not global"),
    ("fd00::1", "unique local"),
    ("fd00:ec2::254", "unique local"),
    ("fe80::1", "link-local"),
    ("fe81::1", "link-local"),
    ("fe80::1%eth0", "scoped"),
    ("fec0::1", "site-local"),
    ("ff02::1", "multicast"),
    ("localhost", "not an address"),
    ("", "not an address"),
]


@pytest.mark.parametrize(("address", "rule"), REFUSED)
def test_an_address_that_is_not_globally_routable_is_refused_by_name(address: str, rule: str) -> None:
    found = refusal(address)
    assert found is not None
    assert rule in found


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "93.184.216.34",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2606:4700::1111",
        "2a00:1450::1",
    ],
)
def test_a_globally_routable_address_is_allowed(address: str) -> None:
    assert refusal(address) is None


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_changes_no_verdict(address: IPv4Address) -> None:
    number = int(address)
    wrapped = [
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | (number << 80)),
    ]
    plain = refusal(str(address)) is None
    assert [refusal(str(one)) is None for one in wrapped] == [plain] * 3


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0X7F000001", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("::1", "::1"),
        ("::ffff:127.0.0.1", "::ffff:7f00:1"),
    ],
)
def test_every_spelling_of_an_address_is_read(host: str, address: str) -> None:
    found = literal_address(host)
    assert found is not None
    assert found == type(found)(address)


@pytest.mark.parametrize("host", ["example.com", "1.2.3.4.5", "256.1.1.1", "0xg", "1a", "", "dead.beef"])
def test_a_name_is_no_address(host: str) -> None:
    assert literal_address(host) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://user@127.0.0.1@evil.example/",
        "http://[example.com]/",
        "http://[fe80::1%25eth0]/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://\u2460\u2461\u2466.0.0.1/",
        "http://evil.example\\@127.0.0.1/",
        "http:\\\\evil.example/",
        "http://ex%61mple.com/",
        "http://a..b/",
        "http:///path",
        "http://",
        "http:path",
        "//example.com/",
        "",
        "redis:6379",
        "gopher://example.com/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "javascript:alert(1)",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:x/",
        "http://exa mple.com/",
        "http://example.com/\r\nBcc: all",
        "http://example.com/\0",
        "http://" + "a" * 64 + ".example/",
        "http://example.com/" + "a" * 9000,
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(FatalError) as caught:
        parse_target(url)
    assert caught.value.code == "WEBHOOK_BAD_URL"


def test_a_url_is_taken_apart() -> None:
    target = parse_target("HTTPS://us%40er:s3cret@Bücher.Example.:8443/a%20b/ü?token=t0ken#frag")
    assert target.origin == ("https", "xn--bcher-kva.example", 8443)
    assert target.authorization == "Basic dXNAZXI6czNjcmV0"
    assert target.url.raw_path == b"/a%20b/%C3%BC?token=t0ken"
    assert "frag" not in str(target.url)


@pytest.mark.parametrize(
    "url", ["http://u:p4ss@host.example/p?api_key=k3y", "http://[2606:4700::1]:81/p?x=k3y"]
)
def test_a_shown_url_has_neither_credentials_nor_query(url: str) -> None:
    shown = parse_target(url).shown
    assert "p4ss" not in shown
    assert "k3y" not in shown
    assert shown in {"http://host.example/p", "http://[2606:4700::1]:81/p"}


def test_a_trailing_dot_is_no_other_host() -> None:
    assert parse_target("http://localhost./").host == "localhost"
    assert parse_target("http://127.0.0.1./").host == "127.0.0.1"


def test_spaces_in_path_and_query_are_encoded() -> None:
    assert parse_target("http://h.example/a b?n=J D").url.raw_path == b"/a%20b?n=J%20D"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "http://h.example/b"),
        ("b?x=1", "http://h.example/dir/b?x=1"),
        ("//other.example/", "http://other.example/"),
        ("https://u:p@other.example/", "https://other.example/"),
    ],
)
def test_a_redirect_may_be_relative_and_brings_no_credentials(location: str, url: str) -> None:
    target = redirect_target(parse_target("http://me:pw@h.example/dir/a"), location)
    assert str(target.url) == url
    assert target.authorization is None


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://a@b@c/", "http://[x]/", "\0"])
def test_a_redirect_is_judged_like_any_url(location: str) -> None:
    with pytest.raises(FatalError, match="WEBHOOK_BAD_URL"):
        redirect_target(parse_target("http://h.example/"), location)
