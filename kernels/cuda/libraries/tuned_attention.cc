#include "kernels/cuda/libraries/tuned_attention.h"

#include <charconv>
#include <utility>

#include "base/log.h"
#include "kernels/cuda/runtime/device_loss.h"

namespace troupe::kernels::cuda {
namespace {

constexpr std::string_view kLibrary = "library", kOwn = "own";

// Parses "NAME=COUNT" at the front of `text` and removes it.
bool ConsumeExtent(std::string_view name, std::string_view* text) {
  if (!text->starts_with(name)) return false;
  text->remove_prefix(name.size());
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  if (error != std::errc() || count <= 0) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool IsKey(std::string_view key) {
  bool known = false;
  for (const std::string_view begin :
       {"forward bfloat16", "forward float32", "gradient bfloat16", "gradient float32"}) {
    if (!key.starts_with(begin)) continue;
    key.remove_prefix(begin.size());
    known = true;
    break;
  }
  return known && ConsumeExtent(" samples=", &key) && ConsumeExtent(" tokens=", &key) &&
         ConsumeExtent(" queries=", &key) && ConsumeExtent(" keys=", &key) &&
         ConsumeExtent(" width=", &key) && key.empty();
}

}  // namespace

TuningKind AttentionTuning() {
  return {"attention", [](std::string_view key, std::string_view value) {
            return IsKey(key) && (value == kLibrary || value == kOwn);
          }};
}

TunedAttention::TunedAttention(AttentionLibrary& library, AttentionTiming* timing,
                               FileSystem& files, const TunedAttentionOptions& options)
    : library_(library),
      timing_(timing),
      cache_(files, options.tuning_cache_folder, AttentionTuning(), options.owner) {}

template <typename Args>
StatusOr<std::unique_ptr<LibraryAttentionOf<Args>>> TunedAttention::Choose(
    const std::string& pass, const LibraryAttentionShape& shape,
    std::unique_ptr<LibraryAttentionOf<Args>> prepared) {
  if (prepared == nullptr || timing_ == nullptr) return prepared;
  const std::string key = pass + " " + ShapeText(shape);
  std::optional<std::string> choice = cache_.Find(key);
  cache_hits_ += choice.has_value();
  if (!choice) {
    const StatusOr<AttentionSeconds> seconds = timing_->Time(shape, *prepared);
    if (seconds.status().code() == StatusCode::kResourceExhausted) {
      LogWarning("cuda", "attention is not timed, {}: {}", key, Message(seconds.status()));
      return prepared;
    }
    if (seconds.status().code() == StatusCode::kInternal &&
        DeviceLossOf(seconds.status()).empty()) {
      LogWarning("cuda", "attention uses our own kernels, {}: {} did not run: {}", key,
                 prepared->implementation(), ToString(seconds.status()));
      return nullptr;
    }
    TROUPE_RETURN_IF_ERROR(seconds.status());
    choice = seconds->library < seconds->own ? kLibrary : kOwn;
    LogInfo("cuda", "attention by {}, {}: {:.1f} microseconds of {}, {:.1f} of our own kernels",
            *choice, key, 1e6 * seconds->library, prepared->implementation(), 1e6 * seconds->own);
    cache_.Add(key, *choice);
  }
  if (*choice == kOwn) return nullptr;
  return prepared;
}

StatusOr<std::unique_ptr<LibraryAttention>> TunedAttention::Prepare(
    const LibraryAttentionShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<LibraryAttention> prepared, library_.Prepare(shape));
  return Choose("forward", shape, std::move(prepared));
}

StatusOr<std::unique_ptr<LibraryAttentionGrad>> TunedAttention::PrepareGrad(
    const LibraryAttentionShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<LibraryAttentionGrad> prepared,
                          library_.PrepareGrad(shape));
  return Choose("gradient", shape, std::move(prepared));
}

}  // namespace troupe::kernels::cuda
