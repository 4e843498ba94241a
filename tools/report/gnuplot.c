/* gnuplot.c: the one place that starts gnuplot. What it reads and writes are files in memory without a name: no shell,
 * no temporary files, and no pipe that either side could block on. */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/report/report.h"

extern char **environ;

enum { IN, OUT, SAID, FILES };

#define MOST ((off_t)256 << 20) /* bytes that come back; a picture has 100 kB */

/* All of a file from its beginning, malloc'd, a NUL behind it; NULL where memory is out. */
static char *take_all(int fd)
{
    off_t n = lseek(fd, 0, SEEK_END);
    char *text = n >= 0 && n <= MOST ? malloc((size_t)n + 1) : NULL;
    if (text && sgt_pread_all(fd, text, (size_t)n, 0, "gnuplot", NULL) < 0) {
        free(text);
        return NULL;
    }
    if (text) text[n] = '\0';
    return text;
}

/* gnuplot's complaint is a picture of the line, a caret, a blank line and then what is wrong. */
static int complain(int fd, int status, sgt_error *err)
{
    char *said = take_all(fd), *last = NULL, *rest = NULL;
    for (char *line = said ? strtok_r(said, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if (strspn(line, " ^\t") < strlen(line)) last = line;
    int rc = WIFSIGNALED(status)
                 ? sgt_fail(err, SGT_EIO, "gnuplot: ended by signal %d", WTERMSIG(status))
                 : sgt_fail(err, SGT_EIO, "gnuplot: %s (another version of gnuplot-nox may draw it)",
                            last ? last : "failed without a word");
    free(said);
    return rc;
}

static int start(pid_t *child, const int *fd, sgt_error *err)
{
    char *const argv[] = {"gnuplot", "-d", "-", NULL}; /* -d: no ~/.gnuplot */
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions)) return sgt_fail(err, SGT_ENOMEM, "gnuplot: out of memory");
    for (int i = 0; i < FILES; i++) posix_spawn_file_actions_adddup2(&actions, fd[i], i);
    int rc = posix_spawnp(child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc == ENOENT)
        return sgt_fail(err, SGT_EUNSUPPORTED, "gnuplot: not found, and it draws the pictures (package gnuplot-nox)");
    errno = rc;
    return rc ? sgt_fail_errno(err, "gnuplot") : SGT_OK;
}

static int run(char **svg, const int *fd, sgt_error *err)
{
    pid_t child;
    int status, rc = start(&child, fd, err);
    if (rc < 0) return rc;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return sgt_fail_errno(err, "gnuplot");
    if (status) return complain(fd[SAID], status, err);
    *svg = take_all(fd[OUT]);
    return *svg ? SGT_OK : sgt_fail(err, SGT_ENOMEM, "gnuplot: out of memory");
}

int report_gnuplot(char **svg, const char *script, size_t n, sgt_error *err)
{
    int fd[FILES] = {-1, -1, -1}, rc = SGT_OK;
    *svg = NULL;
    for (int i = 0; i < FILES && rc == SGT_OK; i++)
        if ((fd[i] = memfd_create("sgt-report", MFD_CLOEXEC)) < 0) rc = sgt_fail_errno(err, "a file in memory");
    if (rc == SGT_OK) rc = sgt_write_all(fd[IN], script, n, "gnuplot's script", err);
    if (rc == SGT_OK && lseek(fd[IN], 0, SEEK_SET) < 0) rc = sgt_fail_errno(err, "gnuplot's script");
    if (rc == SGT_OK) rc = run(svg, fd, err);
    for (int i = 0; i < FILES; i++)
        if (fd[i] >= 0) close(fd[i]);
    return rc;
}
