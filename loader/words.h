/* words.h: the names of readers and samplings, for options whose value is such a name. NULL ends
 * each list. */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

/* in the order of sgt_reader: "preload", "mmap", "uring" */
extern const char *const sgt_reader_words[];
extern const char *const sgt_sampling_words[]; /* in the order of sgt_sampling */

#endif
