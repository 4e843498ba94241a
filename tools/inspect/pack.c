/* pack.c: shows what the rows of --sampling packed hold: how many documents, and how many tokens of
 * these are cropped. */
#include <inttypes.h>
#include <stdio.h>

#include "loader/sgt_loader.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

static int print_json(const inspect *o, const sgt_loader_packing *is, sgt_error *err)
{
    json_t *doc = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:i, s:i}", "sampling",
                            "packed", "seq", (json_int_t)o->seq_len, "rows", (json_int_t)is->rows,
                            "documents", (json_int_t)is->documents, "tokens",
                            (json_int_t)is->tokens, "cropped_tokens", (json_int_t)is->cropped,
                            "cropped_fraction", (double)is->cropped / (double)is->tokens,
                            "documents_per_row", (double)is->documents / (double)is->rows,
                            "fewest_documents", (int)is->fewest, "most_documents", (int)is->most);
    return inspect_print_json(doc, 0, err);
}

static void print_text(const inspect *o, const sgt_loader_packing *is)
{
    char a[64], b[64], name[256];
    printf("%s: rows of %" PRIu64 " tokens and their targets, packed\n",
           sgt_printable(name, sizeof name, o->path), o->seq_len);
    printf("  %-12s%s an epoch\n", "rows", sgt_format_count(a, sizeof a, is->rows));
    printf("  %-12s%s, %.3g a row (%" PRIu32 " to %" PRIu32 ")\n", "documents",
           sgt_format_count(a, sizeof a, is->documents), (double)is->documents / (double)is->rows,
           is->fewest, is->most);
    printf("  %-12s%s of %s, %.3g %%\n", "cropped", sgt_format_count(a, sizeof a, is->cropped),
           sgt_format_things(b, sizeof b, is->tokens, "token", "tokens"),
           100 * (double)is->cropped / (double)is->tokens);
}

int inspect_packing(const inspect *o, sgt_error *err)
{
    sgt_loader *l;
    sgt_loader_packing is;
    sgt_loader_options options = {.reader = SGT_READER_MMAP,
                                  .sampling = SGT_SAMPLING_PACKED,
                                  .seq = (uint32_t)o->seq_len,
                                  .split = o->split,
                                  .raw = o->raw,
                                  .notice = o->notice};
    int rc = sgt_loader_open_data(&l, o->path, &options, err);
    if (rc < 0) return rc;
    rc = sgt_loader_get_packing(l, &is, err);
    sgt_loader_close(l);
    if (rc < 0 || !o->json) {
        if (rc == SGT_OK && !o->quiet) print_text(o, &is);
        return rc;
    }
    return print_json(o, &is, err);
}
