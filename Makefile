# sgt: one Makefile, no configure. `make help` lists the targets.
# Variants live in folders of their own: make DEBUG=1, make SAN=address,undefined, make CC=clang, make CPU=plain (or
# avx2: programs and tests that see a CPU of that level, whatever the machine's own is).
# B=DIR builds elsewhere, V=1 shows the commands.

$(if $(filter memory,$(SAN)),$(if $(findstring clang,$(CC)),,$(error SAN=memory needs CC=clang: gcc has no such sanitizer)))

comma := ,
empty :=
space := $(empty) $(empty)
VARIANT := $(subst $(space),-,$(strip $(if $(DEBUG),debug) $(if $(COVERAGE),coverage) $(subst $(comma),-,$(SAN)) $(CPU) $(if $(filter clang%,$(notdir $(CC))),clang)))
B ?= build$(if $(VARIANT),/$(VARIANT))

PREFIX ?= /usr/local
DESTDIR ?=
OBJCOPY ?= objcopy
MAKEFLAGS += --no-builtin-rules
Q := $(if $(V),,@)

# What a build shows: on a terminal one line that is drawn again, `[12/322] CC loader/loader.c`; elsewhere a dot a step;
# with V=1 the commands themselves. $(call say,KIND,FILE) begins a step's command; $(end_line) ends the line of steps.
# The number of steps is what a dry run of the same goals would do. It is counted when the first step begins.
STEPS = $(eval STEPS := $(shell $(MAKE) -n --no-print-directory COUNTING=1 $(MAKEOVERRIDES) $(MAKECMDGOALS) 2> /dev/null | \
            grep -c '^: a step;'))$(STEPS)
STEPS_DONE :=
step = $(eval STEPS_DONE += x)$(if $(MAKE_TERMOUT),printf '\033[K  [%d/%d] %s %s\r' $(words $(STEPS_DONE)) $(STEPS) $(1) $(2),\
           printf '%s.' $(if $(filter 1,$(words $(STEPS_DONE))),'building: '))
say = $(if $(COUNTING),: a step;,$(if $(V),,@$(step);))
end_line = $(if $(COUNTING)$(V),:,$(if $(STEPS_DONE),printf $(if $(MAKE_TERMOUT),'\033[K','\n'),:))

CFLAGS ?= -gdwarf-4 # clang's version 5 is more than Debian 12's valgrind can read
OPT := $(if $(DEBUG),-O0,-O2)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Werror
PEDANTIC := -Wpedantic -Wno-overlength-strings # no compiler of today minds more than 4095 bytes
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
# -ffp-contract=off: a product and a sum are fused only where the code says so, whichever compiler.
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -Iloader -Itokenize -Ikernels -Itrain -I. $(WARN) $(PEDANTIC) $(OPT) \
             -ffp-contract=off -fPIC -pthread $(SANFLAGS) $(if $(CPU),-DSGT_CPU_MOST='"$(CPU)"') $(CFLAGS) -MMD -MP
ALL_LDFLAGS = -Wl,--as-needed -pthread $(SANFLAGS) $(if $(COVERAGE),--coverage) $(LDFLAGS)

# flags per folder and per file; elsewhere than on x86-64 the files for its vectors compile to nothing
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine 2> /dev/null)),)
AVX2 := -mavx2 -mfma -mbmi -mbmi2 -mlzcnt -mf16c
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl
endif
flags = $(if $(filter loader/% tokenize/%,$(1)),-Wconversion) \
        $(if $(COVERAGE),$(if $(filter loader/% tokenize/% train/%,$(1)),-O0 --coverage -fprofile-update=atomic)) \
        $(if $(filter kernels/%,$(1)),$(if $(DEBUG),,-O3)) \
        $(if $(filter kernels/% train/% tests/kernels/% tests/train/% tools/sgt-bench.c,$(1)),-fopenmp) \
        $(if $(filter kernels/cuda/nvtx.c tests/kernels/cudnn/names.c,$(1)),$(CUDA_INCLUDE)) \
        $(if $(filter %_avx2.c,$(1)),$(AVX2)) \
        $(if $(filter %_avx512.c,$(1)),$(AVX512)) \
        $(if $(filter %_bf16_avx512.c,$(1)),$(if $(AVX512),-mavx512bf16)) \
        $(if $(filter %_vbmi2_avx512.c,$(1)),$(if $(AVX512),-mavx512vbmi -mavx512vbmi2))

