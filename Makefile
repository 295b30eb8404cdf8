# The bench's commands; `make help` lists them. Every step of the set-up is skipped when it is already done.
# The set-up speaks on stderr, so that `make judge` and the like can be piped. A command's needs are built first, so that `make qualify` and `make test` work on a fresh Debian or Ubuntu machine.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

TARGETS := help discover doctor contribute-corpus schemas setup setup-qualify native-qualify python-test golden coverage mutants writable packages packages-test \
    packages-virtual apt apt-test python \
    influxd influxd2 test-influx2 test-grafana grafana-pictures test-systems soak fuzz build native native-portable agent qualify plan resume watch bench bench-table self-qualify samples \
    crash-trials check slow test study audit lint lint-docs lint-python lint-types lint-imports lint-robot lint-ansible \
    lint-collection collection keywords-doc lint-shell lint-native validate provision verify restore unlock tables site export-metrics \
    history gather report compare lot judge check-bundle trend nightly baseline replay dashboards observability influx-start \
    influx-stop virtual-up virtual-down apt-virtual lock sbom container clean clean-allowed
.PHONY: $(TARGETS)
include ansible/bootstrap/variables.mk

BOOTSTRAP := ansible/bootstrap
VENV_PYTHON := .venv/bin/python
BIN := .venv/bin
RIG := DAQ_BENCH_BY_MAKE=1 $(BIN)/daq-bench
DAQWRITER := build/native-writer/daqwriter
AGENT := build/telemetry_agent.pyz
AGENT_SOURCES := $(shell find agents/daq_bench/telemetry_agent agents/daq_bench/candidate_kit -name '*.py')
READER := build/analysis_reader.pyz
READER_SOURCES := $(shell find agents/daq_bench/analysis_reader agents/daq_bench/candidate_kit -name '*.py')
RUN_OR_LATEST = $(call quoted,$(or $(call given,RUN),runs/latest))
# A checker trusts and judges by its own files, never by the bundle's.
OWN := $(call option,--scenario,SCENARIO) $(call option,--requirement,REQUIREMENT) $(call option,--inventory,INVENTORY)
PROFILES := $(call option,--candidate,CANDIDATE) $(OWN)
FLEET := $(call option,--candidates,CANDIDATES) $(call option,--jobs,JOBS)
# Programs that a scenario needs beyond a record and scans are installed and built when a scenario asks for them.
ASKS = $(if $(call given,SCENARIO),$(shell grep --devices=skip --directories=skip -hoE -e '^  ($1):' -- \
    $(call quoted,$(call given,SCENARIO)) inventory/scenarios/$(call quoted,$(call given,SCENARIO)).yml 2> /dev/null))
PYTHON_GROUP ?= $(if $(call ASKS,concurrent_analysis),analysis,qualify)
# Commands that read all bundles have the index over them (docs/adr/0032).
OVER_ALL := trend site export-metrics lot nightly history gather
PYTHON_PARTS := inventory robot-suites reports agents ansible native-writer/bench

export ANSIBLE_CONFIG := $(CURDIR)/ansible/ansible.cfg
# Set in many containers: each process would compile our 400 modules again, 2 s of CPU at each start of rig.
unexport PYTHONDONTWRITEBYTECODE

help: ##2 list the commands
	@awk -f $(BOOTSTRAP)/help.awk <(printf '%s\n' $(foreach target,$(readers),'$(target) $(reads.$(target))')) Makefile

setup: packages ##2 install packages, Python environment, InfluxDB; build native programs
	@# The three have nothing in common but the machine, so that they run at the same time.
	@$(MAKE) --no-print-directory --jobs=3 python influxd native
	@$(MAKE) --no-print-directory agent

# The first step of every set-up: what cannot be written here is said once, not by each step that comes after.
writable:
	@$(BOOTSTRAP)/writable.sh

packages: writable
	@$(BOOTSTRAP)/packages.sh runtime $$($(BOOTSTRAP)/influxd.sh --purposes) >&2

packages-test: writable
	@$(BOOTSTRAP)/packages.sh runtime test >&2

packages-virtual: writable
	@$(BOOTSTRAP)/packages.sh runtime virtual >&2

