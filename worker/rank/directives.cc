#include "worker/rank/directives.h"

#include <algorithm>
#include <utility>

namespace troupe {

void Directives::SetDevices(const v1::DeviceBook& book) {
  std::vector<v1::RankDevice> devices(book.devices_size());
  for (const v1::RankDevice& device : book.devices()) {
    if (device.rank() >= 0 && device.rank() < book.devices_size()) devices[device.rank()] = device;
  }
  std::lock_guard lock(mutex_);
  devices_ = std::move(devices);
  changed_.notify_all();
}

void Directives::SetAddresses(const v1::AddressBook& book) {
  std::vector<v1::RankAddress> addresses(book.addresses_size());
  for (const v1::RankAddress& address : book.addresses()) {
    if (address.rank() >= 0 && address.rank() < book.addresses_size())
      addresses[address.rank()] = address;
  }
  std::lock_guard lock(mutex_);
  addresses_ = std::move(addresses);
  changed_.notify_all();
}

void Directives::AddTicket(const v1::Ticket& ticket, MonotonicTime now) {
  std::lock_guard lock(mutex_);
  end_step_ = std::max(end_step_, ticket.end_step());
  const MonotonicTime end = now + FromSeconds(ticket.lifetime_seconds());
  expires_at_ = std::max(expires_at_.value_or(end), end);
  for (const v1::CheckpointIntent& intent : ticket.intents()) {
    if (intent.step() > 0) due_[intent.step()] = intent;
  }
  changed_.notify_all();
}

void Directives::AddRequest(const v1::CheckpointIntent& intent) {
  std::lock_guard lock(mutex_);
  if (intent.step() > 0) {
    due_[intent.step()] = intent;
    changed_.notify_all();
    return;
  }
  requested_[intent.attempt()] = intent;
  last_request_ = std::max(last_request_, intent.attempt());
}

void Directives::OrderImage(int64_t step) {
  std::lock_guard lock(mutex_);
  image_step_ = step;
  changed_.notify_all();
}

void Directives::Stop(const Status& cause) {
  std::lock_guard lock(mutex_);
  if (!stopped_) stopped_ = cause;
  changed_.notify_all();
}

void Directives::Release() {
  std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

std::optional<MonotonicTime> Directives::expires_at() const {
  std::lock_guard lock(mutex_);
  if (runs_no_more_) return std::nullopt;
  return expires_at_;
}

StatusOr<std::vector<v1::RankDevice>> Directives::WaitForDevices() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return devices_ || stopped_; });
  if (stopped_) return Cancelled("stopped");
  return *devices_;
}

StatusOr<std::vector<v1::RankAddress>> Directives::WaitForAddresses() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return addresses_ || stopped_; });
  if (stopped_) return Cancelled("stopped");
  return *addresses_;
}

bool Directives::Pause(Duration duration) const {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, duration, [this] { return stopped_.has_value(); });
}

StatusOr<int64_t> Directives::WaitForTicket(int64_t step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, step] { return end_step_ >= step || stopped_; });
  if (stopped_) return Cancelled("stopped");
  return end_step_;
}

void Directives::WaitForRelease() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return released_; });
}

std::optional<LastOrder> Directives::WaitForLastOrder(int64_t step, int64_t last_attempt) {
  std::unique_lock lock(mutex_);
  runs_no_more_ = true;
  const auto asked = [&] {
    const auto due = due_.find(step);
    return due != due_.end() && due->second.attempt() > last_attempt;
  };
  changed_.wait(lock, [&] { return released_ || stopped_ || asked() || image_step_ == step; });
  if (released_ || stopped_) return std::nullopt;
  if (asked()) return LastOrder{due_.at(step)};
  image_step_.reset();
  return LastOrder{};
}

std::optional<Status> Directives::stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

ControlInputs Directives::InputsFor(int64_t step, bool saving) const {
  std::lock_guard lock(mutex_);
  ControlInputs inputs;
  inputs.ticket_end = end_step_;
  inputs.request_attempt = last_request_;
  const auto due = due_.find(step);
  inputs.intent_known = due != due_.end() && (!saving || due->second.then_stop());
  return inputs;
}

v1::CheckpointIntent Directives::PopDue(int64_t step) {
  std::lock_guard lock(mutex_);
  return PopDueLocked(step);
}

v1::CheckpointIntent Directives::PopDueLocked(int64_t step) {
  v1::CheckpointIntent taken = std::move(due_.at(step));
  due_.erase(step);
  return taken;
}

std::vector<v1::CheckpointIntent> Directives::CheckpointsAfter(const StepResult& result,
                                                               int64_t lag_steps) {
  std::lock_guard lock(mutex_);
  std::vector<v1::CheckpointIntent> taken;
  // All ranks know this intent, including this one.
  if (result.intent_known) taken.push_back(PopDueLocked(result.step + lag_steps));
  // Ranks may still agree on later intents that not all of them knew, before they continue.
  due_.erase(due_.begin(), due_.upper_bound(result.step));
  if (result.request_attempt > last_request_done_) {
    last_request_done_ = result.request_attempt;
    v1::CheckpointIntent intent;
    intent.set_attempt(result.request_attempt);
    const auto known = requested_.find(result.request_attempt);
    taken.push_back(known == requested_.end() ? intent : known->second);
    requested_.erase(requested_.begin(), requested_.upper_bound(result.request_attempt));
  }
  return taken;
}

}  // namespace troupe