sources = $(sort $(foreach d,$(1),$(wildcard $(d)/*.c)))
objects = $(patsubst %.c,$(B)/obj/%.o,$(call sources,$(1)))

LIBS := loader tokenize kernels train cli
SRC_loader := loader loader/base loader/shards loader/sample loader/read loader/rows
SRC_tokenize := tokenize $(addprefix tokenize/,text vocab bpe input out parts learn)
SRC_kernels := kernels kernels/ref kernels/cpu
SRC_train := train $(addprefix train/,model data memory cpu run log generate) # train/cuda: libsgt-cuda.so alone
SRC_cli := tools/cli
lib = $(foreach l,$(1),$(B)/obj/libsgt-$(l).a)

LD_loader := -lxxhash -luring -ljansson
LD_tokenize := -lutf8proc -lpcre2-8 -lxxhash -ljansson -lz -lzstd -lm
LD_kernels := -fopenmp -ldl -lm
LD_train := -fopenmp -lxxhash -ljansson -lm
LD_cli := -ljansson -lm

# What others link, as libsgt-NAME.a and libsgt-NAME.so: NAME/sgt_NAME.symbols and what these need, every other name made
# local. A change that a program would have to be compiled anew for makes it .so.1.
PUBLIC := loader tokenize
PARTS_loader := loader
PARTS_tokenize := tokenize loader
SHARED := sgt_fail sgt_fail_errno sgt_printable sgt_say # of base/error.h, in both libraries: a program takes either's
ABI := 0
VERSION := $(shell sed -n 's/.*SGT_VERSION "\(.*\)"/\1/p' loader/base/version.h)

# what each program is made of beside tools/sgt-X.c and tools/X/*.c: users before what they use
USES_sgt-tokenize := cli tokenize loader
USES_sgt-train := cli train kernels tokenize loader
USES_sgt-inspect := cli train kernels tokenize loader
USES_sgt-bench := cli train kernels tokenize loader
USES_sgt-report := cli train kernels tokenize loader
USES_sgt-sample := cli train kernels tokenize loader
# programs of more than one file have a folder
PARTS_sgt-train := tools/train
PARTS_sgt-tokenize := tools/tokenize
PARTS_sgt-inspect := tools/inspect
PARTS_sgt-bench := tools/bench tools/page
PARTS_sgt-report := tools/report tools/page tools/sample
PARTS_sgt-sample := tools/sample
PROGRAMS := $(sort $(patsubst tools/%.c,%,$(wildcard tools/sgt-*.c)))

# a Criterion suite a folder; check-kernels is its own program
SUITES := $(foreach s,base loader tokenize train,$(if $(wildcard tests/$(s)/*.c),$(s)))
USES_base := cli loader
USES_loader := loader
USES_tokenize := tokenize loader
USES_train := train kernels loader

# The CUDA kernels as C++, run on the host; once more with their accesses to shared memory watched (tests/kernels/host).
# The sanitizers bring their own way of watching, and leave that one out.
HOST_CXX := $(if $(filter clang%,$(notdir $(CC))),$(patsubst clang%,clang++%,$(CC)),$(CXX))
HOST_CXXFLAGS = -std=c++17 -D_GNU_SOURCE -Iloader -Ikernels -iquote kernels/cuda -Itests/kernels -I. \
                $(filter-out -Wstrict-prototypes -Wmissing-prototypes,$(WARN)) $(OPT) -ffp-contract=off -fPIC -pthread \
                $(SANFLAGS) $(CFLAGS) -MMD -MP
HOST_CU := $(sort $(wildcard kernels/cuda/*.cu tests/kernels/*.cu))
HOST_CPP := $(sort $(wildcard tests/kernels/*.cpp tests/kernels/host/*.cpp))
# Plain C of the CUDA backend, which runs on the host too: matrix products through cuBLASLt, and failures by name.
GEMM_PARTS := $(addprefix $(B)/obj/kernels/cuda/,gemm.o gemm_cache.o gemm_tune.o gemm_verify.o failure.o)
HOST_PARTS := $(HOST_CPP:%=$(B)/obj/%.o) $(B)/obj/tests/kernels/harness.o $(GEMM_PARTS)
CHECK_CUDA := $(B)/tests/check-cuda $(B)/tests/check-cuda-pretend
CHECK_RACE := $(if $(SAN),,$(B)/tests/check-cuda-race)

# The CUDA kernels for a GPU, by nvcc: machine code for sm_80 and sm_90a, and PTX for what came between.
NVCC ?= nvcc
NVCCFLAGS = -std=c++17 -O3 -lineinfo -Xfatbin=-compress-all -Iloader -Ikernels -Itests/kernels -I. -Werror all-warnings -Xptxas -v \
            -Xcompiler -fPIC,-pthread \
            -gencode 'arch=compute_80,code=[sm_80,compute_80]' -gencode arch=compute_90a,code=sm_90a -MMD -MP
DEVICE_MAIN := tests/kernels/device/check-cuda-device.cpp
DEVICE_CASES := $(sort $(wildcard kernels/cuda/*.cu tests/kernels/*.cu tests/kernels/*.cpp))

# The CUDA backend, which programs load from ../lib: by nvcc, where that is; and the same sources for the host, where the
# files of tests/kernels/host stand for CUDA and its libraries, with the programs beside it that tests run on it.
HAVE_NVCC := $(if $(SAN),,$(shell command -v $(NVCC) 2> /dev/null))
CUDA_CU := $(sort $(wildcard kernels/cuda/*.cu))
CUDA_C := $(sort $(wildcard kernels/cuda/*.c train/cuda/*.c))
CUDA_MAP := train/cuda/cuda_library.map
CUDA_LIB := $(B)/lib/libsgt-cuda.so
HOST_STANDS := $(filter-out %/check-cuda.cpp %_cases.cpp,$(wildcard tests/kernels/host/*.cpp))
HOST_C := $(filter-out $(HOST_STANDS:tests/kernels/host/%.cpp=kernels/cuda/%.c),$(CUDA_C))
HOST_LIB := $(B)/host/lib/libsgt-cuda.so
HOST_PROGRAMS := $(B)/host/bin/sgt-train $(B)/host/bin/sgt-bench $(B)/host/bin/check-step

.PHONY: all cuda mpi gpu-bundle deps demo check check-all check-memory fuzz check-kernels check-cuda check-nvcc machine-code predict install uninstall dist deb clean help
all: need-packages programs libs cuda mpi  ## build every program, and the CUDA backend where nvcc is (the default)
	@$(end_line)
	@echo 'built $(PROGRAMS) in $(B)/bin'

ifneq ($(HAVE_NVCC),)
cuda: $(CUDA_LIB)                      ## the CUDA backend alone
else
cuda:
	@echo 'no $(NVCC): the CUDA backend is left out, everything else is there'
endif

# MPI, which introduces ranks to each other: loaded where mpirun or srun started a program, built where mpi.h is.
MPI_LIB := $(B)/lib/libsgt-mpi.so
MPICC := $(if $(SAN),,$(shell command -v mpicc 2> /dev/null))
ifneq ($(MPICC),)
mpi: $(MPI_LIB)
else
mpi:
	@echo 'built without MPI, which only several processes need (mpirun; package libopenmpi-dev)'
endif

deps:                                  ## install what is missing (apt-get; sudo where not root)
	@tools/deps.sh

# As many compilers as there are cores, unless make was told how many.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))

# demo and check are the first thing a newcomer types: they see to the packages, then start make anew, which finds them.
demo:                                  ## the main job on real text, on a CPU, in under 3 minutes (CORPUS=DIR: yours)
	@tools/deps.sh build
	@$(MAKE) $(JOBS) --no-print-directory run-demo

# Three tiers of tests. Each holds the one before it; tests/run.sh and what it starts read $TIER.
check: deps                            ## the tests, within 8 minutes on two cores, build included
	@$(MAKE) $(JOBS) --no-print-directory run-check TIER=check

check-all: deps                        ## lint, nvcc on the CUDA kernels, and the tests that take longer: within 40 minutes
	@$(MAKE) $(JOBS) --no-print-directory lint
	@$(MAKE) $(JOBS) --no-print-directory run-check TIER=all

ifneq ($(HAVE_NVCC),)
check-nvcc: need-packages $(HOST_CU:%=$(B)/obj/device/%.o) $(CUDA_LIB) $(HOST_LIB) $(HOST_PROGRAMS)  ## nvcc on every CUDA kernel: no warning, no spill, registers, machine code
	@tests/kernels/check-nvcc.sh $(B)
else
check-nvcc:
	@echo 'no $(NVCC): left out compiling the CUDA kernels for sm_80 and sm_90a'
endif

ifneq ($(HAVE_NVCC),)
machine-code: need-packages $(CUDA_LIB) $(HOST_LIB) $(HOST_PROGRAMS)  ## accept what nvcc makes of the step's kernels now: tests/kernels/machine-code.txt
	@$(end_line)
	@tests/kernels/machine-code.sh $(B) accept
else
machine-code:
	@echo 'no $(NVCC), which makes the machine code' >&2; exit 1
endif

predict: need-packages $(HOST_LIB) $(HOST_PROGRAMS)  ## what a training step should take on an H100, without one (BATCH=64, VARIANTS="NAME...", ARGS=of sgt-bench step)
	@$(end_line)
	@tests/kernels/predict.sh $(B) $(BATCH:%=--batch-size %) $(VARIANTS:%=--variant %) $(ARGS)

ifneq ($(HAVE_NVCC),)
gpu-bundle: need-packages programs cuda $(B)/tests/check-cuda-device $(B)/bin/check-step
	@tools/gpu-bundle.sh $(B)
else
gpu-bundle:                            ## what tools/gpu-check.sh needs on a machine with a GPU, in build/gpu-bundle
	@echo 'no $(NVCC), which compiles what the bundle is for' >&2; exit 1
endif

coverage:                              ## which lines of tokenize, loader and train the tests run (SHOW=FILE: there those that never ran)
	@$(MAKE) $(JOBS) --no-print-directory COVERAGE=1 CC=gcc CXX=g++ run-coverage
run-coverage: need-packages programs libs $(SUITES:%=$(B)/tests/test-%) $(B)/bin/check-step $(HOST_LIB) $(HOST_PROGRAMS) \
              $(FUZZ:%=$(B)/tests/replay-%)
	@tests/coverage.sh $(B)

# Every source of the programs by gcc -fanalyzer, cppcheck and clang-tidy (those that are here; gcc 12 or newer). A file
# is looked at anew when it or a header of it has changed. What they find is a fault, or is in tests/lint/allowed.
LINT := build/lint
LINT_C := $(filter-out loader/examples/% tools/mpi/%,\
            $(sort $(wildcard $(addsuffix /*.c,$(foreach d,loader tokenize kernels train tools,$(d) $(d)/*)))))
LINT_KNOWN = $(if $(filter %/base/error.c,$<),,-include tests/lint/known.h -Wno-unused-value)
LINT_FLAGS = $(filter-out -Werror -MMD -MP -O% -g%,$(ALL_CFLAGS)) $(call flags,$<) $(LINT_KNOWN)
# Left to the others: arithmetic on vectors, whose thousand inlined functions take gcc longer than all else together.
LINT_ANALYZE = -O0 $(if $(filter kernels/cpu/level_% kernels/cpu/product% %_avx2.c %_avx512.c,$<),,-fanalyzer)
# A shift of a vector is measured by its number of elements (gcc 12).
$(LINT)/%.gcc: %.c tests/lint/known.h
	$(call say,GCC,$<)mkdir -p $(@D) && gcc $(LINT_FLAGS) $(LINT_ANALYZE) -fdiagnostics-plain-output \
	    -Wno-analyzer-shift-count-overflow -MMD -MP -MF $@.d -MT $@ -c -o $@.o $< > $@.part 2>&1 && rm $@.o && mv $@.part $@
$(LINT)/%.tidy: %.c $(LINT)/%.gcc tests/lint/clang-tidy
	$(call say,TIDY,$<)mkdir -p $(@D) && clang-tidy --quiet --config-file=tests/lint/clang-tidy $< -- $(LINT_FLAGS) \
	    2> $@.talk > $@.part && sed "s|$(CURDIR)/||g" $@.part > $@ && rm $@.part $@.talk
$(LINT)/all.cppcheck: $(LINT_C:%.c=$(LINT)/%.gcc)
	$(call say,CHECK,all)cppcheck -q --std=c11 --language=c --enable=warning,portability,performance \
	    --template='{file}:{line}: warning: {message} [{id}]' -D__x86_64__ -D__BYTE_ORDER__=1234 \
	    -D__ORDER_LITTLE_ENDIAN__=1234 -D__SIZEOF_SIZE_T__=8 $(filter -D% -I%,$(ALL_CFLAGS)) $(LINT_C) > $@.part 2>&1 && mv $@.part $@
.PHONY: lint tidy
LINT_KINDS := $(if $(shell command -v gcc 2> /dev/null),gcc $(if $(shell command -v cppcheck 2> /dev/null),cppcheck) \
                $(if $(shell command -v clang-tidy 2> /dev/null),tidy))
LINT_DONE := $(foreach k,$(filter-out cppcheck,$(LINT_KINDS)),$(LINT_C:%.c=$(LINT)/%.$(k))) \
             $(if $(filter cppcheck,$(LINT_KINDS)),$(LINT)/all.cppcheck)
lint: $(LINT_DONE)                     ## gcc -fanalyzer, cppcheck and clang-tidy over every source of the programs
	@command -v gcc > /dev/null || echo 'no gcc: left out its analyzer, cppcheck and clang-tidy'
	@command -v cppcheck > /dev/null || echo 'no cppcheck (tools/deps.sh all): left out'
	@command -v clang-tidy > /dev/null || echo 'no clang-tidy (tools/deps.sh all): left out'
	@mkdir -p $(LINT) && tests/lint/lint.sh $(LINT) $(LINT_KINDS)
tidy: $(LINT_C:%.c=$(LINT)/%.tidy)     ## clang-tidy alone
	@tests/lint/lint.sh $(LINT) tidy
-include $(shell find $(LINT) -name '*.gcc.d' 2> /dev/null)

check-cuda: need-packages $(CHECK_CUDA) $(CHECK_RACE)  ## the CUDA kernels on the host, without a GPU: four schedules, race mode, all mutants
	@HOST_CXX='$(HOST_CXX)' tests/kernels/check-cuda.sh $(B) torture

check-memory: need-packages            ## the memory sanitizer, with clang: text, ids, sampling, formats, on the seeds of fuzzing
	@command -v clang > /dev/null || { echo "make check-memory needs clang" >&2; exit 1; }
	@$(MAKE) $(JOBS) --no-print-directory SAN=memory CC=clang $(MEMORY:%=build/memory-clang/tests/replay-%)
	@tests/fuzz/replay.sh build/memory-clang

check-kernels: need-packages $(B)/tests/check-kernels  ## every fast kernel against its definition (ARGS=--bench: speed)
	@$(B)/tests/check-kernels $(ARGS)

fuzz: need-packages                    ## looks for bytes that break a property, with clang's libFuzzer (FUZZ_SECONDS=N each, FUZZ=NAME...)
	@command -v clang > /dev/null || { echo "make fuzz needs clang" >&2; exit 1; }
	@$(MAKE) $(JOBS) --no-print-directory B=build/fuzz CC=clang SAN=fuzzer-no-link,address,undefined \
	    $(FUZZ:%=build/fuzz/bin/fuzz-%)
	@tests/fuzz/run.sh build/fuzz $(or $(FUZZ_SECONDS),60) $(FUZZ)

# The tests again in every variant, then what takes hours: each call disturbed in turn, random kills, an hour of
# training, ten minutes of fuzzing for each property (TORTURE_KILLS=N, SOAK_SECONDS=N, FUZZ_SECONDS=N, SEED=N).
.PHONY: torture torture-variants torture-runs
torture: check-all torture-variants torture-runs  ## every variant (clang, no optimization, lesser CPUs, sanitizers) and the exhaustive runs: a day
AGAIN = $(MAKE) $(JOBS) --no-print-directory run-check TIER=all
torture-variants: need-packages
	@! command -v clang > /dev/null && echo 'no clang: left out its build' || $(AGAIN) CC=clang
	@$(MAKE) $(JOBS) --no-print-directory cuda check-cuda check-nvcc
	@tests/step/check-step.sh $(B) torture
	@PEAK_ALL=1 tests/cli/run.sh $(B)/bin train-peak
	@$(AGAIN) CPU=avx2
	@$(AGAIN) CPU=plain
	@$(AGAIN) DEBUG=1
	@$(AGAIN) SAN=address,undefined
	@! command -v clang > /dev/null || $(MAKE) $(JOBS) --no-print-directory check-memory
	@$(MAKE) $(JOBS) --no-print-directory SAN=thread $(STRESS:%=build/thread/tests/stress-%)
	@for s in $(STRESS); do build/thread/tests/stress-$$s || exit 1; done
	@$(MAKE) $(JOBS) --no-print-directory SAN=address,undefined build/address-undefined/tests/stress-loader
	@build/address-undefined/tests/stress-loader
torture-runs: need-packages programs $(B)/tests/faults $(B)/tests/faults.so
	@FAULTS_EVERY=1 SCRIPT_SECONDS=36000 SHOW=1 tests/cli/run.sh $(B)/bin -faults
	@TORTURE_KILLS=$(or $(TORTURE_KILLS),500) SCRIPT_SECONDS=36000 SHOW=1 tests/cli/run.sh $(B)/bin -torture
	@SOAK_SECONDS=$(or $(SOAK_SECONDS),3600) SCRIPT_SECONDS=36000 SHOW=1 tests/cli/run.sh $(B)/bin -soak
	@$(if $(PYTHON),$(PYTHON) tests/data/compare_tiktoken.py --mix $(or $(BYTES),1G) --seed $(or $(SEED),1) --bin $(B)/bin \
	    $(or $(CORPUS),$(sort $(dir $(wildcard */*.c)))),echo 'PYTHON=... with tiktoken and openai-whisper: left out 1 GB against tiktoken')
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600)

