"""What profiles say of offers: those of the package by name, others from a directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tonnage.artifacts.artifact import ArtifactError
from tonnage.artifacts.profile import Law, OfferProfile, Profile
from tonnage.model.scaling import Curve, curve

PROFILES = Path(__file__).parent / "profiles"
"""The profiles that come with the package."""


class ProfileError(Exception):
    """A profile that cannot be used; says why in one line."""


@dataclass(frozen=True)
class Laws:
    """What an offer carries, placed close together or not: a law for each resource, by name."""

    laws: Mapping[str, Law]
    curve: Curve | None = None
    """How its network falls with the number of nodes."""


@dataclass(frozen=True)
class Known:
    """What all profiles together say.

    ``offers`` has an offer's provider and type, and for each placement that was measured its laws.
    """

    names: tuple[str, ...]
    offers: Mapping[tuple[str, str], Mapping[bool, Laws]]
    shares: Mapping[str, Law]
    """What share of advertised figures measured offers reached."""


def names() -> list[str]:
    """The names of the profiles that come with the package."""
    return sorted(path.stem for path in PROFILES.glob("*.json"))


def read(name: str) -> list[Profile]:
    """The profile of this name, or those in this directory.

    Raises:
        ProfileError: There is none, or one cannot be read.
    """
    place = Path(name)
    if name in names():
        files = [PROFILES / f"{name}.json"]
    elif place.is_dir():
        files = sorted(place.glob("*.json"))
    else:
        raise ProfileError(
            f"no profiles {name}: there are {', '.join(names())}; or give a directory"
        )
    try:
        found = [Profile.read(file) for file in files]
    except ArtifactError as why:
        raise ProfileError(str(why)) from why
    if not found:
        raise ProfileError(f"no profile in {name}: it holds no .json file")
    return found


def known(profiles: Sequence[Profile]) -> Known:
    """All of them together; of what several tell, the last one's.

    What does not depend on where nodes are placed (all but the network) holds wherever they are.

    Raises:
        ProfileError: A law without a mode, or one with a rate or a spread that cannot be.
    """
    entries: dict[tuple[str, str], list[OfferProfile]] = {}
    shares: dict[str, Law] = {}
    for profile in profiles:
        for entry in profile.offers:
            for law in entry.laws:
                _check(profile.name, entry.type, law)
            entries.setdefault((entry.provider, entry.type), []).append(entry)
        for law in profile.shares:
            _check(profile.name, "shares", law)
        shares |= {law.resource: law for law in profile.shares}
    return Known(
        names=tuple(profile.name for profile in profiles),
        offers={offer: _placed(found) for offer, found in entries.items()},
        shares=shares,
    )


def _placed(entries: Sequence[OfferProfile]) -> dict[bool, Laws]:
    anywhere = {
        law.resource: law for entry in entries for law in entry.laws if law.resource != "network"
    }
    found: dict[bool, Laws] = {}
    for entry in entries:
        networks = {law.resource: law for law in entry.laws if law.resource == "network"}
        before = found.get(entry.placement, Laws({}))
        try:
            fall = curve(entry.scaling) if entry.scaling else before.curve
        except ValueError as why:
            raise ProfileError(f"{entry.type}: {why}") from why
        found[entry.placement] = Laws({**anywhere, **before.laws, **networks}, fall)
    return found


def _check(profile: str, of: str, law: Law) -> None:
    modes = law.modes
    if not modes or not all(
        0 < each.median < float("inf") and 0 <= each.spread < 10 and each.instances >= 1
        for each in modes
    ):
        raise ProfileError(
            f"profile {profile}, {of}, {law.resource}: a law has modes, each with a median above "
            "0, a spread from 0 and an instance at least"
        )
