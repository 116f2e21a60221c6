#!/usr/bin/env bash
# What test.sh leaves out: the tests that need torch, opacus, transformers, lightning or jax, which are gigabytes to download.
# Builds the wheel as test.sh does and runs them in an environment of their own, target/torch. LEAKSCOPE_TORCH_VENV names a
# virtual environment that has these packages already: nothing is downloaded then, and nothing installed into it.
set -euo pipefail
cd "$(dirname "$0")"

target="${CARGO_TARGET_DIR:-$PWD/target}"
place="$target/torch"
if [ -n "${LEAKSCOPE_TORCH_VENV:-}" ]; then
    python="$LEAKSCOPE_TORCH_VENV/bin/python"
    # the package as a wheel would have it, from what `cargo build` of the workspace leaves
    cargo build --workspace --quiet
    rm -rf "$place/site"
    mkdir -p "$place/site"
    cp -r crates/py/python/leakscope "$place/site/"
    cp "$target/debug/libleakscope_native.so" "$place/site/leakscope/_native.abi3.so"
    export PYTHONPATH="$place/site${PYTHONPATH:+:$PYTHONPATH}"
else
    python="$place/venv/bin/python"
    [ -x "$python" ] || python3 -m venv "$place/venv"
    "$place/venv/bin/pip" install --quiet --disable-pip-version-check \
        maturin numpy pandas pyarrow scikit-learn jsonschema pytest torch opacus transformers lightning jax
    rm -rf "$place/wheels"
    PATH="$place/venv/bin:$PATH" maturin build --quiet --profile dev -m crates/py/Cargo.toml --out "$place/wheels"
    "$place/venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$place"/wheels/leakscope-*.whl
fi
"$python" -m pytest crates/py/tests/test_torch.py crates/py/tests/test_torch_any.py \
    crates/py/tests/test_torch_attack.py crates/py/tests/test_opacus.py crates/py/tests/test_lightning.py crates/py/tests/test_jax.py \
    crates/py/tests/test_schemas.py::test_attacks_on_modules_are_as_their_schema \
    -p no:cacheprovider -c crates/py/pyproject.toml --rootdir crates/py -rs "$@"
