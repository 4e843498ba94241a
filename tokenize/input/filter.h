/* filter.h: reads the output of a command instead of a file.
 *
 *     sgt_filter f;
 *     if (sgt_filter_set(&f, "pdf=pdftotext {} -", 0, &err) < 0) ...;
 *     if (sgt_filter_start(&f, "a/b.pdf", &child, &err) == 0)
 *         ... read child.fd ...
 *     sgt_filter_stop(&child);
 *     sgt_filter_free(&f);
 *
 * A filter has the form EXT=COMMAND, EXT=text:COMMAND or EXT=jsonl:COMMAND. COMMAND is a list of
 * words separated by white space. It is run directly, not by a shell. Text in single quotes is
 * taken literally. In double quotes and outside quotes, a backslash makes the next character
 * literal. Each {} is replaced with the path of the file. If the command has no {}, the path is
 * appended as the last word. If the path begins with -, "./" is put before it, so that the command
 * does not mistake it for an option. */
#ifndef SGT_FILTER_H
#define SGT_FILTER_H

#include <sys/types.h>

#include "loader/base/error.h"

typedef struct sgt_filter {
    char *ending; /* the filter is used for files whose names have this ending, such as ".pdf" */
    char *words;  /* the words of the command, one after another, each followed by a NUL */
    int count;    /* number of words */
    int lines;    /* 1: the command prints JSONL */
    /* 1 if text: or jsonl: before the command states the format of its output; otherwise 0 */
    int told;
} sgt_filter;

/* Parse the filter `said`, such as "pdf=pdftotext {} -", into *f, which the caller frees with
 * sgt_filter_free. lines: 1 if the command prints JSONL, 0 if it prints text; ignored if the filter
 * states the format, as in EXT=jsonl:COMMAND. Return 0, SGT_EUSAGE or SGT_ENOMEM. */
int sgt_filter_set(sgt_filter *f, const char *said, int lines, sgt_error *err);
void sgt_filter_free(sgt_filter *f);

typedef struct sgt_child {
    pid_t pid; /* process id of the child; 0 after the child has ended and has been waited for */
    int fd;    /* read end of its standard output */
} sgt_child;

/* Start the command of the filter f for the file `path`, in a separate process group with default
 * signal handling. The standard input of the command is empty, its standard output is a pipe that
 * is read through child->fd, and its standard error is that of this process. The command inherits
 * no other file descriptor. */
int sgt_filter_start(const sgt_filter *f, const char *path, sgt_child *child, sgt_error *err);
/* Wait until the command of the filter f has ended. Call this after all of its output has been
 * read. Return 0 if the exit code of the command is 0; otherwise return an error. Also return an
 * error if a stop is requested through `stop` or `cancel`. */
int sgt_filter_end(const sgt_filter *f, const char *path, sgt_child *child, const sgt_stop *stop,
                   const sgt_stop *cancel, sgt_error *err);
/* Close child->fd. If the child is still running, send SIGTERM to its process group, and SIGKILL if
 * the child is still running after a second. */
void sgt_filter_stop(sgt_child *child);

#endif
