# make help says what there is.
.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(MAKEFILE_LIST))

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: ## the main job, on an embedded Redis (or on REDIS_ADDR)
	go run ./examples/quickstart

variants: ## the fair lock, the read-write lock and the semaphore at work
	go run ./examples/variants

together: ## transfers under two locks, behind a latch
	go run ./examples/together

keep: ## a sharded service that keeps its locks, and what that saves
	go run ./examples/keep

quorum: ## one lock on five Redises that go down one after the other
	go run ./examples/quorum

election: ## three processes follow each other as the leader, one of them killed
	go run ./examples/election

recipes: ## the recipes of docs/, also those that need other libraries (compiles SQLite: a minute)
	go test -count=1 ./docs ./examples/recipes
	cd examples/beside && go test -count=1 .

test: ## all tests, in six minutes on 2 cores; without redis-server, those on miniredis alone
	go test ./...

short: ## all tests on miniredis and the quick ones on a real Redis, in about 40 seconds on 2 cores
	go test -short ./...

race: ## all tests with the race detector, as CI runs them (needs a C compiler)
	go test -race -gcflags=github.com/yuin/gopher-lua/...=-race=false -timeout 25m ./...

test-servers: ## all tests on other servers as well: Redis 6.2, Valkey 9, and SERVERS="path …"
	.ci/servers $(SERVERS)

stress: ## the random tests, for longer: make stress CYCLES=5000000 (default: 1 000 000)
	RELOCK_STRESS=$(or $(CYCLES),1000000) go test -race -timeout 3h -run 'Random' -v ./...

fuzz: ## scripts and parsers on random input: make fuzz FUZZTIME=10m (for each fuzz test; default: 1m)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		for test in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$test"; (cd $$dir && go test -run '^$$' -fuzz "^$$test\$$" -fuzztime $(or $(FUZZTIME),1m) .) || exit 1; \
		done; done

simulate: ## sessions, faults and Redis in made-up time: make simulate SEEDS=1000 SEED=7 SESSIONS=100 MINUTES=10 KIND=plain|fair|rw|semaphore|mix
	RELOCK_SIMULATE_SEEDS=$(or $(SEEDS),200) RELOCK_SIMULATE_SEED=$(or $(SEED),1) RELOCK_SIMULATE_SESSIONS=$(or $(SESSIONS),20) \
		RELOCK_SIMULATE_MINUTES=$(or $(MINUTES),1) RELOCK_SIMULATE_KIND=$(KIND) go test -count=1 -timeout 0 -run TestSimulation ./internal/test/simulate

torture: ## locks amid faults: make torture DURATION=1h SEED=7 TOPOLOGY=standalone|replicas|sentinel|cluster|several ROUNDS=crowd|mixed|rush
	@command -v redis-server >/dev/null || { echo "make torture: no redis-server on PATH" >&2; exit 1; }
	cd torture && RELOCK_REQUIRE_REDIS=1 RELOCK_TORTURE_DURATION=$(DURATION) RELOCK_TORTURE_SEED=$(SEED) \
		RELOCK_TORTURE_TOPOLOGY=$(TOPOLOGY) RELOCK_TORTURE_ROUNDS=$(ROUNDS) go test -count=1 -timeout 0 -run 'TestTorture' -v .

histories: ## acquisitions amid faults on four topologies, all of them checked: make histories ACQUISITIONS=10000000 SEED=7 DURATION=1h REPORT=file
	@command -v redis-server >/dev/null || { echo "make histories: no redis-server on PATH" >&2; exit 1; }
	cd torture && RELOCK_REQUIRE_REDIS=1 RELOCK_TORTURE_ACQUISITIONS=$(or $(ACQUISITIONS),1000000) RELOCK_TORTURE_SEED=$(SEED) \
		RELOCK_TORTURE_DURATION=$(DURATION) RELOCK_TORTURE_REPORT=$(if $(REPORT),$(abspath $(REPORT))) go test -count=1 -timeout 0 -run 'TestAcquisitionsAmidFaults' -v .

explore: ## the scripts in all orders of what can happen to 2 or 3 sessions: make explore STATES=1000000 ONLY=plain FAULTS=1 LIMIT=5m
	go run ./internal/test/explore/run -states $(or $(STATES),1300000) -limit $(or $(LIMIT),1h) -only "$(ONLY)" -faults $(or $(FAULTS),-1)

explore-mutants: ## scripts and models broken on purpose, each of which the exploration must find
	go run ./internal/test/explore/run -mutants -states $(or $(STATES),100000) -only "$(ONLY)"

interop: export RELOCK_REDISSON := $(or $(REDISSON),$(RELOCK_REDISSON))
interop: export RELOCK_REQUIRE_REDIS := 1
interop: export RELOCK_REQUIRE_JAVA := 1
interop: ## the locks against the real Redisson, REDISSON=3.50.0 for another version (needs a JDK from 17 on, and Maven)
	@for tool in redis-server javac mvn; do command -v $$tool >/dev/null || \
		{ echo "make interop: no $$tool on PATH; it needs redis-server, a JDK (17 or later) and Maven" >&2; exit 1; }; done
	cd interop/redisson && go test -count=1 -timeout 30m -parallel 8 -run Matrix .
	cd interop/redisson && go test -count=1 -run 'Stress|HandOver|Shares' -v .

cli: ## the command line, to bin/relock
	cd cmd/relock && go build -o ../../bin/relock .

cli-test: ## its tests, with the built binary on real servers and in terminals
	cd cmd/relock && go test -count=1 .

module: ## another path for the module, in all of it: make module MODULE=example.com/you/relock
	cd internal/publish && go run . rename $(or $(MODULE),$(error make module: say MODULE=HOST/PATH))

release: ## the go.mod and go.sum that a version of each module has: see CONTRIBUTING.md
	cd internal/publish && go run . release

publish-test: ## a copy with another path, published to a folder, serves a module outside (two minutes)
	cd internal/publish && go test -count=1 -timeout 10m .

otel: ## the tests of the OpenTelemetry module and of its example
	cd otel && go test -race -count=1 ./...
	cd otel/example && go test -race -count=1 ./...

gocron: ## the tests of the module for gocron's schedulers (half a minute: they schedule each second)
	cd gocron && go test -race -count=1 ./...

goredis: ## the tests of the module that converts go-redis's options
	cd goredis && go test -count=1 ./...

bench: ## benchmarks against a real redis-server, with ratios to plain round trips
	go test -run '^$$' -bench . -benchmem .

bench-peers: ## the same beside other libraries, to docs/performance.md (up to 15 minutes; etcd, a JDK and Maven for all rows)
	cd bench && go run .

calls: ## the functions of ours that each path runs: uncontended, in one session, two sessions, fair, a renewal
	go test -count=1 -v ./internal/test/calls

lint: ## vet, gofmt and staticcheck
	go vet ./...
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go run $(STATICCHECK) ./...
	cd interop/redisson && go vet ./... && go run $(STATICCHECK) ./...
	cd cmd/relock && go vet ./... && go run $(STATICCHECK) ./...
	cd torture && go vet ./... && go run $(STATICCHECK) ./...
	cd otel && go vet ./... && go run $(STATICCHECK) ./...
	cd otel/example && go vet ./... && go run $(STATICCHECK) ./...
	cd goredis && go vet ./... && go run $(STATICCHECK) ./...
	cd gocron && go vet ./... && go run $(STATICCHECK) ./...
	cd examples/beside && go vet ./... && go run $(STATICCHECK) ./...
	cd internal/publish && go vet ./... && go run $(STATICCHECK) ./...
	cd bench && go vet ./... && go run $(STATICCHECK) ./...
