/* settings_rows.h: flags and needs of the rows in settings.c, in addition to base/option.h. */
#ifndef SGT_SETTINGS_ROWS_H
#define SGT_SETTINGS_ROWS_H

/* values of `flags` */
enum {
    MAY_CHANGE = 1, /* may differ on --resume */
    /* a property of the machine: kept only if given, never taken from a checkpoint */
    LOCAL = 2,
    DEVICE = 4,    /* may change with the device */
    CUDA = 8,      /* available with CUDA only */
    NOT_KEPT = 16, /* not written to options.json */
    LATER = 32     /* undecided by default; otherwise the default is `def`, up to a colon */
};
/* values of `needs`: what the option requires to have an effect */
enum { SHARDS = 1, EXAMPLES, DOCUMENTS, ADAMW, SGD, MOMENTUM, FP16 };

#endif
