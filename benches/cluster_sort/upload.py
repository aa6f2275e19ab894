"""Upload files to a bucket, under `in/`: ENDPOINT BUCKET FILE...; keys from the environment."""

from __future__ import annotations

import sys

import boto3

endpoint, bucket, *files = sys.argv[1:]
client = boto3.client("s3", endpoint_url=endpoint)
for number, file in enumerate(files):
    client.upload_file(file, bucket, f"in/{number}")
