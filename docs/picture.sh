#!/usr/bin/env bash
# The pictures of the README and of the officer's chapter: the top of the demo's page, as a browser shows it, and the same with
# numbers on its parts. Needs chromium and a built leakscope.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${LEAKSCOPE:-target/debug/leakscope}" demo --out "$folder/demo" >/dev/null 2>&1

# A number before each part that the officer's chapter explains.
style='h1::before,header .meta::before,main>.meta::before,.verdict .level::before,.verdict .level+p::before,.grounds summary::before,.whatif h2::before,.tiles .tile:first-child strong::before{
display:inline-block;min-width:1.5em;margin-right:.5em;border-radius:1em;background:#1d2430;color:#fff;text-align:center;
font:700 14px/1.5em system-ui,sans-serif;letter-spacing:0;vertical-align:middle}
h1::before{content:"1"}header .meta::before{content:"2"}main>.meta::before{content:"3"}.verdict .level::before{content:"4"}
.verdict .level+p::before{content:"5"}.grounds summary::before{content:"6"}.whatif h2::before{content:"7"}
.tiles .tile:first-child strong::before{content:"8"}'
STYLE="$style" python3 - "$folder/demo/report.html" "$folder/demo/marked.html" <<'PY'
import os, pathlib, sys
page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
pathlib.Path(sys.argv[2]).write_text(page.replace("</style>", os.environ["STYLE"] + "</style>", 1), encoding="utf-8")
PY

shot() { # page height picture
    chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
        --disable-sync --hide-scrollbars --user-data-dir="$folder/profile" --window-size="1080,$2" \
        --screenshot="$folder/$3" "file://$folder/demo/$1" >/dev/null 2>&1
    cp "$folder/$3" "docs/$3"
}
shot report.html 860 page.png
shot marked.html 1240 reading.png
