# The bench's commands; `make help` lists them. Every step of the set-up is skipped when it is already done.
# The set-up speaks on stderr, so that `make judge` and the like can be piped. A command's needs are built first, so that `make qualify` and `make test` work on a fresh Debian or Ubuntu machine.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CANDIDATE ?= this-machine
SCENARIO ?=
REQUIREMENT ?=
RUN ?= runs/latest
NAMED_RUN = '$(or $(RUN),$(error RUN is empty. Name a run, RUN=runs/<run-id>, or leave RUN out for the latest))'

BOOTSTRAP := ansible/bootstrap
PYTHON := .venv/bin/python
BIN := .venv/bin
RIG := $(BIN)/daq-bench
DAQWRITER := build/native-writer/daqwriter
AGENT := build/telemetry_agent.pyz
AGENT_SOURCES := $(shell find agents/daq_bench/telemetry_agent -name '*.py')
READER := build/analysis_reader.pyz
READER_SOURCES := $(shell find agents/daq_bench/analysis_reader -name '*.py')
PROFILES := --candidate '$(CANDIDATE)' $(if $(SCENARIO),--scenario '$(SCENARIO)') $(if $(REQUIREMENT),--requirement '$(REQUIREMENT)') $(if $(INVENTORY),--inventory '$(INVENTORY)')
FLEET = $(if $(CANDIDATES),--candidates '$(CANDIDATES)') $(if $(JOBS),--jobs '$(JOBS)')
# Programs that a scenario needs beyond a record and scans are installed and built when a scenario asks for them.
SCENARIO_FILE := $(wildcard $(SCENARIO) inventory/scenarios/$(SCENARIO).yml)
ASKS = $(if $(SCENARIO_FILE),$(shell grep -oE '^  ($(1)):' $(SCENARIO_FILE)))
PYTHON_GROUP ?= $(if $(call ASKS,concurrent_analysis),analysis,qualify)
# Commands that read all bundles have the index over them (docs/adr/0032).
OVER_ALL := trend site lot nightly history gather
# A checker trusts and judges by its own files, never by the bundle's.
OWN := $(if $(SCENARIO),--scenario '$(SCENARIO)') $(if $(REQUIREMENT),--requirement '$(REQUIREMENT)') $(if $(INVENTORY),--inventory '$(INVENTORY)')
# A reader of several runs names its own profiles otherwise: `trend` and `lot` have options of these names.
READER := $(if $(SCENARIO),--own-scenario '$(SCENARIO)') $(if $(REQUIREMENT),--own-requirement '$(REQUIREMENT)') $(if $(INVENTORY),--inventory '$(INVENTORY)')
PYTHON_PARTS := inventory robot-suites reports agents ansible native-writer/bench

# Ends a step of the set-up that has no script of its own: bash counts the seconds of a recipe's line.
TOOK = echo "$@: ready after $$SECONDS s" >&2

export ANSIBLE_CONFIG := $(CURDIR)/ansible/ansible.cfg
# Set in many containers: each process would compile our 400 modules again, 2 s of CPU at each start of rig.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help discover doctor contribute-corpus schemas setup setup-qualify native-qualify python-test golden apt apt-test python influxd influxd2 test-influx2 soak fuzz build native native-portable agent qualify resume bench bench-table self-qualify crash-trials check test study audit lint lint-docs lint-python lint-types lint-imports \
        lint-robot lint-ansible lint-collection collection keywords-doc lint-shell lint-native validate provision verify restore unlock tables site history gather \
        report compare lot judge check-bundle trend nightly baseline replay dashboards observability influx-start influx-stop virtual-up virtual-down apt-virtual lock sbom clean clean-allowed

help: ## list the commands
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  CANDIDATE=$(CANDIDATE) SCENARIO=$(SCENARIO) REQUIREMENT=$(REQUIREMENT) SCALE= DURATION= TARGET= choose what qualify does;"
	@echo "  RUN=runs/<run-id> names a run (default: the latest)"

