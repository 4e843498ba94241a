/* estimate.c: estimates the memory of a step without allocating it. Settings, device and shape are
 * decided as for a run, but only the headers of the data are read. */
#include "train/memory/memory.h"

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
