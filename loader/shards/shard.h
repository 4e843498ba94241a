/* shard.h: one shard on disk, read and written; and the like of other programs, read. 1,024 bytes
 * of header (256 little-endian int32), then 16-bit ids.
 *
 *   word 0  20240520                 word 4    vocabulary size (0: not said)
 *   word 1  1                        word 5    end-of-text id
 *   word 2  tokens                   word 6-7  vocabulary fingerprint, low word first (0: not said)
 *   word 3  header revision (0: a foreign file with words 0-2 alone; ours 1)
 *                                    word 8-9  XXH3-64 of the token bytes, low word first (0: not said)
 *
 * Words 0-2 are llm.c's layout, so its readers, and numpy.memmap(path, '<u2', 'r', offset=1024),
 * read ours. Of others:
 *
 *   llm.c, modded-nanogpt   the same header with nothing after word 2
 *   Megatron-LM             no header; documents in an .idx beside it (megatron.h)
 *   nanoGPT                 ids and nothing else, which only who asks for it is given (`raw`) */
#ifndef SGT_SHARD_H
#define SGT_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_SHARD_MAGIC 20240520
#define SGT_SHARD_LLMC_WIDE 20240801 /* llm.c's for Llama 3's ids, which have 32 bits: not read */
#define SGT_SHARD_HEADER 1024        /* bytes */
#define SGT_SHARD_MAX_TOKENS 2147483647u

typedef enum sgt_shard_format {
    SGT_SHARD_OWN,
    SGT_SHARD_LLMC,
    SGT_SHARD_RAW,
    SGT_SHARD_MEGATRON
} sgt_shard_format;
const char *sgt_shard_format_name(sgt_shard_format f); /* "sgt", "llm.c", "raw", "megatron" */

typedef struct sgt_shard_header {
    uint64_t tokens;
    sgt_shard_format format;
    uint32_t revision;
    uint32_t vocab; /* 0: not said */
    uint32_t eot;
    uint64_t fingerprint; /* of the vocabulary; 0: not said */
    uint64_t xxh3;        /* of the token bytes; 0: not said */
    uint64_t data;        /* byte offset of the first token: 1024, or 0 for a raw file */
} sgt_shard_header;

/* Of the whole file. */
static inline uint64_t sgt_shard_bytes(const sgt_shard_header *h)
{
    return h->data + 2 * h->tokens;
}

void sgt_shard_pack(uint8_t bytes[SGT_SHARD_HEADER], const sgt_shard_header *h);

/* Reads and checks the header of the file at `fd` against its size (a file longer or shorter than
 * header + 2*tokens is SGT_EFORMAT, saying both sizes). raw: 1 no header, every byte is a token's;
 * 0 there must be a header, or Megatron's .idx beside it (of which the beginning is checked); -1
 * whichever it is. */
int sgt_shard_read_header(sgt_shard_header *h, int fd, const char *path, int raw, sgt_error *err);

/* Opens, checks, returns the descriptor (>= 0) or a negative SGT_E*. */
int sgt_shard_open(sgt_shard_header *h, const char *path, int raw, sgt_error *err);

/* Is shown all tokens of a shard in turn: ids[n], of which the first is token number `first`,
 * before it is known that the checksum holds. A negative SGT_E* with *err filled in ends the
 * reading. */
typedef struct sgt_shard_visitor {
    int (*see)(void *ctx, const uint16_t *ids, size_t n, uint64_t first, sgt_error *err);
    void *ctx;
} sgt_shard_visitor;

/* Reads the whole shard: checksum against the header (where it is said) and every id below `vocab`.
 * The page cache is asked ahead for what comes next, and lets go of what was read. visitor NULL:
 * nobody sees the tokens. */
int sgt_shard_verify(const char *path, int raw, uint32_t vocab, const sgt_shard_visitor *visitor,
                     const sgt_stop *stop, sgt_error *err);

/* The shards of a folder in order of their names: "SPLIT_*.bin"; where there are none, those of
 * others: "NAME_SPLIT_*.bin" and "NAME_SPLIT.bin", with one NAME for all; or else Megatron's, any
 * *.bin with such an .idx, of which those with the word val, valid or validation in their names are
 * the split "val", those with test no split, and all others "train". *paths is malloc'd, each entry
 * malloc'd. 0 found is no error. */
int sgt_shard_list(char ***paths, size_t *count, const char *folder, const char *split,
                   sgt_error *err);
void sgt_shard_list_free(char **paths, size_t count);

#ifdef __cplusplus
}
#endif
#endif
