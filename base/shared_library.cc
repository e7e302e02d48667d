#include "base/shared_library.h"

#include <dlfcn.h>

#include <utility>

namespace troupe {

StatusOr<std::unique_ptr<SharedLibrary>> SharedLibrary::Open(const std::string& what,
                                                             const std::string& name) {
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return NotFound("{} cannot be loaded: {}", what, why == nullptr ? name : why);
  }
  return std::unique_ptr<SharedLibrary>(new SharedLibrary(handle));
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void SharedLibrary::Keep(std::unique_ptr<SharedLibrary> library) { library->handle_ = nullptr; }

void* SharedLibrary::Address(const char* function_name) const {
  return dlsym(handle_, function_name);
}

}  // namespace troupe
