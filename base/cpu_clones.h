// Functions that are compiled for several sets of instructions, of which the loader takes the best that the machine has.
#ifndef TROUPE_BASE_CPU_CLONES_H_
#define TROUPE_BASE_CPU_CLONES_H_

#if defined(__SANITIZE_THREAD__)  // whose own functions are not there yet when the loader asks which it is to take
#define TROUPE_CPU_CLONES
#else
#define TROUPE_CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

#endif  // TROUPE_BASE_CPU_CLONES_H_
