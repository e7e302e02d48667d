// A library that is loaded while the program runs, and never linked: a vendor's, which a machine may lack.
#ifndef TROUPE_BASE_SHARED_LIBRARY_H_
#define TROUPE_BASE_SHARED_LIBRARY_H_

#include <memory>
#include <string>

#include "base/status.h"

namespace troupe {

// Unloaded when it is destroyed, unless it is kept. Thread-safe.
class SharedLibrary {
 public:
  // `name`: a path, or a name for the loader to look for where the program's run path says and where the system's libraries
  // lie. Its symbols stay its own. NOT_FOUND: "`what` cannot be loaded: " and why.
  static StatusOr<std::unique_ptr<SharedLibrary>> Open(const std::string& what, const std::string& name);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // UNIMPLEMENTED where it has none of that name. REQUIRES: Function is the function's type.
  template <typename Function>
  Status Find(const char* function_name, Function** function) const {
    *function = reinterpret_cast<Function*>(Address(function_name));
    if (*function == nullptr) return Unimplemented("it has no function {}", function_name);
    return OkStatus();
  }

  // It stays for as long as the process does.
  static void Keep(std::unique_ptr<SharedLibrary> library);

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* Address(const char* function_name) const;

  void* handle_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_SHARED_LIBRARY_H_
