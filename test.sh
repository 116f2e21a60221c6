#!/usr/bin/env bash
# Sets up what the tests need and runs them all: formatting, lints, unit, property, end-to-end and browser tests, and
# the Python package from a wheel in a fresh virtual environment.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; }

step "formatting"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

target="${CARGO_TARGET_DIR:-$PWD/target}"
step "axe-core, which looks over the pages"
# The test of it says so where it is missing, and fails in CI.
if command -v npm >/dev/null; then
    npm install --prefix "$target/axe" --no-save --ignore-scripts --no-audit --no-fund --silent axe-core@4.14.0
fi

step "tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --no-fail-fast
else
    cargo test --workspace --no-fail-fast
fi

step "documentation examples"
cargo test --workspace --doc --quiet

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

step "the Python package"
# The wheel is built in the dev profile, so that it shares what the tests above have built.
python="$target/python"
rm -rf "$python"
python3 -m venv "$python/venv"
"$python/venv/bin/pip" install --quiet --disable-pip-version-check \
    jsonschema markdown matplotlib maturin numpy pandas polars pyarrow scikit-learn statsmodels pytest tqdm
PATH="$python/venv/bin:$PATH" maturin build --quiet --profile dev -m crates/py/Cargo.toml --out "$python/wheels"
"$python/venv/bin/pip" install --quiet --disable-pip-version-check "$python"/wheels/leakscope-*.whl
LEAKSCOPE_BIN="$target/debug/leakscope" "$python/venv/bin/python" -m pytest crates/py/tests \
    -p no:cacheprovider -c crates/py/pyproject.toml --rootdir crates/py -rs

step "the book"
# Every command in it prints what it says, every Python block runs, every link leads somewhere.
LEAKSCOPE="$target/debug/leakscope" "$python/venv/bin/python" docs/build.py check
"$python/venv/bin/python" docs/build.py html "$target/book"
