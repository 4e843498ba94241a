# install.mk: the targets man, docs, install, uninstall and gpu-bundle.

PREFIX ?= /usr/local
DESTDIR ?=
# Libraries that other programs link are installed in LIBDIR below PREFIX (for example, lib/x86_64-linux-gnu).
# Libraries that only sgt's programs load are installed in lib/sgt.
LIBDIR ?= lib
AT = $(DESTDIR)$(PREFIX)

# Folders below share/ in which shells look for completion scripts.
BASH_DIR ?= bash-completion/completions
ZSH_DIR ?= zsh/site-functions
FISH_DIR ?= fish/vendor_completions.d

OWN_LIBS = $(if $(HAVE_NVCC),$(CUDA_LIB)) $(if $(MPICC),$(MPI_LIB))
UP = $(subst $(space),/,$(patsubst %,..,$(subst /, ,$(LIBDIR)) x)) # from pkgconfig/ to PREFIX
PC = s|@VERSION@|$(VERSION)|; s|@LIBDIR@|$(LIBDIR)|; s|@UP@|$(strip $(UP))|; s|@CODECS@|$(strip $(LD_codecs:-lsnappy=-lsnappy -lstdc++))|

.PHONY: man docs install uninstall gpu-bundle
man: need-packages $(PROGRAMS:%=$(B)/man/man1/%.1) ## the manuals, in build/man: with build/bin on PATH, man finds them
	$(Q)mkdir -p $(addprefix $(B)/man/man,1 3 7) && cp tools/sgt.7 $(B)/man/man7 && \
	    cp $(wildcard $(foreach l,$(PUBLIC),$(l)/sgt_$(l).3)) $(B)/man/man3
$(B)/man/man1/%.1: tools/%.1 tools/man.awk $(B)/bin/%
	$(call say,MAN,$@)mkdir -p $(@D) && $(B)/bin/$* --completion table > $(B)/$*.table && \
	    awk -f tools/man.awk $(B)/$*.table $< > $(B)/$*.page && mv $(B)/$*.page $@
docs: man                              ## the manuals and READMEs as web pages, in build/docs/index.html
	@tools/deps.sh docs && tools/docs.sh $(B)/docs $(B)/man/man*/* && echo 'made $(B)/docs/index.html'

install: need-packages programs libs man $(if $(HAVE_NVCC),cuda) $(if $(MPICC),mpi) ## install into DESTDIR/PREFIX (default /usr/local), libraries into PREFIX/LIBDIR
	$(Q)install -d $(addprefix $(AT)/,bin $(LIBDIR)/pkgconfig include/sgt/base) \
	    $(addprefix $(AT)/share/,man/man1 man/man3 man/man7 $(BASH_DIR) $(ZSH_DIR) $(FISH_DIR))
	$(Q)install -m 755 $(PROGRAMS:%=$(B)/bin/%) $(AT)/bin
	$(Q)install -m 644 $(PUBLIC:%=$(B)/lib/libsgt-%.a) $(PUBLIC:%=$(B)/lib/libsgt-%.so.$(ABI)) \
	    $(AT)/$(LIBDIR)
	$(Q)for l in $(PUBLIC); do \
	    ln -sf libsgt-$$l.so.$(ABI) $(AT)/$(LIBDIR)/libsgt-$$l.so && sed '$(PC)' $$l/sgt-$$l.pc.in | \
	    install -m 644 /dev/stdin $(AT)/$(LIBDIR)/pkgconfig/sgt-$$l.pc || exit 1; done
	$(Q)$(if $(strip $(OWN_LIBS)),install -d $(AT)/lib/sgt && install -m 644 $(OWN_LIBS) $(AT)/lib/sgt)
	$(Q)install -m 644 loader/sgt_loader.h tokenize/sgt_tokenize.h $(AT)/include/sgt
	$(Q)install -m 644 loader/base/error.h $(AT)/include/sgt/base
	$(Q)for s in 1 3 7; do install -m 644 $(B)/man/man$$s/* $(AT)/share/man/man$$s || exit 1; done
	$(Q)for p in $(PROGRAMS); do \
	    for f in bash:$(BASH_DIR)/$$p zsh:$(ZSH_DIR)/_$$p fish:$(FISH_DIR)/$$p.fish; do \
	    $(B)/bin/$$p --completion $${f%%:*} | install -m 644 /dev/stdin $(AT)/share/$${f#*:} || exit 1; \
	    done; done
	$(Q)[ -n "$(DESTDIR)" ] || ldconfig 2> /dev/null || true # let the linker find the libraries
	@echo 'installed $(PROGRAMS) in $(AT)/bin, libraries in $(AT)/$(LIBDIR), and the manuals (make uninstall removes all of it)'

uninstall:                             ## remove what install put there
	$(Q)rm -f $(PROGRAMS:%=$(AT)/bin/%) $(PROGRAMS:%=$(AT)/share/man/man1/%.1) \
	    $(PROGRAMS:%=$(AT)/share/$(BASH_DIR)/%) $(PROGRAMS:%=$(AT)/share/$(ZSH_DIR)/_%) \
	    $(PROGRAMS:%=$(AT)/share/$(FISH_DIR)/%.fish) $(AT)/share/man/man7/sgt.7 \
	    $(foreach l,$(PUBLIC),$(addprefix $(AT)/$(LIBDIR)/,libsgt-$(l).a libsgt-$(l).so \
	    libsgt-$(l).so.* pkgconfig/sgt-$(l).pc) $(AT)/share/man/man3/sgt_$(l).3)
	$(Q)rm -rf $(AT)/include/sgt $(AT)/lib/sgt
	$(Q)[ -n "$(DESTDIR)" ] || ldconfig 2> /dev/null || true

gpu-bundle: $(if $(HAVE_NVCC),need-packages programs cuda $(B)/tests/check-cuda-device) ## what tools/gpu-check.sh needs on a machine with a GPU, in build/gpu-bundle
	@$(if $(HAVE_NVCC),tools/gpu-bundle.sh $(B),echo '$(NVCC) was not found, but the bundle needs it' >&2; exit 1)
