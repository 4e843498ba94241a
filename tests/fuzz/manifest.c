/* manifest.c: a manifest is refused with a message of one line, or its numbers are within bounds
 * and it names only files of its own folder. Written and read again, it is the same. */
#include "tests/fuzz/files.h"
#include "loader/shards/manifest.h"
#include "loader/shards/shard.h"

static int same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static void check_shard(const sgt_manifest_shard *s, int foreign)
{
    must(*s->file && !strchr(s->file, '/') && strcmp(s->file, "..") && strcmp(s->file, "."),
         "a shard is in the folder");
    must(foreign || s->tokens <= SGT_SHARD_MAX_TOKENS, "a shard has tokens as a shard can have");
}

static void check_same(const sgt_manifest *a, const sgt_manifest *b)
{
    must(same_text(a->options, b->options) && same_text(a->invalid, b->invalid),
         "its JSON is the same");
    must(!strcmp(a->vocabulary, b->vocabulary) && a->fingerprint == b->fingerprint &&
             a->vocab == b->vocab && a->eot == b->eot,
         "its vocabulary is the same");
    must(a->tokens == b->tokens && a->documents == b->documents && a->bytes == b->bytes &&
             a->files == b->files && a->invalid_utf8 == b->invalid_utf8 &&
             a->bad_lines == b->bad_lines && a->duplicates == b->duplicates &&
             a->lone_surrogates == b->lone_surrogates,
         "its totals are the same");
    must(a->count == b->count, "there are as many shards");
    must(a->foreign == b->foreign && a->raw == b->raw, "its layout is the same");
    for (size_t i = 0; i < a->count; i++) {
        const sgt_manifest_shard *x = &a->shards[i], *y = &b->shards[i];
        must(!strcmp(x->file, y->file) && !strcmp(x->split, y->split) && x->tokens == y->tokens &&
                 x->documents == y->documents && x->xxh3 == y->xxh3,
             "a shard is the same");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgt_manifest m = {0}, again = {0};
    sgt_error err;
    put_file("manifest.json", data, size);
    int rc = sgt_manifest_read(&m, own_folder, &err);
    if (rc < 0) {
        must_say(rc, &err);
        return 0;
    }
    for (size_t i = 0; i < m.count; i++) check_shard(&m.shards[i], m.foreign);
    must(sgt_manifest_write(&m, own_folder, &err) == 0, "what is read can be written");
    must(sgt_manifest_read(&again, own_folder, &err) == 0, "and read again");
    check_same(&m, &again);
    sgt_manifest_free(&m);
    sgt_manifest_free(&again);
    return 0;
}
