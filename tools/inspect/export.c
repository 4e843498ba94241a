/* export.c: converts a set of sgt's own shards to the file format of another trainer, in the folder
 * OUT. The new files are first written to OUT/.work. If OUT contains another data set, it is kept
 * until the new files are complete. */
#include "tokenize/out/export.h"

#include <string.h>
#include <sys/stat.h>

#include "loader/base/clock.h"
#include "tokenize/out/out.h"
#include "tokenize/vocab/vocab.h"
#include "tools/cli/progress.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

typedef struct exporting {
    const inspect *o;
    inspect_set set;
    const char *path; /* path of the output folder, OUT */
    sgt_out out;
    /* 1 if an earlier data set in OUT may already have been removed; otherwise 0 */
    int replacing;
    sgt_manifest manifest; /* manifest of the new data set */
    sgt_progress *bar;
} exporting;

static int is_same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int check_set(const exporting *e, sgt_error *err)
{
    const inspect_set *s = &e->set;
    if (is_same_folder(s->path, e->path))
        return sgt_fail(err, SGT_EUSAGE,
                        "%s: cannot export a set into its own folder (name a new one)", e->path);
    if (!s->manifest.options)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: has no manifest.json: only complete sets of sgt-tokenize can be "
                        "exported",
                        s->path);
    if (s->manifest.foreign)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: is in another trainer's format, but only sgt's own shards can be "
                        "exported",
                        s->path);
    return SGT_OK;
}

static void show_progress(void *ctx, uint64_t tokens)
{
    const exporting *e = ctx;
    const size_t width = e->set.first.width;
    sgt_progress_update(e->bar, width * tokens, width * e->set.tokens, 0, NULL);
}

static int write_files(exporting *e, sgt_error *err)
{
    sgt_export x = {.work = e->out.work,
                    .layout = (sgt_layout)e->o->layout,
                    .stop = e->o->stop,
                    .progress = show_progress,
                    .ctx = e};
    e->bar = sgt_progress_new("B", e->o->quiet);
    int rc = sgt_made_add(&x.set, e->set.path, err);
    if (!rc) rc = sgt_export_write(&x, &e->manifest, err);
    if (!rc) rc = sgt_export_copy(e->set.path, x.work, "sources.jsonl", err);
    if (!rc && sgt_stopped(x.stop)) rc = sgt_fail(err, SGT_ESTOPPED, "interrupted");
    sgt_made_close(x.set);
    sgt_progress_end(e->bar);
    return rc;
}

static int fill_out(exporting *e, const sgt_vocab *v, sgt_error *err)
{
    int rc = write_files(e, err);
    if (rc < 0) return rc;
    e->replacing = 1;
    if ((rc = sgt_out_clear(&e->out, err)) < 0 ||
        (rc = sgt_export_move(e->out.work, e->path, &e->manifest, err)) < 0)
        return rc;
    return sgt_out_publish(&e->out, &e->manifest, v, err);
}

/* Return the Unicode normal form to which the text was converted, from the options in the
 * manifest. */
static sgt_normalize read_normal_form(const sgt_manifest *m)
{
    json_t *options = json_loads(m->options, 0, NULL);
    const char *form = json_string_value(json_object_get(options, "normalize"));
    sgt_normalize n = !form                  ? SGT_NORMALIZE_NONE
                      : !strcmp(form, "nfc") ? SGT_NORMALIZE_NFC
                                             : SGT_NORMALIZE_NFKC;
    json_decref(options);
    return n;
}

static int export_set(exporting *e, sgt_error *err)
{
    sgt_vocab *v = NULL;
    sgt_out_request r = {
        .path = e->path, .force = e->o->force, .notice = &e->o->notice, .stop = e->o->stop};
    int rc = check_set(e, err);
    if (!rc) rc = inspect_set_vocabulary(&v, &e->set, err);
    /* Take the normal form from the manifest, because GPT-2's built-in vocabulary has none. */
    if (!rc) v->normalize = read_normal_form(&e->set.manifest);
    if (!rc && (rc = sgt_out_claim(&e->out, &r, err)) == 0) {
        rc = fill_out(e, v, err);
        /* If the earlier data set has been removed, keep .work, which shows that OUT is incomplete
         * and lets the user run the same command again. */
        sgt_out_release(&e->out, e->replacing || e->out.had_work);
    }
    sgt_vocab_free(v);
    return rc;
}

int inspect_export(const inspect *o, const char *const *paths, sgt_error *err)
{
    exporting e = {.o = o, .path = paths[1]};
    double began = sgt_now();
    int rc = inspect_set_open(&e.set, o, paths[0], err);
    if (rc < 0) return rc;
    rc = export_set(&e, err);
    if (!rc)
        rc = sgt_print_result(
            o->json, o->quiet, e.path, sgt_layout_says[e.set.first.width == 4][o->layout],
            json_pack("{s:o, s:s, s:I, s:I, s:I, s:f}", "out", sgt_json_string(e.path), "layout",
                      sgt_layout_names[o->layout], "tokens", (json_int_t)e.manifest.tokens,
                      "documents", (json_int_t)e.manifest.documents, "files",
                      (json_int_t)e.manifest.count, "seconds", sgt_now() - began),
            err);
    inspect_set_close(&e.set);
    sgt_manifest_free(&e.manifest);
    return rc;
}
