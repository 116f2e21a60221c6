"""Audits in parts: the digits of one machine, with threads, processes, Dask and Spark, whatever becomes of a worker."""

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
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
from hdfs import Hdfs
from leakscope import _machines
from s3 import Store

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


def test_whoever_starts_again_repeats_no_finished_pass(tmp_path):
    files = [str(file) for file in table(tmp_path)]
    options = {name: value for name, value in OPTIONS.items() if name != "seed"}
    calls, dies_at = [], 2

    def mapped(function, parts):
        if len(calls) == dies_at:
            raise KeyboardInterrupt
        calls.append(function.args[0])
        return map(function, parts)

    def asked(**others):
        return leakscope.distributed.audit(files, map=mapped, resume=tmp_path / "passes", **{**options, **others})

    with pytest.raises(KeyboardInterrupt):
        asked()
    dies_at = None
    there = asked()
    assert len(set(calls)) == len(calls) > 3, "a pass was computed twice"
    # rows held out are those of the first try: its seed is in the folder
    assert same(leakscope.audit(files, seed=int((tmp_path / "passes" / "seed").read_text()), **options), there)
    kept = sorted((tmp_path / "passes").glob("*.pass"), key=lambda path: path.stat().st_mtime_ns)
    assert len(kept) == len(calls) and all(path.stat().st_mode & 0o077 == 0 for path in kept)
    # a damaged file is made again, and all else is there
    before = len(calls)
    kept[1].write_bytes(kept[1].read_bytes()[:-1] + b"?")
    assert same(there, asked()) and len(calls) == before + 1
    # another question, or another table under the same name, has passes of its own
    assert asked(sigma=0.7)["n"] == there["n"]
    assert len(calls) > before + 1
    before = len(calls)
    table(tmp_path, rows=8000)
    assert asked()["n"] != there["n"] and len(calls) == before + len(kept)


def test_softmax_and_scores_have_the_digits_of_one_machine(tmp_path):
    files = table(tmp_path, rows=2000)
    options = dict(target="site", model="softmax", id="id", group="sex", weights="w", missing="drop", l2=0.02, holdout=0.2, seed=3,
                   score=files[0], target_eta=0.7, tell_budget=0)
    here = leakscope.audit(files, **options)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        there = leakscope.distributed.audit(files, map=pool.map, records=tmp_path / "r", scores=tmp_path / "s", **options)
    assert same(here, there)
    assert np.array_equal(of_records(tmp_path / "r")["eta"], here.records["eta"])
    assert len(of_records(tmp_path / "s")) == there["score"]["n"]


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson", "gamma", "tweedie", "squared-hinge", "huber", "softmax"])
def test_every_family_has_the_digits_of_one_machine_where_parts_have_other_categories(tmp_path, model):
    files = table(tmp_path, rows=1200, group=200)
    frame = pd.read_parquet(files[2])
    # a level that no part before the last one has, and none of another
    frame["sex"] = np.where(np.arange(len(frame)) % 2 == 0, "x", "m")
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), files[2], row_group_size=200)
    target = {"logistic": "sick", "squared-hinge": "sick", "softmax": "site", "poisson": "visits"}.get(model, "dose")
    if model == "poisson":
        for file in files:
            part = pd.read_parquet(file)
            part["visits"] = np.floor(part["dose"]).astype(int)
            pq.write_table(pa.Table.from_pandas(part, preserve_index=False), file, row_group_size=200)
    options = dict(target=target, model=model, drop=["id"], weights="w", missing="mean", l2=0.02, sigma=0.5, tell_budget=0)
    here = leakscope.audit(files, **options)
    assert same(here, leakscope.distributed.audit(files, map=lambda function, parts: [function(part) for part in parts], **options))
    assert "x" in str(here.document)


def test_balance_release_and_bound_have_the_digits_of_one_machine(tmp_path):
    files = table(tmp_path, rows=2000)
    options = dict(target="dose", id="id", weights="w", missing="drop", l2=0.01)
    here, there = (of(files, iterations=2, holdout=0.2, seed=1, **options) for of in (leakscope.balance, leakscope.distributed.balance))
    assert same(here, there) and here.weights.equals(there.weights)
    options = dict(target="dose", drop=["id", "w"], missing="drop", l2=0.01)
    here, there = (of(files, secret="sex", sigma=0.1, trials=1000, **options) for of in (leakscope.bound, leakscope.distributed.bound))
    assert same(here, there)
    here, there = (of(files, sigma=1.0, tell_budget=0, out=tmp_path / name, **options)
                   for name, of in (("a", leakscope.release), ("b", leakscope.distributed.release)))
    assert here["eta"] == there["eta"]
    assert here["measured"]["eta_max"] == there["measured"]["eta_max"]
    assert here["coefficients"] != there["coefficients"]


