"""Asks Ray, or SkyPilot, whether documents are valid: a JSON list of YAML texts in, one of what it
made of them out; a text that it refuses ends it. Run by a Python that has Ray, or SkyPilot.

No network is needed: SkyPilot's catalogs, which it would fetch, are made of the documents' own
types, under HOME.
"""

import json
import sys
from pathlib import Path

import yaml

CATALOG = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,"
CATALOG += "Region,AvailabilityZone,Arch,LocalDiskType,NVMeSupported,LocalDiskSize,LocalDiskCount\n"


def ray(texts):
    import ray
    from ray.autoscaler._private.util import prepare_config, validate_config

    folder = Path(ray.__file__).parent / "autoscaler" / "_private" / "_azure"
    template = json.loads((folder / "azure-vm-template.json").read_text())
    for text in texts:
        made = prepare_config(yaml.safe_load(text))
        validate_config(made)
        for node in made["available_node_types"].values():
            asked = node["node_config"].get("azure_arm_parameters", {})
            assert asked.keys() <= template["parameters"].keys(), asked
        yield {"version": ray.__version__, "made": made}


def skypilot(texts):
    documents = list(map(yaml.safe_load, texts))
    rows = {}
    for document in documents:
        cloud, region = document["resources"]["infra"].split("/")
        row = f"{document['resources']['instance_type']},,,8,64,,1,,{region},{region}-a,,,,,"
        rows.setdefault(cloud, set()).add(row)
    for cloud, lines in rows.items():
        catalog = Path.home() / ".sky" / "catalogs" / "v8" / cloud / "vms.csv"
        catalog.parent.mkdir(parents=True)
        catalog.write_text(CATALOG + "\n".join(sorted(lines)) + "\n")
    import sky

    for document in documents:
        task = sky.Task.from_yaml_config(document)
        (resources,) = task.resources
        resources.validate()
        yield {
            "num_nodes": task.num_nodes,
            "cloud": str(resources.cloud).lower(),
            "region": resources.region,
            "instance_type": resources.instance_type,
            "setup": task.setup,
        }


if __name__ == "__main__":
    judge = {"ray": ray, "skypilot": skypilot}[sys.argv[1]]
    Path(sys.argv[2]).write_text(json.dumps(list(judge(json.loads(sys.stdin.read())))))
