#include "kernels/xla/runtime/program_cache.h"

namespace troupe::kernels::xla {

StatusOr<std::shared_ptr<Program>> ProgramCache::Find(const std::string& text,
                                                      const std::vector<int>& devices) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& found = entries_[{devices, text}];
    if (found == nullptr) found = std::make_shared<Entry>();
    entry = found;
  }
  const std::lock_guard compiling(entry->compiling);
  if (entry->program != nullptr) return entry->program;
  TROUPE_ASSIGN_OR_RETURN(entry->program, client_.Compile(text, options_, devices));
  return entry->program;
}

}  // namespace troupe::kernels::xla