# Their names when only Debian and Ubuntu were known.
apt: packages
apt-test: packages-test
apt-virtual: packages-virtual

python:
	@$(BOOTSTRAP)/python.sh $(call quoted,$(PYTHON_GROUP)) >&2
	@$(BOOTSTRAP)/generated.sh >&2

python-test:
	@$(BOOTSTRAP)/python.sh test >&2
	@$(BOOTSTRAP)/generated.sh >&2

influxd:
	@$(BOOTSTRAP)/influxd.sh >&2

influxd2:
	@$(BOOTSTRAP)/influxd2.sh >&2

build: native agent ##2 build the native programs, the telemetry agent and the analysis reader

native:
	@$(BOOTSTRAP)/native.sh daqwriter daqwriter_portable hotstore netprobe >&2

native-portable: ##2 build daqwriter for candidates that lack its libraries
	@$(BOOTSTRAP)/native.sh daqwriter_portable >&2

agent: $(AGENT) $(READER)
	@:

$(AGENT): $(AGENT_SOURCES)
	@mkdir -p build
	@$(VENV_PYTHON) agents/build_pyz.py --output $(AGENT)

$(READER): $(READER_SOURCES)
	@mkdir -p build
	@$(VENV_PYTHON) agents/build_pyz.py --package analysis_reader --output $(READER)

# The programs that this qualification needs, and no others: a first run begins some minutes earlier.
QUALIFY_PROGRAMS := daqwriter $(if $(call ASKS,hot_store),hotstore) $(if $(call ASKS,lan),netprobe) $(if $(filter-out this-machine%,$(subst $(comma), ,$(call given,CANDIDATE) $(call given,CANDIDATES))),daqwriter_portable hotstore netprobe)

native-qualify:
	@$(BOOTSTRAP)/native.sh $(QUALIFY_PROGRAMS) >&2

setup-qualify: packages
	@$(MAKE) --no-print-directory --jobs=3 python influxd native-qualify
	@$(MAKE) --no-print-directory agent

qualify: setup-qualify ##1 qualify a candidate; by default this machine, at a tenth of the load
	@$(RIG) qualify $(PROFILES) $(FLEET) $(call option,--scale,SCALE) $(call option,--duration,DURATION) \
	    $(call option,--target,TARGET) $(call option,--influx-url,INFLUX_URL) $(call switch,--keep-tuning,KEEP_TUNING) $(call option,--challenge,CHALLENGE) \
	    $(call switch,--together,TOGETHER) $(call option,--wait,WAIT) $(call switch,--yes,YES)

plan: python ##1 say what a qualification costs, and whether it can end in PASS
	@$(RIG) plan $(PROFILES) $(call option,--scale,SCALE) $(call option,--duration,DURATION) $(call option,--target,TARGET) \
	    $(call option,--rate,RATE) $(call switch,--json,JSON)

resume: setup ##1 start the interrupted run RUN again, with what it was asked for
	@$(RIG) resume $(RUN_OR_LATEST) $(call option,--influx-url,INFLUX_URL) $(call switch,--yes,YES)

watch: python ##1 show the runs that are going on, those in RUNS=FOLDER
	@$(RIG) watch $(call option,--runs,RUNS) $(call switch,--once,ONCE) $(call switch,--json,JSON)

bench: packages python native agent influxd ##3 measure the bench itself: daqwriter, agent, hot store, reports, fleets
	@$(RIG) bench $(call option,--parts,PARTS) $(call switch,--quick,QUICK) $(call option,--scratch,BENCH_DIR)

bench-table: python ##3 write what `make bench` measured last into the READMEs
	@$(VENV_PYTHON) -m daq_bench.bench_rounds.publish --write $(call default,FILE,native-writer/bench/README.md) --parts $(call default,PARTS,write$(comma)null-sink$(comma)budget)

self-qualify: python-test ##3 let the bench judge simulated runs whose truth it does not know
	@PYTHONPATH=inventory:robot-suites:agents:reports $(VENV_PYTHON) -m daq_bench.simulation $(call option,--runs,RUNS) $(call option,--seed,SEED) $(call option,--jobs,JOBS) \
	    $(call option,--scenario,SIMULATED) $(call option,--shipped,SHIPPED) $(call option,--sample,SAMPLE)

