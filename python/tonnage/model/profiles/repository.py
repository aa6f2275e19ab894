"""Load profiles and index them by offer: shipped ones by name, others from files and directories.

A directory may hold profiles, measurements, and records of runs and launches, at any depth. From
all but the first a profile is built (`tonnage.model.profiles.build`), without those that a profile
in the directory was built from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tonnage.base import formatting
from tonnage.base.records.base import RecordError
from tonnage.base.records.calibration import Calibration
from tonnage.base.records.cluster_measurement import ClusterMeasurement
from tonnage.base.records.find_measurements import (
    find_measurements,
    has_schema,
    load_launches,
    load_measurements,
    load_runs,
)
from tonnage.base.records.launch import Launch
from tonnage.base.records.measurement import Measurement
from tonnage.base.records.profile import CapacityDistribution, OfferProfile, Profile
from tonnage.model.profiles.network_scaling import ScalingCurve, scaling_curve
from tonnage.model.run_phases import Run, name_of

if TYPE_CHECKING:
    from tonnage.model.profiles.build import AdvertisedRates

PROFILES = Path(__file__).parent / "published"


class ProfileError(Exception):
    """A profile is unusable; the message is one line."""


@dataclass(frozen=True)
class OfferCapacity:
    """The capacity of an offer for one placement: a distribution for each resource, by name."""

    distributions: Mapping[str, CapacityDistribution]
    curve: ScalingCurve | None = None
    calibrations: tuple[Calibration, ...] = ()
    profile_curve: ScalingCurve | None = None
    """That of the largest cluster in the same profile."""
    engine: Mapping[str, CapacityDistribution] = field(default_factory=dict)
    """What a core does of Tonnage's own work, where nothing was measured."""


NO_CAPACITY = OfferCapacity({})


_Entry = tuple[OfferProfile, ScalingCurve | None]
"""An entry of a profile, and the curve of the largest cluster in that profile."""


@dataclass(frozen=True)
class ProfileIndex:
    names: tuple[str, ...]
    offers: Mapping[tuple[str, str], Mapping[bool, OfferCapacity]]
    shares: OfferCapacity
    """Shares of advertised figures that measured offers reached, and a network scaling."""
    notes: tuple[str, ...] = ()  # Measurements that were not used, and why
    starts: Mapping[str, CapacityDistribution] = field(default_factory=dict)
    """How long clusters take to start, by provider; in clusters a second."""
    commands: Mapping[str, list[str]] = field(default_factory=dict)
    """Behind the cited measurements and runs, by name."""
    _anywhere: dict[tuple[str, str], OfferCapacity] = field(default_factory=dict)

    def apart_from_placement(self, provider: str, kind: str) -> OfferCapacity:
        """The capacities of an offer that do not depend on placement: all but the network."""
        if (provider, kind) not in self._anywhere:
            placed = self.offers.get((provider, kind), {})
            laws = {
                name: law for each in placed.values() for name, law in each.distributions.items()
            }
            laws.pop("network", None)
            self._anywhere[provider, kind] = OfferCapacity(laws) if laws else NO_CAPACITY
        return self._anywhere[provider, kind]


def profile_names() -> list[str]:
    return sorted(path.stem for path in PROFILES.glob("*.json"))


def read_profiles(name: str, advertised: Callable[[], AdvertisedRates] = dict) -> list[Profile]:
    """The profile of this name; or those in this file or directory, and one built from the rest.

    ``advertised`` is called only if there are measurements. `ProfileError`: there is no profile,
    one is unreadable, or the measurements yield none.
    """
    place = Path(name)
    if name in profile_names():
        return [Profile.read(PROFILES / f"{name}.json")]
    if not place.exists():
        raise ProfileError(
            f"no profile {name}; specify one of {', '.join(profile_names())}, or a directory"
        )
    try:
        files = [place]
        if place.is_dir():
            files = sorted(each for each in place.rglob("*.json") if each.is_file())
        found = [Profile.read(file) for file in files if has_schema(file, Profile)]
        left = _measurements(place, found)
        runs = _runs(place, found)
        launches = _launches(place, found)
    except RecordError as why:
        raise ProfileError(str(why)) from why
    except OSError as why:
        raise ProfileError(f"{why.filename}: {why.strerror}") from why
    if left or runs or launches:
        # First, since later profiles override it.
        found.insert(0, _build(name, left, runs, launches, advertised()))
    if not found:
        raise ProfileError(
            f"{name} contains no profiles, measurements, runs or launches; use a file of tonnage "
            "profile, or results of tonnage measure"
        )
    if not any(each.offers or each.shares or each.starts for each in found):
        reason = next((out.why for each in found for out in each.left_out), "all are empty")
        raise ProfileError(f"no profile could be built from {name}: {reason}")
    return found


