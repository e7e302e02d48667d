#include "kernels/xla/runtime/program_cache.h"

#include <chrono>
#include <filesystem>
#include <optional>

#include "kernels/xla/pjrt/compile_options.h"
#include "kernels/xla/pjrt/plugin_file.h"
#include "kernels/xla/runtime/executable_key.h"
#include "kernels/xla/runtime/plugin_digest.h"

namespace troupe::kernels::xla {
namespace {

std::string PluginText(const PluginFacts& plugin) {
  return fmt::format("{}: {}, PJRT {}.{}", std::filesystem::path(plugin.path).filename().string(),
                     plugin.platform, plugin.api_major, plugin.api_minor);
}

}  // namespace

ProgramCache::ProgramCache(Client& client, Options options,
                           std::unique_ptr<ExecutableCache> executables)
    : client_(client),
      options_(std::move(options)),
      executables_(std::move(executables)),
      environment_(CompilerEnvironment()) {
  compilation_.plugin = PluginText(client_.plugin());
  compilation_.options = OptionTexts(WithExactNumbers(client_.plugin().platform, options_));
  if (executables_ == nullptr) return;
  StatusOr<std::string> digest =
      PluginDigest(executables_->files(), client_.plugin().path, executables_->folder());
  if (digest.ok() && FileWasReplaced(client_.plugin())) {
    executables_->NoteFault("the plugin's file was replaced after it was loaded",
                            client_.plugin().path);
    return;
  }
  if (digest.ok()) {
    plugin_digest_ = *std::move(digest);
    return;
  }
  // Without it no entry can be proven to be of this plugin.
  executables_->NoteFault("the plugin's file cannot be read", Message(digest.status()));
}

StatusOr<std::shared_ptr<Program>> ProgramCache::Find(const std::string& text,
                                                      const std::vector<int>& devices,
                                                      const std::string& name) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& found = entries_[{devices, text}];
    if (found == nullptr) found = std::make_shared<Entry>();
    entry = found;
  }
  const std::lock_guard compiling(entry->compiling);
  if (entry->program != nullptr) return entry->program;
  const auto begin = std::chrono::steady_clock::now();
  TROUPE_ASSIGN_OR_RETURN(entry->program, Make(text, devices));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const std::lock_guard lock(mutex_);
  ++(entry->program->loaded() ? compilation_.cache_hits : compilation_.compiled);
  compilation_.seconds += taken.count();
  compilation_.programs.push_back(name);
  return entry->program;
}

StatusOr<std::shared_ptr<Program>> ProgramCache::Make(const std::string& text,
                                                      const std::vector<int>& devices) {
  if (plugin_digest_.empty()) return client_.Compile(text, options_, devices);
  const std::string key = KeyOf(text, devices);
  if (std::shared_ptr<Program> loaded = Load(key, devices); loaded != nullptr) return loaded;
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Program> program,
                          client_.Compile(text, options_, devices));
  Store(key, *program);
  return program;
}

std::shared_ptr<Program> ProgramCache::Load(const std::string& key,
                                            const std::vector<int>& devices) {
  const std::optional<std::string> bytes = executables_->Find(key);
  if (!bytes) return nullptr;
  StatusOr<std::unique_ptr<Program>> program = client_.Load(*bytes, devices);
  if (program.ok()) return *std::move(program);
  executables_->NoteFault("an entry is refused by the plugin", Message(program.status()));
  return nullptr;
}

void ProgramCache::Store(const std::string& key, const Program& program) {
  const StatusOr<std::string> bytes = program.Serialize();
  if (bytes.ok()) {
    executables_->Add(key, *bytes);
  } else {
    executables_->NoteFault("the plugin cannot write a program", Message(bytes.status()));
  }
}

std::string ProgramCache::KeyOf(const std::string& text, const std::vector<int>& devices) const {
  const PluginFacts& plugin = client_.plugin();
  return ExecutableKey({.module = text,
                        .option_bytes = client_.OptionBytes(options_, devices),
                        .plugin_digest = plugin_digest_,
                        .platform_version = plugin.platform_version,
                        .device_kind = client_.devices()[static_cast<size_t>(devices[0])].kind,
                        .topology = plugin.topology,
                        .threads = plugin.threads,
                        .environment = environment_});
}

Compilation ProgramCache::compilation() const {
  const std::lock_guard lock(mutex_);
  Compilation so_far = compilation_;
  if (executables_ != nullptr) so_far.cache_faults = executables_->faults();
  return so_far;
}

}  // namespace troupe::kernels::xla
