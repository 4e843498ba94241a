/* run.c: shows a training run's folder, or one of its checkpoints. */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "train/model/model.h"
#include "train/run/safetensors.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

/* Most bytes of state.json and of options.json; they have a few kilobytes. */
#define MAX_JSON ((size_t)16 << 20)
#define MAX_VALUES ((size_t)1 << 16) /* most JSON values in state.json or options.json */
/* most bytes of a line of log.jsonl; lines have a few hundred */
#define MAX_LINE 8192

/* Read FOLDER/NAME into malloc'd *text; NULL if there is no such file. */
static int read_text(char **text, size_t *n, const char *folder, const char *name, sgt_error *err)
{
    char *path = sgt_join(folder, name);
    if (!path) return sgt_fail_memory(err, folder);
    int rc = sgt_file_gone(path) ? SGT_OK : sgt_file_get(text, n, path, MAX_JSON, err);
    free(path);
    return rc;
}

/* Read FOLDER/NAME, which must hold a JSON object; *out is NULL if there is no such file. */
static int read_object(json_t **out, const char *folder, const char *name, sgt_error *err)
{
    json_error_t why;
    char *text = NULL, path[PATH_MAX];
    size_t n;
    int rc = read_text(&text, &n, folder, name, err);
    if (rc < 0 || !text) return rc;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if ((rc = sgt_json_fits(text, n, MAX_VALUES, path, err)) == SGT_OK) {
        json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
        if (json_is_object(o)) *out = o;
        else {
            rc = sgt_fail(err, SGT_EFORMAT, "%s: line %d: %s", path, o ? 1 : why.line,
                          o ? "expected a JSON object" : why.text);
            json_decref(o);
        }
    }
    free(text);
    return rc;
}

/* ---- a checkpoint ---- */

static json_t *tensors_json(const sgt_safetensors *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sgt_safetensors_count(s); i++) {
        const sgt_safetensor *t = sgt_safetensors_at(s, i);
        json_t *shape = json_array();
        for (uint32_t d = 0; d < t->dims; d++)
            json_array_append_new(shape, json_integer((json_int_t)t->dim[d]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o}", "name",
                                              sgt_json_text(t->name, strlen(t->name)), "dtype",
                                              t->dtype, "shape", shape));
    }
    return list;
}

static json_t *checkpoint_json(const inspect *o, const sgt_model *m, const sgt_safetensors *s,
                               json_t *state)
{
    json_t *model =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:s}", "layers", (json_int_t)m->layers, "channels",
                  (json_int_t)m->channels, "heads", (json_int_t)m->heads, "positions",
                  (json_int_t)m->positions, "vocabulary", (json_int_t)m->vocab, "gelu",
                  m->gelu == SGT_GELU_ERF ? "erf" : "tanh");
    return json_pack("{s:s, s:o, s:o, s:I, s:b, s:O?, s:o}", "kind", "checkpoint", "path",
                     sgt_json_text(o->path, strlen(o->path)), "model", model, "parameters",
                     (json_int_t)sgt_model_parameters(m), "resumable",
                     state && sgt_folder_has(o->path, "optimizer.safetensors"), "state", state,
                     "tensors", tensors_json(s));
}

static void show_checkpoint(FILE *to, const inspect *o, const sgt_model *m,
                            const sgt_safetensors *s, const json_t *state)
{
    char name[1024], parameters[32], vocab[32], bytes[32];
    size_t n = sgt_safetensors_count(s);
    const char *dtype = n ? sgt_safetensors_at(s, 0)->dtype : "";
    uint64_t end = n ? sgt_safetensors_at(s, n - 1)->end : 0;
    fprintf(to, "%s: a GPT-2 checkpoint%s\n", sgt_printable(name, sizeof name, o->path),
            state ? "" : ", without the state of a run (--init takes it, --resume does not)");
    fprintf(to,
            "  %-12s%" PRIu32 " x %" PRIu32 " x %" PRIu32 " (layers, channels, heads), %" PRIu32
            " positions, %s ids, %s GELU\n",
            "model", m->layers, m->channels, m->heads, m->positions,
            sgt_format_count(vocab, sizeof vocab, m->vocab),
            m->gelu == SGT_GELU_ERF ? "erf" : "tanh");
    fprintf(to, "  %-12s%s\n", "parameters",
            sgt_format_count(parameters, sizeof parameters, sgt_model_parameters(m)));
    fprintf(to, "  %-12s%zu of type %s, %s\n", "tensors", n,
            sgt_printable(name, sizeof name, dtype), sgt_format_bytes(bytes, sizeof bytes, end));
    if (state) inspect_show_pairs(to, "state", state);
}

