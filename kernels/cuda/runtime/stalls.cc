#include "kernels/cuda/runtime/stalls.h"

#include <cstring>

namespace troupe::kernels::cuda {

Status Stalls::Prepare() {
  TROUPE_ASSIGN_OR_RETURN(words_, device_.Allocate(kBytes));
  TROUPE_RETURN_IF_ERROR(device_.Load(BeginMark(nullptr)));
  TROUPE_RETURN_IF_ERROR(device_.Load(EndMark(nullptr)));
  return device_.Clear(words_.get(), kBytes, Stream::kCompute);
}

void Stalls::AddWait(Commands* commands, int kind, Event event) const {
  commands->emplace_back(Stream::kCompute, BeginMark(WordsOf(kind)));
  commands->emplace_back(Stream::kCompute, WaitCommand{event});
  commands->emplace_back(Stream::kCompute, EndMark(WordsOf(kind)));
}

Status Stalls::Wait(int kind, Event event) const {
  TROUPE_RETURN_IF_ERROR(device_.Launch(BeginMark(WordsOf(kind)), Stream::kCompute));
  TROUPE_RETURN_IF_ERROR(device_.WaitFor(event, Stream::kCompute));
  return device_.Launch(EndMark(WordsOf(kind)), Stream::kCompute);
}

DeviceStalls DecodeStalls(std::span<const std::byte> bytes) {
  const auto seconds = [&](int kind) {
    MarkWords words;
    std::memcpy(&words, bytes.data() + static_cast<size_t>(kind) * sizeof(MarkWords),
                sizeof(MarkWords));
    return 1e-9 * static_cast<double>(words.nanoseconds);
  };
  DeviceStalls stalls;
  for (int purpose = 0; purpose < kPurposes; ++purpose) {
    stalls.by_purpose[static_cast<size_t>(purpose)] = seconds(purpose);
  }
  stalls.receives = seconds(Stalls::kReceives);
  stalls.by_purpose[static_cast<size_t>(Purpose::kPipe)] += stalls.receives;
  return stalls;
}

}  // namespace troupe::kernels::cuda
