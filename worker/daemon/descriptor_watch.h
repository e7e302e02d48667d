// Reports which descriptors are ready to the actors that own them: the adapter between epoll and
// messages. It reads and writes nothing itself.
//
// A report disarms the reported events until the owner arms them again. So each descriptor has at
// most one report of each kind in flight, and data wait in the kernel while their reader is busy.
#ifndef TROUPE_WORKER_DAEMON_DESCRIPTOR_WATCH_H_
#define TROUPE_WORKER_DAEMON_DESCRIPTOR_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

// Thread-safe, except Wait, which one thread calls.
class DescriptorWatch {
 public:
  // Identifies one registration; never reused, unlike numbers of descriptors.
  using Token = uint64_t;
  enum Events : unsigned { kReadable = 1, kWritable = 2 };
  // Reports events, a union of Events, on the thread that calls Wait. RESOURCE_EXHAUSTED: the owner
  // has no room for the report, which is then repeated after kRepeatInterval.
  using Report = std::function<Status(unsigned events)>;

  static constexpr Duration kRepeatInterval = std::chrono::milliseconds(10);

  DescriptorWatch();
  ~DescriptorWatch();
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  // Registers a descriptor, with no event armed.
  Token Add(int descriptor, Report report);
  // Arms more events. No effect after Remove.
  void Arm(Token token, unsigned events);
  // Must precede the close of the descriptor. One report may still be in progress.
  void Remove(Token token);

  // Ends the present or next Wait.
  void Wake();
  // Waits for at most `limit` and reports what is ready.
  void Wait(Duration limit);

 private:
  struct Entry {
    int descriptor = -1;
    std::shared_ptr<Report> report;
    unsigned armed = 0;
  };

  // REQUIRES: mutex_ is held.
  void Apply(Token token, const Entry& entry, int operation);
  void ReportTo(Token token, unsigned events);

  const int epoll_;
  const int wake_;  // eventfd
  std::mutex mutex_;
  Token last_token_ = 0;  // 0 is wake_
  std::map<Token, Entry> entries_;
  // Reports without room; the thread that calls Wait uses them.
  std::vector<std::pair<Token, unsigned>> refused_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_DESCRIPTOR_WATCH_H_
