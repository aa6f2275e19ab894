"""One-line errors of AWS that say what to do, and settings of clients, for all uses of boto3."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TRIES = 8  # Attempts of each request that may succeed when repeated
CREDENTIALS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
THROTTLED = {
    *("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException")
}
DENIED = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}
EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
UNKNOWN_KEYS = {
    *("AuthFailure", "UnrecognizedClientException", "InvalidClientTokenId"),
    *("SignatureDoesNotMatch",),
    *EXPIRED,
}


def client_config(tries: int) -> Any:
    """The settings of boto3's clients: time limits, and attempts of each request."""
    from botocore.config import Config

    retries = {"mode": "standard", "total_max_attempts": tries}
    return Config(retries=retries, connect_timeout=10, read_timeout=60)


@contextmanager
def aws_errors_as(error: type[Exception]) -> Iterator[None]:
    """Turn boto3's exceptions into an ``error`` of one line that says what to do."""
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as why:
        raise error(_refusal(why)) from why
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as why:
        raise error(f"AWS credentials are missing or incomplete ({why}); {CREDENTIALS}") from why
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as why:
        raise error(f"cannot reach AWS: {why}") from why
    except (exceptions.BotoCoreError, ValueError, KeyError) as why:
        raise error(
            f"AWS returned an unusable answer, or the AWS settings are invalid: {why}"
        ) from why


def error_code(why: BaseException | None) -> str:
    """The error code of AWS; empty if the exception is not an answer of AWS."""
    response = getattr(why, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _refusal(why: Any) -> str:
    error = why.response.get("Error", {})
    code, action = error.get("Code", "unknown"), why.operation_name
    if code in THROTTLED:
        return f"AWS throttled {TRIES} attempts of {action} ({code}); retry in a few minutes"
    if code in UNKNOWN_KEYS:
        return f"AWS rejects these credentials for {action} ({code}); {CREDENTIALS}"
    if code in DENIED:
        service = "pricing" if action == "GetProducts" else "ec2"
        return f"these credentials may not call {action} ({code}): allow {service}:{action}"
    return f"AWS refuses {action} ({code}): {error.get('Message', 'without a message')}"
