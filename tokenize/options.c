/* options.c: check a caller's options before any work. */
#include "tokenize/options.h"

#include <inttypes.h>

#include "tokenize/input/json_line.h"
#include "tokenize/input/kept.h"
#include "loader/shards/shard.h"

int sgt_tokenize_options_check(const sgt_tokenize_options *o, sgt_error *err)
{
    if (!o)
        return sgt_fail(err, SGT_EUSAGE,
                        "sgt_tokenize_options: NULL (inputs and out have no default)");
    if (!(o->val_fraction >= 0 && o->val_fraction <= 1))
        return sgt_fail(err, SGT_EUSAGE, "split: %g is not within 0 and 1", o->val_fraction);
    if (o->shard_tokens > SGT_SHARD_MAX_TOKENS)
        return sgt_fail(err, SGT_EUSAGE,
                        "shard-tokens: %" PRIu64 " do not fit a shard (at most %u)",
                        o->shard_tokens, SGT_SHARD_MAX_TOKENS);
    if ((unsigned)o->layout > SGT_LAYOUT_NPY)
        return sgt_fail(err, SGT_EUSAGE, "sgt_tokenize_options: layout %d: not known",
                        (int)o->layout);
    if (o->layout && o->shard_tokens)
        return sgt_fail(err, SGT_EUSAGE,
                        "shard-tokens: not with shards of another trainer, which keep a split in "
                        "one file");
    if (o->threads < 0 || o->threads > SGT_MAX_THREADS)
        return sgt_fail(err, SGT_EUSAGE, "threads: %d is not within 0 and %d", o->threads,
                        SGT_MAX_THREADS);
    if ((unsigned)o->format > SGT_FORMAT_JSONL || (unsigned)o->normalize > SGT_NORMALIZE_NFKC ||
        (unsigned)o->invalid_utf8 > SGT_INVALID_FAIL)
        return sgt_fail(
            err, SGT_EUSAGE,
            "sgt_tokenize_options: format %d, normalize %d, invalid_utf8 %d: not all known",
            (int)o->format, (int)o->normalize, (int)o->invalid_utf8);
    if ((unsigned)o->binary > SGT_BINARY_KEEP)
        return sgt_fail(err, SGT_EUSAGE, "sgt_tokenize_options: binary %d: not known",
                        (int)o->binary);
    if (o->ranks && o->ranks->rank >= o->ranks->size)
        return sgt_fail(err, SGT_EUSAGE,
                        "ranks: number %" PRIu32 " of %" PRIu32 " (they count from 0)",
                        o->ranks->rank, o->ranks->size);
    sgt_json_path path;
    sgt_kept_names kept;
    int rc = sgt_json_path_set(&path, o->field ? o->field : "text", err);
    if (rc < 0) return rc;
    rc = sgt_kept_names_set(&kept, o->keep_fields, err);
    sgt_kept_names_free(&kept);
    return rc;
}

int sgt_tokenize_options_check_out(const sgt_tokenize_options *o, sgt_error *err)
{
    int rc = sgt_tokenize_options_check(o, err);
    if (rc < 0) return rc;
    if (!o->inputs || !o->input_count || !o->out || !*o->out)
        return sgt_fail(err, SGT_EUSAGE, "expected at least one INPUT, and OUT");
    return SGT_OK;
}
