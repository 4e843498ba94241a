/* file.h: whole files, and files that appear only when complete.
 *
 *     sgt_file *f;
 *     if (sgt_file_begin(&f, "out/train_000000.bin", &err) < 0) ...;  // writes to an unguessable temporary beside it
 *     ... sgt_file_write(f, p, n, &err) ...
 *     if (sgt_file_commit(f, &err) < 0) ...;                          // fsync, rename, fsync the folder: it is there
 *     (or sgt_file_abandon(f): nothing is left)
 *
 * A name that exists is complete. Temporaries end in ".tmp", never in ".bin". Files get the user's
 * umask. */
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

typedef struct sgt_file sgt_file;

int sgt_file_begin(sgt_file **out, const char *path, sgt_error *err);
/* appends; not buffered */
int sgt_file_write(sgt_file *f, const void *p, size_t n, sgt_error *err);
int sgt_file_fd(const sgt_file *f);
/* frees f, whatever happens; on failure the temporary is gone */
int sgt_file_commit(sgt_file *f, sgt_error *err);
/* frees f, removes the temporary; NULL is fine */
void sgt_file_abandon(sgt_file *f);

/* begin, write, commit in one call. */
int sgt_file_put(const char *path, const void *p, size_t n, sgt_error *err);

/* 1: nothing has that name, nor can have where a folder of it is a file. What cannot be looked at
 * is there: whoever opens it says what is wrong. */
int sgt_file_gone(const char *path);

/* The whole of a file into malloc'd *out (caller frees; a NUL follows its last byte). max: refuse
 * more bytes than this. */
int sgt_file_get(char **out, size_t *n, const char *path, size_t max, sgt_error *err);

/* Opens a regular file to read its lines (what else has its name, a pipe that nobody writes to, is
 * refused); to be closed with fclose. */
int sgt_file_lines(FILE **f, const char *path, sgt_error *err);
/* The next line of f into line[size], with its newline if it has one, and a NUL: how many bytes it
 * has; 0: at the end, or f has failed (ferror). `size`: it has as many or more, and its beginning
 * is there; it is read to its end all the same. */
size_t sgt_file_line(char *line, size_t size, FILE *f);

/* Through EINTR and short writes; fewer bytes than asked for are an error. */
int sgt_write_all(int fd, const void *p, size_t n, const char *name, sgt_error *err);
int sgt_pread_all(int fd, void *p, size_t n, uint64_t at, const char *name, sgt_error *err);

/* A stream that writes the file `path`, from nothing or, where `keep`, with what it has: NULL and
 * errno as of fopen. Never through a symbolic link, which somebody else may have laid at the name
 * in a folder that is shared. */
FILE *sgt_file_stream(const char *path, int keep);

int sgt_make_folders(const char *path, sgt_error *err); /* mkdir -p */
/* fsync of a folder: names in it are durable */
int sgt_sync_folder(const char *path, sgt_error *err);
int sgt_sync_parent(const char *path, sgt_error *err); /* fsync of the folder that holds `path` */
/* rm -r; nothing there is fine; follows no symbolic link */
int sgt_remove_tree(const char *path, sgt_error *err);
/* malloc'd "folder/name"; NULL: out of memory */
char *sgt_join(const char *folder, const char *name);

/* `below` from the folder that is `up` levels above this program's file (1: the one it lies in),
 * malloc'd; NULL where that cannot be said. */
char *sgt_beside_program(int up, const char *below);

/* Where a library of sgt's own that programs load at run time is, malloc'd: of PREFIX/bin/PROGRAM
 * PREFIX/lib/NAME, where make builds it, or PREFIX/lib/sgt/NAME, where make install puts it,
 * whichever is there first; else `name` itself, for dlopen to look elsewhere. NULL: out of
 * memory. */
char *sgt_own_library(const char *name);

#ifdef __cplusplus
}
#endif
#endif
