#!/usr/bin/env bash
# What test.sh leaves out: the tests that need torch, opacus, transformers or jax, which are gigabytes to download. Builds the
# wheel as test.sh does and runs them in an environment of their own, target/torch.
set -euo pipefail
cd "$(dirname "$0")"

target="${CARGO_TARGET_DIR:-$PWD/target}"
place="$target/torch"
[ -x "$place/venv/bin/python" ] || python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check \
    maturin numpy pandas pyarrow scikit-learn pytest torch opacus transformers jax
rm -rf "$place/wheels"
PATH="$place/venv/bin:$PATH" maturin build --quiet --profile dev -m crates/py/Cargo.toml --out "$place/wheels"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$place"/wheels/leakscope-*.whl
"$place/venv/bin/python" -m pytest crates/py/tests/test_torch.py crates/py/tests/test_torch_any.py \
    crates/py/tests/test_torch_attack.py crates/py/tests/test_opacus.py crates/py/tests/test_jax.py \
    -p no:cacheprovider -c crates/py/pyproject.toml --rootdir crates/py -rs "$@"
