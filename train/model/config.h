/* config.h: a model's config.json, Hugging Face's GPT-2 form, read and written. */
#ifndef SGT_CONFIG_H
#define SGT_CONFIG_H

#include "base/error.h"
#include "model.h"

/* DIR/config.json into *m. SGT_EFORMAT names the field that is no GPT-2's we train (another
 * activation, cross attention...). */
int sgt_config_read(sgt_model *m, const char *dir, sgt_error *err);

/* DIR/config.json and DIR/generation_config.json. eot: the id that begins documents, or -1 where it
 * is not known. */
int sgt_config_write(const sgt_model *m, const char *dir, int64_t eot, sgt_error *err);

#endif
