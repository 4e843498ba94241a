/* code_amx.h: single instructions of AMX, for the tests of their emulation (trap/trap_amx.h). */
#ifndef SGT_CHECK_CODE_AMX_H
#define SGT_CHECK_CODE_AMX_H

/* A misuse: run() ends the process by this signal, on a CPU with AMX and in the emulation. */
typedef struct amx_misuse {
    const char *name;
    int signal;
    void (*run)(void);
} amx_misuse;

extern const amx_misuse amx_misuses[]; /* ended by a zeroed one */

/* Load, store and configure with each form of address that compilers emit. Return the name of the
 * first that moves other bytes than it should, or NULL. */
const char *amx_wrong_address(void);

#endif
