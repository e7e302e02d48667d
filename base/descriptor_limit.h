// How many file descriptors this process may have open.
#ifndef TROUPE_BASE_DESCRIPTOR_LIMIT_H_
#define TROUPE_BASE_DESCRIPTOR_LIMIT_H_

namespace troupe {

// Raises the soft limit (RLIMIT_NOFILE) to the hard one, at most 2^20, for this process and those
// that it starts, and returns what it is then. Call it before the process opens anything.
int RaiseDescriptorLimit();

// The soft limit.
int DescriptorLimit();

}  // namespace troupe

#endif  // TROUPE_BASE_DESCRIPTOR_LIMIT_H_
