// Tests burn-in on a faulty device.
#include "kernels/backend/burn_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/cuda/runtime/cuda_backend.h"

namespace troupe::kernels {
namespace {

using ::testing::HasSubstr;

// A single fault: flips a bit of byte `at` after the `nth` copy of `bytes` bytes.
struct Fault {
  int64_t bytes;
  int nth;
  int64_t at;
};
class FlippingDevice : public cuda::emulator::EmulatedDevice {
 public:
  explicit FlippingDevice(const Fault& fault) : fault_(fault) {}

  Status Copy(void* to, const void* from, int64_t bytes, cuda::Stream stream) override {
    TROUPE_RETURN_IF_ERROR(EmulatedDevice::Copy(to, from, bytes, stream));
    if (bytes != fault_.bytes || ++copies_ != fault_.nth) return OkStatus();
    return Enqueue(
        "flip",
        [at = static_cast<char*>(to) + fault_.at] {
          *at ^= 0x40;
          return OkStatus();
        },
        stream);
  }

 private:
  const Fault fault_;
  int copies_ = 0;
};

// 20 rows of 20: bfloat16 as written, float32 as read.
constexpr int64_t kOperandBytes = 800, kResultBytes = 1600, kArray = 100;

TEST(BurnIn, NamesTheElementThatIsWrong) {
  for (const auto& [fault, text] : std::vector<std::pair<Fault, const char*>>{
           {{kResultBytes, 1, 4 * (3 * 20 + 7) + 3},
            "round 1: element [3, 7] of a matmul of 20 rows is "},
           // Row 3, column 7 of an operand: row 7 of the result is wrong.
           {{kOperandBytes, 1, 2 * (3 * 20 + 7) + 1}, "round 1: element [7, "},
           // The same element of the other operand: column 7 is wrong.
           {{kOperandBytes, 2, 2 * (3 * 20 + 7) + 1}, ", 7] of a matmul of 20 rows is "},
           {{4 * kArray, 1, 4 * 90 + 3}, "round 1: element 90 of a copied array is "}}) {
    FlippingDevice device(fault);
    CudaBackend backend(device, {}, nullptr);
    const auto report = BurnIn(backend, {.extent = 20, .copy_elements = kArray});
    EXPECT_EQ(report.status().code(), StatusCode::kDataLoss);
    EXPECT_THAT(std::string(Message(report.status())), HasSubstr(text));
  }
}

TEST(BurnIn, FindsWhatGoesWrongInALaterRound) {
  FlippingDevice device({kResultBytes, 3, 3});
  CudaBackend backend(device, {}, nullptr);
  const auto report = BurnIn(
      backend, {.extent = 20, .copy_elements = kArray, .at_least = std::chrono::seconds(20)});
  EXPECT_THAT(std::string(Message(report.status())),
              HasSubstr("round 3: element [0, 0] of a matmul"));
}

}  // namespace
}  // namespace troupe::kernels