samples: python-test ##3 make one of each document from simulated servers, and docs/samples.md
	@PYTHONPATH=inventory:robot-suites:agents:reports $(VENV_PYTHON) -m daq_bench.samples $(call option,--output,OUT)

crash-trials: setup packages-virtual ##3 kill one process of the bench in real runs, judge, mend, resume
	@PYTHONPATH=inventory:robot-suites:agents:reports:ansible/tests $(VENV_PYTHON) -m daq_bench.crash_trials $(call option,--trials,TRIALS) $(call option,--seed,SEED) $(call switch,--write,WRITE) $(if $(filter 1,$(call given,HAZARDS)),--hazards=light,$(call option,--hazards,HAZARDS)) $(call option,--only,ONLY)

discover: python ##1 look at a server (HOST=user@server, or local); propose its inventory entry
	@$(RIG) discover $(call option,--host,HOST) $(call option,--port,PORT) $(call option,--key,KEY) $(call option,--ssh-args,SSH_ARGS) \
	    $(call option,--name,NAME) $(call option,--bmc,BMC) $(call option,--out,OUT) $(call several,DISCOVER_OPTIONS)

doctor: python ##1 say what is missing here and on CANDIDATE, and how to mend it
	@$(RIG) doctor $(if $(call given,CANDIDATE),-- $(call quoted,$(call given,CANDIDATE))) $(call option,--inventory,INVENTORY) $(call switch,--json,JSON)

validate: python ##1 check the inventory, scenarios, requirements and metrics
	@$(RIG) validate $(PROFILES)

report: python ##1 render the reports of RUN again and seal them
	@$(RIG) report $(RUN_OR_LATEST) $(OWN)

schemas: python ##3 write the JSON Schemas of the documents that have types
	@PYTHONPATH=inventory:agents $(VENV_PYTHON) -m daq_bench.bench_model.evidence.schemas inventory/schemas

golden: python-test ##3 renew the stored report that reports/tests compares with
	@GOLDEN=renew LC_ALL=C.UTF-8 $(BIN)/pytest -q reports/tests/test_golden.py

compare: python ##1 compare candidates, or the configurations of one run: RUNS="runs/a runs/b"
	@$(RIG) compare $(call several,RUNS) $(call option,--prices,PRICES) $(call option,--weights,WEIGHTS) $(call switch,--accept-unsigned,ACCEPT_UNSIGNED) \
	    $(call option,--inventory,INVENTORY) $(call option,--own-scenario,SCENARIO) $(call option,--own-requirement,REQUIREMENT) \
	    $(or $(call option,--check,CHECK),--output=$(call default,OUT,build/comparison))

lot: python ##1 say what drives of one model tell about their lot: RUNS="runs/a runs/b"
	@$(RIG) lot $(call several,RUNS) $(call option,--lot-size,LOT) $(call option,--stripe,STRIPE) \
	    $(call option,--model,MODEL) $(call option,--requirement,JUDGED) $(call option,--inventory,INVENTORY) \
	    $(call option,--own-scenario,SCENARIO) $(call option,--own-requirement,REQUIREMENT) $(or $(call option,--check,CHECK),--output=$(call default,OUT,build/lot))

judge: python ##1 recompute the verdict of RUN from its bundle
	@$(RIG) judge $(RUN_OR_LATEST)

tables: python ##1 write RUN's numbers as CSV or Parquet tables into the new folder OUT
	@$(RIG) tables $(RUN_OR_LATEST) $(call option,--output,OUT) $(call option,--format,FORMAT)

check-bundle: python ##1 check RUN's seals and signatures; recompute its verdict and numbers
	@$(RIG) check-bundle $(RUN_OR_LATEST) $(OWN) $(call option,--challenge,CHALLENGE)

trend: python ##1 render the trend of CANDIDATE over its runs: trend-<candidate>/
	@$(RIG) trend $(or $(call several,RUNS),runs) --candidate=$(call default,CANDIDATE,this-machine) $(call option,--scenario,SCENARIO) $(call option,--output,OUTPUT)

