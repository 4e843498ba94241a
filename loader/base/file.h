/* file.h: read and write entire files, and create files that get their final name only when they
 * are complete.
 *
 *     sgt_file f;
 *     // creates a temporary file with an unguessable name in the folder out/
 *     if (sgt_file_begin(&f, "out/train_000000.bin", &err) < 0) ...;
 *     ... sgt_file_write(&f, p, n, &err) ...
 *     // fsyncs the file, renames it to its final name, and fsyncs the folder
 *     if (sgt_file_commit(&f, &err) < 0) ...;
 *     // or: sgt_file_abandon(&f), which removes the temporary file
 *
 * A file that exists under its final name is therefore complete. The names of temporary files end
 * in ".tmp", never in ".bin". The permissions of new files are limited by the umask, as usual. */
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
    /* stream of the temporary file; NULL if sgt_file_begin failed, or after sgt_file_commit or
     * sgt_file_abandon */
    FILE *stream;
    char path[SGT_PATH], temporary[SGT_PATH + 32];
} sgt_file;

/* Create the temporary file that sgt_file_commit later renames to `path`. Returns SGT_EIO if `path`
 * is a device, a pipe or a socket, or a link to one of these. */
int sgt_file_begin(sgt_file *f, const char *path, sgt_error *err);
/* Append the n bytes at p without buffering. To write with buffering, print to f->stream instead;
 * errors of such writes are reported by sgt_file_commit. Do not mix the two methods for one
 * file. */
int sgt_file_write(sgt_file *f, const void *p, size_t n, sgt_error *err);
/* Fsync the temporary file, rename it to its final name, and fsync the folder. On failure, remove
 * the temporary file. */
int sgt_file_commit(sgt_file *f, sgt_error *err);
/* Close the temporary file and remove it. Does nothing after sgt_file_commit or sgt_file_abandon,
 * or if sgt_file_begin failed. */
void sgt_file_abandon(sgt_file *f);
/* Write the n bytes at p to the file `path` atomically, that is, call sgt_file_begin,
 * sgt_file_write and sgt_file_commit. */
int sgt_file_put(const char *path, const void *p, size_t n, sgt_error *err);

/* Return 1 if `path` does not exist, or if a parent folder of `path` is missing or is a file.
 * Otherwise return 0, also if `path` cannot be examined for another reason. In that case, a later
 * attempt to open `path` reports the reason. */
int sgt_file_gone(const char *path);

/* Fill in *err after a failed system call on the file `path`. If the file does not exist, the
 * message ends with `hint` in parentheses. Otherwise do the same as sgt_fail_errno(err, "%s",
 * path). Return SGT_ENOMEM or SGT_EIO. */
int sgt_fail_path(sgt_error *err, const char *path, const char *hint);

/* Return 3, the length of the UTF-8 byte order mark, if the n bytes at `bytes` begin with this
 * mark. Otherwise return 0. */
size_t sgt_utf8_mark(const void *bytes, size_t n);

/* Read an entire file into the malloc'd buffer *out, which the caller frees, and set *n to the
 * number of bytes read. A NUL, which *n does not count, is appended. Returns SGT_EFORMAT if the
 * file has more than `max` bytes. */
int sgt_file_get(char **out, size_t *n, const char *path, size_t max, sgt_error *err);
/* Read a stream, such as a pipe, from its current position to its end. *out, *n and `max` have the
 * same meaning as in sgt_file_get. Messages call the stream `name`. */
int sgt_stream_get(char **out, size_t *n, FILE *f, const char *name, size_t max, sgt_error *err);

/* Open a regular file from which the caller wants to read lines. The caller closes it with fclose.
 * Returns SGT_EIO if `path` is not a regular file but, for example, a folder or a FIFO. */
int sgt_file_lines(FILE **f, const char *path, sgt_error *err);
/* Read the next line of f, including its newline, into the `size` bytes at `line`, and append a
 * NUL. Return the length of the line in bytes, or 0 at the end of the file or on an error (call
 * ferror to tell which). If the line has `size` bytes or more, store only its first size - 1 bytes,
 * skip the rest, and return `size`. */
size_t sgt_file_line(char *line, size_t size, FILE *f);

/* Write or read exactly n bytes, and continue after EINTR and after partial transfers.
 * sgt_pread_all reads from offset `at`. Returns an error, whose message begins with `name`, if
 * fewer than n bytes can be transferred. */
int sgt_write_all(int fd, const void *p, size_t n, const char *name, sgt_error *err);
int sgt_pread_all(int fd, void *p, size_t n, uint64_t at, const char *name, sgt_error *err);

int sgt_make_folders(const char *path, sgt_error *err); /* mkdir -p */
/* Fsync a folder, so that the names of the files in it survive a crash. */
int sgt_sync_folder(const char *path, sgt_error *err);
int sgt_sync_parent(const char *path, sgt_error *err); /* fsync the folder that contains `path` */
/* Remove `path` and, if it is a folder, everything in it, without following symbolic links. Returns
 * 0 if `path` does not exist. */
int sgt_remove_tree(const char *path, sgt_error *err);
/* Call which(name, ctx) for the name of each entry in `folder`, and remove the entry if the call
 * returns 1. */
int sgt_sweep(const char *folder, int (*which)(const char *name, const void *ctx), const void *ctx,
              sgt_error *err);
/* Rename the file from_folder/from to to_folder/to. If the file does not exist, set *gone to 1 and
 * return 0. If `gone` is NULL, return an error in that case. */
int sgt_move(const char *from_folder, const char *to_folder, const char *from, const char *to,
             int *gone, sgt_error *err);

/* Write "folder/name" into `to` and return `to`. `name` is a printf format for the arguments after
 * it. The caller need not check the length: a path that does not fit is cut off, but what remains
 * is still longer than the system allows, so every system call that gets it fails with
 * ENAMETOOLONG.
 *
 *     char path[SGT_PATH];
 *     int fd = sgt_file_open(sgt_path(path, work, "part-%06u/journal", i), O_RDONLY, &err); */
char *sgt_path(char to[SGT_PATH], const char *folder, const char *name, ...) SGT_PRINTF(3, 4);
/* Return the path "folder/name" in malloc'd memory, or NULL if memory runs out. */
char *sgt_join(const char *folder, const char *name);
/* Open a file with the flags `flags` and O_CLOEXEC. Return its descriptor, or a negative SGT_E*.
 * Opening a symbolic link fails. */
int sgt_file_open(const char *path, int flags, sgt_error *err);

/* Return the path FOLDER/`below` in malloc'd memory. FOLDER is the folder that contains the running
 * program if `up` is 1, and the parent of that folder if `up` is 2. Return NULL if the program's
 * path is unknown. */
char *sgt_beside_program(int up, const char *below);

/* Return the path to pass to dlopen for the sgt library with the file name `name`, in malloc'd
 * memory. For a program PREFIX/bin/PROGRAM, this is PREFIX/lib/NAME (in a build folder) or
 * PREFIX/lib/sgt/NAME (after installation), whichever exists first. If neither exists, it is `name`
 * alone, for which dlopen searches the system's folders. Return NULL if memory runs out. */
char *sgt_own_library(const char *name);

/* If `code` is SGT_EFORMAT, append " (hint)" to the text of *err, unless the text already ends in a
 * parenthesis. This lets a caller add advice, such as "tokenize again", that holds for every kind
 * of damage to the file. Return `code`. */
int sgt_fail_hint(sgt_error *err, int code, const char *hint);

#ifdef __cplusplus
}
#endif
#endif
