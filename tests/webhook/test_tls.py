"""The webhook over TLS: the certificate has to be of the name, though the connection is made to an address."""

import socket
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drumline.webhook.address import read_target
from drumline.webhook.sending import post
from tests.webhook.receiver import receiving

NAME = "hooks.example.com"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A receiver with a certificate of that name, which this process trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path / "server.pem"
    file.write_bytes(key.private_bytes(pem, *plain) + certificate.public_bytes(pem))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with receiving(tls=context) as receiver:
        yield receiver


def send(server, host):
    return post(read_target(f"https://{host}:{server.port}/x"), "127.0.0.1", b"{}", {}, timeout=10)


def test_a_certificate_of_the_name_is_accepted_at_the_address(server):
    assert send(server, NAME) == 204
    assert server.deliveries[0].headers["Host"] == f"{NAME}:{server.port}"


def test_a_certificate_of_another_name_is_refused(server):
    with pytest.raises(ssl.SSLCertVerificationError):
        send(server, "other.example.com")
    assert server.deliveries == []


def test_a_server_that_does_not_speak_tls_is_an_error_in_time():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(OSError, match="timed out"):
            post(read_target(f"https://{NAME}:{silent.getsockname()[1]}/"), "127.0.0.1", b"{}", {}, timeout=0.2)
