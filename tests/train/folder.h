/* folder.h: a temporary folder for tests that write files. The tests run in the source tree, where
 * the fixtures are. */
#ifndef TESTS_TRAIN_FOLDER_H
#define TESTS_TRAIN_FOLDER_H

#include <stddef.h>

#include "tests/scratch.h"

extern char folder[SCRATCH_SIZE];

void make_folder(void);   /* for .init */
void remove_folder(void); /* for .fini */

/* Return "FOLDER/NAME", in one of a few static buffers. */
const char *in_folder(const char *name);
void put_file(const char *name, const void *p, size_t n);
/* Return the content of FOLDER/name, malloc'd and with a NUL after it; NULL if there is no such
 * file. */
char *get_file(const char *name, size_t *n);
int exists(const char *name);

#endif
