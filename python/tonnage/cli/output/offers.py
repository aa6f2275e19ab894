"""Offers and catalogs on the terminal: tables, one offer in full, differences."""

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from tonnage import catalog as offered
from tonnage.base import formatting
from tonnage.base.records.base import to_builtins
from tonnage.catalog import (
    Burst,
    Catalog,
    Change,
    Difference,
    Disks,
    FigureChange,
    Offer,
    OfferFilter,
    VolumeKind,
    VolumeLink,
)
from tonnage.catalog.difference import Side
from tonnage.catalog.published.core_speeds import family_of

UNKNOWN = "?"
"""Printed for an unknown figure."""
DOUBTFUL = "!"
"""Printed after a price with a caution."""
KIND = 14
"""Width of the kinds of changes: more expensive, cheaper, changed, new, gone."""
MOST_CHANGES, MOST_FAMILIES = 10, 5
"""How many changes of a kind, and families of new types, are printed if not all are."""
LABEL = 23
"""Width of the labels of an offer's lines."""


def print_catalogs(catalogs: list[Catalog], as_json: bool) -> None:
    rows = [
        {
            "name": each.name,
            "provider": each.provider,
            "region": each.region,
            "date": each.date,
            "offers": len(each.offers),
            "priced": sum(offer.on_demand is not None for offer in each.offers),
            "volume_kinds": [kind.name for kind in each.volume_kinds],
            "object_store": each.object_store.name if each.object_store else None,
        }
        for each in catalogs
    ]
    if as_json:
        print(json.dumps({"catalogs": rows}))
        return
    _print_table(
        ["CATALOG", "PROVIDER", "REGION", "PRICES OF", "OFFERS", "PRICED", "VOLUMES", "OBJECTS"],
        [
            [
                *(str(each[name] or UNKNOWN) for name in ("name", "provider", "region", "date")),
                formatting.count(len(found.offers)),
                formatting.count(sum(offer.on_demand is not None for offer in found.offers)),
                ", ".join(kind.name for kind in found.volume_kinds) or UNKNOWN,
                str(each["object_store"] or UNKNOWN),
            ]
            for each, found in zip(rows, catalogs, strict=True)
        ],
        right=("OFFERS", "PRICED"),
        first_to_go=("OBJECTS", "REGION", "PRICED", "VOLUMES"),
    )


def print_offers(
    catalogs: list[Catalog],
    wanted: OfferFilter,
    by: Callable[[Offer], tuple[bool, float | str]],
    as_json: bool,
) -> None:
    """Prints the offers that pass the filter, sorted, and counts those with unknown figures."""
    chosen: list[tuple[Catalog, Offer]] = []
    undecided: dict[str, int] = {}
    for each in catalogs:
        found = offered.filter_offers(each.offers, wanted)
        chosen += [(each, offer) for offer in found.offers]
        for what, how_many in found.undecided.items():
            undecided[what] = undecided.get(what, 0) + how_many
    chosen.sort(key=lambda pair: by(pair[1]))
    if as_json:
        offers = [{"catalog": each.name} | offer_values(offer) for each, offer in chosen]
        print(json.dumps({"offers": offers, "undecided": undecided}))
        return
    several = len(catalogs) > 1
    header = [
        *("TYPE", "USD/H", "SPOT USD/H", "ARCH", "VCPUS", "MEMORY", "LOCAL DISKS"),
        *("NETWORK", "BURST", "VOLUMES"),
    ]
    rows = [_line(offer) for _, offer in chosen]
    if several:
        header.append("CATALOG")
        rows = [[*row, each.name] for row, (each, _) in zip(rows, chosen, strict=True)]
    if rows:
        _print_table(
            header,
            rows,
            right=("VCPUS", "MEMORY", "NETWORK", "BURST", "VOLUMES"),
            first_to_go=("SPOT USD/H", "VOLUMES", "BURST", "CATALOG", "ARCH", "NETWORK", "MEMORY"),
        )
    total = sum(len(each.offers) for each in catalogs)
    summary = f"{formatting.count(len(chosen))} of {formatting.several(total, 'offer')}."
    if undecided:
        left = (f"{what} ({formatting.count(how_many)})" for what, how_many in undecided.items())
        summary += f" Left out because of unknown figures: {formatting.listing(left)}."
    if any(offer.on_demand and offer.on_demand.caution for _, offer in chosen):
        summary += f" {DOUBTFUL} marks a price with a caution (see tonnage catalog show)."
    print(summary)


