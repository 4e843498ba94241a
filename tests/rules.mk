# rules.mk: how the tests, the analyzers and the benchmarks are built and run.

.PHONY: run-check check-wheel format lint layout coverage run-coverage check-kernels check-cuda check-nvcc
.PHONY: fuzz torture torture-variants torture-runs

torture: check-all torture-variants torture-runs ## every variant (clang, no optimization, lesser CPUs, sanitizers) and the exhaustive runs: a day

# ---- the CUDA kernels as C++ ----
# They run on the host, with the files of tests/kernels/host as stand-ins for CUDA and its
# libraries. check-cuda-race also checks their accesses to shared memory for races, which leaves no
# room for sanitizers.
HOST_CXX := $(if $(CLANG),$(patsubst clang%,clang++%,$(CC)),$(CXX))
HOST_CXXFLAGS = -std=c++17 -D_GNU_SOURCE -I. -Iloader \
    $(filter-out -Wstrict-prototypes -Wmissing-prototypes,$(WARN)) $(OPT) -ffp-contract=off -fPIC \
    -pthread $(SANFLAGS) $(CFLAGS) -MMD -MP
HOST_CU := $(sort $(wildcard kernels/cuda/*.cu tests/kernels/*.cu))
HOST_CPP := $(sort $(wildcard tests/kernels/*.cpp tests/kernels/host/*.cpp))
HOST_STANDS := $(filter-out %/device.cpp %_cases.cpp,$(wildcard tests/kernels/host/*.cpp))
# The backend's plain C code runs on the host too: matrix products through cuBLASLt, and names of
# failures.
GEMM_PARTS := $(addprefix $(B)/obj/kernels/cuda/,gemm.o gemm_expected.o failure.o)
CUDNN_PARTS := $(B)/obj/kernels/cuda/attention_cudnn.o
HOST_PARTS := $(HOST_CPP:%=$(B)/obj/%.o) $(B)/obj/tests/kernels/harness.o $(GEMM_PARTS) $(CUDNN_PARTS)
CHECK_RACE := $(if $(SAN),,$(B)/tests/check-cuda-race)

$(B)/obj/%.cpp.o: %.cpp $(B)/flags-cxx
	$(call say,CXX,$<)mkdir -p $(@D) && $(HOST_CXX) $(HOST_CXXFLAGS) -c -o $@ $<
$(B)/obj/%.cu.o: %.cu $(B)/flags-cxx
	$(call say,CXX,$<)mkdir -p $(@D) && $(HOST_CXX) $(HOST_CXXFLAGS) -x c++ -c -o $@ $<
$(B)/obj/race/%.cu.o: %.cu $(B)/flags-cxx
	$(call say,CXX,$<)mkdir -p $(@D) && $(HOST_CXX) $(HOST_CXXFLAGS) -fsanitize=thread -x c++ -c -o $@ $<

$(B)/tests/check-cuda: $(HOST_CU:%=$(B)/obj/%.o) $(HOST_PARTS) $(call lib,kernels loader)
$(B)/tests/check-cuda-race: $(HOST_CU:%=$(B)/obj/race/%.o) $(HOST_PARTS) $(call lib,kernels loader)
$(B)/tests/check-cuda $(B)/tests/check-cuda-race:
	$(call say,LD,$@)mkdir -p $(@D) && echo $^ > $@.parts && \
	    $(HOST_CXX) $(ALL_LDFLAGS) -o $@ $^ $(LD_kernels)

# The same cases on a GPU, except those that only the host has.
DEVICE_PARTS := $(sort $(wildcard kernels/cuda/*.cu tests/kernels/*.cu tests/kernels/*.cpp)) \
    $(addprefix tests/kernels/device/,cuda.cu mirror.cpp)
$(B)/tests/check-cuda-device: $(DEVICE_PARTS:%=$(B)/obj/device/%.o) \
    $(B)/obj/tests/kernels/harness.o $(GEMM_PARTS) \
    $(B)/obj/kernels/cuda/cublaslt.o $(call lib,kernels loader)
	$(call say,LD,$@)mkdir -p $(@D) && \
	    $(NVCC) -Xlinker --wrap=cudaLaunchKernelExC -Xcompiler -fopenmp -o $@ $^ -ldl -lm

# The whole CUDA backend on the host, with programs next to it that the tests run with this backend.
HOST_C := $(filter-out $(HOST_STANDS:tests/kernels/host/%.cpp=kernels/cuda/%.c),$(CUDA_C))
HOST_LIB := $(B)/host/lib/libsgt-cuda.so
HOST_PROGRAMS := $(addprefix $(B)/host/,bin/sgt-train bin/sgt-eval bin/sgt-bench tests/check-step)
$(HOST_LIB): $(CUDA_CU:%=$(B)/obj/%.o) $(HOST_STANDS:%=$(B)/obj/%.o) $(HOST_C:%.c=$(B)/obj/%.o) \
    $(call lib,train kernels loader) $(CUDA_MAP)
	$(call say,LD,$@)mkdir -p $(@D) && \
	    $(HOST_CXX) $(ALL_LDFLAGS) -shared -o $@ $(filter-out %.map,$^) \
	    -Wl,--version-script=$(CUDA_MAP),--wrap=sgt_library_load $(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(LD_kernels)
$(B)/host/%: $(B)/%
	$(Q)mkdir -p $(@D) && cp $< $@

check-cuda: need-packages $(B)/tests/check-cuda $(CHECK_RACE) ## the CUDA kernels on the host, without a GPU: four schedules, race mode, all mutants
	@HOST_CXX='$(HOST_CXX)' tests/kernels/check-cuda.sh $(B) torture

# gemm.c against the real cuBLASLt, as far as that works without a GPU: descriptors and attributes.
LT_STANDS := $(filter-out %/cublaslt.cpp %/cudnn.cpp,$(HOST_STANDS))
$(B)/tests/check-cublaslt: $(call objects,tests/kernels/cublaslt) $(GEMM_PARTS) \
    $(addprefix $(B)/obj/kernels/cuda/,cublaslt.o bias.cu.o columns.cu.o) $(LT_STANDS:%=$(B)/obj/%.o) \
    $(call lib,kernels loader)
	$(call link,$(HOST_CXX) -Wl$(comma)--wrap=sgt_cublaslt_load,$(LD_kernels))

# A libcudnn.so.9 that is too old to be used.
OLD_CUDNN := $(B)/tests/old/libcudnn.so.9
$(B)/tests/check-cudnn: $(B)/obj/tests/kernels/cudnn/check-cudnn.o $(B)/obj/kernels/cuda/cudnn.o $(call lib,loader)
	$(call link,$(CC),$(LD_kernels))
$(OLD_CUDNN): $(B)/obj/tests/kernels/cudnn/old.o
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) -shared $(ALL_LDFLAGS) -o $@ $^ && \
	    ln -sf $(@F) $(@D)/libcudnn_graph.so.9

# ---- checks of the code that nvcc generates for the kernels ----
ifneq ($(HAVE_NVCC),)
check-nvcc: need-packages $(HOST_CU:%=$(B)/obj/device/%.o) $(CUDA_LIB) $(HOST_LIB) $(HOST_PROGRAMS) ## nvcc on every CUDA kernel: no warning, no spill, registers
	@tests/kernels/check-nvcc.sh $(B)
else
check-nvcc:
	@echo 'no $(NVCC): left out compiling the CUDA kernels for sm_80 and sm_90a'
endif

# ---- the suites: a Criterion program per folder, and programs with a main of their own ----
SUITES := base loader tokenize train
USES_base := cli tokenize loader
USES_loader := loader
USES_tokenize := tokenize loader
USES_train := train kernels loader
define suite
$(B)/tests/test-$(1): $$(call objects,tests/$(1)) $$(call lib,$$(USES_$(1)))
	$$(call link,$$(CC),-lcriterion $$(call ld,$$(USES_$(1))))
	$(Q)echo '$$(CC) $$(ALL_LDFLAGS) "$$$$@" $$^ -lcriterion $$(call ld,$$(USES_$(1)))' > $$@.link
endef
$(foreach s,$(SUITES),$(eval $(call suite,$(s))))
# The tests inject faults into the readers by wrapping the calls that fail (tests/loader/faults.h).
READER_WRAPS := fcntl io_uring_peek_batch_cqe io_uring_queue_init \
    io_uring_submit_and_wait pread sgt_memory_look sgt_memory_of_siblings sgt_sampler_block sgt_sampler_init syscall
$(B)/tests/test-loader $(B)/tests/stress-loader: override LDFLAGS += $(READER_WRAPS:%=-Wl,--wrap=%)
# Wrapping makes units of work small, so that text is cut in many positions
# (tests/tokenize/piece.c).
$(B)/tests/test-tokenize $(B)/tests/stress-pipeline: override LDFLAGS += -Wl,--wrap=sgt_text_feed_piece
# A stand-in for CUPTI tests the profiler of the CUDA backend.
$(B)/tests/test-train: $(B)/obj/kernels/cuda/cupti.o
$(B)/tests/test-train: override LDFLAGS += -Wl,--wrap=sgt_library_load

# The columns "amx" of check-kernels run the AMX kernels on a CPU without AMX (tests/kernels/amx.h).
$(B)/tests/check-kernels: override LDFLAGS += -Wl,--wrap=sgt_cpu_amx
$(B)/tests/check-kernels: $(call objects,tests/kernels tests/kernels/trap) $(call lib,kernels loader)
	$(call link,$(CC),$(LD_kernels))
check-wheel:                           ## the wheels in empty roots of Debian, and on aarch64 in emulation (needs PyPI)
	+@$(again) NVCC=none programs libs wheel
	@TIER=wheel tests/cli/run.sh $(B)/bin
	@tests/cli/run.sh $(B)/wheel-files/bin tokenize-filter
check-kernels: need-packages $(B)/tests/check-kernels ## every fast kernel against its definition (ARGS=--bench: speed)
	@$(B)/tests/check-kernels $(ARGS)

# The complete training step, on a CPU or with CUDA, compared with PyTorch's numbers.
$(B)/tests/check-step: $(call objects,tests/step) $(B)/obj/tests/train/fixture.o \
    $(call lib,cli train kernels loader)
	$(call link,$(CC),$(call ld,train kernels loader))

# A program that makes another program's system calls fail, and the library that it preloads. They
# are built without a sanitizer, which would replace malloc itself. Also a library of file locks
# that do not work.
FAULTS := $(B)/tests/faults $(B)/tests/faults.so $(B)/tests/locks.so
FAULTS_CC = $(CC) $(filter-out -MMD -MP $(SANFLAGS),$(ALL_CFLAGS))
$(B)/tests/faults: tests/faults/faults.c tests/faults/plan.h $(B)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(FAULTS_CC) -o $@ $<
$(B)/tests/faults.so: tests/faults/shim.c tests/faults/plan.h $(B)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(FAULTS_CC) -shared -o $@ $< -ldl
$(B)/tests/locks.so: tests/faults/locks.c $(B)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(FAULTS_CC) -shared -o $@ $< -ldl

# check-all and larger tiers need the CUDA libraries that nvcc builds. make check and variants rebuild
# the library only if it exists, so that it matches the programs.
run-check: $(if $(HAVE_NVCC),$(if $(filter check,$(TIER))$(VARIANT),$(wildcard $(CUDA_LIB)),\
    $(CUDA_LIB) $(B)/wheel-files/cuda/libsgt-cuda.so))
# make check tests what runs on a CPU. check-all and check-cuda test the CUDA backend on the host.
ON_HOST := $(B)/tests/check-cuda $(CHECK_RACE) $(HOST_LIB) $(HOST_PROGRAMS) $(if $(MPICC),$(MPI_LIB:$(B)/%=$(B)/host/%)) \
    $(if $(SAN),,$(B)/tests/check-cublaslt) $(B)/tests/check-cudnn $(OLD_CUDNN)
run-check: $(if $(filter check,$(TIER)),,$(ON_HOST))
run-check: programs libs mpi $(SUITES:%=$(B)/tests/test-%) $(B)/tests/check-kernels $(B)/tests/check-step $(FAULTS)
	@TIER=$(TIER) HOST_CXX='$(HOST_CXX)' tests/run.sh $(B)

# ---- fuzzing: one program for all properties, whose main runs the seeds or is libFuzzer's ----
FUZZ := $(shell sed -n 's/^    {"\([a-z]*\)", fuzz_.*/\1/p' tests/fuzz/fuzz.c)
FUZZ_C := $(filter-out %/replay.c,$(wildcard tests/fuzz/*.c))
FUZZ_PARTS = $(FUZZ_C:%.c=$(B)/obj/%.o) $(call lib,$(FUZZ_USES))
FUZZ_USES := train tokenize loader # not the kernels, which parse no input
run-check: $(B)/tests/replay
$(B)/tests/replay: $(B)/obj/tests/fuzz/replay.o $(FUZZ_PARTS)
	$(call link,$(CC),$(call ld,$(FUZZ_USES)))
$(B)/tests/fuzz: $(FUZZ_PARTS)
	$(call link,$(CC) -fsanitize=fuzzer,$(call ld,$(FUZZ_USES)))

fuzz: need-packages                    ## look for bytes that break a property, with clang's libFuzzer (FUZZ_SECONDS=N each, FUZZ=NAME...)
	@command -v clang > /dev/null || { echo "make fuzz needs clang" >&2; exit 1; }
	+@$(again) B=build/fuzz CC=clang SAN=fuzzer-no-link,address,undefined build/fuzz/tests/fuzz
	@tests/fuzz/run.sh build/fuzz $(or $(FUZZ_SECONDS),60) $(FUZZ)

# ---- programs for stress tests and measurements, run under the thread sanitizer or by hand ----
# $(call single,NAME,OBJECTS,LIBRARIES) is the rule of build/tests/NAME.
define single
$(B)/tests/$(1): $(2:%=$(B)/obj/tests/%.o) $$(call lib,$(3))
	$$(call link,$$(CC),$$(call ld,$(3)))
endef
STRESS := loader saver ranks pipeline
$(eval $(call single,stress-loader,loader/stress/stress loader/faults,loader))
$(eval $(call single,stress-saver,train/stress/stress train/fixture,train kernels loader))
$(eval $(call single,stress-ranks,train/stress/ranks train/ranks_fixture train/fixture,train kernels loader))
$(eval $(call single,stress-pipeline,tokenize/stress/stress tokenize/piece,tokenize loader))

coverage:                              ## which lines of tokenize, loader and train the tests run (SHOW=FILE: lines that never ran)
	+@$(again) COVERAGE=1 CC=gcc CXX=g++ run-coverage
run-coverage: need-packages programs libs $(SUITES:%=$(B)/tests/test-%) $(B)/tests/check-step $(HOST_LIB) \
    $(HOST_PROGRAMS) $(B)/tests/replay
	@tests/coverage.sh $(B)

# ---- layout of C and CUDA C by .clang-format, for one version of clang-format ----
LAYOUT_VERSION := 14
CLANG_FORMAT ?= $(firstword $(foreach f,clang-format-$(LAYOUT_VERSION) clang-format,\
    $(shell $(f) --version 2> /dev/null | grep -q 'version $(LAYOUT_VERSION)\.' && echo $(f))))
LAYOUT = $(filter-out %tables.c,$(shell find loader tokenize train kernels tools tests \
    -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp'))
format:                                ## lay out every C and CUDA C file as .clang-format says
	@test -n "$(CLANG_FORMAT)" || { echo 'make format needs clang-format $(LAYOUT_VERSION)' >&2; exit 1; }
	$(Q)$(CLANG_FORMAT) -i $(LAYOUT)
layout:
	$(if $(CLANG_FORMAT),$(Q)$(CLANG_FORMAT) --dry-run -Werror $(LAYOUT),\
	    @echo 'no clang-format $(LAYOUT_VERSION) (tools/deps.sh all): left out the layout')

# ---- lint: gcc -fanalyzer, cppcheck and clang-tidy on every source of the programs ----
# A file is analyzed again when it or one of its headers has changed. Findings that are no faults
# are listed in tests/lint/allowed; any other finding fails.
LINT := build/lint
LINT_C := $(filter-out loader/examples/%,\
    $(sort $(wildcard $(addsuffix /*.c,$(foreach d,loader tokenize kernels train tools,$(d) $(d)/*)))))
LINT_KNOWN = $(if $(filter %/base/error.c,$<),,-include tests/lint/known.h -Wno-unused-value)
LINT_FLAGS = $(filter-out -Werror -MMD -MP -O% -g%,$(ALL_CFLAGS)) $(call flags,$*.c) $(LINT_KNOWN)
LINT_ALL := $(LINT_C:.c=) $(foreach l,$(LIBS),$(LEVELS_$(l)))
# cppcheck and clang-tidy analyze vector code. gcc is left out there: its analysis of a thousand
# inlined functions would take longer than all the rest. gcc 12 compares a vector's shift with its
# number of elements, so that warning is off.
LINT_ANALYZE = -O0 -fdiagnostics-plain-output -Wno-analyzer-shift-count-overflow \
    $(if $(filter kernels/cpu/level% kernels/cpu/product% %avx2 %avx512 %_amx,$*),,-fanalyzer)
$(LINT)/%.gcc: $$(call source,$$*) tests/lint/known.h
	$(call say,GCC,$*.c)mkdir -p $(@D) && gcc $(LINT_FLAGS) $(LINT_ANALYZE) -MMD -MP -MF $@.d -MT $@ \
	    -c -o $@.o $< > $@.part 2>&1 && rm $@.o && mv $@.part $@
$(LINT)/%.tidy: $$(call source,$$*) $(LINT)/%.gcc tests/lint/clang-tidy
	$(call say,TIDY,$*.c)mkdir -p $(@D) && \
	    clang-tidy --quiet --config-file=tests/lint/clang-tidy $< -- $(LINT_FLAGS) \
	    2> $@.talk > $@.part && sed "s|$(CURDIR)/||g" $@.part > $@ && rm $@.part $@.talk
$(LINT)/all.cppcheck: $(LINT_ALL:%=$(LINT)/%.gcc)
	$(call say,CHECK,all)cppcheck -q --std=c11 --language=c \
	    --enable=warning,portability,performance \
	    --template='{file}:{line}: warning: {message} [{id}]' -D__x86_64__ -D__BYTE_ORDER__=1234 \
	    -D__ORDER_LITTLE_ENDIAN__=1234 -D__SIZEOF_SIZE_T__=8 $(filter -D% -I%,$(ALL_CFLAGS)) \
	    $(LINT_C) > $@.part 2>&1 && mv $@.part $@
LINT_KINDS := $(if $(shell command -v gcc 2> /dev/null),gcc \
    $(if $(shell command -v cppcheck 2> /dev/null),cppcheck) \
    $(if $(shell command -v clang-tidy 2> /dev/null),tidy))
LINT_DONE := $(foreach k,$(filter-out cppcheck,$(LINT_KINDS)),$(LINT_ALL:%=$(LINT)/%.$(k))) \
    $(if $(filter cppcheck,$(LINT_KINDS)),$(LINT)/all.cppcheck)
lint: layout $(LINT_DONE)              ## gcc -fanalyzer, cppcheck and clang-tidy on every source; budgets of lines; the form of messages
	@command -v gcc > /dev/null || echo 'no gcc: left out its analyzer, cppcheck and clang-tidy'
	@command -v cppcheck > /dev/null || echo 'no cppcheck (tools/deps.sh all): left out'
	@command -v clang-tidy > /dev/null || echo 'no clang-tidy (tools/deps.sh all): left out'
	@! command -v python3 > /dev/null || { tests/lint/count.py && tests/lint/messages.py; }
	@tests/lint/rooms.sh && mkdir -p $(LINT) && tests/lint/lint.sh $(LINT) $(LINT_KINDS)
-include $(shell find $(LINT) -name '*.gcc.d' 2> /dev/null)

# ---- torture: the tests in every variant, then runs that take hours ----
# Each call is disturbed in turn; random kills; an hour of training; ten minutes of fuzzing per
# property (TORTURE_KILLS=N, SOAK_SECONDS=N, FUZZ_SECONDS=N, SEED=N).
variant = $(again) run-check TIER=all
torture-variants: need-packages
	+@! command -v clang > /dev/null && echo 'no clang: left out its build' || $(variant) CC=clang
	+@$(again) check-cuda
	@tests/step/check-step.sh $(B) torture
	+@$(variant) CPU=avx2
	+@$(variant) CPU=plain
	+@$(variant) DEBUG=1
	+@$(variant) SAN=address,undefined
	+@$(again) SAN=thread $(STRESS:%=build/thread/tests/stress-%)
	@for s in $(STRESS); do build/thread/tests/stress-$$s || exit 1; done
	+@$(again) SAN=address,undefined build/address-undefined/tests/stress-loader
	@build/address-undefined/tests/stress-loader
torture-runs: need-packages programs $(FAULTS) $(B)/tests/test-tokenize
	@for i in $$(seq 100); do SEED=$$(date +%s)$$i $(B)/tests/test-tokenize --jobs 1 || exit 1; done
	@FAULTS_EVERY=1 SCRIPT_SECONDS=36000 SHOW=1 tests/cli/run.sh $(B)/bin -faults
	@TORTURE_KILLS=$(or $(TORTURE_KILLS),500) SCRIPT_SECONDS=36000 SHOW=1 tests/cli/run.sh $(B)/bin -torture
	@SOAK_SECONDS=$(or $(SOAK_SECONDS),3600) SCRIPT_SECONDS=36000 SHOW=1 tests/cli/run.sh $(B)/bin -soak
	@$(if $(PYTHON),$(PYTHON) tests/data/compare_tiktoken.py --mix $(or $(BYTES),1G) --seed $(or $(SEED),1) \
	    --bin $(B)/bin $(or $(CORPUS),$(sort $(dir $(wildcard */*.c)))),\
	    echo 'PYTHON=... with tiktoken and openai-whisper: left out 1 GB against tiktoken')
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600)
