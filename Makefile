# The front door. Needs make and sh; everything else is installed by tools/deps where it is missing.
#
#     make            install what is missing, build into build/
#     make demo       record a real program and show where its memory went
#     make test       everything; last line: N passed, N failed, N skipped
#     make check      build, structure, unit tests: under a minute, before every commit
#     make web        build the viewer's page anew: src/view/page.html
#     make win        tidemark.exe and the recorder's DLLs, cross-built for Windows
#     make install    PREFIX (/usr/local), DESTDIR; make uninstall takes it away again
#
# BUILD: where to build. JOBS: how many compilers at once. WERROR=true: warnings are errors.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?=
WERROR ?= false

NINJA = ninja $(if $(JOBS),-j $(JOBS)) -C
RUN_TESTS = tools/run-tests

.PHONY: all build set-up demo test check bench bench-scale soak tidy format asan asan-view tsan fuzz wine i386 packages web install uninstall deps clean help

all: build

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

deps:
	@sh tools/deps all

deps-%:
	@sh tools/deps $*

$(BUILD)/build.ninja:
	@meson setup $(BUILD) -Dwerror=$(WERROR) --prefix="$(PREFIX)" >$(BUILD).log 2>&1 || \
		{ cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@touch $(BUILD)/werror-$(WERROR) $(BUILD)/packages-$$(sh tools/deps --here test win)

# What can be built depends on what is installed, and the tests bring more than the demo did. Meson
# remembers what a compiler could not do, whatever cache of it is cleared: so all is built anew.
build: set-up
	@$(NINJA) $(BUILD)

set-up: deps-build
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@packages=$(BUILD)/packages-$$(sh tools/deps --here test win); test -e $$packages || \
		{ meson setup --wipe $(BUILD) >/dev/null && touch $$packages; }
	@test -e $(BUILD)/werror-$(WERROR) || { meson configure $(BUILD) -Dwerror=$(WERROR) && \
		rm -f $(BUILD)/werror-* && touch $(BUILD)/werror-$(WERROR); }

demo: deps-demo build
	@TIDEMARK_BUILD=$(BUILD) tools/demo

# What cannot be set up here is not tested, and named in the last lines; the rest is.
test soak: deps-build
	@$(if $(filter soak,$@),sh tools/deps soak || true)
	@tools/set-up $(BUILD) packages
	@$(MAKE) --no-print-directory build
	@tools/set-up $(BUILD) rest
	@$(RUN_TESTS) --build $(BUILD) $(if $(filter soak,$@),--soak)

check: deps-tidy build tidy
	@$(RUN_TESTS) --build $(BUILD) unit

bench: deps-bench deps-win build win wine
	@TIDEMARK_BUILD=$(BUILD) tools/bench
	@TIDEMARK_BUILD=$(BUILD) tools/bench-export
	@TIDEMARK_BUILD=$(BUILD) tools/bench-windows
	@TIDEMARK_BUILD=$(BUILD) tools/win-bench

bench-scale: deps-bench build
	@TIDEMARK_BUILD=$(BUILD) tools/bench-windows --scale

tidy: deps-tidy build
	@tools/tidy --build $(BUILD)

format: deps-tidy
	@tools/tidy --format

# Programs of Debian's i386, fetched once, outside the tree. Without them their tests are skipped.
i386: deps-test
	@tools/i386-set-up >/dev/null || echo "make: no programs of 32 bits: their tests are skipped"

# Windows programs of npm packages, fetched once, outside the tree. Without them their test is skipped.
packages: deps-test
	@tools/packages-set-up >/dev/null || echo "make: no Windows programs of npm: their test is skipped"
	@tools/packages-set-up databases >/dev/null || echo "make: no databases of npm: their tests are skipped"

# Both halves: the host wing and its 64-bit recorder, and the recorder for 32-bit programs. The
# two DLLs lie beside tidemark.exe.
win: deps-win
	@tools/win-build $(BUILD)-win

# A Wine for the Windows tests, made once, outside the tree. Where it cannot be made they are skipped.
wine: deps-win
	@tools/wine-set-up >/dev/null || echo "make: no Wine: the Windows tests are skipped"

# The host wing under a sanitizer; the recorder itself is never instrumented.
asan: deps-build
	@test -e $(BUILD)-asan/build.ninja || \
		meson setup $(BUILD)-asan -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@$(NINJA) $(BUILD)-asan
	@$(RUN_TESTS) --build $(BUILD)-asan unit

# What test/view/server_asan asks: the viewer's server.
asan-view: deps-build
	@test -e $(BUILD)-asan/build.ninja || \
		meson setup $(BUILD)-asan -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@$(NINJA) $(BUILD)-asan tidemark

# Of 32 bits there is no libtsan.
tsan: deps-build
	@test -e $(BUILD)-tsan/build.ninja || \
		meson setup $(BUILD)-tsan -Db_sanitize=thread -Db_lundef=false -Di386=false >/dev/null
	@$(NINJA) $(BUILD)-tsan
	@$(RUN_TESTS) --build $(BUILD)-tsan unit

fuzz: deps-test
	@tools/fuzz --build $(abspath $(BUILD))-fuzz

# The page is kept in the tree as it was built: only who changes web/ needs this.
web: deps-web
	@tools/web setup
	@tools/web check
	@tools/web build

# Without the programs of tests, which are half of the work.
install: set-up
	@meson configure $(BUILD) -Dprefix="$(PREFIX)"
	@$(NINJA) $(BUILD) build.ninja
	@$(NINJA) $(BUILD) $$(tools/installed targets $(BUILD))
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild --quiet
	@tools/installed say $(BUILD)

# What the last installation from this build put there, and the folders that it made.
uninstall:
	@$(NINJA) $(BUILD) --quiet uninstall

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(BUILD)-win
