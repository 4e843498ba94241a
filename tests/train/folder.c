#include "tests/train/folder.h"

#include "tests/expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"

char folder[SCRATCH_SIZE];

void make_folder(void) { cr_assert(scratch_folder(folder, "/tmp", "train"), "%s", folder); }

void remove_folder(void) { cr_assert_eq(sgt_remove_tree(folder, NULL), 0); }

const char *in_folder(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void put_file(const char *name, const void *p, size_t n)
{
    must(sgt_file_put(in_folder(name), p, n, why));
}

char *get_file(const char *name, size_t *n)
{
    char *text = NULL;
    size_t size;
    if (sgt_file_get(&text, &size, in_folder(name), (size_t)1 << 30, NULL) < 0) return NULL;
    if (n) *n = size;
    return text;
}

int exists(const char *name) { return access(in_folder(name), F_OK) == 0; }
