// Compiled programs of one client by their text, so that ranks and pieces with equal programs
// compile them once; with a folder of executables, once on a host.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_PROGRAM_CACHE_H_
#define TROUPE_KERNELS_XLA_RUNTIME_PROGRAM_CACHE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/backend/compilation.h"
#include "kernels/xla/pjrt/client.h"
#include "kernels/xla/runtime/executable_cache.h"

namespace troupe::kernels::xla {

// Thread-safe: of several threads that want the same program at once, one compiles it and the
// others wait for it.
class ProgramCache {
 public:
  // `client` must outlive this object and the programs. `executables` may be null; programs are
  // then kept in this process only.
  ProgramCache(Client& client, Options options,
               std::unique_ptr<ExecutableCache> executables = nullptr);

  // Returns the program of `text` for these devices: one that this object has, else one from the
  // folder, else a compiled one, which the folder then gets. `name` is what a report calls it.
  // Errors are those of Client::Compile, and are not kept: an entry of the folder that the plugin
  // refuses is compiled and replaced.
  StatusOr<std::shared_ptr<Program>> Find(const std::string& text, const std::vector<int>& devices,
                                          const std::string& name);

  // The work so far.
  Compilation compilation() const;

  Client& client() const { return client_; }

 private:
  struct Entry {
    std::mutex compiling;
    std::shared_ptr<Program> program;  // null: not compiled yet
  };

  StatusOr<std::shared_ptr<Program>> Make(const std::string& text, const std::vector<int>& devices);
  // Null if the folder has no entry of `key` that can be used.
  std::shared_ptr<Program> Load(const std::string& key, const std::vector<int>& devices);
  void Store(const std::string& key, const Program& program);
  std::string KeyOf(const std::string& text, const std::vector<int>& devices) const;

  Client& client_;
  const Options options_;
  std::unique_ptr<ExecutableCache> executables_;
  std::string plugin_digest_;  // if there are executables
  const std::string environment_;
  mutable std::mutex mutex_;  // guards what follows; never held while compiling
  std::map<std::pair<std::vector<int>, std::string>, std::shared_ptr<Entry>> entries_;
  Compilation compilation_;  // without faults of the folder
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_PROGRAM_CACHE_H_
