# Everything a person or CI runs. Needs Go and a C compiler (for SQLite).

MODULE := github.com/scalebench/scalebench

# The tests compile with the release's flags, and so without the C library's look-up of
# names: a clean checkout then compiles SQLite and the standard library once for the tests,
# the programs that they build and both programs of the release. With -trimpath, go vet
# reads files by the path of the checkout that filled the cache, which may be gone: vetting is
# left to `make lint`.
STATIC_TAGS := sqlite_omit_load_extension,osusergo,netgo
TESTING := test-compiled test-computing test-waiting test-each-fault test-client test-slurm test-week test-faults test-serving test-serving-faults test-frameworks test-release
$(TESTING): export GOFLAGS := -trimpath -vet=off -ldflags=-s -tags=$(STATIC_TAGS) $(GOFLAGS)

# What the tests need from Debian: a real Slurm with accounting, linters, the
# module command, strace, Chromium with the font of the figures, LaTeX for proposals, clang for the GPU's
# kernels, a Python that makes environments, and PyTorch, which belongs to Debian's
# own interpreter.
TEST_PROGRAMS := busybox sbatch slurmctld slurmd slurmdbd munged mariadbd ip shellcheck pycodestyle modulecmd strace chromium fusermount3 clang-14 mpicc mpirun pdflatex mypy
TEST_MODULES := torch ensurepip
TEST_LIBRARIES := libturbojpeg.so.0
TEST_PACKAGES := busybox-static libturbojpeg0 slurm-wlm slurmdbd munge mariadb-server iproute2 shellcheck pycodestyle environment-modules strace fuse3 chromium fonts-liberation clang-14 openmpi-bin libopenmpi-dev python3-venv python3-torch python3-numpy texlive-latex-recommended texlive-science lmodern mypy
TEST_TAGS := slurm,python,browser,ptx,latex,$(STATIC_TAGS)

# Debian keeps daemons where an ordinary user's PATH does not look.
export PATH := $(PATH):/usr/sbin:/sbin

# The release: both programs for each of these, needing nothing of the machine
# that they run on. A tarball has no git to ask: make release VERSION=v1.0.0.
RELEASES := linux-amd64 linux-arm64
VERSION := $(or $(shell git describe --tags --always --dirty 2>/dev/null),unreleased)
STAMP := -s -w -X $(MODULE)/cmd/version.stamped=$(VERSION)
RELEASE_PROGRAMS := aarch64-linux-gnu-gcc qemu-aarch64-static
RELEASE_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static

# What the benchmarks compare with, beside PyTorch.
BENCH_PROGRAMS := mpicc mpirun wrk hey fio
BENCH_MODULES := PIL
BENCH_PACKAGES := fio python3-pil openmpi-bin libopenmpi-dev libopenblas0-pthread wrk hey
BENCH_LIBRARIES := libopenblas.so.0

.PHONY: build kernels worker-gpu worker-onnxruntime worker-turbojpeg gpu-check gpu-bundle release report-example demo test test-full test-compiled test-computing test-waiting test-each-fault test-client test-busy test-unit test-week truth test-slurm test-faults test-frameworks test-examples test-horovod test-serving test-serving-faults bench-frameworks framework-packages test-release test-packages mutants record release-packages lint bench bench-packages vulnerabilities golden clean

build:
	@.ci/toolchain
	go build -o bin/scalebench ./cmd/scalebench
	CGO_ENABLED=0 go build -o bin/scalebench-worker ./cmd/scalebench-worker

# The trainer's kernels for GPUs, whose PTX is checked in.
kernels: test-packages
	go generate ./launcher/native/train/gpu/ptx

# The worker that reaches GPUs: it loads NCCL and CUDA's driver when it runs, so
# that neither is needed here; its C library is this machine's or a later one.
worker-gpu:
	CGO_ENABLED=1 go build -tags gpu -o bin/scalebench-worker-gpu ./cmd/scalebench-worker

# The worker that computes ONNX models by onnxruntime, whose C library it loads when it
# runs.
worker-onnxruntime:
	CGO_ENABLED=1 go build -tags onnxruntime -o bin/scalebench-worker-onnxruntime ./cmd/scalebench-worker

# The worker that decodes JPEG by libjpeg-turbo, whose C library it loads when it runs.
worker-turbojpeg:
	CGO_ENABLED=1 go build -tags turbojpeg -o bin/scalebench-worker-turbojpeg ./cmd/scalebench-worker

