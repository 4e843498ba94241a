# sgt: one build, no configure. `make help` lists the targets.
#
# This file builds the programs and libraries; tests/rules.mk tests them, and tools/install.mk and
# tools/python/wheel.mk package them. Each variant is built in its own folder: make DEBUG=1,
# SAN=address,undefined, CC=clang, CPU=plain (or avx2; programs and tests then see a CPU of that
# level). B=DIR chooses another build folder; V=1 prints all commands.

comma := ,
empty :=
space := $(empty) $(empty)
CLANG := $(filter clang%,$(notdir $(CC)))
VARIANT := $(subst $(space),-,$(strip $(if $(DEBUG),debug) $(if $(COVERAGE),coverage) \
    $(subst $(comma),-,$(SAN)) $(CPU) $(if $(CLANG),clang)))
B ?= build$(if $(VARIANT),/$(VARIANT))

OBJCOPY ?= objcopy
MAKEFLAGS += --no-builtin-rules
Q := $(if $(V),,@)

# $(call say,KIND,FILE) begins the command of a build step, and prints one line for it; with V=1,
# make prints the command instead.
say = $(if $(V),,@echo '  $(1) $(2)';)

# ---- compiler flags ----
CFLAGS ?= -gdwarf-4 # valgrind in Debian 12 cannot read version 5, clang's default
OPT := $(if $(DEBUG),-O0,-O2)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Werror
PEDANTIC := -Wpedantic -Wno-overlength-strings # every compiler takes more than 4095 bytes
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
INCLUDE := -I. -Iloader -Itokenize # the last two for the installed headers
# -ffp-contract=off: no compiler fuses a multiplication and an addition unless the code asks for it.
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(INCLUDE) $(WARN) $(PEDANTIC) $(OPT) -ffp-contract=off -fPIC \
    -pthread $(SANFLAGS) $(CPU:%=-DSGT_CPU_MOST='"%"') $(CFLAGS) -MMD -MP
ALL_LDFLAGS = -Wl,--as-needed -pthread $(SANFLAGS) $(if $(COVERAGE),--coverage) $(LDFLAGS)

# Flags per folder and per file. On other processors than x86-64, files for its vector instructions
# compile to empty objects.
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine 2> /dev/null)),)
AVX2 := -mavx2 -mfma -mbmi -mbmi2 -mlzcnt -mf16c
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl
LEVELS_loader := loader/sample/draws-avx2 loader/sample/draws-avx512
LEVELS_tokenize := $(addprefix tokenize/bpe/words-,avx2 avx512 wide-avx2 wide-avx512)
LEVELS_kernels := $(addprefix kernels/cpu/,level-avx2 level-avx512 level-bf16-avx512 level-amx \
    product-avx2 product-avx512 product-bf16-avx512)
endif
LEVELS_tokenize += tokenize/bpe/words-wide-plain tokenize/bpe/pieces-wide
# These objects are sources that are compiled again, for a CPU level or for wide ids. For example,
# words-wide-avx2.o is words.c compiled with SGT_FOR_wide, with SGT_LEVEL as "avx2", and with
# SGT_NAME(f) as f_wide_avx2.
source = $(or $(wildcard $(1).c),$(firstword $(subst -, ,$(1))).c)
level = $(patsubst $(basename $(call source,$(1)))-%,%,$(1))
level_flags = -D'SGT_NAME(f)=f\#\#_$(subst -,_,$(1))' -DSGT_LEVEL='"$(lastword $(subst -, ,$(1)))"' \
    $(patsubst %,-DSGT_FOR_%,$(filter wide bf16 amx,$(subst -, ,$(1))))
flags = $(if $(filter loader/% tokenize/%,$(1)),-Wconversion) \
    $(if $(COVERAGE),$(if $(filter loader/% tokenize/% train/%,$(1)),\
        -O0 --coverage -fprofile-update=atomic)) \
    $(if $(filter kernels/%,$(1)),$(if $(DEBUG),,-O3)) \
    $(if $(filter kernels/% train/% tests/kernels/% tests/train/% tools/bench/bench.c \
        tools/inspect/verify.c,$(1)),-fopenmp) \
    $(if $(filter %/parquet_page.c,$(1)),$(LD_codecs:-l%=-DSGT_%)) \
    $(if $(wildcard $(1)),,$(call level_flags,$(call level,$(1:.c=)))) \
    $(if $(filter %_avx2.c %-avx2.c,$(1)),$(AVX2)) \
    $(if $(filter %_avx512.c %-avx512.c,$(1)),$(AVX512)) \
    $(if $(filter %-bf16-avx512.c,$(1)),-mavx512bf16) \
    $(if $(filter %_amx.c %-amx.c,$(1)),$(if $(AVX512),$(AVX512) -mavx512bf16 -mamx-tile -mamx-bf16)) \
    $(if $(filter %_vbmi2_avx512.c,$(1)),$(if $(AVX512),-mavx512vbmi -mavx512vbmi2))

