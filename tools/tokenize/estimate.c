/* estimate.c: implements estimate.h (sgt-tokenize --dry-run). */
#include "tools/tokenize/estimate.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/json.h"
#include "tokenize/space.h"
#include "tools/cli/talk.h"

static int can_be_out(const char *path)
{
    struct stat st;
    int mine = 0, others = 0;
    if (!strcmp(path, "-")) return 0;
    if (stat(path, &st) < 0) return 1;
    DIR *d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!d) return 0;
    for (const struct dirent *e; (e = readdir(d));) {
        mine |= !strcmp(e->d_name, "manifest.json") || !strcmp(e->d_name, ".work");
        others |= strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    }
    closedir(d);
    return mine || !others;
}

static json_int_t number(uint64_t v) { return (json_int_t)v; }

static json_t *or_null(uint64_t v)
{
    return v == SGT_NOT_KNOWN ? json_null() : json_integer(number(v));
}

static int print_json(const sgt_dry_run_result *r)
{
    json_t *o =
        json_pack("{s:b, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "dry_run", 1, "files",
                  number(r->files), "bytes", number(r->bytes), "documents", or_null(r->documents),
                  "tokens", number(r->tokens), "skipped", number(r->skipped), "shards",
                  number(r->shards), "disk_bytes", number(r->disk), "disk_meanwhile",
                  number(r->disk_meanwhile), "disk_free", or_null(r->disk_free));
    char *text = sgt_json_dumps(o, 0);
    if (text) puts(text);
    free(text);
    json_decref(o);
    return text ? 0 : -1;
}

static void print_text(FILE *to, const sgt_dry_run_result *r)
{
    char a[40], b[40], c[40];
    fprintf(to, "inputs      %s in %s file%s", sgt_format_bytes(a, sizeof a, r->bytes),
            sgt_format_count(b, sizeof b, r->files), r->files == 1 ? "" : "s");
    if (r->documents != SGT_NOT_KNOWN)
        fprintf(to, ", %s document%s", sgt_format_count(c, sizeof c, r->documents),
                r->documents == 1 ? "" : "s");
    fprintf(to, "\ntokens      about %s: bytes / 4%s\n", sgt_format_count(a, sizeof a, r->tokens),
            r->packed ? ", and packed files are taken for 3 times their bytes" : "");
    fprintf(to, "disk        about %s in %s shard%s", sgt_format_bytes(a, sizeof a, r->disk),
            sgt_format_count(b, sizeof b, r->shards), r->shards == 1 ? "" : "s");
    if (r->disk_meanwhile)
        fprintf(to, ", and %s while it is made", sgt_format_bytes(c, sizeof c, r->disk_meanwhile));
    if (r->disk_free != SGT_NOT_KNOWN)
        fprintf(to, ", %s free there%s", sgt_format_bytes(c, sizeof c, r->disk_free),
                sgt_space_lacks(NULL, r, NULL) < 0 ? ": too little" : "");
    fputc('\n', to);
    if (r->skipped)
        fprintf(to, "skipped     %s: not plain text (see --binary)\n",
                sgt_format_things(b, sizeof b, r->skipped, "file", "files"));
}

/* Print the estimate; its lines are wrapped between words to the terminal's width. */
static void print_wrapped(const sgt_dry_run_result *r)
{
    sgt_wrapped w;
    print_text(sgt_wrapped_open(&w), r);
    sgt_wrapped_close(&w);
}

int tokenize_dry_run(sgt_tokenize_options *o, const char *const *operands, size_t count, int json,
                     int quiet, sgt_error *err)
{
    sgt_dry_run_result r;
    int last_is_out = count > 1 && can_be_out(operands[count - 1]);
    o->inputs = operands;
    o->input_count = last_is_out ? count - 1 : count;
    o->out = last_is_out ? operands[count - 1] : NULL;
    int rc = sgt_dry_run(o, &r, err);
    if (rc < 0) return rc;
    if (json && print_json(&r) < 0) return sgt_fail_memory(err, NULL);
    if (!json && !quiet) print_wrapped(&r);
    fflush(stdout);
    return o->force ? SGT_OK : sgt_space_lacks(o->out, &r, err);
}