# SQLite is linked in with the C library; names of users and hosts are looked up
# by Go's own code, since the C library's cannot be linked statically. Its linker
# warns of such calls, and a warning ends the build.
release: release-packages $(RELEASES:%=dist/%)
	cd dist && sha256sum *.tar.gz */scalebench* >SHA256SUMS

# An example of the report page, beside the release: a minute of simulated training.
EXAMPLE := bin/scalebench --db dist/report-example/scalebench.db --runs dist/report-example
report-example: build
	rm -rf dist/report-example && mkdir -p dist/report-example
	$(EXAMPLE) run --oversubscribe examples/advice/study.toml
	$(EXAMPLE) collect advice
	$(EXAMPLE) report advice --site examples/advice/prices.toml -o dist/report-example.html

STATIC = -tags '$(STATIC_TAGS)$(TAG:%=,%)' -ldflags '$(STAMP) -linkmode external -extldflags "-static -Wl,--fatal-warnings"'
dist/linux-amd64 dist/linux-arm64: CC = $(if $(filter %-arm64,$@),aarch64-linux-gnu-gcc,gcc)
dist/linux-%: FORCE
	rm -rf $@ dist/*-linux-$*.tar.gz && mkdir -p $@
	CGO_ENABLED=1 CC=$(CC) GOOS=linux GOARCH=$* go build -trimpath $(STATIC) -o $@/scalebench ./cmd/scalebench
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -trimpath -ldflags '$(STAMP)' -o $@/scalebench-worker ./cmd/scalebench-worker
	cp LICENSE README.md $@
	GOOS=linux GOARCH=$* .ci/notices >$@/THIRD_PARTY_NOTICES.txt
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='$(shell date -u +%F)' -C dist -czf dist/scalebench-$(VERSION)-linux-$*.tar.gz linux-$*

$(RELEASES:%=dist/%): | release-packages

FORCE:

# A small scaling study on this machine: one and two workers, native trainer.
DEMO := bin/scalebench --db demo/scalebench.db --runs demo/runs
demo: build
	rm -rf demo && mkdir demo
	$(DEMO) data synth demo/data
	$(DEMO) run examples/demo/study.toml
	$(DEMO) collect demo
	$(DEMO) scaling demo
	$(DEMO) plot speedup demo -o demo/speedup.png
	@echo "The figure is $(CURDIR)/demo/speedup.png"

# Everything: unit, command line, and a real Slurm on this machine. Five groups at
# once, each one package at a time: those that compute; those that mostly wait for
# a Slurm of their own, many at a time; the faults and the client, which wait for
# theirs; the release. Whatever
# fails, all go on to their end. What all of them need is compiled before, or each
# would compile it. -short plays a tenth of the simulations.
TEST_FLAGS := -short
WAITING := ./cmd/scalebench ./slurm ./slurm/slurmtest
GO_TEST = go test -tags $(TEST_TAGS) -p 1 -timeout 60m $(TEST_FLAGS)
test: test-packages test-compiled
	@$(MAKE) --no-print-directory -k -j5 test-computing test-waiting test-each-fault test-client test-release

test-full:
	@$(MAKE) --no-print-directory test TEST_FLAGS=

test-compiled: test-packages
	go test -tags $(TEST_TAGS) -c -o /dev/null ./cmd/scalebench
	go build -o /dev/null ./cmd/scalebench-worker

test-computing:
	$(GO_TEST) $$(go list ./... | grep -v -x $(WAITING:./%=-e $(MODULE)/%))
	go test -tags gpu,$(STATIC_TAGS) -p 1 $(TEST_FLAGS) -run 'GPU' ./cmd/scalebench-worker
	go test -tags turbojpeg,$(STATIC_TAGS) $(TEST_FLAGS) ./launcher/preprocess/turbojpeg

test-waiting:
	$(GO_TEST) -parallel 8 -skip '^TestSlurmFaults' ./cmd/scalebench

test-each-fault:
	$(GO_TEST) -run '^TestSlurmFaults' ./cmd/scalebench

test-client:
	$(GO_TEST) ./slurm ./slurm/slurmtest

# How often each test fails beside a busy loop on every core, in so many runs of
# everything.
RUNS := 5
test-busy: test-packages
	.ci/busy $(RUNS)

# What the intervals, tests and refusals of docs/metrics.md are worth, on machines
# whose truth is known: all of them, with what was found.
truth:
	go test -v -timeout 60m -run Truth ./metrics/... ./launcher/serve/loadtest

# How many small mistakes in the code the tests notice: MUTANTS=100 random ones of the
# sample SEED, or every one of a line, AT=metrics/scaling/ratio.go:41. A survivor takes
# as long as the tests of its package and of those that import it; DEPENDENTS=false
# leaves these out. Tests that simulate or count work take minutes and are skipped.
MUTANTS := 100
AT :=
DEPENDENTS := true
MUTANTS_FLAGS := -p 1 -skip 'Truth|Linear'
mutants:
	nice go run ./cmd/internal/mutants -seed $(SEED) -n $(MUTANTS) -at '$(AT)' -dependents=$(DEPENDENTS) $(MUTANTS_FLAGS)

# What needs Go, a C compiler, git and the usual commands of Linux, and nothing of
# TEST_PACKAGES.
test-unit:
	go test -short -timeout 30m ./...

test-slurm: test-packages
	go test -tags slurm,$(STATIC_TAGS) -p 1 -parallel 4 -timeout 60m ./slurm ./slurm/slurmtest
	go test -tags slurm,$(STATIC_TAGS) -parallel 4 -timeout 60m -run Slurm ./cmd/scalebench

# A new user's first week on a real Slurm: what is typed, and all that is read.
# After a change of words: make test-week WEEK_FLAGS=-update, and read the diff.
test-week: test-packages
	go test -tags slurm,$(STATIC_TAGS) -timeout 30m -count 1 -v -run TestWeek ./cmd/scalebench $(WEEK_FLAGS)

# Faults fired at the programs and a real Slurm: one of each class (as `make
# test` does, always the same); FAULTS=1000 is the full suite, SEED=N repeats one.
FAULTS := 0
SEED := 0
test-faults: test-packages
	go test -tags slurm,$(STATIC_TAGS) -timeout 5h -count 1 -v -run 'TestSlurmFaults' ./cmd/scalebench -faults $(FAULTS) -fault-seed $(SEED)

# Faults fired at services under load: on this machine, and a fifth as many at jobs of
# a real Slurm; SERVE_FAULTS=102 is the full suite.
SERVE_FAULTS := 102
test-serving-faults: test-packages
	go test -tags slurm,$(STATIC_TAGS) -timeout 60m -count 1 -v -run 'Test(Slurm)?ServeFaults' ./cmd/scalebench -serve-faults $(SERVE_FAULTS) -fault-seed $(SEED)

# The real frameworks, each in the environment of its lock, on a real Slurm; what
# passed is written into launcher/framework/locks/tested.md. FRAMEWORK=name tries
# one. The first time compiles Horovod, for some minutes.
FRAMEWORK :=
MATRIX := -matrix ../../launcher/framework/locks/tested.md
test-frameworks: TESTS = Frameworks$(if $(FRAMEWORK),/^$(FRAMEWORK)$$)
test-frameworks: framework-packages
	go test -tags frameworks,python,$(STATIC_TAGS) -timeout 60m -count 1 -run '$(TESTS)' ./launcher/framework ./launcher/native/train/cpu
	go test -tags slurm,frameworks,$(STATIC_TAGS) -timeout 60m -count 1 -v -run '$(TESTS)' ./cmd/scalebench $(MATRIX)

# The command lines of examples/torchtitan, megatron and nemo, each layout of them, given
# to those programs' own parsers: torchtitan's from PyPI, in the environment of its lock,
# the others' from checkouts, as what PyPI has of them lacks the programs. Not part of CI.
# MEGATRON_LM=folder and MEGATRON_BRIDGE=folder take checkouts that are there, whatever
# their revisions.
MEGATRON_LM = $(CURDIR)/dist/Megatron-LM
MEGATRON_BRIDGE = $(CURDIR)/dist/Megatron-Bridge
test-examples: framework-packages $(MEGATRON_LM) $(MEGATRON_BRIDGE)
	MEGATRON_LM='$(abspath $(MEGATRON_LM))' MEGATRON_BRIDGE='$(abspath $(MEGATRON_BRIDGE))' \
		go test -tags frameworks -timeout 60m -count 1 -v -run TestParsers ./examples

CHECKOUT = git clone -q --filter=blob:none --no-checkout https://github.com/$(1) $@ && git -C $@ checkout -q $(2) || { rm -rf $@; exit 1; }
$(CURDIR)/dist/Megatron-LM:
	$(call CHECKOUT,NVIDIA/Megatron-LM,d98e8a64ddf34856e74b24714e3bedb2f5a39553)
$(CURDIR)/dist/Megatron-Bridge:
	$(call CHECKOUT,NVIDIA-NeMo/Megatron-Bridge,v0.6.0)

# One framework that goes by Horovod, for all are too long for CI. Which one the
# commit's hash says: over time each has its turn, and a commit that failed
# fails again.
HOROVOD := pytorch-horovod tensorflow-horovod keras-horovod mxnet
test-horovod: framework-packages
	@set -- $(HOROVOD); shift $$((0x$$(git rev-parse HEAD | cut -c1-8) % $$#)); \
	$(MAKE) --no-print-directory test-frameworks FRAMEWORK=$$1 MATRIX=

# The load generator against real model servers, each in the environment of its
# lock, and a study of them on a real Slurm.
test-serving: framework-packages
	go test -tags serving,$(STATIC_TAGS) -timeout 30m -count 1 -run Serving ./launcher/serve/target ./launcher/serve/onnxruntime
	go test -tags serving,$(STATIC_TAGS) -timeout 30m -count 1 -parallel 9 -v -run Serving ./cmd/scalebench-worker
	go test -tags slurm,serving,$(STATIC_TAGS) -timeout 60m -count 1 -v -run TestServing ./cmd/scalebench

# What scalebench adds to a step of each of them; see docs/frameworks.md.
bench-frameworks: framework-packages
	go test -tags frameworks,python -timeout 60m -run '^$$' -bench FrameworkHooks -benchtime 1x ./launcher/framework

# Horovod is compiled against Debian's PyTorch, whose headers stand apart.
framework-packages: test-packages
	@if ! { /usr/bin/python3 -c 'import ensurepip' 2>/dev/null && test -e /usr/include/torch/extension.h && test -e /usr/include/pybind11/pybind11.h && test -e /usr/include/python3.*/Python.h; }; then \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		echo "make $@ needs the headers of PyTorch, pybind11 and Python, and venv; installing them with apt-get"; \
		$$sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -q -y --no-install-recommends libtorch-dev pybind11-dev python3-dev python3-venv g++; \
	fi

