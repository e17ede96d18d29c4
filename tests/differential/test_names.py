"""Hosts with several names, names of several hosts, and addresses of both kinds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from differential.compare import disagreement
from differential.host import ETC, MAIN, checked

# By line of /etc/hosts: hosts with several names, and names of several hosts.
SEVERAL_NAMES = """\
10.77.0.2 a b
10.77.0.3 c b
10.77.0.2 d
10.77.0.3 E e.lab
fd00:77::2 a f
fd00:77::9 F
10.77.0.9 g
10.77.0.9 h
::1 i
127.0.0.1 i
10.77.0.10 j k
10.77.0.11 J l
"""


@pytest.mark.parametrize("first", "abcdeEfFghijkl")
def test_hosts_with_several_names(first: str) -> None:
    hosts = (ETC / "hosts").read_text()
    (ETC / "hosts").write_text(SEVERAL_NAMES)
    try:
        for second in "abcdeEfFghijkl":
            assert disagreement({MAIN: f"/mnt/share {first}(rw) {second}(ro)\n/mnt/data {second}(rw)\n".encode()}) == ""
    finally:
        (ETC / "hosts").write_text(hosts)


@pytest.fixture
def ipv4_only() -> Iterator[None]:
    """This host has an IPv4 address, and none of IPv6: getaddrinfo(3) may leave IPv6 addresses out then."""
    subprocess.run(["ip", "address", "add", "10.77.0.1/24", "dev", "lo"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    yield
    subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
    subprocess.run(["ip", "address", "flush", "dev", "lo"], check=True)


@pytest.mark.usefixtures("ipv4_only")
def test_names_of_ipv6_on_a_host_without_ipv6() -> None:
    hosts = (ETC / "hosts").read_text()
    (ETC / "hosts").write_text("fd00:77::9 six six.lab\nfd00:77::3 first both\n10.77.0.3 second both\n")
    try:
        assert disagreement({MAIN: b"/mnt/share six(rw) both(ro)\n/mnt/data second(rw) fd00:77::3(ro)\n"}) == ""
    finally:
        (ETC / "hosts").write_text(hosts)


def test_an_entry_that_is_not_read_is_taken_for_no_other() -> None:
    """The host of the first file has the same name in etab as that of the second, and other addresses."""
    hosts = (ETC / "hosts").read_text()
    (ETC / "hosts").write_text(SEVERAL_NAMES)
    try:
        files = {MAIN: b"/mnt/share a(rw,xprtsec=tls)\n", "/etc/exports.d/a.exports": b"/mnt/share b(ro)\n/mnt/data 10.77.0.3(ro)\n"}
        assert disagreement(files) == ""
        assert [one for one in checked()["diagnoses"] if one["code"] == "SF115"] == []
    finally:
        (ETC / "hosts").write_text(hosts)


def test_a_host_whose_first_name_is_read_as_defaults() -> None:
    """mountd loses the line of etab that begins so, and those behind it."""
    hosts = (ETC / "hosts").read_text()
    (ETC / "hosts").write_text("10.77.0.3 -c c\n10.77.0.4 d\n")
    try:
        assert disagreement({MAIN: b"/mnt/share c(rw) d(ro)\n"}) == ""
        assert [one["code"] for one in checked()["diagnoses"] if one["severity"] == "error"] == ["SF141"]
    finally:
        (ETC / "hosts").write_text(hosts)
