# `make help` lists the targets.
SHELL       := /bin/bash
GO          ?= go
BIN         := bin/tokgate
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT      ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE        ?= $(shell TZ=UTC git show -s --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ HEAD 2>/dev/null || echo unknown)
LDFLAGS     := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
PKGS        := ./...
FUZZTIME    ?= 30s
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.3.0
GORELEASER  := github.com/goreleaser/goreleaser/v2@v2.17.0
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# The race detector needs a C compiler; without one the tests still run.
RACE := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
ifeq ($(RACE),)
CGO := 0
else
CGO := 1
endif

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-20s %s\n", $$1, $$2 }'

.PHONY: build
build: ## build the static binary bin/tokgate
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/tokgate

.PHONY: pages
pages: build ## man pages in bin/man and shell completions in bin/completions
	rm -rf bin/man bin/completions && mkdir -p bin/completions
	$(BIN) man bin/man
	$(BIN) completion bash > bin/completions/tokgate.bash
	$(BIN) completion zsh > bin/completions/_tokgate
	$(BIN) completion fish > bin/completions/tokgate.fish
	$(BIN) completion powershell > bin/completions/tokgate.ps1

# Collects the licences of Go and of every module that a released binary contains, on any system.
.PHONY: licenses
licenses: ## texts of third parties' licences, in bin/licenses; an error where a module has none
	@rm -rf bin/licenses && mkdir -p bin/licenses && cp "$$($(GO) env GOROOT)/LICENSE" bin/licenses/go.LICENSE
	@set -e; for os in linux darwin windows; do \
	  GOOS=$$os CGO_ENABLED=0 $(GO) list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/tokgate; \
	done | sort -u | while read -r module dir; do \
	  found=; for file in "$$dir"/LICENSE* "$$dir"/LICENCE* "$$dir"/COPYING* "$$dir"/NOTICE*; do \
	    [ -f "$$file" ] || continue; found=1; \
	    install -m 0644 "$$file" "bin/licenses/$$(echo "$$module" | tr / _).$$(basename "$$file")"; \
	  done; \
	  [ -n "$$found" ] || { echo "no licence in $$module"; exit 1; }; \
	done
	@ls bin/licenses

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in what is linked; asks Go's database of them
	$(GO) run $(GOVULNCHECK) $(PKGS)

# Each build has its own cache; otherwise the second would be a copy of the first.
.PHONY: reproducible
reproducible: ## build this commit twice, in different folders with nothing shared, and compare; minutes
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	for dir in one another/folder; do \
	  git clone -q . "$$tmp/$$dir"; \
	  GOCACHE="$$tmp/cache/$$dir" $(MAKE) -s -C "$$tmp/$$dir" build VERSION=$(VERSION); \
	done; \
	sha256sum "$$tmp/one/$(BIN)" "$$tmp/another/folder/$(BIN)" | sed "s,$$tmp/,,"; \
	cmp "$$tmp/one/$(BIN)" "$$tmp/another/folder/$(BIN)" && echo "the same, byte for byte"

.PHONY: release-check
release-check: ## check .goreleaser.yaml; builds goreleaser itself the first time: a gigabyte and many minutes
	$(GO) run $(GORELEASER) check

RELEASE_TRY ?= results/release
.PHONY: release-try
release-try: ## make a release's archives, checksums and image without a tag, and try them, with the action's download; minutes
	.github/release-try.sh $(RELEASE_TRY) $(PLATFORMS)

.PHONY: demo
demo: build ## gate the built-in server with plans/demo.hcl; reports in results/demo
	$(BIN) run --out results/demo plans/demo.hcl

