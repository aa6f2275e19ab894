"""The messages between the driver and its workers, checked where they arrive.

::

    driver                                   worker
    Begin(number, step, request)      ->     starts the step in a thread
    Poll(known)                       ->     waits for news
                                      <-     Heartbeat(progress, news after `known`, result)
    Notify, ReleaseBarrier, Halt      ->     changes the step under way
    Stop                              ->     ends it; the worker cleans up

A message is MessagePack after one byte with the protocol's version. A step is a `Step`: a name
with the types of its request, its news and its result. Messages can be lost and repeated: `Begin`
with a number that is known does nothing, and `Poll` says how many news the driver has.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Generic, TypeVar

import msgspec

from tonnage.cluster.failure_kinds import Failure

VERSION = 1
"""Changes with any message: driver and workers have to have the same."""

Q = TypeVar("Q")
R = TypeVar("R")


class ProtocolError(Exception):
    """A message that cannot be understood, in a line."""


class Idle(Enum):
    """When a step that makes no progress hangs."""

    TOGETHER = "together"
    """Its nodes wait for each other: when none progresses, the first that stopped hangs."""
    ALONE = "alone"
    """Each node works by itself: after patience it hangs."""
    ALLOWED = "allowed"
    """Never: an object store answers, or its client gives up by itself."""


@dataclass(frozen=True)
class Step(Generic[Q, R]):
    """What a driver can ask of a worker.

    Attributes:
        news: Type of what the worker reports while it is under way.
        notice: Type of what the driver can send it during the step (`Notify`).
        idle: When it hangs.
    """

    name: str
    request: type[Q]
    result: type[R]
    news: Any = NoneType
    notice: Any = NoneType
    idle: Idle = Idle.TOGETHER


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What messages, requests and results are made of."""


BarrierValue = int | str | bool | None
"""What a node says at a barrier."""


class BarrierWait(Message, frozen=True):
    """A worker waits at a barrier: which one, in order, and what it says there."""

    number: int
    value: BarrierValue


class StepResult(Message, Generic[R], frozen=True):
    """How a step ended on a node: with a value, or with a failure and its reason."""

    value: R | None = None
    failure: Failure | None = None
    reason: str = ""
    setting: str | None = None
    """The setting that was refused."""
    error: str | None = None
    """The traceback of an unexpected failure."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """CPU time of the worker's process during the step."""
    peak_memory_bytes: int = 0


class Heartbeat(Message, frozen=True):
    """How far a worker is with the step of this number."""

    number: int
    done_bytes: int
    idle_seconds: float
    """Since it last made progress."""
    news: tuple[Any, ...]
    """What it has reported after what the driver knows."""
    result: StepResult[Any] | None
    late_seconds: float | None = None
    """How much later than agreed it started; None before."""
    barrier: BarrierWait | None = None


class Begin(Message, frozen=True, tag=True):
    """Begin a step, at a moment of the worker's clock if one is given."""

    number: int
    step: str
    request: Any
    starts_at: float | None = None


class Poll(Message, frozen=True, tag=True):
    """Ask for a heartbeat with the news after so many; it may take so long if there are none."""

    known: int
    wait_seconds: float


class Notify(Message, frozen=True, tag=True):
    """Tell something to the step of this number, if it is under way."""

    number: int
    notice: Any


class ReleaseBarrier(Message, frozen=True, tag=True):
    """Let a worker continue at a moment of its clock, with what all nodes said."""

    number: int
    at: float
    values: dict[str, BarrierValue]


class Halt(Message, frozen=True, tag=True):
    """End the step of this number early; others may follow."""

    number: int


class Stop(Message, frozen=True, tag=True):
    """End the step under way; none follows."""


class Close(Message, frozen=True, tag=True):
    """Remove the worker's own files."""


class Ping(Message, frozen=True, tag=True):
    """Answer."""


class ReadClock(Message, frozen=True, tag=True):
    """Read the worker's monotonic clock, in seconds."""


class ReservePort(Message, frozen=True, tag=True):
    """Reserve a free port of this host; the reply is its address."""

    host: str


class FetchObject(Message, frozen=True, tag=True):
    """Return the worker's object of this attempt, as it is."""

    attempt: int


class StoreObject(Message, frozen=True, tag=True):
    """Take another worker's object, which is attached."""

    attempt: int


Request = (
    Begin
    | Poll
    | Notify
    | ReleaseBarrier
    | Halt
    | Stop
    | Close
    | Ping
    | ReadClock
    | ReservePort
    | FetchObject
    | StoreObject
)
"""What a driver sends."""


def encode(message: object) -> bytes:
    return bytes([VERSION]) + msgspec.msgpack.encode(message)


def decode(data: bytes, kind: Any) -> Any:
    """Decode a message; `ProtocolError` if it is of another version or type."""
    if not data or data[0] != VERSION:
        other = f"protocol version {data[0]}" if data else "no protocol version"
        raise ProtocolError(f"a message uses {other}; expected {VERSION}")
    try:
        return _decoder(kind).decode(memoryview(data)[1:])
    except msgspec.MsgspecError as why:
        raise ProtocolError(f"a message is not a valid {_name(kind)}: {why}") from why


def convert(value: object, kind: Any, what: str) -> Any:
    """The body of a message, by its step's type; `ProtocolError` if it has another type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as why:
        raise ProtocolError(f"{what} is not a valid {_name(kind)}: {why}") from why


def decode_heartbeat(data: bytes, step: Step[Any, R], number: int) -> Heartbeat:
    """A worker's heartbeat, with news and value by the types of the step of this number.

    A heartbeat of another step has neither.
    """
    heartbeat: Heartbeat = decode(data, Heartbeat)
    if heartbeat.number != number:
        return msgspec.structs.replace(heartbeat, news=(), result=None)
    news = tuple(convert(each, step.news, f"news of {step.name}") for each in heartbeat.news)
    result = heartbeat.result
    if result is not None and result.failure is None:
        value = convert(result.value, step.result, f"the result of {step.name}")
        result = msgspec.structs.replace(result, value=value)
    return msgspec.structs.replace(heartbeat, news=news, result=result)


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else "request"


def decode_reply(data: bytes, message: Message) -> Any:
    """The worker's reply to a message other than `Poll`; an object comes as it is."""
    if isinstance(message, FetchObject):
        return data
    kinds: dict[type, Any] = {ReadClock: float, ReservePort: str}
    return decode(data, kinds.get(type(message), NoneType))