# Below share/: where shells look for completions (Debian's own zsh: ZSH_DIR=zsh/vendor-completions).
BASH_DIR ?= bash-completion/completions
ZSH_DIR ?= zsh/site-functions
FISH_DIR ?= fish/vendor_completions.d
COMPLETIONS := $(BASH_DIR) $(ZSH_DIR) $(FISH_DIR)

# LIBDIR: of libraries that others link, below PREFIX (lib/x86_64-linux-gnu, say). Those that only sgt loads are in lib/sgt.
LIBDIR ?= lib
OWN_LIBS = $(if $(HAVE_NVCC),$(CUDA_LIB)) $(if $(MPICC),$(MPI_LIB))
PC = s|@VERSION@|$(VERSION)|; s|@LIBDIR@|$(LIBDIR)|; s|@UP@|$(subst $(space),/,$(patsubst %,..,$(subst /, ,$(LIBDIR)) x))|
install: need-packages programs libs $(if $(HAVE_NVCC),cuda) $(if $(MPICC),mpi)  ## install into DESTDIR/PREFIX (default /usr/local), libraries into PREFIX/LIBDIR
	$(Q)install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin $(LIBDIR)/pkgconfig include/sgt/base share/man/man1 share/man/man3 share/man/man7)
	$(Q)install -m 755 $(PROGRAMS:%=$(B)/bin/%) $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 644 $(PUBLIC:%=$(B)/lib/libsgt-%.a) $(PUBLIC:%=$(B)/lib/libsgt-%.so.$(ABI)) $(DESTDIR)$(PREFIX)/$(LIBDIR)
	$(Q)for l in $(PUBLIC); do ln -sf libsgt-$$l.so.$(ABI) $(DESTDIR)$(PREFIX)/$(LIBDIR)/libsgt-$$l.so && \
	    sed '$(PC)' $$l/sgt-$$l.pc.in | \
	    install -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/$(LIBDIR)/pkgconfig/sgt-$$l.pc || exit 1; done
	$(Q)$(if $(strip $(OWN_LIBS)),install -d $(DESTDIR)$(PREFIX)/lib/sgt && install -m 644 $(OWN_LIBS) $(DESTDIR)$(PREFIX)/lib/sgt)
	$(Q)install -m 644 loader/sgt_loader.h tokenize/sgt_tokenize.h $(DESTDIR)$(PREFIX)/include/sgt
	$(Q)install -m 644 loader/base/error.h $(DESTDIR)$(PREFIX)/include/sgt/base
	$(Q)install -m 644 $(PROGRAMS:%=tools/%.1) $(DESTDIR)$(PREFIX)/share/man/man1
	$(Q)install -m 644 tools/sgt.7 $(DESTDIR)$(PREFIX)/share/man/man7
	$(Q)install -m 644 $(wildcard $(foreach l,$(PUBLIC),$(l)/sgt_$(l).3)) $(DESTDIR)$(PREFIX)/share/man/man3
	$(Q)install -d $(COMPLETIONS:%=$(DESTDIR)$(PREFIX)/share/%)
	$(Q)for p in $(PROGRAMS); do for f in bash:$(BASH_DIR)/$$p zsh:$(ZSH_DIR)/_$$p fish:$(FISH_DIR)/$$p.fish; do \
	    $(B)/bin/$$p --completion $${f%%:*} | install -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/$${f#*:} || exit 1; done; done
	$(Q)[ -n "$(DESTDIR)" ] || ldconfig 2> /dev/null || true # programs look for shared libraries where this has seen them
	@$(end_line)
	@echo 'installed $(PROGRAMS) in $(DESTDIR)$(PREFIX)/bin, libraries in $(DESTDIR)$(PREFIX)/$(LIBDIR), and the manuals (make uninstall removes all of it)'

uninstall:                             ## remove what install put there
	$(Q)rm -f $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/bin/%) $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/share/man/man1/%.1) \
	    $(DESTDIR)$(PREFIX)/share/man/man7/sgt.7 \
	    $(foreach l,$(PUBLIC),$(addprefix $(DESTDIR)$(PREFIX)/,$(addprefix $(LIBDIR)/,libsgt-$(l).a libsgt-$(l).so \
	    libsgt-$(l).so.$(ABI) pkgconfig/sgt-$(l).pc) share/man/man3/sgt_$(l).3))
	$(Q)rm -f $(foreach p,$(PROGRAMS),$(addprefix $(DESTDIR)$(PREFIX)/share/,$(BASH_DIR)/$(p) $(ZSH_DIR)/_$(p) $(FISH_DIR)/$(p).fish))
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/include/sgt $(DESTDIR)$(PREFIX)/lib/sgt
	$(Q)[ -n "$(DESTDIR)" ] || ldconfig 2> /dev/null || true