setup: apt ## install packages, Python environment and InfluxDB, build the native writer and the agent
	@# The three have nothing in common but the machine, so that they run at the same time.
	@$(MAKE) --no-print-directory --jobs=3 python influxd native
	@$(MAKE) --no-print-directory agent

apt:
	@$(BOOTSTRAP)/apt-packages.sh apt-runtime.txt >&2

apt-test:
	@$(BOOTSTRAP)/apt-packages.sh apt-runtime.txt apt-test.txt >&2

apt-virtual:
	@$(BOOTSTRAP)/apt-packages.sh apt-runtime.txt apt-virtual.txt >&2

python:
	@$(BOOTSTRAP)/python.sh $(PYTHON_GROUP) >&2

python-test:
	@$(BOOTSTRAP)/python.sh test >&2

influxd:
	@$(BOOTSTRAP)/influxd.sh >&2

influxd2:
	@$(BOOTSTRAP)/influxd2.sh >&2

build: native agent ## build daqwriter, hotstore, netprobe, the telemetry agent and the analysis reader

native: build/native-writer/build.ninja
	@cmake --build build/native-writer --target daqwriter daqwriter_portable hotstore netprobe | tail -n 1 >&2; $(TOOK)

native-portable: build/native-writer/build.ninja ## build daqwriter for candidates that lack its libraries
	@cmake --build build/native-writer --target daqwriter_portable | tail -n 1 >&2

build/native-writer/build.ninja: native-writer/CMakeLists.txt native-writer/portable.cmake agents/hot_store/CMakeLists.txt agents/network_probe/CMakeLists.txt
	@cmake -S native-writer -B build/native-writer -G Ninja -DCMAKE_BUILD_TYPE=Release > /dev/null

agent: $(AGENT) $(READER)
	@:

$(AGENT): $(AGENT_SOURCES)
	@mkdir -p build
	@$(PYTHON) agents/build_pyz.py --output $(AGENT)

$(READER): $(READER_SOURCES)
	@mkdir -p build
	@$(PYTHON) agents/build_pyz.py --package analysis_reader --output $(READER)

# The programs that this qualification needs, and no others: a first run begins some minutes earlier.
QUALIFY_PROGRAMS := daqwriter $(if $(call ASKS,hot_store),hotstore) $(if $(call ASKS,lan),netprobe) $(if $(filter this-machine%,$(CANDIDATE)),,daqwriter_portable hotstore netprobe)

native-qualify: build/native-writer/build.ninja
	@cmake --build build/native-writer --target $(QUALIFY_PROGRAMS) | tail -n 1 >&2; $(TOOK)

setup-qualify: apt
	@$(MAKE) --no-print-directory --jobs=3 python influxd native-qualify
	@$(MAKE) --no-print-directory agent

qualify: setup-qualify ## qualify a candidate; without arguments this machine, at a tenth of the load, in a few minutes (CANDIDATES=a,b JOBS=2: several, at the same time, TOGETHER=1: their bursts begin at one moment; SIGN_KEY=FILE signs the run, CHALLENGE=NONCE is sealed with it)
	@$(RIG) qualify $(PROFILES) $(FLEET) $(if $(SCALE),--scale $(SCALE)) $(if $(DURATION),--duration $(DURATION)) \
	    $(if $(TARGET),--target '$(TARGET)') $(if $(INFLUX_URL),--influx-url '$(INFLUX_URL)') $(if $(KEEP_TUNING),--keep-tuning) $(if $(CHALLENGE),--challenge='$(CHALLENGE)') \
	    $(if $(TOGETHER),--together) $(if $(WAIT),--wait '$(WAIT)')

resume: setup ## start the interrupted run RUN again with what it was asked for; an endurance run goes on with the budget that is left
	@$(RIG) resume $(NAMED_RUN) $(if $(INFLUX_URL),--influx-url '$(INFLUX_URL)')

