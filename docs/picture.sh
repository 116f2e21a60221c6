#!/usr/bin/env bash
# The picture of the README: the top of the demo's page, as a browser shows it. Needs chromium and a built leakscope.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${LEAKSCOPE:-target/debug/leakscope}" demo --out "$folder/demo" >/dev/null 2>&1
chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
    --disable-sync --hide-scrollbars --user-data-dir="$folder/profile" --window-size=1080,860 \
    --screenshot="$folder/page.png" "file://$folder/demo/report.html" >/dev/null 2>&1
cp "$folder/page.png" docs/page.png