history: python ##1 bring the index over the bundles up to date, which other commands read
	@$(RIG) history $(or $(call several,RUNS),runs) $(call switch,--rebuild,REBUILD)

export-metrics: python ##1 write the newest runs' outcomes and margins for Prometheus, OUT=FILE.prom
	@$(RIG) export-metrics $(or $(call several,RUNS),runs) --output=$(call default,OUT,build/daq-bench.prom)

site: python ##1 write a static site over all runs and nights
	@$(RIG) site $(or $(call several,RUNS),runs) --nights=$(call default,NIGHTS,nightly) --output=$(call default,OUT,build/site) $(call switch,--copy,COPY)

nightly: setup ##1 run the acceptance subset on all candidates, compare, exit by outcome
	@$(RIG) nightly $(FLEET) $(call option,--scenario,SCENARIO) $(call option,--inventory,INVENTORY) \
	    $(call option,--resume,RESUME) $(call option,--time-limit-h,TIME_LIMIT_H) $(call option,--keep-passes,KEEP_PASSES) $(call option,--influx-url,INFLUX_URL)

gather: python ##1 copy sealed bundles into a store that several control nodes share
	@$(RIG) gather $(call option,--store,STORE) $(call option,--runs,RUNS) $(call switch,--fetch,FETCH) $(call switch,--whole,WHOLE)

baseline: python ##1 choose RUN as the run that later nights are compared with
	@$(RIG) baseline $(RUN_OR_LATEST)

replay: setup ##1 resend telemetry of RUN that InfluxDB lacks (ALL=1: all of it)
	@$(RIG) influx start
	@$(RIG) replay $(RUN_OR_LATEST) $(call option,--inventory,INVENTORY) $(call option,--influx-url,INFLUX_URL) $(call switch,--all,ALL)

provision: setup ##1 tune CANDIDATE and leave it so; CHECK=1 only tells what it would do
	@$(RIG) provision $(PROFILES) $(call switch,--check,CHECK)

verify: setup ##1 read CANDIDATE's tuning back
	@$(RIG) verify $(PROFILES)

unlock: python ##1 remove a stale lock on CANDIDATE; refuses while its owner lives
	@$(RIG) unlock $(PROFILES)

restore: setup ##1 put CANDIDATE back to how it was before provisioning
	@$(RIG) restore $(PROFILES)

contribute-corpus: python ##1 add what a tool printed of your server to inventory/corpus
	@PYTHONPATH=inventory:robot-suites:agents $(VENV_PYTHON) agents/contribute_corpus.py --case=$(call default,CASE) --kind=$(call default,KIND) --raw=$(call default,RAW) \
	    --source=$(call default,SOURCE) --licence=$(call default,LICENCE)

keywords-doc: python ##3 write libdoc's pages of the Robot keywords, the library DaqBench first
	@PYTHONPATH=inventory:robot-suites:agents $(VENV_PYTHON) robot-suites/libraries/keywords_doc.py $(call default,OUT,build/keywords)

collection: python ##3 pack the Ansible content as a collection: build/collection/*.tar.gz
	@$(VENV_PYTHON) $(BOOTSTRAP)/collection.py build/collection
	@$(BIN)/ansible-galaxy collection build --force --output-path build/collection build/collection/ansible_collections/daq/storage_bench

dashboards: python ##1 write Grafana's dashboards, or run their queries at TRY=http://HOST:8086
	@$(RIG) dashboards $(if $(call given,TRY),try $(call option,--influx-url,TRY),write)

observability: python influxd ##1 set up the inventory's InfluxDB and Grafana (ACTION=verify or restore)
	@$(BIN)/ansible-playbook ansible/playbooks/observability.yml --extra-vars observability_action=$(call default,ACTION,apply) \
	    $(call option,--inventory,INVENTORY) $(call option,--limit,LIMIT) $(call several,ANSIBLE_ARGUMENTS)

influx-start: influxd python ##1 start the bench's own InfluxDB on 127.0.0.1
	@$(RIG) influx start

influx-stop: python ##1 stop it
	@$(RIG) influx stop

