/* files.h: write the input of a fuzz target to files, for code that reads files by name. Each
 * process has a folder of its own, in memory if possible, which is removed when the process
 * ends. */
#ifndef SGT_FUZZ_FILES_H
#define SGT_FUZZ_FILES_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tests/fuzz/fuzz.h"

static char own_folder[128];

static void remove_own_folder(void) { (void)sgt_remove_tree(own_folder, NULL); }

/* Return the path of NAME in the process's folder; valid until the 4th call after this one. */
static inline const char *path_of(const char *name)
{
    static char paths[4][sizeof own_folder + 64];
    static int at;
    if (!*own_folder) {
        const char *above = getenv("TMPDIR");
        if (!above) above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(own_folder, sizeof own_folder, "%s/sgt-fuzz.XXXXXX", above);
        must(mkdtemp(own_folder) != NULL && atexit(remove_own_folder) == 0,
             "there is a place for files");
    }
    char *path = paths[at++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", own_folder, name);
    return path;
}

/* Write data[n] to the file NAME and return its path, which is valid as long as path_of's. */
static inline const char *put_file(const char *name, const void *data, size_t n)
{
    const char *path = path_of(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, data, n) == (ssize_t)n && close(fd) == 0, "a file can be written");
    return path;
}

/* Check that a failed call returned the error's code, and that the message is one line of printable
 * text. */
static inline void must_say(int code, const sgt_error *err)
{
    must(code < 0 && err->code == code, "the code that is returned is the error's");
    must(*err->text && strlen(err->text) < sizeof err->text, "an error says something");
    for (const char *s = err->text; *s; s++)
        must((unsigned char)*s >= 0x20 && *s != 0x7f, "it is one line of text");
}

#endif
