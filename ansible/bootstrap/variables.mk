# The variables that users give on make's command line, and the targets that read them. The Makefile includes this file first: a name
# that nobody reads (CANIDATE=) stops make before anything is expanded, installed, tuned or run.
#
# Promise: a given value is text. Make expands nothing in it, and `quoted` hands it to the shell as one word. A variable of the
# environment with such a name (HOST, OUT, JOBS, ...) is some other program's: it is neither read nor changed.
# Beyond reach: what a user writes as NAME:=, NAME!= or $(NAME)= is expanded by make itself before it reads any file.

given_names := $(strip $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
# Whatever shell was given, the refusal is said by the right one.
override SHELL := /bin/bash
override .SHELLFLAGS := -euo pipefail -c

# given: the value of a variable of the command line. quoted: a text as one word of the shell. option: --name='value' where it is given.
# default: the value as one word, or another text where none is given.
# switch: the option where the variable is 1. several: a list, each of its words quoted; patterns stand for files, as in a shell.
given = $(if $(filter override,$(origin $1)),$($1))
quoted = '$(subst ','\'',$1)'
option = $(if $(call given,$2),$1=$(call quoted,$(call given,$2)))
default = $(call quoted,$(or $(call given,$1),$2))
switch = $(if $(filter 1,$(call given,$2)),$1)
several = $(foreach item,$(call given,$1),$(foreach path,$(or $(wildcard $(item)),$(item)),$(call quoted,$(path))))

profiles := CANDIDATE SCENARIO REQUIREMENT INVENTORY
reads.discover := HOST BMC PORT KEY SSH_ARGS NAME OUT DISCOVER_OPTIONS
reads.doctor := CANDIDATE INVENTORY JSON
reads.validate := $(profiles)
reads.qualify := $(profiles) SCALE DURATION TARGET CANDIDATES JOBS TOGETHER WAIT INFLUX_URL KEEP_TUNING CHALLENGE SIGN_KEY YES
reads.plan := $(profiles) SCALE DURATION TARGET RATE JSON
reads.resume := RUN INFLUX_URL SIGN_KEY YES
reads.watch := RUNS ONCE JSON
reads.report := RUN SCENARIO REQUIREMENT INVENTORY SIGN_KEY ALLOWED_SIGNERS
reads.judge := RUN
reads.check-bundle := RUN SCENARIO REQUIREMENT INVENTORY CHALLENGE ALLOWED_SIGNERS
reads.tables := RUN OUT FORMAT ALLOWED_SIGNERS
reads.compare := RUNS PRICES WEIGHTS CHECK OUT SCENARIO REQUIREMENT INVENTORY ALLOWED_SIGNERS ACCEPT_UNSIGNED
reads.lot := RUNS LOT STRIPE MODEL JUDGED CHECK OUT SCENARIO REQUIREMENT INVENTORY ALLOWED_SIGNERS
reads.trend := RUNS CANDIDATE SCENARIO OUTPUT ALLOWED_SIGNERS
reads.history := RUNS REBUILD ALLOWED_SIGNERS
reads.export-metrics := RUNS OUT ALLOWED_SIGNERS
reads.site := RUNS NIGHTS OUT COPY ALLOWED_SIGNERS
reads.nightly := CANDIDATES JOBS SCENARIO INVENTORY RESUME TIME_LIMIT_H KEEP_PASSES INFLUX_URL SIGN_KEY ALLOWED_SIGNERS
reads.gather := STORE RUNS FETCH WHOLE
reads.baseline := RUN
reads.replay := RUN INVENTORY INFLUX_URL ALL
reads.provision := $(profiles) CHECK
reads.verify := $(profiles)
reads.restore := $(profiles)
reads.unlock := $(profiles)
reads.dashboards := TRY
reads.observability := ACTION INVENTORY LIMIT ANSIBLE_ARGUMENTS
reads.virtual-up := VIRTUAL_OPTIONS
reads.contribute-corpus := CASE KIND RAW SOURCE LICENCE
reads.bench := PARTS QUICK BENCH_DIR
reads.bench-table := FILE PARTS
reads.self-qualify := RUNS SEED JOBS SIMULATED SHIPPED SAMPLE
reads.samples := OUT
reads.mutants := ROOMS FILES SAMPLE SEED JOBS
reads.crash-trials := TRIALS SEED WRITE HAZARDS ONLY
reads.keywords-doc := OUT
reads.test := SANITIZERS INFLUX2 CAMPAIGNS FULL
reads.soak := MINUTES
reads.fuzz := MINUTES SECONDS
reads.study := RUNS
reads.audit := MOST RUNS SCENARIOS
reads.lock := UPGRADE
reads.sbom := AUDIT
reads.container := IMAGE SETUP_ENV
# What a target cannot do without, and an example.
needs.discover := HOST=user@server
needs.tables := OUT=tables
needs.compare := RUNS="runs/a runs/b"
needs.lot := RUNS="runs/a runs/b"
needs.gather := STORE=/srv/runs
readers := $(patsubst reads.%,%,$(filter reads.%,$(.VARIABLES)))