virtual-up: packages-virtual python ##1 build (once) and start the virtual candidate
	@$(RIG) virtual up $(call several,VIRTUAL_OPTIONS)

virtual-down: python ##1 end the virtual candidate and remove everything of it but the caches
	@$(RIG) virtual down

test test-influx2: export PYTHON_GROUP = test
# Warnings are errors in what is tested: for a user, of another compiler, they are not.
test: export WERROR = ON

$(OVER_ALL): export PYTHON_GROUP = $(if $(call ASKS,concurrent_analysis),analysis,fleet)

# packages-test first: it brings the compiler's cache.
test: packages-test packages-virtual setup ##3 set up; lints, types, tests of every part, the whole bench
	@$(foreach name,SANITIZERS INFLUX2 CAMPAIGNS FULL,$(name)=$(call quoted,$(filter-out 0,$(call given,$(name))))) $(VENV_PYTHON) .ci/checks.py

check: python-test ##3 lints, types and tests of what changed (BASE=commit), in under a minute
	@$(VENV_PYTHON) .ci/check.py

coverage: python-test packages-test ##3 measure which branches of the rooms that decide and of daqwriter tests take
	@$(VENV_PYTHON) .ci/branches.py

mutants: python-test ##3 change the rooms that decide, one place at a time: a test must notice
	@$(VENV_PYTHON) .ci/mutants.py $(call option,--rooms,ROOMS) $(call option,--files,FILES) $(call option,--sample,SAMPLE) $(call option,--seed,SEED) $(call option,--jobs,JOBS)

slow: python-test ##3 write .ci/slow.txt, the tests that make check leaves out
	@$(VENV_PYTHON) .ci/slow.py

test-influx2: setup packages-test influxd2 ##3 tests that need a real InfluxDB 2, which is built first (Go and Rust)
	@INFLUX2=only $(VENV_PYTHON) .ci/checks.py

GRAFANA_TESTS = INFLUXD_BIN=build/tools/influxd INFLUXD2_BIN=$(wildcard build/tools/influxd2) LC_ALL=C.UTF-8 $(BIN)/pytest -q robot-suites/tests/test_boards_on_a_scene.py
NPM_NEEDED = command -v npm >/dev/null || { echo "no npm on PATH: install nodejs and npm (Debian: apt install npm)" >&2; exit 1; }
DRAWN = build/grafana-pictures

test-grafana: python-test influxd build/grafana/installed ##3 dashboards by Grafana's own published functions (node, npm, 100 packages)
	@$(GRAFANA_TESTS) -m 'grafana and not pictures'

grafana-pictures: python-test influxd build/grafana/installed $(DRAWN)/draw.js ##3 draw the dashboards with Grafana's components (npm, 600 MB; chromium)
	@$(GRAFANA_TESTS) -m 'pictures and not influx2'
	@ls $(DRAWN)/*.png

build/grafana/installed: robot-suites/tests/grafana/package.json robot-suites/tests/grafana/package-lock.json
	@$(NPM_NEEDED)
	@mkdir -p build/grafana && cp $^ build/grafana
	@npm ci --prefix build/grafana --ignore-scripts --no-audit --no-fund >&2
	@touch $@

# Pictures alone: what these packages need in turn is not locked, and no check rests on it.
$(DRAWN)/draw.js: robot-suites/tests/grafana/draw.jsx robot-suites/tests/grafana/panels.js
	@$(NPM_NEEDED)
	@npm install --prefix $(DRAWN) --ignore-scripts --no-audit --no-fund --no-package-lock --save-exact @grafana/data@11.6.9 @grafana/ui@11.6.9 esbuild@0.25.12 react@18.3.1 react-dom@18.3.1 >&2
	@NODE_PATH=$(DRAWN)/node_modules $(DRAWN)/node_modules/@esbuild/*/bin/esbuild robot-suites/tests/grafana/draw.jsx --bundle --outfile=$@ \
	    '--define:process.env.NODE_ENV="production"' --define:global=window --loader:.svg=dataurl --loader:.woff2=empty --loader:.ttf=empty --log-level=error \
	    $(foreach name,ui data,--alias:@grafana/$(name)=$(CURDIR)/$(DRAWN)/node_modules/@grafana/$(name)/dist/cjs/index.cjs)