bench: apt python native agent influxd ## measure daqwriter against fio, memory and the original applications; cost of the agent, 150 agents into one InfluxDB; reports on long runs; fleets (PARTS=write,agent QUICK=1 BENCH_DIR=)
	@$(RIG) bench $(if $(PARTS),--parts '$(PARTS)') $(if $(QUICK),--quick) $(if $(BENCH_DIR),--scratch '$(BENCH_DIR)')

bench-table: python ## write what `make bench` measured last into the READMEs (FILE=agents/README.md PARTS=agent,ingest; default: native-writer/bench's)
	@$(PYTHON) -m daq_bench.bench_rounds.publish --write '$(or $(FILE),native-writer/bench/README.md)' --parts '$(or $(PARTS),write,null-sink,budget)'

self-qualify: python-test ## let the bench judge simulated runs whose truth it does not know, and write docs/self-qualification.md, or -thermal.md (RUNS=1000 SEED=0 JOBS= SIMULATED=snb-100s or thermal; SAMPLE=folder: one bundle with its report instead)
	@PYTHONPATH=inventory:robot-suites:agents:reports $(PYTHON) -m daq_bench.simulation $(if $(RUNS),--runs '$(RUNS)') $(if $(SEED),--seed '$(SEED)') $(if $(JOBS),--jobs '$(JOBS)') \
	    $(if $(SIMULATED),--scenario '$(SIMULATED)') $(if $(SAMPLE),--sample '$(SAMPLE)')

crash-trials: setup apt-virtual ## kill one process of the bench in real runs on light candidates, judge, mend, resume (TRIALS=200 SEED=0; WRITE=1: the table into docs/crash-trials.md; HAZARDS=light or virtual: faults below and around a candidate instead, each TRIALS times, of ONLY=a,b)
	@PYTHONPATH=inventory:robot-suites:agents:reports:ansible/tests $(PYTHON) -m daq_bench.crash_trials $(if $(TRIALS),--trials '$(TRIALS)') $(if $(SEED),--seed '$(SEED)') $(if $(WRITE),--write) $(if $(HAZARDS),--hazards '$(if $(filter 1,$(HAZARDS)),light,$(HAZARDS))') $(if $(ONLY),--only '$(ONLY)')

discover: python ## look at a server and propose its inventory entry (HOST=user@server or local, BMC=user@address, PORT= KEY= SSH_ARGS= NAME= OUT=; DISCOVER_OPTIONS='--bmc-ca-file ...')
	@$(RIG) discover --host='$(HOST)' $(if $(PORT),--port='$(PORT)') $(if $(KEY),--key='$(KEY)') $(if $(SSH_ARGS),--ssh-args='$(SSH_ARGS)') \
	    $(if $(NAME),--name='$(NAME)') $(if $(BMC),--bmc='$(BMC)') $(if $(OUT),--out='$(OUT)') $(DISCOVER_OPTIONS)

doctor: python ## say what is missing on this machine, and on CANDIDATE where one is named, with remedies (JSON=1; exit status 1: something is)
	@$(RIG) doctor $(if $(filter command environment,$(origin CANDIDATE)),'$(CANDIDATE)') $(if $(INVENTORY),--inventory '$(INVENTORY)') $(if $(JSON),--json)

validate: python ## check the inventory, scenarios, requirements and metrics
	@$(RIG) validate $(PROFILES)

report: python ## render the reports of RUN again and seal them (SIGN_KEY=FILE signs them where the evidence verified; SCENARIO= REQUIREMENT= INVENTORY=: yours)
	@$(RIG) report $(NAMED_RUN) $(OWN)

schemas: python ## renew the JSON Schemas of the documents that have types (bench_model.evidence.schemas)
	@PYTHONPATH=inventory $(PYTHON) -m daq_bench.bench_model.evidence.schemas inventory/schemas

golden: python-test ## renew the stored report that reports/tests compares with; look at the difference before you commit it
	@GOLDEN=renew LC_ALL=C.UTF-8 $(BIN)/pytest -q reports/tests/test_golden.py

