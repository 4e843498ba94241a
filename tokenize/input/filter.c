/* filter.c: parse commands; start children, wait for them and end them. */
#include "tokenize/input/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/thread.h"
#include "tokenize/text/utf8.h"

/* ---- commands ---- */

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/* Copy the next word of the command at *at to `out`, which must have room. Return 0, or -1 for an
 * unclosed quote or a final backslash. */
static int parse_word(const char **at, char *out)
{
    char quote = 0;
    const char *s = *at;
    for (; *s && (quote || !is_space(*s)); s++) {
        if (quote ? *s == quote : *s == '\'' || *s == '"') quote = (char)(quote ? 0 : *s);
        else if (*s == '\\' && quote != '\'') {
            if (!*++s) return -1;
            *out++ = *s;
        } else *out++ = *s;
    }
    *out = 0;
    *at = s;
    return quote ? -1 : 0;
}

static int parse_words(sgt_filter *f, const char *command, const char *said, sgt_error *err)
{
    size_t n = strlen(command);
    char *word = malloc(n + 1);
    int rc = SGT_OK;
    /* at most n / 2 + 1 words, as white space separates them, and a NULL */
    f->words = calloc(n / 2 + 2, sizeof *f->words);
    if (!word || !f->words) rc = sgt_fail_memory(err, said);
    while (!rc) {
        while (is_space(*command)) command++;
        if (!*command) break;
        if (parse_word(&command, word) < 0)
            rc =
                sgt_fail(err, SGT_EUSAGE, "filter: \"%s\": an unfinished quote or backslash", said);
        else if (!(f->words[f->count++] = strdup(word))) rc = sgt_fail_memory(err, said);
    }
    if (!rc && !f->count)
        rc = sgt_fail(err, SGT_EUSAGE,
                      "filter: \"%s\": expected EXT=COMMAND, such as 'pdf=pdftotext {} -'", said);
    free(word);
    return rc;
}

int sgt_filter_set(sgt_filter *f, const char *said, int lines, sgt_error *err)
{
    const char *equals = strchr(said, '='), *command = equals ? equals + 1 : "";
    const char *ext = *said == '.' ? said + 1 : said;
    *f = (sgt_filter){.lines = lines};
    /* the text is written to the manifest, which is JSON */
    if (sgt_utf8_valid((const uint8_t *)said, strlen(said)) < strlen(said))
        return sgt_fail(err, SGT_EUSAGE, "filter: \"%s\": is not UTF-8", said);
    if (!equals || equals <= ext || memchr(said, '/', (size_t)(equals - said)))
        return sgt_fail(err, SGT_EUSAGE,
                        "filter: \"%s\": expected EXT=COMMAND, such as 'pdf=pdftotext {} -'", said);
    if (!strncmp(command, "text:", 5) || !strncmp(command, "jsonl:", 6)) {
        f->lines = *command == 'j';
        f->told = 1;
        command = strchr(command, ':') + 1;
    }
    size_t n = (size_t)(equals - ext);
    int rc = (f->ending = malloc(n + 2)) ? SGT_OK : sgt_fail_memory(err, said);
    if (!rc) {
        f->ending[0] = '.';
        memcpy(f->ending + 1, ext, n);
        f->ending[n + 1] = 0;
        rc = parse_words(f, command, said, err);
    }
    if (rc < 0) sgt_filter_free(f);
    return rc;
}

void sgt_filter_free(sgt_filter *f)
{
    for (size_t i = 0; f->words && i < f->count; i++) free(f->words[i]);
    free(f->words);
    free(f->ending);
    *f = (sgt_filter){.count = 0};
}

int sgt_filter_ends(const sgt_filter *f, const char *path)
{
    size_t n = strlen(path), m = strlen(f->ending);
    return n > m && path[n - m - 1] != '/' && !strcasecmp(path + n - m, f->ending);
}

/* Return `word` with every {} replaced, malloc'd. *replaced is set if there was one. */
static char *fill_word(const char *word, const char *before, const char *path, int *replaced)
{
    size_t room = strlen(word) + 1, each = strlen(before) + strlen(path);
    for (const char *s = word; (s = strstr(s, "{}")); s += 2) room += each;
    char *out = malloc(room), *at = out;
    for (const char *s = word; out;) {
        const char *braces = strstr(s, "{}");
        if (!braces) {
            memcpy(at, s, strlen(s) + 1);
            break;
        }
        memcpy(at, s, (size_t)(braces - s));
        at = stpcpy(stpcpy(at + (braces - s), before), path);
        s = braces + 2;
        *replaced = 1;
    }
    return out;
}

static void free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++) free(words[i]);
    free(words);
}

/* Return the command for `path`, to be freed with free_words; NULL: out of memory. */
static char **fill_words(const sgt_filter *f, const char *path)
{
    const char *before = *path == '-' ? "./" : "";
    char **words = calloc(f->count + 2, sizeof *words);
    int replaced = 0, whole = words != NULL;
    size_t i = 0;
    for (; whole && i < f->count; i++)
        whole = (words[i] = fill_word(f->words[i], before, path, &replaced)) != NULL;
    if (whole && !replaced) whole = (words[i] = fill_word("{}", before, path, &replaced)) != NULL;
    if (whole) return words;
    free_words(words);
    return NULL;
}

/* ---- children ---- */

int sgt_filter_start(const sgt_filter *f, const char *path, sgt_child *child, sgt_error *err)
{
    int ends[2], failed;
    char **words = fill_words(f, path);
    if (!words) return sgt_fail_memory(err, path);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        free_words(words);
        return sgt_fail_errno(err, "%s: no pipe for its filter", path);
    }
    failed = sgt_process_start(
        &child->pid,
        &(sgt_process){.program = words[0], .argv = words, .out = ends[1], .group = 1});
    close(ends[1]);
    free_words(words);
    child->fd = ends[0];
    if (!failed) return SGT_OK;
    close(ends[0]);
    errno = failed;
    return sgt_fail_errno(err, "%s: its filter %s cannot be started", path, f->words[0]);
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

/* Return 1 if the child has ended, with its status in *status; 0 if it has not; -1 if its status is
 * lost because the caller's program has waited for it. */
static int has_ended(const sgt_child *child, int *status)
{
    pid_t got;
    do got = waitpid(child->pid, status, WNOHANG);
    while (got < 0 && errno == EINTR);
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
        return sgt_fail_errno(err, "%s: how its filter %s ended is not known", path, f->words[0]);
    if (WIFSIGNALED(status))
        return sgt_fail(err, SGT_EIO, "%s: its filter %s was ended by signal %d (%s)", path,
                        f->words[0], WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return sgt_fail(err, SGT_EIO, "%s: its filter %s failed: exit code %d", path, f->words[0],
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