# Any target takes these from the environment, or from the command line: the scripts below this folder, pip, uv and Go read them.
passed_on := PYTHON PYTHON_GROUP BENCH_SKIP_PACKAGES INFLUXD_BIN INFLUX_ORG INFLUX_DATABASE INFLUX_BUCKET FUZZ_SECONDS BASE \
    PIP_INDEX_URL PIP_NO_INDEX PIP_FIND_LINKS WERROR PIP_CERT PIP_DEFAULT_TIMEOUT UV_DEFAULT_INDEX UV_HTTP_TIMEOUT UV_SYSTEM_CERTS SSL_CERT_FILE GOPROXY GOFLAGS GOSUMDB \
    CC CXX http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY

# Each is 1, or 0 or empty for no. CHECK is one for provision alone; SANITIZERS, INFLUX2 and CAMPAIGNS may say more.
switches := ACCEPT_UNSIGNED ALL AUDIT COPY FETCH FULL JSON KEEP_TUNING ONCE QUICK REBUILD TOGETHER UPGRADE WHOLE WRITE YES
may_be_empty := $(switches) SANITIZERS INFLUX2 CAMPAIGNS
# Several words with spaces between them, handed on as they are.
lists := DISCOVER_OPTIONS VIRTUAL_OPTIONS ANSIBLE_ARGUMENTS

comma := ,
define line_break :=


endef
known_variables := $(sort $(foreach target,$(readers),$(reads.$(target))) $(passed_on))
asked_targets := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
refused = $(shell printf '%s\n' $(call quoted,make: $1) >&2)$(error Nothing was done)
# In the words of daq-bench, which has the same function; a bare machine has no Python yet. nearest: of a name, among names, with an ending.
nearest = $(or $(shell python3 inventory/daq_bench/bench_model/base/nearest.py $(call quoted,$1) $(call quoted,$3) $2 2> /dev/null),Known: $(addsuffix $3,$2))

$(foreach name,$(filter-out $(known_variables),$(given_names)),\
    $(call refused,the bench has no variable $(name)=. $(call nearest,$(name),$(known_variables),=)))

# From here on a value is what was written, dollar signs included; `override` also keeps it out of the commands' environment.
$(foreach name,$(given_names),$(eval override $(name) := $$(value $(name))))
$(foreach name,$(filter $(passed_on) SIGN_KEY ALLOWED_SIGNERS,$(given_names)),$(eval export $(name)))

$(foreach name,$(given_names),\
    $(if $(findstring $(line_break),$($(name))),$(call refused,$(name)= has a line break. Write its value in one line))\
    $(if $(strip $($(name))),,$(if $(filter $(name),$(may_be_empty)),,$(call refused,$(name)= is empty. Give it a value$(comma) or leave $(name)= out))))
$(foreach name,$(filter $(switches),$(given_names)),\
    $(if $(filter-out 0 1,$($(name))),$(call refused,$(name)=$($(name)) is neither 1 (yes) nor 0 (no))))
$(foreach name,$(filter $(lists),$(given_names)),$(if $(findstring ',$($(name)))$(findstring ",$($(name)))$(findstring \,$($(name))),\
    $(call refused,$(name)= has a quote or a backslash: its words are divided by spaces alone. Call .venv/bin/daq-bench with the options)))

# A make within make has the variables of the one that called it, and builds what that one needs.
ifeq ($(MAKELEVEL),0)
$(foreach target,$(asked_targets),$(if $(findstring /,$(target))$(filter $(target),$(TARGETS)),,\
    $(call refused,there is no target $(target). $(call nearest,$(target),$(TARGETS)))))
$(foreach name,$(filter-out $(passed_on) $(foreach target,$(asked_targets),$(reads.$(target))),$(given_names)),\
    $(call refused,`make $(asked_targets)` does not read $(name)=. These targets do: $(strip $(foreach target,$(sort $(readers)),$(if $(filter $(name),$(reads.$(target))),$(target))))))
$(foreach target,$(asked_targets),$(foreach name,$(firstword $(subst =, ,$(needs.$(target)))),$(if $(call given,$(name)),,\
    $(call refused,`make $(target)` needs $(name)=. Write for example: make $(target) $(needs.$(target))))))
endif
