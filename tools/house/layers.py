"""The table of allowed imports, which the tests enforce and ARCHITECTURE.md shows.

A layer is a folder or a file of the package; a module belongs to the most specific layer that
contains it. The order is the loop's; layers without imports come first.
"""

LAYERS: dict[str, set[str]] = {
    "_core": set(),
    "base.byte_sizes": set(),
    "base.clock": set(),
    "base.executor_memory": set(),
    "base.formatting": set(),
    "base.stats": set(),
    "base.records": set(),
    "base.core": {"_core", "base.records"},
    "base.system": {"base.core", "base.records"},
    "base.credibility": {"base.formatting", "base.records"},
    "catalog": {"base.formatting", "base.records"},
    "cluster": {"base.core", "base.formatting", "base.records"},
    "measure": {
        *("base.clock", "base.core", "base.credibility", "base.formatting", "base.records"),
        *("base.stats", "base.system", "cluster"),
    },
    "model": {
        *("base.credibility", "base.executor_memory", "base.formatting", "base.records"),
        "base.stats",
    },
    "plan": {
        *("base.core", "base.executor_memory", "base.formatting", "base.records", "base.stats"),
        *("catalog", "model"),
    },
    "api.aggregates": {"base.core"},
    "run": {
        *("api.aggregates", "base.clock", "base.core", "base.formatting", "base.records"),
        *("cluster", "measure"),
    },
    "simulate": {"base.core", "base.records", "base.stats", "cluster", "model", "plan", "run"},
    "provision": {
        *("base.byte_sizes", "base.core", "base.executor_memory", "base.formatting"),
        *("base.records", "base.system"),
        *("catalog", "plan"),
    },
    "report": {"base.formatting", "base.records"},
    "report.plans": {"base.formatting", "base.records", "catalog", "plan", "report"},
    "report.explorer": {
        *("base.formatting", "base.records", "base.stats", "catalog", "model", "plan", "report"),
    },
    "study": {
        *(
            "base.clock",
            "base.core",
            "base.formatting",
            "base.records",
            "base.system",
            "catalog",
            "cluster",
        ),
        *("measure", "model", "report", "run"),
    },
    "api": {
        *(
            "base.byte_sizes",
            "base.clock",
            "base.core",
            "base.formatting",
            "base.records",
            "cluster",
        ),
        *("measure", "run"),
    },
    "__init__": {"api", "api.aggregates", "base.core", "run"},
}
"""What each layer may import, apart from itself."""
LAYERS["cli"] = {*LAYERS}
LAYERS["__main__"] = {"cli"}

CRATES: dict[str, set[str]] = {
    "pipeline": set(),
    "disk": set(),
    "net": set(),
    "object": set(),
    "records": set(),
    "reductions": set(),
    "tables": set(),
    "formats": set(),
    "stages": {"pipeline", "disk", "net", "object", "records", "tables", "formats"},
    "graphs": {"stages", "pipeline", "disk", "net", "object", "records", "tables", "formats"},
    "py": {"graphs", "pipeline", "disk", "reductions"},
}
"""What each crate may depend on."""

OUTSIDE: dict[str, set[str]] = {
    "ray": {"cluster/ray_adapter.py"},
    "boto3": {
        *("catalog/providers/aws_fetch.py", "catalog/aws_errors.py", "provision/aws/ec2.py"),
    },
}
"""Libraries that only these files import: the edge to Ray and AWS."""


def layer_of(module: str) -> str:
    """Return the most specific layer of a dotted module (without ``tonnage.``)."""
    parts = module.split(".") if module else ["__init__"]
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in LAYERS:
            return name
    raise KeyError(module)


def as_markdown() -> str:
    """Return the tables as in ARCHITECTURE.md."""
    rows = ["| layer | may import |", "|---|---|"]
    for layer, may in LAYERS.items():
        listed = "all" if layer == "cli" else ", ".join(f"`{each}`" for each in sorted(may))
        rows.append(f"| `{layer}` | {listed or 'nothing of Tonnage'} |")
    rows += ["", "| crate | may depend on |", "|---|---|"]
    for crate, may in CRATES.items():
        listed = ", ".join(f"`{each}`" for each in sorted(may))
        rows.append(f"| `{crate}` | {listed or 'no other crate'} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(as_markdown())