# The check of everything that touches a GPU, as a folder that runs on a node with
# nothing but the GPU's driver and a C library of version 2.34 or later.
BUNDLE := dist/gpu-check-linux-amd64
COMMIT = $(shell git describe --always --abbrev=40 --exclude '*' --dirty 2>/dev/null)
gpu-bundle: TAG := training
gpu-bundle:
	rm -rf $(BUNDLE) $(BUNDLE).tar.gz && mkdir -p $(BUNDLE)
	CGO_ENABLED=0 GOARCH=amd64 go build -trimpath -ldflags '$(STAMP) -X $(MODULE)/cmd/version.commit=$(COMMIT)' -o $(BUNDLE)/gpu-check ./cmd/gpu-check
	CGO_ENABLED=1 GOARCH=amd64 go build -trimpath $(STATIC) -o $(BUNDLE)/scalebench ./cmd/scalebench
	CGO_ENABLED=1 GOARCH=amd64 go build -trimpath -tags gpu,training,$(STATIC_TAGS) -ldflags '$(STAMP)' -o $(BUNDLE)/scalebench-worker ./cmd/scalebench-worker
	cp LICENSE $(BUNDLE) && cp cmd/gpu-check/bundle.md $(BUNDLE)/README.md
	.ci/notices >$(BUNDLE)/THIRD_PARTY_NOTICES.txt
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='$(shell date -u +%F)' -C dist -czf $(BUNDLE).tar.gz $(notdir $(BUNDLE))

