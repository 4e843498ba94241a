/* filter.c: parses the commands of filters (--filter), runs them as child processes, waits until
 * they end, and ends them early if necessary. */
#include "tokenize/input/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/thread.h"
#include "tokenize/text/utf8.h"

/* ---- commands ---- */

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/* Split the command s into words, and copy the words to `out`, each followed by a NUL. `out` must
 * have room for strlen(s) + 1 bytes. Return the number of words, or -1 if a quote is not closed or
 * if the command ends in a backslash. */
static int split_words(const char *s, char *out)
{
    for (int count = 0;; count++) {
        char quote = 0;
        while (is_space(*s)) s++;
        if (!*s) return count;
        for (; *s && (quote || !is_space(*s)); s++) {
            if (quote ? *s == quote : *s == '\'' || *s == '"') quote = (char)(quote ? 0 : *s);
            else if (*s == '\\' && quote != '\'') {
                if (!*++s) return -1;
                *out++ = *s;
            } else *out++ = *s;
        }
        if (quote) return -1;
        *out++ = 0;
    }
}

int sgt_filter_set(sgt_filter *f, const char *said, int lines, sgt_error *err)
{
    const char *equals = strchr(said, '='), *command = equals ? equals + 1 : "";
    const char *ext = *said == '.' ? said + 1 : said, *why = NULL;
    *f = (sgt_filter){.lines = lines};
    if (!strncmp(command, "text:", 5) || !strncmp(command, "jsonl:", 6)) {
        f->lines = *command == 'j';
        f->told = 1;
        command = strchr(command, ':') + 1;
    }
    f->words = malloc(strlen(command) + 1);
    if (!f->words || asprintf(&f->ending, ".%.*s", equals ? (int)(equals - ext) : 0, ext) < 0) {
        f->ending = NULL;
        sgt_filter_free(f);
        return sgt_fail_memory(err, said);
    }
    f->count = split_words(command, f->words);
    /* a filter must be UTF-8, because it is stored in the manifest, which is JSON */
    if (sgt_utf8_valid((const uint8_t *)said, strlen(said)) < strlen(said)) why = "is not UTF-8";
    else if (!equals || equals <= ext || memchr(said, '/', (size_t)(equals - said)) || !f->count)
        why = "expected EXT=COMMAND, such as 'pdf=pdftotext {} -'";
    else if (f->count < 0) why = "an unfinished quote or backslash";
    if (!why) return SGT_OK;
    sgt_filter_free(f);
    return sgt_fail(err, SGT_EUSAGE, "filter: \"%s\": %s", said, why);
}

void sgt_filter_free(sgt_filter *f)
{
    free(f->words);
    free(f->ending);
    *f = (sgt_filter){.count = 0};
}

/* Return the argument vector with which the command of the filter f is run on the file `path`, or
 * NULL if out of memory. The strings of the vector are stored one after another in *text. The
 * caller frees the vector and *text. */
static char **fill_words(const sgt_filter *f, const char *path, char **text)
{
    const char *before = *path == '-' ? "./" : "", *word = f->words, *braces;
    char **words = calloc((size_t)f->count + 2, sizeof *words);
    size_t n;
    int replaced = 0;
    *text = NULL;
    FILE *to = words ? open_memstream(text, &n) : NULL;
    for (int i = 0; to && i < f->count; i++, word += strlen(word) + 1) {
        for (; (braces = strstr(word, "{}")); word = braces + 2, replaced = 1)
            fprintf(to, "%.*s%s%s", (int)(braces - word), word, before, path);
        fprintf(to, "%s%c", word, 0);
    }
    if (to && !replaced) fprintf(to, "%s%s%c", before, path, 0);
    if (!to || fclose(to) != 0) {
        free(words);
        return NULL;
    }
    char *at = *text;
    for (int i = 0; i < f->count + !replaced; i++, at += strlen(at) + 1) words[i] = at;
    return words;
}

/* ---- children ---- */

int sgt_filter_start(const sgt_filter *f, const char *path, sgt_child *child, sgt_error *err)
{
    int ends[2], failed = 0;
    char *text, **words = fill_words(f, path, &text);
    const int rc = !words ? sgt_fail_memory(err, path)
                   : pipe2(ends, O_CLOEXEC) < 0
                       ? sgt_fail_errno(err, "%s: cannot create a pipe for its filter", path)
                       : SGT_OK;
    if (!rc)
        failed = sgt_process_start(
            &child->pid,
            &(sgt_process){.program = words[0], .argv = words, .out = ends[1], .group = 1});
    free(words);
    free(text);
    if (rc < 0) return rc;
    close(ends[1]);
    child->fd = ends[0];
    if (!failed) return SGT_OK;
    close(ends[0]);
    errno = failed;
    return sgt_fail_errno(err, "%s: cannot start its filter %s", path, f->words);
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

/* If the child process has ended, set *status to its wait status, and return 1. If it is still
 * running, return 0. Return -1 if the status is lost, because another part of the program has
 * already waited for the child. */
static int has_ended(const sgt_child *child, int *status)
{
    const pid_t got = waitpid(child->pid, status, WNOHANG);
    return got < 0 ? -1 : got > 0;
}

int sgt_filter_end(const sgt_filter *f, const char *path, sgt_child *child, const sgt_stop *stop,
                   const sgt_stop *cancel, sgt_error *err)
{
    int status = 0, ended;
    for (long ms = 0; !(ended = has_ended(child, &status)); ms = ms < 50 ? ms + 1 : ms) {
        if (sgt_stopped(stop) || sgt_stopped(cancel)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        pause_ms(ms);
    }
    child->pid = 0;
    if (ended < 0)
        return sgt_fail_errno(err, "%s: cannot get the exit status of its filter %s", path,
                              f->words);
    if (WIFSIGNALED(status))
        return sgt_fail(err, SGT_EIO, "%s: its filter %s was killed by signal %d (%s)", path,
                        f->words, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return sgt_fail(err, SGT_EIO, "%s: its filter %s failed with exit code %d", path, f->words,
                        WEXITSTATUS(status));
    return SGT_OK;
}

void sgt_filter_stop(sgt_child *child)
{
    int status;
    close(child->fd);
    if (!child->pid) return;
    kill(-child->pid, SIGTERM);
    for (int tries = 0; tries < 110 && !has_ended(child, &status); tries++) {
        pause_ms(10);
        if (tries == 100) kill(-child->pid, SIGKILL); /* a second has passed since SIGTERM */
    }
    child->pid = 0;
}
