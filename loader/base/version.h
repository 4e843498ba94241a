/* version.h: the version of all of sgt. Before 1.0, a change of a public header that programs cannot be
 * compiled with unchanged gets a new minor number, and anything else a new patch number. */
#ifndef SGT_BASE_VERSION_H
#define SGT_BASE_VERSION_H

#define SGT_VERSION "0.2.0"

#endif
