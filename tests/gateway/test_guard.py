import pytest

from toolwire.errors import BadInput
from toolwire.gateway.guard import Failures, Guard, TrustedProxies
from toolwire.http_server.exchange import Ends
from toolwire.wire.http1 import RequestHead, read_head

ENDS = Ends("127.0.0.1", "127.0.0.1", 8787)
LAN = Ends("10.0.0.9", "10.0.0.5", 8787)


def head(host: str = "localhost:8787", *lines: str, method: str = "POST") -> RequestHead:
    more = "".join(f"{line}\r\n" for line in lines)
    return read_head(f"{method} /v1/messages HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())


def status(guard: Guard, asked: RequestHead, ends: Ends = ENDS) -> int:
    refusal = guard.check(asked, ends)
    return refusal.status if refusal is not None else 200


@pytest.mark.parametrize(
    ("host", "ends", "wanted"),
    [
        *((host, ENDS, 200) for host in ("localhost:8787", "LOCALHOST:8787", "127.0.0.1:8787")),
        *(("[::1]:8787", ENDS, 200), ("10.0.0.5:8787", LAN, 200), ("gw.lan:8787", LAN, 200)),
        *(("gw.lan", LAN, 200), ("api.example.com", LAN, 200), ("a.b.example.com:1", LAN, 200)),
        *(("fixed:99", LAN, 200), ("fixed", LAN, 421), ("fixed:98", LAN, 421)),
        *(("localhost", ENDS, 421), ("localhost:80", ENDS, 421), ("localhost:8788", ENDS, 421)),
        *(("evil.com:8787", ENDS, 421), ("evil.com", ENDS, 421), ("10.0.0.6:8787", LAN, 421)),
        *(("localhost.evil.com:8787", ENDS, 421), ("127.0.0.1.nip.io:8787", ENDS, 421)),
        *(("0.0.0.0:8787", ENDS, 421), ("example.com", LAN, 421), ("xexample.com", LAN, 421)),
        *(("gw.lan.evil.com", LAN, 421), ("127.0.0.2:8787", ENDS, 421), ("[::]:8787", ENDS, 421)),
        *((".example.com", LAN, 421), ("", ENDS, 421), (":8787", ENDS, 421)),
    ],
)
def test_only_our_own_hosts_are_served(host: str, ends: Ends, wanted: int):
    guard = Guard(hosts=("gw.lan", "*.example.com", "fixed:99"))
    assert status(guard, head(host), ends) == wanted


def test_the_usual_port_of_the_scheme_may_be_left_out():
    assert status(Guard(), head("localhost"), Ends("", "127.0.0.1", 80)) == 200
    assert status(Guard(tls=True), head("localhost"), Ends("", "127.0.0.1", 443)) == 200
    assert status(Guard(tls=True), head("localhost"), Ends("", "127.0.0.1", 80)) == 421


JSON = "Content-Type: application/json"
BODY = "Content-Length: 2"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ((JSON, BODY), 200),
        (("Content-Type: application/json; charset=utf-8", BODY), 200),
        (("Content-Type: application/vnd.x+json", BODY), 200),
        ((JSON, BODY, "Origin: http://localhost:8787"), 200),
        ((JSON, BODY, "Origin: http://127.0.0.1:8787", "Sec-Fetch-Site: same-origin"), 200),
        ((JSON, BODY, "Origin: https://app.example.com", "Sec-Fetch-Site: cross-site"), 200),
        ((JSON, BODY, "Sec-Fetch-Site: none"), 200),
        ((JSON, BODY, "Origin: https://evil.com"), 403),
        ((JSON, BODY, "Origin: null"), 403),
        ((JSON, BODY, "Origin: http://localhost:3000"), 403),
        ((JSON, BODY, "Origin: http://localhost"), 403),
        ((JSON, BODY, "Origin: https://localhost:8787.evil.com"), 403),
        ((JSON, BODY, "Origin: http://localhost:8787/"), 403),
        ((JSON, BODY, "Origin: http://u@localhost:8787"), 403),
        ((JSON, BODY, "Origin: app://localhost:8787"), 403),
        ((JSON, BODY, "Origin: https://app.example.com.evil.com"), 403),
        ((JSON, BODY, "Origin: http://app.example.com"), 403),
        ((JSON, BODY, "Origin: https://app.example.com", "Origin: https://evil.com"), 403),
        ((JSON, BODY, "Sec-Fetch-Site: cross-site"), 403),
        ((BODY,), 415),
        (("Content-Type: text/plain", BODY), 415),
        (("Content-Type: text/plain; application/json", BODY), 415),
        (("Content-Type: application/x-www-form-urlencoded", BODY), 415),
        (("Content-Type: multipart/form-data; boundary=x", BODY), 415),
        (("Content-Type: text/x+json", BODY), 415),
        (("Content-Type: text/plain", "Transfer-Encoding: chunked"), 415),
    ],
)
def test_without_keys_a_page_of_another_site_gets_nothing(lines: tuple[str, ...], wanted: int):
    guard = Guard(needs_key=False, origins=frozenset({"https://app.example.com"}))
    assert status(guard, head("localhost:8787", *lines)) == wanted
    # A key is not sent by a browser of itself: with one, the origin does not matter.
    assert status(Guard(), head("localhost:8787", *lines)) == 200


