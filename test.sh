#!/usr/bin/env bash
# Sets up what the tests need and runs them all: formatting, lints, unit, property, end-to-end and browser tests.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; }

step "formatting"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

step "tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --no-fail-fast
else
    cargo test --workspace --no-fail-fast
fi

step "documentation examples"
cargo test --workspace --doc --quiet
