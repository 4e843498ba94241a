# targets.mk: what people type. Included by the Makefile, which says how things are built.

.PHONY: help deps demo check check-kernels check-all install clean need-packages run-demo run-check

help:
	@sed 's/^    //' tools/help.txt
