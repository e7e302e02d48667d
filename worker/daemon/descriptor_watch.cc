#include "worker/daemon/descriptor_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace troupe {
namespace {

constexpr DescriptorWatch::Token kWakeToken = 0;
constexpr size_t kEventsTogether = 64;

}  // namespace

DescriptorWatch::DescriptorWatch()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TROUPE_CHECK(epoll_ >= 0 && wake_ >= 0, "no descriptor is left for epoll");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeToken}};
  TROUPE_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0, "epoll refuses an eventfd");
}

DescriptorWatch::~DescriptorWatch() {
  close(epoll_);
  close(wake_);
}

DescriptorWatch::Token DescriptorWatch::Add(int descriptor, Report report) {
  const std::lock_guard lock(mutex_);
  const Token token = ++last_token_;
  Entry& entry = entries_[token];
  entry = {descriptor, std::make_shared<Report>(std::move(report)), 0};
  Apply(token, entry, EPOLL_CTL_ADD);
  return token;
}

void DescriptorWatch::Arm(Token token, unsigned events) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(token);
  if (found == entries_.end() || (found->second.armed | events) == found->second.armed) return;
  found->second.armed |= events;
  Apply(token, found->second, EPOLL_CTL_MOD);
}

void DescriptorWatch::Remove(Token token) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(token);
  if (found == entries_.end()) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second.descriptor, nullptr);
  entries_.erase(found);
}

void DescriptorWatch::Apply(Token token, const Entry& entry, int operation) {
  epoll_event event{.events = EPOLLONESHOT, .data = {.u64 = token}};
  if (entry.armed & kReadable) event.events |= EPOLLIN;
  if (entry.armed & kWritable) event.events |= EPOLLOUT;
  if (epoll_ctl(epoll_, operation, entry.descriptor, &event) != 0)
    LogError("worker", "{}", ToString(ErrnoStatus(errno, "epoll_ctl")));
}

void DescriptorWatch::Wake() { eventfd_write(wake_, 1); }

void DescriptorWatch::Wait(Duration limit) {
  for (const auto& [token, events] : std::exchange(refused_, {})) ReportTo(token, events);
  if (!refused_.empty()) limit = std::min(limit, kRepeatInterval);
  std::array<epoll_event, kEventsTogether> ready;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()),
                               static_cast<int>(std::max<int64_t>(0, milliseconds)));
  if (count < 0 && errno != EINTR)
    LogError("worker", "{}", ToString(ErrnoStatus(errno, "epoll_wait")));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    const uint64_t token = event.data.u64;  // a copy: the structure is packed
    if (token == kWakeToken) {
      eventfd_t value = 0;
      eventfd_read(wake_, &value);
      continue;
    }
    unsigned events = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = entries_.find(token);
      if (found == entries_.end()) continue;
      Entry& entry = found->second;
      // An end or an error is reported as whatever is armed: reading or writing will show it.
      if (event.events & (EPOLLHUP | EPOLLERR)) events = entry.armed;
      if (event.events & EPOLLIN) events |= kReadable;
      if (event.events & EPOLLOUT) events |= kWritable;
      events &= entry.armed;
      entry.armed &= ~events;
      if (entry.armed != 0) Apply(token, entry, EPOLL_CTL_MOD);
    }
    if (events != 0) ReportTo(token, events);
  }
}

void DescriptorWatch::ReportTo(Token token, unsigned events) {
  std::shared_ptr<Report> report;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(token);
    if (found == entries_.end()) return;
    report = found->second.report;
  }
  const Status status = (*report)(events);
  if (status.code() == StatusCode::kResourceExhausted) refused_.emplace_back(token, events);
}

}  // namespace troupe
