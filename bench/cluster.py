"""What passes cost with threads, Dask and Spark, and that memory stays flat and time linear as tables grow.

    python bench/cluster.py flat [MILLIONS …]     one machine, 1, 3 and 10 million rows (30 and 100 as arguments): seconds, memory
    python bench/cluster.py engines [MILLIONS …]  CPU seconds per million rows × 50 columns and pass: threads, Dask, Spark file tasks,
                                                  and Spark ML's LinearRegression with the same penalty; 1 and 4 million rows

Needs the package (a wheel of a release build), numpy and pyarrow; `engines` also dask[distributed] and pyspark with Java, and
leaves out what is not there. One million rows are written; larger tables are that file under many names, each read anew, so that
100 million rows need 400 MB of disk. What starts processes is constant, so CPU seconds are the slope between two tables, over
the passes that each of them takes.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

COLUMNS, MILLION, GROUP = 50, 1_000_000, 1 << 18
OPTIONS = dict(target="y", model="linear", l2=1e-3, sigma=1.0, tell_budget=0, scaling="given")


def write(folder: pathlib.Path) -> pathlib.Path:
    """A million rows of normal columns and a target that depends on them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, rng = folder / "million.parquet", np.random.default_rng(1)
    weights = rng.normal(size=COLUMNS - 1)
    names = [f"x{j}" for j in range(COLUMNS - 1)] + ["y"]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names]), compression="snappy") as writer:
        for start in range(0, MILLION, GROUP):
            x = rng.normal(size=(min(GROUP, MILLION - start), COLUMNS - 1))
            y = x @ weights + rng.normal(size=len(x))
            writer.write_table(pa.table([*x.T, y], names=names), row_group_size=GROUP)
    return path


def named(path: pathlib.Path, millions: int) -> list[str]:
    """The file under as many names."""
    names = [path.with_name(f"part-{k:04}.parquet") for k in range(millions)]
    for name in names:
        if not name.exists():
            name.symlink_to(path)
    return [str(name) for name in names]


def tree_seconds() -> float:
    """CPU seconds of this process and all below it, those that ended included."""
    parents, used = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(entry.name)], used[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, more = {os.getpid()}, True
    while more:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours |= more
    return sum(used.get(pid, 0) for pid in ours) / os.sysconf("SC_CLK_TCK")


def part(subject: str, files: list[str]) -> dict[str, float]:
    """One measurement, in a process of its own."""
    import leakscope

    passes: list[str] = []
    if subject == "passes":
        import leakscope.distributed

        def counting(function, parts):
            passes.append("pass")
            return map(function, parts)

        leakscope.distributed.audit(files, map=counting, **OPTIONS)
        return {"passes": len(passes)}
    began, used = time.perf_counter(), tree_seconds()
    if subject == "threads":
        leakscope.audit(files, **OPTIONS, out=None)
    elif subject == "dask":
        from distributed import Client, LocalCluster

        import leakscope.dask

        with LocalCluster(n_workers=os.cpu_count(), threads_per_worker=1, processes=True, dashboard_address=None) as local:
            with Client(local) as client:
                leakscope.dask.audit(files, client=client, **OPTIONS)
                return finished(began, used)
    elif subject in ("spark", "spark-frame", "spark-ml"):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.memory", "2g").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        if subject == "spark":
            import leakscope.spark

            leakscope.spark.audit(files, spark=session, **OPTIONS)
        elif subject == "spark-frame":
            import leakscope.spark

            leakscope.spark.audit(session.read.parquet(*files), spark=session, **OPTIONS)
        else:
            from pyspark.ml.feature import VectorAssembler
            from pyspark.ml.regression import LinearRegression

            frame = session.read.parquet(*files)
            rows = VectorAssembler(inputCols=frame.columns[:-1], outputCol="features").transform(frame).select("features", "y")
            LinearRegression(labelCol="y", regParam=OPTIONS["l2"], elasticNetParam=0.0, solver="normal").fit(rows)
        return finished(began, used)
    return finished(began, used)


def finished(began: float, used: float) -> dict[str, float]:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.perf_counter() - began, "cpu": tree_seconds() - used, "memory": memory}


def measured(subject: str, files: list[str]) -> dict[str, float] | None:
    """A measurement by a process of its own; none where a package is not there."""
    done = subprocess.run([sys.executable, __file__, "part", subject], input=json.dumps(files), capture_output=True, text=True)
    if done.returncode:
        print(f"  {subject}: left out: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def flat(path: pathlib.Path, millions: list[int]) -> None:
    print(f"one machine, {COLUMNS} columns, {os.cpu_count()} cores")
    print(f"{'million rows':>12} {'seconds':>9} {'per million':>12} {'CPU seconds':>12} {'memory':>9}")
    for count in millions:
        result = measured("threads", named(path, count))
        if result:
            each = result["seconds"] / count
            print(f"{count:>12} {result['seconds']:>9.1f} {each:>12.2f} {result['cpu']:>12.1f} {result['memory']:>6.0f} MB")


def engines(path: pathlib.Path, millions: list[int]) -> None:
    small, large = min(millions), max(millions)
    numbers = [int(counted["passes"]) if (counted := measured("passes", named(path, count))) else 1 for count in (small, large)]
    print(f"CPU seconds per million rows × {COLUMNS} columns, from {small} and {large} million; an audit has {numbers[0]} and {numbers[1]} passes")
    print(f"{'':<34} {'start':>7} {'per million and pass':>21}")
    for subject, name in (("threads", "threads"), ("dask", "Dask, tasks that read files"), ("spark", "Spark, tasks that read files"),
                       ("spark-frame", "Spark, a DataFrame"), ("spark-ml", "Spark ML LinearRegression, one fit")):
        few, many = measured(subject, named(path, small)), measured(subject, named(path, large))
        if few and many:
            # what is read: a pass more over the larger table is work, and no start
            less, more = (count * (1 if subject == "spark-ml" else passes) for count, passes in zip((small, large), numbers))
            slope = (many["cpu"] - few["cpu"]) / (more - less)
            print(f"{name:<34} {few['cpu'] - less * slope:>7.1f} {slope:>21.2f}")


def main() -> None:
    subject, *inputs = sys.argv[1:] or ["flat"]
    if subject == "part":
        print(json.dumps(part(inputs[0], json.load(sys.stdin))))
        return
    millions = [int(text) for text in inputs]
    with tempfile.TemporaryDirectory() as folder:
        path = write(pathlib.Path(folder))
        if subject == "flat":
            flat(path, millions or [1, 3, 10])
        elif subject == "engines":
            engines(path, millions if len(millions) > 1 else [1, 4])
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
