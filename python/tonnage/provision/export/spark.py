"""Export the settings of Apache Spark for a candidate's machines, and clusters that have them.

Executors have five cores at most: with more, garbage collection pauses more tasks at once and
threads share more locks. A node's executors share 80 % of its memory; the rest is the system's, its
daemons' and its page cache's, from which shuffled data is read. Small machines leave it more: as
much as Hortonworks recommends, and the application master's container, which is on one of them.
Spark asks for a tenth of the heap, and 384 MiB at least, besides it
(spark.executor.memoryOverheadFactor).

Documents: spark.apache.org/docs/latest/configuration.html; the request RunJobFlow of Amazon EMR;
Dataproc's cluster config as gcloud dataproc clusters import reads it; SparkApplication of the
Kubernetes operator for Apache Spark (v1beta2); Hortonworks Data Platform 2.6, Determining HDP
Memory Configuration Settings (docs.cloudera.com).
"""

import math
from dataclasses import dataclass
from typing import Any

from tonnage.base import formatting
from tonnage.base.executor_memory import NODE_SHARE, OVERHEAD
from tonnage.catalog import Offer
from tonnage.provision.export.document import (
    ExportedDocument,
    ExportError,
    OtherPlanNeeded,
    TooLittleMemory,
)
from tonnage.provision.rental import Rental, placeholder

CORES = (5, 4, 3)
"""Of an executor, where they divide a machine's vCPUs."""
MOST_CORES = CORES[0]
LEAST_OVERHEAD_MIB = 384
LEAST_HEAP_MIB = 471
"""Spark starts no executor with less (1.5 times the 300 MiB that it reserves, and what the JVM
itself takes of a heap)."""
MIB = 1 << 20
MASTER_MIB = 1024
"""The application master's container."""
SYSTEM_SHARE, SYSTEM_MIB = 0.25, 2048
"""Of a small machine's memory, what the system has: a share, and the most of it. So Hortonworks
reserves 1 GB of 4 GB, and 2 GB of 8 and 16 GB."""
MASTER = {"aws": "m7g.xlarge", "gcp": "n2-standard-4"}
"""Machines for a cluster's master, which a plan does not count."""
BOOT_GIB = 64
LEAST_WORKERS = 2
"""Of Dataproc. They are its primary workers, which are not preemptible."""


