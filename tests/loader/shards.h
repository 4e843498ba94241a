/* shards.h: a temporary folder, and shards of known content. For the tests in this folder. */
#ifndef SGT_TEST_SHARDS_H
#define SGT_TEST_SHARDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/sample/mix.h"
#include "loader/sample/pack.h"
#include "loader/sgt_loader.h"
#include "loader/shards/manifest.h"
#include "loader/shards/shard.h"
#include "tests/expect.h"
#include "tests/loader/read.h"

SCOPED_POINTER(sgt_loader, sgt_loader_close)
SCOPED_POINTER(sgt_cursor, sgt_cursor_close)
SCOPED_POINTER(sgt_stream, sgt_stream_close)
SCOPED_STRUCT(sgt_sampler, sgt_sampler_free)
SCOPED_STRUCT(sgt_mix, sgt_mix_free)
SCOPED_STRUCT(sgt_pack, sgt_pack_free)

/* Criterion's .init and .fini. A test runs in a temporary folder of its own, which it must leave
 * empty. */
void enter_scratch(void);
void leave_scratch(void);

/* Bytes per id in the shards that are written, 2 or 4; initially 2. VOCAB is the size of the
 * vocabulary that belongs to it: GPT-2's, or Llama 3's. */
extern size_t id_width;
#define VOCAB (id_width == 2 ? 50257u : 128256u)

/* Return token i of shard `shard`. It is below VOCAB, and all windows differ. */
uint32_t token_at(uint32_t shard, uint64_t i);

/* Write shard `shard` with `tokens` tokens of token_at. put_shard writes sgt's header with its
 * checksum before them, put_foreign llm.c's header, and put_raw none. */
void put_shard(const char *path, uint32_t shard, uint64_t tokens);
void put_foreign(const char *path, uint32_t shard, uint64_t tokens);
void put_raw(const char *path, uint32_t shard, uint64_t tokens);
/* Write a file, and make its folder if there is none. */
void put_bytes(const char *path, const void *p, size_t n);
/* Return the path IN/train_I.ENDING, with six digits; valid until the next call. */
const char *shard_path(const char *in, uint32_t i, const char *ending);
/* Write a shard of n given ids, with sgt's header. */
void put_ids(const char *path, const uint32_t *ids, size_t n);
/* Write a sparse shard, with llm.c's header, of as many tokens as a shard may have: 2^31 - 1
 * zeros. */
#define MOST_TOKENS 2147483647ull
void put_sparse(const char *path);

/* Write a manifest of GPT-2's vocabulary that lists these shards. */
void put_manifest(const char *folder, sgt_manifest_shard *shards, size_t count);

/* patch: overwrite n bytes at offset `at`. resize: cut or extend the file to `size` bytes. */
void patch(const char *path, uint64_t at, const void *p, size_t n);
void resize(const char *path, uint64_t size);

/* Collects the lines that an sgt_notice receives. */
typedef struct notices {
    int count;
    char last[1024];
} notices;
sgt_notice collect(notices *n);

#endif
