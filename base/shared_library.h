// A library that is loaded at run time and never linked: a vendor's library that a machine may
// lack.
#ifndef TROUPE_BASE_SHARED_LIBRARY_H_
#define TROUPE_BASE_SHARED_LIBRARY_H_

#include <memory>
#include <string>

#include "base/status.h"

namespace troupe {

// Destruction unloads the library unless it was passed to Keep. Thread-safe.
class SharedLibrary {
 public:
  // `name` is a path, or a name that the loader looks up in the program's run path and the system's
  // library directories. The library's symbols stay local to it. NOT_FOUND: "`what` cannot be
  // loaded: " and the reason.
  static StatusOr<std::unique_ptr<SharedLibrary>> Open(const std::string& what,
                                                       const std::string& name);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // UNIMPLEMENTED if the library has no function of that name. REQUIRES: Function is the function's
  // type.
  template <typename Function>
  Status Find(const char* function_name, Function** function) const {
    *function = reinterpret_cast<Function*>(Address(function_name));
    if (*function == nullptr) return Unimplemented("function {} is missing", function_name);
    return OkStatus();
  }

  // Keeps the library loaded for the lifetime of the process.
  static void Keep(std::unique_ptr<SharedLibrary> library);

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* Address(const char* function_name) const;

  void* handle_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_SHARED_LIBRARY_H_
