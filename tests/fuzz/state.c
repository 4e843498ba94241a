/* state.c: a checkpoint's state.json is refused with a message of one line, or has counts that a
 * run can have. Its options are refused with a message of one line, or are the same after writing
 * and reading them. */
#include "tests/fuzz/files.h"
#include "train/run/checkpoint.h"
#include "train/config.h"

/* Check a text that holds the options of a run, as --config files, options.json and state.json
 * do. */
static void check_options(const char *text)
{
    sgt_config s, again;
    sgt_error err;
    sgt_config_default(&s);
    sgt_config_default(&again);
    int rc = sgt_config_merge(&s, text, "it", 1, &err);
    if (rc < 0) must_say(rc, &err);
    else if ((rc = sgt_config_check(&s, &err)) < 0) must_say(rc, &err);
    else {
        char *one = sgt_config_json(&s), *two = NULL;
        must(one && sgt_config_merge(&again, one, "it", 1, &err) == 0,
             "what is written can be read");
        must((two = sgt_config_json(&again)) && !strcmp(one, two), "it is the same");
        must(sgt_config_same_run(&again, one, 0, &err) == 0, "a run goes on with its own options");
        free(one);
        free(two);
    }
    sgt_config_free(&s);
    sgt_config_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
    char *text = strndup((const char *)data, size);
    must(text != NULL, "there is memory");
    check_options(text);
    free(text);
    return 0;
}
