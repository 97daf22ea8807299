# SPDX-License-Identifier: Apache-2.0
# The front door. Everything is built by meson and ninja; this file only names what people do.
#
#   make          installs what is missing, builds build/peal and the libraries
#   make demo     installs what is missing, builds, then proves, refutes, simulates and runs; writes pages
#   make test     installs what is missing, builds, runs the test suite
#   make help     lists the rest
SHELL := /bin/sh
BUILD ?= build
DESTDIR ?=
PREFIX ?= /usr/local
VERSION := $(shell sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build)
.PHONY: all deps test test-long fuzz demo bench bench-torch install dist deb format clean help

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@scripts/install build
	@meson setup --prefix $(PREFIX) $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

deps: ## install the packages for building and testing
	@scripts/install build test

test: ## install what is missing, build, run all suites, with sanitizers
	@scripts/install build test
	@scripts/install browser 2>/dev/null || echo "no chromium here: the tests of the page are skipped"
	@scripts/test

test-long: ## the tests that take minutes
	@scripts/install build test
	@scripts/test --long

fuzz: ## fuzz every reader of input for a minute each (FUZZ_SECONDS=60)
	@scripts/install build test
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} scripts/test fuzz

demo: ## install what is missing, build, prove, refute, simulate and run; write pages
	@scripts/install build
	@$(MAKE) --no-print-directory all >/dev/null
	@scripts/demo $(BUILD)/peal

bench: ## install the comparators, measure, print ratios
	@scripts/install build bench
	@$(MAKE) --no-print-directory all >/dev/null
	@if [ -x bench/run ]; then bench/run; else echo "bench/run is not there yet" >&2; exit 3; fi

bench-torch: ## collectives and DDP steps from PyTorch, Peal and Gloo alternating
	@scripts/install build bench
	@$(MAKE) --no-print-directory all >/dev/null
	@torch/build.sh $(BUILD)
	@PYTHONPATH=$(BUILD)/torch /usr/bin/python3 -W ignore examples/torch/bench.py --world 2,4,8
	@PYTHONPATH=$(BUILD)/torch /usr/bin/python3 -W ignore examples/torch/ddp_bench.py --world 2

install: all ## install into PREFIX (default /usr/local), below DESTDIR if given
	@meson configure $(BUILD) --prefix $(PREFIX) >/dev/null
	@DESTDIR=$(abspath $(DESTDIR)) meson install -C $(BUILD)

dist: ## a source archive of what is committed: dist/peal-VERSION.tar.xz
	@mkdir -p dist
	@git archive --prefix=peal-$(VERSION)/ HEAD | xz >dist/peal-$(VERSION).tar.xz
	@echo dist/peal-$(VERSION).tar.xz

deb: ## a Debian package in dist/
	@scripts/install build test
	@[ -f build-deb/build.ninja ] || meson setup --prefix /usr --buildtype release build-deb >/dev/null
	@ninja -C build-deb >/dev/null
	@scripts/deb build-deb dist

format: ## lay out all C files as .clang-format says
	@scripts/install tools
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean: ## remove all build folders
	rm -rf build build-asan build-tsan build-fuzz build-deb dist

help:
	@echo "make            build $(BUILD)/peal and the libraries"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1#\2/p' Makefile | \
	    while IFS='#' read -r name text; do printf '%-15s %s\n' "$$name" "$$text"; done