dist:                                  ## build/sgt-VERSION.tar.gz: the sources, the same bytes each time
	@tools/dist.sh $(VERSION) $(DIST)
DIST ?= build/sgt-$(VERSION).tar.gz

# What a package needs is what its programs load; a build of one's own machine is packaged, whatever it has found there.
DEB ?= $(B)/deb
MULTIARCH = $(shell $(CC) -print-multiarch 2> /dev/null || gcc -print-multiarch)
deb: need-packages programs libs $(if $(HAVE_NVCC),cuda) $(if $(MPICC),mpi)  ## Debian packages for this machine's release, in build/deb
	$(Q)rm -rf $(DEB) && $(MAKE) --no-print-directory -o programs -o libs -o cuda -o mpi install DESTDIR=$(DEB)/all PREFIX=/usr LIBDIR=lib/$(MULTIARCH) \
	    ZSH_DIR=zsh/vendor-completions
	@CC='$(CC)' tools/deb/deb.sh $(VERSION) $(ABI) lib/$(MULTIARCH) $(DEB)

clean:                                 ## remove build/ (every variant)
	$(Q)rm -rf build

help:                                  ## this list
	@echo 'make [TARGET] [V=1] [DEBUG=1] [SAN=address,undefined] [CC=clang] [CPU=plain] [B=DIR]'
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' Makefile | expand -t 22

