#!/usr/bin/env bash
# Puts the tables and a picture of a real run into README.md:
#
#   docs/update-readme.sh [RUN]      RUN defaults to runs/quickstart/latest
#
# The tables are those of the run's report.md, the picture (docs/quickstart.png) is its report.html as headless Chromium
# shows it. Nothing is typed by hand, so nothing can drift from what was measured.
set -euo pipefail

cd "$(dirname "$0")/.."
run=$(cd "${1:-runs/quickstart/latest}" && pwd -P)
for file in report.md report.html manifest.json; do
  [ -s "$run/$file" ] || { echo "$run has no $file; is it a run directory?" >&2; exit 2; }
done
if grep -Eq '"partial": *true' "$run/manifest.json"; then
  echo "$run is a partial run; the README shows complete ones only" >&2
  exit 2
fi

browser=
for name in chromium chromium-browser google-chrome; do
  browser=$(command -v "$name") && break
done
[ -n "$browser" ] || { echo "no Chromium on this machine; install the package chromium" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
  --user-data-dir="$work/profile" --window-size="${WINDOW:-1200,1400}" --screenshot="$work/shot.png" \
  "file://$run/report.html" 2>"$work/browser.log" || { tail -n 5 "$work/browser.log" >&2; exit 1; }

# Everything from the first section up to the notes: the tables of main figures and the comparisons.
awk '/^## (Notes|How to read this|Where it ran)/ { exit } /^## / { on = 1 } /^<details>/ { fold = 1 }
  on && !fold { sub(/^## /, "### "); print } /^<\/details>/ { fold = 0 }' \
  "$run/report.md" >"$work/tables"
[ -s "$work/tables" ] || { echo "$run/report.md has no tables" >&2; exit 1; }

{
  printf '<!-- quickstart:begin -->\n'
  printf '<!-- Written by docs/update-readme.sh from run %s. -->\n\n' "$(basename "$run")"
  cat "$work/tables"
  printf '\n![The page of the same run: delay over time with the event marked, percentile curves, parts of the recovery.](docs/quickstart.png)\n\n'
  # Where somebody put the run is of no interest to others.
  awk '/^## Where it ran/ { on = 1; next } /^## / { on = 0 } on' "$run/report.md" | sed 's/ --out [^ |]*//' >"$work/where"
  printf '<details><summary>Where it ran</summary>\n'
  cat "$work/where"
  printf '\n</details>\n<!-- quickstart:end -->\n'
} >"$work/block"

awk -v block="$work/block" '
  /<!-- quickstart:begin -->/ { while ((getline line < block) > 0) print line; skip = 1; done = 1 }
  !skip { print }
  /<!-- quickstart:end -->/ { skip = 0 }
  END { exit !done || skip }' README.md >"$work/README.md" ||
  { echo "README.md lacks the marks <!-- quickstart:begin --> and <!-- quickstart:end -->" >&2; exit 1; }
cp "$work/README.md" README.md
cp "$work/shot.png" docs/quickstart.png
echo "README.md and docs/quickstart.png show $run"
