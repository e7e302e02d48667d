// TROUPE_CPU_CLONES compiles a function for several instruction sets; the loader selects the best
// one that the machine supports.
#ifndef TROUPE_BASE_CPU_CLONES_H_
#define TROUPE_BASE_CPU_CLONES_H_

// TSan's runtime is not initialised yet when the loader resolves the clones
#if defined(__SANITIZE_THREAD__)
#define TROUPE_CPU_CLONES
#else
#define TROUPE_CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

#endif  // TROUPE_BASE_CPU_CLONES_H_
