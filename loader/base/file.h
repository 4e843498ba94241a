/* file.h: read and write complete files, and create files that appear only when complete.
 *
 *     sgt_file f;
 *     // creates a temporary file with an unguessable name in the folder out/
 *     if (sgt_file_begin(&f, "out/train_000000.bin", &err) < 0) ...;
 *     ... sgt_file_write(&f, p, n, &err) ...
 *     // fsyncs the file, renames it to its final name, and fsyncs the folder
 *     if (sgt_file_commit(&f, &err) < 0) ...;
 *     // or: sgt_file_abandon(&f), which removes the temporary file
 *
 * A file that exists under its final name is complete. Names of temporary files end in ".tmp",
 * never in ".bin". The permissions of new files are limited by the umask, as usual. */
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
    /* stream of the temporary file; NULL: no file has been begun, or it has been committed or
     * abandoned */
    FILE *stream;
    char path[SGT_PATH], temporary[SGT_PATH + 32];
} sgt_file;

/* Create the temporary file that sgt_file_commit later renames to `path`. Returns SGT_EIO if `path`
 * is a device, a pipe or a socket, or a link to one of these. */
int sgt_file_begin(sgt_file *f, const char *path, sgt_error *err);
/* Append n bytes without buffering. To write with buffering, print to f->stream instead;
 * sgt_file_commit then reports errors. Do not use both methods for one file. */
int sgt_file_write(sgt_file *f, const void *p, size_t n, sgt_error *err);
/* Fsync the temporary file, rename it to its final name, and fsync the folder. On failure, remove
 * the temporary file. */
int sgt_file_commit(sgt_file *f, sgt_error *err);
/* Close the temporary file and remove it. Does nothing after sgt_file_commit or sgt_file_abandon,
 * or if sgt_file_begin failed. */
void sgt_file_abandon(sgt_file *f);
/* Write the n bytes at p to the file `path` atomically: begin, write and commit in one call. */
int sgt_file_put(const char *path, const void *p, size_t n, sgt_error *err);

/* Return 1 if `path` does not exist, for example because a parent folder in it is a file. Return 0
 * if `path` exists or cannot be examined. If it cannot be examined, opening it will report the
 * reason. */
int sgt_file_gone(const char *path);

/* Fill in *err after a failed system call, as sgt_fail_errno(err, "%s", path) does. If the file
 * does not exist, append `hint` in parentheses. Return SGT_ENOMEM or SGT_EIO. */
int sgt_fail_path(sgt_error *err, const char *path, const char *hint);

/* Return the length in bytes of the UTF-8 byte order mark at the beginning of the n bytes at
 * `bytes`: 3, or 0 if there is no such mark. */
size_t sgt_utf8_mark(const void *bytes, size_t n);

/* Read a file completely into the malloc'd buffer *out, which the caller frees. Append a NUL, which
 * is not counted in *n. Returns SGT_EFORMAT if the file has more than `max` bytes. */
int sgt_file_get(char **out, size_t *n, const char *path, size_t max, sgt_error *err);
/* Read a stream, for example a pipe, from its current position to its end. The buffer, the NUL and
 * the limit are those of sgt_file_get. `name` is used in messages. */
int sgt_stream_get(char **out, size_t *n, FILE *f, const char *name, size_t max, sgt_error *err);

/* Open a regular file for reading its lines. The caller closes it with fclose. Returns SGT_EIO for
 * anything that is not a regular file, such as a folder or a FIFO. */
int sgt_file_lines(FILE **f, const char *path, sgt_error *err);
/* Read the next line of f into the `size` bytes at `line`, including its newline, and append a NUL.
 * Return the length of the line in bytes, or 0 at the end of the file or on an error (check
 * ferror). A line of `size` bytes or more is cut: `line` holds its beginning, the rest is skipped,
 * and `size` is returned. */
size_t sgt_file_line(char *line, size_t size, FILE *f);

/* Write or read exactly n bytes, continuing after EINTR and after partial transfers. If that is not
 * possible, return an error; its message begins with `name`. */
int sgt_write_all(int fd, const void *p, size_t n, const char *name, sgt_error *err);
int sgt_pread_all(int fd, void *p, size_t n, uint64_t at, const char *name, sgt_error *err);

int sgt_make_folders(const char *path, sgt_error *err); /* mkdir -p */
/* Fsync a folder, so that its entries (names of files) survive a crash. */
int sgt_sync_folder(const char *path, sgt_error *err);
int sgt_sync_parent(const char *path, sgt_error *err); /* fsync the folder that holds `path` */
/* Remove `path` and everything in it, without following symbolic links. A missing path is not an
 * error. */
int sgt_remove_tree(const char *path, sgt_error *err);
/* Call which(name, ctx) for the name of each file in a folder, and remove the file if it returns
 * 1. */
int sgt_sweep(const char *folder, int (*which)(const char *name, const void *ctx), const void *ctx,
              sgt_error *err);
/* Rename from_folder/from to to_folder/to. If the file does not exist, set *gone to 1 and return 0;
 * if `gone` is NULL, return an error instead. */
int sgt_move(const char *from_folder, const char *to_folder, const char *from, const char *to,
             int *gone, sgt_error *err);

/* Write "folder/name" into `to` and return `to`. `name` and the arguments after it are formatted as
 * by printf. The caller need not check the length. A path that does not fit is cut off, but stays
 * longer than the system allows, so every system call that gets it fails with ENAMETOOLONG.
 *
 *     char path[SGT_PATH];
 *     int fd = sgt_file_open(sgt_path(path, work, "part-%06u/journal", i), O_RDONLY, &err); */
char *sgt_path(char to[SGT_PATH], const char *folder, const char *name, ...) SGT_PRINTF(3, 4);
/* Return "folder/name" in malloc'd memory, or NULL if out of memory. */
char *sgt_join(const char *folder, const char *name);
/* Open a file with `flags` and O_CLOEXEC. Return its descriptor or a negative SGT_E*. A symbolic
 * link is refused. */
int sgt_file_open(const char *path, int flags, sgt_error *err);

/* Return, in malloc'd memory, the path FOLDER/`below`. FOLDER is the folder of the running program
 * if `up` is 1, or its parent if `up` is 2. Return NULL if the program's path is unknown. */
char *sgt_beside_program(int up, const char *below);

/* Return, in malloc'd memory, the path to pass to dlopen for one of sgt's own libraries. A program
 * PREFIX/bin/PROGRAM finds it as PREFIX/lib/NAME (in a build folder) or PREFIX/lib/sgt/NAME (when
 * installed). If neither file exists, the path is just `name`, for which dlopen searches. NULL: out
 * of memory. */
char *sgt_own_library(const char *name);

/* If `code` is SGT_EFORMAT, append " (hint)" to the text of *err, unless the text already ends in a
 * parenthesis. This gives general advice such as "tokenize again", which fits any kind of damage.
 * Return `code`. */
int sgt_fail_hint(sgt_error *err, int code, const char *hint);

#ifdef __cplusplus
}
#endif
#endif
