#!/usr/bin/env bash
# Builds the virtual environment of a framework family, unless it is there, and
# prints its interpreter.
#
#   launcher/framework/locks/environment.sh tensorflow
#
# A family is a folder next to this file. pip installs requirements.txt, then
# compiles built.txt (if it exists) against it with the variables of build.env.
# venv.options (if it exists) holds options of python -m venv. base.txt (if it
# exists) names another family, whose packages this one also sees. The name of the
# environment's folder is a hash of all of them and of the Python, so that a changed
# lock gets a new environment. pip accepts only files whose SHA-256 is in the lock
# (hashes.sh writes it), and compiles only what built.txt names. Files are those for
# CPython 3.11 on x86_64.
#
# SCALEBENCH_FRAMEWORKS  where the environments are; ~/.cache/scalebench/frameworks
# PYTHON                 what they are made from; /usr/bin/python3
# JOBS                   compilers that run at a time; 1
set -euo pipefail
family=${1:?usage: environment.sh FAMILY}
lock=$(cd "$(dirname "$0")" && pwd)/$family
if ! [ -f "$lock/requirements.txt" ]; then
	echo "environment.sh: unknown family $family: no $lock/requirements.txt; valid: $(cd "$(dirname "$lock")" && echo */)" >&2
	exit 2
fi
python=${PYTHON:-/usr/bin/python3}
is=$("$python" -I -c 'import platform as p; print(p.python_implementation(), *p.python_version_tuple()[:2], p.machine())')
if [ "$is" != "CPython 3 11 x86_64" ]; then
	echo "environment.sh: $python is $is; the locks are for CPython 3 11 x86_64; set PYTHON to such an interpreter" >&2
	exit 2
fi
cache=${SCALEBENCH_FRAMEWORKS:-${XDG_CACHE_HOME:-$HOME/.cache}/scalebench/frameworks}
base=
if [ -f "$lock/base.txt" ]; then base=$("${BASH_SOURCE[0]}" "$(<"$lock/base.txt")"); fi
hash=$({ "$python" -I -c 'import platform; print(platform.python_version(), platform.machine())'; cat "$lock"/*; echo -n "${base#"$cache"}"; } | sha256sum | cut -c1-12)
home=$cache/$family-$hash
mkdir -p "$cache"
exec 9>"$cache/.$family-$hash.lock"
flock 9 # one builds, the others wait for it
if ! [ -f "$home/complete" ]; then
	log=$cache/$family-$hash.log
	echo "building $home from $lock; its log is $log" >&2
	rm -rf "$home"
	options=()
	if [ -f "$lock/venv.options" ]; then read -ra options <"$lock/venv.options"; fi
	# One compiler at a time unless told otherwise: some files take gigabytes.
	if ! { "$python" -I -m venv "${options[@]}" "$home" &&
		if [ -n "$base" ]; then
			packages='import sysconfig; print(sysconfig.get_path("purelib"))'
			"$base" -I -c "$packages" >"$("$home/bin/python" -I -c "$packages")/base.pth"
		fi &&
		"$home/bin/pip" install --require-hashes --only-binary :all: --no-deps -r "$lock/requirements.txt" &&
		if [ -f "$lock/built.txt" ]; then
			# shellcheck disable=SC2046 # one word per variable
			env $(grep -v '^#' "$lock/build.env") PATH="$home/bin:$PATH" MAKEFLAGS="-j${JOBS:-1}" \
				"$home/bin/pip" install --require-hashes --no-build-isolation --no-deps -r "$lock/built.txt"
		fi &&
		# Beside the system's packages it would judge those, too.
		if [ ${#options[@]} = 0 ]; then "$home/bin/pip" check; fi; } >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		echo "environment.sh: cannot build the environment $family; the full log is $log" >&2
		exit 1
	fi
	touch "$home/complete"
fi
echo "$home/bin/python"
