# make help says what there is.
.DEFAULT_GOAL := help
.PHONY: help test race stress bench bench-peers lint quickstart variants

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: ## the main job, on an embedded Redis (or on REDIS_ADDR)
	go run ./examples/quickstart

variants: ## the fair lock, the read-write lock and the semaphore at work
	go run ./examples/variants

test: ## all tests; those that need a real Redis are skipped without redis-server
	go test ./...

race: ## all tests with the race detector (needs a C compiler)
	go test -race -timeout 25m ./...

stress: ## the random tests, ten times as long: make stress CYCLES=1000000
	RELOCK_STRESS=$(or $(CYCLES),1000000) go test -race -timeout 3h -run 'Random' -v ./...

bench: ## benchmarks against a real redis-server, with ratios to plain round trips
	go test -run '^$$' -bench . -benchmem .

bench-peers: ## the same beside other libraries, to docs/performance.md (6 to 10 minutes)
	cd bench && go run .

lint: ## vet, gofmt and staticcheck
	go vet ./...
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go run $(STATICCHECK) ./...
