/* filter.h: files that are read through the standard output of a command.
 *
 *     sgt_filter f;
 *     if (sgt_filter_set(&f, "pdf=pdftotext {} -", 0, &err) < 0) ...;
 *     if (sgt_filter_ends(&f, "a/b.pdf") && sgt_filter_start(&f, "a/b.pdf", &child, &err) == 0) ... read child.fd ...
 *     sgt_filter_stop(&child);
 *     sgt_filter_free(&f);
 *
 * EXT=COMMAND, EXT=text:COMMAND or EXT=jsonl:COMMAND. A command is words with white space between
 * them, and no shell: '...' is taken as it stands, in "..." and outside quotes a backslash takes
 * the next character as it stands. {} is the path, wherever it stands; without one it is the last
 * word. One that begins with - has ./ before it. */
#ifndef SGT_FILTER_H
#define SGT_FILTER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct sgt_filter {
    char *ending; /* ".pdf" */
    char **words; /* of the command, NULL after the last */
    size_t count;
    int lines; /* it prints JSONL */
} sgt_filter;

/* lines: what it prints where it does not say. SGT_EUSAGE. */
int sgt_filter_set(sgt_filter *f, const char *said, int lines, sgt_error *err);
void sgt_filter_free(sgt_filter *f);
/* whether it is one of those; upper case counts too */
int sgt_filter_ends(const sgt_filter *f, const char *path);

typedef struct sgt_child {
    pid_t pid; /* 0: it has ended, and how is known */
    int fd;    /* its standard output */
} sgt_child;

/* Starts the command for `path`: with the signals' defaults, nothing open but an empty standard
 * input, its output and our standard error, in a process group of its own. */
int sgt_filter_start(const sgt_filter *f, const char *path, sgt_child *child, sgt_error *err);
/* After the end of its output, waits for it to end too: an error where that is not with exit code
 * 0. */
int sgt_filter_end(const sgt_filter *f, const char *path, sgt_child *child, const sgt_stop *stop,
                   const sgt_stop *cancel, sgt_error *err);
/* Closes fd; ends the child's process group where it still runs. */
void sgt_filter_stop(sgt_child *child);

#endif
