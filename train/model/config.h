/* config.h: reads and writes a model's config.json in the form of Hugging Face's GPT-2. */
#ifndef SGT_CONFIG_H
#define SGT_CONFIG_H

#include "loader/base/error.h"
#include "train/model/model.h"

/* Read DIR/config.json. Returns SGT_EFORMAT, with the name of the field, if the file asks for
 * something unsupported (another activation, cross attention...). */
int sgt_config_read(sgt_model *m, const char *dir, sgt_error *err);

/* Write DIR/config.json and DIR/generation_config.json. eot: the id that begins documents, or -1 if
 * unknown. */
int sgt_config_write(const sgt_model *m, const char *dir, int64_t eot, sgt_error *err);

#endif