def _measurements(place: Path, profiles: Sequence[Profile]) -> list[Measurement]:
    if place.is_file() and not (
        has_schema(place, Measurement) or has_schema(place, ClusterMeasurement)
    ):
        return []
    try:
        where = find_measurements(place)
    except RecordError:
        return []  # It has none.
    taken = {name for each in profiles for name in each.measurements}
    found = {each.id: each for at in where for each in load_measurements(at)}
    return [each for each in found.values() if each.id not in taken]


def _runs(place: Path, profiles: Sequence[Profile]) -> list[Run]:
    taken = {name for each in profiles for name in each.runs}
    found = {name_of(each): each for each in load_runs(place)}
    return [each for name, each in found.items() if name not in taken]


def _launches(place: Path, profiles: Sequence[Profile]) -> list[Launch]:
    taken = {name for each in profiles for name in each.launches}
    found = {each.name: each for each in load_launches(place)}
    return [each for name, each in found.items() if name not in taken]


def _build(
    name: str,
    measurements: Sequence[Measurement],
    runs: Sequence[Run],
    launches: Sequence[Launch],
    advertised: AdvertisedRates,
) -> Profile:
    from tonnage.model.profiles.build import build_profile

    # The time does not matter, since the profile is not stored.
    made_at = max(each.began_at for each in (*measurements, *runs, *launches))
    return build_profile(
        measurements, advertised, name=name, made_at=made_at, runs=runs, launches=launches
    )


def index_profiles(profiles: Sequence[Profile]) -> ProfileIndex:
    """Index profiles; the last distribution wins. `ProfileError`: one is invalid.

    All resources but the network hold for any placement.
    """
    entries: dict[tuple[str, str], list[_Entry]] = {}
    shares: dict[str, CapacityDistribution] = {}
    for profile in profiles:
        largest = _largest_curve(profile)
        for entry in profile.offers:
            for law in entry.laws:
                _check(profile.name, entry.type, law)
            entries.setdefault((entry.provider, entry.type), []).append((entry, largest))
        for law in profile.shares:
            _check(profile.name, "shares", law)
        for start in profile.starts:
            _check(profile.name, start.provider, start.law)
        shares |= {law.resource: law for law in profile.shares}
    placed: dict[tuple[str, str], dict[bool, OfferCapacity]] = {
        offer: _placed(found) for offer, found in entries.items()
    }
    return ProfileIndex(
        names=tuple(profile.name for profile in profiles),
        offers=placed,
        shares=OfferCapacity(shares, _curve_of_others(profiles)),
        notes=tuple(
            f"{profile.name}: {formatting.several(len(out.measurements), 'measurement')} not used: "
            f"{out.why}"
            for profile in profiles
            for out in profile.left_out
        ),
        starts={each.provider: each.law for profile in profiles for each in profile.starts},
        commands={name: line for each in profiles for name, line in each.commands.items()},
    )


def _curve_of_others(profiles: Sequence[Profile]) -> ScalingCurve | None:
    """The curve of networks without their own: the last stated one, or a later measured one.

    Of several measured ones that of the largest cluster.
    """
    found, is_stated = None, False
    for profile in profiles:
        measured = _largest_curve(profile)
        if profile.share_scaling:
            found, is_stated = scaling_curve(profile.share_scaling), True
        elif measured and (found is None or is_stated or measured.largest > found.largest):
            found, is_stated = measured, False
    return found


def _largest_curve(profile: Profile) -> ScalingCurve | None:
    curves = [_curve(entry) for entry in profile.offers if entry.scaling]
    return max(curves, key=lambda curve: curve.largest, default=None)


def _curve(entry: OfferProfile) -> ScalingCurve:
    assert entry.scaling
    try:
        return scaling_curve(entry.scaling)
    except ValueError as why:
        raise ProfileError(f"{entry.type}: {why}") from why


def _placed(entries: Sequence[_Entry]) -> dict[bool, OfferCapacity]:
    anywhere = {
        law.resource: law for entry, _ in entries for law in entry.laws if law.resource != "network"
    }
    found: dict[bool, OfferCapacity] = {}
    for entry, largest in entries:
        networks = {law.resource: law for law in entry.laws if law.resource == "network"}
        before = found.get(entry.placement, OfferCapacity({}))
        fall = _curve(entry) if entry.scaling else before.curve
        shown = (*before.calibrations, *entry.calibrations)
        found[entry.placement] = OfferCapacity(
            {**anywhere, **before.distributions, **networks},
            fall,
            shown,
            profile_curve=largest or before.profile_curve,
        )
    return found


def _check(profile: str, of: str, law: CapacityDistribution) -> None:
    modes = law.modes
    if not modes or not all(
        0 < each.median < float("inf") and 0 <= each.spread < 10 and each.instances >= 1
        for each in modes
    ):
        raise ProfileError(
            f"profile {profile}, {of}, {law.resource}: expected at least one mode, each with a "
            "median above 0, a spread from 0 to below 10, and at least one instance"
        )
