/* settings_rows.h: values of `flags` and `needs` in the rows of settings_rows.c, in addition to
 * those of base/option.h. */
#ifndef SGT_SETTINGS_ROWS_H
#define SGT_SETTINGS_ROWS_H

/* values of `flags` */
enum {
    MAY_CHANGE = 1, /* may differ on --resume */
    /* property of the machine: written only if the user gave it, never taken from a checkpoint */
    LOCAL = 2,
    DEVICE = 4,    /* may change when the kind of device changes */
    CUDA = 8,      /* available with CUDA only */
    NOT_KEPT = 16, /* not written to options.json */
    LATER = 32 /* undecided by default; without this flag, the default is `def`, up to a colon */
};
/* values of `needs`: what the option requires to have an effect */
enum { SHARDS = 1, EXAMPLES, DOCUMENTS, ADAMW, BETAS, SGD, MOMENTUM, FP16 };

#endif