# ---- libraries: each folder becomes build/obj/libsgt-FOLDER.a ----
sources = $(sort $(foreach d,$(1),$(wildcard $(d)/*.c)))
objects = $(patsubst %.c,$(B)/obj/%.o,$(call sources,$(1)))
lib = $(foreach l,$(1),$(B)/obj/libsgt-$(l).a)

LIBS := loader tokenize kernels train cli ranks sample
SRC_loader := loader $(addprefix loader/,base shards sample read rows)
SRC_tokenize := tokenize $(addprefix tokenize/,text vocab bpe input out parts learn)
SRC_kernels := kernels kernels/ref kernels/cpu
SRC_train := train $(addprefix train/,model data memory cpu run log generate)
SRC_cli := tools/cli
SRC_ranks := tools/ranks
SRC_sample := tools/sample

LD_loader := -lxxhash -luring -ljansson
# LD_codecs: optional codecs of Parquet. sgt-tokenize refuses files that need a missing codec.
# $(call if_header,HEADER,COMPILER,WORD) expands to WORD if the compiler finds the header.
if_header = $(shell printf '\043include <$(1)>\n' | $(2) -E -x c - > /dev/null 2>&1 && echo $(3))
LD_codecs := $(call if_header,snappy-c.h,$(CC),-lsnappy) $(call if_header,lz4.h,$(CC),-llz4)
LD_tokenize := -lutf8proc -lpcre2-8 -lxxhash -ljansson -lz -lzstd $(LD_codecs) -lm
LD_kernels := -fopenmp -ldl -lm
LD_train := -fopenmp -lxxhash -ljansson -lm
LD_cli := -ljansson -lm
LD_ranks := -ldl
# $(call ld,LIBRARIES): the linker flags that a program needs if it uses these libraries of ours.
ld = $(sort $(foreach l,$(1),$(LD_$(l))))

# The public libraries, which other programs link. They export the symbols listed in
# NAME/sgt_NAME.map; all other symbols are local. ABI increases when programs must be compiled
# again.
PUBLIC := loader tokenize
PARTS_loader := loader
PARTS_tokenize := tokenize loader
SHARED := sgt_fail sgt_fail_errno sgt_printable sgt_say # of base/error.h, in both
ABI := 1
VERSION := $(shell sed -n 's/.*SGT_VERSION "\(.*\)"/\1/p' loader/base/version.h)

# ---- programs: tools/sgt-X.c, the folder tools/X, and the libraries they use ----
PROGRAMS := $(sort $(patsubst tools/%.c,%,$(wildcard tools/sgt-*.c)))
USES := sample cli train kernels tokenize loader
USES_sgt-tokenize := ranks cli tokenize loader
USES_sgt-train := ranks $(USES)

# ---- the CUDA backend, libsgt-cuda.so: machine code for sm_80 and sm_90a, PTX for the rest ----
NVCC ?= nvcc
NVCCFLAGS = -std=c++17 -O3 -lineinfo $(NVCC_COMPRESS) -I. -Iloader \
    -Werror all-warnings -Xptxas -v -Xcompiler -fPIC,-pthread \
    -gencode 'arch=compute_80,code=[sm_80,compute_80]' -gencode arch=compute_90a,code=sm_90a -MMD -MP
HAVE_NVCC := $(if $(SAN),,$(shell command -v $(NVCC) 2> /dev/null))
# nvcc compresses a quarter smaller since CUDA 12.8.
NVCC_COMPRESS := $(if $(HAVE_NVCC),$(shell $(NVCC) --help | grep -q compress-mode && echo --compress-mode=size || \
    echo -Xfatbin=-compress-all))
CUDA_CU := $(sort $(wildcard kernels/cuda/*.cu))
CUDA_C := $(sort $(wildcard kernels/cuda/*.c train/cuda/*.c))
CUDA_MAP := train/cuda/cuda_library.map
CUDA_LIB := $(B)/lib/libsgt-cuda.so

# ---- MPI, which connects the ranks: loaded if mpirun or srun started the program ----
MPI_LIB := $(B)/lib/libsgt-mpi.so
# Also check for the header, because Debian's openmpi-bin has mpicc without it.
MPICC := $(if $(SAN),,$(call if_header,mpi.h,mpicc,mpicc))

# ---- what to type ----
.PHONY: all programs libs cuda mpi deps demo run-demo check check-all check-bare clean help need-packages
all: need-packages programs libs cuda mpi man ## build every program, and the CUDA backend if nvcc is here
	@echo 'built $(PROGRAMS) in $(B)/bin$(if $(filter 2,$(words $(LD_codecs))),,; Parquet without lz4 or snappy (liblz4-dev, libsnappy-dev))'

programs: $(PROGRAMS:%=$(B)/bin/%)
libs: $(PUBLIC:%=$(B)/lib/libsgt-%.a) $(PUBLIC:%=$(B)/lib/libsgt-%.so) ## libsgt-loader and libsgt-tokenize alone, shared and static

cuda: $(if $(HAVE_NVCC),$(CUDA_LIB))   ## the CUDA backend alone
	@$(if $(HAVE_NVCC),:,echo 'no $(NVCC): the CUDA backend is left out, everything else is there')
mpi: $(if $(MPICC),$(MPI_LIB))
	@$(if $(MPICC),:,echo 'built without MPI, which only several processes need (mpirun; package libopenmpi-dev)')

deps:                                  ## install what is missing (apt-get; sudo unless root)
	@tools/deps.sh

# Run one job per core, unless -j was given.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2> /dev/null || echo 2))
# Recipes that use this begin with +, as make requires for lines that call make.
again = $(MAKE) $(JOBS) --no-print-directory

# demo and check are a newcomer's first commands. They install missing packages, then run make
# again.
demo:                                  ## the main job on real text, on a CPU, in under 3 minutes (CORPUS=DIR: your text)
	@tools/deps.sh build
	+@$(again) run-demo
run-demo: $(addprefix $(B)/bin/sgt-,tokenize bench train sample report inspect)
	@tools/demo.sh $(B) "$(CORPUS)"

# There are three tiers of tests, each of which includes the tier before it: check, all and torture.
# tests/rules.mk defines torture and the tests of each tier. tests/run.sh and the test programs read
# $TIER.
TIER ?= check
check: deps                            ## the tests, within 8 minutes on two cores, build included
	+@$(again) run-check TIER=check
check-all: deps                        ## lint, nvcc on the CUDA kernels, and the tests that take longer: within 40 minutes
	+@$(again) lint check-nvcc
	+@$(again) run-check TIER=all
check-bare:                            ## make demo and make check in an empty Debian, as a new user: needs root and debootstrap
	@tests/bare.sh build/bare

clean:                                 ## remove build/ (every variant)
	$(Q)rm -rf build

help:                                  ## this list
	@echo 'make [TARGET] [V=1] [DEBUG=1] [SAN=address,undefined] [CC=clang] [CPU=plain] [B=DIR]'
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(filter-out %.d,$(MAKEFILE_LIST)) | expand -t 22

need-packages:
	@missing=$$(tools/deps.sh build --missing) || \
	    { echo "sgt needs these packages: $$missing (make deps installs them)" >&2; exit 1; }

# ---- rules ----
# $(call link,COMPILER,LIBRARIES) links the prerequisites into the target.
link = $(call say,LD,$@)mkdir -p $(@D) && $(1) $(ALL_LDFLAGS) -o $@ $^ $(2)

define library
$(B)/obj/libsgt-$(1).a: $$(call objects,$$(SRC_$(1))) $(LEVELS_$(1):%=$(B)/obj/%.o)
	$$(call say,AR,$$@)mkdir -p $$(@D) && rm -f $$@ && $$(AR) qcs $$@ $$^
endef
$(foreach l,$(LIBS),$(eval $(call library,$(l))))

# The exported symbols and everything that they need are linked into one object, from which both the
# static and the shared library are made.
names = $(shell sed -nE 's/^ *(sgt_[a-z0-9_]+);.*/\1/p' $(1)/sgt_$(1).map)
define public
$(B)/obj/sgt-$(1).o: $(1)/sgt_$(1).map $$(call lib,$$(PARTS_$(1))) $(B)/flags
	$$(call say,LD,$$@)$$(CC) -r -nostdlib -o $$@ \
	    $$(addprefix -Wl$$(comma)-u$$(comma),$$(call names,$(1))) $$(call lib,$$(PARTS_$(1))) && \
	    $$(OBJCOPY) $$(addprefix -G ,$$(call names,$(1))) $$(addprefix -W ,$$(SHARED)) $$@
$(B)/lib/libsgt-$(1).a: $(B)/obj/sgt-$(1).o
	$$(call say,AR,$$@)mkdir -p $$(@D) && rm -f $$@ && $$(AR) rcs $$@ $$<
$(B)/lib/libsgt-$(1).so.$(ABI): $(B)/obj/sgt-$(1).o
	$$(call say,LD,$$@)mkdir -p $$(@D) && \
	    $$(CC) -shared $$(ALL_LDFLAGS) -Wl,-soname,$$(@F) -Wl,--version-script=$(1)/sgt_$(1).map \
	    $$(if $$(SAN),,-Wl$$(comma)-z$$(comma)defs) -o $$@ $$< $$(LD_$(1))
$(B)/lib/libsgt-$(1).so: $(B)/lib/libsgt-$(1).so.$(ABI)
	$$(Q)ln -sf $$(<F) $$@
endef
$(foreach l,$(PUBLIC),$(eval $(call public,$(l))))

define program
$(B)/bin/$(1): $(B)/obj/tools/$(1).o $$(call objects,$(1:sgt-%=tools/%)) \
    $$(call lib,$$(or $$(USES_$(1)),$$(USES)))
	$$(call link,$$(CC),$$(call ld,$$(or $$(USES_$(1)),$$(USES))))
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))

# If CC is clang, nvcc uses clang as its host compiler too.
$(CUDA_LIB): $(CUDA_CU:%=$(B)/obj/device/%.o) $(CUDA_C:%.c=$(B)/obj/%.o) \
    $(call lib,train kernels loader) $(CUDA_MAP)
	@tests/kernels/registers.sh $(CUDA_CU:%=$(B)/obj/device/%.log)
	$(call say,LD,$@)mkdir -p $(@D) && $(NVCC) \
	    $(if $(CLANG),-ccbin $(HOST_CXX) -Xcompiler -Wno-unused-command-line-argument) \
	    -shared -cudart static -o $@ $(filter-out %.map,$^) -Xlinker --version-script=$(CUDA_MAP) \
	    -Xlinker -z,defs -Xcompiler -static-libstdc++,-static-libgcc -ldl -lm

$(MPI_LIB): tools/ranks/libsgt-mpi/mpi.c $(B)/obj/loader/base/error.o # Open MPI's headers are not pedantic
	$(call say,LD,$@)mkdir -p $(@D) && OMPI_CC=$(CC) $(MPICC) $(filter-out -Wpedantic,$(ALL_CFLAGS)) \
	    -MF $(B)/obj/mpi.d -shared -Wl,-soname,$(@F) -o $@ $(filter %.c %.o,$^)

.SECONDEXPANSION:
$(B)/obj/%.o: $$(call source,$$*) $(B)/flags
	$(call say,CC,$*.c)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(call flags,$*.c) -c -o $@ $<

$(B)/obj/device/%.o: % $(B)/flags-nvcc
	$(call say,NVCC,$<)mkdir -p $(@D) && $(NVCC) $(NVCCFLAGS) -x cu -c -o $@ $< > $(@:.o=.log) 2>&1 || \
	    { grep -vE 'ptxas info|^ +[0-9]+ bytes stack' $(@:.o=.log) >&2; rm -f $@; exit 1; }

# These files contain the compiler and its flags; objects depend on them, so that they are compiled
# again after a change.
$(B)/flags: MADE_BY = $(CC) $(ALL_CFLAGS)
$(B)/flags-codecs: MADE_BY = $(LD_codecs)
$(B)/obj/tokenize/input/parquet_page.o: $(B)/flags-codecs
$(B)/flags-cxx: MADE_BY = $(HOST_CXX) $(HOST_CXXFLAGS)
$(B)/flags-nvcc: MADE_BY = $(NVCC) $(NVCCFLAGS)
$(B)/flags $(B)/flags-codecs $(B)/flags-cxx $(B)/flags-nvcc: FORCE | need-packages
	$(Q)mkdir -p $(@D) && echo "$(MADE_BY)" | cmp -s - $@ || echo "$(MADE_BY)" > $@
.PHONY: FORCE

# The assembler embeds these files, so the compiler's dependency files do not list them.
$(B)/obj/tokenize/vocab/vocab.o: tokenize/vocab/gpt2.tables
$(B)/obj/tools/bench/step.o: tests/peers/torch_step.py
$(B)/obj/tools/bench/tokenize.o: tests/peers/bpe.py
$(B)/obj/tools/bench/loader.o: tests/peers/loaders.py

include tests/rules.mk tools/install.mk tools/python/wheel.mk
-include $(shell find $(B)/obj -name '*.d' 2> /dev/null)
