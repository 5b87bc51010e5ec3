#!/usr/bin/env bash
# Fetches a small trained model that a package contains, unless it is there, and
# prints the path of its ONNX file, for a first trial of the model servers.
#
#   launcher/framework/locks/onnx-model.sh
#
# It is RapidOCR's classifier of text directions, 586 kB, under the Apache license:
# one input x, N x 3 x 48 x 192, any N; shape = { x = [3, 48, 192] } in a study.
#
# SCALEBENCH_FRAMEWORKS  where it is put; ~/.cache/scalebench/frameworks
# PYTHON                 whose pip fetches it; /usr/bin/python3
set -euo pipefail
package=rapidocr-onnxruntime==1.4.4
file=ch_ppocr_mobile_v2.0_cls_infer.onnx
sum=e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c
cache=${SCALEBENCH_FRAMEWORKS:-${XDG_CACHE_HOME:-$HOME/.cache}/scalebench/frameworks}
right() { echo "$sum  $1" | sha256sum --check --status; }
mkdir -p "$cache"
exec 9>"$cache/.$file.lock"
flock 9 # one fetches, the others wait for it
if ! { [ -f "$cache/$file" ] && right "$cache/$file"; }; then
	scratch=$(mktemp -d "$cache/.fetch-XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	# A virtual environment, for a Python without pip.
	{
		"${PYTHON:-/usr/bin/python3}" -I -m venv "$scratch/venv"
		"$scratch/venv/bin/pip" download --no-deps --dest "$scratch" "$package"
		"$scratch/venv/bin/python" -I -m zipfile --extract "$scratch"/*.whl "$scratch"
	} >&2
	if ! right "$scratch/rapidocr_onnxruntime/models/$file"; then
		echo "onnx-model.sh: the $file of $package is not the one that is expected (SHA-256 $sum)" >&2
		exit 1
	fi
	mv "$scratch/rapidocr_onnxruntime/models/$file" "$cache/$file"
fi
echo "$cache/$file"
