"""The same against another implementation of S3: moto's, which shares no line with versitygw.

What one server takes, or leaves out, another need not: ranges, lists, ETags of uploads in parts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest

from support.aws import moto_server
from support.cli.command import Tonnage
from support.stores.s3 import BUCKET, KEYS
from tonnage.run.sort.gensort import generate

pytestmark = pytest.mark.slow

Store = tuple[Any, dict[str, str]]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """A client of others', and what tells a command where the store is."""
    with moto_server.server() as endpoint:
        variables = KEYS | {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": endpoint}
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        )
        client.create_bucket(Bucket=BUCKET)
        yield client, os.environ | variables


def test_rows_are_indexed_and_reduced(tonnage: Tonnage, store: Store) -> None:
    client, variables = store
    rows = np.random.default_rng(1).random((20_000, 4)) * (9, 3, 1, 1)
    for number, part in enumerate(np.split(rows, 4)):
        client.put_object(Bucket=BUCKET, Key=f"points/{number}", Body=part.tobytes())
    url = f"s3://{BUCKET}/points/"
    tonnage.run("index", url, "--dtype", "4f8", "--chunk-size", "64kB", env=variables, check=True)
    done = tonnage.run(
        "run", "reduce", "pca", url, "--components", "2", "--json", env=variables, check=True
    )
    found = json.loads(done.stdout)["result"]
    _, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(
        found["variances"], values[:2] ** 2 / (len(rows) - 1), rtol=1e-9, err_msg=str(found)
    )


def test_a_changed_object_is_indexed_anew(tonnage: Tonnage, store: Store) -> None:
    client, variables = store
    url = f"s3://{BUCKET}/changing/"
    index = ["index", url, "--dtype", "8f8", "--json"]
    for number in range(3):
        client.put_object(Bucket=BUCKET, Key=f"changing/{number}", Body=bytes(64 * 10))
    first = json.loads(tonnage.run(*index, env=variables, check=True).stdout)
    client.put_object(Bucket=BUCKET, Key="changing/1", Body=bytes(64 * 20))
    again = json.loads(tonnage.run(*index, env=variables, check=True).stdout)
    assert (first["known"], again["known"]) == (0, 2), (first, again)


def test_a_sort_goes_from_it_and_to_it(tonnage: Tonnage, store: Store, disk: Path) -> None:
    client, variables = store
    source = disk / "in"
    generate(200_000, [source])
    client.upload_file(str(source), BUCKET, "unsorted/0")
    places = [f"s3://{BUCKET}/unsorted/", "--output", f"s3://{BUCKET}/sorted"]
    scratch = ["--scratch", disk / "scratch", "--memory", "64MiB"]
    tonnage.run("run", "sort", *places, *scratch, env=variables, check=True)
    judged = tonnage.run("valsort", f"s3://{BUCKET}/sorted", env=variables, check=True)
    assert "SUCCESS" in judged.stdout
    left = client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    assert left == []