.PHONY: need-packages run-demo run-check coverage run-coverage
need-packages:
	@missing=$$(tools/deps.sh build --missing) || \
	    { echo "sgt needs these packages: $$missing (make deps installs them)" >&2; exit 1; }

run-demo: $(addprefix $(B)/bin/sgt-,tokenize bench train sample report inspect)
	@$(end_line)
	@tools/demo.sh $(B) "$(CORPUS)"

# Which tests run: those of make check, of make check-all, or of a variant in make torture (all).
TIER ?= check

# From make check-all on, nvcc has to compile and link the CUDA library. In make check and in variants a library that is
# there is kept in step with the programs.
run-check: $(if $(HAVE_NVCC),$(if $(filter check,$(TIER))$(VARIANT),$(wildcard $(CUDA_LIB)),$(CUDA_LIB)))
run-check: $(if $(filter check,$(TIER)),,$(CHECK_RACE))
run-check: $(if $(MPICC),$(MPI_LIB:$(B)/%=$(B)/host/%))
run-check: programs libs $(SUITES:%=$(B)/tests/test-%) $(B)/tests/check-kernels $(CHECK_CUDA) $(HOST_LIB) $(HOST_PROGRAMS) mpi
	@$(end_line)
	@TIER=$(TIER) HOST_CXX='$(HOST_CXX)' tests/run.sh $(B)

