// A device of XLA behind PJRT, the C interface of XLA's plugins: buffers, compiled programs, runs.
// The plugin is a shared library that is loaded at run time; nothing of it is linked.
//
// Errors of the plugin become a Status with the plugin's message; messages of the compiler name the
// line of the program's text.
#ifndef TROUPE_KERNELS_XLA_PJRT_CLIENT_H_
#define TROUPE_KERNELS_XLA_PJRT_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "model/program/value.h"

namespace troupe::kernels::xla {

// A tensor in the device's memory. Its memory is freed when it is destroyed. Must not outlive its
// client.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual int64_t bytes() const = 0;  // as the host sees it, row-major and dense
  // Copies all of it to `bytes`, row-major. Blocks. Errors: INVALID_ARGUMENT if `bytes` has another
  // size; INTERNAL with the plugin's message; FAILED_PRECONDITION if a run has consumed it.
  virtual Status Read(std::span<std::byte> bytes) const = 0;
};

// One device's part in a run of a program of several devices. Each device's part is run by a call
// of its own, at the same time as the others': collectives of the program wait for all of them.
struct Launch {
  int partition = 0;  // index of the device among those that the program was compiled for
  // Equal on all devices of a run, and larger than in earlier runs on any of them.
  int32_t id = 0;
};

// A compiled program for one device or several. Thread-safe. Must not outlive its client.
class Program {
 public:
  virtual ~Program() = default;
  // Runs one device's part and returns its results in order. An argument whose memory the program's
  // text gives to a result (tf.aliasing_output) is consumed; destroying any argument right after
  // the call is allowed. The results may not be complete yet; an error of the run is returned here
  // or by Read of a result. INVALID_ARGUMENT if an argument was consumed or has another size than
  // in the text. REQUIRES: the arguments are buffers of the program's client on that device and
  // have the dtypes of the text: the plugin compares sizes only. The partition exists.
  virtual StatusOr<std::vector<std::unique_ptr<Buffer>>> Run(
      std::span<const Buffer* const> arguments, const Launch& launch) = 0;
  // Runs a program of one device.
  StatusOr<std::vector<std::unique_ptr<Buffer>>> Run(std::span<const Buffer* const> arguments) {
    return Run(arguments, Launch());
  }
  // Returns bytes from which Client::Load makes the program again, also in another process. Two
  // compilations of one text may return different bytes. The plugin's format has no checksum.
  virtual StatusOr<std::string> Serialize() const = 0;
  // Whether Client::Load made the program; false: Client::Compile did.
  virtual bool loaded() const = 0;
};

// Options of XLA's compiler by name, as in XLA_FLAGS without the dashes.
using OptionValue = std::variant<bool, int64_t, double, std::string>;
using Options = std::map<std::string, OptionValue>;

struct PluginFacts {
  std::string path;
  std::string file;              // FileIdentity of the path when the plugin was loaded
  std::string platform;          // "cpu", "tpu"
  std::string platform_version;  // the plugin's own text, a single line
  int api_major = 0, api_minor = 0;
  // The plugin's bytes that describe its devices; for processors they name the instructions that
  // the host has. Empty if the plugin does not describe them.
  std::string topology;
  int threads = 0;  // as stated to Client::Make
};

struct DeviceFacts {
  std::string kind;                  // "cpu", "TPU v5 lite"
  int id = 0;                        // the plugin's, equal in all processes of a slice
  int64_t memory_bytes = 0;          // 0: not known
  std::vector<int64_t> coordinates;  // a TPU chip's; empty: the plugin states none
  // False: it belongs to another process of the slice. Programs are compiled for it, and run there.
  bool addressable = true;
};

// One process's connection to the devices of a plugin. Thread-safe. It and its programs must not be
// destroyed while the process's static objects are: the plugin's own may be gone then.
class Client {
 public:
  // Loads the plugin at `path` and makes its client. `threads` is the number of threads of a plugin
  // for processors, where it can be set; 0: its own choice. The plugin for processors has one for
  // each of its four devices at least. The call writes NPROC (unless it has that value),
  // TF_CPP_MIN_LOG_LEVEL (unless it is set) and the variables of tpu_environment.h to the
  // environment, which no other thread may read meanwhile. Errors:
  // NOT_FOUND if there is no file; FAILED_PRECONDITION, with path and reason, if it is no plugin,
  // if its API is older than the one this was built with (another major version or a lower minor
  // one), or if it finds no device.
  static StatusOr<std::unique_ptr<Client>> Make(const std::string& path, int threads);
  virtual ~Client() = default;

  virtual const PluginFacts& plugin() const = 0;
  // All devices that programs may be compiled for, at least one of them addressable.
  virtual const std::vector<DeviceFacts>& devices() const = 0;

  // Compiles StableHLO text for these devices (indices of devices()), each of which is a partition
  // of the program; a text for several devices divides its tensors itself (text/function.h).
  // Options that keep numbers exact (compile_options.h) are set unless `options` has them.
  // REQUIRES: the devices are different ones. The text states no layout of an argument or a result:
  // the plugin for processors would return a tensor in that layout. Errors: INVALID_ARGUMENT with
  // the plugin's message for a text or an option that it does not accept.
  virtual StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options& options,
                                                     std::span<const int> devices) = 0;
  StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options& options,
                                             int device) {
    return Compile(text, options, std::span(&device, 1));
  }
  // Returns the bytes of the options that Compile gives to the plugin.
  virtual std::string OptionBytes(const Options& options, std::span<const int> devices) const = 0;
  // Makes a program from the bytes that Serialize of a program returned. REQUIRES: that program was
  // compiled by the same plugin file for an equal topology, with the same OptionBytes for these
  // devices; the plugin checks neither, nor that the bytes are complete. Errors: those of the
  // plugin.
  virtual StatusOr<std::unique_ptr<Program>> Load(std::string_view bytes,
                                                  std::span<const int> devices) = 0;
  // Copies a row-major tensor to device `device`. `bytes` may be reused after the call.
  // REQUIRES: `bytes` has the size of the dims. dtype is not a float8 format. The device is
  // addressable.
  virtual StatusOr<std::unique_ptr<Buffer>> Upload(model::DType dtype,
                                                   std::span<const int64_t> dims,
                                                   std::span<const std::byte> bytes,
                                                   int device) = 0;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_CLIENT_H_
