#!/usr/bin/env bash
# What test.sh leaves out: audits on real local clusters of Dask and Spark, and of tables in a store like S3 (the feature
# `object-store`, and a server of the tests' own). Dask and Spark are installed from PyPI into an environment of their own,
# target/cluster. Spark needs Java 17 or later; without it its tests are skipped, loudly. LEAKSCOPE_CLUSTER_VENV names a virtual
# environment that has the packages already: nothing is downloaded then, and nothing installed into it.
set -euo pipefail
cd "$(dirname "$0")"

target="${CARGO_TARGET_DIR:-$PWD/target}"
place="$target/cluster"
if [ -n "${LEAKSCOPE_CLUSTER_VENV:-}" ]; then
    python="$LEAKSCOPE_CLUSTER_VENV/bin/python"
else
    python="$place/venv/bin/python"
    [ -x "$python" ] || python3 -m venv "$place/venv"
    "$python" -m pip install --quiet --disable-pip-version-check \
        numpy pandas pyarrow pytest 'dask[distributed]>=2024.1' 'pyspark[connect]>=3.5'
fi
# the package as a wheel would have it, with stores like S3
cargo build -p leakscope-py --features object-store --quiet
rm -rf "$place/site"
mkdir -p "$place/site"
cp -r crates/py/python/leakscope "$place/site/"
cp "$target/debug/libleakscope_native.so" "$place/site/leakscope/_native.abi3.so"
# workers and executors are processes of their own, and find it by this
export PYTHONPATH="$place/site${PYTHONPATH:+:$PYTHONPATH}"
if ! command -v java >/dev/null 2>&1; then
    printf '\n*** Java is not here: the tests of Spark are SKIPPED ***\n\n' >&2
fi
LEAKSCOPE_CLUSTER=1 PYSPARK_PYTHON="$python" PYSPARK_DRIVER_PYTHON="$python" "$python" -m pytest \
    crates/py/tests/test_cluster.py -p no:cacheprovider -c crates/py/pyproject.toml --rootdir crates/py -rs "$@"