# Only packages in which goroutines run side by side need the race detector, which makes tests
# many times slower; .ci/concurrent finds these packages. TestLong… are long calculations and
# whole simulated plans, with one goroutine or several that share nothing, so they run without
# it. The three parts run side by side, because otherwise one core would wait for the slowest
# package of each. `make cover` measures coverage, because the race detector would double its
# cost. `make lint` runs vet.
.PHONY: test test-race test-long test-alone
# By default every process under the race detector sleeps for a second at its end. In tests that
# start processes this would add up to half a minute and more.
test: export GORACE ?= atexit_sleep_ms=50
# The garbage collector runs less often, at the cost of more memory.
test: export GOGC ?= 400
test: ## run all tests, with the race detector where it can find anything, and there is a C compiler
	@if [ -z "$(RACE)" ]; then echo "no C compiler: tests run without the race detector"; fi
	@$(MAKE) --no-print-directory -j3 test-race test-long test-alone

test-race:
	CGO_ENABLED=$(CGO) $(GO) test $(RACE) -vet=off -timeout 40m -skip '^TestLong' $$(.ci/concurrent)

test-long:
	CGO_ENABLED=0 $(GO) test -vet=off -timeout 40m -run '^TestLong' $$(.ci/concurrent --long)

test-alone:
	CGO_ENABLED=0 $(GO) test -vet=off -timeout 40m $$(.ci/concurrent --alone)

# Tests of other packages count too: tests of the whole program, for example, also cover the
# plan language.
.PHONY: cover
cover: ## statement coverage by package, by the tests of all packages together; without the race detector
	CGO_ENABLED=0 $(GO) test -timeout 20m -coverpkg=$(PKGS) -coverprofile=cover.all.out $(PKGS) | grep -v 'coverage: '
	@awk '/^mode/ { next } { split($$1, at, ":"); of = at[1]; sub(/\/[^\/]*$$/, "", of) } \
	  !($$1 in known) { known[$$1] = 1; all[of] += $$2; all["all"] += $$2 } \
	  $$3 > 0 && !($$1 in run) { run[$$1] = 1; tried[of] += $$2; tried["all"] += $$2 } \
	  END { for (of in all) printf "%5.1f %%  %s\n", 100 * tried[of] / all[of], of }' cover.all.out | sort -k3

.PHONY: interop
interop: export TOKGATE_INTEROP = 1
interop: export TOKGATE_VAR_url = $(URL)
interop: export TOKGATE_VAR_engine = $(or $(ENGINE),openai)
interop: export TOKGATE_VAR_api_key = $(API_KEY)
interop: export TOKGATE_VAR_served_as = $(SERVED_AS)
interop: export TOKGATE_VAR_model = $(MODEL)
interop: ## try URL= [ENGINE= API_KEY= SERVED_AS=], or every known server on the PATH with MODEL=; prints what works
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -run '^TestInterop$$' ./cmd/tokgate -v

# Real engines are installed into a separate folder. No build and no test needs them.
REAL_DIR ?= /tmp/tokgate-real
ENGINES  ?= vllm llama.cpp transformers litellm gateways
TRIED    := $(filter-out gateways,$(ENGINES))

