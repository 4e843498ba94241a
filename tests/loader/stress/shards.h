/* shards.h: writes the shards of the stress programs. Each program defines token_at, their
 * content. */
#ifndef SGT_STRESS_SHARDS_H
#define SGT_STRESS_SHARDS_H

#include "loader/sgt_loader.h"
#include "loader/shards/shard.h"
#include "tests/loader/read.h"
#include "tests/scoped.h"
#include "tests/stress.h"

SCOPED_POINTER(sgt_loader, sgt_loader_close)
SCOPED_POINTER(sgt_cursor, sgt_cursor_close)
SCOPED_POINTER(sgt_stream, sgt_stream_close)

static uint16_t token_at(uint32_t shard, uint64_t i);

/* Write shard `shard` with its `count` tokens to a new file. */
static void make_shard(const char *path, uint32_t shard, uint64_t count)
{
    sgt_error err;
    uint8_t *bytes = malloc(SGT_SHARD_HEADER + 2 * count);
    if (!bytes) fail(path, "out of memory");
    sgt_shard_pack(bytes, &(sgt_shard_header){.tokens = count, .vocab = 50257, .eot = 50256});
    for (uint64_t i = 0; i < count; i++) {
        bytes[SGT_SHARD_HEADER + 2 * i] = (uint8_t)token_at(shard, i);
        bytes[SGT_SHARD_HEADER + 2 * i + 1] = (uint8_t)(token_at(shard, i) >> 8);
    }
    if (sgt_file_put(path, bytes, SGT_SHARD_HEADER + 2 * count, &err) < 0) fail(path, err.text);
    free(bytes);
}

#endif