def difference_lines(found: Difference, every: bool) -> Iterator[str]:
    """What differs, and a summary; without ``every`` only the largest changes of each kind."""
    before, after = found.before, found.after
    yield f"From {_side(before)}"
    yield f"to   {_side(after)}"
    if before.region != after.region:
        yield "Their regions differ: types are not new or gone, and prices are not of another time."
    elif not found.is_forward:
        yield f"{before.name} is the later one: what is new here is gone there."
    prices = sorted((*found.costlier, *found.cheaper), key=lambda each: -abs(each.by_share))
    longest = max((len(each.type) for each in prices), default=0)
    yield from _first(
        (
            f"{'more expensive' if each.by_share > 0 else 'cheaper':<{KIND}}  "
            f"{each.type:<{longest}}  {formatting.usd(each.before_usd_per_hour)} -> "
            f"{formatting.usd(each.after_usd_per_hour)} per hour ({_change(each.by_share)})"
            for each in prices
        ),
        every,
    )
    yield from _changed_lines(found.changed, every)
    words = ("new", "gone")
    if not found.is_forward:
        words = (f"only in {after.name}", f"only in {before.name}")
    for word, types in zip(words, (found.new, found.gone), strict=True):
        yield from _type_lines(word, types, after.provider, every)
    yield from (f"{words[0]:<{KIND}}  {name}" for name in found.new_volumes)
    yield from (f"{words[1]:<{KIND}}  {name}" for name in found.gone_volumes)
    yield from _changed_lines(found.changed_storage, every)
    others = sum(any(map(_is_known, each.figures)) for each in found.changed)
    half = sum(not all(map(_is_known, each.figures)) for each in found.changed)
    storage = len(found.new_volumes) + len(found.gone_volumes) + len(found.changed_storage)
    yield (
        f"{formatting.count(len(found.new))} {words[0]}, {formatting.count(len(found.gone))} "
        f"{words[1]}, {formatting.count(len(found.costlier))} more expensive, "
        f"{formatting.count(len(found.cheaper))} cheaper, {formatting.count(others)} with other "
        f"changes; {formatting.several(storage, 'change')} of storage. "
        f"{formatting.several(half, 'type')} {'has' if half == 1 else 'have'} a figure that is "
        "known in only one of the catalogs."
    )


def _side(side: Side) -> str:
    date = side.date or "of an unknown date"
    region = side.region or "an unknown region"
    return f"{side.name} ({date}, {region}, {formatting.several(side.offers, 'offer')})"


def _first(lines: Iterable[str], every: bool) -> Iterator[str]:
    some = list(lines)
    most = len(some) if every else MOST_CHANGES
    yield from some[:most]
    if len(some) > most:
        yield f"{'':<{KIND}}  and {formatting.count(len(some) - most)} more (see --all)"


def _changed_lines(changes: Iterable[Change], every: bool) -> Iterator[str]:
    """The figures that changed; those that only one catalog knows only with ``every``."""
    shown = (
        (each.name, [figure for figure in each.figures if every or _is_known(figure)])
        for each in changes
    )
    yield from _first(
        (
            f"{'changed':<{KIND}}  {name}: {', '.join(map(_figure_text, figures))}"
            for name, figures in shown
            if figures
        ),
        every,
    )


def _is_known(figure: FigureChange) -> bool:
    return figure.before is not None and figure.after is not None


def _figure_text(change: FigureChange) -> str:
    before, after = (_value_text(change, value) for value in (change.before, change.after))
    by = "" if change.by_share is None else f" ({_change(change.by_share)})"
    return f"{change.figure} {before} -> {after}{by}"


