/* run.c: prints a summary of a training run or of a checkpoint. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "train/model/model.h"
#include "train/run/run.h"
#include "train/run/safetensors.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

/* maximum size in bytes of state.json and options.json, which usually have a few kilobytes */
#define MAX_JSON ((size_t)16 << 20)
/* maximum number of JSON values in state.json or options.json */
#define MAX_VALUES ((size_t)1 << 16)

/* Set *out to the JSON object in the file FOLDER/NAME. If the file does not exist, return SGT_OK
 * and leave *out unchanged. */
static int read_object(json_t **out, const char *folder, const char *name, sgt_error *err)
{
    char path[SGT_PATH];
    return sgt_file_gone(sgt_path(path, folder, "%s", name))
               ? SGT_OK
               : sgt_json_file(out, path, MAX_JSON, MAX_VALUES, err);
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
        json_array_append_new(list, json_pack("{s:o, s:s, s:o}", "name", sgt_json_string(t->name),
                                              "dtype", t->dtype, "shape", shape));
    }
    return list;
}

int inspect_checkpoint(const inspect *o, sgt_error *err)
{
    sgt_model m;
    sgt_safetensors *s = NULL;
    json_t *state = NULL;
    char path[SGT_PATH];
    int rc = sgt_model_read_config(&m, o->path, err);
    if (rc == SGT_OK)
        rc = sgt_safetensors_open(&s, sgt_path(path, o->path, "model.safetensors"), err);
    if (rc == SGT_OK) rc = read_object(&state, o->path, "state.json", err);
    if (rc == SGT_OK) {
        size_t n = sgt_safetensors_count(s);
        json_t *top =
            json_pack("{s:s, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:s}, s:I, s:I, s:b, s:O?, s:o}",
                      "kind", "checkpoint", "path", sgt_json_string(o->path), "model", "layers",
                      (json_int_t)m.layers, "channels", (json_int_t)m.channels, "heads",
                      (json_int_t)m.heads, "positions", (json_int_t)m.positions, "vocabulary",
                      (json_int_t)m.vocab, "gelu", m.gelu == SGT_GELU_ERF ? "erf" : "tanh",
                      "parameters", (json_int_t)sgt_model_parameters(&m), "bytes",
                      (json_int_t)(n ? sgt_safetensors_at(s, n - 1)->end : 0), "resumable",
                      state && sgt_folder_has(o->path, "optimizer.safetensors"), "state", state,
                      "tensors", tensors_json(s));
        rc = sgt_print_result(
            o->json, o->quiet, o->path,
            state ? "a GPT-2 checkpoint"
                  : "a GPT-2 checkpoint without a run's state (for --init, but not for "
                    "--resume)",
            top, err);
    }
    json_decref(state);
    sgt_safetensors_close(s);
    return rc;
}

/* ---- a run ---- */

/* Append the names of the complete checkpoints of a run to `list`, in ascending order of their
 * steps. */
static int list_checkpoints(json_t *list, const char *folder, sgt_error *err)
{
    uint64_t *steps;
    size_t count;
    int rc = sgt_run_steps(&steps, &count, folder, err);
    while (count) {
        char name[32], model[64], state[64];
        snprintf(name, sizeof name, "step-%08" PRIu64, steps[--count]);
        snprintf(model, sizeof model, "%s/model.safetensors", name);
        snprintf(state, sizeof state, "%s/state.json", name);
        if (sgt_folder_has(folder, model) && sgt_folder_has(folder, state))
            json_array_append_new(list, json_string(name));
    }
    free(steps);
    return rc;
}

/* summary of the log of a run */
typedef struct run_log {
    /* steps: number of lines in the log, one per step. bad: number of the first line that is not a
     * JSON object, counted from 1; 0 if there is no such line. */
    uint64_t steps, bad;
    /* first, last: first and last line of the log. evaluated: last line with a validation loss.
     * Each is NULL if there is no such line. */
    json_t *first, *last, *evaluated;
} run_log;

static void keep_line(json_t **to, json_t *line)
{
    json_decref(*to);
    *to = json_incref(line);
}

static void add_line(void *ctx, json_t *line)
{
    run_log *l = ctx;
    l->steps++;
    if (!json_is_object(line) && !l->bad) l->bad = l->steps;
    if (!l->first) keep_line(&l->first, line);
    if (json_object_get(line, "val_loss")) keep_line(&l->evaluated, line);
    keep_line(&l->last, line);
}

int inspect_run(const inspect *o, sgt_error *err)
{
    size_t n;
    run_log l = {0};
    char *latest = NULL, path[SGT_PATH], file[SGT_PATH];
    sgt_checkpoint_state best = {0};
    json_t *steps = json_array(), *options = NULL;
    int rc = list_checkpoints(steps, o->path, err);
    sgt_path(path, o->path, "latest");
    if (!rc && !sgt_file_gone(path)) rc = sgt_file_get(&latest, &n, path, MAX_JSON, err);
    if (!rc) rc = sgt_json_lines(o->path, "log.jsonl", add_line, &l, NULL, err);
    if (!rc && l.bad)
        rc = sgt_fail(err, SGT_EFORMAT, "%s/log.jsonl: line %" PRIu64 ": expected a JSON object",
                      o->path, l.bad);
    if (!rc) rc = read_object(&options, o->path, "options.json", err);
    if (!rc && sgt_run_named(path, sgt_path(file, o->path, "best"), NULL) == 1)
        (void)sgt_checkpoint_read(&best, path, NULL);
    if (!rc) {
        const json_t *loss = json_object_get(l.last, "loss"),
                     *val = json_object_get(l.evaluated, "val_loss"),
                     *step = json_object_get(l.evaluated, "step");
        json_t *run = json_pack(
            "{s:s, s:o, s:I, s:O?, s:O?, s:O?, s:O?, s:o*, s:o?, s:s*, s:o*, s:O, s:O?}", "kind",
            "run", "path", sgt_json_string(o->path), "steps", (json_int_t)l.steps, "loss", loss,
            "first_loss", json_object_get(l.first, "loss"), "val_loss", val, "val_bits_per_byte",
            json_object_get(l.evaluated, "val_bits_per_byte"), "evaluated",
            step ? json_integer(json_integer_value(step) + 1) : NULL, "latest",
            latest ? sgt_json_text(latest, strcspn(latest, "\n")) : NULL, "best",
            best.step ? strrchr(path, '/') + 1 : NULL, "best_val_loss",
            best.step ? json_real(best.val_loss) : NULL, "checkpoints", steps, "options", options);
        rc = sgt_print_result(o->json, o->quiet, o->path,
                              json_is_null(loss) || json_is_null(val)
                                  ? "a training run whose last loss is NaN or infinite"
                                  : "a training run",
                              run, err);
    }
    free(latest);
    sgt_checkpoint_state_free(&best);
    json_decref(l.first);
    json_decref(l.last);
    json_decref(l.evaluated);
    json_decref(steps);
    json_decref(options);
    return rc;
}
