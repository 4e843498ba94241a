/* sums.c: computes and verifies the checksums of a checkpoint. */
#include "train/run/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/shards/json_dumps.h"

#define PIECE ((size_t)1 << 20) /* bytes read at a time */

int sgt_sums_add(json_t *files, const char *name, uint64_t bytes, uint64_t xxh3, sgt_error *err)
{
    json_t *sum = json_pack("{s:I, s:o}", "bytes", (json_int_t)bytes, "xxh3", sgt_json_hex(xxh3));
    if (json_object_set_new(files, name, sum) < 0) return sgt_fail_memory(err, name);
    return SGT_OK;
}

/* Hash the first `bytes` bytes of the open file, in pieces. */
static int hash_fd(uint64_t *out, int fd, uint64_t bytes, const char *path, sgt_error *err)
{
    int rc = SGT_OK;
    char *piece = malloc(PIECE);
    XXH3_state_t *hash = XXH3_createState();
    if (!piece || !hash) rc = sgt_fail_memory(err, path);
    else XXH3_64bits_reset(hash);
    for (uint64_t at = 0; at < bytes && rc == SGT_OK; at += PIECE) {
        size_t n = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        rc = sgt_pread_all(fd, piece, n, at, path, err);
        if (rc == SGT_OK) XXH3_64bits_update(hash, piece, n);
    }
    if (rc == SGT_OK) *out = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    free(piece);
    return rc;
}

/* Hash a file. Its size must be *want, unless `want` is NULL. */
static int hash_file(uint64_t *out, uint64_t *bytes, const uint64_t *want, const char *path,
                     sgt_error *err)
{
    struct stat st;
    /* O_NONBLOCK: opening a pipe must not block */
    int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return sgt_fail(err, SGT_EFORMAT, "%s: it is missing", path);
    if (fd < 0) return sgt_fail_errno(err, "%s", path);
    if (fstat(fd, &st) < 0) rc = sgt_fail_errno(err, "%s", path);
    else if (!S_ISREG(st.st_mode)) rc = sgt_fail(err, SGT_EFORMAT, "%s: not a regular file", path);
    else if (want && (uint64_t)st.st_size != *want)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: %lld bytes, state.json says %" PRIu64, path,
                      (long long)st.st_size, *want);
    else rc = hash_fd(out, fd, *bytes = (uint64_t)st.st_size, path, err);
    close(fd);
    return rc;
}

int sgt_sums_add_file(json_t *files, const char *dir, const char *name, sgt_error *err)
{
    uint64_t xxh3 = 0, bytes = 0;
    char *path = sgt_join(dir, name);
    int rc = path ? hash_file(&xxh3, &bytes, NULL, path, err) : sgt_fail_memory(err, dir);
    free(path);
    return rc < 0 ? rc : sgt_sums_add(files, name, bytes, xxh3, err);
}

static int check_one(const json_t *sum, const char *dir, const char *name, sgt_error *err)
{
    const char *text = json_string_value(json_object_get(sum, "xxh3"));
    const json_t *size = json_object_get(sum, "bytes");
    uint64_t want = (uint64_t)json_integer_value(size), got = 0, bytes = 0;
    if (!text || !json_is_integer(size) || strchr(name, '/'))
        return sgt_fail(err, SGT_EFORMAT, "%s/state.json: files: %s: no bytes and xxh3", dir, name);
    char *path = sgt_join(dir, name);
    int rc = path ? hash_file(&got, &bytes, &want, path, err) : sgt_fail_memory(err, dir);
    if (rc == SGT_OK && got != strtoull(text, NULL, 16))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: its bytes are not those that were written: XXH3-64 %016" PRIx64
                      ", state.json says %.16s",
                      path, got, text);
    free(path);
    return rc;
}

int sgt_sums_check(const json_t *files, const char *dir, sgt_error *err)
{
    const char *name;
    json_t *sum;
    int rc = SGT_OK;
    if (!files) return SGT_OK;
    if (!json_is_object(files))
        return sgt_fail(err, SGT_EFORMAT, "%s/state.json: files is no object", dir);
    json_object_foreach((json_t *)files, name,
                        sum) if ((rc = check_one(sum, dir, name, err)) < 0) break;
    return rc;
}

static int own_sum(uint64_t *out, const json_t *state, const char *what, sgt_error *err)
{
    char *text = sgt_json_dumps(state, JSON_COMPACT);
    if (!text) return sgt_fail_memory(err, what);
    *out = XXH3_64bits(text, strlen(text));
    free(text);
    return SGT_OK;
}

int sgt_sums_seal(json_t *state, sgt_error *err)
{
    uint64_t sum = 0;
    int rc = own_sum(&sum, state, "state.json", err);
    if (rc == SGT_OK && json_object_set_new(state, "xxh3", sgt_json_hex(sum)) < 0)
        rc = sgt_fail_memory(err, "state.json");
    return rc;
}

int sgt_sums_check_seal(json_t *state, const char *path, sgt_error *err)
{
    uint64_t sum = 0;
    const char *text = json_string_value(json_object_get(state, "xxh3"));
    if (!text) return SGT_OK;
    uint64_t want = strtoull(text, NULL, 16);
    json_object_del(state, "xxh3");
    int rc = own_sum(&sum, state, path, err);
    if (rc == SGT_OK && sum != want)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: it is not what was written: XXH3-64 %016" PRIx64 ", it says %016" PRIx64,
                      path, sum, want);
    return rc;
}
