# The short way to everything. CMakePresets.json holds the flags, scripts/setup the packages.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
.DEFAULT_GOAL := help
.PHONY: help setup demo test build bench format check-all check-xla asan tsan coverage soak fuzz clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

# configure+build of one preset: $(call build,preset[,target])
define build
	@cmake --preset $(1) --log-level=WARNING > /dev/null
	@cmake --build build/$(1) --parallel $(JOBS) $(if $(2),--target $(2))
endef
ctest = ctest --test-dir build/$(1) --output-on-failure --parallel $(JOBS)

setup:
	@scripts/setup

demo: setup  ## train a language model on a 2x2 mesh of threads, go on with it on a 1x4 mesh, print what it says
	$(call build,release,weft_command)
	@ln -sfn release/tools/weft build/weft
	@scripts/demo build/weft

# The tests record which errors they reach; check-error-codes names the errors that no test reaches.
test: setup  ## build with the verifier on and run all tests but the soak tests
	$(call build,dev)
	@rm -f build/dev/recorded-errors.txt
	@WEFT_RECORD_ERRORS=$(CURDIR)/build/dev/recorded-errors.txt $(call ctest,dev) -LE soak
	@scripts/check-error-codes --recorded build/dev/recorded-errors.txt
	@echo "The slowest tests, in seconds:"
	@awk 'NF == 3 {printf "  %6.1f  %s\n", $$3, $$1}' build/dev/Testing/Temporary/CTestCostData.txt | sort -rn | head -10

build: setup  ## the fast build; the command is build/weft
	$(call build,release)
	@ln -sfn release/tools/weft build/weft

bench: setup  ## build and run every benchmark; results in build/bench
	$(call build,release,bench)
	@scripts/run-bench build/release/bench build/bench

format:  ## clang-format every source file in place
	@scripts/setup --all
	@find include src tools tests bench examples -name '*.h' -o -name '*.cc' | xargs clang-format -i

check-all:  ## the slow checks: sanitizers, coverage, a tenth of the soak tests; prints a table
	@scripts/check-all

check-xla: setup  ## the XLA engine on XLA's CPU plugin, which is installed outside of the repository
	$(call build,dev,weft_command weft_pjrt_compile weft_test_ops weft_test_random weft_test_golden)
	@scripts/check-xla build/dev

# Sanitized tests are slow. asan leaves out the longest suites and the runs on many ranks; tsan runs the folders with
# threads. ctest -N -L/-R/-E with these patterns lists what remains.
asan_tests := -LE "soak|full" -E "mpi_[46]_ranks|mpi_large"
tsan_tests := -LE "soak|full|mpi" -R "^(comm|runtime|cpu|api|store|checkpoint|decode|random|data|train|allocations)\."

asan tsan:
	@scripts/setup --all
	$(call build,$@)
	@# tests/allocations has an operator new of its own; ranks that linger at their end would let others speak
	@ASAN_OPTIONS=alloc_dealloc_mismatch=0 WEFT_RANDOM_GRAPHS=60 \
	  TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp:atexit_sleep_ms=0 $(call ctest,$@) $($@_tests)

coverage:
	@scripts/setup --all
	$(call build,coverage)
	@$(call ctest,coverage) -LE soak
	@gcovr --root . --filter src/ --filter include/ --exclude-directories '.*(CompilerIdCXX|outside)' \
	  --exclude-unreachable-branches --html-details build/coverage/index.html --print-summary build/coverage
	@echo "line by line: build/coverage/index.html"

soak: setup  ## the soak tests; WEFT_SOAK_PERCENT=10 does a tenth of them
	$(call build,dev)
	@$(call ctest,dev) -L soak

fuzz:  ## libFuzzer on every reader of outside bytes; FUZZ_SECONDS=600 each
	@scripts/setup --fuzz
	$(call build,fuzz,fuzz)
	@scripts/run-fuzz build/fuzz $(FUZZ_SECONDS)

clean:  ## remove build/
	@rm -rf build