.PHONY: programs libs
libs: $(PUBLIC:%=$(B)/lib/libsgt-%.a) $(PUBLIC:%=$(B)/lib/libsgt-%.so)  ## libsgt-loader and libsgt-tokenize alone, shared and static, for programs of your own
programs: $(PROGRAMS:%=$(B)/bin/%)

define library
$(B)/obj/libsgt-$(1).a: $$(call objects,$$(SRC_$(1)))
	$$(call say,AR,$$@)mkdir -p $$(@D) && rm -f $$@ && ar qcs $$@ $$^
endef
$(foreach l,$(LIBS),$(eval $(call library,$(l))))

# One object of all that the symbols need becomes both libraries.
define public
$(B)/obj/sgt-$(1).o: $(1)/sgt_$(1).symbols $$(call lib,$$(PARTS_$(1))) $(B)/flags
	$$(call say,LD,$$@)$$(CC) -r -nostdlib -o $$@ $$(addprefix -Wl$$(comma)-u$$(comma),$$(file < $$<)) \
	    $$(call lib,$$(PARTS_$(1))) && $$(OBJCOPY) --keep-global-symbols=$$< $$(addprefix -W ,$$(SHARED)) $$@
$(B)/lib/libsgt-$(1).a: $(B)/obj/sgt-$(1).o
	$$(call say,AR,$$@)mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$<
$(B)/lib/libsgt-$(1).so.$(ABI): $(B)/obj/sgt-$(1).o
	$$(call say,LD,$$@)mkdir -p $$(@D) && \
	    { echo 'SGT_$(ABI) { global:' && sed 's/$$$$/;/' $(1)/sgt_$(1).symbols && echo 'local: *; };'; } > $$<.map && \
	    $$(CC) -shared $$(ALL_LDFLAGS) -Wl,-soname,$$(@F) -Wl,--version-script=$$<.map \
	    $$(if $$(SAN),,-Wl$$(comma)-z$$(comma)defs) -o $$@ $$< $$(LD_$(1))
$(B)/lib/libsgt-$(1).so: $(B)/lib/libsgt-$(1).so.$(ABI)
	$$(Q)ln -sf $$(<F) $$@
endef
$(foreach l,$(PUBLIC),$(eval $(call public,$(l))))

define program
$(B)/bin/$(1): $(B)/obj/tools/$(1).o $$(call objects,$$(PARTS_$(1))) $$(call lib,$$(USES_$(1)))
	$$(call say,LD,$$@)mkdir -p $$(@D) && $$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(sort $$(foreach l,$$(USES_$(1)),$$(LD_$$(l))))
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))

define suite
$(B)/tests/test-$(1): $$(call objects,tests/$(1)) $$(call lib,$$(USES_$(1)))
	$$(call say,LD,$$@)mkdir -p $$(@D) && $$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ -lcriterion $$(sort $$(foreach l,$$(USES_$(1)),$$(LD_$$(l))))
endef
# CUDA's profiler is tested on a CUPTI of the tests' own.
$(B)/tests/test-train: $(addprefix $(B)/obj/kernels/cuda/,cupti.o cupti_records.o cupti_api.o nvtx.o)
$(foreach s,$(SUITES),$(eval $(call suite,$(s))))

$(B)/tests/check-kernels: $(call objects,tests/kernels) $(call lib,kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_kernels)

$(B)/tests/check-cuda: $(HOST_CU:%=$(B)/obj/%.o) $(HOST_PARTS) $(call lib,kernels loader)
$(B)/tests/check-cuda-race: $(HOST_CU:%=$(B)/obj/race/%.o) $(HOST_PARTS) $(call lib,kernels loader)
$(B)/tests/check-cuda $(B)/tests/check-cuda-race:
	$(call say,LD,$@)mkdir -p $(@D) && echo $^ > $@.parts && $(HOST_CXX) $(ALL_LDFLAGS) -o $@ $^ $(LD_kernels)

