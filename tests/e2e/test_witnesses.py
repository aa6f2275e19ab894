"""The reference tools work: Hadoop and the browser find the faults that tests rely on them for."""

from pathlib import Path

import pytest

from support.browser.chromium import Browser
from support.hadoop import tools as hadoop

pytestmark = pytest.mark.slow

RECORDS = 20_000


@pytest.mark.hadoop
def test_hadoop_tells_sorted_from_unsorted(disk: Path) -> None:
    hadoop.teragen(RECORDS, disk / "in")
    hadoop.terasort(disk / "in", disk / "out", reducers=2)
    (disk / "out" / "_tonnage.json").write_text("{}")  # A hidden name, so no concern of Hadoop's.

    checksum = hadoop.terachecksum(disk / "in")
    assert hadoop.teravalidate(disk / "out") == hadoop.Validation(True, checksum, [])

    unsorted = hadoop.teravalidate(disk / "in")
    assert not unsorted.ok
    assert unsorted.errors[0].startswith("misorder in part-m-00000 between ")

    swapped = disk / "swapped"
    swapped.mkdir()
    (disk / "out" / "part-r-00000").rename(swapped / "part-r-00001")
    (disk / "out" / "part-r-00001").rename(swapped / "part-r-00000")
    found = hadoop.teravalidate(swapped)
    assert found.checksum == checksum
    assert [error.splitlines()[0] for error in found.errors] == ["bad key partitioning:"]


@pytest.mark.hadoop
def test_hadoop_refuses_half_a_record(disk: Path) -> None:
    (disk / "in").mkdir()
    (disk / "in" / "part-r-00000").write_bytes(bytes(150))
    with pytest.raises(hadoop.HadoopError, match="read past eof"):
        hadoop.teravalidate(disk / "in")


@pytest.mark.hadoop
def test_gensort_writes_what_teragen_writes(disk: Path) -> None:
    hadoop.teragen(RECORDS, disk / "in")
    hadoop.gensort(100, disk / "tail", start=RECORDS - 100)
    assert (disk / "in" / "part-m-00000").read_bytes().endswith((disk / "tail").read_bytes())


@pytest.mark.browser
def test_browser_sees_a_page_and_its_faults(disk: Path, browser: Browser) -> None:
    sound = disk / "sound.html"
    sound.write_text("<title>Sound</title><h1>Here</h1><script>document.title += '!'</script>")
    with browser.open(sound, 1280, 800) as page:
        assert page.problems == []
        assert page.inner.title() == "Sound!"
        assert page.screenshot(disk / "sound.png").stat().st_size > 1000

    faulty = disk / "faulty.html"
    faulty.write_text(
        "<script>console.error('said'); setTimeout(() => { throw Error('thrown') })</script>"
        "<img src='http://example.org/far.png'><img src='near.png'>"
    )
    with browser.open(faulty, 400, 800) as page:
        page.inner.wait_for_timeout(100)
        assert "said" in page.console_errors
        assert any("thrown" in error for error in page.page_errors)
        assert sorted(failed.split(":")[0] for failed in page.failed_requests) == ["file", "http"]
