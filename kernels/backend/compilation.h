// The work of a device's compiler on the programs of a backend.
#ifndef TROUPE_KERNELS_BACKEND_COMPILATION_H_
#define TROUPE_KERNELS_BACKEND_COMPILATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::kernels {

struct Compilation {
  std::string plugin;                // the compiler: its file and its API
  std::vector<std::string> options;  // NAME=VALUE, ascending
  int64_t compiled = 0;              // programs that were compiled
  int64_t cache_hits = 0;            // programs that were loaded from a cache on disk
  double seconds = 0;                // spent compiling and loading
  // The names of all these programs, in the order in which they were made.
  std::vector<std::string> programs;
  // Reasons for which the cache was passed over or an entry was replaced, and how often.
  std::map<std::string, int64_t> cache_faults;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_COMPILATION_H_
