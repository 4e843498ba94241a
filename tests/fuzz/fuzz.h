/* fuzz.h: for fuzz targets. A target checks one property for arbitrary bytes, and ends the program
 * if the property does not hold. `make fuzz` searches for such bytes with libFuzzer. `make check`
 * tries only the seeds, which include bytes that once broke the property. fuzz.c has the table of
 * targets. */
#ifndef SGT_FUZZ_H
#define SGT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/error.h"
#include "loader/base/file.h"
#include "tests/scoped.h"

/* Unless `holds`, print `what`, the property that is violated, and end the program. */
void must(int holds, const char *what);

/* Check that a failed call returned err->code, and that the message is one line of printable
 * text. */
void must_say(int code, const sgt_error *err);
/* Return whether a call failed; if so, check its error with must_say. */
int refused(int code, const sgt_error *err);

/* The process's own folder for files, in memory if possible; it is removed when the process ends. */
extern char own_folder[128];
/* Return the path of NAME in the process's folder; valid until the 4th call after this one. */
const char *path_of(const char *name);
/* Write data[n] to the file NAME and return its path, which is valid as long as path_of's. */
const char *put_file(const char *name, const void *data, size_t n);

/* The function that libFuzzer and replay.c call for each input. It returns 0, or ends the program. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef void fuzz_check(const uint8_t *data, size_t size);
fuzz_check fuzz_config, fuzz_encode, fuzz_journal, fuzz_json, fuzz_llmc, fuzz_manifest, fuzz_packed,
    fuzz_parquet, fuzz_printable, fuzz_rules, fuzz_safetensors, fuzz_shard, fuzz_state, fuzz_vocab;

#endif