# The same cases on a GPU; and that program with the host in the GPU's place, which is how it is tested itself.
DEVICE_PARTS := $(DEVICE_CASES) $(DEVICE_MAIN) tests/kernels/device/cuda.cu tests/kernels/device/mirror.cpp
$(B)/tests/check-cuda-device: $(DEVICE_PARTS:%=$(B)/obj/device/%.o) $(B)/obj/tests/kernels/harness.o $(GEMM_PARTS) \
                              $(addprefix $(B)/obj/kernels/cuda/,cublaslt.o nccl.o) $(call lib,kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(NVCC) -Xlinker --wrap=__cudaLaunchKernel -Xcompiler -fopenmp -o $@ $^ -ldl -lm

PRETEND_PARTS := $(DEVICE_CASES) $(HOST_STANDS) $(DEVICE_MAIN) tests/kernels/device/mirror.cpp \
                 tests/kernels/device/pretend.cpp
$(B)/tests/check-cuda-pretend: $(PRETEND_PARTS:%=$(B)/obj/%.o) $(B)/obj/tests/kernels/harness.o $(GEMM_PARTS) \
                               $(call lib,kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(HOST_CXX) $(ALL_LDFLAGS) -o $@ $^ $(LD_kernels)

$(CUDA_LIB): $(CUDA_CU:%=$(B)/obj/device/%.o) $(CUDA_C:%.c=$(B)/obj/%.o) $(call lib,train kernels loader) $(CUDA_MAP)
	@tests/kernels/registers.sh $(CUDA_CU:%=$(B)/obj/device/%.log)
	$(call say,LD,$@)mkdir -p $(@D) && $(NVCC) $(if $(filter clang%,$(notdir $(CC))),-ccbin $(HOST_CXX) -Xcompiler -Wno-unused-command-line-argument) \
	    -shared -cudart static -o $@ $(filter-out %.map,$^) \
	    -Xlinker --version-script=$(CUDA_MAP) -Xlinker -z,defs -Xcompiler -static-libstdc++,-static-libgcc,-fopenmp -ldl -lm

$(HOST_LIB): $(CUDA_CU:%=$(B)/obj/%.o) $(HOST_STANDS:%=$(B)/obj/%.o) $(HOST_C:%.c=$(B)/obj/%.o) \
             $(B)/obj/tests/kernels/cudnn/stand_in.o $(call lib,train kernels loader) $(CUDA_MAP)
	$(call say,LD,$@)mkdir -p $(@D) && $(HOST_CXX) $(ALL_LDFLAGS) -shared -o $@ $(filter-out %.map,$^) \
	    -Wl,--version-script=$(CUDA_MAP) $(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(LD_kernels)

# Open MPI's headers are not pedantic.
$(MPI_LIB): tools/mpi/mpi.c $(B)/obj/loader/base/error.o
	$(call say,LD,$@)mkdir -p $(@D) && OMPI_CC=$(CC) $(MPICC) $(filter-out -Wpedantic,$(ALL_CFLAGS)) -MF $(B)/obj/mpi.d -shared \
	    -Wl,-soname,$(@F) -o $@ $^

$(B)/host/%: $(B)/%
	$(Q)mkdir -p $(@D) && cp $< $@

# The whole training step, on a CPU or on CUDA, against PyTorch's numbers.
$(B)/bin/check-step: $(call objects,tests/step) $(B)/obj/tests/train/fixture.o $(call lib,cli train kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_train) $(LD_kernels) $(LD_loader)

# gemm.c against cuBLASLt itself, as far as that goes without a GPU: descriptors and their attributes.
LT_STANDS := $(filter-out %/cublaslt.cpp %/cudnn.cpp,$(HOST_STANDS))
run-check: $(if $(SAN),,$(B)/tests/check-cublaslt)
$(B)/tests/check-cublaslt: $(call objects,tests/kernels/cublaslt) $(GEMM_PARTS) $(B)/obj/kernels/cuda/cublaslt.o \
                           $(LT_STANDS:%=$(B)/obj/%.o) $(call lib,kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(HOST_CXX) $(ALL_LDFLAGS) -Wl,--wrap=sgt_cublaslt_load -o $@ $^ $(LD_kernels)

# Attention by cuDNN without a GPU: check-cudnn, and a libcudnn.so.9 of the tests' own that does what a graph says.
CUDA_INCLUDE := $(patsubst %/bin/nvcc,-isystem %/include,$(realpath $(shell command -v nvcc 2> /dev/null)))
STAND_IN := $(B)/tests/stand-in/libcudnn.so.9
CUDNN_PARTS := $(filter-out %/stand_in.o,$(call objects,tests/kernels/cudnn)) \
               $(addprefix $(B)/obj/kernels/cuda/,attention_cudnn.o cudnn_graph.o cudnn.o)
run-check: $(B)/tests/check-cudnn $(STAND_IN)
$(B)/tests/check-cudnn: $(CUDNN_PARTS) $(call lib,kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_kernels)
$(STAND_IN): $(B)/obj/tests/kernels/cudnn/stand_in.o
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) -shared $(ALL_LDFLAGS) -o $@ $^ -lm && \
	    ln -sf $(@F) $(@D)/libcudnn_graph.so.9

# A program a property: with a main of its own that tries the seeds again, and with libFuzzer's (make fuzz).
FUZZ := $(filter-out replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
FUZZ_USES := cli train tokenize loader # without the kernels, which compute and read nothing
LD_FUZZ = $(sort $(foreach l,$(FUZZ_USES),$(LD_$(l))))
run-check: $(FUZZ:%=$(B)/tests/replay-%)
$(B)/tests/replay-options $(B)/bin/fuzz-options: LDFLAGS += -Wl,--wrap=exit
# The memory sanitizer knows nothing of libraries that it did not compile: what they write is said in borders.c. Only of
# zlib and zstd, which fill whole buffers, that is not said.
MEMORY := $(filter-out packed,$(FUZZ))
BORDERS := $(foreach f,json_loadb json_loads json_load_file json_dumpb json_pack json_unpack json_unpack_ex pcre2_match_8,-Wl,--wrap=$(f))
$(if $(filter memory,$(SAN)),$(eval $(B)/tests/replay-%: LDFLAGS += $(BORDERS)))
$(FUZZ:%=$(B)/tests/replay-%): $(B)/tests/replay-%: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/replay.o \
                               $(if $(filter memory,$(SAN)),$(B)/obj/tests/memory/borders.o) $(call lib,$(FUZZ_USES))
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_FUZZ)
$(FUZZ:%=$(B)/bin/fuzz-%): $(B)/bin/fuzz-%: $(B)/obj/tests/fuzz/%.o $(call lib,$(FUZZ_USES))
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LD_FUZZ)

# A program that disturbs another's calls, and what it preloads: never with a sanitizer, which has its own memory.
FAULTS := $(B)/tests/faults $(B)/tests/faults.so
run-check: $(FAULTS)
$(B)/tests/faults: tests/faults/faults.c tests/faults/plan.h $(B)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP $(SANFLAGS),$(ALL_CFLAGS)) -o $@ $<
$(B)/tests/faults.so: tests/faults/shim.c tests/faults/plan.h $(B)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP $(SANFLAGS),$(ALL_CFLAGS)) -shared -o $@ $< -ldl

