/* file.c: write files atomically: write a temporary file in the folder of the target, fsync it,
 * rename it to the target's name, and fsync the folder. This order guarantees that the target
 * always has either its complete old content or its complete new content, even after a crash. */
#include "loader/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/memory.h"

int sgt_file_open(const char *path, int flags, sgt_error *err)
{
    const int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    return fd < 0 ? sgt_fail_errno(err, "%s", path) : fd;
}

char *sgt_path(char to[SGT_PATH], const char *folder, const char *name, ...)
{
    va_list list;
    size_t n = strnlen(folder, SGT_PATH - 1);
    memcpy(to, folder, n);
    if (n && n < SGT_PATH - 1 && to[n - 1] != '/') to[n++] = '/';
    va_start(list, name);
    vsnprintf(to + n, SGT_PATH - n, name, list);
    va_end(list);
    return to;
}

char *sgt_join(const char *folder, const char *name)
{
    char path[SGT_PATH];
    return strdup(sgt_path(path, folder, "%s", name));
}

char *sgt_beside_program(int up, const char *below)
{
    char program[SGT_PATH];
    if (!realpath("/proc/self/exe", program)) return NULL;
    for (char *slash; up; up--)
        if ((slash = strrchr(program, '/'))) *slash = 0;
    return sgt_join(*program ? program : "/", below);
}

char *sgt_own_library(const char *name)
{
    static const char *const below[] = {"lib", "lib/sgt"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        char file[SGT_PATH];
        char *path = sgt_beside_program(2, sgt_path(file, below[i], "%s", name));
        if (path && access(path, F_OK) == 0) return path;
        free(path);
    }
    return strdup(name);
}

/* Return 1 if `path` is a device, a pipe or a socket, or a link to one of these, such as
 * /dev/stdout. Otherwise return 0. A path for which this returns 1 must not be replaced with a
 * regular file. */
