// The load that other programs put on this host's cores and GPUs, for a process that measures them.
#ifndef TROUPE_WORKER_DEVICES_OTHERS_LOAD_H_
#define TROUPE_WORKER_DEVICES_OTHERS_LOAD_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Returns for how many seconds the hardware threads `cores` were not idle since the start of the
// system, stolen time included, by `stat` (the text of /proc/stat, whose unit is a tick). None if
// the text has no line for one of them. Pure.
std::optional<double> BusySeconds(const std::string& stat, const std::vector<int>& cores,
                                  double ticks_per_second);

// Whether rates that were measured while others kept `others` of `cores` cores busy are too low to
// keep: more than a twentieth of the cores. Pure.
bool SpoilsRates(double others, int cores);

// Returns the note that belongs to rates which were measured while others kept `others` of `cores`
// cores busy, one line without its end: empty on an idle machine. FAILED_PRECONDITION if the rates
// are too low to keep, unless `even_if_busy` (--even-if-busy) is true. Pure.
StatusOr<std::string> NoteOnLoad(std::optional<double> others, int cores, bool even_if_busy);

// Returns FAILED_PRECONDITION as NoteOnLoad does if others kept more than a quarter of the cores
// busy in the first part of a measurement, so that the rest would be in vain; else OK. Pure.
Status CheckLoadSoFar(std::optional<double> others, int cores, bool even_if_busy);

// The load of one GPU before this process uses it, as far as NVML reports it.
struct GpuLoad {
  std::string name;                   // "GPU-…", or "device 0" without an id
  std::optional<int> processes;       // that can compute on it
  std::optional<double> utilization;  // share of the last moment in which something ran
  std::string fault;                  // the reason if both are unknown
};

// Asks NVML, which is loaded from `library`, about each GPU in `devices`. Errors are faults.
std::vector<GpuLoad> LoadOfGpus(const std::string& library, const std::vector<v1::Device>& devices);

// Returns the note that belongs to rates measured on GPUs with this load before the measurement,
// one line without its end: empty for idle ones. FAILED_PRECONDITION if other processes use one of
// them, unless `even_if_busy` (--even-if-busy) is true. Pure.
StatusOr<std::string> NoteOnGpuLoad(const std::vector<GpuLoad>& gpus, bool even_if_busy);

// Measures from its construction on. Thread-safe.
class OthersLoad {
 public:
  OthersLoad();

  // Returns the average number of cores, among those that this process may use, which others kept
  // busy since the construction. None if the system does not report it.
  std::optional<double> Cores() const;

 private:
  // Seconds in which the cores were busy, but not with this process.
  std::optional<double> SecondsOfOthers() const;

  const std::vector<int> cores_;
  const std::chrono::steady_clock::time_point begin_;
  const std::optional<double> seconds_at_begin_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_OTHERS_LOAD_H_
