"""An S3 server on this host, spoken to over HTTP as any other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import boto3
from moto.server import ThreadedMotoServer


class Bucket:
    """One bucket, and the view of it that a client other than ours has."""

    def __init__(self, endpoint: str) -> None:
        # All of moto's servers in a process have the same buckets.
        self.name = f"bucket-{uuid4()}"
        self.url = f"s3://{self.name}/run"
        self.endpoint = endpoint
        self.environment = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        self._client: Any = boto3.client(
            "s3", endpoint_url=endpoint, region_name="eu-central-1", aws_access_key_id="id",
            aws_secret_access_key="secret",
        )  # fmt: skip
        self._client.create_bucket(Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})

    def names(self) -> list[str]:
        """The keys of all its objects."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def read(self, key: str) -> bytes:
        data: bytes = self._client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return data

    def uploads(self) -> list[Any]:
        """Those in parts that have neither ended nor been given up."""
        found: list[Any] = self._client.list_multipart_uploads(Bucket=self.name).get("Uploads", [])
        return found

    def abort_uploads(self) -> None:
        for upload in self.uploads():
            self._client.abort_multipart_upload(Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"])

    def clear(self) -> None:
        for key in self.names():
            self._client.delete_object(Bucket=self.name, Key=key)


@contextmanager
def serving_bucket() -> Iterator[Bucket]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield Bucket(f"http://{host}:{port}")
    finally:
        server.stop()
