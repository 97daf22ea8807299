# SPDX-License-Identifier: Apache-2.0
.PHONY: all test
all:
	@meson setup build >/dev/null 2>&1 || true
	@ninja -C build
test: all
	meson test -C build --print-errorlogs