test-systems: packages-test packages-virtual python-test native agent influxd ##3 try the set-up on the systems of docs/supported-systems.md (root)
	@LC_ALL=C.UTF-8 $(BIN)/pytest -q -m systems ansible/tests

soak: setup ##3 telemetry under outages of InfluxDB: nothing may be lost (MINUTES=10)
	@SOAK_MINUTES=$(call default,MINUTES,10) INFLUXD_BIN=build/tools/influxd LC_ALL=C.UTF-8 $(BIN)/pytest -q -s robot-suites/tests/test_outages.py

fuzz: packages-test ##3 feed bad files to daqwriter and hotstore (MINUTES= in all, SECONDS= each)
	@native-writer/tests/fuzz/run.sh $(if $(call given,SECONDS),$(call default,SECONDS),--share $(call default,MINUTES,6))

study: python-test ##3 measure by simulation how often the verdict errs, and write it into docs/
	@$(VENV_PYTHON) inventory/studies/error_rates.py $(call option,--runs,RUNS) --write docs/statistics.md
	@$(VENV_PYTHON) inventory/studies/range_rates.py $(call option,--runs,RUNS) --write docs/statistics.md
	@$(VENV_PYTHON) inventory/studies/trend_rates.py --write docs/trend.md
	@$(VENV_PYTHON) inventory/studies/night_rates.py $(call option,--runs,RUNS) --write docs/trend.md
	@$(VENV_PYTHON) inventory/studies/comparison_errors.py $(call option,--runs,RUNS) --write docs/comparison.md
	@$(VENV_PYTHON) inventory/studies/scan_lengths.py --runs $(call default,RUNS,2000) --write docs/scenarios-scans.md

audit: python-test ##3 spoil good evidence of every scenario: none may pass
	@$(VENV_PYTHON) -m daq_bench.audit $(call option,--most,MOST) $(or $(call option,--scenarios,SCENARIOS),--write docs/statistics.md)
	$(if $(call given,SCENARIOS),,@$(VENV_PYTHON) inventory/studies/error_rates.py $(call option,--runs,RUNS) --write docs/statistics.md)

lint: python-test packages-test lint-docs lint-python lint-types lint-imports lint-robot lint-ansible lint-collection lint-shell lint-native ##3 all static checks

lint-docs:
	@python3 .ci/docs.py

lint-python:
	@$(BIN)/ruff check $(PYTHON_PARTS) .ci conftest.py
	@$(BIN)/ruff format --check $(PYTHON_PARTS) .ci conftest.py

lint-types:
	@$(BIN)/mypy inventory/daq_bench/__init__.py inventory/daq_bench/bench_model agents/daq_bench/candidate_kit inventory/daq_bench/workloads inventory/studies/error_rates.py inventory/studies/comparison_errors.py inventory/studies/scan_lengths.py inventory/studies/trend_rates.py inventory/studies/daq_bench/audit robot-suites/daq_bench/rig robot-suites/daq_bench/simulation robot-suites/daq_bench/samples robot-suites/daq_bench/crash_trials robot-suites/daq_bench/virtual_candidate robot-suites/libraries robot-suites/DaqBench.py inventory/daq_bench/bundle reports/daq_bench/bench_report reports/daq_bench/bench_dashboards agents/daq_bench/telemetry_agent agents/daq_bench/analysis_reader robot-suites/daq_bench/bench_rounds robot-suites/daq_bench/fleet_bench native-writer/bench/daq_bench/writer_bench agents/daq_bench/telemetry_bench agents/daq_bench/hot_store_bench reports/daq_bench/reporting_bench .ci/checks.py .ci/check.py .ci/docs.py .ci/english.py .ci/slow.py .ci/branches.py .ci/mutants.py conftest.py

# The package lies in several folders: once it is imported, it tells all of them to who looks for its modules.
lint-imports:
	@PYTHONPATH=inventory:inventory/studies:robot-suites:reports:agents:native-writer/bench \
	  $(BIN)/python -c 'import daq_bench; from importlinter.cli import lint_imports_command; lint_imports_command()' --no-cache --no-logo

