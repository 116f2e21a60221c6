"""Audits in parts: the digits of one machine, with threads, processes, Dask and Spark, whatever becomes of a worker."""

import concurrent.futures
import multiprocessing
import os
import pathlib
import shutil
import signal
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leakscope
import leakscope.distributed
from conftest import timeless
from leakscope import _machines

#: set by test-cluster.sh, which installs the clusters
REAL = os.environ.get("LEAKSCOPE_CLUSTER") == "1"
OPTIONS = dict(target="sick", model="logistic", id="id", group="site", weights="w", missing="drop", l2=1e-3, sigma=0.3, holdout=0.2,
               seed=4, tell_budget=1)


def table(folder, rows=9000, files=3, group=800):
    """Parquet files of one table, with missing values, and row groups of ``group`` rows."""
    rng = np.random.default_rng(5)
    age, dose = rng.normal(50, 12, rows), rng.gamma(2, 2, rows)
    frame = pd.DataFrame({
        "id": np.arange(rows), "age": np.where(rng.random(rows) < 0.01, np.nan, age), "dose": dose,
        "sex": rng.choice(["f", "m"], rows), "site": rng.choice(["a", "b", "c"], rows), "w": rng.uniform(0.5, 1.5, rows),
        "sick": np.where(0.05 * (age - 50) - 0.2 * (dose - 4) + rng.logistic(size=rows) > 0, "yes", "no"),
    })
    paths = []
    for k, part in enumerate(np.array_split(np.arange(rows), files)):
        paths.append(folder / f"part{k}.parquet")
        pq.write_table(pa.Table.from_pandas(frame.iloc[part], preserve_index=False), paths[-1], row_group_size=group)
    return paths


def same(here, there):
    one, other = timeless(here.document), timeless(there.document)
    for document in (one, other):
        document.pop("tables", None)
    assert one == other
    return True


