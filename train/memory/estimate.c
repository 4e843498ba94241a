/* estimate.c: estimates the memory of a step without allocating it. Settings, device and shape are
 * decided as for a run, but only the headers of the data are read. */
#include "train/memory/memory.h"

#include <string.h>

int sgt_train_estimate_memory(sgt_settings *s, const sgt_train_options *o, sgt_train_estimate *e,
                              sgt_error *err)
{
    sgt_trainer t = {.s = s, .o = o, .dry = 1};
    *e = (sgt_train_estimate){0};
    int rc = sgt_trainer_settle(&t, err);
    if (rc == SGT_OK) rc = sgt_trainer_read_shape(&t, err);
    if (rc == SGT_OK) rc = sgt_memory_estimate(&t, e, err);
    sgt_trainer_close(&t);
    return rc;
}

uint64_t sgt_train_estimate_activations(const sgt_train_estimate *e)
{
    static const char *const names[] = {"activations", "activation gradients", "head"};
    uint64_t sum = 0;
    for (size_t i = 0; i < e->count; i++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            if (strcmp(e->kinds[i].name, names[n]) == 0) sum += e->kinds[i].bytes;
    return sum;
}
