/* files.h: the shards of a set as file descriptors. They are opened when needed, at most a fixed
 * number at a time (the least recently used one is closed), and for direct reads if their file
 * system allows it. Any number of threads may use them. */
#ifndef SGT_FILES_H
#define SGT_FILES_H

#include "loader/read/warn_once.h"
#include "loader/read/reader.h"

typedef struct sgt_files sgt_files;

#define SGT_FILES_ALIGN 4096u /* the largest alignment that direct reads are made with */

/* Open the table of files, which set, once and fault must outlive. `kind` is once's number of the
 * notice that direct reads are refused. */
int sgt_files_open(sgt_files **out, const sgt_set *set, const sgt_reader_fault *fault,
                   sgt_warn_once *once, unsigned kind, sgt_error *err);
void sgt_files_close(sgt_files *f); /* NULL is fine */

/* Return a descriptor that stays open until it is given back, or a negative SGT_E*. If all
 * descriptors that may be open are in use, the call fails unless `insist` is set, which opens one
 * more. A caller that failed tries again after giving one back. */
int sgt_files_take(sgt_files *f, uint32_t shard, int insist, sgt_error *err);
void sgt_files_give(sgt_files *f, uint32_t shard);

/* Return what offset, length and memory of a direct read must be multiples of, for a shard that was
 * taken before; 1 if it is read through the page cache. Never more than shard 0's. */
unsigned sgt_files_align(const sgt_files *f, uint32_t shard);

/* Read the shard through the page cache from now on: a direct read was refused with this errno,
 * although opening it for direct reads was not. */
void sgt_files_refuse(sgt_files *f, uint32_t shard, int error);

#endif