# That check on this machine, with PyTorch for CUDA in PYTHON if it is set; if nothing
# failed, its report is to be committed (docs/gpu.md).
PYTHON :=
gpu-check: gpu-bundle
	$(BUNDLE)/gpu-check $(if $(PYTHON),--python '$(PYTHON)') --output dist/gpu-check.json --record .

# The released programs in a bare chroot without a C library, arm64's emulated; and the
# GPU check's bundle in one with busybox, a C library and the fakes of CUDA's libraries.
test-release: release gpu-bundle
	go test -tags release,$(STATIC_TAGS) -count 1 $(TEST_FLAGS) -run Release ./cmd/scalebench ./cmd/gpu-check

# Installs what is missing, and only that, after saying so.
test-packages: PROGRAMS = $(TEST_PROGRAMS)
test-packages: MODULES = $(TEST_MODULES)
test-packages: LIBRARIES = $(TEST_LIBRARIES)
test-packages: PACKAGES = $(TEST_PACKAGES)
release-packages: PROGRAMS = $(RELEASE_PROGRAMS)
release-packages: PACKAGES = $(RELEASE_PACKAGES)
bench-packages: PROGRAMS = $(BENCH_PROGRAMS)
bench-packages: MODULES = $(BENCH_MODULES)
bench-packages: LIBRARIES = $(BENCH_LIBRARIES)
bench-packages: PACKAGES = $(BENCH_PACKAGES)
test-packages release-packages bench-packages:
	@missing=; for p in $(PROGRAMS); do command -v $$p >/dev/null || missing="$$missing $$p"; done; \
	for m in $(MODULES); do /usr/bin/python3 -c "import $$m" 2>/dev/null || missing="$$missing python3:$$m"; done; \
	for l in $(LIBRARIES); do ldconfig -p | grep -q $$l || missing="$$missing $$l"; done; \
	if [ -n "$$missing" ]; then \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		echo "make $@ needs$$missing; installing with apt-get: $(PACKAGES)"; \
		$$sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -q -y --no-install-recommends $(PACKAGES); \
	fi

