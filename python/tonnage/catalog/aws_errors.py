"""What AWS' refusals are in one line, which says what to do; for all that asks it through boto3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TRIES = 8
"""Of each request, where what comes back may be otherwise a moment later."""
CREDENTIALS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
THROTTLED = {
    *("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException"),
}
DENIED = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}
EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
UNKNOWN_KEYS = {
    *("AuthFailure", "UnrecognizedClientException", "InvalidClientTokenId"),
    *("SignatureDoesNotMatch",),
    *EXPIRED,
}


@contextmanager
def aws_errors_as(error: type[Exception]) -> Iterator[None]:
    """Turns what boto3 raises into an ``error`` of one line that says what to do."""
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as why:
        raise error(_refusal(why)) from why
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as why:
        raise error(f"no whole credentials for AWS ({why}): {CREDENTIALS}") from why
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as why:
        raise error(f"AWS cannot be reached: {why}") from why
    except (exceptions.BotoCoreError, ValueError, KeyError) as why:
        raise error(f"AWS' answer or settings cannot be used: {why}") from why


def error_code(why: BaseException | None) -> str:
    """AWS' name for why it refused; empty for what is no refusal of its."""
    response = getattr(why, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _refusal(why: Any) -> str:
    error = why.response.get("Error", {})
    code, asked = error.get("Code", "unknown"), why.operation_name
    if code in THROTTLED:
        return f"AWS throttles {asked} ({code}) after {TRIES} tries: try again in some minutes"
    if code in UNKNOWN_KEYS:
        return f"AWS does not take these credentials for {asked} ({code}): {CREDENTIALS}"
    if code in DENIED:
        service = "pricing" if asked == "GetProducts" else "ec2"
        return f"these credentials may not {asked} ({code}): allow {service}:{asked}"
    return f"AWS refuses {asked} ({code}): {error.get('Message', 'without a word')}"
