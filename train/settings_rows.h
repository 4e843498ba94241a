/* settings_rows.h: what settings.c reads in a row, beside what base/option.h says. */
#ifndef SGT_SETTINGS_ROWS_H
#define SGT_SETTINGS_ROWS_H

enum {                 /* in `flags` */
       MAY_CHANGE = 1, /* on --resume */
       LOCAL = 2,  /* of the machine: kept only if given, and never taken over from a checkpoint */
       DEVICE = 4, /* may change with the device */
       CUDA = 8,   /* only CUDA has it */
       NOT_KEPT = 16, /* in no options.json */
       LATER = 32     /* undecided by default; without it the default is `def`, up to a colon */
};
/* in `needs`, to mean anything */
enum { SHARDS = 1, EXAMPLES, DOCUMENTS, ADAMW, SGD, MOMENTUM, FP16 };

#endif
