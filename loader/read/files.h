/* files.h: the shards of a set as descriptors: opened when they are needed, a bounded number at a
 * time (the one unused for longest makes room), and for direct reads where their file system allows
 * those. Any number of threads. */
#ifndef SGT_FILES_H
#define SGT_FILES_H

#include "read/warn_once.h"
#include "read/reader.h"

typedef struct sgt_files sgt_files;

#define SGT_FILES_ALIGN 4096u /* the largest alignment that direct reads are made with */

/* Set, once and fault outlive it. `kind` is once's, for the notice that direct reads are
 * refused. */
int sgt_files_open(sgt_files **out, const sgt_set *set, const sgt_reader_fault *fault,
                   sgt_warn_once *once, unsigned kind, sgt_error *err);
void sgt_files_close(sgt_files *f); /* NULL is fine */

/* A descriptor that stays open until it is given back, or a negative SGT_E*. Where as many are in
 * use as are kept open, whoever insists gets one more; others fail, and try again when they have
 * given one back. */
int sgt_files_take(sgt_files *f, uint32_t shard, int insist, sgt_error *err);
void sgt_files_give(sgt_files *f, uint32_t shard);

/* Of a shard that has been taken before: what offset, length and memory of a read must be multiples
 * of; 1 where it is read through the page cache. Never more than shard 0's. */
unsigned sgt_files_align(const sgt_files *f, uint32_t shard);

/* A direct read was refused with this errno, though opening the shard for it was not: through the
 * page cache from now on. */
void sgt_files_refuse(sgt_files *f, uint32_t shard, int error);

#endif
