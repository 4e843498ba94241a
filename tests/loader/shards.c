#include "tests/loader/shards.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/philox.h"
#include "tests/scratch.h"

static char scratch[SCRATCH_SIZE];

void enter_scratch(void)
{
    /* The files must be on a disk. /tmp is often in memory (tmpfs): its files are always in the
     * page cache, and older kernels refuse direct reads of them. */
    cr_assert(scratch_folder(scratch, "/var/tmp", "loader") && chdir(scratch) == 0, "%s", scratch);
}

void leave_scratch(void)
{
    cr_assert_eq(chdir("/"), 0);
    must(sgt_remove_tree(scratch, why));
}

size_t id_width = 2;

uint32_t token_at(uint32_t shard, uint64_t i)
{
    return (uint32_t)(sgt_philox_u64(shard, i, 0) % VOCAB);
}

const char *shard_path(const char *in, uint32_t i, const char *ending)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/train_%06u.%s", in, i, ending);
    return path;
}

void put_bytes(const char *path, const void *p, size_t n)
{
    char folder[SGT_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    must(sgt_make_folders(dirname(folder), why));
    FILE *f = fopen(path, "wb"); /* sgt_file_put would wait for the disk */
    cr_assert(f && fwrite(p, 1, n, f) == n && fclose(f) == 0, "%s", path);
}

void put_ids(const char *path, const uint32_t *ids, size_t n)
{
    scoped_memory uint8_t *bytes = malloc(SGT_SHARD_HEADER + id_width * n);
    sgt_shard_pack(bytes, &(sgt_shard_header){.tokens = n, .vocab = VOCAB, .eot = VOCAB - 1});
    for (size_t i = 0; i < n; i++)
        memcpy(bytes + SGT_SHARD_HEADER + id_width * i, &ids[i], id_width); /* little-endian */
    put_bytes(path, bytes, SGT_SHARD_HEADER + id_width * n);
}

static void put(const char *path, uint32_t shard, uint64_t tokens, int revision)
{
    size_t header = revision < 0 ? 0 : SGT_SHARD_HEADER;
    scoped_memory uint8_t *bytes = calloc(1, header + id_width * tokens + 1);
    cr_assert(bytes);
    for (uint64_t i = 0; i < tokens; i++) {
        uint32_t id = token_at(shard, i);
        memcpy(bytes + header + id_width * i, &id, id_width); /* little-endian, like this machine */
    }
    sgt_shard_header h = {
        .tokens = tokens, .vocab = VOCAB, .eot = VOCAB - 1, .fingerprint = 0x123456789abcdef0};
    h.xxh3 = XXH3_64bits(bytes + header, id_width * tokens);
    if (revision >= 0) sgt_shard_pack(bytes, &h);
    if (revision == 0) memset(bytes + 12, 0, SGT_SHARD_HEADER - 12);
    put_bytes(path, bytes, header + id_width * tokens);
}

void put_shard(const char *path, uint32_t shard, uint64_t tokens) { put(path, shard, tokens, 1); }

void put_foreign(const char *path, uint32_t shard, uint64_t tokens) { put(path, shard, tokens, 0); }

void put_raw(const char *path, uint32_t shard, uint64_t tokens) { put(path, shard, tokens, -1); }

void put_manifest(const char *folder, sgt_manifest_shard *shards, size_t count)
{
    sgt_manifest m = {
        .vocabulary = "gpt2", .vocab = 50257, .eot = 50256, .shards = shards, .count = count};
    must(sgt_manifest_write(&m, folder, why));
}

void patch(const char *path, uint64_t at, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY);
    cr_assert(fd >= 0 && pwrite(fd, p, n, (off_t)at) == (ssize_t)n);
    close(fd);
}

void resize(const char *path, uint64_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    cr_assert(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    close(fd);
}

void put_sparse(const char *path)
{
    put_foreign(path, 0, 0);
    patch(path, 8, "\xff\xff\xff\x7f", 4);
    resize(path, SGT_SHARD_HEADER + 2 * MOST_TOKENS);
}

static void keep(void *ctx, const char *line)
{
    notices *n = ctx;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", line);
}

sgt_notice collect(notices *n)
{
    *n = (notices){0};
    return (sgt_notice){keep, n};
}
