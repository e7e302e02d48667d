// TROUPE_ANYWHERE marks small functions that both host and device code call.
#ifndef TROUPE_KERNELS_NUMERICS_ANYWHERE_H_
#define TROUPE_KERNELS_NUMERICS_ANYWHERE_H_

#ifdef __CUDACC__
#define TROUPE_ANYWHERE __host__ __device__
#else
#define TROUPE_ANYWHERE
#endif

#endif  // TROUPE_KERNELS_NUMERICS_ANYWHERE_H_