compare: python ## compare candidates or the configurations of one run: RUNS="runs/a runs/b" (PRICES=, WEIGHTS=; ALLOWED_SIGNERS=FILE, else ACCEPT_UNSIGNED=1; OUT=build/comparison; CHECK=comparison.json)
	$(if $(RUNS),,$(error which runs? Name them: make compare RUNS="runs/a runs/b"))
	@$(RIG) compare $(RUNS) $(if $(PRICES),--prices '$(PRICES)') $(if $(WEIGHTS),--weights '$(WEIGHTS)') $(if $(ACCEPT_UNSIGNED),--accept-unsigned) $(READER) \
	    $(if $(CHECK),--check '$(CHECK)',--output '$(or $(OUT),build/comparison)')

lot: python ## what drives of one model say about their lot: RUNS="runs/a runs/b", or RUNS=runs MODEL= (LOT=drives in it, STRIPE=, MODEL=, JUDGED=requirement; OUT=build/lot; CHECK=lot.json)
	$(if $(RUNS),,$(error which runs? Name them: make lot RUNS="runs/a runs/b"))
	@$(RIG) lot $(RUNS) $(if $(LOT),--lot-size '$(LOT)') $(if $(STRIPE),--stripe '$(STRIPE)') \
	    $(if $(MODEL),--model '$(MODEL)') $(if $(JUDGED),--requirement '$(JUDGED)') $(READER) $(if $(CHECK),--check '$(CHECK)',--output '$(or $(OUT),build/lot)')

judge: python ## recompute the verdict of RUN from its bundle and print it
	@$(RIG) judge $(NAMED_RUN)

tables: python ## write RUN's numbers as tables for spreadsheets, pandas and databases into the new folder OUT (FORMAT=parquet; docs/reading-a-bundle.md)
	$(if $(OUT),,$(error which folder? Name a new one: make tables RUN=runs/<run-id> OUT=tables))
	@$(RIG) tables $(NAMED_RUN) --output '$(OUT)' $(if $(FORMAT),--format '$(FORMAT)')

check-bundle: python ## check RUN's seals and signatures (ALLOWED_SIGNERS=FILE: only trusted ones count), its profiles against yours (SCENARIO= REQUIREMENT=), its CHALLENGE=; recompute its verdict and every number of its reports
	@$(RIG) check-bundle $(NAMED_RUN) $(OWN) $(if $(CHALLENGE),--challenge='$(CHALLENGE)')

trend: python ## render the trend of CANDIDATE over its runs: trend-<candidate>/ (RUNS=runs SCENARIO= OUTPUT=)
	@$(RIG) trend $(or $(RUNS),runs) --candidate '$(CANDIDATE)' $(if $(SCENARIO),--scenario '$(SCENARIO)') $(if $(OUTPUT),--output '$(OUTPUT)')

history: python ## read what is new among the bundles into the index that trend, site, lot and nightly ask (RUNS=runs; REBUILD=1: all of them again)
	@$(RIG) history $(or $(RUNS),runs) $(if $(REBUILD),--rebuild)

site: python ## write a static site over all runs and nights: index with filters, a page for each candidate (RUNS=runs NIGHTS=nightly OUT=build/site COPY=1: with the documents)
	@$(RIG) site $(or $(RUNS),runs) --nights '$(or $(NIGHTS),nightly)' --output '$(or $(OUT),build/site)' $(if $(COPY),--copy)

nightly: setup ## run the acceptance subset on all candidates, compare, exit by outcome (CANDIDATES=a,b JOBS=8 SCENARIO= RESUME=nightly/<id> TIME_LIMIT_H= KEEP_PASSES=)
	@$(RIG) nightly $(FLEET) $(if $(SCENARIO),--scenario '$(SCENARIO)') $(if $(INVENTORY),--inventory '$(INVENTORY)') \
	    $(if $(RESUME),--resume '$(RESUME)') $(if $(TIME_LIMIT_H),--time-limit-h $(TIME_LIMIT_H)) $(if $(KEEP_PASSES),--keep-passes $(KEEP_PASSES)) $(if $(INFLUX_URL),--influx-url '$(INFLUX_URL)')

