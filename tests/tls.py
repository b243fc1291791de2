"""TLS before a server that has none: a proxy that ends it, and the certificates for it."""

import asyncio
import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CHUNK_BYTES = 65536
DAY = datetime.timedelta(days=1)


class Certificate(NamedTuple):
    """Files in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates for this host and for its clients; nobody trusts it who is not told to."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._builder(self._name, self._key).add_extension(basic, critical=True)
        self.file = self._write("authority", certificate, self._key).certificate

    def certificate(self, name: str, address: str) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        return self._write(name, self._builder(subject, key).add_extension(names, critical=False), key)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(issuer_name=self._name, subject_name=subject, public_key=key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - DAY).not_valid_after(now + DAY)
        subject_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(subject_id, critical=False).add_extension(issuer_id, critical=False)

    def _write(self, name: str, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> Certificate:
        files = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        signed = builder.sign(self._key, hashes.SHA256())
        files.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        kind = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        files.key.write_bytes(key.private_bytes(*kind))
        return files


@contextmanager
def serving_tls(url: str, own: Certificate, clients: Path | None = None) -> Iterator[str]:
    """host:port of a proxy to the server at `url`. With `clients`, it asks each for a certificate of that authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients)
    context.load_cert_chain(*own)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    target = urlsplit(url)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # cut by either side
            while data := await reader.read(CHUNK_BYTES):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # a refused handshake is what a test is after
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        listening = asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
        server = asyncio.run_coroutine_threadsafe(listening, loop).result()
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