lint-robot:
	@$(BIN)/robocop check robot-suites
	@$(BIN)/robocop format --check --no-overwrite robot-suites

# ansible-lint looks for ansible-playbook on PATH.
lint-ansible:
	@cd ansible && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint --offline --strict -q

lint-collection: python-test
	@$(BOOTSTRAP)/sanity.sh

lint-shell:
	@shellcheck --external-sources --source-path=SCRIPTDIR $(BOOTSTRAP)/*.sh native-writer/old_glibc/stubs.sh native-writer/tests/portable_test.sh native-writer/tests/fuzz/run.sh .ci/run robot-suites/daq_bench/virtual_candidate/guest/configure.sh
	@shellcheck --shell=sh robot-suites/daq_bench/virtual_candidate/guest/init

lint-native:
	@python3 native-writer/tests/rooms.py
	@clang-format --dry-run -Werror native-writer/src/*/*.h native-writer/src/*/*.cpp native-writer/tests/*.h native-writer/tests/*.cpp native-writer/tests/fuzz/*.h native-writer/tests/fuzz/*.cpp native-writer/old_glibc/*.cpp agents/hot_store/src/*.h agents/hot_store/src/*.cpp agents/hot_store/tests/*.h agents/hot_store/tests/*.cpp agents/network_probe/src/*.h agents/network_probe/src/*.cpp agents/network_probe/tests/*.cpp

container: ##3 build the control node's image with buildah (docs/container.md)
	@buildah build --tag=daq-storage-bench:latest $(if $(call given,IMAGE),--build-arg=BASE=$(call quoted,$(call given,IMAGE))) \
	    $(if $(call given,SETUP_ENV),--secret=id=setup$(comma)src=$(call quoted,$(call given,SETUP_ENV))) .

LISTS := $(BOOTSTRAP)/requirements
LOCKED := --generate-hashes --universal --python-version 3.11 --no-annotate --quiet --custom-compile-command 'make lock' $(call switch,--upgrade,UPGRADE)
lock: ##3 renew the requirements' versions and hashes (UPGRADE=1: to the newest)
	@rm -rf build/lock && python3 -m venv build/lock && build/lock/bin/pip install --quiet uv
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --extra virtual --extra test --extra analysis --extra fleet --output-file $(LISTS)-test.txt
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --extra virtual --extra analysis --extra fleet --constraint $(LISTS)-test.txt --output-file $(LISTS)-analysis.txt
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --extra virtual --extra fleet --constraint $(LISTS)-test.txt --output-file $(LISTS)-fleet.txt
	@build/lock/bin/uv pip compile $(LOCKED) pyproject.toml --extra build --extra virtual --constraint $(LISTS)-test.txt --output-file $(LISTS)-qualify.txt
	@echo uv | build/lock/bin/uv pip compile $(LOCKED) - --output-file $(LISTS)-uv.txt
	@printf '%s\n' 'cyclonedx-python-lib[json-validation]' pip-audit | build/lock/bin/uv pip compile $(LOCKED) - --output-file $(LISTS)-sbom.txt
	@rm -rf build/lock

sbom: packages influxd ##3 write what the bench is made of as CycloneDX, build/sbom.cdx.json
	@test -x build/sbom/bin/pip || python3 -m venv build/sbom
	@build/sbom/bin/pip install --quiet --require-hashes --requirement $(LISTS)-sbom.txt >&2
	@build/sbom/bin/python $(BOOTSTRAP)/sbom.py build/sbom.cdx.json
	$(if $(filter 1,$(call given,AUDIT)),@for list in $(LISTS)-*.txt; do build/sbom/bin/pip-audit --strict --require-hashes --disable-pip --requirement $$list; done)

clean-allowed: python
	@$(RIG) clean

# In this order, also under --jobs: nothing is taken down while something is still to be put back.
clean: clean-allowed ##2 remove build results, unless a candidate is tuned; runs/ and state/ stay
	@$(MAKE) --no-print-directory influx-stop virtual-down
	rm -rf build .venv