gather: python ## copy sealed bundles into a store of several control nodes (STORE=/srv/runs or s3://bucket/runs; RUNS=runs FETCH=1: out of it; WHOLE=1: hash what is there; docs/fleet.md)
	$(if $(STORE),,$(error which store? Name it: make gather STORE=/srv/runs))
	@$(RIG) gather --store '$(STORE)' $(if $(RUNS),--runs '$(RUNS)') $(if $(FETCH),--fetch) $(if $(WHOLE),--whole)

baseline: python ## make RUN what later nights are compared with
	@$(RIG) baseline $(NAMED_RUN)

replay: setup ## deliver the telemetry of RUN that InfluxDB has not got (ALL=1: all of it, because InfluxDB lost some)
	@$(RIG) influx start
	@$(RIG) replay $(NAMED_RUN) $(if $(INVENTORY),--inventory '$(INVENTORY)') $(if $(INFLUX_URL),--influx-url '$(INFLUX_URL)') $(if $(ALL),--all)

provision: setup ## apply the tuning to CANDIDATE and leave it so (facts go to build/facts); CHECK=1 only tells what it would do
	@$(RIG) provision $(PROFILES) $(if $(CHECK),--check)

verify: setup ## read CANDIDATE's tuning back
	@$(RIG) verify $(PROFILES)

unlock: python ## forget a lock on CANDIDATE whose owner is gone (refuses while he lives)
	@$(RIG) unlock $(PROFILES)

restore: setup ## put CANDIDATE back to how it was before provisioning
	@$(RIG) restore $(PROFILES)

contribute-corpus: python ## add what a tool really printed of your server to inventory/corpus, without what identifies it: CASE=name KIND=smartctl RAW=file SOURCE="..." LICENCE=... (inventory/corpus/README.md)
	@PYTHONPATH=inventory:robot-suites:agents $(PYTHON) agents/contribute_corpus.py --case="$${CASE:-}" --kind="$${KIND:-}" --raw="$${RAW:-}" --source="$${SOURCE:-}" --licence="$${LICENCE:-}"

keywords-doc: python ## write libdoc's pages of the Robot keywords (OUT=build/keywords)
	@PYTHONPATH=inventory:robot-suites $(PYTHON) robot-suites/libraries/keywords_doc.py '$(or $(OUT),build/keywords)'

collection: python ## lay the Ansible content out as the collection daq.storage_bench and pack it: build/collection/*.tar.gz (its test: make lint-collection)
	@$(PYTHON) $(BOOTSTRAP)/collection.py build/collection
	@$(BIN)/ansible-galaxy collection build --force --output-path build/collection build/collection/ansible_collections/daq/storage_bench

dashboards: python ## write Grafana's dashboards, reports/dashboards/*.json; TRY=http://HOST:8086 runs their queries there instead
	@$(RIG) dashboards $(if $(TRY),try --influx-url '$(TRY)',write)

observability: python influxd ## set up the inventory's InfluxDB and Grafana servers (ACTION=verify, ACTION=restore; LIMIT=host)
	@$(BIN)/ansible-playbook ansible/playbooks/observability.yml --extra-vars observability_action=$(or $(ACTION),apply) \
	    $(if $(INVENTORY),--inventory '$(INVENTORY)') $(if $(LIMIT),--limit '$(LIMIT)') $(ANSIBLE_ARGUMENTS)

influx-start: influxd python ## start the bench's own InfluxDB on 127.0.0.1
	@$(RIG) influx start

influx-stop: python ## stop it
	@$(RIG) influx stop

virtual-up: apt-virtual python ## build (once) and start the virtual candidate; VIRTUAL_OPTIONS='--vendor dell ...' (docs/virtual-candidate.md)
	@$(RIG) virtual up $(VIRTUAL_OPTIONS)

