/* loader_names.c: the words of sgt-bench loader, for its options and results. */
#include "tools/bench/loader.h"

const char *loader_who_name(int who)
{
    static const char *const others[] = {"memcpy",          "read",           "fio",
                                         "numpy window",    "numpy gather",   "numpy loop",
                                         "torch 0 workers", "torch 2 workers"};
    return loader_is_reader(who) ? sgt_reader_name((sgt_reader)who) : others[who - LOADER_MEMCPY];
}

const char *loader_output_name(int i)
{
    static const char *const names[LOADER_OUTPUTS] = {"u16", "i32", "i64", "-"};
    return names[i];
}

const char *loader_sampling_name(int s) { return sgt_sampling_name((sgt_sampling)s); }

const char *loader_pass_name(loader_pass pass)
{
    static const char *const names[] = {"", "mapped", "cached", "cold"};
    return names[pass];
}
