/* words.c: the names of readers and samplings. */
#include "loader/words.h"

#include "loader/read/reader.h"
#include "loader/sgt_loader.h"

#define WORD(name) #name,
const char *const sgt_reader_words[] = {SGT_READ_ALL(WORD) NULL};
const char *const sgt_sampling_words[] = {"shuffle",   "random", "block", "sequential",
                                          "documents", "packed", NULL};

const char *sgt_reader_name(sgt_reader r)
{
    return (unsigned)r < SGT_READERS ? sgt_reader_words[r] : "unknown";
}

const char *sgt_sampling_name(sgt_sampling s)
{
    return (unsigned)s < SGT_SAMPLINGS ? sgt_sampling_words[s] : "unknown";
}