# No function may have a cognitive complexity over 30.
SOURCE := cmd slurm launcher metrics templates examples
lint: test-packages
	@large=$$(git ls-files -z | xargs -0 stat -c '%s %n' | awk '$$1 > 1000000'); [ -z "$$large" ] || { echo "over 1 MB, a program by mistake? $$large"; exit 1; }
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }
	go mod tidy -diff
	go test -tags lint,$(STATIC_TAGS) -run TestExportsAreUsed ./cmd/scalebench
	go vet -tags $(TEST_TAGS),release,frameworks,serving ./...
	go vet -tags gpu,$(STATIC_TAGS) ./cmd/scalebench-worker
	go vet -tags onnxruntime,$(STATIC_TAGS) ./cmd/scalebench-worker
	go vet -tags turbojpeg,$(STATIC_TAGS) ./cmd/scalebench-worker
	go tool gocognit -over 30 -ignore '_test\.go|testdata/' $(SOURCE)
	go tool staticcheck -tags $(TEST_TAGS),release,frameworks,serving ./...
	go tool staticcheck -tags gpu,$(STATIC_TAGS) ./cmd/scalebench-worker
	go tool staticcheck -tags onnxruntime,$(STATIC_TAGS) ./cmd/scalebench-worker
	go tool staticcheck -tags turbojpeg,$(STATIC_TAGS) ./cmd/scalebench-worker
	git ls-files '*.sh' .ci | xargs shellcheck
	git ls-files '*.py' | xargs pycodestyle

# Speed, each figure beside its target; noisy machines make these no tests. The
# first are long pieces of work, done once; docs/benchmarks.md says what each is.
LONG := ./metrics/store ./cmd/scalebench
bench: test-packages bench-packages
	go test -tags python -run '^$$' -bench . -benchtime 1x -timeout 30m $(LONG)
	go test -tags python -run '^$$' -bench . -benchtime 0.2s $$(go list ./... | grep -v -x $(LONG:./%=-e $(MODULE)/%))
	go test -tags slurm -run '^$$' -bench Slurm -benchtime 1x ./cmd/scalebench

# Known vulnerabilities in what the programs call. It asks vuln.go.dev.
vulnerabilities:
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

# Rewrite the golden files; read the difference before committing it.
golden:
	go test ./slurm ./metrics/figure ./cmd/scalebench -update

# Record again what Slurm's commands print, for the tests that replay it; read
# the difference before committing it.
record: test-packages
	go test -tags slurm -count 1 -run 'TestTranscripts$$' ./slurm -record
	go test -count 1 -run 'Transcripts' ./slurm

clean:
	rm -rf bin dist demo
