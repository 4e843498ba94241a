/* files.h: the shards of a set as file descriptors. A shard is opened when it is needed, for direct
 * reads if its file system allows them. At most a fixed number is open; one that is not in use is
 * closed first. Any number of threads may use them. */
#ifndef SGT_FILES_H
#define SGT_FILES_H

#include "loader/read/reader.h"

typedef struct sgt_files sgt_files;

#define SGT_FILES_ALIGN 4096u /* the largest alignment that direct reads are made with */

/* Open the table of files, of which at most `most` stay open, and shard 0. set must outlive it.
 * `notice` is told, once, that direct reads are refused. */
int sgt_files_open(sgt_files **out, const sgt_set *set, uint32_t most, const sgt_notice *notice,
                   sgt_error *err);
void sgt_files_close(sgt_files *f); /* NULL is fine */

/* Return a descriptor of the shard that stays open until sgt_files_give, or a negative SGT_E*. If
 * all descriptors that may be open are in use, the call fails, unless `insist` is set: it then
 * opens one more. A caller that failed may try again after giving a descriptor back. */
int sgt_files_take(sgt_files *f, uint32_t shard, int insist, sgt_error *err);
void sgt_files_give(sgt_files *f, uint32_t shard);

/* Return the alignment in bytes of a direct read's offset, length and memory, for a shard that is
 * taken. Never more than shard 0's. 1 if the shard is read through the page cache. */
unsigned sgt_files_align(const sgt_files *f, uint32_t shard);

#endif
