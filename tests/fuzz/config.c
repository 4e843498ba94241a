/* config.c: a config.json is refused with a message of one line, or describes a valid model.
 * Written and read again, it describes the same model. */
#include "tests/fuzz/files.h"
#include "train/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgt_model m, again;
    sgt_error err;
    put_file("config.json", data, size);
    int rc = sgt_model_read_config(&m, own_folder, &err);
    if (rc < 0) {
        must_say(rc, &err);
        return 0;
    }
    must(sgt_model_check(&m, "it", &err) == 0, "a model that is read can be");
    must(sgt_model_parameters(&m) <= sgt_model_floats(&m),
         "its parameters are counted without overflow");
    must(sgt_model_write_config(&m, own_folder, 0, &err) == 0, "it can be written");
    must(sgt_model_read_config(&again, own_folder, &err) == 0, "and read again");
    must(m.layers == again.layers && m.channels == again.channels && m.heads == again.heads &&
             m.vocab == again.vocab && m.positions == again.positions && m.gelu == again.gelu &&
             m.untied == again.untied && !memcmp(&m.eps, &again.eps, sizeof m.eps),
         "it is the same model");
    return 0;
}