def test_only_configured_pages_may_read_answers():
    guard = Guard(origins=frozenset({"https://app.example.com"}))
    asked = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-api-key")
    ours = head("localhost:8787", "Origin: https://app.example.com", *asked, method="OPTIONS")
    fields = dict(guard.preflight(ours) or ())
    assert fields["access-control-allow-origin"] == "https://app.example.com"
    assert fields["access-control-allow-headers"] == "x-api-key"
    assert "access-control-allow-credentials" not in fields
    for origin in ("https://evil.com", "null", "*"):
        other = head("localhost:8787", f"Origin: {origin}", *asked, method="OPTIONS")
        assert guard.preflight(other) == (("vary", "origin"),)
        assert guard.cors(head("localhost:8787", f"Origin: {origin}")) == ()
    assert guard.preflight(head()) is None


def test_the_client_is_the_last_address_that_is_not_a_proxy():
    proxies = TrustedProxies(["10.0.0.0/8", "::1"])

    def client(address: str, listed: str) -> str:
        return proxies.client(head("a", f"X-Forwarded-For: {listed}"), address)

    assert client("192.168.0.1", "1.2.3.4") == "192.168.0.1"
    assert client("10.0.0.1", "1.2.3.4") == "1.2.3.4"
    assert client("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.9.9.9") == "1.2.3.4"
    assert client("::1", "10.0.0.2, 10.0.0.3") == "::1"
    assert client("10.0.0.1", "unknown") == "10.0.0.1"
    assert client("10.0.0.1", "") == "10.0.0.1"
    assert "10.1.1.1" in proxies
    assert "no address" not in proxies
    with pytest.raises(BadInput, match=r"10\.0\.0\.0/8"):
        TrustedProxies(["proxy.local"])


def test_twenty_refused_keys_in_a_minute_block_an_address():
    failures = Failures()
    for second in range(20):
        assert failures.blocked("a", second) == 0
        failures.add("a", second)
    assert failures.blocked("a", 20) == 40
    assert failures.blocked("b", 20) == 0
    assert failures.blocked("a", 61) == 0
    for number in range(20_000):
        failures.add(str(number), 100)
    assert len(failures._seen) == 10_000


def test_a_host_cannot_guess_from_all_addresses_of_its_network():
    failures = Failures()
    for number in range(20):
        failures.add(f"2001:db8::{number:x}", 0)
    assert failures.blocked("2001:db8::ffff", 0) == 60
    assert failures.blocked("2001:db8:0:1::1", 0) == 0
    for number in range(20):
        failures.add("::ffff:10.0.0.1" if number % 2 else "10.0.0.1", 0)
    assert failures.blocked("10.0.0.1", 0) == 60
