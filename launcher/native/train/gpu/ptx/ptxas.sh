#!/usr/bin/env bash
# Fetches ptxas, NVIDIA's assembler of PTX, unless it is there, and prints its path.
# It is in the Python package of CUDA's compiler and needs no GPU.
#
#   launcher/native/train/gpu/ptx/ptxas.sh
#
# SCALEBENCH_FRAMEWORKS  where it is put; ~/.cache/scalebench/frameworks
# PYTHON                 whose pip fetches it; /usr/bin/python3
set -euo pipefail
package=nvidia-cuda-nvcc-cu12==12.9.86
file=ptxas-12.9.86
case $(uname -m) in
x86_64) sum=983b0e9283855979f42cebfd80d43f9b6e786eb84f03f7570bf941c4d3a3c461 ;;
aarch64) sum=d07db8b5fd19692ad6fc9643ad3449cc27190fad1f1ad6c6b8338fdec95ea72e ;;
*)
	echo "ptxas.sh: there is one for x86_64 and one for aarch64; this is $(uname -m)" >&2
	exit 2
	;;
esac
cache=${SCALEBENCH_FRAMEWORKS:-${XDG_CACHE_HOME:-$HOME/.cache}/scalebench/frameworks}
right() { echo "$sum  $1" | sha256sum --check --status; }
mkdir -p "$cache"
exec 9>"$cache/.$file.lock"
flock 9 # one fetches, the others wait for it
if ! { [ -x "$cache/$file" ] && right "$cache/$file"; }; then
	scratch=$(mktemp -d "$cache/.fetch-XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	# A virtual environment, for a Python without pip.
	{
		"${PYTHON:-/usr/bin/python3}" -m venv "$scratch/venv"
		"$scratch/venv/bin/pip" download --no-deps --dest "$scratch" "$package"
		"$scratch/venv/bin/python" -m zipfile --extract "$scratch"/*.whl "$scratch"
	} >&2
	if ! right "$scratch/nvidia/cuda_nvcc/bin/ptxas"; then
		echo "ptxas.sh: the ptxas of $package is not the one that is expected (SHA-256 $sum)" >&2
		exit 1
	fi
	chmod +x "$scratch/nvidia/cuda_nvcc/bin/ptxas"
	mv "$scratch/nvidia/cuda_nvcc/bin/ptxas" "$cache/$file"
fi
echo "$cache/$file"