int inspect_checkpoint(const inspect *o, sgt_error *err)
{
    sgt_model m;
    sgt_safetensors *s = NULL;
    json_t *state = NULL;
    sgt_wrapped w;
    int rc = sgt_model_read_config(&m, o->path, err);
    if (rc < 0) return rc;
    char *path = sgt_join(o->path, "model.safetensors");
    if (!path) return sgt_fail_memory(err, o->path);
    if ((rc = sgt_safetensors_open(&s, path, err)) == SGT_OK)
        rc = read_object(&state, o->path, "state.json", err);
    if (rc == SGT_OK && o->json)
        rc = sgt_print_json(checkpoint_json(o, &m, s, state), JSON_INDENT(2), err);
    else if (rc == SGT_OK && !o->quiet) {
        show_checkpoint(sgt_wrapped_open(&w), o, &m, s, state);
        sgt_wrapped_close(&w);
    }
    json_decref(state);
    sgt_safetensors_close(s);
    free(path);
    return rc;
}

/* ---- a run ---- */

typedef struct run {
    struct dirent **steps; /* names of the complete checkpoints, in order */
    int count;
    char *latest;    /* contents of RUN/latest; NULL: there is no such file */
    uint64_t logged; /* lines of log.jsonl */
    /* lines of the log: the first, the last, and the last with a val_loss */
    json_t *first, *last, *evaluated;
    json_t *options;
} run;

static int is_step(const struct dirent *e)
{
    const char *name = e->d_name;
    return !strncmp(name, "step-", 5) && strlen(name) == 13 && strspn(name + 5, "0123456789") == 8;
}

/* List the checkpoints of the run, and leave out those that have not been written whole. */
static int list_steps(run *r, const char *folder, sgt_error *err)
{
    int found = scandir(folder, &r->steps, is_step, alphasort);
    if (found < 0) return sgt_fail_errno(err, "%s", folder);
    for (int i = 0; i < found; i++) {
        char model[64], state[64];
        struct dirent *e = r->steps[i];
        r->steps[i] = NULL;
        snprintf(model, sizeof model, "%.13s/model.safetensors", e->d_name);
        snprintf(state, sizeof state, "%.13s/state.json", e->d_name);
        if (sgt_folder_has(folder, model) && sgt_folder_has(folder, state))
            r->steps[r->count++] = e;
        else free(e);
    }
    return SGT_OK;
}

/* Read the lines of the log. A last line without a newline is still being written, and is not
 * counted. */
static int read_lines(run *r, FILE *f, const char *path, sgt_error *err)
{
    char line[MAX_LINE];
    int rc = SGT_OK;
    for (size_t n; (n = sgt_file_line(line, MAX_LINE, f)) > 0;) {
        json_error_t why = {.text = "longer than any that a run writes"};
        if (n < MAX_LINE && line[n - 1] != '\n') break;
        json_t *o = n == MAX_LINE ? NULL : json_loadb(line, n, 0, &why);
        if (!json_is_object(o)) {
            rc = sgt_fail(err, SGT_EFORMAT, "%s: line %" PRIu64 ": %s", path, r->logged + 1,
                          o ? "expected a JSON object" : why.text);
            json_decref(o);
            break;
        }
        r->logged++;
        json_decref(r->last);
        r->last = o;
        if (!r->first) r->first = json_incref(o);
        if (json_object_get(o, "val_loss")) {
            json_decref(r->evaluated);
            r->evaluated = json_incref(o);
        }
    }
    if (rc == SGT_OK && ferror(f)) rc = sgt_fail_errno(err, "%s", path);
    return rc;
}

