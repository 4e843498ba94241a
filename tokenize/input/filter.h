/* filter.h: read files through the standard output of a command.
 *
 *     sgt_filter f;
 *     if (sgt_filter_set(&f, "pdf=pdftotext {} -", 0, &err) < 0) ...;
 *     if (sgt_filter_start(&f, "a/b.pdf", &child, &err) == 0)
 *         ... read child.fd ...
 *     sgt_filter_stop(&child);
 *     sgt_filter_free(&f);
 *
 * A filter is EXT=COMMAND, EXT=text:COMMAND or EXT=jsonl:COMMAND. A command is words separated by
 * white space; no shell runs it. '...' is taken literally; in "..." and outside quotes a backslash
 * makes the next character literal. Each {} becomes the path; without {} the path is the last word.
 * A path that begins with - gets ./ in front. */
#ifndef SGT_FILTER_H
#define SGT_FILTER_H

#include <stddef.h>
#include <sys/types.h>

#include "loader/base/error.h"

typedef struct sgt_filter {
    char *ending; /* ending of the names of its files: ".pdf" */
    char *words;  /* words of the command, each followed by a NUL */
    int count;    /* number of words */
    int lines;    /* 1: the command prints JSONL */
    int told;     /* 1: the filter's text itself gives the format (text: or jsonl:) */
} sgt_filter;

/* Parse `said`, the text of a filter. lines: 1 if the command prints JSONL, unless `said` gives the
 * format. Return 0 or SGT_EUSAGE. */
int sgt_filter_set(sgt_filter *f, const char *said, int lines, sgt_error *err);
void sgt_filter_free(sgt_filter *f);

typedef struct sgt_child {
    pid_t pid; /* process id; 0: the child has ended and was waited for */
    int fd;    /* read end of its standard output */
} sgt_child;

/* Start the command for `path`, in a process group of its own, with default signals. Its standard
 * input is empty, child->fd reads its standard output, and its standard error is ours. It inherits
 * no other descriptor. */
int sgt_filter_start(const sgt_filter *f, const char *path, sgt_child *child, sgt_error *err);
/* Wait until the command ends; call this when its output has ended. Return an error unless its exit
 * code is 0. */
int sgt_filter_end(const sgt_filter *f, const char *path, sgt_child *child, const sgt_stop *stop,
                   const sgt_stop *cancel, sgt_error *err);
/* Close child->fd. If the child still runs, end its process group (SIGTERM, and SIGKILL after a
 * second). */
void sgt_filter_stop(sgt_child *child);

#endif
