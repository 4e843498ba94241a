# wheel.mk: make wheel builds the Python wheel, build/wheel/sgtokens-VERSION-py3-none-manylinux_2_28_*.whl, the
# sdist, and if nvcc is installed, the wheel sgtokens_cuda-VERSION-*.whl with the CUDA backend. The libraries
# and programs in the wheels consist of the same objects as the others. But they are linked statically with
# every library except those of glibc and C++, so that they run without further packages. hatchling and
# auditwheel are installed from PyPI into build/wheel-venv.

W := $(B)/wheel-files
PYTHON ?= python3

# For each symbol that changed after glibc 2.28, a line "NAME NAME@VERSION" with its version in 2.28. glibc.c
# defines the functions that 2.28 lacks.
OLD := $(W)/versions $(B)/obj/tools/python/glibc.o
$(W)/versions: $(B)/flags
	$(Q)mkdir -p $(@D) && readelf -W --dyn-syms $(foreach l,libc libm,"$$($(CC) -print-file-name=$(l).so.6)") | \
	    awk '{ split($$8, n, /@+/) } n[2] ~ /^GLIBC_2\.[0-9]/ { v = substr(n[2], 9) + 0; if (v > 28) changed[n[1]]; \
	    else if (v > had[n[1]]) { had[n[1]] = v; at[n[1]] = n[2] } } \
	    END { for (i in changed) if (i in at) print i, i "@" at[i] }' > $@

# $(call for_old_glibc,LIBRARIES,FLAGS OF OBJCOPY) links the prerequisites and the archives of the libraries, in
# two steps: the first makes one object, in which symbols of glibc are then renamed to their old versions. The
# tables for C++ exceptions, a twentieth of the wheel, are left out, because no exception is ever caught. Snappy
# is written in C++; the C++ runtime libstdc++.so.6 exists on every system that accepts manylinux wheels (PEP
# 600). In glibc 2.28, threads, dlopen and shm_open are in libraries of their own.
archives = $(patsubst -fopenmp,-l:libgomp.a,$(patsubst -l%,-l:lib%.a,$(filter-out -lm -ldl,$(1))))
for_old_glibc = $(call say,LD,$@)mkdir -p $(@D) && \
    $(CC) -r -nostdlib $(LDFLAGS) -o $(W)/$(@F).o $(filter-out $(OLD),$^) $(call archives,$(1)) && \
    $(OBJCOPY) -R .eh_frame $(2) --redefine-syms=$(W)/versions $(W)/$(@F).o && \
    $(CC) $(ALL_LDFLAGS) -s -o $@ $(W)/$(@F).o $(filter %/glibc.o,$^) -lm \
    -l:libstdc++.so.6 -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1

define wheel_library
$(W)/lib/libsgt-$(1).so.$(ABI): $(B)/obj/sgt-$(1).o $(OLD)
	$$(call for_old_glibc,$$(LD_$(1)),--redefine-sym stdin=not_stdin $$(addprefix -G ,$$(call names,$(1)))) -shared \
	    -Wl,-soname,$$(@F),--version-script=$(1)/sgt_$(1).map,-z,defs
endef
$(foreach l,$(PUBLIC),$(eval $(call wheel_library,$(l))))

define wheel_program
$(W)/bin/$(1): $(B)/obj/tools/$(1).o $$(call objects,$(1:sgt-%=tools/%)) \
    $$(call lib,$$(or $$(USES_$(1)),$$(USES))) $(OLD)
	$$(call for_old_glibc,$$(call ld,$$(or $$(USES_$(1)),$$(USES))))
endef
$(foreach p,$(PROGRAMS),$(eval $(call wheel_program,$(p))))

# The CUDA backend, with the CUDA runtime from nvcc's toolkit.
WHEEL_CUDA := $(if $(HAVE_NVCC),$(W)/cuda/libsgt-cuda.so)
$(W)/cuda/libsgt-cuda.so: $(CUDA_CU:%=$(B)/obj/device/%.o) $(CUDA_C:%.c=$(B)/obj/%.o) \
    $(call lib,train kernels loader) $(OLD) | $(CUDA_LIB)
	$(call for_old_glibc,$(addprefix -L$(dir $(realpath $(HAVE_NVCC)))../,lib64 lib) -lcudart_static,-G sgt_cuda) -shared \
	    -Wl,--version-script=$(CUDA_MAP),-z,defs

# The wheel for aarch64 is cross-compiled with Debian's arm64 libraries.
ARM := aarch64-linux-gnu
ARM_ROOT := $(B)/$(ARM)/root
ARM_FILES := $(if $(AVX2),$(if $(shell command -v $(ARM)-gcc 2> /dev/null),$(B)/$(ARM)/wheel-files))
$(ARM_ROOT)/usr: tools/python/arm64.sh
	$(call say,FETCH,$(@D))$< $(@D) zlib1g-dev libstdc++6 \
	    $(patsubst %,lib%-dev,utf8proc pcre2 uring xxhash zstd jansson snappy lz4) && touch $@
.PHONY: wheel wheel-files $(B)/$(ARM)/wheel-files
$(B)/$(ARM)/wheel-files: $(ARM_ROOT)/usr
	+@C_INCLUDE_PATH=$</include:$</include/$(ARM) $(MAKE) --no-print-directory B=$(B)/$(ARM) CC=$(ARM)-gcc \
	    AR=$(ARM)-ar OBJCOPY=$(ARM)-objcopy LDFLAGS=-L$</lib/$(ARM) NVCC=none wheel-files

wheel-files: need-packages $(PROGRAMS:%=$(W)/bin/%) $(PUBLIC:%=$(W)/lib/libsgt-%.so.$(ABI))

wheel: wheel-files $(ARM_FILES) $(WHEEL_CUDA) ## the Python wheels and the sdist, in build/wheel (hatchling and auditwheel from PyPI)
	@$(if $(WHEEL_CUDA),SGT_CUDA_FILES=$(realpath $(dir $(firstword $(WHEEL_CUDA))))) \
	    tools/python/wheel.sh $(B) $(W) $(ARM_FILES)
	@$(if $(ARM_FILES),:,echo 'skipped the wheel for aarch64: no $(ARM)-gcc (tools/deps.sh all installs it)')