def _value_text(change: FigureChange, value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or UNKNOWN
    if change.unit == "usd":
        return formatting.usd(value)
    if change.unit == "bytes":
        return formatting.memory(value) if change.figure == "memory" else formatting.size(value)
    if change.unit == "bytes per second":
        return formatting.rate(value)
    return _operations(value) if change.unit == "per second" else f"{value:g}"


def _type_lines(word: str, types: Sequence[str], provider: str, every: bool) -> Iterator[str]:
    """Each type, or the largest families if there are many."""
    if every or len(types) <= MOST_CHANGES:
        yield from (f"{word:<{KIND}}  {name}" for name in types)
        return
    families = Counter(family_of(provider, name) for name in types)
    largest = ", ".join(f"{name} ({count})" for name, count in families.most_common(MOST_FAMILIES))
    yield (
        f"{word:<{KIND}}  {formatting.several(len(types), 'type')} of "
        f"{formatting.count(len(families))} families (see --all), most of {largest}"
    )


def _change(share: float) -> str:
    return f"{'+' if share > 0 else ''}{formatting.percent(share)}"


def _line(offer: Offer) -> list[str]:
    price, spot, network = offer.on_demand, offer.spot, offer.network
    return [
        offer.type,
        formatting.usd(price.usd_per_hour) + (DOUBTFUL if price.caution else "")
        if price
        else UNKNOWN,
        _range_text(formatting.usd(spot.low_usd_per_hour), formatting.usd(spot.high_usd_per_hour))
        if spot
        else UNKNOWN,
        offer.arch or UNKNOWN,
        _or_unknown(offer.vcpus, lambda value: f"{value:g}"),
        _or_unknown(offer.memory_bytes, formatting.memory),
        _disks(offer),
        _or_unknown(network.baseline_bytes_per_second, formatting.gigabits),
        _or_unknown(network.peak_bytes_per_second, formatting.gigabits),
        _or_unknown(offer.volume_link.baseline_bytes_per_second, formatting.rate),
    ]


def offer_lines(where: Catalog, offer: Offer, elsewhere: list[str]) -> Iterator[str]:
    """Everything known about an offer; on a terminal long lines are folded.

    ``elsewhere`` names other catalogs that have the type.
    """
    width = _terminal_width()
    for label, said in _description(where, offer, elsewhere):
        line = f"{label + ':':<{LABEL}}{said}"
        if width is None:
            yield line
        else:
            yield from textwrap.wrap(
                line,
                max(width, 2 * LABEL),
                subsequent_indent=" " * LABEL,
                break_long_words=False,
                break_on_hyphens=False,
            )


def _description(where: Catalog, offer: Offer, elsewhere: list[str]) -> Iterator[tuple[str, str]]:
    network, link, spot, price = offer.network, offer.volume_link, offer.spot, offer.on_demand
    yield "Offer", f"{offer.type}, {offer.provider} {offer.region or 'in an unknown region'}"
    yield "Catalog", f"{where.name}, prices of {where.date or UNKNOWN}"
    if elsewhere:
        yield "Also in", formatting.listing(elsewhere)
    yield (
        "On demand",
        f"{formatting.usd(price.usd_per_hour)} per hour ({_source(price)})" if price else UNKNOWN,
    )
    if spot is None:
        yield "Spot", UNKNOWN
    else:
        low, high = formatting.usd(spot.low_usd_per_hour), formatting.usd(spot.high_usd_per_hour)
        typical = _or_unknown(spot.typical_usd_per_hour, formatting.usd)
        usually = "" if low == high else f", typically {typical}"
        but = f"; {spot.caution}" if spot.caution else ""
        yield "Spot", f"{_range_text(low, high)} per hour{usually} ({_source(spot)}){but}"
        often = spot.interrupted
        yield "Interrupted", f"{often} of spot machines within a month" if often else UNKNOWN
    yield "Architecture", offer.arch or UNKNOWN
    cores = _or_unknown(offer.cores, lambda value: f"{value:g}")
    yield "vCPUs", f"{_or_unknown(offer.vcpus, lambda value: f'{value:g}')}, cores: {cores}"
    yield "Processor", offer.processor or UNKNOWN
    yield "Speed of a core", _core_speed(offer)
    if offer.accelerators:
        yield "Accelerators", f"{offer.accelerators}"
    yield "Memory", _or_unknown(offer.memory_bytes, formatting.memory)
    yield "Local disks", _disks(offer)
    if offer.disks:
        yield "Disk throughput", _disk_throughput(offer)
    yield (
        "Network",
        f"{_or_unknown(network.baseline_bytes_per_second, formatting.gigabits)} sustained, at most "
        f"{_or_unknown(network.peak_bytes_per_second, formatting.gigabits)}; advertised: "
        f"{network.words or UNKNOWN}",
    )
    yield "All volumes", _link(link)
    yield "Attached volumes", _attached(link)
    if link.optional:
        cost = (
            f"{formatting.usd(link.extra.usd_per_hour)} per hour ({_source(link.extra)})"
            if link.extra
            else "price unknown"
        )
        yield "Link to volumes", f"dedicated, optional; {cost}"
    for kind in where.volume_kinds:
        yield f"Volume {kind.name}", _volume(kind)
    if not where.volume_kinds:
        yield "Volumes", f"{UNKNOWN} (none in the catalog)"
    store = where.object_store
    if store is None:
        yield "Object storage", f"{UNKNOWN} (none in the catalog)"
    else:
        costs = {
            "per GB per month": store.usd_per_gb_month,
            "per 1,000 puts": store.usd_per_1000_puts,
            "per 1,000 gets": store.usd_per_1000_gets,
            "per GB sent to the internet": store.usd_per_gb_to_internet,
            "per GB sent within the region": store.usd_per_gb_in_region,
        }
        said = (f"{_or_unknown(usd, formatting.usd)} {what}" for what, usd in costs.items())
        yield store.name, f"{', '.join(said)} ({_source(store)})"
    if where.address:
        per_hour = formatting.usd(where.address.usd_per_hour)
        yield "Public IPv4 address", f"{per_hour} per hour ({_source(where.address)})"
    bill = where.billing
    yield (
        "Billed by",
        f"{bill.granularity_seconds:g} s, at least {bill.least_seconds:g} s; a month has "
        f"{bill.hours_per_month:g} h ({bill.source})",
    )
    yield "Figures from", offer.spec_source
    yield "Unknown", formatting.listing(offered.unknown_figures(offer)) or "nothing"
    for caution in offered.cautions(offer):
        yield "Caution", caution


def _link(link: VolumeLink) -> str:
    lasts, at_most = (
        (link.baseline_bytes_per_second, link.baseline_iops),
        (link.most_bytes_per_second, link.most_iops),
    )
    if (*lasts, *at_most) == (None,) * 4:
        return UNKNOWN

    def volume_rates(rates: tuple[float | None, float | None]) -> str:
        size, operations = rates
        return f"{_or_unknown(size, formatting.rate)} and {_or_unknown(operations, _operations)}"

    if lasts == at_most:
        return f"{volume_rates(lasts)} sustained"
    most = f"{volume_rates(at_most)}{_for_how_long(link.burst)}"
    return f"{volume_rates(lasts)} sustained, at most {most}"


def _volume(kind: VolumeKind) -> str:
    each, faster = kind.operations, kind.throughput
    parts = [f"{_or_unknown(kind.usd_per_gib_month, formatting.usd)} per GiB per month"]
    if each.included is not None:
        parts.append(f"{_operations(each.included)} included")
    if each.per_gib is not None:
        parts.append(f"{each.per_gib:g} operations/s per GiB")
    if faster.included is not None:
        parts.append(f"{formatting.rate(faster.included)} included")
    if faster.per_gib is not None:
        parts.append(f"{formatting.rate(faster.per_gib * 1024)} per TiB")
    if each.usd_each_month is not None:
        parts.append(
            f"{formatting.usd(each.usd_each_month)} per month for each additional operation/s"
        )
    if faster.usd_each_month is not None:
        more = faster.usd_each_month * (1 << 20)
        parts.append(f"{formatting.usd(more)} per month for each additional MiB/s")
    parts += _bursts(kind)
    most_rate = _or_unknown(faster.most, formatting.rate)
    parts.append(f"at most {_or_unknown(each.most, _operations)} and {most_rate}")
    source = f"price {kind.date or 'of an unknown date'}: {kind.price_source}"
    return f"{', '.join(parts)} ({source}; limits: {kind.limit_source})"


def _bursts(kind: VolumeKind) -> Iterator[str]:
    each, faster = kind.operations, kind.throughput
    if each.burst is not None:
        credit = _or_unknown(each.credit, lambda value: f"{value:,.0f}")
        carried = "" if faster.burst is None else f", {formatting.rate(faster.burst)} in total,"
        yield f"bursts to {_operations(each.burst)}{carried} on a credit of {credit} operations"
    if faster.burst_per_gib is not None:
        credit = _or_unknown(faster.credit_per_gib, lambda value: formatting.memory(value * 1024))
        burst = formatting.rate(faster.burst_per_gib * 1024)
        yield f"bursts to {burst} per TiB on a credit of {credit} per TiB"


def offer_values(offer: Offer) -> dict[str, object]:
    values: dict[str, object] = to_builtins(offer)
    return values | {
        "missing": offered.unknown_figures(offer),
        "cautions": offered.cautions(offer),
    }


def _disks(offer: Offer) -> str:
    if offer.disks is None:
        return UNKNOWN
    return " + ".join(map(_group, offer.disks)) or "none"


def _attached(link: VolumeLink) -> str:
    if link.most_volumes is None:
        return UNKNOWN
    kinds = f" of {formatting.listing(link.volume_kinds)}" if link.volume_kinds else ""
    return f"at most {link.most_volumes}{kinds}, with the root volume ({link.volumes_source})"


def _disk_throughput(offer: Offer) -> str:
    read, write = offer.local_read_bytes_per_second, offer.local_write_bytes_per_second
    if read is None or write is None:
        return f"{UNKNOWN}: measure it"
    return (
        f"{formatting.rate(read)} reading, {formatting.rate(write)} writing, each alone "
        f"({offered.disk_rate_source(offer)})"
    )


def _core_speed(offer: Offer) -> str:
    if offer.core_speed is None:
        return UNKNOWN
    count = formatting.count(round(offer.core_speed))
    return f"{count} thousand strings sorted a second ({offer.core_speed_source})"


def _group(disks: Disks) -> str:
    if disks.total_bytes is None:
        return f"{UNKNOWN} {disks.kind}"
    if disks.count is None or disks.bytes_each is None:
        return f"{formatting.size(disks.total_bytes)} {disks.kind}"
    return f"{disks.count} x {formatting.size(disks.bytes_each)} {disks.kind}"


def _source(what: offered.Price | offered.Spot | offered.ObjectStore) -> str:
    return f"{what.date or 'of an unknown date'}, {what.source or 'of an unknown source'}"


def _for_how_long(burst: Burst | None) -> str:
    if burst is None:
        return ""
    lasts, every = (
        formatting.duration(burst.lasts_seconds),
        formatting.duration(burst.every_seconds),
    )
    return f" for {lasts}, at least once every {every} ({burst.source})"


def _operations(value: float) -> str:
    return formatting.per_second(value, "operations")


def _range_text(low: str, high: str) -> str:
    return low if low == high else f"{low} – {high}"


def _or_unknown(value: float | None, text: Callable[[float], str]) -> str:
    return UNKNOWN if value is None else text(value)


def _print_table(
    header: list[str], rows: list[list[str]], right: Container[str], first_to_go: Sequence[str]
) -> None:
    """Prints columns; on a narrow terminal without those that are ``first_to_go``."""
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    widths = {name: max(map(len, (name, *cells))) for name, cells in columns.items()}
    room = _terminal_width()
    hidden = []
    for name in first_to_go:
        if room is None or sum(widths.values()) + 2 * (len(widths) - 1) <= room:
            break
        if widths.pop(name, None) is not None:
            hidden.append(name)
    visible = {name: (name, *columns[name]) for name in widths}
    for line in zip(*visible.values(), strict=True):
        cells = (
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, (name, width) in zip(line, widths.items(), strict=True)
        )
        print("  ".join(cells).rstrip())
    if hidden:
        print(f"Columns hidden (pipe to see all): {formatting.listing(hidden)}")


def _terminal_width() -> int | None:
    """Where lines have to end; ``None`` where nobody looks at them as they are."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
