/* llmc.c: a model file of llm.c is refused with a message of one line. Otherwise it holds all
 * numbers of every tensor of the model that it describes. */
#include "tests/fuzz/files.h"
#include "train/run/checkpoint.h"

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
    volatile float last = count ? from[count - 1] : 0; /* the last number must be readable */
    (void)last;
    f->numbers += count;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgt_model m;
    sgt_error err;
    filled f = {.b = {.put = put}, .model = &m};
    const char *path = put_file("model.bin", data, size);
    int rc = sgt_checkpoint_shape(&m, path, &err);
    if (rc < 0) {
        must_say(rc, &err);
        return 0;
    }
    must(sgt_model_check(&m, "it", &err) == 0, "a model that is read can be");
    must(sgt_checkpoint_load_model(path, &f.b, &m, &err) == 0,
         "what has the size of a model can be loaded");
    must(f.numbers == sgt_model_parameters(&m), "every number is given out once");
    return 0;
}
