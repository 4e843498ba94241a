/* same.h: whether an input has the bytes that were read when a set was made.
 *
 * An input is known by a hash of what is tokenized: the bytes of its stream (source.h), so the
 * unpacked text of .gz and .zst, and the output of a filter; of Parquet, the metadata and the pages
 * of the text's column (sgt_parquet_hash). The thread that reads a file hashes what it reads, so
 * nothing is read twice. sources.jsonl keeps the hash of a file, and the journal that of the part
 * of a file that was read so far.
 *
 * A later run compares device, inode, size and time of each file first, as they were when the
 * inputs were listed. They are in inputs.jsonl in .work, and in .inputs.jsonl in a complete OUT,
 * beside the files that users compare: they differ between copies of the same inputs. A file for
 * which they are equal counts as unchanged. Any other is read and hashed: if the hash is equal, the
 * new values are recorded, and otherwise the run is refused. So a set whose .inputs.jsonl is
 * missing is compared by reading all inputs.
 *
 * A stream is hashed in blocks: the hash of each is the seed of the next one's. So a run that
 * resumes within a large file needs only the block in which it stopped. */
#ifndef SGT_SAME_H
#define SGT_SAME_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

#define SGT_SAME_BLOCK ((uint64_t)4 << 20)

typedef struct sgt_stream_hash {
    XXH3_state_t *state; /* the caller's */
    uint64_t at;         /* bytes of the stream so far */
    uint64_t block;      /* hash of all whole blocks */
} sgt_stream_hash;

/* Begin at byte `at`, a multiple of SGT_SAME_BLOCK, before which the blocks have the hash `block`;
 * both are 0 at the beginning. */
void sgt_stream_hash_begin(sgt_stream_hash *h, uint64_t at, uint64_t block);
void sgt_stream_hash_add(sgt_stream_hash *h, const void *bytes, size_t n);
/* Return the hash of the bytes so far, at which more can be added. */
uint64_t sgt_stream_hash_now(const sgt_stream_hash *h);

/* Read a file, or its first `length` bytes (of Parquet: rows), and set *hash to their hash. field:
 * the column of Parquet. If the file is shorter, hash what there is. */
int sgt_same_hash(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                  const sgt_stop *stop, sgt_error *err);

#endif
