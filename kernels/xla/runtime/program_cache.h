// Compiled programs of one client by their text, so that ranks and pieces with equal programs
// compile them once.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_PROGRAM_CACHE_H_
#define TROUPE_KERNELS_XLA_RUNTIME_PROGRAM_CACHE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

// Thread-safe: of several threads that want the same program at once, one compiles it and the
// others wait for it.
class ProgramCache {
 public:
  // `client` must outlive this object and the programs.
  ProgramCache(Client& client, Options options) : client_(client), options_(std::move(options)) {}

  // Returns the program of `text` for these devices. Errors are those of Client::Compile, and are
  // not kept.
  StatusOr<std::shared_ptr<Program>> Find(const std::string& text, const std::vector<int>& devices);

  Client& client() const { return client_; }

 private:
  struct Entry {
    std::mutex compiling;
    std::shared_ptr<Program> program;  // null: not compiled yet
  };

  Client& client_;
  const Options options_;
  std::mutex mutex_;  // guards what follows; never held while compiling
  std::map<std::pair<std::vector<int>, std::string>, std::shared_ptr<Entry>> entries_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_PROGRAM_CACHE_H_
