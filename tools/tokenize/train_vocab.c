/* train_vocab.c: trains a vocabulary, writes its files, and prints the result. */
#include "tools/tokenize/train_vocab.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/json.h"
#include "tools/cli/progress.h"
#include "tools/cli/talk.h"

static void show_pieces(void *ctx, uint64_t done, uint64_t total, uint64_t pieces)
{
    (void)pieces;
    sgt_progress_update(ctx, done, total, 0, "counting");
}

static double mb_per_s(const sgt_train_result *r)
{
    return r->seconds > 0 ? 1e-6 * (double)r->bytes / r->seconds : 0;
}

static int print_json(const sgt_train_result *r)
{
    json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "tokens",
                          (json_int_t)r->tokens, "pieces", (json_int_t)r->pieces, "distinct_pieces",
                          (json_int_t)r->distinct, "documents", (json_int_t)r->documents, "bytes",
                          (json_int_t)r->bytes, "files", (json_int_t)r->files, "invalid_utf8",
                          (json_int_t)r->invalid_utf8, "skipped", (json_int_t)r->skipped, "seconds",
                          r->seconds, "mb_per_s", mb_per_s(r));
    char *text = j ? sgt_json_dumps(j, JSON_REAL_PRECISION(6)) : NULL;
    if (text) puts(text);
    free(text);
    json_decref(j);
    return text ? 0 : -1;
}

static void print_summary(const char *out, const sgt_train_result *r)
{
    char tokens[80], pieces[80], distinct[40], bytes[40], files[80], time[40], rate[40],
        shown[1024];
    printf("%s: %s from %s, %s of them distinct\n", sgt_printable(shown, sizeof shown, out),
           sgt_format_things(tokens, sizeof tokens, r->tokens, "token", "tokens"),
           sgt_format_things(pieces, sizeof pieces, r->pieces, "piece", "pieces"),
           sgt_format_count(distinct, sizeof distinct, r->distinct));
    printf("%s of text in %s, %s, %s\n", sgt_format_bytes(bytes, sizeof bytes, r->bytes),
           sgt_format_things(files, sizeof files, r->files, "file", "files"),
           sgt_format_duration(time, sizeof time, r->seconds),
           sgt_format_rate(rate, sizeof rate, 1e6 * mb_per_s(r), "B/s"));
    if (r->skipped)
        printf("%s skipped: not plain text (see --binary)\n",
               sgt_format_things(files, sizeof files, r->skipped, "file", "files"));
}

int run_train_vocab(const train_vocab *t, sgt_tokenize_options *o)
{
    sgt_error err;
    sgt_train_result result = {0};
    sgt_vocab *v = NULL;
    sgt_progress *bar = sgt_progress_new("B", SGT_PROGRESS_BYTES, t->quiet);
    o->notice = sgt_progress_notice(bar, t->program->name);
    o->progress = show_pieces;
    o->progress_ctx = bar;
    int rc = sgt_vocab_train(&v, o, t->size, &result, &err);
    if (!rc) rc = sgt_vocab_save(v, o->out, &err);
    sgt_vocab_free(v);
    sgt_progress_end(bar);
    if (rc < 0) return sgt_report_failure(t->program, &err);
    if (result.tokens < t->size && !t->quiet)
        fprintf(stderr, "%s: no pair of tokens is left to merge: %u tokens, not %u\n",
                t->program->name, result.tokens, t->size);
    if (t->json && print_json(&result) < 0) return SGT_EXIT_FAILED;
    if (!t->json && !t->quiet) print_summary(o->out, &result);
    if (fflush(stdout) == 0 && !ferror(stdout)) return SGT_EXIT_OK;
    fprintf(stderr, "%s: cannot write to standard output\n", t->program->name);
    return SGT_EXIT_FAILED;
}
