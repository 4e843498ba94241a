/* backend_words.c: option words for the enumerations of backend.h, in their order. */
#include "train/backend.h"

const char *const sgt_precision_words[] = {"fp32", "tf32", "bf16", "fp16", NULL};
const char *const sgt_recompute_words[] = {"none", "gelu", "block", NULL};
const char *const sgt_attention_words[] = {"auto", "own", "cudnn", "naive", NULL};
