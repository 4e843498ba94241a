/* words.h: the names of readers and samplings, each list ended by NULL, for options whose value is
 * one of them. */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

/* in the order of sgt_reader: "preload", "mmap", "uring" */
extern const char *const sgt_reader_words[];
extern const char *const sgt_sampling_words[]; /* in the order of sgt_sampling */

#endif