def same_but_files(here, there):
    """As :func:`same`, of tables with other names."""
    return alike(here.document, there.document)


def alike(here, there):
    one, other = timeless(here), timeless(there)
    for document in (one, other):
        document.pop("tables", None)
        document.get("data", {}).pop("files", None)
        document.pop("files", None)
    assert one == other
    return True


def partitioned(files, change=None):
    """An engine that has the rows of files, a partition each, and one without rows between them."""
    rows = [pq.read_table(file).replace_schema_metadata(None) for file in files]
    rows.insert(1, rows[0].slice(0, 0))
    calls = []

    def compute(name, work, parts, partitions):
        calls.append(name)
        if change is not None:
            change(calls, rows)
        return [_machines.run_partition(work, part, rows[at]) for part, at in zip(parts, partitions)]

    return _machines.Schema(rows[0].schema), _machines.Machines(compute, {}, [_machines.counted(part) for part in rows])


def test_partitions_of_a_data_frame_have_the_digits_of_files(tmp_path):
    files = table(tmp_path, rows=3000, group=10_000)
    options = {**OPTIONS, "tell_budget": 0}
    frame, machines = partitioned(files)
    assert same_but_files(leakscope.audit(files, **options), _machines.ask(leakscope.audit, frame, machines, options))
    plain = dict(target="dose", id="id", drop=["w"], missing="mean", l2=0.01, iterations=2)
    here, there = leakscope.balance(files, **plain), _machines.ask(leakscope.balance, frame, partitioned(files)[1], plain)
    assert here["iterations"] == there["iterations"]
    # What reads all rows in one place has none to read.
    with pytest.raises(leakscope.LeakscopeError, match="DataFrame.*Parquet"):
        _machines.ask(leakscope.audit, *partitioned(files), {**OPTIONS, "tell_budget": 5})
    with pytest.raises(leakscope.LeakscopeError, match="ledger.*Parquet"):
        _machines.ask(leakscope.release, *partitioned(files), dict(target="dose", missing="drop", sigma=1.0, out=tmp_path / "released"))


def test_a_partition_that_changes_or_differs_is_named(tmp_path):
    files = table(tmp_path, rows=3000, group=10_000)

    def shorter(calls, rows):
        if len(calls) == 2:
            rows[2] = rows[2].slice(0, 10)

    def other(calls, rows):
        if len(calls) == 2:
            rows[3] = rows[3].slice(1, rows[3].num_rows - 1).append_column("more", pa.nulls(rows[3].num_rows - 1, pa.float64()))

    for change, name in ((shorter, "partition 2"), (other, "partition 3")):
        with pytest.raises(leakscope.DataError, match=name):
            _machines.ask(leakscope.audit, *partitioned(files, change), {**OPTIONS, "tell_budget": 0})

    from leakscope import dask as engine

    number, text = pa.schema([("x", pa.int64()), ("y", pa.null())]), pa.schema([("x", pa.string()), ("y", pa.string())])
    real = pa.schema([("x", pa.float64()), ("y", pa.string())])
    assert engine._common([None, number, real]) == real
    with pytest.raises(leakscope.DataError, match="partition 2"):
        engine._common([number, None, text])
    with pytest.raises(leakscope.DataError, match="partition 1.*z"):
        engine._common([number, number.append(pa.field("z", pa.int64()))])
    with pytest.raises(leakscope.DataError, match="no rows"):
        engine._common([None])


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


