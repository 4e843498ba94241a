/* space.c: compare the space needed with the space that is free. */
#include "tokenize/space.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "loader/base/file.h"
#include "tokenize/dry_run.h"
#include "tokenize/out/out_compare.h"

uint64_t sgt_space_free(const char *out)
{
    struct statvfs f;
    char *path = out && *out ? strdup(out) : NULL;
    uint64_t n = SGT_NOT_KNOWN;
    while (path && statvfs(path, &f) < 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (slash && slash > path) *slash = 0; /* "out/" becomes "out" first */
        else memcpy(path, slash ? "/" : ".", 2);
    }
    if (path && statvfs(path, &f) == 0) n = (uint64_t)f.f_bavail * f.f_frsize;
    free(path);
    return n;
}

/* Return the bytes on disk of all files below `folder`. Folders that cannot be read are left
 * out. */
static uint64_t bytes_below(const char *folder)
{
    uint64_t bytes = 0;
    struct stat st;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        char *path = sgt_join(folder, e->d_name);
        if (path && lstat(path, &st) == 0)
            bytes += S_ISDIR(st.st_mode) ? bytes_below(path) : 512 * (uint64_t)st.st_blocks;
        free(path);
    }
    if (d) closedir(d);
    return bytes;
}

uint64_t sgt_space_used(const char *out)
{
    int ours = out && *out &&
               (sgt_out_file_exists(out, "manifest.json") || sgt_out_file_exists(out, ".work"));
    return ours ? bytes_below(out) : 0;
}

int sgt_space_lacks(uint64_t need, uint64_t there, uint64_t avail)
{
    return avail != SGT_NOT_KNOWN && need > there && need - there > avail;
}

/* Write a size such as "12.3 GiB" into buf[n] and return buf. */
static char *shown(char *buf, size_t n, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double x = (double)bytes;
    int u = 0;
    while (x >= 1023.95 && u < 6) x /= 1024, u++;
    snprintf(buf, n, u ? "%.1f %s" : "%.0f %s", x, units[u]);
    return buf;
}

int sgt_space_fail(const char *out, uint64_t need, uint64_t there, uint64_t avail, sgt_error *err)
{
    char a[32], b[32];
    return sgt_fail(err, SGT_EIO,
                    "%s: needs about %s%s, but only %s is free there (make room, name an OUT "
                    "elsewhere, or --force)",
                    out, shown(a, sizeof a, need - there), there ? " more" : "",
                    shown(b, sizeof b, avail));
}
