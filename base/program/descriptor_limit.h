// The limit on open file descriptors of this process.
#ifndef TROUPE_BASE_PROGRAM_DESCRIPTOR_LIMIT_H_
#define TROUPE_BASE_PROGRAM_DESCRIPTOR_LIMIT_H_

namespace troupe {

// Raises the soft limit (RLIMIT_NOFILE) to the hard limit, at most 2^20, for this process and its
// children, and returns the resulting soft limit. Call it before the process opens any file.
int RaiseDescriptorLimit();

// Returns the soft limit.
int DescriptorLimit();

}  // namespace troupe

#endif  // TROUPE_BASE_PROGRAM_DESCRIPTOR_LIMIT_H_