def test_dask_answers_the_other_questions_and_reads_dataframes(cluster, tmp_path):
    import dask.dataframe
    import leakscope.dask

    files = table(tmp_path, rows=3000, group=10_000)
    options = dict(target="dose", id="id", drop=["w"], missing="mean", l2=0.01)
    assert same(leakscope.balance(files, iterations=2, **options), leakscope.dask.balance(files, client=cluster, iterations=2, **options))
    keywords = {**OPTIONS, "tell_budget": 0}
    here = leakscope.audit(files, **keywords)
    frame = dask.dataframe.from_map(pd.read_parquet, [str(f) for f in files])
    assert frame.npartitions == 3
    there = leakscope.dask.audit(frame, client=cluster, records=tmp_path / "records", **keywords)
    assert same_but_files(here, there) and len(there.records) == there["n"]
    assert np.array_equal(there.records["eta"].compute(), here.records["eta"])


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


DRIVER = """
import json, sys
import distributed
import leakscope.dask
if __name__ == "__main__":
    files, options, resume = json.load(sys.stdin)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as local:
        with distributed.Client(local) as client:
            print(json.dumps(leakscope.dask.audit(files, client=client, resume=resume, **options).document))
"""


def test_a_driver_of_dask_that_is_killed_goes_on_where_it_was(tmp_path):
    if not REAL:
        pytest.skip("test-cluster.sh runs this, with Dask")
    pytest.importorskip("distributed")
    (tmp_path / "driver.py").write_text(DRIVER)
    files, passes = [str(file) for file in table(tmp_path, rows=60_000, files=6, group=1000)], tmp_path / "passes"
    question = json.dumps([files, OPTIONS, str(passes)])
    first = subprocess.Popen([sys.executable, tmp_path / "driver.py"], stdin=subprocess.PIPE, text=True, start_new_session=True)
    first.stdin.write(question)
    first.stdin.close()
    deadline = time.time() + 120
    while len(list(passes.glob("*.pass"))) < 2:
        assert time.time() < deadline and first.poll() is None
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    finished = {path: path.stat().st_mtime_ns for path in passes.glob("*.pass")}
    again = subprocess.run([sys.executable, tmp_path / "driver.py"], input=question, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr[-3000:]
    assert len(list(passes.glob("*.pass"))) > len(finished) >= 2
    assert all(path.stat().st_mtime_ns == at for path, at in finished.items()), "a finished pass was computed again"
    assert alike(leakscope.audit(files, **OPTIONS).document, json.loads(again.stdout.strip().splitlines()[-1]))


@pytest.fixture(scope="module")
def store():
    """A store like S3, which the native module reads where it is built with the feature ``object-store``."""
    if not REAL:
        pytest.skip("test-cluster.sh runs this, with the feature object-store")
    served, before = Store(), dict(os.environ)
    os.environ.update(AWS_ENDPOINT_URL=served.endpoint, AWS_ACCESS_KEY_ID="nobody", AWS_SECRET_ACCESS_KEY="nothing")
    yield served
    served.close()
    os.environ.clear()
    os.environ.update(before)


def stored(store, files, bucket="bucket"):
    """Puts files into a bucket, and gives their names there."""
    for file in files:
        store.objects[f"{bucket}/folder/{file.name}"] = file.read_bytes()
    return [f"s3://{bucket}/folder/{file.name}" for file in files]


def as_csv(files, folder):
    paths = [folder / f"{file.stem}.csv" for file in files]
    for file, path in zip(files, paths):
        pd.read_parquet(file).to_csv(path, index=False)
    return paths


@pytest.mark.parametrize("written", ["parquet", "csv"])
@pytest.mark.parametrize("tagged", [True, False])
def test_a_store_is_read_by_ranges_and_gives_the_digits_of_files(store, tmp_path, written, tagged):
    files = table(tmp_path) if written == "parquet" else as_csv(table(tmp_path, files=2), tmp_path)
    store.tagged = tagged
    names = stored(store, files)
    store.asked.clear()
    here = leakscope.audit(files, **OPTIONS)
    assert same_but_files(here, leakscope.audit(names, **OPTIONS))
    assert store.asked and all(wanted is not None for command, _, wanted in store.asked if command == "GET")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert same_but_files(here, leakscope.distributed.audit(names, map=pool.map, records=tmp_path / "records", **OPTIONS))
    assert len(of_records(tmp_path / "records")) == here["n"]
    by_web = [name.replace("s3://", store.endpoint + "/") for name in names]
    assert same_but_files(here, leakscope.distributed.audit(by_web, **OPTIONS))


@pytest.mark.parametrize("tagged", [True, False])
def test_an_object_that_changes_or_vanishes_between_passes_is_named(store, tmp_path, tagged):
    store.tagged = tagged
    for files, part in ((table(tmp_path), 4), (as_csv(table(tmp_path), tmp_path), 1)):
        for change in (lambda whole: whole[:40_000] + b"7" + whole[40_001:], lambda whole: whole + b"\n", None):
            names, calls = stored(store, files), []
            key = names[1].removeprefix("s3://")

            def changing(function, parts):
                calls.append(1)
                if len(calls) == 3 and change is None:
                    del store.objects[key]
                elif len(calls) == 3:
                    store.objects[key] = change(store.objects[key])
                return [function(part) for part in parts]

            if change is not None and not tagged and files[0].suffix == ".parquet" and len(change(b"x" * 50_000)) == 50_000:
                continue  # without a tag, a page of Parquet that changed shows where it cannot be decoded, as in a file
            with pytest.raises(leakscope.DataError, match=rf"part {part} .*{key}"):
                leakscope.distributed.audit(names, map=changing, **OPTIONS)
    store.tagged = True


def test_names_in_a_store_that_lead_nowhere_are_refused(store, tmp_path):
    names = stored(store, table(tmp_path))
    for name, words in (("s3://bucket/none.parquet", "none.parquet"), ("s3://bucket/", "one object"), ("s3://bucket", "one object"),
                        ("gs://bucket/t.csv", "gs://.*mount"), ("hdfs://node/t.csv", "webhdfs://node:9870.*mount")):
        with pytest.raises(leakscope.DataError, match=words):
            leakscope.audit([names[0], name], **OPTIONS)


@pytest.fixture
def hdfs(store):
    served, user = Hdfs(), os.environ.get("HADOOP_USER_NAME")
    os.environ["HADOOP_USER_NAME"] = "anna b"
    yield served
    served.close()
    os.environ.pop("HADOOP_USER_NAME")
    if user is not None:
        os.environ["HADOOP_USER_NAME"] = user


def in_hdfs(hdfs, files):
    """Puts files into a folder of HDFS whose name has to be quoted, and gives their names there."""
    for file in files:
        hdfs.put(f"/folder of ü/{file.name}", file.read_bytes())
    return [f"webhdfs://{hdfs.name}/folder of ü/{file.name}" for file in files]


@pytest.mark.parametrize("written", ["parquet", "csv"])
def test_hdfs_gives_the_digits_of_files(hdfs, tmp_path, written):
    files = table(tmp_path) if written == "parquet" else as_csv(table(tmp_path, files=2), tmp_path)
    names = in_hdfs(hdfs, files)
    hdfs.busy = 2  # and is asked again
    here = leakscope.audit(files, **OPTIONS)
    assert same_but_files(here, leakscope.audit(names, **OPTIONS))
    opened = [query for _, query in hdfs.asked if query["op"] == "OPEN"]
    assert opened and all(int(query["length"]) > 0 for query in opened) and {query["user.name"] for _, query in hdfs.asked} == {"anna b"}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert same_but_files(here, leakscope.distributed.audit(names, map=pool.map, records=tmp_path / "records", **OPTIONS))


def test_a_file_of_hdfs_that_changes_or_vanishes_between_passes_is_named(hdfs, tmp_path):
    files = table(tmp_path)
    for change in (lambda path: hdfs.put(path, hdfs.files[path]), hdfs.files.pop):
        names, calls = in_hdfs(hdfs, files), []

        def changing(function, parts):
            calls.append(1)
            if len(calls) == 3:
                change("/folder of ü/part1.parquet")
            return [function(part) for part in parts]

        with pytest.raises(leakscope.DataError, match="part 4 .*part1.parquet"):
            leakscope.distributed.audit(names, map=changing, **OPTIONS)


def test_names_in_hdfs_that_lead_nowhere_are_refused(hdfs, tmp_path):
    names = in_hdfs(hdfs, table(tmp_path))
    for name, words in ((f"webhdfs://{hdfs.name}/none.csv", "File does not exist: /none.csv"), (f"webhdfs://{hdfs.name}/folder of ü", "folder"),
                        ("webhdfs://no host:1/t.csv", "names no server"), (f"webhdfs://{hdfs.name}", "one object")):
        with pytest.raises(leakscope.DataError, match=words):
            leakscope.audit([names[0], name], **OPTIONS)
    hdfs.busy = 1000
    with pytest.raises(leakscope.DataError, match=r"part0\.parquet.*503"):
        leakscope.audit(names, **OPTIONS)


def test_dask_reads_a_store(cluster, store, tmp_path):
    import leakscope.dask

    files = table(tmp_path)
    variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    cluster.run(os.environ.update, variables)
    assert same_but_files(leakscope.audit(files, **OPTIONS), leakscope.dask.audit(stored(store, files), client=cluster, **OPTIONS))


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
    work, parts, result = [], [], []

    def noted(name, sent, inputs, partitions):
        work.append(sent)
        parts.append(inputs)
        result.append(leakscope.spark._by_context(spark, sent, inputs, {}))
        return result[-1]

    with _machines.on(_machines.Machines(noted)):
        leakscope.audit([str(f) for f in files], **OPTIONS)
    assert leakscope.spark._by_frames(spark, work[0], parts[0], {}) == result[0]


def test_spark_reads_a_store(spark, store, tmp_path):
    import leakscope.spark

    files = table(tmp_path)
    names = [name.replace("s3://", store.endpoint + "/") for name in stored(store, files)]
    assert same_but_files(leakscope.audit(files, **OPTIONS), leakscope.spark.audit(names, spark=spark, **OPTIONS))


def test_spark_answers_the_other_questions_and_reads_dataframes(spark, tmp_path):
    import leakscope.spark

    files = table(tmp_path, rows=3000)
    options = dict(target="dose", id="id", drop=["w"], missing="mean", l2=0.01)
    assert same(leakscope.balance(files, iterations=2, **options), leakscope.spark.balance(files, spark=spark, iterations=2, **options))
    released = leakscope.spark.release(files, spark=spark, sigma=1.0, tell_budget=0, out=tmp_path / "released",
                                       target="dose", drop=["id", "w"], missing="drop", l2=0.01)
    assert released["composed"]["releases"] == 1
    # A DataFrame whose rows are in no file: a partition for each of some files of one row group, read in their order.
    frame = spark.createDataFrame(pd.concat([pd.read_parquet(f) for f in files])).repartition(3).persist()
    rows = frame.select("*").toPandas()
    sizes = frame.rdd.glom().map(len).collect()
    assert len(rows) == sum(sizes) == 3000 and len(sizes) == 3
    ends = np.cumsum(sizes)
    parts = [tmp_path / f"partition{k}.parquet" for k in range(3)]
    for path, end, size in zip(parts, ends, sizes):
        pq.write_table(pa.Table.from_pandas(rows.iloc[end - size:end], preserve_index=False), path)
    keywords = {**OPTIONS, "tell_budget": 0}
    here = leakscope.audit(parts, **keywords)
    there = leakscope.spark.audit(frame, spark=spark, records=tmp_path / "of_frame", **keywords)
    assert same_but_files(here, there) and there.records.count() == there["n"]


CONNECTED = """
import json, sys
from pyspark.sql import SparkSession
import leakscope.spark
files, options = json.load(sys.stdin)
session = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(session).__module__
try:
    of_files = leakscope.spark.audit(files, spark=session, **options)
    frame = session.read.parquet(files[0]).coalesce(1)
    of_frame = leakscope.spark.audit(frame, spark=session, **{**options, "tell_budget": 0})
    print()
    print(json.dumps([of_files.document, of_frame.document]))
finally:
    session.stop()
"""


def test_spark_connect_gives_the_digits_of_one_machine(tmp_path):
    # A session of Connect and a classic one do not go together in one process.
    if not REAL:
        pytest.skip("test-cluster.sh runs this, with Spark")
    if shutil.which("java") is None:
        pytest.skip("JAVA IS NOT HERE: Spark Connect was NOT tested")
    pytest.importorskip("pyspark.sql")
    pytest.importorskip("grpc")
    files = [str(file) for file in table(tmp_path, rows=3000, group=10_000)]
    asked = subprocess.run([sys.executable, "-c", CONNECTED], input=json.dumps([files, OPTIONS]), capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr[-3000:]
    of_files, of_frame = json.loads(asked.stdout.strip().splitlines()[-1])
    assert alike(leakscope.audit(files, **OPTIONS).document, of_files)
    assert alike(leakscope.audit(files[0], **{**OPTIONS, "tell_budget": 0}).document, of_frame)


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
