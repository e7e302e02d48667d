#include "data/sample_batch.h"

#include "base/check.h"

namespace troupe {

SampleBatch::SampleBatch(std::span<const ChannelForm> channels, int64_t samples, int64_t tokens)
    : samples_(samples), tokens_(tokens) {
  for (const ChannelForm& form : channels) {
    Column& column = columns_.emplace_back();
    column.form = form;
    const size_t elements = static_cast<size_t>(samples * form.elements(tokens));
    switch (form.type) {
      case ChannelType::kInt32:
        column.values.emplace<std::vector<int32_t>>(elements);
        break;
      case ChannelType::kFloat32:
        column.values.emplace<std::vector<float>>(elements);
        break;
    }
  }
}

SampleRow SampleBatch::Row(int64_t sample) {
  TROUPE_CHECK(sample >= 0 && sample < samples_, "sample {} of {}", sample, samples_);
  SampleRow row;
  for (Column& column : columns_) {
    const size_t count = static_cast<size_t>(column.form.elements(tokens_));
    std::visit(
        [&](auto& values) {
          row.Add(column.form.name,
                  std::span(values).subspan(static_cast<size_t>(sample) * count, count));
        },
        column.values);
  }
  return row;
}

std::span<const int32_t> SampleBatch::Int32s(std::string_view channel) const {
  const Column* const column = Find(channel);
  if (column == nullptr) return {};
  TROUPE_CHECK(column->form.type == ChannelType::kInt32, "channel {} has another type", channel);
  return std::get<std::vector<int32_t>>(column->values);
}

std::span<const float> SampleBatch::Float32s(std::string_view channel) const {
  const Column* const column = Find(channel);
  if (column == nullptr) return {};
  TROUPE_CHECK(column->form.type == ChannelType::kFloat32, "channel {} has another type", channel);
  return std::get<std::vector<float>>(column->values);
}

std::span<const std::byte> SampleBatch::Bytes(std::string_view channel) const {
  const Column* const column = Find(channel);
  if (column == nullptr) return {};
  return std::visit([](const auto& values) { return std::as_bytes(std::span(values)); },
                    column->values);
}

const SampleBatch::Column* SampleBatch::Find(std::string_view channel) const {
  for (const Column& column : columns_) {
    if (column.form.name == channel) return &column;
  }
  return nullptr;
}

}  // namespace troupe
