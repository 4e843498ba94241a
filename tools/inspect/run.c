/* run.c: shows a training run's folder, or one of its checkpoints. */
#include <dirent.h>
#include <inttypes.h>
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

/* Read the file into malloc'd *text; NULL if there is no such file. */
static int read_text(char **text, size_t *n, const char *path, sgt_error *err)
{
    return sgt_file_gone(path) ? SGT_OK : sgt_file_get(text, n, path, MAX_JSON, err);
}

/* Read FOLDER/NAME, which must hold a JSON object; *out is NULL if there is no such file. */
static int read_object(json_t **out, const char *folder, const char *name, sgt_error *err)
{
    json_error_t why;
    char *text = NULL, path[SGT_PATH];
    size_t n;
    int rc = read_text(&text, &n, sgt_path(path, folder, "%s", name), err);
    if (rc < 0 || !text) return rc;
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
    size_t n = sgt_safetensors_count(s);
    const char *dtype = n ? sgt_safetensors_at(s, 0)->dtype : "";
    uint64_t end = n ? sgt_safetensors_at(s, n - 1)->end : 0;
    fprintf(to, "%s: a GPT-2 checkpoint%s\n", inspect_name(o->path),
            state ? "" : ", without the state of a run (--init takes it, --resume does not)");
    fprintf(to,
            "  %-12s%" PRIu32 " x %" PRIu32 " x %" PRIu32 " (layers, channels, heads), %" PRIu32
            " positions, %s ids, %s GELU\n",
            "model", m->layers, m->channels, m->heads, m->positions, inspect_count(m->vocab, NULL),
            m->gelu == SGT_GELU_ERF ? "erf" : "tanh");
    fprintf(to, "  %-12s%s\n", "parameters", inspect_count(sgt_model_parameters(m), NULL));
    fprintf(to, "  %-12s%zu of type %s, %s\n", "tensors", n, inspect_name(dtype),
            inspect_bytes(end));
    if (state) inspect_show_pairs(to, "state", state);
}

int inspect_checkpoint(const inspect *o, sgt_error *err)
{
    sgt_model m;
    sgt_safetensors *s = NULL;
    json_t *state = NULL;
    sgt_wrapped w;
    char path[SGT_PATH];
    int rc = sgt_model_read_config(&m, o->path, err);
    if (rc < 0) return rc;
    rc = sgt_safetensors_open(&s, sgt_path(path, o->path, "model.safetensors"), err);
    if (rc == SGT_OK) rc = read_object(&state, o->path, "state.json", err);
    if (rc == SGT_OK && o->json)
        rc = sgt_print_json(checkpoint_json(o, &m, s, state), JSON_INDENT(2), err);
    else if (rc == SGT_OK && !o->quiet) {
        show_checkpoint(sgt_wrapped_open(&w), o, &m, s, state);
        sgt_wrapped_close(&w);
    }
    json_decref(state);
    sgt_safetensors_close(s);
    return rc;
}

/* ---- a run: what --json prints is read first, and the text is written from it ---- */

static int is_step(const struct dirent *e)
{
    const char *name = e->d_name;
    return !strncmp(name, "step-", 5) && strlen(name) == 13 && strspn(name + 5, "0123456789") == 8;
}

/* List the checkpoints of the run, in order, without those that have not been written whole. */
static int list_steps(json_t *list, const char *folder, sgt_error *err)
{
    struct dirent **steps;
    int found = scandir(folder, &steps, is_step, alphasort);
    if (found < 0) return sgt_fail_errno(err, "%s", folder);
    for (int i = 0; i < found; i++) {
        char model[64], state[64];
        snprintf(model, sizeof model, "%.13s/model.safetensors", steps[i]->d_name);
        snprintf(state, sizeof state, "%.13s/state.json", steps[i]->d_name);
        if (sgt_folder_has(folder, model) && sgt_folder_has(folder, state))
            json_array_append_new(list, json_string(steps[i]->d_name));
        free(steps[i]);
    }
    free(steps);
    return SGT_OK;
}

/* Set member `to` of the run to member `from` of the log's line, or to null. */
static void copy_member(json_t *run, const char *to, const json_t *line, const char *from)
{
    json_t *v = json_object_get(line, from);
    json_object_set_new(run, to, v ? json_incref(v) : json_null());
}

static void add_line(json_t *run, const json_t *line, uint64_t steps)
{
    json_object_set_new(run, "steps", json_integer((json_int_t)steps));
    copy_member(run, "loss", line, "loss");
    if (steps == 1) copy_member(run, "first_loss", line, "loss");
    if (!json_object_get(line, "val_loss")) return;
    copy_member(run, "val_loss", line, "val_loss");
    copy_member(run, "val_bits_per_byte", line, "val_bits_per_byte");
}

/* Read the lines of the log. A last line without a newline is still being written, and is not
 * counted. *evaluated: steps done at the last evaluation; 0: there was none. */