def of_records(folder):
    parts = sorted(pathlib.Path(folder).glob("part-*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)


def test_any_map_gives_the_digits_of_one_machine(tmp_path):
    files = table(tmp_path)
    here = leakscope.audit(files, **OPTIONS)
    seen = []

    def backwards_and_twice(function, parts):
        parts = list(parts)
        seen.append(len(parts))
        answers = [function(part) for part in reversed(parts)]
        assert answers == [function(part) for part in reversed(parts)]
        return reversed(answers)

    there = leakscope.distributed.audit(files, map=backwards_and_twice, records=tmp_path / "records", **OPTIONS)
    assert same(here, there) and set(seen) == {12} and len(seen) > 5
    records = of_records(tmp_path / "records")
    ours = here.records.reset_index()
    assert list(records["id"].astype(int)) == list(ours["id"].astype(int))
    assert np.array_equal(records["eta"], ours["eta"])
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert same(here, leakscope.distributed.audit([str(f) for f in files], map=pool.map, **OPTIONS))


def test_processes_give_the_digits_of_one_machine(tmp_path):
    files = table(tmp_path)
    options = dict(target="dose", drop=["id", "w"], missing="mean", target_eta=0.5, pca=3, tell_budget=0)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        there = leakscope.distributed.audit(files, map=pool.map, **options)
    assert same(leakscope.audit(files, **options), there)


def test_errors_come_back_as_they_are_and_name_the_part(tmp_path):
    files = table(tmp_path)
    with pytest.raises(leakscope.OptionError, match="data.*in memory"):
        leakscope.distributed.audit(pd.read_parquet(files[0]), target="dose")
    with pytest.raises(leakscope.OptionError, match="softmax"):
        leakscope.distributed.audit(files, target="site", model="softmax")
    with pytest.raises(leakscope.DataError, match="age"):
        leakscope.distributed.audit(files, target="dose")

    def broken(function, parts):
        raise RuntimeError("the cluster is gone")

    with pytest.raises(RuntimeError, match="the cluster is gone"):
        leakscope.distributed.audit(files, map=broken, **OPTIONS)

    def mixed_up(function, parts):
        answers = [function(part) for part in parts]
        return [answers[1], answers[0], *answers[2:]]

    with pytest.raises(leakscope.DataError, match=r"part 0 .*part 1"):
        leakscope.distributed.audit(files, map=mixed_up, **OPTIONS)

    def one_short(function, parts):
        return [function(part) for part in parts][1:]

    with pytest.raises(leakscope.DataError, match="11 for 12"):
        leakscope.distributed.audit(files, map=one_short, **OPTIONS)

    calls = []

    def vanishing(function, parts):
        calls.append(1)
        if len(calls) == 3:
            files[1].unlink()
        return [function(part) for part in parts]

    with pytest.raises(leakscope.DataError, match=r"part 4 .*part1\.parquet"):
        leakscope.distributed.audit(files, map=vanishing, **OPTIONS)


def corrupt(path):
    """Overwrites the pages of a row group in the middle of a file; its two ends stay."""
    metadata = pq.ParquetFile(path).metadata
    start = metadata.row_group(2).column(1).data_page_offset
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 64)


def test_a_corrupt_row_group_is_named(tmp_path):
    files = table(tmp_path)
    corrupt(files[1])
    with pytest.raises(leakscope.DataError, match=r"part 6 .*part1\.parquet"):
        leakscope.distributed.audit(files, **OPTIONS)


def test_another_version_is_named(tmp_path):
    files = table(tmp_path)
    version = leakscope.__version__.encode()

    def of_another_version(function, parts):
        work = function.args[0].replace(version, b"9" + version[1:], 1)
        return [_machines.run_part(work, part) for part in parts]

    with pytest.raises(leakscope.DataError, match="part 0"):
        leakscope.distributed.audit(files, map=of_another_version, **OPTIONS)


@pytest.fixture(scope="module")
def cluster():
    if not REAL:
        pytest.skip("test-cluster.sh runs this, with Dask")
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local:
        with distributed.Client(local) as client:
            yield client


def test_dask_gives_the_digits_of_one_machine(cluster, tmp_path):
    import leakscope.dask

    files = table(tmp_path)
    there = leakscope.dask.audit(files, client=cluster, records=tmp_path / "records", **OPTIONS)
    assert same(leakscope.audit(files, **OPTIONS), there)
    assert len(of_records(tmp_path / "records")) == there["n"]
    corrupt(files[1])
    with pytest.raises(leakscope.DataError, match=r"part 6 .*part1\.parquet"):
        leakscope.dask.audit(files, client=cluster, **OPTIONS)
    with pytest.raises(leakscope.OptionError, match="to_parquet"):
        import dask.dataframe

        leakscope.dask.audit(dask.dataframe.from_pandas(pd.DataFrame({"x": [1.0]}), npartitions=1), client=cluster, target="x")


def test_a_worker_of_dask_that_is_killed_is_replaced(cluster, tmp_path):
    import leakscope.dask

    files = table(tmp_path, rows=60_000, files=6, group=1000)
    here = leakscope.audit(files, **OPTIONS)
    killed = []

    def kill():
        time.sleep(0.4)
        for address, info in cluster.scheduler_info()["workers"].items():
            if not killed:
                pid = cluster.run(os.getpid, workers=[address])[address]
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    there = leakscope.dask.audit(files, client=cluster, **OPTIONS)
    killer.join()
    assert killed and same(here, there)


@pytest.fixture(scope="module")
def spark():
    if not REAL:
        pytest.skip("test-cluster.sh runs this, with Spark")
    if shutil.which("java") is None:
        pytest.skip("JAVA IS NOT HERE: Spark was NOT tested")
    sql = pytest.importorskip("pyspark.sql")
    # Executors are processes of their own, as on a cluster.
    builder = sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("leakscope")
    builder = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
    session = builder.config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", "")).getOrCreate()
    yield session
    session.stop()


def test_spark_gives_the_digits_of_one_machine(spark, tmp_path):
    import leakscope.spark

    files = table(tmp_path)
    there = leakscope.spark.audit(files, spark=spark, records=tmp_path / "records", **OPTIONS)
    assert same(leakscope.audit(files, **OPTIONS), there)
    assert len(of_records(tmp_path / "records")) == there["n"]
    # As Spark Connect does it, which has no context.
    work, parts, found = [], [], []

    def noted(name, sent, given):
        work.append(sent)
        parts.append(given)
        found.append(leakscope.spark._by_context(spark, name, sent, given, None))
        return found[-1]

    with _machines.on(_machines.Machines(noted)):
        leakscope.audit([str(f) for f in files], **OPTIONS)
    assert leakscope.spark._by_frames(spark, "profile", work[0], parts[0], None) == found[0]


def test_an_executor_of_spark_that_is_killed_is_replaced(spark, tmp_path):
    import leakscope.spark

    files = table(tmp_path, rows=30_000, files=3, group=1000)
    here = leakscope.audit(files, **OPTIONS)
    before = children("CoarseGrainedExecutorBackend")
    assert before
    killer = threading.Timer(1.5, lambda: os.kill(before[0], signal.SIGKILL))
    killer.start()
    there = leakscope.spark.audit(files, spark=spark, **OPTIONS)
    assert not killer.is_alive(), "the audit was done before the executor was killed"
    assert before[0] not in children("CoarseGrainedExecutorBackend") and same(here, there)


def children(name):
    """Processes below this one with a word in their command."""
    parents, words = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace")
        except (OSError, IndexError):
            continue

    def is_ours(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return [pid for pid, line in words.items() if name in line and is_ours(pid)]