@dataclass(frozen=True)
class Executors:
    """The executors of a node."""

    count: int
    cores: int
    heap_mib: int
    overhead_mib: int

    @classmethod
    def of(cls, offer: Offer) -> "Executors":
        """Those of a machine.

        Raises:
            ExportError: Its vCPUs or memory are unknown, or its memory is too small.
        """
        if not offer.vcpus or not offer.memory_bytes:
            raise ExportError(f"the vCPUs or the memory of {offer.type} are unknown")
        vcpus = max(int(offer.vcpus), 1)
        divisors = [each for each in CORES if vcpus % each == 0]
        count = vcpus // divisors[0] if divisors else math.ceil(vcpus / MOST_CORES)
        memory = offer.memory_bytes / MIB
        least_rest = min(memory * SYSTEM_SHARE, SYSTEM_MIB) + MASTER_MIB
        each = min(memory * NODE_SHARE, memory - least_rest) / count
        overhead = max(each * OVERHEAD / (1 + OVERHEAD), LEAST_OVERHEAD_MIB)
        heap = int(each - overhead)
        if heap < LEAST_HEAP_MIB:
            raise TooLittleMemory(
                f"its memory of {formatting.memory(offer.memory_bytes)} leaves {max(heap, 0)} MiB "
                f"for an executor's heap, and Spark needs {LEAST_HEAP_MIB}; choose a candidate "
                "with more memory"
            )
        return cls(count, vcpus // count, heap, int(overhead))


def properties(rental: Rental) -> dict[str, str]:
    """Spark's settings of executors for all of the candidate's machines."""
    each = Executors.of(rental.offer)
    return {
        "spark.executor.instances": str(each.count * rental.candidate.nodes),
        "spark.executor.cores": str(each.cores),
        "spark.executor.memory": f"{each.heap_mib}m",
        "spark.executor.memoryOverhead": f"{each.overhead_mib}m",
        "spark.dynamicAllocation.enabled": "false",
    }


def export_properties(rental: Rental) -> ExportedDocument:
    return ExportedDocument(
        document=properties(rental),
        notes=["as spark-defaults.conf, or with --conf of spark-submit"],
    )


def export_emr(rental: Rental) -> ExportedDocument:
    """Build the request RunJobFlow, for aws emr run-job-flow's --cli-input-json or boto3."""
    _refuse_plan(rental, "Amazon EMR", "aws")
    candidate, market = rental.candidate, "SPOT" if rental.spot else "ON_DEMAND"
    core: dict[str, Any] = {
        "Name": "core",
        "InstanceRole": "CORE",
        "InstanceType": rental.offer.type,
        "InstanceCount": candidate.nodes,
        "Market": market,
    }
    if candidate.volumes:
        volumes = candidate.volumes
        core["EbsConfiguration"] = {
            "EbsBlockDeviceConfigs": [
                {
                    "VolumeSpecification": {
                        "VolumeType": volumes.kind,
                        "SizeInGB": volumes.gib_each,
                    },
                    "VolumesPerInstance": volumes.count,
                }
            ]
        }
    master = {
        "Name": "master",
        "InstanceRole": "MASTER",
        "InstanceType": MASTER["aws"],
        "InstanceCount": 1,
        "Market": "ON_DEMAND",
    }
    release, subnet = placeholder("release"), placeholder("subnet")
    return ExportedDocument(
        document={
            "Name": rental.name,
            "ReleaseLabel": release,
            "Applications": [{"Name": "Spark"}],
            "Instances": {
                "InstanceGroups": [master, core],
                "Ec2SubnetId": subnet,
                "KeepJobFlowAliveWhenNoSteps": False,
            },
            "Configurations": [
                {"Classification": "spark-defaults", "Properties": properties(rental)},
                {"Classification": "yarn-site", "Properties": _yarn(rental)},
            ],
            "JobFlowRole": "EMR_EC2_DefaultRole",
            "ServiceRole": "EMR_DefaultRole",
        },
        replace={
            release: "the release of EMR that you run, like emr-7.9.0",
            subnet: f"a subnet in {rental.region}",
        },
        notes=[
            _without_master(MASTER["aws"]),
            "EMR's fee for each machine is not in the plan",
            "EMR does not offer every machine type, and few that are smaller than xlarge",
        ],
    )


def _yarn(rental: Rental) -> dict[str, str]:
    """What YARN gives away of a node: executors', and an application master's."""
    each = Executors.of(rental.offer)
    memory = each.count * (each.heap_mib + each.overhead_mib) + MASTER_MIB
    return {
        "yarn.nodemanager.resource.memory-mb": str(memory),
        "yarn.scheduler.maximum-allocation-mb": str(memory),
    }


def export_dataproc(rental: Rental) -> ExportedDocument:
    """Build a cluster for gcloud dataproc clusters import."""
    _refuse_plan(rental, "Dataproc", "gcp", least_nodes=LEAST_WORKERS, purchase="on-demand")
    candidate = rental.candidate
    workers: dict[str, Any] = {
        "numInstances": candidate.nodes,
        "machineTypeUri": rental.offer.type,
        "diskConfig": {"bootDiskType": "pd-balanced", "bootDiskSizeGb": BOOT_GIB},
    }
    if rental.local_disks:
        workers["diskConfig"]["numLocalSsds"] = rental.local_disks
    if candidate.volumes:
        volumes = candidate.volumes
        if volumes.count > 1:
            raise ExportError(
                f"Dataproc attaches one volume to a worker, but this candidate has {volumes.count};"
                " choose another candidate"
            )
        workers["diskConfig"] = {
            "bootDiskType": volumes.kind,
            "bootDiskSizeGb": volumes.gib_each + BOOT_GIB,
        }
    version = placeholder("image-version")
    spark = {f"spark:{name}": value for name, value in properties(rental).items()}
    yarn = {f"yarn:{name}": value for name, value in _yarn(rental).items()}
    return ExportedDocument(
        document={
            "config": {
                "masterConfig": {"numInstances": 1, "machineTypeUri": MASTER["gcp"]},
                "workerConfig": workers,
                "softwareConfig": {"imageVersion": version, "properties": spark | yarn},
            }
        },
        replace={version: "the image of Dataproc that you run, like 2.2-debian12"},
        notes=[
            _without_master(MASTER["gcp"]),
            "Dataproc's fee for each vCPU is not in the plan",
        ],
    )


def export_kubernetes(rental: Rental) -> ExportedDocument:
    """Build a SparkApplication of the Kubernetes operator for Apache Spark."""
    each = Executors.of(rental.offer)
    image, application = placeholder("image"), placeholder("application")
    version = placeholder("spark-version")
    return ExportedDocument(
        document={
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "metadata": {"name": rental.name},
            "spec": {
                "type": "Python",
                "mode": "cluster",
                "image": image,
                "mainApplicationFile": application,
                "sparkVersion": version,
                "driver": {"cores": 1, "memory": "4g", "serviceAccount": "spark"},
                "executor": {
                    "instances": each.count * rental.candidate.nodes,
                    "cores": each.cores,
                    "memory": f"{each.heap_mib}m",
                    "memoryOverhead": f"{each.overhead_mib}m",
                    "nodeSelector": {"node.kubernetes.io/instance-type": rental.offer.type},
                },
            },
        },
        replace={
            image: "the image with Spark and your program",
            application: "your program in it, like local:///opt/job.py",
            version: "the image's version of Spark",
        },
        notes=[
            f"it expects {rental.candidate.nodes} x {rental.offer.type}, or a node pool that adds "
            "them",
            "what Kubernetes keeps of a node's memory may be more than the tenth left here",
        ],
    )


def _refuse_plan(
    rental: Rental, what: str, provider: str, least_nodes: int = 1, purchase: str | None = None
) -> None:
    """Name all that a plan needs at once."""
    needs: dict[str, tuple[str, object]] = {}
    if rental.candidate.provider != provider:
        needs["provider"] = f"machines of {provider}", provider
    if rental.candidate.nodes < least_nodes:
        needs["nodes"] = f"{least_nodes} workers at least", least_nodes
    if purchase and purchase != ("spot" if rental.spot else "on-demand"):
        needs["purchase"] = f"{purchase} workers", purchase
    if needs:
        whys, values = zip(*needs.values(), strict=True)
        why = f"{what} needs {formatting.listing(whys)}"
        raise OtherPlanNeeded(why, dict(zip(needs, values, strict=True)))


def _without_master(machine_type: str) -> str:
    return f"the cluster's master, 1 x {machine_type}, is not in the plan"
