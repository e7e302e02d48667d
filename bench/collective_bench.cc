// troupe-bench-collective measures collectives between processes on this host, over UCX with its
// default transports or those of --transports.
//
// Prints one JSON line per operation and size: {"operation", "ranks", "bytes", "transports",
// "samples", "median_seconds", "minimum_seconds", "bytes_per_second"}. Bytes are those of the
// float32 data of all_reduce and reduce_scatter, and of the output of all_gather. Results are
// checked before they are timed.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/flag_parser.h"
#include "base/status.h"
#include "collective/network.h"
#include "collective/ucx/ucx_transport.h"

namespace troupe {
namespace {

constexpr Duration kLimit = std::chrono::seconds(30);
constexpr double kBatchSeconds =
    2e-4;  // duration of one sample: small operations are repeated for this long

struct BenchOptions {
  int ranks = 2;
  std::vector<std::string> operations = {"all_reduce"};
  std::vector<size_t> bytes = {64, 4096, 65536, 1 << 20, 64 << 20};
  double seconds = 0.5;
  std::string transports;
};

double Now() { return ToSeconds(std::chrono::steady_clock::now().time_since_epoch()); }

std::vector<std::string> SplitByComma(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

void AddFlags(FlagParser& parser, BenchOptions* options) {
  parser.AddNumber({"--ranks", "N", "processes"}, {1, 64}, &options->ranks);
  parser.AddParsed(
      {"--operations", "NAME,…",
       "all_reduce, reduce_scatter, all_gather; separated by commas (default: all_reduce)"},
      [options](const std::string& value) -> Status {
        options->operations = SplitByComma(value);
        for (const std::string& name : options->operations) {
          if (name != "all_reduce" && name != "reduce_scatter" && name != "all_gather") {
            return InvalidArgument("--operations {}: not all_reduce, reduce_scatter or all_gather",
                                   name);
          }
        }
        return OkStatus();
      });
  parser.AddParsed({"--sizes", "BYTES,…",
                    fmt::format("sizes of the data, separated by commas (default: {})",
                                fmt::join(options->bytes, ","))},
                   [options](const std::string& value) -> Status {
                     options->bytes.clear();
                     for (const std::string& part : SplitByComma(value)) {
                       TROUPE_ASSIGN_OR_RETURN(
                           options->bytes.emplace_back(),
                           ParseNumber<uint64_t>("--sizes", part, {.least = 1}));
                     }
                     return OkStatus();
                   });
  parser.AddNumber({"--seconds", "SECONDS", "time to measure each operation and size"},
                   {.least = kAboveZero}, &options->seconds);
  parser.AddText(
      {"--transports", "NAME,…", "UCX transports, such as tcp,self (default: UCX's own)"},
      &options->transports);
}

// The buffers of one rank and the operation under test.
class Trial {
 public:
  Trial(Communicator* group, std::string_view operation, size_t bytes)
      : group_(group),
        operation_(operation),
        block_(bytes / sizeof(float) /
               static_cast<size_t>(operation == "all_reduce" ? 1 : group->size())),
        data_(operation == "all_reduce" ? block_ : block_ * static_cast<size_t>(group->size())),
        part_(operation == "all_reduce" ? 0 : block_) {}

  size_t bytes() const { return data_.size() * sizeof(float); }

  Status Run() {
    if (operation_ == "all_reduce") return group_->AllReduce(data_.data(), block_, SumFloat32());
    if (operation_ == "reduce_scatter") {
      return group_->ReduceScatter(data_.data(), part_.data(), block_, SumFloat32());
    }
    return group_->AllGather(part_.data(), data_.data(), block_ * sizeof(float));
  }

  // Runs once on known values and compares the result; leaves zeros, which further sums do not
  // change.
  Status Check() {
    const float own = static_cast<float>(group_->rank() + 1);
    const float sum = static_cast<float>(group_->size() * (group_->size() + 1) / 2);
    std::fill(data_.begin(), data_.end(), own);
    std::fill(part_.begin(), part_.end(), own);
    TROUPE_RETURN_IF_ERROR(Run());
    const bool gather = operation_ == "all_gather";
    const std::vector<float>& result = operation_ == "reduce_scatter" ? part_ : data_;
    for (size_t i = 0; i < result.size(); ++i) {
      const float expected = gather ? static_cast<float>(i / block_ + 1) : sum;
      if (result[i] != expected)
        return Internal("{}: element {} is {}, not {}", operation_, i, result[i], expected);
    }
    std::fill(data_.begin(), data_.end(), 0.0f);
    std::fill(part_.begin(), part_.end(), 0.0f);
    return OkStatus();
  }

 private:
  Communicator* const group_;
  const std::string operation_;
  const size_t block_;
  std::vector<float> data_;
  std::vector<float> part_;
};

Status Measure(const BenchOptions& options, Communicator* group, const std::string& operation,
               size_t bytes) {
  Trial trial(group, operation, bytes);
  TROUPE_RETURN_IF_ERROR(trial.Check());
  // All ranks use rank 0's operations per sample and number of samples.
  uint64_t plan[2] = {1, 5};
  for (int i = 0; i < 3; ++i) {
    TROUPE_RETURN_IF_ERROR(group->Barrier());
    const double start = Now();
    TROUPE_RETURN_IF_ERROR(trial.Run());
    const double once = std::max(1e-7, Now() - start);
    plan[0] = static_cast<uint64_t>(std::max(1.0, kBatchSeconds / once));
    plan[1] = static_cast<uint64_t>(
        std::max(5.0, options.seconds / (once * static_cast<double>(plan[0]))));
  }
  TROUPE_RETURN_IF_ERROR(group->Broadcast(plan, sizeof(plan), 0));
  std::vector<double> samples;
  for (uint64_t sample = 0; sample < plan[1]; ++sample) {
    TROUPE_RETURN_IF_ERROR(group->Barrier());
    const double start = Now();
    for (uint64_t i = 0; i < plan[0]; ++i) TROUPE_RETURN_IF_ERROR(trial.Run());
    samples.push_back((Now() - start) / static_cast<double>(plan[0]));
  }
  if (group->rank() == 0) {
    std::sort(samples.begin(), samples.end());
    const double median = samples[samples.size() / 2];
    std::printf(
        "{\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"transports\": \"%s\", "
        "\"samples\": %zu, "
        "\"median_seconds\": %.9f, \"minimum_seconds\": %.9f, \"bytes_per_second\": %.0f}\n",
        operation.c_str(), group->size(), trial.bytes(), options.transports.c_str(), samples.size(),
        median, samples.front(), static_cast<double>(trial.bytes()) / median);
    std::fflush(stdout);
  }
  return OkStatus();
}

bool ReadAll(int descriptor, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(descriptor, data, bytes);
    if (got <= 0) return false;
    data += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(int descriptor, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor, data, bytes);
    if (put <= 0) return false;
    data += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

bool WriteText(int descriptor, const std::string& text) {
  const uint64_t bytes = text.size();
  return WriteAll(descriptor, reinterpret_cast<const char*>(&bytes), sizeof(bytes)) &&
         WriteAll(descriptor, text.data(), bytes);
}

bool ReadText(int descriptor, std::string* text) {
  uint64_t bytes = 0;
  if (!ReadAll(descriptor, reinterpret_cast<char*>(&bytes), sizeof(bytes)) || bytes > (1 << 20))
    return false;
  text->resize(bytes);
  return ReadAll(descriptor, text->data(), bytes);
}

// Runs in a child process; the parent at the other end of `descriptor` exchanges the addresses.
Status RunRank(const BenchOptions& options, int rank, int descriptor) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (options.ranks <= cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(rank), &set);
    ::sched_setaffinity(0, sizeof(set), &set);
  }
  TROUPE_ASSIGN_OR_RETURN(auto transport, MakeUcxTransport({.transports = options.transports}));
  TROUPE_ASSIGN_OR_RETURN(auto network, CollectiveNetwork::Make({.rank = rank,
                                                                 .ranks = options.ranks,
                                                                 .ranks_on_host = options.ranks,
                                                                 .cores_on_host = cores},
                                                                std::move(transport)));
  std::vector<int> all(static_cast<size_t>(options.ranks));
  std::iota(all.begin(), all.end(), 0);
  TROUPE_ASSIGN_OR_RETURN(Communicator * group,
                          network->MakeCommunicator("bench", Purpose::kTensor, all, "bench"));
  if (!WriteText(descriptor, network->address())) return ErrnoStatus(errno, "write address");
  std::vector<std::string> addresses(all.size());
  for (std::string& address : addresses) {
    if (!ReadText(descriptor, &address)) return Unavailable("the parent sent no addresses");
  }
  TROUPE_RETURN_IF_ERROR(network->Connect(addresses, kLimit));
  for (const std::string& operation : options.operations) {
    for (const size_t bytes : options.bytes) {
      TROUPE_RETURN_IF_ERROR(Measure(options, group, operation, bytes));
    }
  }
  return network->Close(kLimit);
}

int Run(const BenchOptions& options) {
  std::vector<int> parents;
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    int pair[2];
    TROUPE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    const pid_t child = ::fork();
    TROUPE_CHECK(child >= 0, "fork");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(pair[0]);
      for (const int descriptor : parents) ::close(descriptor);
      const Status status = RunRank(options, rank, pair[1]);
      if (!status.ok()) std::fprintf(stderr, "rank %d: %s\n", rank, ToString(status).c_str());
      ::_exit(status.ok() ? 0 : 1);
    }
    ::close(pair[1]);
    parents.push_back(pair[0]);
    children.push_back(child);
  }
  std::vector<std::string> addresses(parents.size());
  bool ok = true;
  for (size_t i = 0; i < parents.size(); ++i) ok = ok && ReadText(parents[i], &addresses[i]);
  for (const int descriptor : parents) {
    for (const std::string& address : addresses) ok = ok && WriteText(descriptor, address);
  }
  for (const int descriptor : parents) ::close(descriptor);
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::BenchOptions options;
  troupe::FlagParser parser({.name = "troupe-bench-collective",
                             .usage = "troupe-bench-collective [FLAG …]",
                             .summary = "Measures collectives between processes on this host, over "
                                        "UCX, and prints one JSON line per operation and size."});
  troupe::AddFlags(parser, &options);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  troupe::SizeUcxQueues();
  return troupe::Run(options);
}
