/* export.c: rewrites a set that sgt-tokenize or --merge made as another trainer's files. OUT is
 * handled as in a merge: an earlier set stays until all files are written and verified. */
#include "tokenize/out/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "loader/shards/tokenizer.h"
#include "tokenize/vocab/vocab.h"
#include "tools/cli/talk.h"
#include "tools/inspect/merge.h"

static int open_set(merge *m, const char *path, sgt_error *err)
{
    inspect one = *m->o;
    one.path = path;
    if (!(m->sets = calloc(1, sizeof *m->sets))) return sgt_fail_memory(err, path);
    int rc = merge_check_not_out(m, path, err);
    if (rc < 0 || (rc = inspect_set_open(m->sets, &one, err)) < 0) return rc;
    m->count = 1;
    const inspect_set *s = m->sets;
    if (!s->folder || !s->manifest)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: has no manifest.json: only sets that sgt-tokenize made whole are "
                        "exported",
                        path);
    if (s->manifest->foreign)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: made for another trainer already: only sets of sgt's own shards are "
                        "exported",
                        path);
    m->all_tokens = s->tokens;
    return SGT_OK;
}

static void show_progress(void *ctx, uint64_t tokens)
{
    const merge *m = ctx;
    sgt_progress_update(m->bar, 2 * tokens, 2 * m->all_tokens, 0, NULL);
}

/* Write tokenizer_config.json for the tokenizer.json that has been copied. */
static int describe_tokenizer(const merge *m, sgt_error *err)
{
    if (m->sets->manifest->fingerprint == SGT_GPT2_FINGERPRINT)
        return sgt_tokenizer_config_write(m->work, "<|endoftext|>", 0, err);
    char *text = NULL, *name = NULL, *path = sgt_join(m->work, "tokenizer.json");
    size_t n;
    int rc = path ? sgt_file_get(&text, &n, path, SGT_TOKENIZER_MOST, err)
                  : sgt_fail_memory(err, m->out);
    if (!rc) rc = sgt_tokenizer_name(&name, text, n, m->manifest.eot, err);
    if (!rc) rc = sgt_tokenizer_config_write(m->work, name, 0, err);
    free(name);
    free(text);
    free(path);
    return rc;
}

static int make_files(merge *m, sgt_error *err)
{
    const inspect_set *s = m->sets;
    sgt_export e = {.set = s->path,
                    .from = s->manifest,
                    .work = m->work,
                    .layout = (sgt_layout)m->o->layout,
                    .stop = m->o->stop,
                    .progress = show_progress,
                    .ctx = m};
    int rc = sgt_export_write(&e, &m->manifest, err);
    if (!rc) rc = sgt_export_copy(s->path, m->work, "sources.jsonl", err);
    if (!rc) rc = sgt_export_copy(s->path, m->work, "tokenizer.json", err);
    if (!rc) rc = describe_tokenizer(m, err);
    return rc < 0 ? rc : sgt_manifest_write(&m->manifest, m->work, err);
}

static int show(const merge *m, double seconds, sgt_error *err)
{
    char a[64], b[64], c[64], d[32], t[32], name[1024];
    const sgt_manifest *all = &m->manifest;
    const char *layout = sgt_layout_names[m->o->layout];
    if (m->o->json)
        return inspect_print_json(json_pack("{s:o, s:s, s:I, s:I, s:I, s:f}", "out",
                                            sgt_json_text(m->out, strlen(m->out)), "layout", layout,
                                            "tokens", (json_int_t)all->tokens, "documents",
                                            (json_int_t)all->documents, "files",
                                            (json_int_t)all->count, "seconds", seconds),
                                  0, err);
    if (m->o->quiet) return SGT_OK;
    printf(
        "%s: %s, %s, %s, in %s, %s\n", sgt_printable(name, sizeof name, m->out),
        sgt_format_things(a, sizeof a, all->tokens, "token", "tokens"),
        sgt_format_things(b, sizeof b, all->documents, "document", "documents"),
        sgt_format_things(c, sizeof c, all->count, "file", "files"),
        sgt_format_duration(t, sizeof t, seconds),
        sgt_format_rate(d, sizeof d, seconds > 0 ? 2 * (double)all->tokens / seconds : 0, "B/s"));
    if (all->count) sgt_put_line(stdout, "%s", sgt_layout_says[m->o->layout]);
    return SGT_OK;
}

int inspect_export(const inspect *o, const char *const *paths, sgt_error *err)
{
    merge m = {.o = o, .out = paths[1], .lock = -1};
    double began = sgt_now();
    int rc = open_set(&m, paths[0], err);
    if (!rc && (rc = merge_claim(&m, err)) == 0) {
        m.bar = sgt_progress_new("B", SGT_PROGRESS_BYTES, o->quiet);
        rc = make_files(&m, err);
        sgt_progress_end(m.bar);
        if (!rc) rc = merge_publish(&m, err);
        merge_release(&m, rc < 0);
    }
    if (!rc) rc = show(&m, sgt_now() - began, err);
    if (m.count) inspect_set_close(m.sets);
    free(m.sets);
    sgt_manifest_free(&m.manifest);
    return rc;
}
