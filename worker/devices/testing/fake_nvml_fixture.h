// Test fixture: the fake NVML of this process, with two GPUs.
#ifndef TROUPE_WORKER_DEVICES_TESTING_FAKE_NVML_FIXTURE_H_
#define TROUPE_WORKER_DEVICES_TESTING_FAKE_NVML_FIXTURE_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>

#include "worker/devices/testing/fake_nvml.h"

namespace troupe {

inline constexpr char kFirstGpu[] = "GPU-aaaaaaaa-1111";
inline constexpr char kSecondGpu[] = "GPU-bbbbbbbb-2222";

class FakeNvmlTest : public ::testing::Test {
 protected:
  // This handle keeps the library loaded after the code under test releases its own.
  FakeNvmlTest() : handle_(dlopen(TROUPE_FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    fake_ = reinterpret_cast<FakeNvmlOf*>(dlsym(handle_, "troupe_fake_nvml"))();
    Change([](FakeNvml& fake) {
      fake.gpus[kFirstGpu] = {
          .pci = "0000:3b:00.0", .name = "NVIDIA H100", .celsius = 41, .milliwatts = 312500};
      fake.gpus[kSecondGpu] = {
          .pci = "0000:5e:00.0", .name = "NVIDIA H100", .celsius = 43, .milliwatts = 280000};
    });
  }
  ~FakeNvmlTest() override {
    if (handle_ != nullptr) dlclose(handle_);
  }
  void SetUp() override { ASSERT_NE(fake_, nullptr) << dlerror(); }

  void Change(const std::function<void(FakeNvml&)>& change) {
    std::lock_guard lock(fake_->mutex);
    change(*fake_);
    fake_->changed.notify_all();
  }
  // Waits until `holds`; returns false after some seconds.
  bool WaitFor(const std::function<bool(const FakeNvml&)>& holds) {
    std::unique_lock lock(fake_->mutex);
    return fake_->changed.wait_for(lock, std::chrono::seconds(20), [&] { return holds(*fake_); });
  }
  void Happen(const std::string& uuid, uint64_t xid) {
    Change([&](FakeNvml& fake) { fake.events.push_back({uuid, 0x8, xid}); });
  }

 private:
  void* const handle_;
  FakeNvml* fake_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_TESTING_FAKE_NVML_FIXTURE_H_