STRESS := loader blocks guard saver ranks pipeline
# For the sanitizers, make SAN=thread build/thread/tests/stress-... (stress-loader 1000000): readers, streams and
# cancellation from many threads; the pools that they share; shards cut short under them; checkpoints that a thread
# writes; ranks that train; the pipeline from text to shards.
$(B)/tests/stress-loader: $(B)/obj/tests/loader/stress/stress.o $(call lib,loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_loader)
$(B)/tests/stress-blocks: $(B)/obj/tests/loader/stress/blocks.o $(call lib,loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_loader)
$(B)/tests/stress-guard: $(B)/obj/tests/loader/stress/guard.o $(call lib,loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_loader)
$(B)/tests/stress-saver: $(B)/obj/tests/train/stress/stress.o $(call lib,train kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_train) $(LD_kernels) $(LD_loader)
$(B)/tests/stress-ranks: $(B)/obj/tests/train/stress/ranks.o $(B)/obj/tests/train/ranks_fixture.o $(call lib,train kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_train) $(LD_kernels) $(LD_loader)
$(B)/tests/stress-pipeline: $(B)/obj/tests/tokenize/stress/stress.o $(call lib,tokenize loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(sort $(LD_tokenize) $(LD_loader))

# JSONL into documents, on one thread: a measurement, no test.
.PHONY: bench-json
bench-json: $(B)/tests/bench-json      ## how fast lines of JSONL become documents
	@$<
$(B)/tests/bench-json: $(B)/obj/tests/tokenize/bench/bench_json.o $(call lib,tokenize loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(sort $(LD_tokenize) $(LD_loader))

# A loader's windows drawn and its rows made, level by level: the figures of sample/draws.h and rows/rows.h.
.PHONY: bench-rows
bench-rows: $(B)/tests/bench-rows      ## what drawing windows and making rows takes, by the instructions used (ARGS=MIB)
	@$< $(ARGS)
$(B)/tests/bench-rows: $(B)/obj/tests/loader/bench/bench_rows.o $(call lib,loader)
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LD_loader)

$(B)/obj/%.o: %.c $(B)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(call flags,$<) -c -o $@ $<

$(B)/obj/%.cpp.o: %.cpp $(B)/flags-cxx
	$(call say,CXX,$<)mkdir -p $(@D) && $(HOST_CXX) $(HOST_CXXFLAGS) -c -o $@ $<

$(B)/obj/%.cu.o: %.cu $(B)/flags-cxx
	$(call say,CXX,$<)mkdir -p $(@D) && $(HOST_CXX) $(HOST_CXXFLAGS) -x c++ -c -o $@ $<

$(B)/obj/race/%.cu.o: %.cu $(B)/flags-cxx
	$(call say,CXX,$<)mkdir -p $(@D) && $(HOST_CXX) $(HOST_CXXFLAGS) -fsanitize=thread -x c++ -c -o $@ $<

$(B)/obj/device/%.o: % $(B)/flags-nvcc
	$(call say,NVCC,$<)mkdir -p $(@D) && $(NVCC) $(NVCCFLAGS) -x cu -c -o $@ $< > $(@:.o=.log) 2>&1 || \
	    { grep -vE 'ptxas info|^ +[0-9]+ bytes stack' $(@:.o=.log) >&2; rm -f $@; exit 1; }

# Objects are made anew when the compiler or its flags change.
$(B)/flags: MADE_BY = $(CC) $(ALL_CFLAGS)
$(B)/flags-cxx: MADE_BY = $(HOST_CXX) $(HOST_CXXFLAGS)
$(B)/flags-nvcc: MADE_BY = $(NVCC) $(NVCCFLAGS)
$(B)/flags $(B)/flags-cxx $(B)/flags-nvcc: $(if $(COUNTING),,FORCE) | need-packages
	$(Q)mkdir -p $(@D) && echo "$(MADE_BY)" | cmp -s - $@ || echo "$(MADE_BY)" > $@
.PHONY: FORCE

# GPT-2's merges are embedded by the assembler, which leaves no dependency behind.
$(B)/obj/tokenize/vocab/vocab.o: $(wildcard tokenize/vocab/*.bpe tokenize/vocab/*.tables)
$(B)/obj/tools/bench/peer.o: tests/peers/torch_step.py
$(B)/obj/tools/bench/sample.o: tests/peers/torch_sample.py
$(B)/obj/tools/bench/tokenize_peer.o: tests/peers/bpe.py
$(B)/obj/tools/bench/loader_peers.o: tests/peers/loaders.py

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
