#!/usr/bin/env bash
# Writes into a family's lock the SHA-256 of the file that pip takes for each of its
# packages. Run it after a version in requirements.txt or built.txt was changed, and
# read the difference: environment.sh installs nothing else.
#
#   launcher/framework/locks/hashes.sh tensorflow
#
# PYTHON  the Python whose pip is used, as in environment.sh; default /usr/bin/python3
set -euo pipefail
lock=$(cd "$(dirname "$0")" && pwd)/${1:?usage: hashes.sh FAMILY}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-/usr/bin/python3}" -I -m venv "$scratch/venv"
python=$scratch/venv/bin/python
"$python" -I -m pip install --quiet --upgrade pip # Debian's fetches whole files for a report
for file in "$lock/requirements.txt" "$lock/built.txt"; do
	[ -f "$file" ] || continue
	sed 's/ --hash=.*//' "$file" >"$scratch/unhashed.txt"
	if [ "$file" = "$lock/built.txt" ]; then
		# pip makes no report of a source without building it.
		mkdir "$scratch/sources"
		grep -v '^#' "$lock/build.env" >"$scratch/build.env" || true
		# shellcheck disable=SC2046 # one word per variable
		env $(<"$scratch/build.env") "$python" -I -m pip download --quiet --no-deps --no-binary :all: --dest "$scratch/sources" -r "$scratch/unhashed.txt"
		(cd "$scratch/sources" && sha256sum -- *) >"$scratch/sums"
	else
		"$python" -I -m pip install --quiet --dry-run --ignore-installed --no-deps --only-binary :all: --report "$scratch/report.json" -r "$scratch/unhashed.txt"
		"$python" -I -c '
import json, sys
for item in json.load(open(sys.argv[1]))["install"]:
    info = item["download_info"]
    print(info["archive_info"]["hashes"]["sha256"], "", info["url"].rsplit("/", 1)[-1])
' "$scratch/report.json" >"$scratch/sums"
	fi
	"$python" -I -c '
import re, sys
normal = lambda name: re.sub(r"[-_.]+", "-", name).lower()
sums = {}
for line in open(sys.argv[2]):
    digest, name = line.split()
    stem = name.removesuffix(".tar.gz").rsplit("-", 1)[0]  # of a source
    sums[normal(stem if name.endswith(".tar.gz") else name.split("-")[0])] = digest
for line in open(sys.argv[1]):
    package = line.strip()
    if package and not package.startswith("#"):
        name = normal(re.split("[=[]", package)[0])
        package += " --hash=sha256:" + sums[name]
    print(package)
' "$scratch/unhashed.txt" "$scratch/sums" >"$scratch/hashed.txt"
	cp "$scratch/hashed.txt" "$file"
done
