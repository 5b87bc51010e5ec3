# Everything a person or CI runs. Needs Go and a C compiler (for SQLite).

# What the tests need from Debian: a real Slurm with accounting, and shellcheck.
TEST_PROGRAMS := sbatch slurmctld slurmd slurmdbd munged mariadbd ip shellcheck
TEST_PACKAGES := slurm-wlm slurmdbd munge mariadb-server iproute2 shellcheck

# Debian keeps daemons where an ordinary user's PATH does not look.
export PATH := $(PATH):/usr/sbin:/sbin

.PHONY: build demo test test-unit test-slurm test-packages lint bench golden clean

build:
	go build -o bin/scalebench ./cmd/scalebench
	CGO_ENABLED=0 go build -o bin/scalebench-worker ./cmd/scalebench-worker

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

# Everything: unit, command line, and a real Slurm on this machine.
test: test-packages
	go test -tags slurm ./...

test-unit:
	go test ./...

test-slurm: test-packages
	go test -tags slurm -run Slurm ./...

# Installs what is missing, and only that, after saying so.
test-packages:
	@missing=; for p in $(TEST_PROGRAMS); do command -v $$p >/dev/null || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		echo "The tests need$$missing; installing with apt-get: $(TEST_PACKAGES)"; \
		$$sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -q -y --no-install-recommends $(TEST_PACKAGES); \
	fi

lint: test-packages
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }
	go vet -tags slurm ./...
	go tool staticcheck -tags slurm ./...
	git ls-files '*.sh' .ci/run | xargs shellcheck

# Speed, side by side; noisy machines make these no tests.
bench:
	go test -run '^$$' -bench . -benchtime 3x ./...

# Rewrite the golden files; read the difference before committing it.
golden:
	go test ./slurm ./metrics/figure ./cmd/scalebench -update

clean:
	rm -rf bin demo
