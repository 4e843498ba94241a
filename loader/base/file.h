/* file.h: read and write complete files, and create files that appear only when complete.
 *
 *     sgt_file f;
 *     // writes to an unguessable temporary beside it
 *     if (sgt_file_begin(&f, "out/train_000000.bin", &err) < 0) ...;
 *     ... sgt_file_write(&f, p, n, &err) ...
 *     // fsync, rename, fsync the folder: the file is there
 *     if (sgt_file_commit(&f, &err) < 0) ...;
 *     (or sgt_file_abandon(&f): nothing is left)
 *
 * A file that exists under its final name is complete. Temporaries end in ".tmp", never in ".bin".
 * Files get the user's umask. */
#ifndef SGT_BASE_FILE_H
#define SGT_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_PATH 4097 /* PATH_MAX + 1 */

typedef struct sgt_file {
    FILE *stream; /* NULL: no file has been begun, or it has been committed or abandoned */
    char path[SGT_PATH], temporary[SGT_PATH + 32];
} sgt_file;

/* Begin a file that sgt_file_commit renames to `path`. Refused if `path` is a device, a pipe or a
 * socket, or a link to one. */
int sgt_file_begin(sgt_file *f, const char *path, sgt_error *err);
/* Append n bytes, unbuffered. Instead, a caller may print to f->stream, which is buffered and whose
 * errors sgt_file_commit reports. Do not use both for one file. */
int sgt_file_write(sgt_file *f, const void *p, size_t n, sgt_error *err);
/* Fsync the temporary, rename it to its final name, and fsync the folder. On failure, remove the
 * temporary. */
int sgt_file_commit(sgt_file *f, sgt_error *err);
/* Close the temporary and remove it. Does nothing if f was committed or abandoned, or could not be
 * begun. */
void sgt_file_abandon(sgt_file *f);
/* Begin, write and commit in one call. */
int sgt_file_put(const char *path, const void *p, size_t n, sgt_error *err);

/* Return 1 if `path` does not exist, or cannot exist because one of its parent folders is a file. A
 * path that cannot be examined counts as present: opening it reports the reason. */
int sgt_file_gone(const char *path);

/* Fill in *err after a failed system call, as sgt_fail_errno(err, "%s", path) does. If the file
 * does not exist, append `hint` in parentheses. Return SGT_ENOMEM or SGT_EIO. */
int sgt_fail_path(sgt_error *err, const char *path, const char *hint);

/* Return the length in bytes of the UTF-8 byte order mark at the beginning of bytes[n]: 3, or 0 if
 * there is none. */
size_t sgt_utf8_mark(const void *bytes, size_t n);

/* Read a file completely into malloc'd *out, and append a NUL that is not counted in *n. The caller
 * frees *out. A file of more than `max` bytes is refused. */
int sgt_file_get(char **out, size_t *n, const char *path, size_t max, sgt_error *err);
/* Read the rest of a stream, which may be a pipe, in the same way; `name` is for messages. */
int sgt_stream_get(char **out, size_t *n, FILE *f, const char *name, size_t max, sgt_error *err);

/* Open a regular file to read its lines; close it with fclose. Anything else, such as a FIFO
 * without a writer, is refused. */
int sgt_file_lines(FILE **f, const char *path, sgt_error *err);
/* Read the next line of f into line[size], with its newline if it has one, and append a NUL. Return
 * its length in bytes; 0 at the end of the file, or on an error (check ferror). If `size` is
 * returned, the line is longer: `line` holds its beginning, and the rest was skipped. */
size_t sgt_file_line(char *line, size_t size, FILE *f);

/* Write or read exactly n bytes, continuing after EINTR and short transfers. If fewer bytes can be
 * transferred, return an error whose message begins with `name`. */
int sgt_write_all(int fd, const void *p, size_t n, const char *name, sgt_error *err);
int sgt_pread_all(int fd, void *p, size_t n, uint64_t at, const char *name, sgt_error *err);

int sgt_make_folders(const char *path, sgt_error *err); /* mkdir -p */
/* fsync a folder, so that the names in it survive a crash */
int sgt_sync_folder(const char *path, sgt_error *err);
int sgt_sync_parent(const char *path, sgt_error *err); /* fsync the folder that holds `path` */
/* remove `path` and everything in it; a missing path is fine, and symbolic links are not
 * followed */
int sgt_remove_tree(const char *path, sgt_error *err);
/* remove the files in a folder for whose names `which` returns 1 */
int sgt_sweep(const char *folder, int (*which)(const char *name, const void *ctx), const void *ctx,
              sgt_error *err);
/* Rename from_folder/from to to_folder/to. If there is no such file, set *gone to 1 and return 0;
 * if gone is NULL, this is an error. */
int sgt_move(const char *from_folder, const char *to_folder, const char *from, const char *to,
             int *gone, sgt_error *err);

/* Write "folder/name" into `to` and return `to`; `name` is formatted as by printf. A path that does
 * not fit is cut to a length that every system call refuses with ENAMETOOLONG, so that the caller
 * need not check the length.
 *
 *     char path[SGT_PATH];
 *     int fd = sgt_file_open(sgt_path(path, work, "part-%06u/journal", i), O_RDONLY, &err); */
char *sgt_path(char to[SGT_PATH], const char *folder, const char *name, ...) SGT_PRINTF(3, 4);
/* return malloc'd "folder/name"; NULL: out of memory */
char *sgt_join(const char *folder, const char *name);
/* Open a file with these flags and O_CLOEXEC. Refuse a symbolic link. Return the descriptor or a
 * negative SGT_E*. */
int sgt_file_open(const char *path, int flags, sgt_error *err);

/* Return the malloc'd path of `below` in a folder above the running program's file; NULL if the
 * program's path is unknown. up 1: the folder that holds the program; up 2: the folder above it. */
char *sgt_beside_program(int up, const char *below);

/* Return the malloc'd path of one of sgt's own libraries, for dlopen. For PREFIX/bin/PROGRAM it is
 * PREFIX/lib/NAME (a build) or PREFIX/lib/sgt/NAME (an installation), if the file exists. Otherwise
 * it is `name` alone, which dlopen searches for. NULL: out of memory. */
char *sgt_own_library(const char *name);

/* If `code` is SGT_EFORMAT and the text of *err does not end in a parenthesis yet, append " (hint)"
 * to it. A file can be damaged in many ways, and the same advice ("tokenize again") fits all of
 * them. Return `code`. */
int sgt_fail_hint(sgt_error *err, int code, const char *hint);

#ifdef __cplusplus
}
#endif
#endif
