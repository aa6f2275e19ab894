"""Tables of past runs: what is read, and what is refused."""

from pathlib import Path

import pytest

from tonnage.catalog import CatalogError
from tonnage.plan.past_runs.run_table import by_job, read_runs

HEAD = "job,machine_type,nodes,seconds,outcome,data_label,k,disks"


def table(tmp_path: Path, *rows: str, head: str = HEAD) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_what_varies_within_a_job_is_a_parameter(tmp_path: Path) -> None:
    runs = read_runs(
        table(
            tmp_path,
            "kmeans,m4.large,4,100,ok,big,3,ebs",
            "kmeans,m4.large,4,150,timeout,big,5,ebs",
            "kmeans,i2.xlarge,4,90,,big,3,local",
        )
    )
    assert [run.disks for run in runs] == ["volumes", "volumes", "local"]
    assert [run.parameters for run in runs] == [{"k": 3.0}, {"k": 5.0}, {"k": 3.0}]
    assert {name: len(some) for name, some in by_job(runs).items()} == {
        "kmeans_big_k=3.0": 2,
        "kmeans_big_k=5.0": 1,
    }
    assert [run.outcome for run in runs] == ["ok", "timeout", "ok"]
    assert runs[0].provider == "aws" and runs[0].data_bytes is None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("kmeans,m4.large,0,100,ok,,,", "row 2, nodes: "),
        ("kmeans,m4.large,4,-1,ok,,,", "row 2, seconds: "),
        ("kmeans,m4.large,4,,ok,,,", "row 2, seconds: "),
        ("kmeans,m4.large,2.5,1,ok,,,", "row 2, nodes: "),
        (",m4.large,4,1,ok,,,", "row 2, job: is blank"),
        ("kmeans,m4.large,4,1,killed,,,", "row 2, outcome: "),
        ("kmeans,m4.large,4,1", "row 2 has 4 columns"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: str, why: str) -> None:
    with pytest.raises(CatalogError, match=why):
        read_runs(table(tmp_path, row))


def test_a_table_without_runs_or_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="missing column machine_type"):
        read_runs(table(tmp_path, "a,1,2", head="job,nodes,seconds"))
    with pytest.raises(CatalogError, match="the table has no runs"):
        read_runs(table(tmp_path))
    with pytest.raises(CatalogError, match="repeated column nodes"):
        read_runs(table(tmp_path, head="job,machine_type,nodes,nodes,seconds"))


def test_dates_and_dollars_are_no_parameters_of_a_job(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(
        "job,machine_type,nodes,seconds,usd,date\n"
        "nightly,r5.4xlarge,20,3600,20.0,2026-01-01\n"
        "nightly,r5.4xlarge,20,7200,40.0,2026-01-02\n"
    )
    runs = read_runs(file)
    assert {run.name for run in runs} == {"nightly"}
    assert [run.price_hour for run in runs] == [1.0, 1.0]
