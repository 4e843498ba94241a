/* train.c: fuzz targets for the files that sgt-train reads. */
#include "tests/fuzz/fuzz.h"

#include "train/config.h"
#include "train/model/model.h"
#include "train/run/checkpoint.h"
#include "train/run/safetensors.h"

/* ---- config ---- */

/* A config.json is refused with a message of one line, or describes a valid model. If it is written
 * and read again, it describes the same model. */
void fuzz_config(const uint8_t *data, size_t size)
{
    sgt_model m, again;
    sgt_error err;
    put_file("config.json", data, size);
    int rc = sgt_model_read_config(&m, own_folder, &err);
    if (refused(rc, &err)) return;
    must(sgt_model_check(&m, "it", &err) == 0, "a model that is read can be");
    must(sgt_model_parameters(&m) <= sgt_model_floats(&m),
         "its parameters are counted without overflow");
    must(sgt_model_write_config(&m, own_folder, 0, &err) == 0, "it can be written");
    must(sgt_model_read_config(&again, own_folder, &err) == 0, "and read again");
    must(m.layers == again.layers && m.channels == again.channels && m.heads == again.heads &&
             m.vocab == again.vocab && m.positions == again.positions && m.gelu == again.gelu &&
             m.untied == again.untied && !memcmp(&m.eps, &again.eps, sizeof m.eps),
         "it is the same model");
}

/* ---- llmc ---- */

typedef struct filled {
    sgt_backend b; /* first member: a pointer to a `filled` is passed as a pointer to a backend */
    const sgt_model *model;
    size_t numbers;
} filled;

static int put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err)
{
    filled *f = (filled *)b;
    sgt_tensor t;
    (void)what, (void)err;
    must(tensor < sgt_model_tensors(f->model), "there is such a tensor");
    sgt_model_tensor(f->model, tensor, &t);
    must(first <= t.count && count <= t.count - first, "the numbers are the tensor's");
    /* read the last number, so that the sanitizer finds a buffer that is too short */
    volatile float last = count ? from[count - 1] : 0;
    (void)last;
    f->numbers += count;
    return 0;
}

/* A model file of llm.c is refused with a message of one line. Otherwise it holds all
 * numbers of every tensor of the model that it describes. */
void fuzz_llmc(const uint8_t *data, size_t size)
{
    sgt_model m;
    sgt_error err;
    filled f = {.b = {.put = put}, .model = &m};
    const char *path = put_file("model.bin", data, size);
    int rc = sgt_checkpoint_shape(&m, path, &err);
    if (refused(rc, &err)) return;
    must(sgt_model_check(&m, "it", &err) == 0, "a model that is read can be");
    must(sgt_checkpoint_load_model(path, &f.b, &m, &err) == 0,
         "what has the size of a model can be loaded");
    must(f.numbers == sgt_model_parameters(&m), "every number is given out once");
}

/* ---- safetensors ---- */

enum { PIECE = 64 };

/* Read the numbers of a tensor in several calls. If they are float32, they must be the file's
 * bytes. */
static void read_tensor(const sgt_safetensors *s, const sgt_safetensor *t, const uint8_t *numbers)
{
    float got[PIECE];
    sgt_error err;
    for (uint64_t at = 0; at < t->count; at += PIECE) {
        size_t n = t->count - at < PIECE ? (size_t)(t->count - at) : PIECE;
        int rc = sgt_safetensors_read(s, t, at, n, got, &err);
        if (rc == SGT_EUNSUPPORTED) return;
        must(rc == 0, "a tensor's numbers can be read");
        must(strcmp(t->dtype, "F32") || !memcmp(got, numbers + t->begin + 4 * at, 4 * n),
             "they are the file's");
    }
    must(sgt_safetensors_read(s, t, t->count, 1, got, &err) < 0,
         "past its end there is nothing to read");
}

/* A safetensors file is refused with a message of one line, or its tensors cover its data without
 * gaps and overlaps. Each tensor can be read from any number on. */
void fuzz_safetensors(const uint8_t *data, size_t size)
{
    sgt_safetensors *s;
    sgt_error err;
    uint64_t at = 0;
    int rc = sgt_safetensors_open(&s, put_file("model.safetensors", data, size), &err);
    if (refused(rc, &err)) return;
    uint64_t header = 0;
    for (int i = 8; i-- > 0;) header = header << 8 | data[i];
    for (size_t i = 0; i < sgt_safetensors_count(s); i++) {
        const sgt_safetensor *t = sgt_safetensors_at(s, i);
        must(t->begin == at && t->end >= at, "each tensor begins where the one before ends");
        at = t->end;
        must(sgt_safetensors_find(s, t->name) == t, "a name is one tensor's");
        read_tensor(s, t, data + 8 + header);
    }
    must(8 + header + at == size, "the last one ends where the file does");
    sgt_safetensors_close(s);
}

/* ---- state ---- */

/* Check a text that holds the options of a run, as --config files, options.json and state.json
 * do. */
static void check_options(const char *text)
{
    sgt_config s, again;
    sgt_error err;
    sgt_config_default(&s);
    sgt_config_default(&again);
    int rc = sgt_config_merge(&s, text, "it", SGT_MERGE_GIVEN, &err);
    if (rc < 0) must_say(rc, &err);
    else if ((rc = sgt_config_check(&s, &err)) < 0) must_say(rc, &err);
    else {
        scoped_memory char *one = sgt_config_json(&s), *two = NULL;
        must(one && sgt_config_merge(&again, one, "it", SGT_MERGE_GIVEN, &err) == 0,
             "what is written can be read");
        must((two = sgt_config_json(&again)) && !strcmp(one, two), "it is the same");
        must(sgt_config_same_run(&again, one, 0, &err) == 0, "a run goes on with its own options");
    }
    sgt_config_free(&s);
    sgt_config_free(&again);
}

/* A checkpoint's state.json is refused with a message of one line, or has counts that a run can
 * have. Its options are refused with a message of one line, or are the same after they are written
 * and read. */
void fuzz_state(const uint8_t *data, size_t size)
{
    sgt_checkpoint_state state;
    sgt_error err;
    put_file("state.json", data, size);
    int rc = sgt_checkpoint_read(&state, own_folder, &err);
    if (rc < 0) must_say(rc, &err);
    else {
        must(state.step >= 1 && state.step <= 99999999,
             "its step is one that a folder can be named by");
        must(!state.scaling || state.scaler.scale > 0, "its scale is above 0");
        check_options(state.options);
    }
    sgt_checkpoint_state_free(&state);
    scoped_memory char *text = strndup((const char *)data, size);
    must(text != NULL, "there is memory");
    check_options(text);
}