virtual-down: python ## end it and remove everything of it but the caches
	@$(RIG) virtual down

test test-influx2: export PYTHON_GROUP = test

$(OVER_ALL): export PYTHON_GROUP = $(if $(call ASKS,concurrent_analysis),analysis,fleet)

# apt-test first: it brings the compiler's cache.
test: apt-test apt-virtual setup $(if $(INFLUX2),influxd2) ## install what is needed; lint, type checks, tests of every part, the whole bench (SANITIZERS=1: native tests with sanitizers too; INFLUX2=1: those of test-influx2 too; CAMPAIGNS=here: scenarios on this machine for real; CAMPAIGNS=1: on the virtual candidate too)
	@SANITIZERS=$(SANITIZERS) INFLUX2=$(INFLUX2) CAMPAIGNS=$(CAMPAIGNS) $(PYTHON) .ci/checks.py

check: python-test ## for work in progress: lints, types and the tests that import what changed, in under two minutes (BASE=commit to compare with)
	@$(PYTHON) .ci/check.py .ci/docs.py

test-influx2: setup apt-test influxd2 ## the tests that need a real InfluxDB 2, which is built first (Go and Rust; some minutes, once)
	@INFLUX2=only $(PYTHON) .ci/checks.py

soak: setup ## telemetry under outages of InfluxDB: nothing may be lost (MINUTES=10; as root also a full disk)
	@SOAK_MINUTES=$(or $(MINUTES),10) INFLUXD_BIN=build/tools/influxd LC_ALL=C.UTF-8 $(BIN)/pytest -q -s robot-suites/tests/test_outages.py

fuzz: apt-test ## look for inputs that break the readers of daqwriter's and hotstore's files, with clang's libFuzzer (MINUTES=6 of all together, SECONDS= each)
	@native-writer/tests/fuzz/run.sh $(if $(SECONDS),$(SECONDS),--share $(or $(MINUTES),6))

study: python-test ## measure how often the verdict errs, by simulation, and the comparison, and write it into docs/ (RUNS=500; minutes)
	@$(PYTHON) inventory/studies/error_rates.py $(if $(RUNS),--runs $(RUNS)) --write docs/statistics.md
	@$(PYTHON) inventory/studies/comparison_errors.py $(if $(RUNS),--runs $(RUNS)) --write docs/comparison.md
	@$(PYTHON) inventory/studies/scan_lengths.py --runs $(or $(RUNS),2000) --write docs/scenarios-scans.md

audit: python-test ## the project's own adversary: wrong evidence of every scenario, and every noise process, against the functions that judge; renews docs/statistics.md (MOST=mutants of a class and scenario, RUNS=runs of a process, SCENARIOS=a,b: these alone)
	@$(PYTHON) -m daq_bench.audit $(if $(MOST),--most $(MOST)) $(if $(SCENARIOS),--scenarios '$(SCENARIOS)',--write docs/statistics.md)
	$(if $(SCENARIOS),,@$(PYTHON) inventory/studies/error_rates.py $(if $(RUNS),--runs $(RUNS)) --write docs/statistics.md)

lint: python-test apt-test lint-docs lint-python lint-types lint-imports lint-robot lint-ansible lint-collection lint-shell lint-native ## all static checks

lint-docs:
	@python3 .ci/docs.py

lint-python:
	@$(BIN)/ruff check $(PYTHON_PARTS) .ci
	@$(BIN)/ruff format --check $(PYTHON_PARTS) .ci