static int read_log(json_t *run, uint64_t *evaluated, const char *folder, sgt_error *err)
{
    FILE *f = NULL;
    char path[SGT_PATH], line[MAX_LINE];
    uint64_t steps = 0;
    sgt_path(path, folder, "log.jsonl");
    int rc = sgt_file_gone(path) ? SGT_OK : sgt_file_lines(&f, path, err);
    for (size_t n; f && rc == SGT_OK && (n = sgt_file_line(line, MAX_LINE, f)) > 0;) {
        json_error_t why = {.text = "longer than any that a run writes"};
        if (n < MAX_LINE && line[n - 1] != '\n') break;
        json_t *o = n == MAX_LINE ? NULL : json_loadb(line, n, 0, &why);
        steps++;
        if (json_is_object(o)) add_line(run, o, steps);
        else
            rc = sgt_fail(err, SGT_EFORMAT, "%s: line %" PRIu64 ": %s", path, steps,
                          o ? "expected a JSON object" : why.text);
        if (json_object_get(o, "val_loss"))
            *evaluated = (uint64_t)json_integer_value(json_object_get(o, "step")) + 1;
        json_decref(o);
    }
    if (f && rc == SGT_OK && ferror(f)) rc = sgt_fail_errno(err, "%s", path);
    if (f) fclose(f);
    return rc;
}

static int read_run(json_t *run, uint64_t *evaluated, const char *folder, sgt_error *err)
{
    size_t n;
    char *latest = NULL, path[SGT_PATH];
    json_t *options = NULL;
    int rc = list_steps(json_object_get(run, "checkpoints"), folder, err);
    if (!rc) rc = read_text(&latest, &n, sgt_path(path, folder, "latest"), err);
    if (latest) json_object_set_new(run, "latest", sgt_json_text(latest, strcspn(latest, "\n")));
    free(latest);
    if (!rc) rc = read_log(run, evaluated, folder, err);
    if (!rc) rc = read_object(&options, folder, "options.json", err);
    if (options) json_object_set_new(run, "options", options);
    return rc;
}

/* Format a loss. The log has null for a loss that is not a number. */
static const char *loss_text(char text[32], const json_t *run, const char *name)
{
    const json_t *v = json_object_get(run, name);
    if (!json_is_number(v)) return "not a number";
    snprintf(text, 32, "%.4f", json_number_value(v));
    return text;
}

static void show_log(FILE *to, const json_t *run, uint64_t evaluated)
{
    char a[32], b[32];
    uint64_t count = (uint64_t)json_integer_value(json_object_get(run, "steps"));
    fprintf(to, "  %-12s%s", "log", inspect_count(count, "step"));
    if (count)
        fprintf(to, ", loss %s to %s", loss_text(a, run, "first_loss"), loss_text(b, run, "loss"));
    if (evaluated) fprintf(to, ", validation %s", loss_text(a, run, "val_loss"));
    if (!json_is_null(json_object_get(run, "val_bits_per_byte")))
        fprintf(to, " (%s bits per byte)", loss_text(a, run, "val_bits_per_byte"));
    if (evaluated) fprintf(to, " after step %" PRIu64, evaluated);
    fprintf(to, "\n");
}

static void show_run(FILE *to, const inspect *o, const json_t *run, uint64_t evaluated)
{
    const json_t *steps = json_object_get(run, "checkpoints"),
                 *options = json_object_get(run, "options"),
                 *latest = json_object_get(run, "latest");
    fprintf(to, "%s: a training run\n  %-12s", inspect_name(o->path), "checkpoints");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        fprintf(to, "%s%s%s", i ? ", " : "", json_string_value(step),
                json_equal(latest, step) ? " (latest)" : "");
    }
    fprintf(to, "%s\n", json_array_size(steps) ? "" : "none yet");
    show_log(to, run, evaluated);
    if (json_is_object(options)) inspect_show_pairs(to, "options", options);
}

int inspect_run(const inspect *o, sgt_error *err)
{
    uint64_t evaluated = 0;
    sgt_wrapped w;
    json_t *run =
        json_pack("{s:s, s:o, s:i, s:n, s:n, s:n, s:n, s:n, s:[], s:n}", "kind", "run", "path",
                  sgt_json_text(o->path, strlen(o->path)), "steps", 0, "loss", "first_loss",
                  "val_loss", "val_bits_per_byte", "latest", "checkpoints", "options");
    int rc = read_run(run, &evaluated, o->path, err);
    if (rc == SGT_OK && o->json) rc = sgt_print_json(json_incref(run), JSON_INDENT(2), err);
    else if (rc == SGT_OK && !o->quiet) {
        show_run(sgt_wrapped_open(&w), o, run, evaluated);
        sgt_wrapped_close(&w);
    }
    json_decref(run);
    return rc;
}
