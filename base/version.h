// The version of the project, from the CMakeLists.txt at its root.
#ifndef TROUPE_BASE_VERSION_H_
#define TROUPE_BASE_VERSION_H_

namespace troupe {

extern const char* const kVersion;  // "1.2.3"

}  // namespace troupe

#endif  // TROUPE_BASE_VERSION_H_
