/* wheels.h: finds NVIDIA's libraries in Python packages (cuDNN, cuBLASLt, NCCL and CUPTI come with
 * PyTorch). They are in site-packages/nvidia/NAME/lib, which the dynamic linker does not search. */
#ifndef SGT_WHEELS_H
#define SGT_WHEELS_H

/* Return the existing folders of this kind, separated by colons; "" if there are none, NULL if
 * memory runs out. The caller must free it. Their order is: the active virtual environment and
 * Conda environment, the environment of the python3 in PATH, the user's packages, the system's. No
 * Python is started. */
char *sgt_wheel_folders(void);

/* Pass the folders of sgt_wheel_folders to sgt_library_search. A program calls this before anything
 * else; the list is kept until the program ends. */
void sgt_search_wheels(void);

#endif
