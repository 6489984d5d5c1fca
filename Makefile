# Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
BIN := $(CURDIR)/build/bin
VITESS := vitess.io/vitess/go/cmd
E2E_TIMEOUT ?= 75m
# Which tests of `make e2e` and `make unit` run: RUN=TestName
RUN ?= .

.PHONY: help
help: ## Show the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: build/mysql/bin/mysqld ## Build all programs into build/bin (go's build cache makes it quick the second time) and provide MySQL.
	@mkdir -p $(BIN)
	@echo "building vttablet-ext and the programs of Vitess (some minutes with a cold build cache)"
	@$(GO) build -buildvcs=false -o $(BIN)/ ./go/cmd/vttablet-ext $(VITESS)/vttablet $(VITESS)/vtctld $(VITESS)/vtctldclient $(VITESS)/mysqlctl
	@$(GO) build -C tools -buildvcs=false -o $(BIN)/etcd go.etcd.io/etcd/server/v3

build/mysql/bin/mysqld: tools/mysql.sh
	@tools/mysql.sh build/mysql
	@touch $@

$(BIN)/staticcheck: tools/go.mod
	@mkdir -p $(BIN)
	@$(GO) build -C tools -buildvcs=false -o $@ honnef.co/go/tools/cmd/staticcheck

.PHONY: proto
proto: ## Write the Go code of the .proto files (no protoc is needed).
	@$(GO) -C tools run ./genproto .. proto/vdiffscan.proto

.PHONY: lint
lint: $(BIN)/staticcheck ## Check formatting (gofmt), go vet, staticcheck, that go.mod is tidy and generated code current.
	@unformatted=$$(gofmt -l go proto test tools); if [[ -n $$unformatted ]]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi
	@$(GO) mod tidy -diff
	@$(GO) -C tools mod tidy -diff
	@$(GO) -C tools run ./genproto -check .. proto/vdiffscan.proto
	@$(GO) vet ./...
	@$(BIN)/staticcheck ./...

.PHONY: unit
unit: ## Run the unit tests, with the race detector.
	@$(GO) test -race -timeout 15m -run '$(RUN)' ./go/...

.PHONY: e2e
e2e: build ## Run the end-to-end tests on real clusters, with the race detector. RUN=TestName runs one.
	@$(GO) test -race -count=1 -timeout $(E2E_TIMEOUT) -run '$(RUN)' ./test/endtoend/...

.PHONY: e2e-race
e2e-race: build ## The same, with a vttablet-ext that is built with the race detector too.
	@mkdir -p build/race && ln -sf $(BIN)/* build/race/ && rm -f build/race/vttablet-ext
	@$(GO) build -race -buildvcs=false -o build/race/ ./go/cmd/vttablet-ext
	@VTTABLET_EXT_BIN=$(CURDIR)/build/race $(GO) test -race -count=1 -timeout $(E2E_TIMEOUT) -run '$(RUN)' ./test/endtoend/...

.PHONY: soundness
soundness: build ## Hundreds of rounds of faults planted under writes: each must be found, and nothing else (SOUNDNESS_ROUNDS, SOUNDNESS_SEED).
	@SOUNDNESS_ROUNDS=$${SOUNDNESS_ROUNDS:-300} $(GO) test -count=1 -v -timeout 3h -run 'TestSoundness$$' ./test/endtoend/

.PHONY: oracle
oracle: build ## Thousands of comparisons of random tables against brute force; writes docs/differences.md (ORACLE_ROUNDS, ORACLE_SEED, ORACLE_STOCK).
	@ORACLE_ROUNDS=$${ORACLE_ROUNDS:-2000} ORACLE_STOCK=$${ORACLE_STOCK:-2} $(GO) test -count=1 -v -timeout 6h -run 'TestOracle$$' ./test/endtoend/

.PHONY: test
test: build lint unit e2e ## All of the above: what must pass.

.PHONY: demo
demo: build ## Diff a real workflow through a killed tablet, then find three rows that were changed.
	@$(GO) run ./test/endtoend/cmd/demo

.PHONY: bench
bench: build ## Compare the speed with the stock engine; writes build/bench.json.
	@$(GO) run ./test/endtoend/cmd/bench

.PHONY: up
up: build ## Start a cluster to play with, and print where it is (VTTABLET_FLAGS="..." are passed to every tablet).
	@$(GO) run ./test/endtoend/cmd/cluster up

.PHONY: down
down: ## End the cluster that `make up` started.
	@$(GO) run ./test/endtoend/cmd/cluster down

.PHONY: clean
clean: down ## End the cluster and remove everything that was built.
	@rm -rf build