lint-types:
	@$(BIN)/mypy inventory/daq_bench/bench_model inventory/studies/error_rates.py inventory/studies/comparison_errors.py inventory/studies/scan_lengths.py inventory/studies/trend_rates.py inventory/studies/daq_bench/audit robot-suites/daq_bench/rig robot-suites/daq_bench/simulation robot-suites/daq_bench/crash_trials robot-suites/daq_bench/virtual_candidate robot-suites/libraries reports/daq_bench/bench_report reports/daq_bench/bench_dashboards agents/daq_bench/telemetry_agent agents/daq_bench/analysis_reader robot-suites/daq_bench/bench_rounds robot-suites/daq_bench/fleet_bench native-writer/bench/daq_bench/writer_bench agents/daq_bench/telemetry_bench agents/daq_bench/hot_store_bench reports/daq_bench/reporting_bench .ci/checks.py .ci/check.py .ci/docs.py

lint-imports:
	@$(BIN)/lint-imports --no-cache --no-logo

lint-robot:
	@$(BIN)/robocop check robot-suites
	@$(BIN)/robocop format --check --no-overwrite robot-suites

# ansible-lint looks for ansible-playbook on PATH.
lint-ansible:
	@cd ansible && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint --offline --strict -q

lint-collection: python-test
	@$(BOOTSTRAP)/sanity.sh

lint-shell:
	@shellcheck --external-sources --source-path=SCRIPTDIR $(BOOTSTRAP)/*.sh native-writer/tests/portable_test.sh native-writer/tests/fuzz/run.sh .ci/run robot-suites/daq_bench/virtual_candidate/guest/configure.sh
	@shellcheck --shell=sh robot-suites/daq_bench/virtual_candidate/guest/init

lint-native:
	@python3 native-writer/tests/rooms.py
	@clang-format --dry-run -Werror native-writer/src/*/*.h native-writer/src/*/*.cpp native-writer/tests/*.h native-writer/tests/*.cpp native-writer/tests/fuzz/*.h native-writer/tests/fuzz/*.cpp agents/hot_store/src/*.h agents/hot_store/src/*.cpp agents/hot_store/tests/*.h agents/hot_store/tests/*.cpp agents/network_probe/src/*.h agents/network_probe/src/*.cpp agents/network_probe/tests/*.cpp

LISTS := $(BOOTSTRAP)/requirements
LOCKED := --generate-hashes --universal --python-version 3.11 --no-annotate --quiet --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
lock: ## renew the requirements' exact versions and hashes from pyproject.toml (UPGRADE=1: to the newest versions)
	@rm -rf build/lock && python3 -m venv build/lock && build/lock/bin/pip install --quiet uv
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --extra test --extra analysis --extra fleet --output-file $(LISTS)-test.txt
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --extra analysis --extra fleet --constraint $(LISTS)-test.txt --output-file $(LISTS)-analysis.txt
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --extra fleet --constraint $(LISTS)-test.txt --output-file $(LISTS)-fleet.txt
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --constraint $(LISTS)-test.txt --output-file $(LISTS)-qualify.txt
	@echo uv | build/lock/bin/uv pip compile $(LOCKED) - --output-file $(LISTS)-uv.txt
	@printf '%s\n' 'cyclonedx-python-lib[json-validation]' pip-audit | build/lock/bin/uv pip compile $(LOCKED) - --output-file $(LISTS)-sbom.txt
	@rm -rf build/lock

sbom: apt influxd ## write what the bench is made of as CycloneDX, build/sbom.cdx.json (AUDIT=1: look its Python packages up in the known vulnerabilities)
	@test -x build/sbom/bin/pip || python3 -m venv build/sbom
	@build/sbom/bin/pip install --quiet --require-hashes --requirement $(LISTS)-sbom.txt >&2
	@build/sbom/bin/python $(BOOTSTRAP)/sbom.py build/sbom.cdx.json
	$(if $(AUDIT),@for list in $(LISTS)-*.txt; do build/sbom/bin/pip-audit --strict --require-hashes --disable-pip --requirement $$list; done)

clean-allowed: python
	@$(RIG) clean

# In this order, also under --jobs: nothing is taken down while something is still to be put back.
clean: clean-allowed ## remove build results (run bundles and state/ stay); refuses while a candidate is still to be restored
	@$(MAKE) --no-print-directory influx-stop virtual-down
	rm -rf build .venv