static int is_special(const char *path)
{
    static const char procfs[] = "/proc/";
    char to[sizeof procfs - 1];
    struct stat st;
    if (readlink(path, to, sizeof to) == sizeof to && !memcmp(to, procfs, sizeof to)) return 1;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int sgt_file_begin(sgt_file *f, const char *path, sgt_error *err)
{
    uint64_t r;
    int fd = -1;
    f->stream = NULL;
    if (is_special(path)) return sgt_fail(err, SGT_EIO, "%s: is not a regular file", path);
    snprintf(f->path, sizeof f->path, "%s", path);
    /* The name must be random: if another user of a shared folder could guess it, that user could
     * create a link with this name before this process creates the file */
    if (getrandom(&r, sizeof r, 0) == sizeof r) {
        snprintf(f->temporary, sizeof f->temporary, "%s.%016llx.tmp", path, (unsigned long long)r);
        fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    if (fd >= 0 && (f->stream = fdopen(fd, "r+"))) return SGT_OK;
    int rc = sgt_fail_errno(err, "%s: cannot create", path);
    if (fd >= 0) {
        unlink(f->temporary);
        close(fd);
    }
    return rc;
}

int sgt_file_write(sgt_file *f, const void *p, size_t n, sgt_error *err)
{
    return sgt_write_all(fileno(f->stream), p, n, f->path, err);
}

int sgt_file_commit(sgt_file *f, sgt_error *err)
{
    int rc = SGT_OK;
    errno = EIO; /* errno to report if the error flag of the stream is set by an earlier write */
    if (fflush(f->stream) || ferror(f->stream))
        rc = sgt_fail_errno(err, "%s: cannot write", f->path);
    else if (fsync(fileno(f->stream)) < 0)
        rc = sgt_fail_errno(err, "%s: cannot flush to disk", f->path);
    else if (rename(f->temporary, f->path) < 0)
        rc = sgt_fail_errno(err, "%s: cannot rename into place", f->path);
    if (rc < 0) unlink(f->temporary);
    else rc = sgt_sync_parent(f->path, err);
    fclose(f->stream);
    f->stream = NULL;
    return rc;
}

void sgt_file_abandon(sgt_file *f)
{
    if (!f->stream) return;
    unlink(f->temporary);
    fclose(f->stream);
    f->stream = NULL;
}

int sgt_file_put(const char *path, const void *p, size_t n, sgt_error *err)
{
    sgt_file f;
    int rc = sgt_file_begin(&f, path, err);
    if (rc == SGT_OK) rc = sgt_file_write(&f, p, n, err);
    if (rc == SGT_OK) rc = sgt_file_commit(&f, err);
    sgt_file_abandon(&f);
    return rc;
}

int sgt_fail_path(sgt_error *err, const char *path, const char *hint)
{
    if (errno != ENOENT) return sgt_fail_errno(err, "%s", path);
    return sgt_fail(err, SGT_EIO, "%s: %s (%s)", path, strerror(ENOENT), hint);
}

size_t sgt_utf8_mark(const void *bytes, size_t n)
{
    return n >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
}

static int refuse_size(const char *name, size_t max, sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: too large: a file of this kind may have at most %zu bytes", name, max);
}

int sgt_file_get(char **out, size_t *n, const char *path, size_t max, sgt_error *err)
{
    FILE *f;
    struct stat st;
    int rc = sgt_file_lines(&f, path, err);
    if (rc < 0) return rc;
    /* reject a file that is too large before any memory is allocated for its content */
    if (fstat(fileno(f), &st) == 0 && (uint64_t)st.st_size > max) rc = refuse_size(path, max, err);
    else rc = sgt_stream_get(out, n, f, path, max, err);
    fclose(f);
    return rc;
}

int sgt_stream_get(char **out, size_t *n, FILE *f, const char *name, size_t max, sgt_error *err)
{
    size_t room = 0, used = 0, got = 1;
    char *buf = NULL;
    int rc = SGT_OK;
    for (; got && used <= max && rc == SGT_OK; used += got) {
        rc = sgt_reserve(&buf, &room, used + 4096, 1, name, err);
        got = rc == SGT_OK ? fread(buf + used, 1, room - used, f) : 0;
    }
    if (rc == SGT_OK && ferror(f)) rc = sgt_fail_errno(err, "%s", name);
    if (rc == SGT_OK && used > max) rc = refuse_size(name, max, err);
    if (rc < 0) {
        free(buf);
        return rc;
    }
    /* `buf` has room for the NUL at index `used`: the last call to fread was given room for at
     * least one more byte, and read none. */
    buf[used] = 0;
    *out = buf;
    *n = used;
    return SGT_OK;
}

int sgt_file_gone(const char *path)
{
    return access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

int sgt_file_lines(FILE **f, const char *path, sgt_error *err)
{
    struct stat st;
    int rc = SGT_OK, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0) rc = sgt_fail_errno(err, "%s", path);
    else if (S_ISDIR(st.st_mode)) rc = sgt_fail(err, SGT_EIO, "%s: is a folder, not a file", path);
    else if (!S_ISREG(st.st_mode)) rc = sgt_fail(err, SGT_EIO, "%s: is not a regular file", path);
    else if (!(*f = fdopen(fd, "r"))) rc = sgt_fail_errno(err, "%s", path);
    if (rc < 0 && fd >= 0) close(fd);
    return rc;
}

size_t sgt_file_line(char *line, size_t size, FILE *f)
{
    size_t n = 0;
    flockfile(f);
    for (int c = 0; c != '\n' && (c = getc_unlocked(f)) != EOF; n += n < size)
        if (n < size - 1) line[n] = (char)c;
    funlockfile(f);
    line[n < size ? n : size - 1] = 0;
    return n;
}

int sgt_write_all(int fd, const void *p, size_t n, const char *name, sgt_error *err)
{
    const char *from = p;
    while (n) {
        ssize_t got = write(fd, from, n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return sgt_fail_errno(err, "%s: cannot write", name);
        from += got;
        n -= (size_t)got;
    }
    return SGT_OK;
}

int sgt_pread_all(int fd, void *p, size_t n, uint64_t at, const char *name, sgt_error *err)
{
    char *to = p;
    while (n) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return sgt_fail_errno(err, "%s: cannot read at offset %llu", name,
                                  (unsigned long long)at);
        if (!got)
            return sgt_fail(
                err, SGT_EIO,
                "%s: ends at offset %llu, %zu bytes too early (was it truncated while being read?)",
                name, (unsigned long long)at, n);
        to += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return SGT_OK;
}

int sgt_make_folders(const char *path, sgt_error *err)
{
    struct stat st;
    int rc = mkdir(path, 0777);
    if (!*path) return sgt_fail_errno(err, "an empty name");
    if (rc < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        /* This function calls itself for each of up to two thousand folders in a path. Keep each
         * copy of the path on the heap, because so many copies could overflow the stack */
        char *above = strdup(path);
        rc = above ? sgt_make_folders(dirname(above), err) : sgt_fail_memory(err, path);
        free(above);
        if (rc < 0) return rc;
        rc = mkdir(path, 0777);
    }
    /* Fsync the parent folder: a file in the new folder survives a crash only if the new folder's
     * name in the parent folder does. Ignore errors, because a parent folder without read
     * permission cannot be opened to fsync it. */
    if (rc == 0) (void)sgt_sync_parent(path, NULL);
    else if (errno != EEXIST) return sgt_fail_errno(err, "%s: cannot create this folder", path);
    else if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return sgt_fail(err, SGT_EIO, "%s: is a file, not a folder", path);
    return SGT_OK;
}

int sgt_sync_folder(const char *path, sgt_error *err)
{
    int rc = SGT_OK, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return sgt_fail_errno(err, "%s", path);
    /* Ignore EINVAL, which file systems that cannot fsync a folder return. On such a file system,
     * this library cannot make sure that a renamed file survives a crash. */
    if (fsync(fd) < 0 && errno != EINVAL)
        rc = sgt_fail_errno(err, "%s: cannot flush to disk", path);
    close(fd);
    return rc;
}

int sgt_sync_parent(const char *path, sgt_error *err)
{
    char copy[SGT_PATH]; /* a copy, because dirname modifies its argument */
    snprintf(copy, sizeof copy, "%s", path);
    return sgt_sync_folder(dirname(copy), err);
}

/* Remove the file or folder `name` in the open folder `dir`, a folder together with its contents.
 * `shown` is the path of the removed file or folder in messages. */
static int remove_at(int dir, const char *name, const char *shown, sgt_error *err)
{
    int rc = SGT_OK, fd = -1;
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) return SGT_OK;
    if (errno == EISDIR || errno == EPERM)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (const struct dirent *e; d && rc == SGT_OK && (e = readdir(d));) {
        char below[SGT_PATH];
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = remove_at(fd, e->d_name, sgt_path(below, shown, "%s", e->d_name), err);
    }
    if (rc == SGT_OK && (!d || unlinkat(dir, name, AT_REMOVEDIR) < 0))
        rc = sgt_fail_errno(err, "%s: cannot remove", shown);
    if (d) closedir(d);
    else if (fd >= 0) close(fd);
    return rc;
}

int sgt_remove_tree(const char *path, sgt_error *err)
{
    return remove_at(AT_FDCWD, path, path, err);
}

int sgt_sweep(const char *folder, int (*which)(const char *name, const void *ctx), const void *ctx,
              sgt_error *err)
{
    int rc = SGT_OK;
    DIR *d = opendir(folder);
    if (!d) return sgt_fail_errno(err, "%s", folder);
    for (const struct dirent *e; !rc && (e = readdir(d));)
        if (which(e->d_name, ctx) && unlinkat(dirfd(d), e->d_name, 0) < 0 && errno != ENOENT)
            rc = sgt_fail_errno(err, "%s/%s: cannot remove", folder, e->d_name);
    closedir(d);
    return rc;
}

int sgt_move(const char *from_folder, const char *to_folder, const char *from, const char *to,
             int *gone, sgt_error *err)
{
    char a[SGT_PATH], b[SGT_PATH];
    sgt_path(a, from_folder, "%s", from);
    if (rename(a, sgt_path(b, to_folder, "%s", to)) == 0) return SGT_OK;
    if (!gone || errno != ENOENT) return sgt_fail_errno(err, "%s: cannot move to %s", a, b);
    *gone = 1;
    return SGT_OK;
}

int sgt_fail_hint(sgt_error *err, int code, const char *hint)
{
    if (!err || code != SGT_EFORMAT) return code;
    sgt_error said = *err;
    size_t n = strlen(said.text);
    return n && said.text[n - 1] == ')' ? code : sgt_fail(err, code, "%s (%s)", said.text, hint);
}
