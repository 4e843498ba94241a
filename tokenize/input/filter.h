/* filter.h: reads the output of a command instead of a file.
 *
 *     sgt_filter f;
 *     if (sgt_filter_set(&f, "pdf=pdftotext {} -", 0, &err) < 0) ...;
 *     if (sgt_filter_start(&f, "a/b.pdf", &child, &err) == 0)
 *         ... read child.fd ...
 *     sgt_filter_stop(&child);
 *     sgt_filter_free(&f);
 *
 * A filter is EXT=COMMAND, EXT=text:COMMAND or EXT=jsonl:COMMAND. A command is a list of words
 * separated by white space; it is not run by a shell. Text in '...' is literal. In "..." and
 * outside quotes, a backslash makes the next character literal. Each {} is replaced by the path; if
 * there is no {}, the path is appended as the last word. If the path begins with -, "./" is put
 * before it. */
#ifndef SGT_FILTER_H
#define SGT_FILTER_H

#include <sys/types.h>

#include "loader/base/error.h"

typedef struct sgt_filter {
    char *ending; /* file-name ending that selects the filter, such as ".pdf" */
    char *words;  /* words of the command, one after another, each followed by a NUL */
    int count;    /* number of words */
    int lines;    /* 1: the command prints JSONL */
    /* 1 if the filter states its output format, with text: or jsonl: before the command */
    int told;
} sgt_filter;

/* Parse a filter such as "pdf=pdftotext {} -". lines: 1 if the command prints JSONL; ignored if the
 * filter itself states the format (EXT=jsonl:COMMAND). Return 0 or SGT_EUSAGE. */
int sgt_filter_set(sgt_filter *f, const char *said, int lines, sgt_error *err);
void sgt_filter_free(sgt_filter *f);

typedef struct sgt_child {
    pid_t pid; /* process id; 0 after the child has ended and was waited for */
    int fd;    /* read end of its standard output */
} sgt_child;

/* Start the command for `path`, in a separate process group with default signal handling. Its
 * standard input is empty, its standard output is read through child->fd, and it shares this
 * process's standard error. It inherits no other descriptor. */
int sgt_filter_start(const sgt_filter *f, const char *path, sgt_child *child, sgt_error *err);
/* Wait until the command has ended. Call this after the end of its output. Return an error unless
 * its exit code is 0. */
int sgt_filter_end(const sgt_filter *f, const char *path, sgt_child *child, const sgt_stop *stop,
                   const sgt_stop *cancel, sgt_error *err);
/* Close child->fd. If the child is still running, end its process group with SIGTERM, and after a
 * second with SIGKILL. */
void sgt_filter_stop(sgt_child *child);

#endif
