#include "kernels/xla/runtime/value_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::kernels::xla {
namespace {

// Buffers are memory of the host, and their reads are counted.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::span<const std::byte> bytes, int* reads)
      : bytes_(bytes.begin(), bytes.end()), reads_(reads) {}
  int64_t bytes() const override { return std::ssize(bytes_); }
  Status Read(std::span<std::byte> bytes) const override {
    ++*reads_;
    std::copy(bytes_.begin(), bytes_.end(), bytes.begin());
    return OkStatus();
  }

 private:
  const std::vector<std::byte> bytes_;
  int* const reads_;
};

class HostClient final : public Client {
 public:
  const PluginFacts& plugin() const override { return plugin_; }
  const std::vector<DeviceFacts>& devices() const override { return devices_; }
  StatusOr<std::unique_ptr<Program>> Compile(std::string_view, const Options&,
                                             std::span<const int>) override {
    return Unimplemented("a fake");
  }
  std::string OptionBytes(const Options&, std::span<const int>) const override { return ""; }
  StatusOr<std::unique_ptr<Program>> Load(std::string_view, std::span<const int>) override {
    return Unimplemented("a fake");
  }
  StatusOr<std::unique_ptr<Buffer>> Upload(model::DType, std::span<const int64_t>,
                                           std::span<const std::byte> bytes, int) override {
    return std::make_unique<HostBuffer>(bytes, &reads);
  }

  int reads = 0;

 private:
  PluginFacts plugin_;
  std::vector<DeviceFacts> devices_ = {{.kind = "cpu"}};
};

model::Value ValueOf(int64_t elements) {
  model::Value value;
  value.dtype = model::DType::kInt32;
  value.dims = {{"rows", elements, elements}};
  return value;
}

// Writes a pattern as the host does.
void Write(ValueStorage& storage) {
  const std::span<std::byte> bytes = storage.HostBytes().value();
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  storage.NoteWrittenOnHost();
}

// Checks the pattern, and returns how often the device was read for it.
int ReadsFor(ValueStorage& storage, const HostClient& client) {
  const int before = client.reads;
  const StatusOr<std::span<std::byte>> bytes = storage.OnHost();
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  for (size_t i = 0; i < bytes->size(); ++i)
    EXPECT_EQ((*bytes)[i], static_cast<std::byte>(i % 251)) << i;
  return client.reads - before;
}

TEST(ValueStorageTest, HostMemoryOfALargeValueIsFreedOnceTheDeviceHasIt) {
  HostClient client;
  const model::Value large = ValueOf(1 << 19);
  ValueStorage storage(large, {1 << 19}, nullptr);
  Write(storage);
  ASSERT_TRUE(storage.OnDevice(client, 0).ok());
  EXPECT_EQ(ReadsFor(storage, client), 1) << "it is copied back from the device";
  EXPECT_EQ(ReadsFor(storage, client), 0) << "the copy is kept until a run replaces it";
  const StatusOr<const Buffer*> device = storage.OnDevice(client, 0);
  ASSERT_TRUE(device.ok());
  EXPECT_EQ((*device)->bytes(), large.bytes());
}

TEST(ValueStorageTest, HostMemoryOfASmallValueStays) {
  HostClient client;
  const model::Value small = ValueOf(16);
  ValueStorage storage(small, {16}, nullptr);
  Write(storage);
  ASSERT_TRUE(storage.OnDevice(client, 0).ok());
  EXPECT_EQ(ReadsFor(storage, client), 0);
}

TEST(ValueStorageTest, MemoryOfTheCallerIsUsedAgain) {
  HostClient client;
  const model::Value large = ValueOf(1 << 19);
  std::vector<std::byte> memory(large.bytes());
  ValueStorage storage(large, {1 << 19}, memory.data());
  Write(storage);
  ASSERT_TRUE(storage.OnDevice(client, 0).ok());
  EXPECT_EQ(ReadsFor(storage, client), 0);
  EXPECT_EQ(storage.HostBytes()->data(), memory.data());
}

TEST(ValueStorageTest, WhatARunProducesReplacesTheHostsBytes) {
  HostClient client;
  const model::Value large = ValueOf(1 << 19);
  ValueStorage storage(large, {1 << 19}, nullptr);
  std::ranges::fill(*storage.HostBytes(), std::byte{255});
  storage.NoteWrittenOnHost();
  ValueStorage made(large, {1 << 19}, nullptr);
  Write(made);
  StatusOr<std::unique_ptr<Buffer>> buffer =
      client.Upload(large.dtype, std::vector<int64_t>{1 << 19}, *made.HostBytes(), 0);
  ASSERT_TRUE(buffer.ok());
  storage.SetOnDevice(*std::move(buffer));
  EXPECT_EQ(ReadsFor(storage, client), 1);
}

TEST(ValueStorageTest, HostMemoryThatCannotBeAllocatedIsAnErrorWithItsBytes) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends a process that asks for more memory than there can be";
#endif
  HostClient client;
  const model::Value enormous = ValueOf(int64_t{1} << 58);
  const Status lacking =
      ResourceExhausted("cannot allocate {} bytes of host memory for a value", int64_t{1} << 60);
  ValueStorage storage(enormous, {int64_t{1} << 58}, nullptr);
  EXPECT_EQ(storage.HostBytes().status(), lacking);
  EXPECT_EQ(storage.OnHost().status(), lacking);
  EXPECT_EQ(storage.OnDevice(client, 0).status(), lacking);
  EXPECT_EQ(storage.ToReplace(client, 0).status(), lacking);
  // Only the padding is too large.
  const model::Value small = ValueOf(16);
  ValueStorage padded(small, {int64_t{1} << 58}, nullptr);
  EXPECT_EQ(padded.OnDevice(client, 0).status(), lacking);
}

}  // namespace
}  // namespace troupe::kernels::xla
