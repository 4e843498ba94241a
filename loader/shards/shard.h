/* shard.h: read and write one shard, and read similar files of other programs. A shard is a header
 * of 1,024 bytes (256 little-endian int32), then ids of 2 or 4 bytes (base/ids.h).
 *
 *   word 0  20240520; 4-byte ids:    word 4    vocabulary size (0: unknown)
 *           20240801                 word 5    end-of-text id
 *   word 1  1; 4-byte ids: 7
 *   word 2  tokens                   word 6-7  vocabulary fingerprint, low word first (0: unknown)
 *   word 3  header revision (sgt writes 1; 0: written by another program, only words 0-2 are valid)
 *                                  word 8-9  XXH3-64 of token bytes, low word first (0: unknown)
 *
 * Words 0-2 have llm.c's layout (for GPT-2 and for Llama 3), so llm.c can read these files. So can
 * numpy.memmap(path, '<u2' or '<u4', 'r', offset=1024). Files of other programs:
 *
 *   llm.c, modded-nanogpt   the same header with nothing after word 2
 *   Megatron-LM             no header; documents in an .idx beside it (megatron.h)
 *   nanoGPT                 only ids of 16 bits; read if the path names the file, or a folder in
 *                           which it is train.bin or val.bin. Files with other names in a folder,
 *                           or with ids of 32 bits, are read only if the caller asks for it (`raw`)
 */
#ifndef SGT_SHARD_H
#define SGT_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/ids.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_SHARD_MAGIC 20240520 /* word 0 of files with 2-byte ids */
#define SGT_SHARD_VERSION 1
#define SGT_SHARD_WIDE_MAGIC 20240801 /* word 0 of files with 4-byte ids */
#define SGT_SHARD_WIDE_VERSION 7
#define SGT_SHARD_HEADER 1024 /* bytes */
/* added to the argument `raw` of sgt_shard_open if the file's manifest states that width */
#define SGT_SHARD_SURE 1
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
    size_t width; /* bytes of an id */
    sgt_shard_format format;
    uint32_t revision;
    uint32_t vocab; /* 0: unknown */
    uint32_t eot;
    uint64_t fingerprint; /* fingerprint of the vocabulary; 0: unknown */
    uint64_t xxh3;        /* checksum of the token bytes (XXH3-64); 0: unknown */
    uint64_t data;        /* byte offset of the first token: 1024, or 0 for a raw file */
} sgt_shard_header;

/* Return the size in bytes of the whole file. */
static inline uint64_t sgt_shard_bytes(const sgt_shard_header *h)
{
    return h->data + h->width * h->tokens;
}

/* Return whether the name of a file ends in .bin, which says that it holds ids. */
int sgt_shard_is_bin(const char *path);

/* Store the header's bytes. The vocabulary size decides the width of ids. */
void sgt_shard_pack(uint8_t bytes[SGT_SHARD_HEADER], const sgt_shard_header *h);

/* Open a shard, read its header and check it against the file's size. Returns the descriptor (>= 0)
 * or a negative SGT_E*: SGT_EFORMAT, with both sizes, if the file's length does not match its
 * header. raw 16 or 32: the file has no header, only ids of that many bits. raw 0: the file must
 * have a header, or an .idx of Megatron-LM, of which only the beginning is checked here. raw -1:
 * with or without a header; but without such an .idx, a file that begins like text, JSON or another
 * format (base/magic.h) is refused (SGT_EFORMAT). A file with neither header nor .idx is refused
 * (SGT_EUNSUPPORTED) if its ids look wider than `raw` states (16 bits for -1), unless the manifest
 * confirms the width. With raw 32, it is also refused if its first ids are too large for any
 * vocabulary. */
int sgt_shard_open(sgt_shard_header *h, const char *path, int raw, sgt_error *err);

/* A callback that receives all tokens of a shard in order, before the checksum is compared. `see`
 * gets n ids of the shard's width; the first of them is token number `first`. If it returns a
 * negative SGT_E*, with *err filled in, reading ends. */
typedef struct sgt_shard_visitor {
    int (*see)(void *ctx, const void *ids, size_t n, uint64_t first, sgt_error *err);
    void *ctx;
    uint64_t xxh3; /* checksum that the tokens must have; 0: use the header's, if it has one */
} sgt_shard_visitor;

/* Read the whole shard. Checks that every id is below `vocab`, and that the checksum is that of the
 * visitor or the header, if there is one. Requests readahead, and drops pages from the page cache
 * after reading them. visitor may be NULL. */
int sgt_shard_verify(const char *path, int raw, uint32_t vocab, const sgt_shard_visitor *visitor,
                     const sgt_stop *stop, sgt_error *err);

/* Fail with SGT_EFORMAT and a message such as "out/train_000003.bin: token 17 (byte 1058): id
 * 60000, expected below 50257". */
int sgt_shard_bad_id(const char *path, const sgt_shard_header *h, uint64_t token, uint32_t id,
                     uint32_t vocab, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
