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
#define SGT_SHARD_HEADER 1024 /* size in bytes of a header */
/* flag to add to the argument `raw` of sgt_shard_open: the manifest states how wide the ids are, so
 * do not check whether they look wider */
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
    size_t width; /* number of bytes per id */
    sgt_shard_format format;
    uint32_t revision;
    uint32_t vocab; /* 0: unknown */
    uint32_t eot;
    uint64_t fingerprint; /* fingerprint of the vocabulary; 0: unknown */
    uint64_t xxh3;        /* checksum of the token bytes (XXH3-64); 0: unknown */
    /* offset in bytes of the first token in the file: 1024, or 0 if the file has no header */
    uint64_t data;
} sgt_shard_header;

/* Return the size in bytes of a shard's file. */
static inline uint64_t sgt_shard_bytes(const sgt_shard_header *h)
{
    return h->data + h->width * h->tokens;
}

/* Return 1 if the path ends in .bin, as the names of files of ids do, otherwise 0. */
int sgt_shard_is_bin(const char *path);

/* Convert the header h to bytes. The width of ids that it states follows from h->vocab. */
void sgt_shard_pack(uint8_t bytes[SGT_SHARD_HEADER], const sgt_shard_header *h);

/* Open a shard, read its header, and check the header against the size of the file. Returns a file
 * descriptor, or a negative SGT_E*. If the header does not match the size, this is SGT_EFORMAT,
 * with both sizes in the message. `raw` states which files are accepted:
 *
 *  16, 32   a file without a header that contains only ids of 16 or 32 bits
 *  0        a file with a header, or with an .idx file of Megatron-LM, of which only the beginning
 *           is checked
 *  -1       a file with or without a header. A file with neither a header nor an .idx file is
 *           refused with SGT_EFORMAT if it begins like text, JSON or any other known format
 *           (base/magic.h)
 *
 * A file with neither a header nor an .idx file is refused with SGT_EUNSUPPORTED if its ids look
 * wider than `raw` states (16 bits for -1). SGT_SHARD_SURE turns this check off. If `raw` is 32,
 * the file is also refused if one of its first ids is too large for any vocabulary. */
int sgt_shard_open(sgt_shard_header *h, const char *path, int raw, sgt_error *err);

/* A callback that receives all tokens of a shard in order, before the checksum is compared. Each
 * call receives n ids, as wide as those of the shard. `first` is the index in the shard of the
 * first of them. To stop the reading, the callback returns a negative SGT_E* and fills in *err. */
typedef struct sgt_shard_visitor {
    int (*see)(void *ctx, const void *ids, size_t n, uint64_t first, sgt_error *err);
    void *ctx;
    /* expected checksum of the tokens; 0: use the checksum in the header, if it has one */
    uint64_t xxh3;
} sgt_shard_visitor;

/* Read an entire shard, and check that every id is below `vocab` and that the checksum is correct.
 * The expected checksum is visitor->xxh3 or, if that is 0, the checksum in the header. Uses
 * readahead, and drops the pages from the page cache afterwards. `visitor` may be NULL. */
int sgt_shard_verify(const char *path, int raw, uint32_t vocab, const sgt_shard_visitor *visitor,
                     const sgt_stop *stop, sgt_error *err);

/* Return SGT_EFORMAT for an id outside the vocabulary, and set a message such as
 * "out/train_000003.bin: token 17 (byte 1058): id 60000, expected below 50257". */
int sgt_shard_bad_id(const char *path, const sgt_shard_header *h, uint64_t token, uint32_t id,
                     uint32_t vocab, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
