# SPDX-License-Identifier: Apache-2.0
# The entry point. Meson and ninja build everything; this file only names the usual tasks.
#
#   make          builds build/peal and the libraries, or says what is missing
#   make demo     installs what is missing, builds, then proves, refutes, simulates and runs; writes pages
#   make test     installs what is missing, builds, runs the test suite
#   make quick    builds and runs the tests of one folder: make quick FOLDER=verify
#   make help     lists the rest
SHELL := /bin/sh
BUILD ?= build
DESTDIR ?=
PREFIX ?= /usr/local
DIST ?= dist
# Whether the build folder has the tests, which `make test` and `make quick` build: if cmocka is installed.
TESTS ?= $(shell pkg-config --exists cmocka 2>/dev/null && echo true || echo false)
FOLDER ?=
.PHONY: all deps quick test test-all test-rest test-long soak fuzz lint coverage abi demo playground gallery site bench bench-torch install uninstall dist static wheel deb fresh format clean help

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) product

$(BUILD)/build.ninja:
	@scripts/install --check build
	@meson setup --prefix $(PREFIX) -Dtests=$(TESTS) $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

deps: ## install the packages for building and testing
	@scripts/install build test

quick: ## build and run the unit and golden tests of FOLDER (verify, comm, ...), or all unit tests
	@[ $(TESTS) = true ] || scripts/install build test
	@scripts/test --quick $(FOLDER)

# What the tests of the plain build need.
define install_for_tests
	@scripts/install build test
	@scripts/install browser 2>/dev/null || echo "no chromium here: the tests of the page are skipped"
	@scripts/install wheel 2>/dev/null || echo "no PyTorch here: the tests of its backend are skipped"
endef

test: ## install what is missing, build, run all suites
	$(install_for_tests)
	@scripts/test

test-all: ## test, then the sanitizers, the fuzzers and lint
	$(install_for_tests)
	@scripts/install lint
	@scripts/test --all

test-rest: ## what test-all has beyond test
	@scripts/install build test lint
	@scripts/test --rest

test-long: ## the tests that take minutes
	@scripts/install build test
	@scripts/install wheel systems 2>/dev/null || echo "no PyTorch or mmdebstrap here: the tests that need them are skipped"
	@scripts/install wasm browser 2>/dev/null || echo "no emscripten or chromium here: the tests of the playground are skipped"
	@scripts/test --long

soak: ## random programs with random faults, SOAK_SECONDS=600 of them, then a table
	@scripts/install build test
	@$(MAKE) --no-print-directory all TESTS=true >/dev/null
	@ninja -C $(BUILD) tests/chaos/chaos >/dev/null
	@$(BUILD)/tests/chaos/chaos soak $${SOAK_SECONDS:-600} $${SOAK_SEED:-} 2>/dev/null

fuzz: ## fuzz every reader of input, a minute each (FUZZ_SECONDS=60)
	@scripts/install build test
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} scripts/test fuzz

lint: ## compile with clang, all warnings errors, then clang-tidy
	@scripts/install build test lint
	@scripts/lint

coverage: ## which lines the unit, golden and system tests reach: build-coverage/coverage.html
	@scripts/install build test lint
	@scripts/coverage

abi: ## compare libpeal's binary interface with the last release
	@scripts/install build lint
	@$(MAKE) --no-print-directory all >/dev/null
	@scripts/abi $(BUILD)

playground: ## the page that proves and simulates in a browser: build-wasm/playground
	@scripts/install build
	@scripts/playground

gallery: ## every kernel, hazard and known bug as pages: build-site/gallery
	@scripts/install build
	@$(MAKE) --no-print-directory all >/dev/null
	@scripts/gallery $(BUILD)/peal build-site/gallery

site: gallery playground ## the documents as a site, searchable from disk, with gallery and playground: build-site
	@rm -rf build-site/playground
	@cp -r build-wasm/playground build-site/playground
	@scripts/site build-site

demo: ## install what is missing, build, prove, refute, simulate, run
	@scripts/install build
	@$(MAKE) --no-print-directory all >/dev/null
	@scripts/demo $(BUILD)/peal

bench: ## install the comparators, measure, print ratios
	@scripts/install build bench
	@$(MAKE) --no-print-directory all TESTS=true >/dev/null
	@ninja -C $(BUILD) benchmarks >/dev/null
	@bench/run

bench-torch: ## collectives and DDP steps from PyTorch, Peal and Gloo alternating (TORCH_BENCH="--world 2 ...")
	@scripts/install build bench
	@$(MAKE) --no-print-directory all >/dev/null
	@torch/build.sh $(BUILD)
	@PYTHONPATH=$(BUILD)/torch /usr/bin/python3 -W ignore examples/torch/bench.py $${TORCH_BENCH:---world 2,4,8}
	@PYTHONPATH=$(BUILD)/torch /usr/bin/python3 -W ignore examples/torch/ddp_bench.py
	@PYTHONPATH=$(BUILD)/torch /usr/bin/python3 -W ignore examples/torch/overlap.py
	@PYTHONPATH=$(BUILD)/torch /usr/bin/python3 -W ignore examples/torch/neighbour.py
	@PYTHONPATH=$(BUILD)/torch /usr/bin/python3 -W ignore examples/torch/group_bench.py

install: all ## install into PREFIX (/usr/local), below DESTDIR if given
	@scripts/place install $(BUILD) $(PREFIX) $(abspath $(DESTDIR))

uninstall: ## remove what installs of this build have put anywhere
	@scripts/place uninstall $(BUILD)

dist: ## all that is published, in dist/: source, static commands, wheels, .deb, npm, checksums, an SBOM
	@scripts/install build release
	@scripts/install cross 2>/dev/null || echo "no cross compiler here: the command for AArch64 is left out"
	@scripts/dist $(DIST)

static: ## the command in one file that needs no library: dist/peal-VERSION-linux-ARCH
	@scripts/install build
	@scripts/dist $(DIST) static

.PHONY: vscode
vscode: ## the extension for VS Code: dist/peal-VERSION.vsix (needs npm and its registry)
	@scripts/install build
	@$(MAKE) --no-print-directory all >/dev/null
	@scripts/vscode $(BUILD)/peal $(DIST)

wheel: ## the PyTorch backend for the installed torch: a wheel with libpeal inside, and its source, in dist/
	@scripts/install build wheel
	@$(MAKE) --no-print-directory all >/dev/null
	@torch/wheel.sh $(BUILD) $(DIST)

deb: ## Debian packages: libpeal0, libpeal-dev and peal in dist/
	@scripts/install build release
	@scripts/dist $(DIST) deb

fresh: ## try demo, test and deb on a new Debian in a folder (as root)
	@scripts/fresh

format: ## lay out all C files as .clang-format says
	@scripts/install tools
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean: ## remove all build folders
	rm -rf build build-aarch64 build-asan build-tsan build-fuzz build-deb build-coverage build-lint build-static build-static-aarch64 build-wasm build-site dist

help:
	@echo "make              build $(BUILD)/peal and the libraries"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1#\2/p' Makefile | \
	    while IFS='#' read -r name text; do printf '%-17s %s\n' "$$name" "$$text"; done
