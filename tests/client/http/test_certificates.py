"""Real TLS on loopback, with an authority made for the test."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.client.scripted import run
from toolwire.client.http.transport import HttpTransport, Outgoing
from toolwire.errors import ConnectionFailed

pytest.importorskip("cryptography", reason="makes the certificates")


def make_certificate(folder: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "own.pem"
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(encoding, form, serialization.NoEncryption())
    path.write_bytes(secret + certificate.public_bytes(encoding))
    return path


def test_an_own_authority_is_trusted_only_when_named(tmp_path: Path) -> None:
    path = make_certificate(tmp_path)

    async def work() -> None:
        async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            await writer.drain()
            writer.close()

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        server = await asyncio.start_server(hello, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        request = Outgoing(method="GET", url=f"https://127.0.0.1:{port}/")
        stranger, friend = HttpTransport(), HttpTransport(ca_file=str(path))
        async with server:
            with pytest.raises(ConnectionFailed, match=r"certificate of 127\.0\.0\.1") as caught:
                async with stranger.open(request):
                    pass
            assert caught.value.lasting
            async with friend.open(request) as incoming:
                assert [chunk async for chunk in incoming.chunks] == [b"ok"]
        await stranger.aclose()
        await friend.aclose()

    run(work)