.PHONY: real
real: build ## install real engines and gateways and try them, into docs/engines-tried.md and docs/gateways.md; ENGINES= for some of them; 8 GB and half an hour
	plans/real/install.sh $(REAL_DIR) $(ENGINES)
	$(if $(TRIED),CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestReal$$' -timeout 3h -v -real $(REAL_DIR) -engines '$(TRIED)' -real-page $(CURDIR)/docs/engines-tried.md)
	$(if $(filter gateways,$(ENGINES)),CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^(TestRealGateways|TestLongSessionsOnTheServer)$$' -timeout 1h -v -session-seconds 60 -real $(REAL_DIR) -real-gateways-page $(CURDIR)/docs/gateways.md)

.PHONY: real-leaving
real-leaving: build ## let 400 clients leave each of ENGINES that `make real` installed, into docs/engines-tried.md; minutes
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestRealLeaving$$' -timeout 1h -v -real $(REAL_DIR) -engines '$(filter-out litellm,$(TRIED))' -real-leaving-page $(CURDIR)/docs/engines-tried.md

.PHONY: real-apis
real-apis: build ## send the same prompts by chat, Responses and Messages to those of ENGINES that have them, and ask for embeddings, into docs/engines-tried.md; minutes
	plans/real/install.sh $(REAL_DIR) $(filter vllm llama.cpp,$(ENGINES))
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestRealAPIs$$' -timeout 1h -v -real $(REAL_DIR) -engines '$(filter vllm llama.cpp,$(ENGINES))' -real-apis-page $(CURDIR)/docs/engines-tried.md

.PHONY: real-rate
real-rate: build ## search the rate that llama.cpp's server carries, twice, with `make real`'s engine; 16 minutes, on an idle machine
	@for i in 1 2; do PATH=$(REAL_DIR)/bin:$$PATH $(BIN) run --out results/real-rate/$$i --var model=$(REAL_DIR)/tiny.gguf plans/real/rate.hcl || true; done

.PHONY: real-bench
real-bench: build ## gate vLLM, installed by `make real`, and have its own client compute the figures of "vllm bench serve"; minutes
	PATH=$(REAL_DIR)/bin:$$PATH $(BIN) run --only gate --out results/real-bench --var model=$(REAL_DIR)/tiny plans/real/vllm.hcl || true
	$(REAL_DIR)/vllm/bin/python plans/real/bench.py results/real-bench

PEERS_DIR ?= $(REAL_DIR)

.PHONY: peers
peers: build ## install other load generators and measure them beside tokgate, into docs/performance.md; 9 GB, 20 minutes and an idle machine
	plans/real/install.sh $(PEERS_DIR) vllm guidellm aiperf inference-perf
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestPeers$$' -timeout 2h -v -peers $(PEERS_DIR) -peers-page $(CURDIR)/docs/performance.md

# At 2,000 requests a second the run must turn out invalid; that is what this target shows.
LAG_PORT ?= 18099
.PHONY: lag
lag: build ## send 200 and 2,000 requests a second to the built-in server over sockets: how late they are, and TTFT beside the server's own; five minutes, on an idle machine
	@mkdir -p results; $(BIN) sim --listen 127.0.0.1:$(LAG_PORT) --log results/lag-server.jsonl >/dev/null & server=$$!; trap "kill $$server" EXIT; sleep 1; \
	$(BIN) run --out results/lag --var url=http://127.0.0.1:$(LAG_PORT) plans/real/lag.hcl || true
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestLag$$' -v -lag $(CURDIR)/results/lag -lag-log $(CURDIR)/results/lag-server.jsonl | grep ' at '

.PHONY: replay
replay: build ## replay traces on the built-in server over sockets: when 200 requests a second are sent, and what its prefix cache finds; four minutes, on an idle machine
	@mkdir -p results; awk 'BEGIN { srand(1); print "ts,in,out"; for (; t < 60; t -= log(1 - rand()) / 100) printf "%.6f,16,4\n", t }' > results/times.csv
	@$(BIN) sim --listen 127.0.0.1:$(LAG_PORT) --profile plans/traces/large.json >/dev/null & server=$$!; trap "kill $$server" EXIT; sleep 1; \
	$(BIN) run --out results/replay --var url=http://127.0.0.1:$(LAG_PORT) --var times=$(CURDIR)/results/times.csv plans/real/replay.hcl || true
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestReplayed$$' -v -replayed $(CURDIR)/results/replay -replayed-plan $(CURDIR)/plans/real/replay.hcl \
	-replayed-var url=http://127.0.0.1:$(LAG_PORT) -replayed-var times=$(CURDIR)/results/times.csv | grep ' at '

.PHONY: served
served: build ## send a system prompt, conversations, a data set and a trace to the built-in server over HTTP and in virtual time, into docs/characteristics.md; seven minutes, on an idle machine
	@mkdir -p results; awk 'BEGIN { for (i = 0; i < 150; i++) { s = ""; srand(i % 8); for (j = 0; j < 800; j++) s = s int(900 * rand()) " "; \
	  srand(100 + i); for (j = 0; j < 1200; j++) s = s int(900 * rand()) " "; printf "{\"prompt\": \"%s\"}\n", s } }' > results/rows.jsonl
	@$(BIN) sim --listen 127.0.0.1:$(LAG_PORT) --profile prefix-cache >/dev/null & server=$$!; trap "kill $$server" EXIT; sleep 1; \
	$(BIN) run --out results/served --var url=http://127.0.0.1:$(LAG_PORT) --var rows=$(CURDIR)/results/rows.jsonl plans/real/served.hcl
	@$(BIN) run --simulate --out results/simulated --var rows=$(CURDIR)/results/rows.jsonl plans/real/served.hcl
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestServed$$' -v -served $(CURDIR)/results/served -served-simulated $(CURDIR)/results/simulated -served-page $(CURDIR)/docs/characteristics.md

.PHONY: tinymodel
tinymodel: ## teach a small model for gates on answers on a real engine, plans/real/answers.hcl: 20 minutes of a core at most
	plans/real/install.sh $(REAL_DIR) vllm
	CGO_ENABLED=0 $(GO) test ./answers -count=1 -run '^TestLessons$$' -lessons $(REAL_DIR)/lessons.jsonl
	$(REAL_DIR)/vllm/bin/python plans/real/taught.py $(REAL_DIR) 3600 exec/prompt/words.go $(REAL_DIR)/lessons.jsonl
	$(REAL_DIR)/vllm/bin/python plans/real/spoil.py $(REAL_DIR)

ROWS ?= .
SAME ?= 20
.PHONY: real-answers
real-answers: build ## gate the model of `make tinymodel` on vLLM against what an engine may make of it, into docs/engines-tried.md; ROWS= for some rows; 30 minutes
	@[ -e $(REAL_DIR)/int4-cut/model.safetensors ] || $(MAKE) tinymodel
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestRealAnswers$$' -timeout 3h -v -real $(REAL_DIR) -real-answers '$(ROWS)' -real-answers-same $(SAME) -real-answers-page $(CURDIR)/docs/engines-tried.md

# A browser and two npm packages are installed into a temporary folder, at the versions that
# were last tried. No build needs them. Pages have the names of their plans, and limits.json
# sets limits for some of them.
BROWSER_DIR ?= /tmp/tokgate-browser
PAGES       := results/browser
SEEN        := demo reference compare three rates people burst trace
REPORTS     ?= $(foreach p,$(SEEN),$(PAGES)/$(p)/report.html $(PAGES)/$(p)-brief.html) $(PAGES)/together.html $(PAGES)/history.html

.PHONY: browser
browser: build ## look at reports in headless Chromium: REPORTS="a.html …"; SHOTS=folder keeps pictures and PDFs
	@command -v chromium >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium nodejs npm fonts-dejavu-core; }
	@mkdir -p $(BROWSER_DIR) && cd $(BROWSER_DIR) && [ -d node_modules/puppeteer-core ] && [ -d node_modules/axe-core ] || npm install --silent --no-audit --no-fund --prefix $(BROWSER_DIR) puppeteer-core@24.43.1 axe-core@4.14.1
	@if [ "$(origin REPORTS)" = file ]; then report/html/browser/pages.sh $(BIN) $(PAGES) $(SEEN); fi
	@NODE_PATH=$(BROWSER_DIR)/ CHROMIUM=$$(command -v chromium) node report/html/browser/check.mjs $(if $(SHOTS),--shots $(SHOTS)) $(REPORTS)

# tokgate and the server are two processes, and each runs on a processor of its own.
BENCH    ?= .
TOKGATE_BENCH_CPU ?= $(shell command -v taskset >/dev/null 2>&1 && [ "$$(nproc)" -gt 1 ] && echo 1)

.PHONY: bench
bench: export TOKGATE_BENCH_CPU := $(TOKGATE_BENCH_CPU)
bench: ## run the benchmarks (BENCH= for some); speeds are ratios within one run, an error where one is 1.5 times the committed one
	@set -o pipefail; show() { grep -vE '^(PASS|ok|\?|goos|goarch|cpu)' || true; }; \
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime 1s $$($(GO) list $(PKGS) | grep -v /exec/client$$) | show && \
	CGO_ENABLED=0 $(GO) test -c -o bin/client.test ./exec/client && \
	$(if $(TOKGATE_BENCH_CPU),taskset -c 0) bin/client.test -test.run '^$$' -test.bench '$(BENCH)' -test.benchmem -test.benchtime 1s | show
	@$(if $(findstring Pollers,$(BENCH:.=Pollers)),TOKGATE_BENCH_CPU= bin/client.test -test.run '^$$' -test.bench Pollers -test.benchtime 1s)

# These are seeded gates and searches in virtual time, on servers whose true values are known.
define characteristics
	@mkdir -p results/characteristics
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLong(Characteristics|MovingTogether)$$' -timeout 60m -gates $(1) -crowds $(5) -table $(CURDIR)/results/characteristics/gates.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongWindows$$' -timeout 24h -windows $(10) -window-levels 8,32 -windows-table $(CURDIR)/results/characteristics/windows.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongWindowsFurther$$' -timeout 24h -windows-further $(10) -window-levels 8,32 -windows-further-table $(CURDIR)/results/characteristics/windows-further.md
	@cat results/characteristics/windows-further.md >> results/characteristics/windows.md
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -run '^TestLongRedEarly$$' -timeout 60m -red-early $(10) -red-early-table $(CURDIR)/results/characteristics/red-early.md
	@cat results/characteristics/red-early.md >> results/characteristics/windows.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongCapacities$$' -timeout 24h -capacities $(12) -capacities-table $(CURDIR)/results/characteristics/capacities.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongFailuresOfEqualServers$$' -timeout 60m -gates 500 -failures-table $(CURDIR)/results/characteristics/failures.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongRateCharacteristics$$' -timeout 24h -rates $(4) $(6) -rates-table $(CURDIR)/results/characteristics/rates.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongRateCapacityCharacteristics$$' -timeout 24h -rate-searches $(5) $(6) -rate-searches-table $(CURDIR)/results/characteristics/rate-searches.md
	@cat results/characteristics/rate-searches.md >> results/characteristics/rates.md
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -run '^TestLongSustained$$' -timeout 24h -sustained $(9) -sustained-table $(CURDIR)/results/characteristics/sustained.md
	@cat results/characteristics/sustained.md >> results/characteristics/rates.md
	@CGO_ENABLED=0 $(GO) test ./search -run '^TestLongCharacteristics$$' -timeout 60m -searches $(2) -table $(CURDIR)/results/characteristics/searches.md
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -run '^TestLongSearchesJudgedAgain$$' -timeout 60m -searches-again 110
	@CGO_ENABLED=0 $(GO) test ./assert/nights -run '^TestLongCharacteristics$$' -timeout 60m -plans $(3) -many $(8) -table $(CURDIR)/results/characteristics/nights.md
	@CGO_ENABLED=0 $(GO) test ./assert/compare -run '^TestLongOddAnswersCharacteristics$$' -odd-gates 2000 -v
	@CGO_ENABLED=0 $(GO) test ./assert/compare -run '^TestLongOddTokensCharacteristics$$' -token-gates 200
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -run '^TestLongAnswersCharacteristics$$' -timeout 5h -answers-gates $(7) -answers-table $(CURDIR)/results/characteristics/answers.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongStagedCharacteristics$$' -timeout 60m -staged $(11) -staged-table $(CURDIR)/results/characteristics/staged.md
	@CGO_ENABLED=0 $(GO) test ./assert -run '^TestLongStagedMembersAtTheirLimits$$' -timeout 5h -members $(13) -members-table $(CURDIR)/results/characteristics/members.md
	@cat results/characteristics/members.md >> results/characteristics/staged.md
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -run '^TestLongResidue$$' -timeout 60m -residues 100 -residues-table $(CURDIR)/results/characteristics/residue.md
	@CGO_ENABLED=0 $(GO) test ./cmd/tokgate -run '^TestLongEmbeddingsCharacteristics$$' -embedding-gates 100 -embedding-table $(CURDIR)/results/characteristics/embeddings.md
	@CGO_ENABLED=0 $(GO) test ./assert/bisect -run '^TestLongBisections$$' -timeout 60m -histories 200 -histories-table $(CURDIR)/results/characteristics/bisections.md
	@cat results/characteristics/gates.md results/characteristics/failures.md results/characteristics/searches.md > results/characteristics/table.md
endef

.PHONY: characteristics characteristics-full
characteristics characteristics-full: export GOGC ?= 400
characteristics: ## measure how often verdicts and capacities are wrong, on simulated servers; a minute or two
	$(call characteristics,500,500,300,100,40,,5,60,20,30,100,10,20)
	@cat results/characteristics/table.md results/characteristics/windows.md results/characteristics/capacities.md results/characteristics/staged.md results/characteristics/bisections.md results/characteristics/nights.md results/characteristics/rates.md results/characteristics/answers.md results/characteristics/embeddings.md results/characteristics/residue.md

characteristics-full: ## the same with more of them, rates on six servers, into docs/characteristics.md; hours
	$(call characteristics,6000,5000,300,1000,1000,-rates-full,100,60,300,1000,4000,200,2000)
	@CGO_ENABLED=0 $(GO) test ./report/html -count=1 -run '^TestLongNoViewContradictsItself$$' -timeout 60m -documents 5000
	@sed -i -e '/<!-- table -->/,/<!-- end of table -->/{//!d}' -e '/<!-- table -->/r results/characteristics/table.md' docs/characteristics.md
	@sed -i -e '/<!-- windows -->/,/<!-- end of windows -->/{//!d}' -e '/<!-- windows -->/r results/characteristics/windows.md' docs/characteristics.md
	@sed -i -e '/<!-- capacities -->/,/<!-- end of capacities -->/{//!d}' -e '/<!-- capacities -->/r results/characteristics/capacities.md' docs/characteristics.md
	@sed -i -e '/<!-- staged -->/,/<!-- end of staged -->/{//!d}' -e '/<!-- staged -->/r results/characteristics/staged.md' docs/characteristics.md
	@sed -i -e '/<!-- bisections -->/,/<!-- end of bisections -->/{//!d}' -e '/<!-- bisections -->/r results/characteristics/bisections.md' docs/characteristics.md
	@sed -i -e '/<!-- rates -->/,/<!-- end of rates -->/{//!d}' -e '/<!-- rates -->/r results/characteristics/rates.md' docs/characteristics.md
	@sed -i -e '/<!-- nights -->/,/<!-- end of nights -->/{//!d}' -e '/<!-- nights -->/r results/characteristics/nights.md' docs/characteristics.md
	@sed -i -e '/<!-- residue -->/,/<!-- end of residue -->/{//!d}' -e '/<!-- residue -->/r results/characteristics/residue.md' docs/characteristics.md
	@sed -i -e '/<!-- planted -->/,/<!-- end of planted -->/{//!d}' -e '/<!-- planted -->/r results/characteristics/answers.md' docs/characteristics.md
	@sed -i -e '/<!-- embeddings -->/,/<!-- end of embeddings -->/{//!d}' -e '/<!-- embeddings -->/r results/characteristics/embeddings.md' docs/characteristics.md

RUNS ?= 100

.PHONY: strength
strength: ## plant regressions in every gate that ships and that init writes, RUNS each (default 100), into docs/characteristics.md; an hour, RESUME=1 goes on with the last one
	@mkdir -p results/characteristics
	@[ -n "$(RESUME)" ] || rm -f results/characteristics/strength.jsonl
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestLong(ShippedGates|InitNoticesTenfold|InitMeasured|InitUpgrade|StrengthTable)$$' -timeout 5h -strong $(RUNS) \
	  -strong-log $(CURDIR)/results/characteristics/strength.jsonl -strong-table $(CURDIR)/results/characteristics/gates-strength.md
	@[ -n "$(RESUME)" ] || rm -f results/characteristics/told.jsonl
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestLongStrengthTold(Table)?$$' -timeout 5h -told 30 \
	  -told-log $(CURDIR)/results/characteristics/told.jsonl -told-table $(CURDIR)/results/characteristics/told.md
	@sed -i -e '/<!-- told -->/,/<!-- end of told -->/{//!d}' -e '/<!-- told -->/r results/characteristics/told.md' docs/characteristics.md
	@sed -i -e '/<!-- strength -->/,/<!-- end of strength -->/{//!d}' -e '/<!-- strength -->/r results/characteristics/gates-strength.md' docs/characteristics.md

SOAK ?= 1000

.PHONY: soak
soak: ## start and end SOAK servers (default 1000) in every way, and look for what stays behind; Linux
	CGO_ENABLED=0 $(GO) test ./exec/server -run '^TestSoak$$' -timeout 60m -soak $(SOAK) -v

.PHONY: faults
faults: ## have every call to the disk fail, edit what is left 2,000 times and flip 10,000 bits of it; minutes
	CGO_ENABLED=0 $(GO) test ./record/... ./exec/server/lease -count=1 -run 'DiskFaults$$'
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run 'DiskFaults$$|TestLongDamage$$' -timeout 60m -v -args -disk-step 1 -damage 1

CRASHES ?= 1

.PHONY: crashes
crashes: ## kill, stop and cut off 390 real runs at random times (CRASHES=0.1 for a tenth), 100 of them with workers, which takes root, and look at what they leave; Linux
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^Test(Stack|Worker)?Crashes$$' -timeout 90m -v -args -crashes $(CRASHES)

BUSY ?= 10

.PHONY: apart
apart: ## compare the clocks of four workers in time namespaces, 20 ms away, and let them pass 100 barriers; as root
	CGO_ENABLED=0 $(GO) test ./exec/fleet -count=1 -run '^TestLongWorkersApart$$' -v -args -apart

.PHONY: busy
busy: ## beside four busy loops, run the demo and two capacity searches BUSY times each (default 10) and six times as many comparisons, over sockets; hours
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestBusy$$' -timeout 12h -v -args -busy $(BUSY)

REPEATS ?= 1000

.PHONY: repeat
repeat: ## simulate a plan REPEATS times (default 1000) on 1, 2 and 8 processors, niced beside busy loops, and compare bytes
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestLongSimulationsRepeat$$' -timeout 5h -v -repeats $(REPEATS)

BEFORE ?= 2307d49d

.PHONY: price
price: ## simulate the closed loops of commit BEFORE's README, docs and plans by it and by this tree, into docs/performance.md; minutes
	@rm -rf results/before && git clone -q . results/before && git -C results/before checkout -q $(BEFORE)
	@CGO_ENABLED=0 $(GO) -C results/before build -trimpath -o bin/tokgate ./cmd/tokgate
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestPrice$$' -before $(CURDIR)/results/before

.PHONY: reference
reference: build ## simulate the plans of five published systems and compare, into docs/reference.md; minutes
	CGO_ENABLED=0 $(GO) test ./cmd/tokgate -count=1 -run '^TestLongReferenceDocument$$' -timeout 30m -reference $(CURDIR)/$(BIN)

.PHONY: fit
fit: ## fit the profiles of the published systems to their figures (SYSTEM= for one of them); an hour
	CGO_ENABLED=0 $(GO) test ./sim -count=1 -run '^TestFit$$' -timeout 5h -v -fit $(or $(SYSTEM),all)

.PHONY: lint
lint: ## gofmt, vet, staticcheck, actionlint, shellcheck, and the shipped plans' format
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "not gofmt-clean:"; echo "$$bad"; exit 1; fi
	$(GO) vet $(PKGS)
	$(GO) run $(STATICCHECK) $(PKGS)
	$(GO) run $(ACTIONLINT) .github/workflows/*.yml docs/workflows/*.yml
	@if command -v shellcheck >/dev/null 2>&1; then shellcheck .ci/run .ci/concurrent report/html/browser/pages.sh .github/action/*.sh .github/release-try.sh .github/junit-consumers/run; else echo "no shellcheck: shell scripts are not linted"; fi
	$(GO) mod tidy -diff
	$(GO) run ./cmd/tokgate fmt --check --recursive plans

.PHONY: actions
actions: export TOKGATE_ACTION_BUILDS = 1
actions: ## execute the action, the workflows in docs/workflows and the snippets in docs/ci.md
	CGO_ENABLED=0 $(GO) test -count=1 -run '^Test(Long)?(Action|Workflow|DocumentedCI|DocumentedAction|Cancelled)' ./cmd/tokgate

.PHONY: junit-consumers
junit-consumers: ## load JUnit files of runs in the libraries that CI systems parse them with (npm, PyPI)
	@GO="$(GO)" .github/junit-consumers/run
.PHONY: runtimes
runtimes: ## start the built-in server in containers of the real docker and podman, where they are
	TOKGATE_TEST_RUNTIMES=1 CGO_ENABLED=0 $(GO) test ./exec/server -count=1 -run '^TestRealRuntimes$$' -timeout 20m -v

KUBE := $(CURDIR)/results/kube
KUBERNETES := k8s.io/component-base/version.gitVersion=v1.34.4 -X k8s.io/component-base/version.gitMajor=1 \
  -X k8s.io/component-base/version.gitMinor=34 -X k8s.io/client-go/pkg/version.gitVersion=v1.34.4
TIMES ?= 1
PARALLEL ?= 4

.PHONY: kube
kube: export CGO_ENABLED := 0
kube: build ## try pods and workers on a real Kubernetes, TIMES each, PARALLEL at once; builds it first (10 minutes of two cores, 3 GB); root, kubectl, containerd, runc, CNI plugins
	@mkdir -p $(KUBE)
	$(GO) -C internal/kubetest build -trimpath -ldflags '-s -w -X $(KUBERNETES)' -o $(KUBE)/programs ./programs
	$(GO) -C internal/kubetest build -trimpath -ldflags '-s -w' -o $(KUBE)/container ./container
	$(GO) -C internal/kubetest test . -count=1 -timeout 12h -v -parallel $(PARALLEL) -run '$(RUN)' -args -programs $(KUBE)/programs -container $(KUBE)/container \
	  -tokgate $(CURDIR)/$(BIN) -folder $(KUBE)/cluster -times $(TIMES) $(if $(HOLD),-hold)

.PHONY: newcomer
newcomer: ## a newcomer's path, from git clone to the first verdict on an endpoint of their own; minutes
	.github/newcomer.sh $(CURDIR)

.PHONY: fuzz
fuzz: ## fuzz everything that reads foreign bytes, FUZZTIME each (default 30s)
	@set -e; for pkg in $$($(GO) list $(PKGS)); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s $$pkg; \
	  done; \
	done

.PHONY: golden
golden: ## rewrite the golden files from the current output
	$(GO) test $$(grep -rlE 'flag\.Bool\("update"' --include='*_test.go' . | xargs -n1 dirname | sort -u) -update

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin results cover.*out
