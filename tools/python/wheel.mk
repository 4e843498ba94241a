# wheel.mk: make wheel builds the Python wheel, build/wheel/sgtokens-VERSION-py3-none-manylinux_*.whl, the
# sdist, and where nvcc is the wheel sgtokens_cuda-VERSION-*.whl with the CUDA backend. The libraries and
# programs of the wheels are made of the same objects as the others, but linked statically with every
# library except glibc's, so that they run where no package is installed. Debian's libjansson.a
# cannot be part of a shared library, so libjansson.so.4 is carried along. hatchling and auditwheel
# come from PyPI, into build/wheel-venv.

W := $(B)/wheel-files
PYTHON ?= python3
STRIP ?= strip

# $(call static,FLAGS): the linker's flags with -lNAME as the archive libNAME.a, and OpenMP's library
# from its archive, except libraries of glibc. Snappy is written in C++, whose runtime, libstdc++.so.6,
# is on every system that takes manylinux wheels (PEP 600).
static = $(foreach f,$(1),$(or $(filter -lm -ldl -lpthread,$(f)),\
    $(patsubst -fopenmp,-l:libgomp.a,$(patsubst -l%,-l:lib%.a,$(f))))) \
    $(if $(filter -lsnappy,$(1)),-lstdc++) -static-libgcc

define wheel_library
$(W)/lib/libsgt-$(1).so.$(ABI): $(B)/lib/libsgt-$(1).so.$(ABI)
	$$(call say,LD,$$@)mkdir -p $$(@D) && $$(CC) -shared $$(ALL_LDFLAGS) -s -Wl,-soname,$$(@F) \
	    -Wl,--version-script=$(1)/sgt_$(1).map -Wl,-z,defs '-Wl,-rpath,$$$$ORIGIN' -o $$@ $(B)/obj/sgt-$(1).o \
	    $$(subst -l:libjansson.a,-ljansson,$$(call static,$$(LD_$(1))))
endef
$(foreach l,$(PUBLIC),$(eval $(call wheel_library,$(l))))

define wheel_program
$(W)/bin/$(1): $(B)/obj/tools/$(1).o $$(call objects,$(1:sgt-%=tools/%)) \
    $$(call lib,$$(or $$(USES_$(1)),$$(USES)))
	$$(call link,$$(CC) -s,$$(call static,$$(call ld,$$(or $$(USES_$(1)),$$(USES)))))
endef
$(foreach p,$(PROGRAMS),$(eval $(call wheel_program,$(p))))

$(W)/lib/libjansson.so.4: $(W)/lib/libsgt-loader.so.$(ABI)
	$(Q)cp -L "$$($(CC) -print-file-name=libjansson.so.4)" $@ && $(STRIP) $@

# The CUDA backend, with OpenMP's library carried along: libgomp.a cannot be part of a library.
WHEEL_CUDA := $(if $(HAVE_NVCC),$(W)/cuda/libsgt-cuda.so $(W)/cuda/libgomp.so.1)
$(W)/cuda/libsgt-cuda.so: $(CUDA_LIB)
	$(call say,LD,$@)mkdir -p $(@D) && $(NVCC) -shared -cudart static -o $@ \
	    $(CUDA_CU:%=$(B)/obj/device/%.o) $(CUDA_C:%.c=$(B)/obj/%.o) $(call lib,train kernels loader) \
	    -Xlinker '-s,--version-script=$(CUDA_MAP),-z,defs,-rpath,$$ORIGIN' \
	    -Xcompiler -static-libstdc++,-static-libgcc,-fopenmp -ldl -lm
$(W)/cuda/libgomp.so.1: $(W)/cuda/libsgt-cuda.so
	$(Q)cp -L "$$($(CC) -print-file-name=libgomp.so.1)" $@ && $(STRIP) $@

.PHONY: wheel wheel-files
wheel-files: need-packages $(PROGRAMS:%=$(W)/bin/%) $(PUBLIC:%=$(W)/lib/libsgt-%.so.$(ABI)) \
    $(W)/lib/libjansson.so.4

wheel: wheel-files $(WHEEL_CUDA)       ## the Python wheels and the sdist, in build/wheel (hatchling and auditwheel from PyPI)
	@tools/python/wheel.sh $(B) $(dir $(firstword $(WHEEL_CUDA)))