static int read_log(run *r, const char *folder, sgt_error *err)
{
    FILE *f = NULL;
    char *path = sgt_join(folder, "log.jsonl");
    if (!path) return sgt_fail_memory(err, folder);
    int rc = sgt_file_gone(path) ? SGT_OK : sgt_file_lines(&f, path, err);
    if (f) {
        rc = read_lines(r, f, path, err);
        fclose(f);
    }
    free(path);
    return rc;
}

static int read_run(run *r, const char *folder, sgt_error *err)
{
    size_t n;
    int rc = list_steps(r, folder, err);
    if (!rc) rc = read_text(&r->latest, &n, folder, "latest", err);
    if (r->latest) r->latest[strcspn(r->latest, "\n")] = 0;
    if (!rc) rc = read_log(r, folder, err);
    return rc < 0 ? rc : read_object(&r->options, folder, "options.json", err);
}

static json_t *run_json(const inspect *o, const run *r)
{
    json_t *steps = json_array();
    for (int i = 0; i < r->count; i++)
        json_array_append_new(steps, json_string(r->steps[i]->d_name));
    return json_pack("{s:s, s:o, s:I, s:O?, s:O?, s:O?, s:O?, s:o, s:o, s:O?}", "kind", "run",
                     "path", sgt_json_text(o->path, strlen(o->path)), "steps",
                     (json_int_t)r->logged, "loss", json_object_get(r->last, "loss"), "first_loss",
                     json_object_get(r->first, "loss"), "val_loss",
                     json_object_get(r->evaluated, "val_loss"), "val_bits_per_byte",
                     json_object_get(r->evaluated, "val_bits_per_byte"), "latest",
                     r->latest ? sgt_json_text(r->latest, strlen(r->latest)) : json_null(),
                     "checkpoints", steps, "options", r->options);
}

/* Format a loss. The log has null for a loss that is not a number. */
static const char *loss_text(char text[32], const json_t *line, const char *name)
{
    const json_t *v = json_object_get(line, name);
    if (!json_is_number(v)) return "not a number";
    snprintf(text, 32, "%.4f", json_number_value(v));
    return text;
}

static void show_log(FILE *to, const run *r)
{
    char steps[32], a[32], b[32], bits[64] = "";
    fprintf(to, "  %-12s%s step%s", "log", sgt_format_count(steps, sizeof steps, r->logged),
            r->logged == 1 ? "" : "s");
    if (r->logged)
        fprintf(to, ", loss %s to %s", loss_text(a, r->first, "loss"),
                loss_text(b, r->last, "loss"));
    if (json_object_get(r->evaluated, "val_bits_per_byte"))
        snprintf(bits, sizeof bits, " (%s bits per byte)",
                 loss_text(a, r->evaluated, "val_bits_per_byte"));
    if (r->evaluated)
        fprintf(to, ", validation %s%s after step %" JSON_INTEGER_FORMAT,
                loss_text(b, r->evaluated, "val_loss"), bits,
                json_integer_value(json_object_get(r->evaluated, "step")) + 1);
    fprintf(to, "\n");
}

static void show_run(FILE *to, const inspect *o, const run *r)
{
    char name[1024];
    fprintf(to, "%s: a training run\n  %-12s", sgt_printable(name, sizeof name, o->path),
            "checkpoints");
    for (int i = 0; i < r->count; i++) {
        const char *step = r->steps[i]->d_name;
        fprintf(to, "%s%s%s", i ? ", " : "", step,
                r->latest && !strcmp(r->latest, step) ? " (latest)" : "");
    }
    fprintf(to, "%s\n", r->count ? "" : "none yet");
    show_log(to, r);
    if (r->options) inspect_show_pairs(to, "options", r->options);
}

int inspect_run(const inspect *o, sgt_error *err)
{
    run r = {0};
    sgt_wrapped w;
    int rc = read_run(&r, o->path, err);
    if (rc == SGT_OK && o->json) rc = sgt_print_json(run_json(o, &r), JSON_INDENT(2), err);
    else if (rc == SGT_OK && !o->quiet) {
        show_run(sgt_wrapped_open(&w), o, &r);
        sgt_wrapped_close(&w);
    }
    for (int i = 0; i < r.count; i++) free(r.steps[i]);
    free(r.steps);
    free(r.latest);
    json_decref(r.first);
    json_decref(r.last);
    json_decref(r.evaluated);
    json_decref(r.options);
    return rc;
}
